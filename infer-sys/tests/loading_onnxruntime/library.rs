//! Libraries made for a test, right and wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use infer_sys::onnxruntime::{OrtApi, VERSION};
use sha2::{Digest, Sha256};

/// What the library is called in the cache.
pub(crate) fn file_name() -> String {
    if cfg!(target_vendor = "apple") {
        format!("libonnxruntime.{VERSION}.dylib")
    } else {
        format!("libonnxruntime.so.{VERSION}")
    }
}

/// What it may be called beside a program, too.
pub(crate) fn plain_name() -> &'static str {
    if cfg!(target_vendor = "apple") { "libonnxruntime.dylib" } else { "libonnxruntime.so" }
}

/// A library with the shape of ONNX Runtime; right, unless told otherwise.
pub(crate) struct Fake {
    defines: Vec<(String, String)>,
}

impl Default for Fake {
    fn default() -> Self {
        let entries = size_of::<OrtApi>() / size_of::<fn()>();
        let defines = [
            ("ENTRIES", entries.to_string()),
            ("RELEASE", "\"1.32.0\"".to_owned()),
            ("API", "32".to_owned()),
            ("BASE_API", "api".to_owned()),
            ("BASE_VERSION", "version".to_owned()),
        ];
        Self { defines: defines.map(|(name, value)| (name.to_owned(), value)).to_vec() }
    }
}

impl Fake {
    /// Defines a macro of `runtime.c`.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.defines.retain(|(known, _)| known != name);
        self.defines.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Compiles it.
    pub(crate) fn build(&self, to: &Path) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/loading_onnxruntime/runtime.c");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(compiler);
        command.args(["-shared", "-fPIC", "-O1", "-std=gnu11", "-o"]).arg(to).arg(source);
        command.args(self.defines.iter().map(|(name, value)| format!("-D{name}={value}")));
        command.arg(format!("-DNAME=\"{}\"", to.file_name().unwrap().display()));
        let output = command.output().expect("this test needs a C compiler: set CC, or have cc on the path");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        to.to_owned()
    }
}

pub(crate) fn hash_file(library: &Path) -> PathBuf {
    let mut name = library.as_os_str().to_owned();
    name.push(".sha256");
    name.into()
}

/// Puts a library into a cache, its hash beside it.
pub(crate) fn put_into_cache(cache: &Path, variant: &str, library: &Path) -> PathBuf {
    let path = cache.join("onnxruntime").join(VERSION).join(variant).join(file_name());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::copy(library, &path).unwrap();
    let digest: String = Sha256::digest(fs::read(&path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
    fs::write(hash_file(&path), format!("{digest}  {}\n", file_name())).unwrap();
    path
}
