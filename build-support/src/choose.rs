//! Where llama.cpp comes from: one pure function from (features, environment, target, what is there) to a [`Source`].
//!
//! Nothing is run, read or fetched here; [`crate::llama`] looks around, hands over what it [`Found`], and does what comes
//! back. The order is the order of the code in [`choose`], and the tests at the end are its table, row by row.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::env::{self, Env};
use crate::error::{Error, Result};

/// What the crate that is built asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Feature `llama-link`.
    pub link: bool,
    /// The back-end variant.
    pub variant: Variant,
}

/// The machine it is built for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The triple.
    pub triple: String,
    /// Is it the machine it is built on?
    pub is_host: bool,
}

/// What is there: looked up before anything is decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The cache holds the very build this would make.
    pub built: bool,
    /// The cache holds llama.cpp's archives for it, lacking only the door.
    pub archives: bool,
    /// The source tree in the package of `infer-sys`.
    pub packaged: Option<PathBuf>,
    /// The source tree in the cache.
    pub cached: Option<PathBuf>,
    /// A cmake.
    pub cmake: bool,
    /// Ninja or make.
    pub generator: bool,
    /// C and C++ compilers that start.
    pub compiler: bool,
    /// pkg-config.
    pub pkg_config: bool,
    /// What the variant is built with and is not there.
    pub lacks: Vec<Need>,
}

/// Where llama.cpp comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nothing native is needed: no linking asked for, or documentation is being built.
    Nothing,
    /// The system's library, through pkg-config; the shim is compiled here.
    System,
    /// A folder with a ready library.
    Prefix(PathBuf),
    /// The cache's finished build.
    Built,
    /// The cache's archives: only the shim is compiled and joined with them.
    Archives,
    /// A source tree, to be built into the cache.
    Build(Tree),
}

/// Which source tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// The one the user named; compiled as it is.
    Named(PathBuf),
    /// The one inside the package of `infer-sys`; patched when it was put there.
    Packaged(PathBuf),
    /// The one `cargo xtask setup` left in the cache; patched when it was put there.
    Cached(PathBuf),
}

impl Tree {
    /// Where it lies.
    pub fn path(&self) -> &Path {
        let (Self::Named(path) | Self::Packaged(path) | Self::Cached(path)) = self;
        path
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The target cannot have this variant.
    Variant(Variant, &'static str),
    /// The door cannot be linked for this target.
    Link(String),
    /// Two overrides that exclude each other are set.
    Conflict(&'static str, &'static str),
    /// The system's library is asked for, and pkg-config is not there to find it.
    NoPkgConfig,
    /// No source tree.
    NoSource,
    /// A source tree, but no cmake.
    NoCmake,
    /// A source tree and cmake, but nothing that runs its output.
    NoGenerator,
    /// No compiler.
    NoCompiler,
    /// What the variant's back end is built with is not there.
    Needs(Variant, Vec<Need>),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variant(variant, why) => {
                write!(f, "the {variant} variant of llama.cpp cannot be built for this target: {why}")
            }
            Self::Link(triple) => write!(f, "llama.cpp cannot be linked for {triple}; it can be loaded there"),
            Self::Conflict(a, b) => write!(f, "{a} and {b} are both set; unset one of them"),
            Self::NoPkgConfig => write!(f, "{} is on, and there is no pkg-config on the path", env::LLAMA_SYSTEM),
            Self::NoSource => f.write_str("there is no llama.cpp source tree"),
            Self::NoCmake => f.write_str("there is no cmake"),
            Self::NoGenerator => f.write_str("there is neither ninja nor make"),
            Self::NoCompiler => f.write_str("there is no C++ compiler that starts"),
            Self::Needs(variant, lacks) => {
                let lacks = lacks.iter().map(Need::to_string).collect::<Vec<_>>().join(", ");
                write!(f, "the {variant} variant of llama.cpp cannot be built, for want of: {lacks}")
            }
        }
    }
}

/// Settles where llama.cpp comes from.
///
/// # Errors
/// A [`Refusal`] that says what is missing or cannot be.
pub fn choose(wanted: Wanted, env: &Env, target: &Target, found: &Found) -> Result<Source, Refusal> {
    if env.value(env::DOCS_RS).is_some() || !wanted.link {
        return Ok(Source::Nothing);
    }
    wanted.variant.check(target)?;
    if target.form().is_none() {
        return Err(Refusal::Link(target.triple.clone()));
    }
    let system = env.switch(env::LLAMA_SYSTEM).is_ok_and(|on| on == Some(true));
    let (prefix, source) = (env.path(env::LLAMA_PREFIX), env.path(env::LLAMA_SOURCE));
    match (system, prefix, source) {
        (true, Some(_), _) => Err(Refusal::Conflict(env::LLAMA_SYSTEM, env::LLAMA_PREFIX)),
        (true, _, Some(_)) => Err(Refusal::Conflict(env::LLAMA_SYSTEM, env::LLAMA_SOURCE)),
        (_, Some(_), Some(_)) => Err(Refusal::Conflict(env::LLAMA_PREFIX, env::LLAMA_SOURCE)),
        (true, None, None) if !found.pkg_config => Err(Refusal::NoPkgConfig),
        (true, None, None) if !found.compiler => Err(Refusal::NoCompiler),
        (true, None, None) => Ok(Source::System),
        (false, Some(prefix), None) => Ok(Source::Prefix(prefix)),
        _ if found.built => Ok(Source::Built),
        _ if found.archives && found.compiler => Ok(Source::Archives),
        _ if found.compiler && !found.lacks.is_empty() => Err(Refusal::Needs(wanted.variant, found.lacks.clone())),
        (false, None, source) => {
            let tree = source
                .map(Tree::Named)
                .or_else(|| found.packaged.clone().map(Tree::Packaged))
                .or_else(|| found.cached.clone().map(Tree::Cached))
                .ok_or(Refusal::NoSource)?;
            if !found.compiler {
                return Err(Refusal::NoCompiler);
            }
            if !found.cmake {
                return Err(Refusal::NoCmake);
            }
            if !found.generator {
                return Err(Refusal::NoGenerator);
            }
            Ok(Source::Build(tree))
        }
    }
}

/// How a linked door is put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One relocatable object whose only global symbol is the door.
    OneObject,
    /// Plain static archives: a second ggml in the same process would mix with this one.
    Archives,
}

impl Target {
    /// A target by its triple, built for on `host`.
    pub fn new(triple: impl Into<String>, host: &str) -> Self {
        let triple = triple.into();
        let is_host = triple == host;
        Self { triple, is_host }
    }

    /// The machine this code runs on.
    pub fn host() -> Self {
        Self { triple: env!("BUILD_SUPPORT_TARGET").to_owned(), is_host: true }
    }

    /// Linux?
    pub fn is_linux(&self) -> bool {
        self.triple.contains("-linux-") && !self.triple.contains("android")
    }

    /// One of Apple's systems?
    pub fn is_apple(&self) -> bool {
        self.triple.contains("-apple-")
    }

    /// How the door is linked there; `None` where it can only be loaded.
    pub fn form(&self) -> Option<Form> {
        if self.is_linux() {
            Some(Form::OneObject)
        } else if self.is_apple() {
            Some(Form::Archives)
        } else {
            None
        }
    }
}

/// A back-end variant of llama.cpp: the columns of the choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// The CPU alone.
    #[default]
    Cpu,
    /// Vulkan, beside the CPU.
    Vulkan,
    /// CUDA, beside the CPU.
    Cuda,
    /// Metal, beside the CPU.
    Metal,
}

/// One thing that a back end is built with, beside what llama.cpp itself is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A program on the path.
    Program(&'static str),
    /// A header that the C++ compiler finds.
    Header(&'static str),
    /// A library that the C++ compiler finds.
    Library(&'static str),
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(name) => write!(f, "the program {name}"),
            Self::Header(name) => write!(f, "the header {name}"),
            Self::Library(name) => write!(f, "the library {name}"),
        }
    }
}

/// One thing to link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// A shared library.
    Library(String),
    /// One of Apple's frameworks.
    Framework(&'static str),
}

impl Variant {
    /// Every variant.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Vulkan, Self::Cuda, Self::Metal];

    /// The one the environment asks for; the CPU when it does not say.
    ///
    /// # Errors
    /// It asks for one there is not.
    pub fn from_env(env: &Env) -> Result<Self> {
        let Some(name) = env.text(env::LLAMA_VARIANT)? else { return Ok(Self::Cpu) };
        name.parse().map_err(|error| Error::new(format!("{}: {error}", env::LLAMA_VARIANT)))
    }

    /// Its name: in `INFER_LLAMA_VARIANT`, in the cache, in the door.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Vulkan => "vulkan",
            Self::Cuda => "cuda",
            Self::Metal => "metal",
        }
    }

    /// Can `target` have it?
    ///
    /// # Errors
    /// It cannot; the refusal says why.
    pub fn check(self, target: &Target) -> Result<(), Refusal> {
        match self {
            Self::Vulkan if target.is_apple() => {
                Err(Refusal::Variant(self, "Apple's systems have no Vulkan; take metal"))
            }
            Self::Cuda if target.is_apple() => Err(Refusal::Variant(self, "Apple's systems have no CUDA; take metal")),
            Self::Metal if !target.is_apple() => Err(Refusal::Variant(self, "only Apple's systems have Metal")),
            _ => Ok(()),
        }
    }

    /// What it is built with.
    pub fn needs(self) -> &'static [Need] {
        match self {
            // Apple's compilers come with Metal.
            Self::Cpu | Self::Metal => &[],
            Self::Vulkan => &[
                Need::Program("glslc"),
                Need::Header("vulkan/vulkan.hpp"),
                Need::Header("spirv/unified1/spirv.hpp"),
                Need::Library("vulkan"),
            ],
            Self::Cuda => {
                &[Need::Program("nvcc"), Need::Library("cudart"), Need::Library("cublas"), Need::Library("cuda")]
            }
        }
    }

    /// Where that comes from, for people.
    pub fn needs_help(self) -> &'static str {
        match self {
            Self::Cpu => "",
            Self::Vulkan => {
                "on Debian and Ubuntu: apt-get install libvulkan-dev glslc spirv-headers (and mesa-vulkan-drivers to run it, \
                 where the maker's own driver is not there); with an SDK elsewhere: its bin in PATH, its include in CPATH, its \
                 lib in LIBRARY_PATH"
            }
            Self::Cuda => {
                "install NVIDIA's CUDA toolkit, and have its bin in PATH, its lib64 and lib64/stubs in LIBRARY_PATH"
            }
            Self::Metal => "install Apple's command line tools: xcode-select --install",
        }
    }

    /// What it adds to the source tree.
    pub fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Cpu => &[],
            Self::Vulkan => &["ggml/src/ggml-vulkan"],
            // The CUDA back end's kernels are shared with two others; its own folder is all it needs.
            Self::Cuda => &["ggml/src/ggml-cuda"],
            Self::Metal => &["ggml/src/ggml-metal", "ggml/src/ggml-blas"],
        }
    }

    /// Its settings for llama.cpp's cmake project.
    pub fn cmake_flags(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Cpu => &[("GGML_METAL", "OFF"), ("GGML_BLAS", "OFF")],
            Self::Vulkan => &[("GGML_METAL", "OFF"), ("GGML_BLAS", "OFF"), ("GGML_VULKAN", "ON")],
            Self::Cuda => {
                &[("GGML_METAL", "OFF"), ("GGML_BLAS", "OFF"), ("GGML_CUDA", "ON"), ("GGML_CUDA_NCCL", "OFF")]
            }
            Self::Metal => &[("GGML_METAL", "ON"), ("GGML_METAL_EMBED_LIBRARY", "ON"), ("GGML_BLAS", "ON")],
        }
    }

    /// What a program that links the door links besides, on `target`, with `cxx` for the C++ runtime if one is named.
    pub fn links(self, target: &Target, cxx: Option<&str>) -> Vec<Link> {
        let library = |name: &str| Link::Library(name.to_owned());
        let runtime = library(cxx.unwrap_or(if target.is_apple() { "c++" } else { "stdc++" }));
        let mut links = vec![runtime];
        if target.is_apple() {
            links.extend([Link::Framework("Foundation"), Link::Framework("Accelerate")]);
        } else {
            links.extend(["m", "pthread", "dl"].map(library));
        }
        match self {
            Self::Cpu => {}
            Self::Vulkan => links.push(library("vulkan")),
            Self::Cuda => links.extend(["cudart", "cublas", "cublasLt", "cuda"].map(library)),
            Self::Metal => links.extend([Link::Framework("Metal"), Link::Framework("MetalKit")]),
        }
        links
    }
}

impl FromStr for Variant {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|variant| variant.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::new(format!("there is no variant \"{name}\"; the variants are: {names}"))
        })
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
