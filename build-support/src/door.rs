//! The door: shim and archives, joined so that one name is left.
//!
//! ```text
//! libllama.a libggml*.a, shim  →  ld -r  →  one object  →  objcopy: one global symbol
//!                                   ├→  libinfer_llama.a    to be linked
//!                                   └→  libinfer_llama.so   to be loaded, with its sha256 beside it
//! infer_probe.c                     →  infer-llama-probe    tries a library in a process of its own; its sha256 beside it
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::sha256_file;
use crate::choose::{Form, Link, Target, Variant};
use crate::compile::{Step, flags, found_in};
use crate::error::{At, Error, Result};
use crate::pins::{LLAMA_SHIM, PROBE};
use crate::toolchain::{self, Toolchain};

/// The one symbol that leaves the library.
pub const DOOR: &str = "infer_llama_api";
/// The library's name, as a linker wants it.
pub const LIBRARY: &str = "infer_llama";

/// The program that tries a door in a process of its own.
pub const PROBE_PROGRAM: &str = "infer-llama-probe";

/// The file that is loaded.
pub fn shared_library(target: &Target) -> String {
    if target.is_apple() { format!("lib{LIBRARY}.dylib") } else { format!("lib{LIBRARY}.so") }
}

/// The child's second step: from the folder with the archives to the folder with the library.
pub(crate) fn make(step: &Step, scratch: &Path) -> Result<()> {
    let toolchain = Toolchain::find(&step.target).ok_or_else(|| Error::new("there is no C++ compiler that starts"))?;
    let archives = found_in(&step.from, "a")?;
    let mut build = shim(&step.target, &step.commit, step.variant, scratch)?;
    build.include(step.from.join("include"));
    for flag in flags(step, scratch) {
        build.flag(flag);
    }
    let shim = build.try_compile_intermediates().map_err(|error| Error::new(format!("compiling the shim: {error}")))?;
    match step.target.form() {
        Some(Form::OneObject) => one_object(step, &toolchain, scratch, &shim, &archives)?,
        Some(Form::Archives) => plain_archives(step, &toolchain, &shim, &archives)?,
        None => return Err(Error::new(format!("there is no recipe for {}", step.target.triple))),
    }
    write_hash(&step.folder.join(shared_library(&step.target)))?;
    if let Some(program) = probe(&step.target, &[step.from.join("include")], scratch, &step.folder)? {
        write_hash(&program)?;
    }
    let licence = step.folder.join("LICENSE-llama.cpp");
    fs::copy(step.from.join("LICENSE-llama.cpp"), &licence).map(drop).at("write", &licence)
}

/// Compiles the [`PROBE_PROGRAM`] into `folder`, with llama.cpp's `headers`. `None` where the target has no `dlopen`.
///
/// # Errors
/// It does not compile.
pub fn probe(target: &Target, headers: &[PathBuf], scratch: &Path, folder: &Path) -> Result<Option<PathBuf>> {
    if target.form().is_none() {
        return Ok(None);
    }
    let (name, text) = PROBE;
    for (name, text) in LLAMA_SHIM.iter().chain([&(name, text)]) {
        let path = scratch.join(name);
        fs::write(&path, text).at("write", &path)?;
    }
    let toolchain = Toolchain::find(target).ok_or_else(|| Error::new("there is no C compiler that starts"))?;
    let program = folder.join(PROBE_PROGRAM);
    let mut compile = toolchain.compile_c();
    compile.args(["-std=gnu11", "-O1", "-o"]).arg(&program).arg("-I").arg(scratch);
    for headers in headers {
        compile.arg("-I").arg(headers);
    }
    // Without debugging information, and so without a path, whatever the user's flags ask for.
    compile.arg("-s").arg(scratch.join(name));
    if !target.is_apple() {
        compile.arg("-ldl");
    }
    toolchain::run(&mut compile, "compiling the probe")?;
    Ok(Some(program))
}

/// The shim alone, against the headers of a llama.cpp that the system has: `libinfer_llama.a` in `out`.
pub(crate) fn shim_for_system(target: &Target, commit: &str, variant: Variant, cflags: &str, out: &Path) -> Result<()> {
    let mut build = shim(target, commit, variant, out)?;
    for flag in cflags.split_whitespace() {
        build.flag(flag);
    }
    build.try_compile(LIBRARY).map_err(|error| Error::new(format!("compiling the shim: {error}")))
}

/// Writes the shim's files into `out`, and says how they are compiled.
fn shim(target: &Target, commit: &str, variant: Variant, out: &Path) -> Result<cc::Build> {
    let mut build = toolchain::base(target);
    build
        .cpp(true)
        .std("c++17")
        .pic(true)
        .out_dir(out)
        .define("NDEBUG", None)
        .define("INFER_LLAMA_COMMIT", format!("\"{commit}\"").as_str())
        .define("INFER_LLAMA_VARIANT", format!("\"{variant}\"").as_str());
    for (name, text) in LLAMA_SHIM {
        let path = out.join(name);
        fs::write(&path, text).at("write", &path)?;
        if name.ends_with(".cpp") {
            build.file(path);
        }
    }
    Ok(build)
}

/// The member of ggml's archive that installs a terminate handler, which forks a debugger and prints to stdout. Our patch takes
/// it out of the build; a tree of the user's own has no patch of ours, so it is taken out of the archive.
const TERMINATE_HANDLER: &str = "ggml.cpp.o";

/// Copies the archives, without the [`TERMINATE_HANDLER`].
fn quiet(toolchain: &Toolchain, scratch: &Path, archives: &[PathBuf]) -> Result<Vec<PathBuf>> {
    archives
        .iter()
        .map(|archive| {
            let copy = scratch.join(archive.file_name().unwrap_or_default());
            fs::copy(archive, &copy).at("write", &copy)?;
            let mut without = Command::new(toolchain.program("ar"));
            toolchain::run(without.arg("d").arg(&copy).arg(TERMINATE_HANDLER), "taking out the terminate handler")?;
            Ok(copy)
        })
        .collect()
}

/// Linux: everything in one relocatable object, in which only the door has a name.
fn one_object(
    step: &Step,
    toolchain: &Toolchain,
    scratch: &Path,
    shim: &[PathBuf],
    archives: &[PathBuf],
) -> Result<()> {
    let object = scratch.join("door.o");
    // Groups are what lets a linker take an inline function from whichever object has it first. Dissolved, ours stay ours.
    let mut join = toolchain.link();
    join.args(["-r", "-nostdlib", "-Wl,--force-group-allocation", "-o"]).arg(&object).args(shim);
    join.arg("-Wl,--whole-archive").args(quiet(toolchain, scratch, archives)?).arg("-Wl,--no-whole-archive");
    toolchain::run(&mut join, "joining the objects")?;
    let mut hide = Command::new(toolchain.program("objcopy"));
    toolchain::run(hide.arg(format!("--keep-global-symbol={DOOR}")).arg(&object), "hiding the symbols")?;
    let archive = step.folder.join(format!("lib{LIBRARY}.a"));
    toolchain::run(Command::new(toolchain.program("ar")).arg("crs").arg(archive).arg(&object), "packing the object")?;
    let mut link = toolchain.link();
    link.args(["-shared", "-Wl,-z,defs", "-Wl,-z,relro,-z,now", "-Wl,--gc-sections", "-Wl,--build-id=sha1"])
        .arg(format!("-Wl,-soname,lib{LIBRARY}.so.{}", &step.commit[..step.commit.len().min(12)]))
        .arg("-o")
        .arg(step.folder.join(shared_library(&step.target)))
        .arg(&object);
    link_besides(&mut link, step);
    toolchain::run(&mut link, "linking the shared library")
}

/// Apple's systems: the archives as they are, and a shared library that exports only the door.
fn plain_archives(step: &Step, toolchain: &Toolchain, shim: &[PathBuf], archives: &[PathBuf]) -> Result<()> {
    for archive in archives {
        let to = step.folder.join(archive.file_name().unwrap_or_default());
        fs::copy(archive, &to).at("write", &to)?;
    }
    let archive = step.folder.join(format!("lib{LIBRARY}.a"));
    toolchain::run(Command::new(toolchain.program("ar")).arg("crs").arg(archive).args(shim), "packing the shim")?;
    let name = shared_library(&step.target);
    let mut link = toolchain.link();
    link.arg("-dynamiclib").arg(format!("-Wl,-install_name,{name}")).arg(format!("-Wl,-exported_symbol,_{DOOR}"));
    link.arg("-o").arg(step.folder.join(&name)).args(shim);
    for archive in archives {
        link.arg(format!("-Wl,-force_load,{}", archive.display()));
    }
    link_besides(&mut link, step);
    toolchain::run(&mut link, "linking the shared library")
}

fn link_besides(link: &mut Command, step: &Step) {
    for library in step.variant.links(&step.target, None) {
        match library {
            Link::Library(name) => link.arg(format!("-l{name}")),
            Link::Framework(name) => link.args(["-framework", name]),
        };
    }
}

/// Writes `FILE.sha256` beside `FILE`, as sha256sum would: what the loader checks before it opens it.
pub(crate) fn write_hash(file: &Path) -> Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = file.with_file_name(format!("{name}.sha256"));
    fs::write(&beside, format!("{}  {name}\n", sha256_file(file)?)).at("write", &beside)
}
