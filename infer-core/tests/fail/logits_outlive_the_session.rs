use infer_core::Session;

fn dangling(session: Box<dyn Session>) -> &'static [f32] {
    session.outputs().logits(0).unwrap()
}

fn main() {}
