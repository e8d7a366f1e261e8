use infer_mlx::Owned;
use std::sync::OnceLock;

static WEIGHT: OnceLock<Owned> = OnceLock::new();

fn main() {
    let _ = WEIGHT.get();
}
