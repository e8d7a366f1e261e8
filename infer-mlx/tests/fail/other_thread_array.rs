use infer_mlx::{DType, Mlx};

fn send(mlx: &Mlx) {
    let scope = mlx.scope();
    let a = scope.ones(&[2], DType::F32);
    std::thread::scope(|threads| {
        threads.spawn(|| a.exp());
    });
}

fn main() {
    let _ = send;
}
