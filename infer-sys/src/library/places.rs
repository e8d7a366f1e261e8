//! Where libraries are, and whether a place can be trusted.

use std::path::{Path, PathBuf};

use super::CACHE_VARIABLE;
use crate::Refusal;

/// Whether somebody with fewer rights may have chosen the environment, the program's path and the working directory.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn privileged() -> bool {
    // SAFETY: `getauxval` reads the auxiliary vector the kernel gave this process, and has no precondition.
    let secure = unsafe { libc::getauxval(libc::AT_SECURE) };
    secure != 0
}

/// Whether somebody with fewer rights may have chosen the environment, the program's path and the working directory.
#[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "openbsd", target_os = "dragonfly"))]
pub(super) fn privileged() -> bool {
    // SAFETY: `issetugid` only asks the kernel about this process, and has no precondition.
    let tainted = unsafe { libc::issetugid() };
    tainted != 0
}

/// Whether somebody with fewer rights may have chosen the environment, the program's path and the working directory.
#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "openbsd",
    target_os = "dragonfly"
)))]
pub(super) fn privileged() -> bool {
    false
}

/// Whether this can be a folder's name in the cache, and cannot lead out of it.
pub(super) fn is_variant(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// The variants there are in the folder of one version, by name.
pub(super) fn variants(folder: &Path, file_name: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join(file_name).exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_variant(name))
        .collect();
    names.sort();
    names
}

/// The cache folder, from the environment.
pub(super) fn cache_root() -> Result<PathBuf, Refusal> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(root) = variable(CACHE_VARIABLE) {
        return if root.is_absolute() { Ok(root) } else { Err(Refusal::NotAbsolute) };
    }
    // The XDG specification has relative paths ignored.
    if let Some(root) = variable("XDG_CACHE_HOME").filter(|root| root.is_absolute()) {
        return Ok(root.join("infer"));
    }
    let home = if cfg!(windows) {
        variable("LOCALAPPDATA").map(|folder| folder.join("infer").join("cache"))
    } else if cfg!(target_vendor = "apple") {
        variable("HOME").map(|home| home.join("Library").join("Caches").join("infer"))
    } else {
        variable("HOME").map(|home| home.join(".cache").join("infer"))
    };
    match home {
        Some(root) if root.is_absolute() => Ok(root),
        Some(_) => Err(Refusal::NotAbsolute),
        None => Err(Refusal::NotSet),
    }
}

/// The places that belong to an installed program.
pub(super) fn beside_program(file_names: &[&str]) -> Vec<(&'static str, PathBuf)> {
    let Ok(program) = std::env::current_exe() else { return Vec::new() };
    let Some(folder) = program.parent().filter(|folder| folder.is_absolute()) else { return Vec::new() };
    let lib = folder.parent().map(|prefix| ("in ../lib of this program", prefix.join("lib")));
    let places = [("beside this program", folder.to_owned())].into_iter().chain(lib);
    places.flat_map(|(place, folder)| file_names.iter().map(move |name| (place, folder.join(name)))).collect()
}

/// Refuses a file that somebody other than this user and root can have put there: it, or the folder it is in.
pub(super) fn trusted(path: &Path) -> Result<(), Refusal> {
    let metadata = std::fs::metadata(path).map_err(Refusal::Unreadable)?;
    owned(&metadata, "the file")?;
    if let Some(folder) = path.parent() {
        let metadata = std::fs::metadata(folder).map_err(Refusal::Unreadable)?;
        owned(&metadata, "its folder")?;
    }
    Ok(())
}

/// Refuses what belongs to somebody else, or can be written by somebody else.
#[cfg(unix)]
pub(super) fn owned(metadata: &std::fs::Metadata, what: &str) -> Result<(), Refusal> {
    use std::os::unix::fs::MetadataExt;

    // SAFETY: `geteuid` has no precondition and cannot fail.
    let user = unsafe { libc::geteuid() };
    let owner = metadata.uid();
    if owner != user && owner != 0 {
        return Err(Refusal::Untrusted(format!("{what} belongs to user {owner}, who is neither this one nor root")));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o002 != 0 {
        return Err(Refusal::Untrusted(format!("everybody can write {what} (mode {mode:o})")));
    }
    // Where each user has a group of their own, what they make is writable by it.
    // SAFETY: `getegid` has no precondition and cannot fail.
    let own = unsafe { libc::getegid() };
    let group = metadata.gid();
    if mode & 0o020 != 0 && group != own {
        return Err(Refusal::Untrusted(format!("group {group} can write {what} (mode {mode:o})")));
    }
    Ok(())
}

/// Refuses what belongs to somebody else, or can be written by somebody else. Not told apart here.
#[cfg(not(unix))]
pub(super) fn owned(_metadata: &std::fs::Metadata, _what: &str) -> Result<(), Refusal> {
    Ok(())
}
