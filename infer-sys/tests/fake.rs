//! The faked door does what the real one promises, and misbehaves only when asked to.

mod kit;

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::sync::Mutex;

use infer_sys::llama::bindings::{
    GGML_LOG_LEVEL_CONT, GGML_LOG_LEVEL_INFO, INFER_LLAMA_ARGUMENT, INFER_LLAMA_EXCEPTION, INFER_LLAMA_FAILED,
    ggml_log_level,
};
use infer_sys::llama::fake::{self, Fault, Kind, Live, Rows, Script};
use kit::{Failure, Model, check};

fn model() -> Model {
    Model::load(fake::api(), Path::new("any.gguf"), |_| {}).expect("the faked door loads anything")
}

#[test]
fn logits_depend_on_every_token_before_and_on_nothing_else() {
    let _ = Script::new().install();
    let model = model();
    let mut context = model.context(|params| params.n_seq_max = 3).unwrap();
    assert_eq!(context.decode(0, 0, b"abc".map(i32::from).as_slice()), Ok(0));
    let whole = context.logits(2).unwrap();
    assert_eq!(whole.len(), 259);

    for token in *b"abc" {
        let at = context.last_position(1).unwrap() + 1;
        assert_eq!(context.decode(1, at, &[i32::from(token)]), Ok(0));
    }
    assert_eq!(context.logits(0).unwrap(), whole, "token by token is the same as at once");

    assert_eq!(context.decode(2, 0, b"xbc".map(i32::from).as_slice()), Ok(0));
    assert_ne!(context.logits(2).unwrap(), whole, "the first token counts");
}

#[test]
fn a_fork_and_a_cut_go_on_as_if_computed() {
    for unified in [true, false] {
        let _ = Script::new().install();
        let model = model();
        let set = |params: &mut infer_sys::llama::bindings::llama_context_params| {
            params.n_seq_max = 2;
            params.kv_unified = unified;
        };
        let mut context = model.context(set).unwrap();
        context.decode(0, 0, b"abcd".map(i32::from).as_slice()).unwrap();
        context.fork(0, 1, -1).unwrap();
        assert!(context.remove(1, 2).unwrap());
        context.decode(1, 2, b"x".map(i32::from).as_slice()).unwrap();
        let forked = context.logits(0).unwrap();

        let mut other = model.context(set).unwrap();
        other.decode(1, 0, b"abx".map(i32::from).as_slice()).unwrap();
        assert_eq!(forked, other.logits(2).unwrap());
        assert_eq!(context.last_position(0), Ok(3));
    }
}

#[test]
fn cells_run_out_and_come_back() {
    let _ = Script::new().install();
    let model = model();
    let mut context = model
        .context(|params| {
            params.n_ctx = 8;
            params.n_seq_max = 2;
            params.kv_unified = true;
        })
        .unwrap();
    assert_eq!(context.decode(0, 0, &[1; 8]), Ok(0));
    assert_eq!(context.decode(1, 0, &[1]), Ok(1), "no room");
    assert_eq!(context.last_position(1), Ok(-1), "nothing changed");
    context.fork(0, 1, 4).unwrap();
    assert_eq!(context.last_position(1), Ok(3), "shared cells cost nothing");
    assert!(context.remove(0, 0).unwrap());
    assert_eq!(context.decode(1, 4, &[1; 4]), Ok(0), "four came back, four are still held by the fork");
    assert_eq!(context.decode(0, 0, &[1]), Ok(1));
}

#[test]
fn it_keeps_the_rules_of_every_door() {
    let _ = Script::new().install();
    kit::rules::hold_for(&model(), 259);
}

#[test]
fn it_misbehaves_once_for_every_fault_that_is_planned() {
    let control = Script::new().install();
    let model = model();
    let mut context = model.context(|params| params.n_ubatch = 2).unwrap();
    control.plan_all([
        Some(Fault::Result(-3)),
        Some(Fault::Exception("basic_string: ü".to_owned())),
        None,
        Some(Fault::ResultAfter { result: 2, ubatches: 1 }),
        Some(Fault::UntilAborted),
    ]);
    assert_eq!(context.decode(0, 0, &[1]), Ok(-3));
    let thrown = Failure { status: INFER_LLAMA_EXCEPTION, message: "basic_string: ü".to_owned() };
    assert_eq!(context.decode(0, 0, &[1]), Err(thrown));
    assert_eq!(context.decode(0, 0, &[1]), Ok(0));
    assert_eq!(context.decode(0, 1, &[1; 5]), Ok(2));
    assert_eq!(context.last_position(0), Ok(2), "one ubatch of two stays");
    assert_eq!(context.logits(0).unwrap_err().status, INFER_LLAMA_FAILED, "no rows after a failed pass");
    assert_eq!(context.decode(0, 3, &[1]), Ok(2), "nobody is there to ask, so it ends at once");
    assert_eq!(context.decode(0, 3, &[1]), Ok(0));
    assert_eq!(control.passes(), 6);
}

#[test]
fn rows_are_refused_missing_or_short_on_request() {
    let control = Script::new().install();
    let model = model();
    let mut context = model.context(|_| {}).unwrap();
    context.decode(0, 0, &[1]).unwrap();
    assert_eq!(context.logits(1).unwrap_err().status, INFER_LLAMA_FAILED);
    assert_eq!(context.logits(-1).unwrap_err().status, INFER_LLAMA_ARGUMENT);
    control.set_rows(Rows::Failed);
    assert_eq!(context.logits(0).unwrap_err().status, INFER_LLAMA_FAILED);
    control.set_rows(Rows::Short);
    assert_eq!(context.logits(0).unwrap().len(), 258);
    control.set_rows(Rows::Given);
    assert_eq!(context.logits(0).unwrap().len(), 259);
}

#[test]
fn a_recurrent_memory_is_not_cut_and_an_encoder_has_none() {
    let _ = Script::new().with_kind(Kind::Recurrent).install();
    let recurrent = model();
    let mut context = recurrent.context(|_| {}).unwrap();
    context.decode(0, 0, &[1, 2, 3]).unwrap();
    assert_eq!(context.remove(0, 1), Ok(false));
    assert_eq!(context.last_position(0), Ok(2));
    assert_eq!(context.remove(0, 0), Ok(true));

    let _ = Script::new().with_kind(Kind::Encoder).install();
    let encoder = model();
    let mut context = encoder.context(|_| {}).unwrap();
    context.decode(0, 0, &[1, 2, 3]).unwrap();
    assert_eq!(context.last_position(0), Ok(-1));
    context.clear().unwrap();
    assert_eq!(context.remove(0, 1), Ok(true));
    let saved = context.save(0).unwrap();
    assert_eq!(context.restore(0, &saved), Ok(saved.len()));
}

#[test]
fn what_is_alive_is_counted_and_a_wrong_order_is_seen() {
    let control = Script::new().install();
    let model = model();
    let context = model.context(|_| {}).unwrap();
    assert_eq!(control.live(), Live { models: 1, contexts: 1, adapters: 0 });
    drop(context);
    drop(model);
    assert_eq!(control.live(), Live::default());
    assert!(control.breaches().is_empty());

    let model = std::mem::ManuallyDrop::new(self::model());
    let context = model.context(|_| {}).unwrap();
    // SAFETY: the order is wrong on purpose, and the faked context does not touch its model again.
    unsafe { model.api.model_free(model.raw) };
    drop(context);
    assert_eq!(control.breaches().len(), 1);
}

#[test]
fn a_restored_state_goes_on_as_the_one_saved() {
    let _ = Script::new().install();
    let model = model();
    let mut context = model.context(|params| params.n_seq_max = 2).unwrap();
    context.decode(0, 0, &[5, 6]).unwrap();
    let saved = context.save(0).unwrap();
    context.restore(1, &saved).unwrap();
    context.decode(0, 2, &[7]).unwrap();
    let here = context.logits(0).unwrap();
    context.decode(1, 2, &[7]).unwrap();
    assert_eq!(context.logits(0).unwrap(), here);
}

#[test]
fn progress_can_stop_a_load_and_a_script_can_fail_it() {
    unsafe extern "C" fn stop_half_way(progress: f32, seen: *mut c_void) -> bool {
        // SAFETY: the test passes a vector that nobody else uses while it loads.
        let seen = unsafe { &mut *seen.cast::<Vec<f32>>() };
        seen.push(progress);
        progress < 0.5
    }
    let _ = Script::new().install();
    let mut seen: Vec<f32> = Vec::new();
    let stopped = Model::load(fake::api(), Path::new("any.gguf"), |params| {
        params.progress_callback = Some(stop_half_way);
        params.progress_callback_user_data = (&raw mut seen).cast();
    });
    assert_eq!(stopped.err().map(|failure| failure.status), Some(INFER_LLAMA_FAILED));
    assert_eq!(seen, [0.0, 0.5]);

    let control = Script::new().with_load_fault(Fault::Exception("bad".to_owned())).install();
    let failed = Model::load(fake::api(), Path::new("any.gguf"), |_| {});
    assert_eq!(failed.err().map(|failure| failure.status), Some(INFER_LLAMA_EXCEPTION));
    assert_eq!(control.live(), Live::default());
}

#[test]
fn fragments_of_lines_come_from_the_thread_that_logs() {
    type Seen = Mutex<Vec<(ggml_log_level, String)>>;
    unsafe extern "C" fn keep(level: ggml_log_level, text: *const c_char, seen: *mut c_void) {
        // SAFETY: a NUL-terminated fragment, alive for the call.
        let text = unsafe { CStr::from_ptr(text) };
        // SAFETY: the static below.
        let seen = unsafe { &*seen.cast::<Seen>() };
        seen.lock().unwrap().push((level, text.to_str().unwrap().to_owned()));
    }
    static SEEN: Seen = Mutex::new(Vec::new());
    let data = std::ptr::from_ref(&SEEN).cast_mut().cast();
    // SAFETY: the callback only locks a static, from whatever thread.
    unsafe { fake::api().log_set(Some(keep), data) };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                fake::log(GGML_LOG_LEVEL_INFO, c"one, ");
                fake::log(GGML_LOG_LEVEL_CONT, c"two\n");
            });
        }
    });
    // SAFETY: as above.
    unsafe { fake::api().log_set(None, std::ptr::null_mut()) };
    let seen = SEEN.lock().unwrap();
    assert!(seen.iter().filter(|(level, text)| *level == GGML_LOG_LEVEL_INFO && text == "one, ").count() >= 4);
    assert!(seen.iter().filter(|(level, text)| *level == GGML_LOG_LEVEL_CONT && text == "two\n").count() >= 4);
}

#[test]
fn text_goes_to_bytes_and_back() {
    let _ = Script::new().install();
    let model = model();
    let tokens = model.tokenize("héllo").unwrap();
    assert_eq!(tokens, "héllo".bytes().map(i32::from).collect::<Vec<_>>());
    let mut buffer = [0_u8; 16];
    let mut len = 0;
    // SAFETY: the vocabulary lives as long as the model; tokens and buffer are as long as told.
    check(|error| unsafe {
        model.api.detokenize(
            model.vocab(),
            tokens.as_ptr(),
            tokens.len(),
            false,
            false,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            &raw mut len,
            error,
        )
    })
    .unwrap();
    assert_eq!(&buffer[..len], "héllo".as_bytes());
    let description = kit::string(|buf, cap, len, error| {
        // SAFETY: the model is alive; the buffer is as long as told.
        unsafe { model.api.model_desc(model.raw, buf, cap, len, error) }
    });
    assert_eq!(description, "fake F32");
}
