//! From a model's weights to what its sessions share.

use crate::{
    error::invalid_input,
    header::{self, Weight},
    raw::{Mapped, SharedWeights},
};
use infer_core::Result;
use std::{
    collections::{HashMap, hash_map::Entry},
    io::Cursor,
    ops::Range,
    path::Path,
    sync::Arc,
};

/// What sessions of this model file can share.
pub(crate) fn of_file(path: &Path) -> Result<SharedWeights> {
    header::open(path)?.check_files(path)?;
    let weights = header::weights(header::open_file(path)?, path)?;
    let model = Arc::new(Mapped::open(path)?);
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut files = HashMap::new();
    let mut shared = SharedWeights::new()?;
    for weight in &weights {
        let file = match &weight.file {
            None => &model,
            Some(name) => match files.entry(name) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(Arc::new(Mapped::open(&folder.join(name))?)),
            },
        };
        let bytes = part(file, &weight.bytes, weight)?;
        shared.add(&weight.name, weight.dtype, &weight.shape, bytes, Some(file))?;
    }
    Ok(shared)
}

/// What sessions of a model in memory can share: what is in it.
pub(super) fn of_bytes(model: &[u8]) -> Result<SharedWeights> {
    let mut shared = SharedWeights::new()?;
    let weights = header::weights(Cursor::new(model), Path::new("the model in memory"))?;
    for weight in weights.iter().filter(|weight| weight.file.is_none()) {
        let bytes = part(model, &weight.bytes, weight)?;
        shared.add(&weight.name, weight.dtype, &weight.shape, bytes, None)?;
    }
    Ok(shared)
}

fn part<'f>(file: &'f [u8], range: &Range<u64>, weight: &Weight) -> Result<&'f [u8]> {
    let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    file.get(start..end).ok_or_else(|| invalid_input(format!("the weight {} is not whole", weight.name)))
}
