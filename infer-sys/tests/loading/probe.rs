//! Children: this very binary, run again with a task in its environment.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use infer_sys::llama::Api;
use infer_sys::{Installed, LoadOptions};

use crate::SERVED;

const TASK: &str = "LOADING_TASK";
const LIST: &str = "LOADING_LIST";
const CACHE: &str = "LOADING_CACHE";
const VARIANT: &str = "LOADING_VARIANT";
const PROBE: &str = "LOADING_PROBE";
const SECONDS: &str = "LOADING_SECONDS";
const IGNORING: &str = "LOADING_IGNORING";

/// What a child is to load.
pub(crate) struct Probe {
    command: Command,
}

impl Probe {
    pub(crate) fn new() -> Self {
        Self { command: Command::new(std::env::current_exe().unwrap()) }.clean()
    }

    /// Another program than this one: a copy of it.
    pub(crate) fn program(self, program: &Path) -> Self {
        let mut command = Command::new(program);
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Self { command }.clean()
    }

    /// Without what the caller's environment has to say.
    fn clean(mut self) -> Self {
        self.command.args(["--exact", "child", "--nocapture", "--test-threads=1"]);
        for name in ["INFER_LLAMA_LIBRARY", "INFER_CACHE", "XDG_CACHE_HOME", "HOME"] {
            self.command.env_remove(name);
        }
        self.task("search")
    }

    /// In a process that ignores the ends of its children.
    pub(crate) fn ignoring_children(self) -> Self {
        self.env(IGNORING, "yes")
    }

    fn task(self, task: &str) -> Self {
        self.env(TASK, task)
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    pub(crate) fn variable(self, path: &Path) -> Self {
        self.env("INFER_LLAMA_LIBRARY", path)
    }

    pub(crate) fn cache(self, cache: &Path) -> Self {
        self.env(CACHE, cache)
    }

    pub(crate) fn variant(self, variant: &str) -> Self {
        self.env(VARIANT, variant)
    }

    /// Whether the library must be tried in a child of the child's first, or must not.
    pub(crate) fn probed(self, probed: bool) -> Self {
        self.env(PROBE, if probed { "always" } else { "never" })
    }

    /// How long that may take.
    pub(crate) fn seconds(self, seconds: u64) -> Self {
        self.env(SECONDS, seconds.to_string())
    }

    pub(crate) fn path(self, path: &Path) -> Self {
        self.paths(&[path])
    }

    /// Several paths, one after the other.
    pub(crate) fn paths(self, paths: &[&Path]) -> Self {
        self.task("paths").env(LIST, paths.join_lines())
    }

    /// Several variants out of the cache, one after the other.
    pub(crate) fn variants(self, variants: &[&str]) -> Self {
        self.task("variants").env(LIST, variants.join_lines())
    }

    /// Everything there is.
    pub(crate) fn installed(self) -> Self {
        self.task("installed")
    }

    /// … all at the same time.
    pub(crate) fn at_once(self) -> Self {
        self.task("at once")
    }

    pub(crate) fn run(mut self) -> Run {
        let output = test_kit::child::output(&mut self.command);
        let run = Run { text: text(&output), output };
        assert!(run.output.status.success(), "the child ended with {}:\n{}", run.output.status, run.text);
        run
    }
}

trait JoinLines {
    fn join_lines(&self) -> OsString;
}

impl<T: AsRef<OsStr>> JoinLines for [T] {
    fn join_lines(&self) -> OsString {
        self.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(OsStr::new("\n"))
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What became of a child.
pub(crate) struct Run {
    output: Output,
    text: String,
}

impl Run {
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter_map(|line| line.find("answer: ").map(|at| &line[at + 8..]))
    }

    pub(crate) fn answer(&self) -> &str {
        self.lines().find(|line| line.starts_with(SERVED)).unwrap_or_else(|| panic!("nothing served:\n{}", self.text))
    }

    /// The variants that served, or "refused".
    pub(crate) fn answers(&self) -> Vec<&str> {
        self.lines()
            .filter(|line| !line.starts_with(' '))
            .map(|line| line.strip_prefix(SERVED).unwrap_or(line))
            .collect()
    }

    pub(crate) fn refuses(&self, words: &[&str]) {
        assert!(self.lines().any(|line| line == "refused"), "not refused:\n{}", self.text);
        for word in words {
            assert!(self.text.contains(word), "{word:?} is not in\n{}", self.text);
        }
    }

    /// No initialiser of any of the libraries ran.
    pub(crate) fn loaded_nothing(&self) {
        assert!(!self.text.contains("loaded "), "{}", self.text);
    }
}

/// The child's side.
pub(crate) fn probe() {
    let Some(task) = std::env::var_os(TASK) else { return };
    let mut options = LoadOptions::new();
    if let Some(cache) = std::env::var_os(CACHE) {
        options = options.with_cache(PathBuf::from(cache));
    }
    if let Ok(variant) = std::env::var(VARIANT) {
        options = options.with_variant(variant);
    }
    if let Ok(probed) = std::env::var(PROBE) {
        options = options.with_probe(probed == "always");
    }
    if let Ok(seconds) = std::env::var(SECONDS) {
        options = options.with_probe_time(Duration::from_secs(seconds.parse().unwrap()));
    }
    if std::env::var_os(IGNORING).is_some() {
        // SAFETY: no handler is installed, and no other thread of this process waits for a child.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    }
    let list = std::env::var(LIST).unwrap_or_default();
    let list: Vec<&str> = list.split('\n').collect();
    let of = |item: &str| match task.to_str() {
        Some("paths") => options.clone().with_path(item),
        Some("variants" | "at once") => options.clone().with_variant(item),
        _ => options.clone(),
    };
    let load = |item: &str| match Api::load(&of(item)) {
        Ok(api) => format!("{SERVED}{}", api.variant()),
        Err(error) => {
            eprintln!("{error}");
            "refused".to_owned()
        }
    };
    let found = |one: &Installed<Api>| match one.door() {
        Ok(api) => format!("{} has {}", one.place(), api.variant()),
        Err(refusal) => {
            let remedy = one.remedy().map_or(String::new(), |remedy| format!("; {remedy}"));
            format!("{} has none: {refusal}{remedy}", one.place())
        }
    };
    let answers: Vec<String> = if task == "installed" {
        Api::installed(&options).iter().map(found).collect()
    } else if task == "at once" {
        let start = std::sync::Barrier::new(list.len());
        std::thread::scope(|scope| {
            let threads: Vec<_> = list
                .iter()
                .map(|item| {
                    scope.spawn(|| {
                        start.wait();
                        load(item)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    } else {
        list.iter().map(|item| load(item)).collect()
    };
    for answer in answers {
        println!("\nanswer: {answer}");
    }
}

/// A copy of this program that runs with another group's rights, where that can be had.
pub(crate) fn raised(folder: &Path) -> Option<PathBuf> {
    let program = folder.join("raised");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let own = fs::metadata(&program).unwrap().gid();
    let groups = Command::new("id").arg("-G").output().unwrap();
    let groups = String::from_utf8(groups.stdout).unwrap();
    // Root may give the file to any group; others to the groups they are in.
    let mut groups: Vec<u32> = groups.split_whitespace().filter_map(|group| group.parse().ok()).collect();
    groups.push(65534);
    groups.into_iter().filter(|group| *group != own).find(|group| chown(&program, None, Some(*group)).is_ok())?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o2755)).unwrap();
    is_secure(&program).then_some(program)
}

/// Whether the kernel tells that program to be careful.
fn is_secure(program: &Path) -> bool {
    let mut show = Command::new(program);
    show.env(TASK, "search").env("LD_SHOW_AUXV", "1").args(["--exact", "child"]);
    // The loader itself ignores its variables there: nothing is shown.
    !text(&test_kit::child::output(&mut show)).contains("AT_SECURE")
}
