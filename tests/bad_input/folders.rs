//! Folders of models, copied to be spoiled.

use serde_json::{Map, Value};
use std::{
    fs,
    path::{Path, PathBuf},
};
use test_kit::Folder;

pub(crate) fn fixture(name: &str) -> PathBuf {
    build_support::fixtures::model(name).unwrap()
}

/// A copy of a fixture's folder.
pub(crate) fn copy(name: &str) -> Folder {
    Folder::copy_of(fixture(name))
}

pub(crate) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_file()).collect()
}

/// The same folder as the cache of the Hugging Face hub has it: links to files that lie elsewhere.
#[cfg(unix)]
pub(crate) fn links(name: &str) -> (Folder, PathBuf) {
    let (folder, from) = (Folder::new(), fixture(name));
    let snapshot = folder.path().join("snapshot");
    for (number, path) in files_in(&from).iter().enumerate() {
        let blobs = folder.path().join("blobs");
        fs::create_dir_all(&blobs).unwrap();
        fs::create_dir_all(&snapshot).unwrap();
        let blob = blobs.join(number.to_string());
        fs::hard_link(path, &blob).or_else(|_| fs::copy(path, &blob).map(|_| ())).unwrap();
        let link = snapshot.join(path.file_name().unwrap());
        std::os::unix::fs::symlink(Path::new("../blobs").join(number.to_string()), link).unwrap();
    }
    (folder, snapshot)
}

/// Changes a JSON file of a folder.
pub(crate) fn edit(folder: &Folder, name: &str, change: impl FnOnce(&mut Value)) {
    let path = folder.path().join(name);
    let mut file = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut file);
    fs::write(path, file.to_string()).unwrap();
}

/// A file of weights, taken apart: the tensors in the order in which they lie, each with its type, its shape and its bytes.
pub(crate) struct Safetensors(pub(crate) Vec<(String, Value, Vec<u8>)>);

impl Safetensors {
    pub(crate) fn read(path: &Path) -> Self {
        let file = fs::read(path).unwrap();
        let (length, rest) = file.split_first_chunk().unwrap();
        let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
        let header: Map<String, Value> = serde_json::from_slice(header).unwrap();
        let tensors = header.into_iter().filter(|(name, _)| name != "__metadata__");
        let mut tensors: Vec<_> = tensors.map(|(name, about)| (span(&about), name, about)).collect();
        tensors.sort_by_key(|((begin, _), ..)| *begin);
        Self(tensors.into_iter().map(|((begin, end), name, about)| (name, about, data[begin..end].to_vec())).collect())
    }

    pub(crate) fn tensor(&mut self, name: &str) -> &mut (String, Value, Vec<u8>) {
        self.0.iter_mut().find(|(found, ..)| found == name).unwrap_or_else(|| panic!("there is no {name}"))
    }

    /// The file: `change` may say other things of the tensors than are true.
    pub(crate) fn bytes(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Vec<u8> {
        let (mut header, mut data) = (Map::new(), Vec::new());
        for (name, about, bytes) in &self.0 {
            let mut about = about.clone();
            about["data_offsets"] = Value::from(vec![data.len(), data.len() + bytes.len()]);
            header.insert(name.clone(), about);
            data.extend_from_slice(bytes);
        }
        change(&mut header);
        let header = Value::Object(header).to_string();
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
    }
}

/// Where a tensor lies, in bytes behind the header.
fn span(about: &Value) -> (usize, usize) {
    let at = |index: usize| about["data_offsets"][index].as_u64().unwrap() as usize;
    (at(0), at(1))
}
