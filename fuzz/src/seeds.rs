//! The inputs that fuzzing begins with, made by the writers that the tests use. None is kept in the repository.

use std::path::PathBuf;

/// Names the folder that the seeds of a target are written to.
const VARIABLE: &str = "INFER_FUZZ_SEEDS";

/// Where the caller asked for the seeds, writes them and ends the process.
///
/// # Panics
/// When they cannot be written.
pub fn write_if_asked(seeds: impl FnOnce() -> Vec<Vec<u8>>) {
    let Some(folder) = std::env::var_os(VARIABLE).map(PathBuf::from) else { return };
    for (number, seed) in seeds().into_iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number:03}")), seed).expect("the folder for seeds can be written to");
    }
    std::process::exit(0);
}
