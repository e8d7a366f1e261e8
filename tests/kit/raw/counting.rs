use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    hint::black_box,
};

/// The system's allocator, counting for each thread. A binary installs it with `#[global_allocator]`.
pub struct Counting;

thread_local! {
    // Without a destructor and made at compile time: reading it allocates nothing, also while a thread ends.
    static HEAP: Cell<Heap> = const { Cell::new(Heap { allocations: 0, largest: 0 }) };
}

/// What a piece of code asked the allocator for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heap {
    /// How often, growing what was there included.
    pub allocations: u64,
    /// The most at once, in bytes.
    pub largest: usize,
}

fn count(size: usize) {
    let Heap { allocations, largest } = HEAP.get();
    HEAP.set(Heap { allocations: allocations + 1, largest: largest.max(size) });
}

// SAFETY: every method hands its arguments to the same method of `System`, whose contract is the trait's, and returns what
// it returned; counting touches a thread-local pair of integers, and neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps this method's contract, which is that of `System::alloc`: a size that is not 0.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps this method's contract, which is that of `System::alloc_zeroed`: a size that is not 0.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller got `memory` from this allocator with `layout`, hence from `System`, and keeps the rest of the contract.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller got `memory` from this allocator with `layout`, hence from `System`.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// What `work` asks the allocator for on this thread.
///
/// # Panics
/// When the binary has not installed [`Counting`]: every count would be 0.
pub fn heap<R>(work: impl FnOnce() -> R) -> (Heap, R) {
    let before = HEAP.replace(Heap { allocations: 0, largest: 0 });
    drop(black_box(Box::new(0_u8)));
    assert_eq!(
        HEAP.get().allocations,
        1,
        "install it: #[global_allocator] static HEAP: kit::Counting = kit::Counting;"
    );
    HEAP.set(Heap { allocations: 0, largest: 0 });
    let result = work();
    let heap = HEAP.get();
    HEAP.set(Heap { allocations: before.allocations + heap.allocations, largest: before.largest.max(heap.largest) });
    (heap, result)
}

/// What this thread has asked the allocator for so far: for code that cannot be put into a [`heap`], because others call it.
///
/// # Panics
/// As [`heap`].
pub fn heap_so_far() -> Heap {
    let so_far = HEAP.get();
    drop(black_box(Box::new(0_u8)));
    assert_ne!(
        HEAP.replace(so_far),
        so_far,
        "install it: #[global_allocator] static HEAP: kit::Counting = kit::Counting;"
    );
    so_far
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    #[test]
    fn counts_what_this_thread_allocates() {
        let (one, boxed) = heap(|| Box::new(1_u64));
        assert_eq!((one, *boxed), (Heap { allocations: 1, largest: 8 }, 1));
        let (grown, ()) = heap(|| {
            let mut text = black_box("a".repeat(10));
            text.reserve_exact(90);
            black_box(&text);
        });
        assert_eq!(grown, Heap { allocations: 2, largest: 100 });
        assert_eq!(heap(|| black_box(1 + 1)).0, Heap { allocations: 0, largest: 0 });
    }

    #[test]
    fn counts_inside_of_counts() {
        let (outer, (inner, ())) = heap(|| {
            drop(black_box(vec![0_u8; 100]));
            heap(|| drop(black_box(vec![0_u8; 10])))
        });
        assert_eq!(inner, Heap { allocations: 1, largest: 10 });
        assert_eq!(outer, Heap { allocations: 2, largest: 100 });
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
            let (heap, ()) = heap(|| {
                mine.wait();
                theirs.wait();
            });
            assert_eq!(heap.allocations, 0);
        });
    }
}
