//! What a process holds in memory.

use std::io;

/// Bytes in memory that no file backs: the heap, stacks, private copies.
///
/// # Errors
/// Where the system does not tell (it is Linux's `/proc/self/status` that is read).
pub fn anonymous() -> io::Result<u64> {
    field("RssAnon")
}

/// Bytes in memory that a file backs: the system can drop and read them again.
///
/// # Errors
/// As [`anonymous`].
pub fn file_backed() -> io::Result<u64> {
    field("RssFile")
}

/// Bytes in memory, whatever backs them.
///
/// # Errors
/// As [`anonymous`].
pub fn resident() -> io::Result<u64> {
    field("VmRSS")
}

/// The most bytes this process has had in memory at once, pages of files included.
///
/// # Errors
/// As [`anonymous`].
pub fn peak() -> io::Result<u64> {
    field("VmHWM")
}

/// The same of another process, while it lives.
///
/// # Errors
/// As [`anonymous`]; or there is no such process.
pub fn peak_of(process: u32) -> io::Result<u64> {
    field_in(&format!("/proc/{process}/status"), "VmHWM")
}

fn field(name: &str) -> io::Result<u64> {
    field_in("/proc/self/status", name)
}

fn field_in(file: &str, name: &str) -> io::Result<u64> {
    let status = std::fs::read_to_string(file)?;
    find(&status, name).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no {name} in the status")))
}

/// A line is the name, a colon, white space, and a number of kB.
fn find(status: &str, name: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_of_the_status() {
        let status = "Name:\tx\nRssAnonymous:\t1 kB\nRssAnon:\t     432 kB\nRssFile:\t    8 kB\n";
        assert_eq!((find(status, "RssAnon"), find(status, "RssFile")), (Some(432 * 1024), Some(8192)));
        assert_eq!(find(status, "RssShmem"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn sees_what_is_allocated() {
        let before = anonymous().unwrap();
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        let grown = anonymous().unwrap() - before;
        drop(block);
        assert!(grown >= 60 << 20, "{grown} bytes");
        assert!(file_backed().unwrap() > 0 && resident().unwrap() > anonymous().unwrap());
        assert!(peak().unwrap() >= 60 << 20);
        assert!(peak_of(std::process::id()).unwrap() >= 60 << 20 && peak_of(u32::MAX).is_err());
    }
}
