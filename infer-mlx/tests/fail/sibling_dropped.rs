use infer_mlx::{DType, Mlx};

fn mix(mlx: &Mlx) {
    let (first, second) = (mlx.scope(), mlx.scope());
    let sum = first.ones(&[2], DType::F32) + second.ones(&[2], DType::F32);
    drop(second);
    let _ = sum.exp();
}

fn main() {
    let _ = mix;
}
