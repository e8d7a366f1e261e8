use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    hint::black_box,
};

/// The system's allocator, counting for each thread. A binary installs it with `#[global_allocator]`.
pub struct Counting;

thread_local! {
    // Without a destructor and made at compile time: reading it allocates nothing, also while a thread ends.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    COUNT.set(COUNT.get() + 1);
}

// SAFETY: every method hands its arguments to the same method of `System`, whose contract is the trait's, and returns what
// it returned; counting touches a thread-local integer, and neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps this method's contract, which is that of `System::alloc`: a size that is not 0.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps this method's contract, which is that of `System::alloc_zeroed`: a size that is not 0.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller got `memory` from this allocator with `layout`, hence from `System`, and keeps the rest of the contract.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller got `memory` from this allocator with `layout`, hence from `System`.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// How many heap allocations `work` makes on this thread, growing ones included.
///
/// # Panics
/// When the binary has not installed [`Counting`]: every count would be 0.
pub fn allocations<R>(work: impl FnOnce() -> R) -> (u64, R) {
    let before = COUNT.get();
    drop(black_box(Box::new(0_u8)));
    assert_eq!(COUNT.get(), before + 1, "install it: #[global_allocator] static A: kit::Counting = kit::Counting;");
    let before = COUNT.get();
    let result = work();
    (COUNT.get() - before, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    #[test]
    fn counts_what_this_thread_allocates() {
        let (count, boxed) = allocations(|| Box::new(1_u64));
        assert_eq!((count, *boxed), (1, 1));
        let (count, ()) = allocations(|| {
            for text in ["a", "bc"] {
                drop(black_box(text.to_owned()));
            }
        });
        assert_eq!(count, 2);
        assert_eq!(allocations(|| black_box(1 + 1)).0, 0);
    }

    #[test]
    fn does_not_count_another_threads() {
        let (mine, theirs) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                mine.wait();
                drop(black_box(vec![0_u8; 1000]));
                theirs.wait();
            });
            let (count, ()) = allocations(|| {
                mine.wait();
                theirs.wait();
            });
            assert_eq!(count, 0);
        });
    }
}
