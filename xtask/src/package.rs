//! `cargo xtask package`: the crates as they are published, with the pinned native sources inside `infer-sys`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use build_support::Host;
use build_support::choose::{Target, Variant, Wanted};
use build_support::env::Env;
use build_support::llama::Llama;
use serde_json::Value;

use crate::Result;
use crate::setup::{self, Thing};
use crate::workspace::{cargo, output, root, run as run_command, target};

/// The largest `infer-sys` may be, compressed, in bytes: what the registry takes.
const LIMIT: u64 = 10_000_000;

/// Make the packages to publish, in target/package-infer, and unpack them there.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(host: &Host, _: &Arguments) -> Result {
    for package in make(host)? {
        let size = fs::metadata(&package.archive)?.len();
        println!("{}  {:.2} MB", package.archive.display(), size as f64 / 1e6);
    }
    Ok(())
}

/// One package that was made.
pub(crate) struct Package {
    pub(crate) name: String,
    /// The `.crate` file.
    pub(crate) archive: PathBuf,
    /// What is in it.
    pub(crate) folder: PathBuf,
}

/// Makes every package that is published, from what is in the work tree.
pub(crate) fn make(host: &Host) -> Result<Vec<Package>> {
    setup::ensure(host, &[Thing::Source])?;
    let out = target().join("package-infer");
    let stage = out.join("stage");
    clear(&out)?;
    copy_work_tree(&stage)?;
    let wanted = Wanted { link: true, variant: Variant::Cpu };
    let tree =
        Llama::look(&Env::from_process(), wanted, Target::host(), None)?.tree().ok_or("the source tree is gone")?;
    copy(&tree, &stage.join("infer-sys/vendor/llama.cpp"))?;

    let names = published()?;
    let mut package = cargo(["package", "--quiet", "--no-verify", "--allow-dirty", "--manifest-path"]);
    package.arg(stage.join("Cargo.toml")).arg("--target-dir").arg(out.join("target"));
    for (name, _) in &names {
        package.args(["--package", name]);
    }
    run_command(&mut package)?;

    let mut packages = Vec::new();
    for (name, version) in names {
        let archive = out.join("target/package").join(format!("{name}-{version}.crate"));
        let folder = out.join("unpacked").join(&name);
        fs::create_dir_all(&folder)?;
        // With the times of now: those in a package are all the same, and by them cargo would see no change.
        let mut unpack = Command::new("tar");
        run_command(unpack.arg("-xmzf").arg(&archive).arg("-C").arg(&folder).arg("--strip-components=1"))?;
        let size = fs::metadata(&archive)?.len();
        if name == "infer-sys" && size > LIMIT {
            return Err(format!("{} is {size} bytes, and {LIMIT} is the limit", archive.display()).into());
        }
        packages.push(Package { name, archive, folder });
    }
    Ok(packages)
}

/// Name and version of every package of the workspace that is published.
fn published() -> Result<Vec<(String, String)>> {
    let metadata: Value = serde_json::from_str(&output(&mut cargo(["metadata", "--format-version=1", "--no-deps"]))?)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    // `publish` is null where anything goes, and an empty list where nothing does.
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let published = packages.iter().filter(|package| package["publish"].is_null());
    Ok(published.map(|package| (text(&package["name"]), text(&package["version"]))).collect())
}

/// Copies what version control has, or would take, into `stage`.
fn copy_work_tree(stage: &Path) -> Result {
    let mut list = Command::new("git");
    list.current_dir(root()).args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
    for name in output(&mut list)?.split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (root().join(name), stage.join(name));
        // A file that is deleted and not committed is still listed.
        if from.is_file() {
            fs::create_dir_all(to.parent().unwrap_or(stage))?;
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

pub(crate) fn clear(folder: &Path) -> Result {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}
