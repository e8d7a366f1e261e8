//! One build of llama.cpp: what goes into it, and its two steps.
//!
//! The *archives* are llama.cpp's own cmake project: minutes. The *door* is our shim, joined with them: seconds. Each has a
//! key and a folder of its own in the cache, so that a change in the shim compiles only the shim.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{Key, KeyOf};
use crate::choose::{Target, Variant};
use crate::door;
use crate::error::{At, Error, Result};
use crate::host::Host;
use crate::mlx;
use crate::pins::{LLAMA_SHIM, PROBE, llama_patches};
use crate::programs;
use crate::progress::Progress;
use crate::toolchain::{self, Toolchain};
use crate::tools::Generator;

/// Settings of llama.cpp's cmake project in every build: the library, static, and nothing else.
const FLAGS: &[(&str, &str)] = &[
    ("BUILD_SHARED_LIBS", "OFF"),
    ("CMAKE_POSITION_INDEPENDENT_CODE", "ON"),
    // As fast as with it in a trial, and no second thread runtime in the process.
    ("GGML_OPENMP", "OFF"),
    ("GGML_LLAMAFILE", "ON"),
    ("GGML_CCACHE", "OFF"),
    ("LLAMA_ALL_WARNINGS", "OFF"),
    ("LLAMA_BUILD_COMMON", "OFF"),
    ("LLAMA_BUILD_TESTS", "OFF"),
    ("LLAMA_BUILD_TOOLS", "OFF"),
    ("LLAMA_BUILD_EXAMPLES", "OFF"),
    ("LLAMA_BUILD_SERVER", "OFF"),
    ("LLAMA_BUILD_APP", "OFF"),
    ("LLAMA_OPENSSL", "OFF"),
];

/// How the door is put together, by number. Rust code is in no key: whoever changes what `door.rs` makes, raises this.
const RECIPE: &str = "3";

/// For the compilers: nothing is exported by default, and no symbol is made unique over the whole process.
pub(crate) const VISIBILITY: &[&str] = &["-fvisibility=hidden", "-fvisibility-inlines-hidden", "-fno-gnu-unique"];

/// The headers the shim is compiled against, kept beside the archives; `src` for the one that is not public.
const HEADERS: &[&str] = &["include", "ggml/include", "src"];

/// What a build is made from.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// What identifies the source: the sha256 of the pin, or the digest of a tree the user named or edited.
    pub source: String,
    /// The commit the door says it is.
    pub commit: String,
    /// Are our patches in it?
    pub patched: bool,
    /// The back-end variant.
    pub variant: Variant,
    /// What it is built for.
    pub target: Target,
    /// For this machine's CPU alone?
    pub native: bool,
    /// Flags the user adds, by variable.
    pub user_flags: Vec<(&'static str, OsString)>,
}

/// The keys of a build's two steps. Rust sources, paths and cmake's version are in neither.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Of llama.cpp's archives.
    pub archives: Key,
    /// Of the door made of them.
    pub door: Key,
    /// Of upstream's own programs.
    pub programs: Key,
}

impl Recipe {
    /// The keys of what this makes with `toolchain`.
    pub fn keys(&self, toolchain: &Toolchain) -> Keys {
        let cpu = if self.native { toolchain.native_cpu() } else { "portable".to_owned() };
        self.keys_with(&toolchain.identity(), &cpu, &llama_patches(self.variant), LLAMA_SHIM)
    }

    fn keys_with(&self, compiler: &str, cpu: &str, patches: &[(&str, &str)], shim: &[(&str, &str)]) -> Keys {
        let mut key = KeyOf::default()
            .value("source", &self.source)
            .value("commit", &self.commit)
            .value("variant", self.variant.name())
            .value("target", &self.target.triple)
            .value("compiler", compiler)
            .contents("cpu", cpu);
        if self.patched {
            for (name, text) in patches {
                key = key.contents(&format!("patch {name}"), text);
            }
        }
        for (name, value) in FLAGS.iter().chain(self.variant.cmake_flags()) {
            key = key.value(&format!("cmake {name}"), value);
        }
        for (name, value) in &self.user_flags {
            key = key.value(name, &value.to_string_lossy());
        }
        let archives = key.clone().value("compiler flags", &VISIBILITY.join(" ")).key();
        let mut door = key.value("archives", archives.short()).value("recipe", RECIPE);
        for (name, text) in shim.iter().chain([&PROBE]) {
            door = door.contents(&format!("shim {name}"), text);
        }
        Keys { programs: programs::key(&archives), archives, door: door.key() }
    }

    /// Builds `product` of `tree` into `folder` by cmake, in a child of `host`.
    ///
    /// # Errors
    /// The build failed: the message has the end of the log and says where all of it is.
    pub fn cmake(
        &self,
        host: &Host,
        product: &Product,
        tree: &Path,
        with: &With<'_>,
        folder: &Path,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let step = Step {
            work: Work::Cmake {
                product: product.clone(),
                native: self.native,
                generator: with.generator.name().to_owned(),
                make: with.generator.program().to_owned(),
            },
            ..self.step(tree, folder)
        };
        let jobs = with.jobs.to_string();
        let settings = [
            ("CMAKE", with.cmake.as_os_str()),
            ("NUM_JOBS", OsStr::new(&jobs)),
            ("PATH", with.path),
            // A checkout around the tree is not its history.
            ("GIT_CEILING_DIRECTORIES", tree.parent().unwrap_or(tree).as_os_str()),
        ];
        host.run(&step.to_os_string()?, &settings, with.log, progress)
    }

    /// Makes the door of `archives` (a folder) into `folder`, in a child of `host`.
    ///
    /// # Errors
    /// As [`Recipe::cmake`].
    pub fn door(
        &self,
        host: &Host,
        archives: &Path,
        folder: &Path,
        log: &Path,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        host.run(&self.step(archives, folder).to_os_string()?, &[], log, progress)
    }

    fn step(&self, from: &Path, folder: &Path) -> Step {
        Step {
            from: from.to_owned(),
            folder: folder.to_owned(),
            target: self.target.clone(),
            variant: self.variant,
            commit: self.commit.clone(),
            work: Work::Door,
        }
    }
}

/// What a cmake project is run for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Product {
    /// The library's archives, and the headers the shim is compiled against.
    Archives,
    /// Upstream's own [programs], linked with the archives in this folder.
    Programs(PathBuf),
}

/// What cmake is run with.
#[derive(Clone, Copy, Debug)]
pub struct With<'a> {
    /// cmake.
    pub cmake: &'a Path,
    /// What runs its output.
    pub generator: &'a Generator,
    /// Compilers at once.
    pub jobs: usize,
    /// Where the log goes.
    pub log: &'a Path,
    /// Where programs are looked for: a back end's own cmake project looks for what runs its output by itself.
    pub path: &'a OsStr,
}

/// What the child is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The source tree, or the folder with the archives.
    pub(crate) from: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) target: Target,
    pub(crate) variant: Variant,
    pub(crate) commit: String,
    work: Work,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Work {
    Cmake { product: Product, native: bool, generator: String, make: PathBuf },
    Door,
}

// Between the fields on their way through one environment variable: no path or triple has it.
const SEPARATOR: char = '\u{1f}';

impl Step {
    fn to_os_string(&self) -> Result<OsString> {
        let text = |path: &Path| {
            path.to_str().map(str::to_owned).ok_or_else(|| {
                Error::new(format!("{} is not Unicode; cmake cannot be given it", path.display()))
                    .with_help("put the cache elsewhere with INFER_CACHE")
            })
        };
        let on = |yes| if yes { "on" } else { "off" }.to_owned();
        let mut fields = vec![
            text(&self.from)?,
            text(&self.folder)?,
            self.target.triple.clone(),
            on(self.target.is_host),
            self.variant.name().to_owned(),
            self.commit.clone(),
        ];
        if let Work::Cmake { product, native, generator, make } = &self.work {
            fields.extend([on(*native), generator.clone(), text(make)?]);
            if let Product::Programs(archives) = product {
                fields.push(text(archives)?);
            }
        }
        Ok(fields.join(&SEPARATOR.to_string()).into())
    }

    fn from_os_str(text: &OsStr) -> Option<Self> {
        let fields: Vec<&str> = text.to_str()?.split(SEPARATOR).collect();
        let (&[from, folder, triple, is_host, variant, commit], rest) = fields.split_first_chunk()?;
        let work = match *rest {
            [] => Work::Door,
            [native, generator, make, ref over @ ..] if over.len() < 2 => Work::Cmake {
                product: over.first().map_or(Product::Archives, |archives| Product::Programs(archives.into())),
                native: native == "on",
                generator: generator.to_owned(),
                make: make.into(),
            },
            _ => return None,
        };
        Some(Self {
            from: from.into(),
            folder: folder.into(),
            target: Target { triple: triple.to_owned(), is_host: is_host == "on" },
            variant: Variant::ALL.into_iter().find(|v| v.name() == variant)?,
            commit: commit.to_owned(),
            work,
        })
    }
}

/// The child's work. What it prints is the log; that it may panic is why it is a child.
pub(crate) fn run(step: &OsStr) -> Result<()> {
    if let Some(step) = mlx::Step::from_os_str(step) {
        return step.run();
    }
    let step = Step::from_os_str(step).ok_or_else(|| Error::new("the description of the build step is malformed"))?;
    let scratch = step.folder.join("scratch");
    fs::create_dir_all(&scratch).at("create", &scratch)?;
    match &step.work {
        Work::Cmake { product, native, generator, make } => {
            let configure = |project: &Path| configure(&step, project, &scratch, *native, generator, make);
            match product {
                Product::Archives => archives(&step, configure(&step.from).build_target("llama").build())?,
                Product::Programs(archives) => programs::make(&step, archives, &scratch, configure)?,
            }
        }
        Work::Door => door::make(&step, &scratch)?,
    }
    fs::remove_dir_all(&scratch).at("remove", &scratch)
}

fn configure(step: &Step, project: &Path, scratch: &Path, native: bool, generator: &str, make: &Path) -> cmake::Config {
    let mut config = cmake::Config::new(project);
    config
        .target(&step.target.triple)
        .host(&Target::host().triple)
        .out_dir(scratch)
        .profile("Release")
        .generator(generator)
        .define("CMAKE_MAKE_PROGRAM", make)
        .define("GGML_NATIVE", if native { "ON" } else { "OFF" })
        .define("LLAMA_BUILD_NUMBER", "0")
        .define("LLAMA_BUILD_COMMIT", &step.commit);
    for (name, value) in FLAGS.iter().chain(step.variant.cmake_flags()) {
        config.define(name, value);
    }
    for flag in flags(step, scratch) {
        config.cflag(&flag).cxxflag(&flag);
    }
    config
}

fn archives(step: &Step, out: PathBuf) -> Result<()> {
    let built = out.join("build");
    for archive in found_in(&built, "a")? {
        let to = step.folder.join(archive.file_name().unwrap_or_default());
        fs::copy(&archive, &to).at("write", &to)?;
    }
    for headers in HEADERS {
        let from = step.from.join(headers);
        for header in found_in(&from, "h")? {
            let to = step.folder.join("include").join(header.file_name().unwrap_or_default());
            fs::create_dir_all(step.folder.join("include")).at("create", &to)?;
            fs::copy(&header, &to).at("write", &to)?;
        }
    }
    let licence = step.folder.join("LICENSE-llama.cpp");
    fs::copy(step.from.join("LICENSE"), &licence).map(drop).at("write", &licence)
}

/// Flags for both compilers, those they know. Paths are mapped away: the same source gives the same bytes wherever it lies.
pub(crate) fn flags(step: &Step, scratch: &Path) -> Vec<String> {
    let mut probe = toolchain::base(&step.target);
    probe.cpp(true).out_dir(scratch);
    let map = |from: &Path, to: &str| format!("-ffile-prefix-map={}={to}", from.display());
    let wanted = VISIBILITY.iter().map(|flag| (*flag).to_owned());
    let wanted = wanted.chain([map(&step.from, "llama.cpp"), map(scratch, "build")]);
    wanted.filter(|flag| probe.is_flag_supported(flag).unwrap_or(false)).collect()
}

/// Every file below `folder` with `extension`, sorted.
pub(crate) fn found_in(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).at("read", folder)? {
        let path = entry.at("read", folder)?.path();
        if path.is_dir() {
            found.extend(found_in(&path, extension)?);
        } else if path.extension().is_some_and(|of| of == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
#[path = "compile_tests.rs"]
mod tests;
