//! `cargo xtask downstream`: a crate outside the workspace, on the packages as they are published.
//!
//! Twice: linked, with nothing on the path but cargo, make, cmake and the compiler's programs; and loaded, with a compiler
//! that always fails and no cmake, on a library that was built beforehand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use build_support::cache::Cache;
use build_support::env::Env;
use build_support::tools::Tools;
use build_support::{Host, fixtures, setup as bring};

#[cfg(not(unix))]
use std::fs::copy as symlink;
#[cfg(unix)]
use std::os::unix::fs::symlink;

use crate::Result;
use crate::package::{self, Package, clear, copy};
use crate::setup::{self, Thing};
use crate::workspace::{output, root, target};

/// Build and run tests/downstream on the packaged crates, linked and loaded.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// A text whose next word a small model knows.
const PROMPT: &str = "The capital of France is";
const ANSWER: &str = "Paris";

/// What a build of the linked form may find on the path, beside cmake.
const TOOLCHAIN: &[&str] =
    &["cargo", "rustc", "rustdoc", "cc", "c++", "gcc", "g++", "as", "ld", "ar", "nm", "objcopy", "ranlib", "make"];
/// What cargo itself needs to link any Rust program: the loaded form has this and no more.
const LINKER: &[&str] = &["cargo", "rustc", "rustdoc", "cc", "ld"];

pub(crate) fn run(host: &Host, _: &Arguments) -> Result {
    setup::ensure(host, &[Thing::Smollm2, Thing::Llama])?;
    let packages = package::make(host)?;
    let place = Place::new(&packages)?;
    let (env, model) = (Env::from_process(), fixtures::model("smollm2")?);

    // A cache of its own, so that llama.cpp is built from the sources in the package; kept, so that it is built once.
    let cache = Cache::from_env(&env)?;
    let own = cache.root().join("downstream");
    let cmake = Tools::find(&env, &cache)?.cmake;
    let cmake = match cmake {
        Some(cmake) => cmake,
        None => bring::tool("cmake", &env, &mut crate::terminal::Terminal::default())?.path.join("bin/cmake"),
    };
    let path = place.path("linked", TOOLCHAIN, &[("cmake", &cmake)])?;
    eprintln!("downstream, linked: nothing on the path but {} and cmake", TOOLCHAIN.join(", "));
    place.answers(&path, &[], &own, "linked", &model)?;

    let loaded = place.0.join("cache-loaded");
    let library = bring::library(&env)?;
    let beside = library.strip_prefix(cache.root())?;
    clear(&loaded)?;
    copy(library.parent().unwrap_or(&library), loaded.join(beside).parent().unwrap_or(&loaded))?;
    let path = place.path("loaded", LINKER, &[])?;
    eprintln!("downstream, loaded: CC and CXX fail, and there is no cmake");
    place.answers(&path, &[("CC", "/bin/false"), ("CXX", "/bin/false")], &loaded, "loaded", &model)
}

/// A folder far from the workspace, with the crate in it.
struct Place(PathBuf);

impl Place {
    fn new(packages: &[Package]) -> Result<Self> {
        let place = target().join("downstream");
        let source = place.join("source");
        clear(&source)?;
        copy(&root().join("tests/downstream/src"), &source.join("src"))?;
        let mut manifest = fs::read_to_string(root().join("tests/downstream/Cargo.toml"))?;
        // Not a member of the workspace around `target`, and these packages in place of the registry's.
        manifest.push_str("\n[workspace]\n\n[patch.crates-io]\n");
        for package in packages {
            manifest.push_str(&format!("{} = {{ path = {:?} }}\n", package.name, package.folder));
        }
        fs::write(source.join("Cargo.toml"), manifest)?;
        fs::copy(root().join("Cargo.lock"), source.join("Cargo.lock"))?;
        Ok(Self(place))
    }

    /// A folder with links to `programs` and `extra`, to be the whole path.
    fn path(&self, name: &str, programs: &[&str], extra: &[(&str, &Path)]) -> Result<PathBuf> {
        let folder = self.0.join("path").join(name);
        clear(&folder)?;
        fs::create_dir_all(&folder)?;
        // rustup's stand-ins need more than themselves; the programs they stand for do not.
        let sysroot = PathBuf::from(output(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
        let env = Env::from_process();
        for program in programs {
            let own = sysroot.join("bin").join(program);
            let found =
                if own.is_file() { own } else { env.on_path(program).ok_or(format!("no {program} on the path"))? };
            symlink(found, folder.join(program))?;
        }
        for (name, program) in extra {
            symlink(program, folder.join(name))?;
        }
        Ok(folder)
    }

    fn answers(&self, path: &Path, variables: &[(&str, &str)], cache: &Path, feature: &str, model: &Path) -> Result {
        let kept =
            ["HOME", "CARGO_HOME", "TMPDIR"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut command = Command::new(path.join("cargo"));
        command
            .env_clear()
            .envs(kept)
            .env("PATH", path)
            .env("INFER_CACHE", cache)
            .env("CARGO_TARGET_DIR", self.0.join("target"))
            .envs(variables.iter().copied())
            .current_dir(self.0.join("source"))
            .args(["run", "--quiet", "--no-default-features", "--features", feature, "--"])
            .arg(model)
            .arg(PROMPT);
        let answer = output(&mut command)?;
        if !answer.contains(ANSWER) {
            return Err(format!("the {feature} form answered {answer:?}, without {ANSWER}").into());
        }
        eprintln!("  > {PROMPT}\n  {}", answer.trim());
        Ok(())
    }
}
