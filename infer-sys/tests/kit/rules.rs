//! What holds for every door, the faked one included: a fake that is kinder or harsher than llama.cpp proves nothing.

use infer_sys::llama::bindings::{INFER_LLAMA_ARGUMENT, INFER_LLAMA_FAILED, INFER_LLAMA_UNSUPPORTED};

use super::{Context, Model, check};

/// Runs the rules over a model whose vocabulary has `n_vocab` tokens.
pub fn hold_for(model: &Model, n_vocab: i32) {
    wrong_batches(model, n_vocab);
    rows(model, n_vocab);
    sequences_share_cells_in_the_unified_layout_only(model);
    forks_and_cuts(model);
    states(model);
    states_in_pieces(model);
}

fn status<T: std::fmt::Debug>(outcome: Result<T, super::Failure>) -> i32 {
    outcome.expect_err("this should not have worked").status
}

fn wrong_batches(model: &Model, n_vocab: i32) {
    let mut context = model.context(|_| {}).unwrap();
    assert_eq!(context.decode(0, 0, &[]), Ok(-1), "empty");
    for token in [n_vocab, -1, i32::MIN, i32::MAX] {
        assert_eq!(context.decode(0, 0, &[token]), Ok(-1), "token {token}");
    }
    for seq in [1, -1, i32::MAX] {
        assert_eq!(context.decode(seq, 0, &[1]), Ok(-1), "sequence {seq}");
    }
    assert_eq!(context.decode(0, 0, &[3, 4]), Ok(0));
    assert_eq!(context.decode(0, 3, &[5]), Ok(-1), "a gap");
    assert_eq!(context.decode(0, 0, &[5]), Ok(-1), "a position that is taken");
    assert_eq!(context.decode(0, 2, &[5; 33]).map_err(|failure| failure.status), Err(INFER_LLAMA_ARGUMENT));
    assert_eq!(context.last_position(0), Ok(1), "none of it changed anything");
    assert_eq!(context.decode(0, 2, &[5]), Ok(0));
}

fn rows(model: &Model, n_vocab: i32) {
    let mut context = model.context(|_| {}).unwrap();
    assert_eq!(status(context.logits(0)), INFER_LLAMA_FAILED, "before any pass");
    context.decode(0, 0, &[3, 4, 5]).unwrap();
    for index in 0..3 {
        assert_eq!(context.logits(index).unwrap().len(), n_vocab as usize);
    }
    assert_eq!(status(context.logits(3)), INFER_LLAMA_FAILED);
    assert_eq!(status(context.logits(-1)), INFER_LLAMA_ARGUMENT);
}

fn sequences_share_cells_in_the_unified_layout_only(model: &Model) {
    for (unified, result) in [(true, 0), (false, 1)] {
        let mut context = two(model, unified);
        assert_eq!(context.decode_shared(&[0, 1], 0, &[3, 4]), Ok(result), "unified: {unified}");
        let last = if unified { 1 } else { -1 };
        assert_eq!(context.last_position(0), Ok(last));
        assert_eq!(context.last_position(1), Ok(last));
    }
}

fn forks_and_cuts(model: &Model) {
    for unified in [true, false] {
        let mut context = two(model, unified);
        context.decode(0, 0, &[3, 4, 5, 6]).unwrap();
        context.fork(0, 1, -1).unwrap();
        assert_eq!(context.last_position(1), Ok(3));
        assert_eq!(context.remove(1, 2), Ok(true));
        assert_eq!(context.last_position(1), Ok(1));
        assert_eq!(context.last_position(0), Ok(3), "the other keeps its own");
        assert_eq!(context.decode(1, 2, &[9]), Ok(0));
        assert_eq!(context.remove(-1, 0), Ok(true), "all sequences at once");
        assert_eq!(context.last_position(0), Ok(-1));
        assert_eq!(context.last_position(1), Ok(-1));
    }
    let mut context = two(model, false);
    context.decode(0, 0, &[3, 4, 5, 6]).unwrap();
    assert_eq!(status(context.fork(0, 1, 2)), INFER_LLAMA_UNSUPPORTED, "a part, between streams");
    assert_eq!(context.last_position(1), Ok(-1));
    let mut context = two(model, true);
    context.decode(0, 0, &[3, 4, 5, 6]).unwrap();
    context.fork(0, 1, 2).unwrap();
    assert_eq!(context.last_position(1), Ok(1), "a part, in one stream");
    context.clear().unwrap();
    assert_eq!(context.last_position(0), Ok(-1));
    for seq in [-2, 2, i32::MAX] {
        assert_eq!(status(context.remove(seq, 0)), INFER_LLAMA_ARGUMENT, "sequence {seq}");
        assert_eq!(status(context.fork(seq, 0, -1)), INFER_LLAMA_ARGUMENT, "sequence {seq}");
        assert_eq!(status(context.last_position(seq)), INFER_LLAMA_ARGUMENT, "sequence {seq}");
    }
}

fn states(model: &Model) {
    let mut context = two(model, true);
    context.decode(0, 0, &[3, 4, 5]).unwrap();
    let saved = context.save(0).unwrap();
    assert_eq!(context.restore(1, &saved), Ok(saved.len()));
    assert_eq!(context.last_position(1), Ok(2));
    assert_eq!(status(context.restore(1, &saved[..saved.len() - 1])), INFER_LLAMA_FAILED);
    assert_eq!(status(context.restore(1, b"no state")), INFER_LLAMA_FAILED);
    assert_eq!(status(context.restore(2, &saved)), INFER_LLAMA_ARGUMENT);
    let api = context.api;
    let mut len = 0;
    // SAFETY: the context is alive; no buffer.
    let none =
        check(|error| unsafe { api.state_seq_get(context.raw, 0, 0, std::ptr::null_mut(), 0, &raw mut len, error) });
    assert_eq!(status(none), infer_sys::llama::bindings::INFER_LLAMA_TOO_SMALL);
    assert_eq!(len, saved.len());
}

fn states_in_pieces(model: &Model) {
    let mut context = two(model, true);
    context.update().unwrap();
    context.decode(0, 0, &[3, 4, 5]).unwrap();
    let (len, saved) = context.save_in_pieces(0).unwrap();
    assert_eq!((len, saved.len() as u64), (context.state_len(0).unwrap(), len));
    assert_eq!(context.restore_in_pieces(1, 2, &saved), Ok(len));
    assert_eq!(context.last_position(1), Ok(2));
    assert_eq!(context.save_in_pieces(1).unwrap().0, len);
    assert_eq!(status(context.restore_in_pieces(1, 1, &saved)), INFER_LLAMA_FAILED, "it ends at 2");
    assert_eq!(context.last_position(1), Ok(-1), "and is gone again");
    assert_eq!(
        status(context.restore_in_pieces(1, 2, &saved[..saved.len() - 1])),
        INFER_LLAMA_FAILED,
        "it stops early"
    );
    assert_eq!(context.last_position(1), Ok(-1));
    assert_eq!(context.last_position(0), Ok(2), "the other keeps its own");
    for seq in [-1, 2, i32::MAX] {
        assert_eq!(status(context.save_in_pieces(seq)), INFER_LLAMA_ARGUMENT, "sequence {seq}");
        assert_eq!(status(context.restore_in_pieces(seq, 2, &saved)), INFER_LLAMA_ARGUMENT, "sequence {seq}");
    }
    let (len, empty) = context.save_in_pieces(1).unwrap();
    assert_eq!(context.restore_in_pieces(1, -1, &empty), Ok(len), "an empty one");
}

fn two(model: &Model, unified: bool) -> Context<'_> {
    model
        .context(|params| {
            params.n_seq_max = 2;
            params.kv_unified = unified;
        })
        .unwrap()
}
