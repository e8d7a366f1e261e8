//! The files that the weights of a model lie in.

use crate::{
    config::read_file,
    error::error,
    safetensors::{self, Header, Tensor},
};
use infer_core::{Error, ErrorKind, Result};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Component, Path, PathBuf},
};

/// Says which weight is in which file.
const INDEX: &str = "model.safetensors.index.json";

/// The headers of all files, and where each weight is.
#[derive(Clone, Debug)]
pub(crate) struct Shards {
    folder: PathBuf,
    headers: Vec<Header>,
    places: HashMap<String, Place>,
}

/// A file of [`Shards::headers`], and a tensor in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) file: usize,
    pub(crate) tensor: usize,
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Shards {
    /// Reads the headers of the files in a folder: those that `model.safetensors.index.json` names, or where there is none
    /// `model*.safetensors`.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); [`InvalidModel`](ErrorKind::InvalidModel) where there is none, for an index that is damaged, names files outside the
    /// folder, or does not agree with them, and for two weights of one name; those of [`safetensors::open`].
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(INDEX);
        // A link that leads nowhere is an index that cannot be read.
        let is_there = path.symlink_metadata().is_ok();
        let index = if is_there { Some(read_index(&path)?) } else { None };
        let names = match &index {
            Some(index) => index.weight_map.values().cloned().collect::<BTreeSet<_>>(),
            None => find(folder)?,
        };
        let headers: Vec<_> =
            names.iter().map(|name| safetensors::open(folder.join(name))).collect::<Result<_, _>>()?;
        let mut shards = Self { folder: folder.to_owned(), headers, places: HashMap::new() };
        shards.take_places()?;
        if let Some(index) = &index {
            shards.check_index(&path, index)?;
        }
        Ok(shards)
    }

    /// The folder they lie in.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The headers, file by file.
    pub(crate) fn headers(&self) -> &[Header] {
        &self.headers
    }

    /// Where a weight is.
    pub(crate) fn find(&self, name: &str) -> Option<(Place, &Tensor)> {
        let place = *self.places.get(name)?;
        Some((place, self.tensor(place)))
    }

    /// The tensor at a place.
    pub(crate) fn tensor(&self, place: Place) -> &Tensor {
        &self.headers[place.file].tensors()[place.tensor]
    }

    /// All weights there are.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Place, &Tensor)> {
        let places = self
            .headers
            .iter()
            .enumerate()
            .flat_map(|(file, header)| (0..header.tensors().len()).map(move |tensor| Place { file, tensor }));
        places.map(|place| (place, self.tensor(place)))
    }

    fn take_places(&mut self) -> Result<()> {
        for (file, header) in self.headers.iter().enumerate() {
            for (tensor, found) in header.tensors().iter().enumerate() {
                let before = self.places.insert(found.name().to_owned(), Place { file, tensor });
                if let Some(before) = before {
                    let other = self.headers[before.file].path().display();
                    return Err(invalid(header.path(), format!("the weight {:?} is in {other} too", found.name())));
                }
            }
        }
        Ok(())
    }

    /// Each weight is where the index says it is.
    fn check_index(&self, path: &Path, index: &Index) -> Result<()> {
        for (name, file) in &index.weight_map {
            let found = self.find(name).map(|(place, _)| self.headers[place.file].path());
            if found != Some(&self.folder.join(file)) {
                let message = format!(
                    "says that {name:?} is in {file:?}, and it is not: a file is of another model; get them again"
                );
                return Err(invalid(path, message));
            }
        }
        Ok(())
    }
}

fn read_index(path: &Path) -> Result<Index> {
    let index: Index =
        serde_json::from_slice(&read_file(path)?).map_err(|why| invalid(path, format!("is not as expected: {why}")))?;
    for (name, file) in &index.weight_map {
        if !is_plain_name(file) {
            let message = format!("says that {name:?} is in {file:?}, which is no file in the model's folder: refused");
            return Err(invalid(path, message));
        }
    }
    if index.weight_map.is_empty() {
        return Err(invalid(path, "names no weights; get the model again"));
    }
    Ok(index)
}

/// Whether a name is one of a file beside the index, on every system: on Unix a backslash is a letter of a name.
fn is_plain_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let is_one = matches!(parts.next(), Some(Component::Normal(part)) if part == name) && parts.next().is_none();
    is_one && !name.contains(['\\', '\0', ':']) && name.ends_with(".safetensors")
}

/// The names of weights' files in a folder that has no index.
fn find(folder: &Path) -> Result<BTreeSet<String>> {
    let unreadable = |why| safetensors::unreadable(folder, why);
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with("model") && name.ends_with(".safetensors") {
            names.insert(name.to_owned());
        }
    }
    if names.is_empty() {
        let message = "there is no model.safetensors, and no other file model*.safetensors: get the weights from where the model is from";
        return Err(invalid(folder, message));
    }
    Ok(names)
}

fn invalid(path: &Path, message: impl AsRef<str>) -> Error {
    error(ErrorKind::InvalidModel, format!("{}: {}", path.display(), message.as_ref()))
}
