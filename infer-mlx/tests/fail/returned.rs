use infer_mlx::{Array, DType, Mlx};

fn made<'m>(mlx: &'m Mlx) -> Array<'m> {
    let scope = mlx.scope();
    scope.ones(&[2], DType::F32)
}

fn main() {
    let _ = made;
}
