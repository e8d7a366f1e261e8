use infer_mlx::{LoadOptions, Mlx, Scope};

fn scope() -> Scope<'static> {
    let mlx = Mlx::load(&LoadOptions::new()).unwrap();
    mlx.scope()
}

fn main() {
    let _ = scope;
}
