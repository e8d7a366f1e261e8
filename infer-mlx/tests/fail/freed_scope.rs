use infer_mlx::{DType, Mlx};

fn use_after(mlx: &Mlx) {
    let scope = mlx.scope();
    let a = scope.ones(&[2], DType::F32);
    drop(scope);
    let _ = a.exp();
}

fn main() {
    let _ = use_after;
}
