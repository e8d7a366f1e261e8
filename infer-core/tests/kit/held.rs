//! How much memory a piece of code holds at a time.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    /// Bytes this thread has allocated and not freed, and the most there were.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, keeping count for each thread. A binary installs it with `#[global_allocator]`.
pub struct Counting;

/// The most that `work` held at a time on this thread, in bytes, and what it returned.
pub fn peak<R>(work: impl FnOnce() -> R) -> (isize, R) {
    let before = HELD.get().0;
    HELD.set((before, before));
    let result = work();
    (HELD.get().1 - before, result)
}

fn count(bytes: isize) {
    // A thread that is ending has no counter any more; nothing is measured there.
    let _ = HELD.try_with(|held| {
        let now = held.get().0 + bytes;
        held.set((now, held.get().1.max(now)));
    });
}

// SAFETY: every method hands its arguments to `System` unchanged, and returns what that returns; counting is a
// constant-initialised thread-local without a destructor, so it does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller guarantees a layout of non-zero size, which is all `System::alloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller guarantees that `memory` came from this allocator, hence from `System`, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: the caller guarantees that `memory` came from `System` with this layout, and that `size` is non-zero
        // and does not overflow when rounded up.
        unsafe { System.realloc(memory, layout, size) }
    }
}
