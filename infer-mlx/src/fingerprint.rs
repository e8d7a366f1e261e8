//! What tells one model from another, for states that are saved.

use crate::{
    Package,
    error::error,
    safetensors::{Header, open_file},
};
use infer_core::{ErrorKind, Result, state::Fingerprint};
use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

/// Bytes of a tensor that are looked at.
const SAMPLE: u64 = 64;

/// The fingerprint of a model's settings, of what its files of weights say of themselves, and of some bytes of each tensor.
///
/// # Errors
/// [`Io`](ErrorKind::Io) for a file that cannot be read again.
pub(crate) fn of(package: &Package) -> Result<Fingerprint> {
    let config = package.config_path();
    let mut pieces = vec![std::fs::read(config).map_err(|cause| unreadable(config, cause))?];
    for header in package.headers() {
        let mut file = open_file(header.path())?;
        sample(&mut file, header, &mut pieces).map_err(|cause| unreadable(header.path(), cause))?;
    }
    Ok(Fingerprint::of(pieces))
}

fn sample(file: &mut (impl Read + Seek), header: &Header, pieces: &mut Vec<Vec<u8>>) -> io::Result<()> {
    for tensor in header.tensors() {
        pieces.push(format!("{} {} {:?}", tensor.name(), tensor.dtype(), tensor.shape()).into_bytes());
        // From the middle: the beginnings of padded matrices are alike.
        let mut bytes = Vec::with_capacity(SAMPLE as usize);
        file.seek(SeekFrom::Start(tensor.offset() + tensor.bytes().saturating_sub(SAMPLE) / 2))?;
        file.take(SAMPLE.min(tensor.bytes())).read_to_end(&mut bytes)?;
        pieces.push(bytes);
    }
    Ok(())
}

fn unreadable(path: &Path, cause: io::Error) -> infer_core::Error {
    error(ErrorKind::Io, format!("{}: the file cannot be read again", path.display())).with_source(cause)
}
