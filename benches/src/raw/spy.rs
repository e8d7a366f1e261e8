use infer_sys::llama::{
    Api,
    bindings::{
        ggml_threadpool, infer_llama_error, infer_llama_table, llama_context, llama_context_params, llama_model,
        llama_model_params,
    },
};
use std::{
    cell::Cell,
    ffi::c_char,
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicPtr, Ordering},
    },
};

/// A door that is another one in all it does, and remembers what went through it last on this thread: so that the raw
/// side gets the very model and the very parameters that our side has, and so that it is seen which rows our side was given.
#[derive(Clone, Copy, Debug)]
pub struct Spy {
    real: Api,
    door: Api,
}

static REAL: OnceLock<Api> = OnceLock::new();
static ROW: AtomicPtr<f32> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    static MADE: Cell<Made> = const { Cell::new(Made { model: None, context: None, pool: None }) };
}

/// What was made last.
#[derive(Clone, Copy)]
struct Made {
    model: Option<*mut llama_model>,
    context: Option<llama_context_params>,
    pool: Option<(i32, u32)>,
}

fn real() -> Api {
    *REAL.get().expect("a spied entry is only reached through the spy")
}

impl Spy {
    /// The spy on a door, the first one of this process.
    ///
    /// # Panics
    /// When there is a spy on another door already.
    pub fn on(api: Api) -> Self {
        let real = *REAL.get_or_init(|| api);
        assert!(ptr::eq(real.table(), api.table()), "there is a spy on another door");
        let table: &'static infer_llama_table = Box::leak(Box::new(infer_llama_table {
            model_load_from_file: Some(model_load_from_file),
            model_load_from_splits: Some(model_load_from_splits),
            model_load_from_fd: Some(model_load_from_fd),
            context_new: Some(context_new),
            threadpool_new: Some(threadpool_new),
            logits: Some(logits),
            ..*real.table()
        }));
        // SAFETY: it is a table that was checked, whose strings live for ever, but for entries that hand their arguments on to those
        // of that table and store what came by.
        let door = unsafe { Api::from_table(table) }.expect("the shape is that of a checked door");
        Self { real, door }
    }

    /// The door that remembers, for our side.
    pub fn door(self) -> Api {
        self.door
    }

    /// The row of logits that was last handed out through the door. To be compared, not to be read.
    pub fn last_row(self) -> *const f32 {
        ROW.load(Ordering::Relaxed)
    }

    pub(super) fn real(self) -> Api {
        self.real
    }

    /// The model that was loaded last.
    pub(super) fn model(self) -> *mut llama_model {
        MADE.get().model.expect("a model was loaded through the spy, on this thread")
    }

    /// The threads of the pool that was made last, and how long they spin; `None` when none was made.
    pub(super) fn pool(self) -> Option<(i32, u32)> {
        MADE.get().pool
    }

    /// The parameters of the context that was made last.
    pub(super) fn context_params(self) -> llama_context_params {
        MADE.get().context.expect("a session was made through the spy, on this thread")
    }
}

unsafe extern "C" fn model_load_from_file(
    path: *const c_char,
    params: *const llama_model_params,
    out: *mut *mut llama_model,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller keeps the contract of this entry, which is the real one's.
    let status = unsafe { real().model_load_from_file(path, params, out, error) };
    remember_model(status, out);
    status
}

unsafe extern "C" fn model_load_from_splits(
    paths: *const *const c_char,
    n_paths: usize,
    params: *const llama_model_params,
    out: *mut *mut llama_model,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller keeps the contract of this entry, which is the real one's.
    let status = unsafe { real().model_load_from_splits(paths, n_paths, params, out, error) };
    remember_model(status, out);
    status
}

unsafe extern "C" fn model_load_from_fd(
    fd: i32,
    params: *const llama_model_params,
    out: *mut *mut llama_model,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller keeps the contract of this entry, which is the real one's.
    let status = unsafe { real().model_load_from_fd(fd, params, out, error) };
    remember_model(status, out);
    status
}

fn remember_model(status: i32, out: *mut *mut llama_model) {
    if status == 0 {
        // SAFETY: the status is OK, so the real entry has written a model there.
        let model = unsafe { out.read() };
        MADE.set(Made { model: Some(model), ..MADE.get() });
    }
}

unsafe extern "C" fn context_new(
    model: *mut llama_model,
    params: *const llama_context_params,
    out: *mut *mut llama_context,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller keeps the contract of this entry, which is the real one's.
    let status = unsafe { real().context_new(model, params, out, error) };
    if status == 0 {
        // SAFETY: the status is OK, so the parameters were there to be read, and nobody has written them since.
        let params = unsafe { params.read() };
        MADE.set(Made { context: Some(params), ..MADE.get() });
    }
    status
}

unsafe extern "C" fn threadpool_new(
    n_threads: i32,
    poll: u32,
    out: *mut *mut ggml_threadpool,
    error: *mut infer_llama_error,
) -> i32 {
    MADE.set(Made { pool: Some((n_threads, poll)), ..MADE.get() });
    // SAFETY: the caller keeps the contract of this entry, which is the real one's.
    unsafe { real().threadpool_new(n_threads, poll, out, error) }
}

unsafe extern "C" fn logits(
    context: *mut llama_context,
    index: i32,
    out: *mut *const f32,
    len: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller keeps the contract of this entry, which is the real one's.
    let status = unsafe { real().logits(context, index, out, len, error) };
    if status == 0 {
        // SAFETY: the status is OK, so the real entry has written a row there.
        let row = unsafe { out.read() };
        ROW.store(row.cast_mut(), Ordering::Relaxed);
    }
    status
}
