//! What tells one model from another, for states that are saved.

use crate::{decoder::Config, error::error};
use infer_core::{ErrorKind, Result, state::Fingerprint};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

/// Bytes looked at in one place.
const SAMPLE: u64 = 256;
/// Places looked at in a file: all of a small one, and in a large one at least one in each matrix of weights.
const SAMPLES: u64 = 4096;

/// The fingerprint of what is said of a graph, of its file, and of the `files` beside it that it has weights in.
pub(crate) fn of_graph(config: &Config, files: &[PathBuf]) -> Result<Fingerprint> {
    let failed = |path: &Path, cause: io::Error| {
        error(ErrorKind::Io, format!("{}: the file cannot be read again", path.display())).with_source(cause)
    };
    let numbers = [config.layers, config.kv_heads, config.head_size, config.vocab];
    let mut pieces = vec![config.architecture.clone().into_bytes(), format!("{numbers:?}").into_bytes()];
    for path in [&config.graph].into_iter().chain(files) {
        sample(path, &mut pieces).map_err(|cause| failed(path, cause))?;
    }
    Ok(Fingerprint::of(pieces))
}

/// The length of a file, and bytes from all over it.
fn sample(path: &Path, pieces: &mut Vec<Vec<u8>>) -> io::Result<()> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    pieces.push(len.to_le_bytes().into());
    let samples = len.div_ceil(SAMPLE).clamp(1, SAMPLES);
    let last = len.saturating_sub(SAMPLE);
    for sample in 0..samples {
        // From the first bytes to the last, evenly. Both factors are far below 2^64 together.
        let from = (u128::from(last) * u128::from(sample) / u128::from((samples - 1).max(1))) as u64;
        let mut piece = Vec::with_capacity(SAMPLE as usize);
        file.seek(SeekFrom::Start(from))?;
        (&mut file).take(SAMPLE).read_to_end(&mut piece)?;
        pieces.push(piece);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_place_counts_in_a_small_file_and_the_ends_in_a_large_one() {
        let folder = std::env::temp_dir().join(format!("infer-onnx-fingerprint-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("model.onnx");
        let found = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let mut pieces = Vec::new();
            sample(&path, &mut pieces).unwrap();
            Fingerprint::of(pieces).to_string()
        };
        let mut bytes = vec![7_u8; 1000];
        let whole = found(&bytes);
        assert_eq!(found(&bytes), whole);
        for at in [0, 300, 511, 999] {
            bytes[at] ^= 1;
            assert_ne!(found(&bytes), whole, "byte {at}");
            bytes[at] ^= 1;
        }
        assert_ne!(found(&bytes[1..]), whole);
        assert_ne!(found(&[]), whole);
        let mut large = vec![0_u8; 2 * (SAMPLE * SAMPLES) as usize];
        let whole = found(&large);
        *large.last_mut().unwrap() = 1;
        assert_ne!(found(&large), whole);
        fs::remove_dir_all(&folder).unwrap();
    }
}
