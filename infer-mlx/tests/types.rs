//! What may cross threads, and what must not compile.

use infer_mlx::{Available, DType, LoadOptions};

fn send_sync<T: Send + Sync + 'static>() {}

#[test]
fn what_may_cross_threads_does() {
    send_sync::<LoadOptions>();
    send_sync::<Available>();
    send_sync::<DType>();
}

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/fail/*.rs");
}
