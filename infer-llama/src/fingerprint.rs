//! What tells one model or adapter from another, for states that are saved.

use crate::gguf::Header;
use infer_core::{Error, ErrorKind, Result, state::Fingerprint};
use std::{fs::File, io, sync::OnceLock};

/// Bytes looked at where a tensor begins, and where it ends.
const SAMPLE: u64 = 256;

/// The files of a model or of an adapter, open, and what was found in them.
pub(crate) struct Files {
    /// As [`Header::parts`] has them.
    files: Vec<File>,
    fingerprint: OnceLock<Fingerprint>,
}

impl Files {
    pub(crate) fn new(files: Vec<File>) -> Self {
        Self { files, fingerprint: OnceLock::new() }
    }

    /// The fingerprint of all headers as they are, and of some bytes of each tensor. It is computed once, when it is first wanted.
    pub(crate) fn fingerprint(&self, header: &Header) -> Result<Fingerprint> {
        if let Some(&known) = self.fingerprint.get() {
            return Ok(known);
        }
        let mut pieces = Vec::new();
        for (part, file) in header.parts().iter().zip(&self.files) {
            pieces.push(piece(file, 0, part.data_offset()));
        }
        for tensor in header.tensors() {
            let Some(file) = self.files.get(tensor.part()) else { continue };
            let len = tensor.bytes().min(SAMPLE);
            pieces.push(piece(file, tensor.offset(), len));
            pieces.push(piece(file, tensor.offset() + tensor.bytes() - len, len));
        }
        let pieces = pieces.into_iter().collect::<io::Result<Vec<_>>>().map_err(|error| {
            let name = header.parts()[0].path().display();
            Error::new(ErrorKind::Io, format!("{name}: the file cannot be read again")).with_source(error)
        })?;
        Ok(*self.fingerprint.get_or_init(|| Fingerprint::of(pieces)))
    }
}

fn piece(file: &File, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    read_at(file, offset, &mut bytes)?;
    Ok(bytes)
}

/// Reads without moving the file's position, which may be somebody else's too.
#[cfg(unix)]
fn read_at(file: &File, offset: u64, into: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, into, offset)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, offset: u64, into: &mut [u8]) -> io::Result<()> {
    use std::io::{Read as _, Seek as _};
    file.seek(io::SeekFrom::Start(offset))?;
    file.read_exact(into)
}
