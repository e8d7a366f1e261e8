//! No exception, no abort and no read out of bounds gets through the door: each becomes a status.

mod kit;

use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;

use infer_sys::llama::Api;
use infer_sys::llama::bindings::*;
use kit::{Failure, Model, check, gguf};

fn api() -> Api {
    kit::quiet(Api::linked().expect("the door of this build is the one the bindings are made for"))
}

fn tiny() -> (tempfile::TempDir, Model) {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::load(api(), &gguf::tiny(folder.path()), |_| {}).unwrap();
    (folder, model)
}

fn status<T: std::fmt::Debug>(outcome: Result<T, Failure>) -> i32 {
    outcome.expect_err("this should not have worked").status
}

#[test]
fn an_exception_comes_back_as_a_status_and_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = gguf::without_bytes(folder.path());
    let model = Model::load(api(), &path, |params| params.vocab_only = true).unwrap();
    assert!(!model.tokenize("ab").unwrap().is_empty());
    let thrown = model.tokenize("x").unwrap_err();
    assert_eq!(thrown.status, INFER_LLAMA_EXCEPTION);
    assert!(thrown.message.contains("at"), "std::out_of_range names the function: {}", thrown.message);
    assert!(!model.tokenize("ab").unwrap().is_empty(), "and nothing is broken by it");
}

#[test]
fn an_exception_is_caught_on_any_thread_and_any_number_of_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = gguf::without_bytes(folder.path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let model = Model::load(api(), &path, |params| params.vocab_only = true).unwrap();
                for _ in 0..100 {
                    assert_eq!(status(model.tokenize("x")), INFER_LLAMA_EXCEPTION);
                }
            });
        }
    });
}

#[test]
fn a_tiny_model_decodes_and_forks() {
    let (_folder, model) = tiny();
    let tokens = model.tokenize("abc").unwrap();
    let mut context = model
        .context(|params| {
            params.n_seq_max = 2;
            params.kv_unified = true;
        })
        .unwrap();
    assert_eq!(context.decode(0, 0, &tokens), Ok(0));
    context.fork(0, 1, 2).unwrap();
    assert_eq!(context.decode(1, 2, &tokens[2..3]), Ok(0));
    let forked = context.logits(0).unwrap();
    assert!(forked.iter().all(|logit| logit.is_finite()));
    let mut other = model.context(|_| {}).unwrap();
    assert_eq!(other.decode(0, 0, &tokens[..3]), Ok(0));
    let whole = other.logits(2).unwrap();
    assert_eq!(forked.len(), whole.len());
    assert!(forked.iter().zip(&whole).all(|(a, b)| (a - b).abs() < 1e-4));
}

#[test]
fn it_keeps_the_rules_of_every_door() {
    let (_folder, model) = tiny();
    kit::rules::hold_for(&model, 286);
}

#[test]
fn tokens_outside_the_vocabulary_are_refused() {
    let (_folder, model) = tiny();
    for token in [-1, 286, 1_000_000_000, i32::MIN, i32::MAX] {
        let mut info = infer_llama_token_info::default();
        // SAFETY: the vocabulary lives as long as the model; a place to write.
        let outcome = check(|error| unsafe { model.api.vocab_token(model.vocab(), token, &raw mut info, error) });
        assert_eq!(status(outcome), INFER_LLAMA_ARGUMENT, "token {token}");
        let mut len = 0;
        // SAFETY: as above, with no buffer.
        let outcome = check(|error| unsafe {
            model.api.token_to_piece(model.vocab(), token, true, ptr::null_mut(), 0, &raw mut len, error)
        });
        assert_eq!(status(outcome), INFER_LLAMA_ARGUMENT, "token {token}");
        // SAFETY: as above, with one token.
        let outcome = check(|error| unsafe {
            model.api.detokenize(
                model.vocab(),
                &raw const token,
                1,
                false,
                false,
                ptr::null_mut(),
                0,
                &raw mut len,
                error,
            )
        });
        assert_eq!(status(outcome), INFER_LLAMA_ARGUMENT, "token {token}");
    }
}

#[test]
fn parameters_that_would_crash_are_refused() {
    let (_folder, model) = tiny();
    let refused = |what: &str, set: &dyn Fn(&mut llama_context_params)| {
        let outcome = model.context(|params| set(params)).map(|_| ());
        assert_eq!(status(outcome), INFER_LLAMA_ARGUMENT, "{what}");
    };
    refused("n_batch 0", &|params| params.n_batch = 0);
    refused("n_batch of 2^31", &|params| params.n_batch = 1 << 31);
    refused("n_ubatch 0", &|params| params.n_ubatch = 0);
    refused("no sequences", &|params| params.n_seq_max = 0);
    refused("too many sequences", &|params| params.n_seq_max = 257);
    refused("more sequences than outputs", &|params| (params.n_batch, params.n_seq_max) = (4, 8));
    refused("no threads", &|params| params.n_threads = 0);
    refused("less than no threads", &|params| params.n_threads_batch = -1);
    refused("100,000 threads", &|params| params.n_threads = 100_000);
    refused("a pooling that is none", &|params| params.pooling_type = 17);
    for kind in [GGML_TYPE_I8, GGML_TYPE_Q8_1, GGML_TYPE_Q4_K, 1_000] {
        refused("a cache type", &|params| params.type_k = kind);
        refused("a cache type", &|params| params.type_v = kind);
    }
    for value in [-1.0, f32::NAN, f32::INFINITY] {
        refused("a RoPE base", &|params| params.rope_freq_base = value);
        refused("a RoPE scale", &|params| params.rope_freq_scale = value);
    }
    refused("a sampler", &|params| params.n_samplers = 1);
}

#[test]
fn batches_and_sequences_that_would_abort_are_refused() {
    let (_folder, model) = tiny();
    let mut context = model.context(|params| params.n_batch = 8).unwrap();
    assert_eq!(status(context.decode(0, 0, &[1; 9])), INFER_LLAMA_ARGUMENT);
    assert_eq!(context.decode(0, 0, &[]), Ok(-1));
    assert_eq!(context.decode(0, 0, &[-5]), Ok(-1));
    assert_eq!(context.decode(0, 0, &[286]), Ok(-1));
    assert_eq!(context.decode(7, 0, &[1]), Ok(-1));
    assert_eq!(context.decode(0, 0, &[1, 2]), Ok(0));
    for seq in [-2, 1, 256, i32::MAX] {
        assert_eq!(status(context.remove(seq, 0)), INFER_LLAMA_ARGUMENT, "sequence {seq}");
        assert_eq!(status(context.fork(0, seq, -1)), INFER_LLAMA_ARGUMENT, "sequence {seq}");
        assert_eq!(status(context.fork(seq, 0, -1)), INFER_LLAMA_ARGUMENT, "sequence {seq}");
        assert_eq!(status(context.last_position(seq)), INFER_LLAMA_ARGUMENT, "sequence {seq}");
        let mut size = 0;
        // SAFETY: the context is alive; a place to write.
        let outcome = check(|error| unsafe { context.api.state_seq_size(context.raw, seq, 0, &raw mut size, error) });
        assert_eq!(status(outcome), INFER_LLAMA_ARGUMENT, "sequence {seq}");
    }
    assert_eq!(status(context.logits(-1)), INFER_LLAMA_ARGUMENT);
    assert_eq!(status(context.logits(2)), INFER_LLAMA_FAILED);
    assert_eq!(context.logits(1).unwrap().len(), 286);
    let mut used = 0;
    // SAFETY: the context is alive; a few bytes that are no state.
    let outcome = check(|error| unsafe {
        context.api.state_seq_set(context.raw, 0, 0, [7_u8; 4].as_ptr(), 4, &raw mut used, error)
    });
    assert_eq!(status(outcome), INFER_LLAMA_FAILED);
    // SAFETY: as above, with flags that keep the state on a device.
    let outcome = check(|error| unsafe {
        context.api.state_seq_set(
            context.raw,
            0,
            LLAMA_STATE_SEQ_FLAGS_ON_DEVICE,
            [7_u8; 4].as_ptr(),
            4,
            &raw mut used,
            error,
        )
    });
    assert_eq!(status(outcome), INFER_LLAMA_ARGUMENT);
}

#[test]
fn a_file_is_loaded_by_its_descriptor_which_stays_open() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::open(gguf::tiny(folder.path())).unwrap();
    let api = api();
    // SAFETY: `backend_init` may be called again and again.
    check(|error| unsafe { api.backend_init(error) }).unwrap();
    for _ in 0..2 {
        let params = kit::model_params(api, |_| {});
        let mut raw = ptr::null_mut();
        // SAFETY: an open file, parameters and places to write.
        check(|error| unsafe { api.model_load_from_fd(file.as_raw_fd(), &raw const params, &raw mut raw, error) })
            .unwrap();
        let model = Model { api, raw };
        let mut context = model.context(|_| {}).unwrap();
        assert_eq!(context.decode(0, 0, &[3, 4]), Ok(0));
    }
    assert!(file.metadata().is_ok());
    let params = kit::model_params(api, |_| {});
    let mut raw = ptr::null_mut();
    // SAFETY: a number that is no open file.
    let outcome = check(|error| unsafe { api.model_load_from_fd(-1, &raw const params, &raw mut raw, error) });
    assert_eq!(status(outcome), INFER_LLAMA_IO);
}

#[test]
fn what_is_not_there_fails() {
    let missing = Model::load(api(), Path::new("/no/such/file.gguf"), |_| {}).map(|_| ());
    assert_eq!(status(missing), INFER_LLAMA_FAILED);
    let empty = Model::load(api(), Path::new(""), |_| {}).map(|_| ());
    assert_eq!(status(empty), INFER_LLAMA_FAILED);
    let mut device = infer_llama_device::default();
    // SAFETY: a place to write.
    let outcome = check(|error| unsafe { api().device_info(usize::MAX, &raw mut device, error) });
    assert_eq!(status(outcome), INFER_LLAMA_ARGUMENT);
    // SAFETY: no place to write.
    let outcome = check(|error| unsafe { api().limits(ptr::null_mut(), error) });
    assert_eq!(status(outcome), INFER_LLAMA_ARGUMENT);
}

#[test]
fn an_error_may_be_left_unwanted() {
    // SAFETY: neither a place to write nor one for the error.
    let status = unsafe { api().limits(ptr::null_mut(), ptr::null_mut()) };
    assert_eq!(status, INFER_LLAMA_ARGUMENT);
}
