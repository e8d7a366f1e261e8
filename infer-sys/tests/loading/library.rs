//! Libraries made for a test, right and wrong.

use std::fs;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

use infer_sys::llama::COMMIT;
use infer_sys::llama::bindings::{INFER_LLAMA_DOOR_VERSION, infer_llama_table};
use infer_sys::llama::fake;
use sha2::{Digest, Sha256};

pub(crate) const FILE_NAME: &str =
    if cfg!(target_vendor = "apple") { "libinfer_llama.dylib" } else { "libinfer_llama.so" };

/// A library with the shape of a door; right, unless told otherwise.
pub(crate) struct Door {
    defines: Vec<(String, String)>,
    sizes: [u32; 12],
    linker_flags: Vec<String>,
}

impl Default for Door {
    fn default() -> Self {
        let table = fake::TABLE.table();
        let entries =
            (size_of::<infer_llama_table>() - offset_of!(infer_llama_table, backend_init)) / size_of::<fn()>();
        let defines = [
            ("SIZE", size_of::<infer_llama_table>().to_string()),
            ("VERSION", INFER_LLAMA_DOOR_VERSION.to_string()),
            ("COMMIT", format!("\"{COMMIT}\"")),
            ("VARIANT", "\"test\"".to_owned()),
            ("ENTRIES", entries.to_string()),
        ];
        Self {
            defines: defines.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            sizes: [
                table.sizeof_error,
                table.sizeof_model_params,
                table.sizeof_context_params,
                table.sizeof_batch,
                table.sizeof_kv_override,
                table.sizeof_limits,
                table.sizeof_device,
                table.sizeof_model_info,
                table.sizeof_vocab_info,
                table.sizeof_token_info,
                table.sizeof_context_info,
                table.sizeof_memory,
            ],
            linker_flags: Vec::new(),
        }
    }
}

impl Door {
    /// Defines a macro of `door.c`.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.defines.retain(|(known, _)| known != name);
        self.defines.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn with_struct_size(mut self, index: usize, size: u32) -> Self {
        self.sizes[index] = size;
        self
    }

    pub(crate) fn with_linker_flag(mut self, flag: &str) -> Self {
        self.linker_flags.push(format!("-Wl,{flag}"));
        self
    }

    /// Compiles it.
    pub(crate) fn build(&self, to: &Path) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/loading/door.c");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(compiler);
        command.args(["-shared", "-fPIC", "-O1", "-std=gnu11", "-o"]).arg(to).arg(source);
        command.args(self.defines.iter().map(|(name, value)| format!("-D{name}={value}")));
        command.arg(format!("-DSIZES={}", self.sizes.map(|size| size.to_string()).join(",")));
        command.args(&self.linker_flags);
        let output = command.output().expect("this test needs a C compiler: set CC, or have cc on the path");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        to.to_owned()
    }
}

/// Where a library of the pinned commit is in a cache.
pub(crate) fn in_cache(cache: &Path, variant: &str) -> PathBuf {
    cache.join("llama").join(COMMIT).join(variant).join(FILE_NAME)
}

pub(crate) fn hash_file(library: &Path) -> PathBuf {
    let mut name = library.as_os_str().to_owned();
    name.push(".sha256");
    name.into()
}

/// Puts a library into a cache, its hash beside it.
pub(crate) fn put_into_cache(cache: &Path, variant: &str, library: &Path) -> PathBuf {
    let path = in_cache(cache, variant);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::copy(library, &path).unwrap();
    write_hash(&path);
    path
}

/// Writes a file's hash beside it.
pub(crate) fn write_hash(path: &Path) {
    let digest: String = Sha256::digest(fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
    fs::write(hash_file(path), format!("{digest}  {}\n", path.file_name().unwrap().display())).unwrap();
}
