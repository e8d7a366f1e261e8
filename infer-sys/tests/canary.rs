//! What a sanitizer must see, for `cargo xtask sanitize`, which runs each of these and wants a report: one that sees nothing proves
//! nothing. They are undefined, so elsewhere they do nothing.

mod kit;

use infer_sys::llama::Api;
use infer_sys::llama::bindings::llama_batch;
use kit::{Model, check, gguf};
use std::{mem, ptr};

/// The model, where this was asked for.
fn model() -> Option<(tempfile::TempDir, Model)> {
    std::env::var_os("INFER_CANARY")?;
    let folder = tempfile::tempdir().unwrap();
    let model = Model::load(kit::quiet(Api::linked().unwrap()), &gguf::tiny(folder.path()), |_| {}).unwrap();
    Some((folder, model))
}

#[test]
fn a_leak_of_native_memory() {
    if let Some((_folder, model)) = model() {
        mem::forget(model);
    }
}

#[test]
fn native_code_reads_outside_of_what_rust_allocated() {
    let Some((_folder, model)) = model() else { return };
    let context = model.context(|_| {}).unwrap();
    let (mut tokens, mut positions, mut counts, mut outputs) = ([3; 4], vec![0], [1; 4], [1; 4]);
    let mut sequence = 0;
    let mut sequences = [&raw mut sequence; 4];
    let batch = llama_batch {
        n_tokens: 4,
        token: tokens.as_mut_ptr(),
        embd: ptr::null_mut(),
        pos: positions.as_mut_ptr(),
        n_seq_id: counts.as_mut_ptr(),
        seq_id: sequences.as_mut_ptr(),
        logits: outputs.as_mut_ptr(),
    };
    let mut result = 0;
    // SAFETY: it is not: there is one position for four tokens.
    let _ = check(|error| unsafe { model.api.decode(context.raw, &raw const batch, &raw mut result, error) });
}

#[test]
fn rust_reads_what_native_code_has_freed() {
    let Some((_folder, model)) = model() else { return };
    let mut context = model.context(|_| {}).unwrap();
    context.decode(0, 0, &[3]).unwrap();
    let (mut row, mut len) = (ptr::null(), 0);
    // SAFETY: the context is alive; places to write.
    check(|error| unsafe { model.api.logits(context.raw, 0, &raw mut row, &raw mut len, error) }).unwrap();
    drop(context);
    // SAFETY: it is not: the row went with the context.
    println!("{}", unsafe { row.read() });
}
