use infer_mlx::{Array, DType, Mlx};

struct Cache<'s> {
    keys: Option<Array<'s>>,
}

fn fill(mlx: &Mlx) {
    let outer = mlx.scope();
    let mut cache = Cache { keys: None };
    {
        let inner = outer.nest();
        cache.keys = Some(inner.ones(&[2], DType::F32));
    }
    let _ = cache.keys;
}

fn main() {
    let _ = fill;
}
