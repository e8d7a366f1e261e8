use infer_core::Session;

fn is_sync<T: Sync + ?Sized>() {}

fn main() {
    is_sync::<dyn Session>();
}
