//! What must not compile, and which handles may cross threads.

#[test]
fn misuse_that_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/fail/*.rs");
}

/// Handles and data may be sent and shared; this need only compile.
#[test]
fn handles_are_send_and_sync() {
    fn send_and_sync<T: Send + Sync + 'static>() {}
    send_and_sync::<infer_core::Sequence>();
    send_and_sync::<infer_core::Batch>();
    send_and_sync::<infer_core::Interrupt>();
    send_and_sync::<infer_core::Error>();
    send_and_sync::<infer_core::Vocab>();
    send_and_sync::<infer_core::Slots>();
    send_and_sync::<infer_core::sampling::Sampler>();
    send_and_sync::<infer_core::testing::ScriptedModel>();
}
