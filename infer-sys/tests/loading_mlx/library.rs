//! Libraries made for a test, right and wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use infer_sys::mlx::VERSION;
use sha2::{Digest, Sha256};

/// What the door's library is called in the cache.
pub(crate) fn file_name() -> &'static str {
    if cfg!(target_vendor = "apple") { "libinfer_mlx.dylib" } else { "libinfer_mlx.so" }
}

/// A library with the shape of the door; right, unless told otherwise.
pub(crate) struct Fake {
    defines: Vec<(String, String)>,
    needs: Option<PathBuf>,
}

impl Default for Fake {
    fn default() -> Self {
        let release = format!("\"{VERSION}\"");
        let defines = [
            ("SIZE", "sizeof(infer_mlx_table)"),
            ("VERSION", "INFER_MLX_DOOR_VERSION"),
            ("RELEASE", &release),
            ("PINNED", &release),
            ("VARIANT", "\"cpu\""),
            ("SIZEOF_ARRAY_INFO", "sizeof(infer_mlx_array_info)"),
        ];
        Self { defines: defines.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(), needs: None }
    }
}

impl Fake {
    /// Defines a macro of `door.c`.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.defines.retain(|(known, _)| known != name);
        self.defines.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Has it need a library, which the loader is to look for beside it.
    pub(crate) fn linked_with(mut self, needed: &Path) -> Self {
        self.needs = Some(needed.to_owned());
        self
    }

    /// Compiles it.
    pub(crate) fn build(&self, to: &Path) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = compiler(to);
        command.arg(root.join("tests/loading_mlx/door.c")).arg("-I").arg(root.join("../build-support/shim"));
        command.args(self.defines.iter().map(|(name, value)| format!("-D{name}={value}")));
        command.arg(format!("-DNAME=\"{}\"", to.file_name().unwrap().display()));
        if let Some(needed) = &self.needs {
            command.arg(needed).arg("-Wl,-rpath,$ORIGIN");
        }
        compiled(&mut command, to)
    }
}

/// Compiles a library that a door may need.
pub(crate) fn needed(to: &Path) -> PathBuf {
    let source = to.with_extension("c");
    fs::write(&source, "int needed_by_the_door = 1;\n").unwrap();
    let mut command = compiler(to);
    command.arg(source).arg(format!("-Wl,-soname,{}", to.file_name().unwrap().display()));
    compiled(&mut command, to)
}

fn compiler(to: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command.args(["-shared", "-fPIC", "-O1", "-std=gnu11", "-o"]).arg(to);
    command
}

fn compiled(command: &mut Command, to: &Path) -> PathBuf {
    let output = command.output().expect("this test needs a C compiler: set CC, or have cc on the path");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    to.to_owned()
}

pub(crate) fn hash_file(library: &Path) -> PathBuf {
    let mut name = library.as_os_str().to_owned();
    name.push(".sha256");
    name.into()
}

/// Puts a library into a cache with those it needs, and beside it the hashes of all.
pub(crate) fn put_into_cache(cache: &Path, variant: &str, library: &Path, needs: &[&Path]) -> PathBuf {
    let path = cache.join("mlx").join(VERSION).join(variant).join(file_name());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut hashes = String::new();
    let beside = needs.iter().map(|needed| (*needed, path.with_file_name(needed.file_name().unwrap())));
    for (from, to) in [(library, path.clone())].into_iter().chain(beside) {
        fs::copy(from, &to).unwrap();
        let digest: String = Sha256::digest(fs::read(&to).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
        hashes.push_str(&format!("{digest}  {}\n", to.file_name().unwrap().display()));
    }
    fs::write(hash_file(&path), hashes).unwrap();
    path
}
