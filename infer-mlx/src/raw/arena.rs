//! Owners of handles: of many, and of one.

use super::{Failure, Fresh, Node, Runtime, runtime::Handle};
use std::{cell::RefCell, mem, rc::Rc};

/// Owns handles, and frees them all in one crossing.
///
/// Handles are only ever added while it lives, so that what [`put`](Self::put) gives may be used as long as the arena is borrowed. Forgotten, it leaks
/// them, and never frees one that is in use.
pub(crate) struct Arena {
    handles: RefCell<Vec<Handle>>,
    runtime: Rc<Runtime>,
}

impl Arena {
    pub(crate) fn new(runtime: &Rc<Runtime>) -> Self {
        Self { handles: RefCell::new(runtime.list()), runtime: Rc::clone(runtime) }
    }

    pub(crate) fn runtime(&self) -> &Rc<Runtime> {
        &self.runtime
    }

    /// Takes a handle over.
    #[inline]
    pub(crate) fn put(&self, fresh: Fresh) -> Node<'_> {
        let mut handles = self.handles.borrow_mut();
        handles.reserve(1);
        let handle = fresh.into_handle();
        handles.push(handle);
        self.runtime.arrays.set(self.runtime.arrays.get() + 1);
        // It is freed when the arena is dropped, which it cannot be while it is borrowed.
        Node::new(handle)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let handles = mem::take(self.handles.get_mut());
        self.runtime.arrays.set(self.runtime.arrays.get() - handles.len());
        // SAFETY: each was taken over once by `put`; nodes borrow the arena, so that none is left.
        unsafe { self.runtime.free(handles) };
    }
}

/// Owns one handle.
pub(crate) struct Held {
    handle: Handle,
    runtime: Rc<Runtime>,
}

impl Held {
    pub(crate) fn new(fresh: Fresh, runtime: &Rc<Runtime>) -> Self {
        runtime.owned.set(runtime.owned.get() + 1);
        Self { handle: fresh.into_handle(), runtime: Rc::clone(runtime) }
    }

    pub(crate) fn node(&self) -> Node<'_> {
        Node::new(self.handle)
    }

    pub(crate) fn runtime(&self) -> &Rc<Runtime> {
        &self.runtime
    }

    /// Computes it if it is not computed yet, and lets go of what it is made of.
    pub(crate) fn eval(&self) -> Result<(), Failure> {
        self.runtime.eval(&[self.node()], true)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.runtime.owned.set(self.runtime.owned.get() - 1);
        // SAFETY: it was taken over in `new`; nodes borrow this value, so that none is left.
        unsafe { self.runtime.free_one(self.handle) };
    }
}
