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
    /// Bytes this thread has allocated and not freed, and the most there were.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
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
    hold(size as isize);
}

fn hold(bytes: isize) {
    let (held, most) = HELD.get();
    HELD.set((held + bytes, most.max(held + bytes)));
}

// SAFETY: every method hands its arguments to the same method of `System`, whose contract is the trait's, and returns what
// it returned; counting touches thread-local pairs of integers, and neither allocates nor unwinds.
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
        hold(-(layout.size() as isize));
        // SAFETY: the caller got `memory` from this allocator with `layout`, hence from `System`, and keeps the rest of the contract.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        hold(-(layout.size() as isize));
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
        "install it: #[global_allocator] static HEAP: test_kit::Counting = test_kit::Counting;"
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
        "install it: #[global_allocator] static HEAP: test_kit::Counting = test_kit::Counting;"
    );
    so_far
}

/// The most bytes that `work` held at a time of what it allocated on this thread.
///
/// # Panics
/// As [`heap`].
pub fn peak<R>(work: impl FnOnce() -> R) -> (usize, R) {
    let (before, most) = HELD.replace((0, 0));
    let (_, result) = heap(work);
    let (held, peak) = HELD.get();
    HELD.set((before + held, most.max(before + peak)));
    (peak.max(0).cast_unsigned(), result)
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
    fn tells_how_much_was_held_at_a_time() {
        let (most, kept) = peak(|| {
            let first = black_box(vec![0_u8; 1000]);
            drop(black_box(vec![0_u8; 500]));
            drop(first);
            let (inner, ()) = peak(|| drop(black_box(vec![0_u8; 700])));
            assert_eq!(inner, 700);
            vec![0_u8; 600]
        });
        assert_eq!((most, kept.len()), (1500, 600));
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
