//! What is there, whether it serves or not.

use std::path::{Path, PathBuf};

use super::{CACHE_PLACE, LoadOptions, Runtime, Search, places};
use crate::Refusal;

/// A library that is there, and what came of opening it.
#[derive(Debug)]
pub struct Installed<D> {
    place: &'static str,
    path: PathBuf,
    /// The command that would put the right one in its place.
    setup: Option<String>,
    door: Result<D, Refusal>,
}

impl<D: Copy> Installed<D> {
    /// The kind of place, in words: "the cache", …
    #[must_use]
    pub fn place(&self) -> &'static str {
        self.place
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The door, or why it cannot be used.
    ///
    /// # Errors
    ///
    /// What is wrong with the library.
    pub fn door(&self) -> Result<D, &Refusal> {
        self.door.as_ref().copied()
    }

    /// What puts a library that can be used in place of this one, where it cannot be and is one that `infer setup` made.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let setup = self.setup.as_ref().filter(|_| self.door.is_err())?;
        Some(format!("`{setup}` puts the right one in its place"))
    }
}

/// Every library that is there, of those that [`load`] could come upon with one choice of options or another. A path in the options is the
/// only one then, and a variant leaves out the folders of the others.
pub(crate) fn installed<R: Runtime>(options: &LoadOptions) -> Vec<Installed<R>> {
    let (search, _) = Search::<R>::new(options);
    let plain =
        |place, path: &Path| Installed { place, path: path.to_owned(), setup: None, door: search.open_plain(path) };
    if let Some(path) = &options.path {
        return vec![plain("the path given", path)];
    }
    let mut all = Vec::new();
    if let Ok(Some(path)) = search.variable() {
        all.push(plain(R::VARIABLE_PLACE, &path));
    }
    if let Some(folder) = &search.cache {
        for variant in places::variants(folder, R::FILE_NAMES[0]) {
            if search.variant().is_none_or(|wanted| wanted == variant) {
                let path = folder.join(&variant).join(R::FILE_NAMES[0]);
                let door = search.open_cached(&path, Some(&variant));
                let setup = Some(R::setup(&variant));
                all.push(Installed { place: CACHE_PLACE, path, setup, door });
            }
        }
    }
    if !search.privileged {
        for (place, path) in places::beside_program(R::FILE_NAMES).into_iter().filter(|(_, path)| path.exists()) {
            let door = search.open_trusted(&path);
            all.push(Installed { place, path, setup: None, door });
        }
    }
    all
}
