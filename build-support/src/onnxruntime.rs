//! ONNX Runtime: what its library is called, where it lies, and the program that tries it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::Cache;
use crate::choose::Target;
use crate::door::write_hash;
use crate::env::Env;
use crate::error::{At, Error, Result};
use crate::pins::{ONNXRUNTIME_PROBE, Pin};
use crate::toolchain::Toolchain;

/// The one variant there is so far: what the authors build for CPUs.
pub const VARIANT: &str = "cpu";

/// The program that tries a library in a process of its own.
pub const PROBE_PROGRAM: &str = "infer-onnxruntime-probe";

/// The library's file, as upstream calls it.
pub fn shared_library(target: &Target, version: &str) -> String {
    if target.is_apple() { format!("libonnxruntime.{version}.dylib") } else { format!("libonnxruntime.so.{version}") }
}

/// The library that `cargo xtask setup` or `infer setup onnx` left in the cache.
///
/// # Errors
/// It is not there yet.
pub fn library() -> Result<PathBuf> {
    let (cache, pin) = (Cache::from_env(&Env::from_process())?, Pin::named("onnxruntime")?);
    let path = cache.onnxruntime(&pin.version, VARIANT).join(shared_library(&Target::host(), &pin.version));
    if path.exists() {
        return Ok(path);
    }
    Err(Error::new(format!("ONNX Runtime is not in the cache: {} is not there", path.display()))
        .with_help("cargo xtask setup --only onnx"))
}

/// Compiles the [`PROBE_PROGRAM`] into `folder`, its hash beside it.
///
/// # Errors
/// There is no C compiler, or it does not compile.
pub fn probe(target: &Target, folder: &Path) -> Result<PathBuf> {
    let toolchain = Toolchain::find(target).ok_or_else(|| Error::new("there is no C compiler that starts"))?;
    let (name, text) = ONNXRUNTIME_PROBE;
    let (source, program) = (folder.join(name), folder.join(PROBE_PROGRAM));
    fs::write(&source, text).at("write", &source)?;
    let mut compile = toolchain.compile_c();
    // Without debugging information, and so without a path, whatever the user's flags ask for.
    compile.args(["-std=gnu11", "-O1", "-s", "-o"]).arg(&program).arg(&source);
    if !target.is_apple() {
        compile.arg("-ldl");
    }
    let output = compile.output().map_err(|error| Error::new(format!("cannot start the C compiler: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::new(format!("the C compiler does not compile {name}: {}", said.trim())));
    }
    fs::remove_file(&source).at("remove", &source)?;
    write_hash(&program)?;
    Ok(program)
}
