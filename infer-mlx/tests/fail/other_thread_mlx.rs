use infer_mlx::Mlx;

fn send(mlx: Mlx) {
    std::thread::spawn(move || mlx.evals());
}

fn share(mlx: &Mlx) {
    std::thread::scope(|threads| {
        threads.spawn(|| mlx.evals());
    });
}

fn main() {
    let _ = (send, share);
}
