//! What must not compile.

#[test]
fn misuse_that_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/fail/*.rs");
}
