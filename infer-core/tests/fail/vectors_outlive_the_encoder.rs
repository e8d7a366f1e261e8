use infer_core::Encoder;

fn dangling(encoder: Box<dyn Encoder>) -> &'static [f32] {
    encoder.vectors().vector(0).unwrap()
}

fn main() {}
