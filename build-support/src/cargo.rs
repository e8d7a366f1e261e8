//! The only printer of `cargo::` lines.
//!
//! A build script of this project is [`Script::new`], one line for each thing it needs, and nothing else. What is printed
//! is collected first, so tests read it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::Cache;
use crate::choose::{Form, Link, Refusal, Source, Target, Variant, Wanted};
use crate::door::{self, LIBRARY};
use crate::env::{self, Env};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::llama::Llama;
use crate::pins::{LLAMA_SHIM, Pin, llama_patches};
use crate::progress::Silent;

/// What one build script tells cargo.
#[derive(Debug)]
pub struct Script {
    env: Env,
    package: PathBuf,
    lines: Vec<String>,
}

impl Script {
    /// The build script of the package whose folder is `package`.
    pub fn new(package: &str) -> Self {
        Self::with(Env::from_process(), package)
    }

    fn with(env: Env, package: &str) -> Self {
        Self { env, package: package.into(), lines: vec!["rerun-if-changed=build.rs".to_owned()] }
    }

    /// What the crate's Rust code is told in any case: the pinned versions and the variant, and which `cfg` there may be.
    ///
    /// # Errors
    /// The table of pins is malformed, or the variant asked for does not exist.
    pub fn pins(mut self) -> Result<Self> {
        let commit = Pin::named("llama")?.commit.unwrap_or_default();
        self.line(format!("rustc-env=INFER_LLAMA_COMMIT={commit}"));
        self.line(format!("rustc-env=INFER_ONNXRUNTIME_VERSION={}", Pin::named("onnxruntime")?.version));
        self.line(format!("rustc-env=INFER_MLX_VERSION={}", Pin::named("mlx")?.version));
        self.line(format!("rustc-env=INFER_LLAMA_VARIANT={}", Variant::from_env(&self.env)?));
        self.line("rustc-check-cfg=cfg(infer_llama_missing)".to_owned());
        self.line(format!("rerun-if-env-changed={}", env::LLAMA_VARIANT));
        self.watch(&["native.toml"]);
        Ok(self)
    }

    /// With feature `llama-link`: finds or builds llama.cpp and links it. What is missing becomes warnings and
    /// `cfg(infer_llama_missing)`, so that checking and documenting work without it.
    ///
    /// # Errors
    /// A build was begun and failed, or a variable has a value that means nothing.
    pub fn llama(mut self, host: &Host) -> Result<Self> {
        let link = self.env.value("CARGO_FEATURE_LLAMA_LINK").is_some();
        if !link {
            return Ok(self);
        }
        for (name, _) in env::NAMES.iter().filter(|(name, _)| !env::NOT_FOR_LINKING.contains(name)) {
            self.line(format!("rerun-if-env-changed={name}"));
        }
        if self.env.value(env::DOCS_RS).is_some() {
            return Ok(self);
        }
        let variant = Variant::from_env(&self.env)?;
        let patches = llama_patches(variant).into_iter().map(|(name, _)| format!("patches/llama/{name}"));
        self.watch(&patches.chain(LLAMA_SHIM.iter().map(|(name, _)| format!("shim/{name}"))).collect::<Vec<_>>());
        let triple = self
            .env
            .text("TARGET")?
            .ok_or_else(|| Error::new("TARGET is not set: this is not a build script"))?
            .to_owned();
        let target = Target::new(triple, &Target::host().triple);
        let wanted = Wanted { link, variant };
        let llama = self.look(wanted, &target)?;
        if let Some(tree) = llama.tree() {
            for part in ["include", "src", "ggml", "CMakeLists.txt"] {
                self.line(format!("rerun-if-changed={}", tree.join(part).display()));
            }
        }
        match llama.choose() {
            Ok(Source::Nothing) => {}
            Ok(Source::System) => self.link_system(&llama)?,
            Ok(Source::Prefix(prefix)) => self.link_prefix(&llama, &prefix)?,
            Ok(Source::Built) => self.link_folder(&llama, &llama.folder()?)?,
            Ok(Source::Archives) => {
                let built = llama.door(host, &mut Silent)?;
                self.link_folder(&llama, &built.path)?;
            }
            Ok(Source::Build(tree)) => {
                let built = llama.build(host, &tree, &mut Silent)?;
                self.link_folder(&llama, &built.path)?;
            }
            // Asked for, and impossible: nobody is served by a warning.
            Err(refusal @ (Refusal::Conflict(..) | Refusal::Variant(..))) => {
                return Err(Error::new(refusal.to_string()));
            }
            Err(refusal) => self.missing(&llama, &refusal),
        }
        Ok(self)
    }

    /// Prints it all: the last thing a build script does.
    pub fn emit(self) {
        for line in self.lines {
            println!("cargo::{line}");
        }
    }

    fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    /// Watches files of this crate. Their text is compiled into it as well; the line tells cargo which change it was.
    fn watch(&mut self, files: &[impl AsRef<str>]) {
        for file in files {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file.as_ref());
            // Of a package that was unpacked elsewhere and removed there is nothing to watch, and a path that is not there
            // would rerun the script for ever.
            if path.exists() {
                self.line(format!("rerun-if-changed={}", path.display()));
            }
        }
    }

    /// Looks around; where there is no home to keep a cache in, or a build is to come and it cannot be made there, with a
    /// cache in cargo's own folder: a packager's sandbox is such a place.
    fn look(&self, wanted: Wanted, target: &Target) -> Result<Llama> {
        let look = |env: &Env| Llama::look(env, wanted, target.clone(), Some(&self.package));
        // A cache that was named and cannot be is an error, not a reason to take another.
        if self.env.path(env::CACHE).is_some() || Cache::from_env(&self.env).is_ok() {
            let llama = look(&self.env)?;
            let builds = matches!(llama.choose(), Ok(Source::Archives | Source::Build(_)));
            if !builds || std::fs::create_dir_all(llama.cache.root()).is_ok() {
                return Ok(llama);
            }
        }
        let out =
            self.env.path("OUT_DIR").ok_or_else(|| Error::new("OUT_DIR is not set: this is not a build script"))?;
        look(&self.env.clone().with(env::CACHE, out.join("native-cache")))
    }

    fn link_folder(&mut self, llama: &Llama, folder: &Path) -> Result<()> {
        self.line(format!("rustc-link-search=native={}", folder.display()));
        self.line(format!("rustc-link-lib=static={LIBRARY}"));
        // For the tests that look at the library itself.
        self.line(format!("rustc-env=INFER_LLAMA_FOLDER={}", folder.display()));
        // When somebody empties the cache, this is what tells.
        self.line(format!("rerun-if-changed={}", folder.join(format!("lib{LIBRARY}.a")).display()));
        if llama.target.form() == Some(Form::Archives) {
            for name in ["llama", "ggml", "ggml-cpu", "ggml-blas", "ggml-metal", "ggml-base"] {
                if folder.join(format!("lib{name}.a")).exists() {
                    self.line(format!("rustc-link-lib=static={name}"));
                }
            }
        }
        self.link_besides(llama)
    }

    fn link_besides(&mut self, llama: &Llama) -> Result<()> {
        let cxx = self.env.text(env::CXXSTDLIB)?.map(str::to_owned);
        for link in llama.wanted.variant.links(&llama.target, cxx.as_deref()) {
            self.line(match link {
                Link::Library(name) => format!("rustc-link-lib=dylib={name}"),
                Link::Framework(name) => format!("rustc-link-lib=framework={name}"),
            });
        }
        Ok(())
    }

    fn link_prefix(&mut self, llama: &Llama, prefix: &Path) -> Result<()> {
        for folder in [prefix.to_owned(), prefix.join("lib")] {
            if folder.join(format!("lib{LIBRARY}.a")).exists() {
                return self.link_folder(llama, &folder);
            }
            let shared = folder.join(door::shared_library(&llama.target));
            if shared.exists() {
                self.line(format!("rustc-link-search=native={}", folder.display()));
                self.line(format!("rustc-link-lib=dylib={LIBRARY}"));
                self.line(format!("rerun-if-changed={}", shared.display()));
                return Ok(());
            }
        }
        Err(Error::new(format!(
            "{} is {}, and there is no lib{LIBRARY}.a in it or in its lib",
            env::LLAMA_PREFIX,
            prefix.display()
        ))
        .with_help("cargo xtask setup and infer setup make one in the cache's build folder"))
    }

    fn link_system(&mut self, llama: &Llama) -> Result<()> {
        let ask = |what: &[&str]| -> Result<String> {
            let output = Command::new("pkg-config")
                .args(what)
                .args(["llama", "ggml"])
                .output()
                .map_err(|error| Error::new(format!("pkg-config: {error}")))?;
            if output.status.success() {
                return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
            }
            Err(Error::new(format!(
                "pkg-config does not find llama and ggml: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            ))
            .with_help(format!("set PKG_CONFIG_PATH, or unset {}", env::LLAMA_SYSTEM)))
        };
        let wanted = llama.pin.version.trim_end_matches("-dev").to_owned();
        let versions = ask(&["--modversion"])?;
        let version = versions.lines().next().unwrap_or_default();
        if version.trim_end_matches("-dev") != wanted {
            return Err(Error::new(format!("the system's llama.cpp is {version}, and {wanted} is wanted")));
        }
        let out =
            self.env.path("OUT_DIR").ok_or_else(|| Error::new("OUT_DIR is not set: this is not a build script"))?;
        let commit = llama.pin.commit.as_deref().unwrap_or_default();
        // One header the shim needs is not installed by upstream: it comes from the pinned tree, and so does the promise
        // that the system's library is of the same commit.
        let own = llama.tree().map(|tree| format!(" -I{}", tree.join("src").display())).unwrap_or_default();
        let cflags = ask(&["--cflags"])? + &own;
        door::shim_for_system(&llama.target, commit, llama.wanted.variant, &cflags, &out)?;
        self.line(format!("rustc-link-search=native={}", out.display()));
        self.line(format!("rustc-link-lib=static={LIBRARY}"));
        for flag in ask(&["--libs"])?.split_whitespace() {
            if let Some(folder) = flag.strip_prefix("-L") {
                self.line(format!("rustc-link-search=native={folder}"));
            } else if let Some(name) = flag.strip_prefix("-l") {
                self.line(format!("rustc-link-lib=dylib={name}"));
            }
        }
        self.link_besides(llama)
    }

    fn missing(&mut self, llama: &Llama, refusal: &Refusal) {
        self.line("rustc-cfg=infer_llama_missing".to_owned());
        self.line(format!(
            "warning=llama.cpp is not linked: {refusal}. Checking works; a program that links will not."
        ));
        for looked in llama.looked() {
            self.line(format!("warning=looked for: {looked}"));
        }
        let ways = [
            "in a checkout, `cargo xtask setup` brings everything; else install cmake, make and a C++ compiler"
                .to_owned(),
            "feature `llama-load` needs none of them: it opens the library that `infer setup` puts into the cache"
                .to_owned(),
            format!(
                "{}, {} or {} say where a source tree, a ready library or the system's is",
                env::LLAMA_SOURCE,
                env::LLAMA_PREFIX,
                env::LLAMA_SYSTEM
            ),
        ];
        let needs = match refusal {
            Refusal::Needs(variant, _) => Some(variant.needs_help().to_owned()),
            _ => None,
        };
        for way in needs.into_iter().chain(ways) {
            self.line(format!("warning=one way: {way}"));
        }
        // A path that is not there makes cargo ask again each time, so that a `setup` in between is seen.
        self.line(format!("rerun-if-changed={}", llama.cache.root().join("asks-again").display()));
    }
}

#[cfg(test)]
#[path = "cargo_tests.rs"]
mod tests;
