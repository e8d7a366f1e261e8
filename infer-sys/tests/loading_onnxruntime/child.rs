//! Children: this very binary, run again with a task in its environment.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::thread;

use infer_sys::LoadOptions;
use infer_sys::onnxruntime::Api;

const TASK: &str = "LOADING_TASK";
const PATHS: &str = "LOADING_PATHS";
const PROBED: &str = "LOADING_PROBED";

/// What a child writes before each answer.
const ANSWER: &str = "answer: ";

/// What a child is to load: what a search finds, unless it is told paths.
pub(crate) struct Child {
    command: Command,
}

impl Child {
    pub(crate) fn new() -> Self {
        Self::of(&std::env::current_exe().unwrap())
    }

    /// By a copy of this program.
    pub(crate) fn of(program: &Path) -> Self {
        let mut command = Command::new(program);
        command.args(["--exact", "child", "--nocapture", "--test-threads=1"]).env(TASK, "one by one");
        for name in ["INFER_ONNXRUNTIME_LIBRARY", "INFER_CACHE", "XDG_CACHE_HOME", "HOME"] {
            command.env_remove(name);
        }
        Self { command }
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn in_folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Loads each of these, in this order and in one process.
    pub(crate) fn paths(self, paths: &[&Path]) -> Self {
        let paths: Vec<&OsStr> = paths.iter().map(|path| path.as_os_str()).collect();
        self.env(PATHS, paths.join(OsStr::new("\n")))
    }

    /// … all at the same moment.
    pub(crate) fn at_once(self) -> Self {
        self.env(TASK, "at once")
    }

    /// Lists what is there.
    pub(crate) fn installed(self) -> Self {
        self.env(TASK, "installed")
    }

    /// Refuses what cannot be tried first.
    pub(crate) fn probed(self) -> Self {
        self.env(PROBED, "always")
    }

    /// What it answered to each path, and all that it wrote.
    fn run(mut self) -> (Vec<String>, String) {
        let output = test_kit::child::output(&mut self.command);
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "the child ended with {}:\n{text}", output.status);
        let answers = text.lines().filter_map(|line| line.strip_prefix(ANSWER)).map(str::to_owned).collect();
        (answers, text)
    }

    pub(crate) fn answers(self) -> Vec<String> {
        self.run().0
    }

    /// Something was refused, and these words are in what was said. Returns it all.
    pub(crate) fn refuses(self, words: &[&str]) -> String {
        let (answers, text) = self.run();
        assert!(answers.iter().any(|answer| answer == "refused"), "not refused:\n{text}");
        for word in words {
            assert!(text.contains(word), "{word:?} is not in\n{text}");
        }
        text
    }
}

/// The child's side.
pub(crate) fn task() {
    let Ok(task) = std::env::var(TASK) else { return };
    let mut options = LoadOptions::new();
    if std::env::var_os(PROBED).is_some() {
        options = options.with_probe(true);
    }
    let load = |options: &LoadOptions| match Api::load(options) {
        Ok(api) => format!("served: {}", api.version()),
        Err(error) => {
            eprintln!("{error}");
            "refused".to_owned()
        }
    };
    let paths = std::env::var(PATHS).unwrap_or_default();
    let all: Vec<LoadOptions> = match &*paths {
        "" => vec![options.clone()],
        paths => paths.split('\n').map(|path| options.clone().with_path(path)).collect(),
    };
    let answers: Vec<String> = match &*task {
        "installed" => Api::installed(&options)
            .iter()
            .map(|one| match one.door() {
                Ok(api) => format!("{} has {}", one.place(), api.version()),
                Err(refusal) => format!("{} has none: {refusal}; {}", one.place(), one.remedy().unwrap_or_default()),
            })
            .collect(),
        "at once" => {
            let start = Barrier::new(all.len());
            thread::scope(|scope| {
                let one = |options| {
                    start.wait();
                    load(options)
                };
                let threads: Vec<_> = all.iter().map(|options| scope.spawn(move || one(options))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            })
        }
        _ => all.iter().map(load).collect(),
    };
    for answer in answers {
        println!("\n{ANSWER}{answer}");
    }
}
