use infer_mlx::{DType, Mlx};

fn read(mlx: &Mlx) {
    let data: &[f32];
    {
        let scope = mlx.scope();
        let a = scope.ones(&[2], DType::F32);
        data = a.data().unwrap();
    }
    let _ = data.len();
}

fn main() {
    let _ = read;
}
