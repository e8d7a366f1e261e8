//! Setting a machine up: fetch, unpack, build, each unless it is done. What `cargo xtask setup` and `infer setup` run.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{Cache, Installed, KeyOf, sha256, sha256_file};
use crate::choose::{Refusal, Source, Target, Variant, Wanted};
use crate::door::{self, PROBE_PROGRAM, shared_library};
use crate::env::Env;
use crate::error::{At, Error, Result};
use crate::fetch::{self, fetch};
use crate::fixtures;
use crate::host::Host;
use crate::llama::Llama;
use crate::mlx::{self, Mlx};
use crate::onnxruntime;
use crate::pins::{MLX_C_PATCHES, ONNXRUNTIME_PROBE, Pin};
use crate::progress::Progress;
use crate::python::{Packages, Python};
use crate::tools;
use crate::tree;
use crate::unpack::unpack;

/// Sets llama.cpp up: tools that are missing, the patched source, the build, and the library where loading finds it.
/// Returns that library's file, and whether anything was done.
///
/// # Errors
/// Something could not be fetched or built.
pub fn llama(host: &Host, env: &Env, progress: &mut dyn Progress) -> Result<Installed> {
    let wanted = Wanted { link: true, variant: Variant::from_env(env)? };
    let mut llama = look(env, wanted)?;
    let mut fresh = false;
    loop {
        fresh |= match llama.choose() {
            Ok(Source::Built) => break,
            Ok(Source::Archives) => llama.door(host, progress)?.fresh,
            Ok(Source::Build(tree)) => llama.build(host, &tree, progress)?.fresh,
            Ok(Source::Nothing | Source::System | Source::Prefix(_)) => {
                return Err(Error::new("the environment names a ready library: there is nothing to set up"));
            }
            Err(Refusal::NoSource) => source_again(env, progress)?,
            Err(Refusal::NoCmake) => tool("cmake", env, progress)?.fresh,
            Err(Refusal::NoGenerator) => tool("ninja", env, progress)?.fresh,
            Err(Refusal::NoCompiler) => {
                return Err(Error::new(Refusal::NoCompiler.to_string())
                    .with_help("install a C and a C++ compiler (gcc and g++, or clang), or name them in CC and CXX"));
            }
            Err(refusal @ Refusal::Needs(variant, _)) => {
                return Err(Error::new(refusal.to_string()).with_help(variant.needs_help()));
            }
            Err(Refusal::Link(triple)) => {
                return Err(Error::new(format!("there is no recipe that builds llama.cpp for {triple} yet"))
                    .with_help("a library built by other means can be loaded: its path is an option of loading"));
            }
            Err(refusal) => return Err(Error::new(refusal.to_string())),
        };
        llama = look(env, wanted)?;
    }
    let library = publish(&llama)?;
    Ok(Installed { path: library.path, fresh: fresh || library.fresh })
}

/// Puts ONNX Runtime's library, as its authors have built it, where loading looks for it, and its hash; and, where there is a C compiler, the program that
/// tries it. Returns the library's file, and whether anything was done.
///
/// # Errors
/// It could not be fetched, or its authors build none for this machine.
pub fn onnxruntime(env: &Env, progress: &mut dyn Progress) -> Result<Installed> {
    let (cache, pin) = (Cache::from_env(env)?, Pin::named("onnxruntime")?);
    let name = onnxruntime::shared_library(&Target::host(), &pin.version);
    let to = cache.onnxruntime(&pin.version, onnxruntime::VARIANT);
    let library = to.join(&name);
    // First, as for llama.cpp: whoever finds the library finds what tries it.
    let tries = onnxruntime_probe(&cache, &to, progress)?;
    if fs::read_to_string(beside(&library)).is_ok_and(|hash| whole(&library, &beside(&library), &hash)) {
        return Ok(Installed { path: library, fresh: tries });
    }
    if pin.file_for(std::env::consts::OS, std::env::consts::ARCH).is_err() {
        return Err(Error::new(format!("there is no ONNX Runtime {} for {}", pin.version, Target::host().triple))
            .with_help("name a library that you have by other means in INFER_ONNXRUNTIME_LIBRARY"));
    }
    let archive = fetch(&pin, env, &cache, progress)?;
    let _lock = cache.lock(&format!("onnxruntime-{}-{}", pin.version, onnxruntime::VARIANT), progress)?;
    progress.start(&format!("unpacking {} {}", pin.name, pin.version));
    let scratch = cache.root().join("unfinished").join("onnxruntime");
    crate::cache::remove(&scratch)?;
    unpack(&archive, pin.origin, &pin.root, &pin.parts, &scratch)?;
    let from = scratch.join("capi");
    door::write_hash(&from.join(&name))?;
    fs::create_dir_all(&to).at("create", &to)?;
    for text in ["LICENSE", "ThirdPartyNotices.txt"] {
        fs::rename(scratch.join(text), to.join(text)).at("write", &to.join(text))?;
    }
    let fresh = put(&from, &to, &name)?;
    crate::cache::remove(&scratch)?;
    progress.finish("");
    Ok(Installed { path: library, fresh: fresh || tries })
}

/// Puts the program that tries ONNX Runtime's library into the folder `to`, and says whether it had to. Without it a library is opened untried, so that a machine
/// without a compiler is served too.
fn onnxruntime_probe(cache: &Cache, to: &Path, progress: &mut dyn Progress) -> Result<bool> {
    let target = Target::host();
    let (name, text) = ONNXRUNTIME_PROBE;
    let key = KeyOf::default().value("target", &target.triple).contents(name, text).key();
    let folder = cache.build("onnxruntime-probe", &key);
    match cache.install(&folder, progress, |folder, _| onnxruntime::probe(&target, folder).map(drop)) {
        Ok(made) => put(&made.path, to, onnxruntime::PROBE_PROGRAM),
        Err(error) => {
            progress.note(&format!("no program will try the library in a process of its own: {}", error.message()));
            Ok(false)
        }
    }
}

/// Sets MLX up: its library as its authors have built it, mlx-c, and the door made of both, with the libraries it needs where loading finds
/// them. Returns the door's file, and whether anything was done.
///
/// # Errors
/// There is no C++ compiler, or something could not be fetched or built.
pub fn mlx(host: &Host, env: &Env, progress: &mut dyn Progress) -> Result<Installed> {
    let cache = Cache::from_env(env)?;
    let door = Mlx::look(env)?;
    let folder = door.folder();
    if !folder.is_dir() {
        let (library, sources) = door.pins();
        let tree = |pin: &Pin| cache.source(&format!("{}-{}", pin.name, pin.version));
        let library = take(library, &library.parts, &tree(library), env, progress, |_| Ok(()))?;
        // By what is patched, too: another patch is another tree.
        let patches: String = MLX_C_PATCHES.iter().map(|(name, text)| format!("{name}\n{text}")).collect();
        let to = cache.source(&format!("{}-{}-{}", sources.name, sources.version, &sha256(patches.as_bytes())[..8]));
        let sources = take(sources, &sources.parts, &to, env, progress, |folder| tree::patch(folder, MLX_C_PATCHES))?;
        door.build(host, &library.path, &sources.path, progress)?;
    }
    let name = mlx::shared_library(&Target::host());
    let to = cache.mlx(&door.pins().0.version, mlx::VARIANT);
    let _lock = cache.lock(&format!("mlx-{}", mlx::VARIANT), progress)?;
    let mut fresh = false;
    let hashes = folder.join(format!("{name}.sha256"));
    let text = fs::read_to_string(&hashes).at("read", &hashes)?;
    // What it needs first: whoever finds the door finds all of it.
    for line in text.lines().skip(1) {
        fresh |= put_beside(&folder, &to, line)?;
    }
    for licence in ["LICENSE-mlx", "LICENSE-mlx-c"] {
        fs::copy(folder.join(licence), to.join(licence)).at("write", &to.join(licence))?;
    }
    fresh |= put(&folder, &to, &name)?;
    Ok(Installed { path: to.join(name), fresh })
}

/// Puts the file of a line of hashes into another folder, unless it is there and whole, and says whether it had to.
fn put_beside(from: &Path, to: &Path, line: &str) -> Result<bool> {
    let Some((hash, name)) = line.split_once("  ") else {
        return Err(Error::new(format!("{} has a line that is no hash: {line}", from.display())));
    };
    let (from, target) = (from.join(name), to.join(name));
    if sha256_file(&target).is_ok_and(|found| found == hash) {
        return Ok(false);
    }
    let beside = to.join(format!(".{name}"));
    fs::create_dir_all(to).at("create", to)?;
    fs::copy(&from, &beside).at("write", &beside)?;
    fs::rename(&beside, &target).at("write", &target)?;
    Ok(true)
}

/// These packages, for the Python of the environment. Returns the folder of the last list, and whether any was brought.
///
/// # Errors
/// There is no such Python, or pip could not bring them.
pub fn python(packages: Packages, env: &Env, progress: &mut dyn Progress) -> Result<Installed> {
    let (cache, python) = (Cache::from_env(env)?, Python::find(env)?);
    let mut all = Installed { path: PathBuf::new(), fresh: false };
    for list in packages.lists() {
        let one = cache.install(&python.folder(&cache, *list), progress, |folder, progress| {
            progress.start("installing the Python packages of the tests");
            // Beside what pip writes, and not into it.
            let requirements = folder.with_extension("txt");
            fs::write(&requirements, list.text).at("write", &requirements)?;
            fetch::install(&requirements, folder, env, &cache)?;
            progress.finish("");
            Ok(())
        })?;
        all = Installed { fresh: all.fresh | one.fresh, path: one.path };
    }
    Ok(all)
}

/// A build tool that is pinned: `cmake`, `ninja` or `libclang`.
///
/// # Errors
/// It could not be fetched.
pub fn tool(name: &str, env: &Env, progress: &mut dyn Progress) -> Result<Installed> {
    let (cache, pin) = (Cache::from_env(env)?, Pin::named(name)?);
    let folder = cache.tool(name, &pin.version);
    take(&pin, &pin.parts, &folder, env, progress, |_| Ok(()))
}

/// Brings a fixture into the cache, a model or the vocabularies, and returns its folder.
///
/// # Errors
/// It could not be fetched.
pub fn fixture(name: &str, env: &Env, progress: &mut dyn Progress) -> Result<Installed> {
    let (cache, pin) = (Cache::from_env(env)?, Pin::named(name)?);
    take(&pin, &pin.parts, &fixtures::folder(&cache, &pin), env, progress, |_| Ok(()))
}

/// Brings a fixture into the cache that `make` makes of the parts that were fetched, in the folder it is given, and returns that
/// folder.
///
/// # Errors
/// It could not be fetched, or what `make` returned.
pub fn made_fixture(
    name: &str,
    env: &Env,
    progress: &mut dyn Progress,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<Installed> {
    let (cache, pin) = (Cache::from_env(env)?, Pin::named(name)?);
    take(&pin, &pin.parts, &fixtures::folder(&cache, &pin), env, progress, make)
}

/// Upstream's own programs, built from the same source with the same patches and flags: the other side of comparisons.
/// Returns their folder.
///
/// # Errors
/// Something could not be fetched or built.
pub fn programs(host: &Host, env: &Env, progress: &mut dyn Progress) -> Result<Installed> {
    let (cache, pin) = (Cache::from_env(env)?, Pin::named("llama")?);
    let more = ["common", "tools", "vendor", "licenses", "scripts/ui-assets.cmake"].map(str::to_owned);
    let parts: Vec<String> = pin.parts.iter().cloned().chain(more).collect();
    let folder = cache.source(&tree::name_with(&pin, &parts));
    let whole = take(&pin, &parts, &folder, env, progress, |folder| tree::finish(folder, &pin, Variant::Cpu))?;
    let wanted = Wanted { link: true, variant: Variant::Cpu };
    let found = look(env, wanted)?;
    if !found.found().cmake {
        tool("cmake", env, progress)?;
    }
    if !found.found().generator {
        tool("ninja", env, progress)?;
    }
    look(env, wanted)?.programs(host, &whole.path, progress)
}

/// The Python packages of [`tools::jinja2`].
///
/// # Errors
/// One could not be fetched.
pub fn python_packages(env: &Env, progress: &mut dyn Progress) -> Result<()> {
    let cache = Cache::from_env(env)?;
    for name in tools::PYTHON_PACKAGES {
        let pin = Pin::named(name)?;
        take(&pin, &pin.parts, &tools::package(&cache, &pin), env, progress, |_| Ok(()))?;
    }
    Ok(())
}

/// The source tree that is built, patched.
///
/// # Errors
/// It could not be fetched, or a patch does not apply.
pub fn source(env: &Env, progress: &mut dyn Progress) -> Result<Installed> {
    let (cache, pin, variant) = (Cache::from_env(env)?, Pin::named("llama")?, Variant::from_env(env)?);
    let folder = cache.source(&tree::name(&pin, variant));
    take(&pin, &tree::parts(&pin, variant), &folder, env, progress, |folder| tree::finish(folder, &pin, variant))
}

/// [`source`], where there is none that serves.
fn source_again(env: &Env, progress: &mut dyn Progress) -> Result<bool> {
    let tree = source(env, progress)?;
    if tree.fresh {
        return Ok(true);
    }
    Err(Error::new(format!("{} is there, but not of this pin and these patches", tree.path.display()))
        .with_help("remove it and try again"))
}

fn look(env: &Env, wanted: Wanted) -> Result<Llama> {
    Llama::look(env, wanted, Target::host(), None)
}

fn take(
    pin: &Pin,
    parts: &[String],
    folder: &Path,
    env: &Env,
    progress: &mut dyn Progress,
    finish: impl FnOnce(&Path) -> Result<()>,
) -> Result<Installed> {
    let cache = Cache::from_env(env)?;
    if folder.is_dir() {
        return Ok(Installed { path: folder.to_owned(), fresh: false });
    }
    let archive = fetch(pin, env, &cache, progress)?;
    cache.install(folder, progress, |folder, progress| {
        progress.start(&format!("unpacking {} {}", pin.name, pin.version));
        unpack(&archive, pin.origin, &pin.root, parts, folder)?;
        finish(folder)?;
        progress.finish("");
        Ok(())
    })
}

/// Puts the loadable library and the program that tries it, and their hashes, where loading looks for this commit and variant.
fn publish(llama: &Llama) -> Result<Installed> {
    let library = shared_library(&llama.target);
    let from = llama.folder()?;
    let commit = llama.pin.commit.as_deref().unwrap_or_default();
    let to = llama.cache.loadable(commit, llama.wanted.variant.name());
    let _lock = llama.cache.lock(&format!("llama-{commit}-{}", llama.wanted.variant), &mut crate::Silent)?;
    let mut fresh = false;
    // The library last: whoever finds it finds what tries it, too.
    for name in [PROBE_PROGRAM, &library] {
        fresh |= put(&from, &to, name)?;
    }
    Ok(Installed { path: to.join(library), fresh })
}

/// Puts the file called `name`, and its hash, into another folder, and says whether it had to.
fn put(from: &Path, to: &Path, name: &str) -> Result<bool> {
    let hash_name = format!("{name}.sha256");
    let hash = fs::read_to_string(from.join(&hash_name)).at("read", &from.join(&hash_name))?;
    if whole(&to.join(name), &to.join(&hash_name), &hash) {
        return Ok(false);
    }
    if !whole(&from.join(name), &from.join(&hash_name), &hash) {
        return Err(Error::new(format!("{} is not what was built there", from.join(name).display()))
            .with_help(format!("remove {} and try again", from.display())));
    }
    fs::create_dir_all(to).at("create", to)?;
    // The hash goes first: between the two renames a reader sees a file that is refused, never one that is wrong.
    for file in [hash_name.as_str(), name] {
        let (beside, target) = (to.join(format!(".{file}")), to.join(file));
        fs::copy(from.join(file), &beside).at("write", &beside)?;
        fs::rename(&beside, &target).at("write", &target)?;
    }
    Ok(true)
}

/// The file with the hash of another.
fn beside(library: &Path) -> PathBuf {
    let mut name = library.as_os_str().to_owned();
    name.push(".sha256");
    name.into()
}

/// Is `library` there, with the hash that is wanted, and with that beside it? Loading refuses any other.
fn whole(library: &Path, hash_file: &Path, wanted: &str) -> bool {
    let beside = fs::read_to_string(hash_file).is_ok_and(|beside| beside == wanted);
    beside && sha256_file(library).is_ok_and(|found| wanted.split_whitespace().next() == Some(&found))
}

/// Where [`llama`] leaves the library, whether it is there or not.
///
/// # Errors
/// There is no cache folder, or the variant asked for does not exist.
pub fn library(env: &Env) -> Result<PathBuf> {
    let cache = Cache::from_env(env)?;
    let commit = Pin::named("llama")?.commit.unwrap_or_default();
    Ok(cache.loadable(&commit, Variant::from_env(env)?.name()).join(shared_library(&Target::host())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_was_changed_is_not_taken_for_one_that_is_there() {
        let folder = std::env::temp_dir().join(format!("infer-whole-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (library, beside) = (folder.join("library"), folder.join("library.sha256"));
        let hash = format!("{}  library\n", sha256(b"code"));
        assert!(!whole(&library, &beside, &hash), "nothing is there");
        fs::write(&library, "code").unwrap();
        assert!(!whole(&library, &beside, &hash), "no hash is beside it");
        fs::write(&beside, &hash).unwrap();
        assert!(whole(&library, &beside, &hash));
        assert!(!whole(&library, &beside, &hash.replace("  ", "0  ")), "another build is wanted");
        fs::write(&library, "c0de").unwrap();
        assert!(!whole(&library, &beside, &hash), "it was changed");
        fs::remove_dir_all(folder).unwrap();
    }
}
