use infer_mlx::Owned;

fn read(owned: Owned) {
    let data = owned.data::<f32>().unwrap();
    drop(owned);
    let _ = data.len();
}

fn main() {
    let _ = read;
}
