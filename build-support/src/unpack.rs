//! Unpacking what was fetched: only the parts a pin names, and nothing outside the folder given.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path};

use crate::error::{At, Error, Result};
use crate::pins::Origin;

/// Unpacks `parts` of the folder `root` in `archive` ("": all of it) into `folder`.
///
/// A part is a file, a folder, `NAME/*` (the files of a folder, without its folders) or `PREFIX*`.
///
/// # Errors
/// The archive cannot be read or a file not written, or a part is not in it.
pub(crate) fn unpack(archive: &Path, origin: Origin, root: &str, parts: &[String], folder: &Path) -> Result<()> {
    let mut missing: Vec<&String> = parts.iter().collect();
    let mut take = |name: &str, contents: &mut dyn Read, executable: bool| -> Result<()> {
        let Some(inside) = inside_of(root, name) else { return Ok(()) };
        if !parts.iter().any(|part| covers(part, inside)) {
            return Ok(());
        }
        missing.retain(|part| !covers(part, inside));
        write(&folder.join(safe(inside)?), contents, executable)
    };
    match origin {
        Origin::PipSource | Origin::Crate => {
            let file = File::open(archive).at("read", archive)?;
            let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(io::BufReader::new(file)));
            for entry in tar.entries().at("read", archive)? {
                let mut entry = entry.at("read", archive)?;
                if entry.header().entry_type().is_file() {
                    let name = entry.path().at("read", archive)?.to_string_lossy().into_owned();
                    let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
                    take(&name, &mut entry, executable)?;
                }
            }
        }
        Origin::PipWheel => {
            let malformed = |error: zip::result::ZipError| Error::new(format!("{}: {error}", archive.display()));
            let mut zip = zip::ZipArchive::new(File::open(archive).at("read", archive)?).map_err(malformed)?;
            for index in 0..zip.len() {
                let mut entry = zip.by_index(index).map_err(malformed)?;
                if entry.is_file() {
                    let name = entry.name().map_err(malformed)?.to_string();
                    let executable = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
                    take(&name, &mut entry, executable)?;
                }
            }
        }
    }
    match missing.first() {
        None => Ok(()),
        Some(part) => Err(Error::new(format!("{} has no {root}/{part}", archive.display()))),
    }
}

/// The name of a file as seen from the folder `root`, if it is in there.
fn inside_of<'a>(root: &str, name: &'a str) -> Option<&'a str> {
    if root.is_empty() { Some(name) } else { name.strip_prefix(root)?.strip_prefix('/') }
}

fn covers(part: &str, name: &str) -> bool {
    match part.strip_suffix('*') {
        Some(prefix) => name.strip_prefix(prefix).is_some_and(|rest| !rest.contains('/')),
        None => name.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
    }
}

fn safe(name: &str) -> Result<&Path> {
    let path = Path::new(name);
    let plain = path.components().all(|piece| matches!(piece, Component::Normal(_)));
    plain.then_some(path).ok_or_else(|| Error::new(format!("an archive names a file outside itself: {name}")))
}

fn write(path: &Path, contents: &mut dyn Read, executable: bool) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).at("create", folder)?;
    let mut file = File::create(path).at("create", path)?;
    io::copy(contents, &mut file).at("write", path)?;
    if executable {
        make_executable(&file).at("make executable", path)?;
    }
    Ok(())
}

#[cfg(unix)]
fn make_executable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_file: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_covers_a_file_a_folder_or_the_files_of_a_folder() {
        for (part, name, want) in [
            ("LICENSE", "LICENSE", true),
            ("LICENSE", "LICENSES/x", false),
            ("src", "src/models/a.cpp", true),
            ("src", "srcs/a.cpp", false),
            ("ggml/src/*", "ggml/src/ggml.c", true),
            ("ggml/src/*", "ggml/src/ggml-cuda/x.cu", false),
            ("models/ggml-vocab-*", "models/ggml-vocab-a.gguf", true),
            ("models/ggml-vocab-*", "models/templates/x", false),
        ] {
            assert_eq!(covers(part, name), want, "{part} {name}");
        }
    }

    #[test]
    fn a_file_is_seen_from_the_root_of_its_pin() {
        assert_eq!(inside_of("a/b", "a/b/c/d"), Some("c/d"));
        assert_eq!(inside_of("a/b", "a/bc/d"), None);
        assert_eq!(inside_of("a/b", "x/a/b/c"), None);
        assert_eq!(inside_of("", "a/b"), Some("a/b"));
    }

    #[test]
    fn a_name_that_leads_outside_is_refused() {
        for name in ["../x", "a/../../x", "/x"] {
            assert!(safe(name).is_err(), "{name}");
        }
        assert!(safe("a/b").is_ok());
    }

    #[test]
    fn only_the_parts_asked_for_are_taken_and_a_missing_one_is_named() {
        let folder = std::env::temp_dir().join(format!("infer-unpack-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let archive = folder.join("a.tar.gz");
        let mut tar =
            tar::Builder::new(flate2::write::GzEncoder::new(File::create(&archive).unwrap(), Default::default()));
        for name in ["p-1/top/keep/a.c", "p-1/top/drop/b.c", "p-1/top/run", "p-1/other/keep/c.c"] {
            let mut header = tar::Header::new_gnu();
            header.set_size(4);
            header.set_mode(if name.ends_with("run") { 0o755 } else { 0o644 });
            tar.append_data(&mut header, name, &b"text"[..]).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap();
        let parts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let out = folder.join("out");
        unpack(&archive, Origin::PipSource, "p-1/top", &parts(&["keep", "run"]), &out).unwrap();
        assert_eq!(fs::read_to_string(out.join("keep/a.c")).unwrap(), "text");
        assert!(!out.join("drop").exists() && !out.join("keep/c.c").exists());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(out.join("run")).unwrap().permissions().mode() & 0o111, 0o111);
        }
        let error = unpack(&archive, Origin::PipSource, "p-1/top", &parts(&["nope"]), &out).unwrap_err().to_string();
        assert!(error.contains("p-1/top/nope"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }
}
