fn is_send<T: Send>() {}

fn main() {
    is_send::<infer_core::testing::Scripted>();
}
