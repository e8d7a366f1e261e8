//! The library on one thread: its table, a stream, and what is counted.

use super::{
    Node,
    failure::{Failure, broken, check},
};
use infer_sys::mlx::{
    Api,
    bindings::{self as sys, infer_mlx_array, infer_mlx_stream},
};
use std::{
    cell::{Cell, RefCell},
    mem,
    ptr::{self, NonNull},
};

/// A handle of the library's.
pub(super) type Handle = NonNull<infer_mlx_array>;

/// How many lists of handles are kept for the next scopes: as deep as they are usually nested.
const SPARE: usize = 8;

/// MLX on this thread.
pub(crate) struct Runtime {
    api: Api,
    stream: NonNull<infer_mlx_stream>,
    /// Whether the stream is a CPU's.
    on_cpu: bool,
    /// Handles of arenas, and such with an owner of their own.
    pub(super) arrays: Cell<usize>,
    pub(super) owned: Cell<usize>,
    evals: Cell<u64>,
    crossings: Cell<u64>,
    /// Lists of arenas that are gone, empty: the next ones need not allocate.
    spare: RefCell<Vec<Vec<Handle>>>,
}

/// A handle that was just made, and that nobody has put anywhere yet.
pub(crate) struct Fresh {
    handle: Handle,
    api: Api,
}

/// What an operation gives.
pub(crate) type Made = Result<Fresh, Failure>;

impl Runtime {
    /// With a stream on the library's first GPU, or where it has none on the CPU.
    pub(super) fn new(api: Api) -> Result<Self, Failure> {
        let mut gpus = 0;
        // SAFETY: `gpus` is a valid place, and the type is one of the enumeration.
        let status = unsafe { api.device_count(sys::INFER_MLX_GPU as i32, &raw mut gpus) };
        check(api, status)?;
        let kind = if gpus > 0 { sys::INFER_MLX_GPU } else { sys::INFER_MLX_CPU };
        let mut stream = ptr::null_mut();
        // SAFETY: `stream` is a valid place; a type and an index that are not there are refused.
        let status = unsafe { api.stream_new(kind as i32, 0, &raw mut stream) };
        check(api, status)?;
        let stream = NonNull::new(stream).ok_or_else(|| broken("MLX gave no stream"))?;
        Ok(Self {
            api,
            stream,
            on_cpu: gpus == 0,
            arrays: Cell::new(0),
            owned: Cell::new(0),
            evals: Cell::new(0),
            crossings: Cell::new(0),
            spare: RefCell::default(),
        })
    }

    pub(crate) fn api(&self) -> Api {
        self.api
    }

    /// Whether it computes on the CPU: then `kv_write` copies nothing.
    pub(crate) fn on_cpu(&self) -> bool {
        self.on_cpu
    }

    /// Handles of arenas, and such with an owner of their own.
    pub(crate) fn live(&self) -> (usize, usize) {
        (self.arrays.get(), self.owned.get())
    }

    /// How often arrays were evaluated.
    pub(crate) fn evals(&self) -> u64 {
        self.evals.get()
    }

    /// How often the library was called.
    pub(crate) fn crossings(&self) -> u64 {
        self.crossings.get()
    }

    /// Calls the library.
    #[inline]
    pub(super) fn cross(&self, call: impl FnOnce(Api) -> i32) -> Result<(), Failure> {
        self.crossings.set(self.crossings.get() + 1);
        check(self.api, call(self.api))
    }

    /// Calls an entry that makes an array. `call` is given a place for the handle, and the stream.
    #[inline]
    pub(super) fn make(
        &self,
        call: impl FnOnce(Api, *mut *mut infer_mlx_array, *const infer_mlx_stream) -> i32,
    ) -> Made {
        let mut out = ptr::null_mut();
        self.cross(|api| call(api, &raw mut out, self.stream.as_ptr())).map_err(Failure::of_shapes)?;
        self.fresh(out)
    }

    /// Calls an entry that makes several arrays. `call` is given room for `count` handles, and the stream.
    pub(super) fn make_list(
        &self,
        count: usize,
        call: impl FnOnce(Api, *mut *mut infer_mlx_array, *const infer_mlx_stream) -> i32,
    ) -> Result<Vec<Fresh>, Failure> {
        let mut outs = vec![ptr::null_mut(); count];
        self.cross(|api| call(api, outs.as_mut_ptr(), self.stream.as_ptr())).map_err(Failure::of_shapes)?;
        outs.into_iter().map(|out| self.fresh(out)).collect()
    }

    /// A second handle to the same array.
    pub(crate) fn share(&self, node: Node<'_>) -> Made {
        // SAFETY: the handle lives, and `out` is a valid place.
        self.make(|api, out, _| unsafe { api.array_share(out, node.as_ptr()) })
    }

    /// Computes arrays; if not to `wait`, they are only begun.
    pub(crate) fn eval(&self, nodes: &[Node<'_>], wait: bool) -> Result<(), Failure> {
        if nodes.is_empty() {
            return Ok(());
        }
        self.evals.set(self.evals.get() + 1);
        let (list, count) = (Node::list(nodes), nodes.len());
        self.cross(|api| {
            if wait {
                // SAFETY: a slice of so many handles that live.
                unsafe { api.eval(list, count) }
            } else {
                // SAFETY: as above.
                unsafe { api.async_eval(list, count) }
            }
        })
    }

    fn fresh(&self, out: *mut infer_mlx_array) -> Made {
        let handle = NonNull::new(out).ok_or_else(|| broken("MLX said OK and gave no array"))?;
        Ok(Fresh { handle, api: self.api })
    }

    /// An empty list.
    pub(super) fn list(&self) -> Vec<Handle> {
        self.spare.borrow_mut().pop().unwrap_or_default()
    }

    /// Frees all handles of a list in one crossing, and keeps the list.
    ///
    /// # Safety
    /// They are handles of this library, each once, that nobody uses any more.
    pub(super) unsafe fn free(&self, mut list: Vec<Handle>) {
        if !list.is_empty() {
            self.crossings.set(self.crossings.get() + 1);
            // `NonNull<T>` has the layout of `*mut T`.
            let handles = list.as_ptr().cast::<*mut infer_mlx_array>();
            // SAFETY: a slice of so many handles; the rest is the caller's promise.
            unsafe { self.api.arrays_free(handles, list.len()) };
            list.clear();
        }
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE && list.capacity() > 0 {
            spare.push(list);
        }
    }

    /// Frees one handle.
    ///
    /// # Safety
    /// It is a handle of this library that nobody uses any more.
    pub(super) unsafe fn free_one(&self, handle: Handle) {
        self.crossings.set(self.crossings.get() + 1);
        let handle = handle.as_ptr();
        // SAFETY: one handle; the rest is the caller's promise.
        unsafe { self.api.arrays_free(&raw const handle, 1) };
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // SAFETY: the stream was made in `new`, and is freed here only. No array is left that it is to compute: all owners hold the runtime. (Of
        // arrays that were leaked nobody has a handle.)
        unsafe { self.api.stream_free(self.stream.as_ptr()) };
    }
}

impl Fresh {
    /// The handle, which the caller frees from now on.
    pub(super) fn into_handle(self) -> Handle {
        let handle = self.handle;
        mem::forget(self);
        handle
    }
}

impl Drop for Fresh {
    /// Nobody took it: something failed or panicked in between.
    fn drop(&mut self) {
        let handle = self.handle.as_ptr();
        // SAFETY: the handle was made for this value, which is the only one that has it.
        unsafe { self.api.arrays_free(&raw const handle, 1) };
    }
}
