use infer_mlx::{DType, Mlx};

fn keep(mlx: &Mlx) {
    let outer = mlx.scope();
    let inner = outer.nest();
    let kept = inner.keep(inner.ones(&[2], DType::F32));
    drop(inner);
    drop(outer);
    let _ = kept.exp();
}

fn main() {
    let _ = keep;
}
