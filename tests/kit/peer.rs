//! The C programs of `benches/peers`: what llama.cpp itself makes of the same input.

use crate::greedy::{self, Settings};
use build_support::{
    cache::Cache,
    choose::{Link, Target, Variant, Wanted},
    env::Env,
    llama::Llama,
    pins::Pin,
    tree,
};
use std::{
    fmt::Display,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// A program that goes with what made it.
#[derive(Debug)]
pub(crate) struct Program(pub(crate) PathBuf);

/// What a program is linked with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Over {
    /// The very object that the Rust crates link: all it shows is the door.
    Door,
    /// llama.cpp's archives, of which that object is made: everything it has.
    Archives,
}

impl Program {
    /// Compiles `benches/peers/{name}.c` into `folder`, which takes a second or two.
    pub(crate) fn build(name: &str, over: Over, folder: &Path) -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let env = Env::from_process();
        let (target, variant) = (Target::host(), Variant::from_env(&env).map_err(text)?);
        let llama = Llama::look(&env, Wanted { link: true, variant }, target.clone(), None).map_err(text)?;
        let libraries = match over {
            Over::Door => vec![present(llama.folder().map_err(text)?.join("libinfer_llama.a"))?],
            Over::Archives => archives(&present(llama.archives_folder().map_err(text)?)?)?,
        };
        let (cache, pin) = (Cache::from_env(&env).map_err(text)?, Pin::named("llama").map_err(text)?);
        let headers = present(cache.source(&tree::name(&pin, variant)))?;
        // Tests of one process run at once.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let program = folder.join(format!("{name}-{}-{number}", std::process::id()));

        let mut cc = Command::new(env.value(build_support::env::CC).unwrap_or("cc".as_ref()));
        cc.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
        for folder in [root.join("build-support/shim"), headers.join("include"), headers.join("ggml/include")] {
            cc.arg("-I").arg(folder);
        }
        cc.arg(root.join(format!("benches/peers/{name}.c"))).args(libraries);
        for link in variant.links(&target, None) {
            match link {
                Link::Library(name) => cc.arg(format!("-l{name}")),
                Link::Framework(name) => cc.args(["-framework", name]),
            };
        }
        let output = cc.output().map_err(|error| format!("{cc:?}: {error}"))?;
        if !output.status.success() {
            return Err(format!("{cc:?}\n{}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(Self(program))
    }

    /// Runs it on a model, with numbers for arguments and texts on stdin. The lines it prints, one a text.
    fn run<P: AsRef<str>>(&self, model: &Path, numbers: &[usize], texts: &[P]) -> Result<Vec<String>, String> {
        let mut input = Vec::new();
        for text in texts {
            input.extend_from_slice(text.as_ref().as_bytes());
            input.push(0);
        }
        let mut child = Command::new(&self.0)
            .arg(model)
            .args(numbers.iter().map(usize::to_string))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.0.display()))?;
        let mut stdin = child.stdin.take().expect("piped");
        let writer = thread::spawn(move || stdin.write_all(&input));
        let output = test_kit::child::ended(child);
        let written = writer.join().expect("the writer does not panic");
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        written.map_err(text)?;
        let lines: Vec<String> = String::from_utf8(output.stdout).map_err(text)?.lines().map(str::to_owned).collect();
        match lines.len() == texts.len() {
            true => Ok(lines),
            false => Err(format!("{} lines for {} texts", lines.len(), texts.len())),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that stays behind lies in the build folder, where it harms nobody.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// llama.cpp's archives, twice: whichever needs another, that one comes after it.
fn archives(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = folder.read_dir().and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(text)?;
    let is_archive = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "a");
    let once: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).filter(is_archive).collect();
    Ok([&once[..], &once].concat())
}

/// Greedy decoding in C.
#[derive(Debug)]
pub struct Greedy(Program);

impl Greedy {
    /// Compiles the program into `folder`, which takes a second or two.
    ///
    /// # Errors
    /// There is no build of llama.cpp in the cache, no source tree with its headers, or no C compiler: says which.
    pub fn build(folder: &Path) -> Result<Self, String> {
        Program::build("greedy", Over::Door, folder).map(Self)
    }

    /// Decodes each prompt from an empty context: the whole prompt in one pass, then token by token.
    ///
    /// # Errors
    /// The program cannot be run, or says why it failed.
    pub fn run<P: AsRef<str>>(
        &self,
        model: &Path,
        settings: Settings,
        prompts: &[P],
    ) -> Result<Vec<greedy::Run>, String> {
        let numbers = [settings.threads, settings.context, settings.count];
        self.0.run(model, &numbers, prompts)?.iter().map(|line| line.parse()).collect()
    }
}

/// The work of llama.cpp's program `llama-embedding` in C.
#[derive(Debug)]
pub struct Embed(Program);

impl Embed {
    /// Compiles the program into `folder`, which takes a second or two.
    ///
    /// # Errors
    /// Those of [`Greedy::build`].
    pub fn build(folder: &Path) -> Result<Self, String> {
        Program::build("embed", Over::Door, folder).map(Self)
    }

    /// The vector of each text, of length 1, pooled as llama.cpp's number says; computed with so many threads in passes of up to
    /// `tokens` tokens.
    ///
    /// # Errors
    /// The program cannot be run, or says why it failed.
    pub fn run<P: AsRef<str>>(
        &self,
        model: &Path,
        threads: usize,
        tokens: usize,
        pooling: usize,
        texts: &[P],
    ) -> Result<Vec<Vec<f32>>, String> {
        let number = |word: &str| word.parse::<f32>().map_err(|error| format!("{word:?}: {error}"));
        let lines = self.0.run(model, &[threads, tokens, pooling], texts)?;
        lines.iter().map(|line| line.split_whitespace().map(number).collect()).collect()
    }
}

fn present(path: PathBuf) -> Result<PathBuf, String> {
    if path.exists() { Ok(path) } else { Err(format!("{} is not there; run: cargo xtask setup", path.display())) }
}

pub(crate) fn text(error: impl Display) -> String {
    error.to_string()
}
