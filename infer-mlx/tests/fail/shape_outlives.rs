use infer_mlx::{DType, Mlx};

fn shape(mlx: &Mlx) -> &[i32] {
    mlx.scope().ones(&[2], DType::F32).shape()
}

fn main() {
    let _ = shape;
}
