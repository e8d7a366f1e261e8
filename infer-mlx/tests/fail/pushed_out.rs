use infer_mlx::{Array, DType, Mlx};

fn collect(mlx: &Mlx) {
    let mut all: Vec<Array<'_>> = Vec::new();
    for _ in 0..3 {
        let scope = mlx.scope();
        all.push(scope.ones(&[2], DType::F32));
    }
    let _ = all.len();
}

fn main() {
    let _ = collect;
}
