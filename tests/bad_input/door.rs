//! What the safe API has no words for, at the door itself: a mistake in `infer-llama` would end here, and not in llama.cpp.

#[path = "../../infer-sys/tests/kit/mod.rs"]
mod by_hand;

use by_hand::{Context, Failure, Model, gguf};
use infer_sys::llama::{Api, bindings::*};
use kit::child;
use std::ptr;

fn tiny() -> (super::Folder, Model) {
    let folder = super::Folder::new();
    let api = by_hand::quiet(Api::linked().unwrap());
    let model = Model::load(api, &gguf::tiny(folder.path()), |_| {}).unwrap();
    (folder, model)
}

/// The name of a status.
fn said<T: std::fmt::Debug>(outcome: Result<T, Failure>) -> String {
    match outcome {
        Ok(value) => format!("taken in silence: {value:?}"),
        Err(Failure { status: INFER_LLAMA_ARGUMENT | INFER_LLAMA_UNSUPPORTED, .. }) => "refused".to_owned(),
        Err(failure) => format!("{failure:?}"),
    }
}

#[test]
fn contexts_that_cannot_be_are_refused() {
    const CASES: &[&str] = &[
        "n_seq_max 0",
        "n_batch 0",
        "n_ubatch 0",
        "0 threads",
        "-1 threads",
        "100,000 threads",
        "pooling 17",
        "keys of I8",
        "keys of Q8_1",
        "values of I8",
        "values of Q8_1",
        "RoPE base -1",
        "RoPE base NaN",
        "RoPE scale -1",
        "a chain of samplers",
        "fewer outputs than sequences",
    ];
    let answers = child::cases("door::contexts_that_cannot_be_are_refused", CASES, |case| {
        let (_folder, model) = tiny();
        let answer = said(model.context(|params| spoil(case, params)).map(|_| ()));
        assert_eq!(model.context(|_| {}).unwrap().decode(0, 0, &[3]), Ok(0), "the model is as good as before");
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

fn spoil(case: &str, params: &mut llama_context_params) {
    match case {
        "n_seq_max 0" => params.n_seq_max = 0,
        "n_batch 0" => params.n_batch = 0,
        "n_ubatch 0" => params.n_ubatch = 0,
        "0 threads" => params.n_threads = 0,
        "-1 threads" => params.n_threads = -1,
        "100,000 threads" => params.n_threads_batch = 100_000,
        "pooling 17" => params.pooling_type = 17,
        "keys of I8" => params.type_k = GGML_TYPE_I8,
        "keys of Q8_1" => params.type_k = GGML_TYPE_Q8_1,
        "values of I8" => params.type_v = GGML_TYPE_I8,
        "values of Q8_1" => params.type_v = GGML_TYPE_Q8_1,
        "RoPE base -1" => params.rope_freq_base = -1.0,
        "RoPE base NaN" => params.rope_freq_base = f32::NAN,
        "RoPE scale -1" => params.rope_freq_scale = -1.0,
        "a chain of samplers" => params.n_samplers = 1,
        "fewer outputs than sequences" => (params.n_seq_max, params.n_outputs_max) = (4, 2),
        other => panic!("there is no case {other:?}"),
    }
}

#[test]
fn calls_that_cannot_be_are_refused() {
    const CASES: &[&str] = &[
        "a batch over n_batch",
        "a part copied between streams",
        "a copy to a sequence that does not exist",
        "a copy from a sequence that does not exist",
        "a row before the first",
        "the text of a token that does not exist",
        "a state for a sequence that does not exist",
        "100,000 threads in a pool",
    ];
    let answers = child::cases("door::calls_that_cannot_be_are_refused", CASES, |case| {
        let (_folder, model) = tiny();
        let split = |params: &mut llama_context_params| (params.n_seq_max, params.kv_unified) = (2, false);
        let mut context = model.context(split).unwrap();
        assert_eq!(context.decode(0, 0, &[3, 4, 5, 6]), Ok(0));
        let answer = call(case, &model, &mut context);
        assert_eq!(context.decode(0, 4, &[7]), Ok(0), "{case} changed something");
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

fn call(case: &str, model: &Model, context: &mut Context<'_>) -> String {
    match case {
        "a batch over n_batch" => said(context.decode(0, 4, &[3; 33])),
        "a part copied between streams" => said(context.fork(0, 1, 2)),
        "a copy to a sequence that does not exist" => said(context.fork(0, 2, -1)),
        "a copy from a sequence that does not exist" => said(context.fork(-1, 1, -1)),
        "a row before the first" => said(context.logits(-1)),
        "the text of a token that does not exist" => {
            let mut len = 0;
            // SAFETY: the vocabulary lives as long as the model; there is no buffer, and a place for the length.
            said(by_hand::check(|error| unsafe {
                model.api.token_to_piece(model.vocab(), 1 << 30, true, ptr::null_mut(), 0, &raw mut len, error)
            }))
        }
        "a state for a sequence that does not exist" => said(context.restore(2, &[0; 64])),
        "100,000 threads in a pool" => {
            let mut pool = ptr::null_mut();
            // SAFETY: a place for the pool, which is not made.
            said(by_hand::check(|error| unsafe { model.api.threadpool_new(100_000, 0, &raw mut pool, error) }))
        }
        other => panic!("there is no case {other:?}"),
    }
}
