//! Memory that the allocator keeps for later.

/// Gives back to the system what the C library's allocator has free.
///
/// Each session that is made packs weights before it looks whether another one has done it; by then glibc has seen large blocks come and
/// go, and keeps them: as much as there are weights, for each session. What stays is the end of the arena of the thread that loads, which
/// glibc trims by no request: twice the largest of those blocks at most, however many sessions there are.
pub(crate) fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no pointer, and is MT-safe by its manual page.
    unsafe {
        libc::malloc_trim(0)
    };
}
