use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// A folder of its own, removed with its contents when it is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new one, with nothing in it.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "one that is made by the way would be a surprise")]
    pub fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("infer-test-{}-{number}", process::id()));
        // What an earlier process with this number left, which was ended before it could clear up.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }

    /// A copy of another folder, with all that is in it.
    ///
    /// # Panics
    /// When it cannot be copied.
    #[must_use]
    pub fn copy_of(folder: impl AsRef<Path>) -> Self {
        let (copy, from) = (Self::new(), folder.as_ref());
        copy_all(from, &copy.0).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        copy
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file in it, in folders that are made if they are not there.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn file(&self, name: &str, bytes: &(impl AsRef<[u8]> + ?Sized)) -> PathBuf {
        let path = self.0.join(name);
        let write = |path: &Path| {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            fs::write(path, bytes)
        };
        write(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Removes a file.
    ///
    /// # Panics
    /// When there is none.
    pub fn remove(&self, name: &str) {
        fs::remove_file(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Puts one text in the place of another in a file.
    ///
    /// # Panics
    /// When the other is not there once.
    #[track_caller]
    pub fn replace(&self, name: &str, from: &str, to: &str) {
        let path = self.0.join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(text.matches(from).count(), 1, "{from:?} in {name}");
        self.file(name, &text.replace(from, to));
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_all(&entry.path(), &place)?;
        } else {
            fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_gone_with_its_files() {
        let (one, other) = (Folder::new(), Folder::new());
        let path = one.file("in/a.txt", "text");
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
        assert!(path.starts_with(one.path()) && one.path() != other.path());
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }

    #[test]
    fn a_copy_is_changed_and_its_original_is_not() {
        let original = Folder::new();
        original.file("in/a.txt", "one two");
        original.file("b.txt", "");
        let copy = Folder::copy_of(original.path());
        copy.replace("in/a.txt", "two", "three");
        copy.remove("b.txt");
        assert_eq!(fs::read_to_string(copy.path().join("in/a.txt")).unwrap(), "one three");
        assert!(!copy.path().join("b.txt").exists() && original.path().join("b.txt").exists());
        assert_eq!(fs::read_to_string(original.path().join("in/a.txt")).unwrap(), "one two");
    }
}
