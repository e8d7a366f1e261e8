//! llama.cpp: looking around, choosing, building into the cache.

use std::path::{Path, PathBuf};

use crate::cache::{Cache, Installed};
use crate::choose::{self, Found, Need, Refusal, Source, Target, Tree, Wanted};
use crate::compile::{Keys, Product, Recipe, With};
use crate::env::{self, Env};
use crate::error::{Error, Result};
use crate::fixtures;
use crate::host::Host;
use crate::pins::Pin;
use crate::programs::PROGRAMS;
use crate::progress::Progress;
use crate::toolchain::Toolchain;
use crate::tools::Tools;
use crate::tree::{self, Standing};

/// Names of the two steps' folders in the cache.
const ARCHIVES: &str = "llama-archives";
const DOOR: &str = "llama";
/// And of upstream's programs.
const PEERS: &str = "llama-programs";

/// What there is to build llama.cpp with, and what it would be built into.
#[derive(Debug)]
pub struct Llama {
    /// Where results go.
    pub cache: Cache,
    /// The pin.
    pub pin: Pin,
    /// What is asked for.
    pub wanted: Wanted,
    /// What it is built for.
    pub target: Target,
    env: Env,
    tools: Tools,
    toolchain: Option<Toolchain>,
    recipe: Recipe,
    keys: Option<Keys>,
    found: Found,
    looked: Vec<String>,
}

impl Llama {
    /// Looks around. `package` is the source folder of `infer-sys`, when a build script asks: it may carry the sources.
    ///
    /// # Errors
    /// A variable has a value that means nothing, or a tree cannot be read.
    pub fn look(env: &Env, wanted: Wanted, target: Target, package: Option<&Path>) -> Result<Self> {
        let (cache, pin) = (Cache::from_env(env)?, Pin::named("llama")?);
        // Read where the choice is made, too; there a value that means nothing has nobody to tell.
        env.switch(env::LLAMA_SYSTEM)?;
        let mut looked = Vec::new();
        let mut trees = Vec::new();
        for folder in [
            package.map(|package| package.join("vendor/llama.cpp")),
            Some(cache.source(&tree::name(&pin, wanted.variant))),
        ] {
            let Some(folder) = folder else {
                trees.push(None);
                continue;
            };
            let standing = tree::standing(&folder, &pin, wanted.variant)?;
            if standing == Standing::NotOurs {
                let why =
                    if folder.is_dir() { "is there, but not of this pin and these patches" } else { "is not there" };
                looked.push(format!("{} {why}", folder.display()));
            }
            trees.push(Some((folder, standing)).filter(|(_, standing)| *standing != Standing::NotOurs));
        }
        let named = env.path(env::LLAMA_SOURCE);
        if let Some(named) = named.as_ref().filter(|tree| !tree.join("include/llama.h").is_file()) {
            let message =
                format!("{} is {}, and there is no include/llama.h in it", env::LLAMA_SOURCE, named.display());
            return Err(Error::new(message).with_help("name the folder of a llama.cpp source tree, or unset it"));
        }
        let source = match (&named, trees.iter().flatten().next()) {
            (Some(named), _) => format!("tree {}", tree::digest(named)?),
            (None, Some((_, Standing::Edited(digest)))) => format!("edited {digest}"),
            (None, _) => format!("pinned {}", pin.files.first().map_or("", |file| &file.sha256)),
        };
        let [packaged, cached] = [0, 1].map(|i| trees[i].as_ref().map(|(folder, _)| folder.clone()));
        let recipe = Recipe {
            source,
            commit: pin.commit.clone().unwrap_or_default(),
            patched: named.is_none(),
            variant: wanted.variant,
            native: env.switch(env::NATIVE_CPU)?.unwrap_or(target.is_host),
            target: target.clone(),
            user_flags: [env::CFLAGS, env::CXXFLAGS]
                .iter()
                .filter_map(|name| Some((*name, env.value(name)?.to_owned())))
                .collect(),
        };
        let (tools, toolchain) = (Tools::find(env, &cache)?, Toolchain::find(&target));
        let keys = toolchain.as_ref().map(|toolchain| recipe.keys(toolchain));
        let found = Found {
            built: keys.as_ref().is_some_and(|keys| cache.build(DOOR, &keys.door).is_dir()),
            archives: keys.as_ref().is_some_and(|keys| cache.build(ARCHIVES, &keys.archives).is_dir()),
            packaged,
            cached,
            cmake: tools.cmake.is_some(),
            generator: tools.generator.is_some(),
            compiler: toolchain.is_some(),
            pkg_config: env.on_path("pkg-config").is_some(),
            lacks: toolchain.as_ref().map(|toolchain| lacks(wanted, toolchain, env)).unwrap_or_default(),
        };
        Ok(Self { cache, pin, wanted, target, env: env.clone(), tools, toolchain, recipe, keys, found, looked })
    }

    /// Settles where it comes from.
    ///
    /// # Errors
    /// The refusal says what is missing.
    pub fn choose(&self) -> Result<Source, Refusal> {
        choose::choose(self.wanted, &self.env, &self.target, &self.found)
    }

    /// What was looked for and not found, a line each.
    pub fn looked(&self) -> &[String] {
        &self.looked
    }

    /// The source tree that counts, if there is one: a change in it makes another build.
    pub fn tree(&self) -> Option<PathBuf> {
        let named = self.env.path(env::LLAMA_SOURCE);
        named.or_else(|| self.found.packaged.clone()).or_else(|| self.found.cached.clone())
    }

    /// What was found.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The compilers.
    ///
    /// # Errors
    /// There are none.
    pub fn toolchain(&self) -> Result<&Toolchain> {
        self.toolchain.as_ref().ok_or_else(|| Error::new(Refusal::NoCompiler.to_string()))
    }

    /// The folder of the build this makes, whether it is there or not.
    ///
    /// # Errors
    /// There is no compiler, so no key.
    pub fn folder(&self) -> Result<PathBuf> {
        Ok(self.cache.build(DOOR, &self.keys()?.door))
    }

    /// The folder of llama.cpp's archives for it, whether they are there or not.
    ///
    /// # Errors
    /// As [`Llama::folder`].
    pub fn archives_folder(&self) -> Result<PathBuf> {
        Ok(self.cache.build(ARCHIVES, &self.keys()?.archives))
    }

    /// Builds the archives of `tree` and the door into the cache, each unless the very build is there.
    ///
    /// # Errors
    /// A tool is missing, or the build failed.
    pub fn build(&self, host: &Host, tree: &Tree, progress: &mut dyn Progress) -> Result<Installed> {
        self.archives(host, tree.path(), progress)?;
        self.door(host, progress)
    }

    /// Makes the door of the cache's archives, unless it is there.
    ///
    /// # Errors
    /// The build failed.
    pub fn door(&self, host: &Host, progress: &mut dyn Progress) -> Result<Installed> {
        let (folder, keys) = (self.folder()?, self.keys()?);
        let archives = self.archives_folder()?;
        let log = self.log(&folder);
        self.cache.install(&folder, progress, |folder, progress| {
            progress.start(&format!("making the door of llama.cpp {}", self.short_commit()));
            self.recipe.door(host, &archives, folder, &log, progress)?;
            fixtures::write(&folder.join("made-of.txt"), keys.door.text())?;
            progress.finish(&format!("log {}", log.display()));
            Ok(())
        })
    }

    /// The folder of upstream's own [`PROGRAMS`], whether they are there or not.
    ///
    /// # Errors
    /// As [`Llama::folder`].
    pub fn programs_folder(&self) -> Result<PathBuf> {
        Ok(self.cache.build(PEERS, &self.keys()?.programs))
    }

    /// Upstream's own [`PROGRAMS`], built from `tree` (a whole one) and linked with the archives in the cache (made of it where they
    /// are not there), unless they are there.
    ///
    /// # Errors
    /// A tool is missing, or the build failed.
    pub fn programs(&self, host: &Host, tree: &Path, progress: &mut dyn Progress) -> Result<Installed> {
        let archives = self.archives(host, tree, progress)?.path;
        let what = format!("{} of llama.cpp", PROGRAMS.join(", "));
        self.cmake(host, &Product::Programs(archives), tree, &self.programs_folder()?, &what, progress)
    }

    fn archives(&self, host: &Host, tree: &Path, progress: &mut dyn Progress) -> Result<Installed> {
        self.cmake(host, &Product::Archives, tree, &self.archives_folder()?, "llama.cpp", progress)
    }

    fn cmake(
        &self,
        host: &Host,
        product: &Product,
        tree: &Path,
        folder: &Path,
        what: &str,
        progress: &mut dyn Progress,
    ) -> Result<Installed> {
        let missing = |refusal: Refusal| Error::new(refusal.to_string());
        let cmake = self.tools.cmake.as_ref().ok_or_else(|| missing(Refusal::NoCmake))?;
        let generator = self.tools.generator.as_ref().ok_or_else(|| missing(Refusal::NoGenerator))?;
        let keys = self.keys()?;
        let log = self.log(folder);
        let path = self.env.path_with(generator.program().parent());
        self.cache.install(folder, progress, |folder, progress| {
            progress.start(&format!(
                "building {what} {} ({}, {})",
                self.short_commit(),
                self.wanted.variant,
                self.cpu()
            ));
            let with = With { cmake, generator, jobs: self.jobs(), log: &log, path: &path };
            self.recipe.cmake(host, product, tree, &with, folder, progress)?;
            let made_of = match product {
                Product::Archives => &keys.archives,
                Product::Programs(_) => &keys.programs,
            };
            fixtures::write(&folder.join("made-of.txt"), made_of.text())?;
            progress.finish(&format!("log {}", log.display()));
            Ok(())
        })
    }

    fn keys(&self) -> Result<&Keys> {
        self.keys.as_ref().ok_or_else(|| Error::new(Refusal::NoCompiler.to_string()))
    }

    fn log(&self, folder: &Path) -> PathBuf {
        self.cache.log(&folder.file_name().unwrap_or_default().to_string_lossy())
    }

    /// The first digits of the pinned commit.
    pub fn short_commit(&self) -> &str {
        &self.recipe.commit[..12]
    }

    fn cpu(&self) -> &'static str {
        if self.recipe.native { "for this CPU" } else { "portable" }
    }

    fn jobs(&self) -> usize {
        let asked = self.env.text("NUM_JOBS").ok().flatten().and_then(|jobs| jobs.parse().ok());
        asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into))
    }
}

/// What `wanted` is built with and is not there.
fn lacks(wanted: Wanted, toolchain: &Toolchain, env: &Env) -> Vec<Need> {
    let needs = if wanted.link { wanted.variant.needs() } else { &[] };
    needs.iter().copied().filter(|need| !toolchain.has(*need, env)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::choose::Variant;

    /// Where a build of the tree the user names goes, with this folder for a cache.
    fn folder_for(tree: &Path, cache: &Path) -> PathBuf {
        let env = Env::of([(env::LLAMA_SOURCE, tree), (env::CACHE, cache)]);
        let wanted = Wanted { link: true, variant: Variant::Cpu };
        Llama::look(&env, wanted, Target::host(), None).unwrap().folder().unwrap()
    }

    #[test]
    fn a_touched_native_header_makes_another_build_and_a_touched_rust_file_does_not() {
        let scratch = std::env::temp_dir().join(format!("infer-llama-{}", std::process::id()));
        let (tree, cache) = (scratch.join("tree"), scratch.join("cache"));
        fs::create_dir_all(tree.join("include")).unwrap();
        let header = tree.join("include/llama.h");
        fs::write(&header, "int a;\n").unwrap();
        let before = folder_for(&tree, &cache);
        fs::write(scratch.join("lib.rs"), "fn a() {}\n").unwrap();
        assert_eq!(folder_for(&tree, &cache), before);
        fs::write(&header, "int b;\n").unwrap();
        let after = folder_for(&tree, &cache);
        assert_ne!(after, before);
        fs::write(&header, "int a;\n").unwrap();
        assert_eq!(folder_for(&tree, &cache), before, "and taken back, the first is found again");
        fs::remove_dir_all(scratch).unwrap();
    }

    #[test]
    fn what_a_variant_is_built_with_is_looked_for_first() {
        let env = Env::of([(env::CACHE, "/no/such/cache")]);
        let wanted = Wanted { link: true, variant: Variant::Vulkan };
        let target = Target::new("x86_64-unknown-linux-gnu", &Target::host().triple);
        let llama = Llama::look(&env, wanted, target, None).unwrap();
        let Err(Refusal::Needs(Variant::Vulkan, lacks)) = llama.choose() else { panic!("{:?}", llama.choose()) };
        // No path is in that environment, so that no program is found; whether the headers are, depends on the machine.
        assert!(lacks.contains(&Need::Program("glslc")), "{lacks:?}");
        let compiler = Toolchain::find(&Target::host()).unwrap();
        assert!(compiler.has(Need::Header("vector"), &env) && !compiler.has(Need::Header("no/such.h"), &env));
        assert!(compiler.has(Need::Library("m"), &env) && !compiler.has(Need::Library("no-such"), &env));
    }

    #[test]
    fn what_is_not_there_is_said_with_its_place() {
        let env = Env::of([(env::CACHE, "/no/such/cache")]);
        let wanted = Wanted { link: true, variant: Variant::Cpu };
        let llama = Llama::look(&env, wanted, Target::host(), Some(Path::new("/no/such/package"))).unwrap();
        assert_eq!(llama.choose(), Err(Refusal::NoSource));
        assert_eq!(llama.tree(), None);
        let looked = llama.looked().join("\n");
        assert!(
            looked.contains("/no/such/package/vendor/llama.cpp") && looked.contains("/no/such/cache/sources"),
            "{looked}"
        );
    }
}
