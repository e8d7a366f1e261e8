use infer_mlx::Owned;

fn send(owned: Owned) {
    std::thread::spawn(move || owned.shape().len());
}

fn main() {
    let _ = send;
}
