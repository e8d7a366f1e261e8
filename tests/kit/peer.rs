//! The C program of `benches/peers`, over the very object that the Rust crates link.

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
    thread,
};

/// Greedy decoding in C.
#[derive(Debug)]
pub struct Greedy {
    program: PathBuf,
}

impl Greedy {
    /// Compiles the program into `folder`, which takes a second or two.
    ///
    /// # Errors
    /// There is no build of llama.cpp in the cache, no source tree with its headers, or no C compiler: says which.
    pub fn build(folder: &Path) -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let env = Env::from_process();
        let (target, variant) = (Target::host(), Variant::from_env(&env).map_err(text)?);
        let llama = Llama::look(&env, Wanted { link: true, variant }, target.clone(), None).map_err(text)?;
        let library = present(llama.folder().map_err(text)?.join("libinfer_llama.a"))?;
        let (cache, pin) = (Cache::from_env(&env).map_err(text)?, Pin::named("llama").map_err(text)?);
        let headers = present(cache.source(&tree::name(&pin, variant)))?;
        let program = folder.join(format!("greedy-{}", std::process::id()));

        let mut cc = Command::new(env.value(build_support::env::CC).unwrap_or("cc".as_ref()));
        cc.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
        for folder in [root.join("build-support/shim"), headers.join("include"), headers.join("ggml/include")] {
            cc.arg("-I").arg(folder);
        }
        cc.arg(root.join("benches/peers/greedy.c")).arg(library);
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
        Ok(Self { program })
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
        let mut input = Vec::new();
        for prompt in prompts {
            input.extend_from_slice(prompt.as_ref().as_bytes());
            input.push(0);
        }
        let mut child = Command::new(&self.program)
            .arg(model)
            .args([settings.threads, settings.context, settings.count].map(|number| number.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        let mut stdin = child.stdin.take().expect("piped");
        let writer = thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().map_err(text)?;
        let written = writer.join().expect("the writer does not panic");
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        written.map_err(text)?;
        let lines = String::from_utf8(output.stdout).map_err(text)?;
        let runs: Vec<greedy::Run> = lines.lines().map(str::parse).collect::<Result<_, _>>()?;
        if runs.len() == prompts.len() { Ok(runs) } else { Err(format!("{} runs of {}", runs.len(), prompts.len())) }
    }
}

impl Drop for Greedy {
    fn drop(&mut self) {
        // One that stays behind lies in the build folder, where it harms nobody.
        let _ = std::fs::remove_file(&self.program);
    }
}

fn present(path: PathBuf) -> Result<PathBuf, String> {
    if path.exists() { Ok(path) } else { Err(format!("{} is not there; run: cargo xtask setup", path.display())) }
}

fn text(error: impl Display) -> String {
    error.to_string()
}
