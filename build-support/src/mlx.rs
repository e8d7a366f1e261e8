//! MLX: the door to it, compiled against the library its authors built.
//!
//! ```text
//! mlx-c (patched), shim  →  libinfer_mlx.so     the one name that leaves it is the door
//! the package of MLX     →  libmlx.so, …        what that needs, in the same folder
//!                           *.sha256            beside the door: its own, and of each library in the order they are opened
//! ```

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{Cache, Installed, Key, KeyOf, sha256_file};
use crate::choose::Target;
use crate::compile::VISIBILITY;
use crate::env::{self, Env};
use crate::error::{At, Error, Result};
use crate::fixtures;
use crate::host::Host;
use crate::pins::{MLX_C_PATCHES, MLX_SHIM, Pin};
use crate::progress::Progress;
use crate::toolchain::{self, Toolchain};

/// The one variant that was tried: what the authors build for CPUs.
pub const VARIANT: &str = "cpu";

/// The one symbol that leaves the library.
const DOOR: &str = "infer_mlx_api";

/// Of mlx-c, what the shim calls.
const SOURCES: &[&str] = &["array.cpp", "error.cpp", "fast.cpp", "ops.cpp"];

/// How the library is put together, by number. Rust code is in no key: whoever changes what this file makes, raises it.
const RECIPE: &str = "2";

/// The file that is loaded.
pub fn shared_library(target: &Target) -> String {
    format!("libinfer_mlx.{}", extension(target))
}

fn extension(target: &Target) -> &'static str {
    if target.is_apple() { "dylib" } else { "so" }
}

/// The library that `cargo xtask setup` or `infer setup mlx` left in the cache.
///
/// # Errors
/// It is not there yet.
pub fn library() -> Result<PathBuf> {
    let (cache, pin) = (Cache::from_env(&Env::from_process())?, Pin::named("mlx")?);
    let path = cache.mlx(&pin.version, VARIANT).join(shared_library(&Target::host()));
    if path.exists() {
        return Ok(path);
    }
    Err(Error::new(format!("MLX is not in the cache: {} is not there", path.display()))
        .with_help("cargo xtask setup --only mlx"))
}

/// What there is to build the door with, and what it would be built into.
#[derive(Debug)]
pub struct Mlx {
    cache: Cache,
    mlx: Pin,
    mlx_c: Pin,
    target: Target,
    key: Key,
}

impl Mlx {
    /// Looks around.
    ///
    /// # Errors
    /// There is no C++ compiler that starts, or MLX's authors build none for this machine.
    pub fn look(env: &Env) -> Result<Self> {
        let (cache, mlx, mlx_c) = (Cache::from_env(env)?, Pin::named("mlx")?, Pin::named("mlx-c")?);
        let target = Target::host();
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        let library = mlx.file_for(os, arch).map_err(|_| {
            Error::new(format!("there is no recipe for MLX {} on {} yet", mlx.version, target.triple))
                .with_help("name a library that you have by other means in INFER_MLX_LIBRARY")
        })?;
        let toolchain = Toolchain::find(&target).ok_or_else(|| {
            Error::new("there is no C++ compiler that starts, and the door to MLX is compiled on this machine")
                .with_help("install one that knows C++20 (g++ 11 or clang++ 14, or a later one), or name it in CXX")
        })?;
        let mut key = KeyOf::default()
            .value("recipe", RECIPE)
            .value("mlx", &library.sha256)
            .value("mlx-c", &mlx_c.file_for(os, arch)?.sha256)
            .value("variant", VARIANT)
            .value("target", &target.triple)
            .value("compiler", &toolchain.identity())
            .value("compiler flags", &VISIBILITY.join(" "));
        for name in [env::CFLAGS, env::CXXFLAGS] {
            key = key.value(name, &env.value(name).unwrap_or_default().to_string_lossy());
        }
        for (name, text) in MLX_C_PATCHES.iter().chain(MLX_SHIM) {
            key = key.contents(name, text);
        }
        Ok(Self { cache, mlx, mlx_c, target, key: key.key() })
    }

    /// The pins of the two trees: MLX as it was packed, and mlx-c.
    pub fn pins(&self) -> (&Pin, &Pin) {
        (&self.mlx, &self.mlx_c)
    }

    /// The folder of the build this makes, whether it is there or not.
    pub fn folder(&self) -> PathBuf {
        self.cache.build("mlx", &self.key)
    }

    /// Builds the door of two trees, MLX's package and the patched mlx-c, into the cache, unless this very build is there.
    ///
    /// # Errors
    /// The build failed: the message has the end of the log and says where all of it is.
    pub fn build(&self, host: &Host, mlx: &Path, mlx_c: &Path, progress: &mut dyn Progress) -> Result<Installed> {
        let folder = self.folder();
        let log = self.cache.log(&folder.file_name().unwrap_or_default().to_string_lossy());
        self.cache.install(&folder, progress, |folder, progress| {
            progress.start(&format!("building the door of MLX {} ({VARIANT})", self.mlx.version));
            let step = Step {
                mlx: mlx.to_owned(),
                mlx_c: mlx_c.to_owned(),
                folder: folder.to_owned(),
                triple: self.target.triple.clone(),
                version: self.mlx_c.version.clone(),
            };
            host.run(&step.to_os_string()?, &[], &log, progress)?;
            fixtures::write(&folder.join("made-of.txt"), self.key.text())?;
            progress.finish(&format!("log {}", log.display()));
            Ok(())
        })
    }
}

/// What the child is told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    mlx: PathBuf,
    mlx_c: PathBuf,
    folder: PathBuf,
    triple: String,
    /// Of mlx-c.
    version: String,
}

const SEPARATOR: char = '\u{1f}';
/// What its description begins with: llama.cpp's begins with an absolute path.
const NAME: &str = "mlx";

impl Step {
    fn to_os_string(&self) -> Result<OsString> {
        let paths = [&self.mlx, &self.mlx_c, &self.folder].map(|path| path.to_str().map(str::to_owned));
        let [Some(mlx), Some(mlx_c), Some(folder)] = paths else {
            return Err(Error::new(format!("{} is not Unicode", self.folder.display()))
                .with_help("put the cache elsewhere with INFER_CACHE"));
        };
        let fields = [NAME, &mlx, &mlx_c, &folder, &self.triple, &self.version];
        Ok(fields.join(&SEPARATOR.to_string()).into())
    }

    /// The step that is described, if it is one of this kind.
    pub(crate) fn from_os_str(text: &OsStr) -> Option<Self> {
        let fields: Vec<&str> = text.to_str()?.split(SEPARATOR).collect();
        let [NAME, mlx, mlx_c, folder, triple, version] = fields[..] else { return None };
        Some(Self {
            mlx: mlx.into(),
            mlx_c: mlx_c.into(),
            folder: folder.into(),
            triple: triple.to_owned(),
            version: version.to_owned(),
        })
    }

    /// The child's work. What it prints is the log.
    pub(crate) fn run(&self) -> Result<()> {
        let target = Target { triple: self.triple.clone(), is_host: true };
        let toolchain = Toolchain::find(&target).ok_or_else(|| Error::new("there is no C++ compiler that starts"))?;
        let scratch = self.folder.join("scratch");
        fs::create_dir_all(&scratch).at("create", &scratch)?;
        let objects = self.compile(&target, &scratch)?;
        let beside = self.bring_libraries()?;
        let library = self.folder.join(shared_library(&target));
        self.link(&toolchain, &target, &scratch, &objects, &library)?;
        write_hashes(&library, &beside)?;
        for (name, tree) in [("LICENSE-mlx-c", self.mlx_c.join("LICENSE")), ("LICENSE-mlx", licence(&self.mlx)?)] {
            let to = self.folder.join(name);
            fs::copy(tree, &to).at("write", &to)?;
        }
        fs::remove_dir_all(&scratch).at("remove", &scratch)
    }

    fn compile(&self, target: &Target, scratch: &Path) -> Result<Vec<PathBuf>> {
        let mut build = toolchain::base(target);
        build
            .cpp(true)
            .std("c++20")
            .pic(true)
            .out_dir(scratch)
            .include(&self.mlx_c)
            .include(self.mlx.join("mlx/include"))
            .define("INFER_MLX_C_VERSION", format!("\"{}\"", self.version).as_str())
            .define("INFER_MLX_VARIANT", format!("\"{VARIANT}\"").as_str());
        let map = |from: &Path, to: &str| format!("-ffile-prefix-map={}={to}", from.display());
        let maps = [map(&self.mlx_c, "mlx-c"), map(&self.mlx, "mlx"), map(scratch, "build")];
        for flag in VISIBILITY.iter().map(|flag| (*flag).to_owned()).chain(maps) {
            build.flag_if_supported(flag);
        }
        for (name, text) in MLX_SHIM {
            let path = scratch.join(name);
            fs::write(&path, text).at("write", &path)?;
            if name.ends_with(".cpp") {
                build.file(path);
            }
        }
        for name in SOURCES {
            build.file(self.mlx_c.join("mlx/c").join(name));
        }
        build.try_compile_intermediates().map_err(|error| Error::new(format!("compiling the door to MLX: {error}")))
    }

    /// Puts MLX's library, and those that were packed with it, into the folder, and returns their names, each behind those it needs.
    fn bring_libraries(&self) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for folder in [self.mlx.join("mlx/lib"), self.mlx.join("mlx_cpu.libs")] {
            for entry in fs::read_dir(&folder).at("read", &folder)? {
                let path = entry.at("read", &folder)?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let contents = fs::read(&path).at("read", &path)?;
                let to = self.folder.join(&name);
                fs::write(&to, &contents).at("write", &to)?;
                all.push((name, contents));
            }
        }
        all.sort();
        Ok(in_order(&all))
    }

    fn link(
        &self,
        toolchain: &Toolchain,
        target: &Target,
        scratch: &Path,
        objects: &[PathBuf],
        library: &Path,
    ) -> Result<()> {
        let mut link = toolchain.link();
        if target.is_apple() {
            link.arg("-dynamiclib").arg(format!("-Wl,-install_name,{}", shared_library(target)));
            link.arg(format!("-Wl,-exported_symbol,_{DOOR}")).arg("-Wl,-rpath,@loader_path");
        } else {
            let exports = scratch.join("exports");
            fs::write(&exports, format!("{{ global: {DOOR}; local: *; }};\n")).at("write", &exports)?;
            link.args([
                "-shared",
                "-s",
                "-Wl,-z,defs",
                "-Wl,-z,relro,-z,now",
                "-Wl,--gc-sections",
                "-Wl,--build-id=sha1",
            ])
            .arg(format!("-Wl,--version-script={}", exports.display()))
            .arg(format!("-Wl,-soname,{}", shared_library(target)))
            // The old kind of path holds for what MLX needs, too, which was packed into a folder of another name.
            .args(["-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN"])
            .arg(format!("-Wl,-rpath-link,{}", self.folder.display()));
        }
        link.arg("-o").arg(library).args(objects).arg(self.folder.join(format!("libmlx.{}", extension(target))));
        if !target.is_apple() {
            // Where `dladdr1` is not in libc itself.
            link.arg("-ldl");
        }
        toolchain::run(&mut link, "linking the door to MLX")
    }
}

/// The licence of MLX, in the package's own folder of such.
fn licence(mlx: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(mlx).at("read", mlx)?;
    let texts = entries.flatten().map(|entry| entry.path().join("licenses/LICENSE"));
    texts.into_iter().find(|text| text.is_file()).ok_or_else(|| Error::new("the package of MLX has no licence"))
}

/// The names of libraries, each behind those it needs: their names are in its table of texts.
fn in_order(libraries: &[(String, Vec<u8>)]) -> Vec<String> {
    let needs = |contents: &[u8], name: &str| {
        let text = [b"\0", name.as_bytes(), b"\0"].concat();
        contents.windows(text.len()).any(|window| window == text)
    };
    let mut left: Vec<_> = libraries.iter().collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let ready = left
            .iter()
            .position(|(name, contents)| !left.iter().any(|(other, _)| other != name && needs(contents, other)));
        // Where two need each other, any order is as good.
        let (name, _) = left.remove(ready.unwrap_or(0));
        order.push(name.clone());
    }
    order
}

/// Writes the door's hash beside it, and behind that the hashes of the libraries it needs, in the order they are opened.
fn write_hashes(library: &Path, beside: &[String]) -> Result<()> {
    let mut text = String::new();
    let own = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for name in [&own].into_iter().chain(beside) {
        text.push_str(&format!("{}  {name}\n", sha256_file(&library.with_file_name(name))?));
    }
    let path = library.with_file_name(format!("{own}.sha256"));
    fs::write(&path, text).at("write", &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_comes_back_from_its_description() {
        let step = Step {
            mlx: "/a b/mlx".into(),
            mlx_c: "/c".into(),
            folder: "/d".into(),
            triple: "x86_64-unknown-linux-gnu".into(),
            version: "0.7.0".into(),
        };
        assert_eq!(Step::from_os_str(&step.to_os_string().unwrap()), Some(step));
        for other in ["", "mlx", "/from\u{1f}/folder\u{1f}x\u{1f}on\u{1f}cpu\u{1f}commit"] {
            assert_eq!(Step::from_os_str(OsStr::new(other)), None, "{other:?}");
        }
    }

    #[test]
    fn a_library_stands_behind_those_it_needs() {
        let library = |name: &str, needs: &[&str]| {
            let texts: String = needs.iter().map(|name| format!("{name}\0")).collect();
            (name.to_owned(), format!("\u{7f}ELF\0{texts}{name}\0").into_bytes())
        };
        let all = [
            library("liba.so", &["libc.so.1", "libm.so"]),
            library("libb.so", &["liba.so"]),
            library("libc.so.1", &["libd.so"]),
            library("libd.so", &[]),
        ];
        assert_eq!(in_order(&all), ["libd.so", "libc.so.1", "liba.so", "libb.so"]);
        let ring = [library("x", &["y"]), library("y", &["x"])];
        assert_eq!(in_order(&ring).len(), 2);
    }
}
