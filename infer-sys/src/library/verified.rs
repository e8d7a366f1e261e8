//! A file from the cache: its bytes must be those whose hash lies beside it, and so must those of the libraries it needs.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::places;
use crate::Refusal;

/// What is appended to a file's name to name the file with its hash.
const HASH_SUFFIX: &str = ".sha256";

/// A hash file is a line, or a few; whatever is longer is something else.
const HASH_FILE_MAX: u64 = 4096;

/// An open file with the bytes it should have.
pub(super) struct Checked {
    pub(super) file: File,
    pub(super) metadata: Metadata,
    /// The libraries it needs, which lie in the same folder, each behind those that it needs itself.
    pub(super) needs: Vec<Needed>,
}

/// A library that another one needs.
pub(super) struct Needed {
    pub(super) path: PathBuf,
    pub(super) file: File,
}

/// Opens a file whose sha256 must be the one in the file of the same name with `.sha256` at its end. That has the hashes of the libraries it
/// needs in its further lines, as sha256sum writes them.
pub(super) fn check(path: &Path) -> Result<Checked, Refusal> {
    // Before its hash is looked for: where it is not there, that is what is to be said.
    let mut file = open_owned(path)?;
    let text = hashes(path)?;
    let mut lines = text.lines();
    compare(&mut file, &written_hash(path, lines.next().unwrap_or_default())?)?;
    let metadata = file.metadata().map_err(Refusal::Unreadable)?;
    let needs = lines.map(|line| needed(path, line)).collect::<Result<_, _>>()?;
    Ok(Checked { file, metadata, needs })
}

/// A library that `path` needs, by a line of hashes.
fn needed(path: &Path, line: &str) -> Result<Needed, Refusal> {
    let hash = written_hash(path, line)?;
    let name = line.split_ascii_whitespace().nth(1).unwrap_or_default();
    if name.is_empty() || name.contains(['/', '\\']) {
        return Err(no_hash(path, &format_args!("{line:?} names no file of its folder")));
    }
    let path = path.with_file_name(name);
    let open = || {
        let mut file = open_owned(&path)?;
        compare(&mut file, &hash)?;
        Ok(file)
    };
    match open() {
        Ok(file) => Ok(Needed { path, file }),
        Err(refusal) => Err(Refusal::Needed(path, Box::new(refusal))),
    }
}

/// Opens a regular file that nobody else can write.
fn open_owned(path: &Path) -> Result<File, Refusal> {
    let file = open_file(path).map_err(Refusal::Unreadable)?;
    let metadata = file.metadata().map_err(Refusal::Unreadable)?;
    if !metadata.is_file() {
        return Err(Refusal::NotALibrary("it is not a regular file".to_owned()));
    }
    // After it was hashed, the file can still be changed by whoever may write it: that has to be nobody else.
    places::owned(&metadata, "the file")?;
    Ok(file)
}

fn compare(file: &mut File, wanted: &str) -> Result<(), Refusal> {
    let found = hash(file).map_err(Refusal::Unreadable)?;
    if wanted == found { Ok(()) } else { Err(Refusal::WrongHash { wanted: wanted.to_owned(), found }) }
}

/// Is there a file with a hash beside this one?
pub(super) fn has_hash(path: &Path) -> bool {
    hash_file(path).symlink_metadata().is_ok()
}

/// Opens for reading. Where there is no way to load an open file, nobody may write or replace it while it is open.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe of that name must not hold the caller up.
        options.custom_flags(libc::O_NONBLOCK);
    }
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;
        const FILE_SHARE_READ: u32 = 1;
        options.share_mode(FILE_SHARE_READ);
    }
    options.open(path)
}

/// A path that leads to this very file, whatever its own path leads to by now.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn path_of(file: &File, _path: &Path) -> OsString {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// The path of this file: on Windows the open file keeps others from changing it; elsewhere only its owner could.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn path_of(_file: &File, path: &Path) -> OsString {
    path.as_os_str().to_owned()
}

/// A name by which the loader finds this very file.
///
/// glibc takes a name it has seen for the library it had then, and numbers of closed files are used again: so each name is
/// written in a way of its own, with a running number in how the slashes are doubled.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn name_of(file: &File, _path: &Path) -> OsString {
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicU32, Ordering};

    static NAMES: AtomicU32 = AtomicU32::new(0);
    let number = NAMES.fetch_add(1, Ordering::Relaxed);
    let mut name = String::from("/proc/self/fd/");
    for bit in 0..u32::BITS {
        name.push_str(if number >> bit & 1 == 1 { ".//" } else { "./" });
    }
    name.push_str(&file.as_raw_fd().to_string());
    name.into()
}

/// A name by which the loader finds this file: its path.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn name_of(_file: &File, path: &Path) -> OsString {
    path.as_os_str().to_owned()
}

/// The file with the hash of another.
fn hash_file(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(HASH_SUFFIX);
    PathBuf::from(name)
}

fn no_hash(path: &Path, why: &dyn std::fmt::Display) -> Refusal {
    Refusal::NoHash(format!("{}: {why}", hash_file(path).display()))
}

/// The text of the file beside a file.
fn hashes(path: &Path) -> Result<String, Refusal> {
    let file = open_file(&hash_file(path)).map_err(|error| no_hash(path, &error))?;
    let mut text = String::new();
    file.take(HASH_FILE_MAX).read_to_string(&mut text).map_err(|error| no_hash(path, &error))?;
    Ok(text)
}

/// The first word of a line of it.
fn written_hash(path: &Path, line: &str) -> Result<String, Refusal> {
    match line.split_ascii_whitespace().next() {
        Some(word) if word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Ok(word.to_ascii_lowercase())
        }
        _ => Err(no_hash(path, &"it does not begin with a sha256 in hexadecimal")),
    }
}

/// The sha256 of the whole file, in hexadecimal.
fn hash(file: &mut File) -> io::Result<String> {
    let mut sha = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => sha.update(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
