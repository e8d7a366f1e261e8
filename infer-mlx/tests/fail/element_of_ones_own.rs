use infer_mlx::{DType, Element};

#[derive(Clone, Copy)]
struct Reference(&'static str);

impl Element for Reference {
    const DTYPE: DType = DType::U64;
}

fn main() {
    let _ = Reference("").0;
}
