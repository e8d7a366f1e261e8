//! Where the door to MLX is looked for, and which library is refused. What holds for every runtime is tried at `loading`, in every corner; here
//! is what MLX adds: a door that is of a version, and needs libraries of its own.
//!
//! Every case runs in a child process: a library that should have been refused could do anything to this one.

mod library;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use infer_sys::LoadOptions;
use infer_sys::mlx::{Api, VERSION};
use library::{Fake, file_name, hash_file, put_into_cache};

const TASK: &str = "LOADING_TASK";
const PATHS: &str = "LOADING_PATHS";

/// What a child writes before each answer.
const ANSWER: &str = "answer: ";

/// What a child is to load: what a search finds, unless it is told paths.
struct Child(Command);

impl Child {
    fn new() -> Self {
        Self::of(&std::env::current_exe().unwrap())
    }

    /// By a copy of this program.
    fn of(program: &Path) -> Self {
        let mut command = Command::new(program);
        command.args(["--exact", "child", "--nocapture", "--test-threads=1"]).env(TASK, "load");
        for name in ["INFER_MLX_LIBRARY", "INFER_CACHE", "XDG_CACHE_HOME", "HOME", "LD_LIBRARY_PATH"] {
            command.env_remove(name);
        }
        Self(command)
    }

    fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    /// Loads each of these, in this order and in one process.
    fn paths(self, paths: &[&Path]) -> Self {
        let paths: Vec<&OsStr> = paths.iter().map(|path| path.as_os_str()).collect();
        self.env(PATHS, paths.join(OsStr::new("\n")))
    }

    /// Lists what is there.
    fn installed(self) -> Self {
        self.env(TASK, "installed")
    }

    /// What it answered to each path, and all that it wrote.
    fn run(mut self) -> (Vec<String>, String) {
        let output = test_kit::child::output(&mut self.0);
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "the child ended with {}:\n{text}", output.status);
        let answers = text.lines().filter_map(|line| line.strip_prefix(ANSWER)).map(str::to_owned).collect();
        (answers, text)
    }

    fn answers(self) -> Vec<String> {
        self.run().0
    }

    /// Something was refused, and these words are in what was said. Returns it all.
    fn refuses(self, words: &[&str]) -> String {
        let (answers, text) = self.run();
        assert!(answers.iter().any(|answer| answer == "refused"), "not refused:\n{text}");
        for word in words {
            assert!(text.contains(word), "{word:?} is not in\n{text}");
        }
        text
    }
}

/// The child's side.
#[test]
fn child() {
    let Ok(task) = std::env::var(TASK) else { return };
    let options = LoadOptions::new();
    let load = |options: &LoadOptions| match Api::load(options) {
        Ok(api) => format!("served: {} {}", api.version(), api.variant()),
        Err(error) => {
            eprintln!("{error}");
            "refused".to_owned()
        }
    };
    let paths = std::env::var(PATHS).unwrap_or_default();
    let answers: Vec<String> = match (&*task, &*paths) {
        ("installed", _) => Api::installed(&options)
            .iter()
            .map(|one| match one.door() {
                Ok(api) => format!("{} has {}", one.place(), api.version()),
                Err(refusal) => format!("{} has none: {refusal}; {}", one.place(), one.remedy().unwrap_or_default()),
            })
            .collect(),
        (_, "") => vec![load(&options)],
        (_, paths) => paths.split('\n').map(|path| load(&options.clone().with_path(path))).collect(),
    };
    for answer in answers {
        println!("\n{ANSWER}{answer}");
    }
}

fn served() -> Vec<String> {
    vec![format!("served: {VERSION} cpu")]
}

#[test]
fn a_right_library_serves_by_path_by_variable_from_the_cache_and_beside_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = Fake::default().build(&folder.path().join("anything.so"));
    assert_eq!(Child::new().paths(&[&path]).answers(), served());
    assert_eq!(Child::new().env("INFER_MLX_LIBRARY", &path).answers(), served());
    let cache = folder.path().join("cache");
    put_into_cache(&cache, "cpu", &path, &[]);
    let other = Child::new().env("INFER_CACHE", &cache).env("INFER_LLAMA_LIBRARY", "/no/such/library.so");
    assert_eq!(other.answers(), served(), "llama.cpp's variable is not ours");
    assert_eq!(Child::new().env("INFER_CACHE", &cache).installed().answers(), [format!("the cache has {VERSION}")]);

    let bin = folder.path().join("prefix/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(folder.path().join("prefix/lib")).unwrap();
    let program = bin.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for beside in [format!("bin/{}", file_name()), format!("lib/{}", file_name())] {
        let beside = folder.path().join("prefix").join(beside);
        fs::copy(&path, &beside).unwrap();
        assert_eq!(Child::of(&program).answers(), served(), "{}", beside.display());
        fs::remove_file(&beside).unwrap();
    }
}

#[test]
fn a_library_that_is_none_or_of_another_version_is_refused_by_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, fake: Fake, words: &[&str]| {
        let path = fake.build(&folder.path().join(name));
        Child::new().paths(&[&path]).refuses(words)
    };
    let with = |name: &str, value: &str| Fake::default().with(name, value);
    let wanted = format!("wanted MLX {VERSION}, door version 1");
    refused("older.so", with("PINNED", "\"0.30.0\""), &[&wanted, "\"0.30.0\" found", "infer setup mlx"]);
    refused("another.so", with("RELEASE", "\"0.33.0\""), &["\"0.33.0\" found"]);
    refused("unnamed.so", with("RELEASE", "NULL"), &["\"\" found"]);
    refused("version.so", with("VERSION", "7"), &["door version 1 wanted, 7 found"]);
    refused("size.so", with("SIZE", "8"), &["of 8 found"]);
    refused("struct.so", with("SIZEOF_ARRAY_INFO", "4"), &["struct infer_mlx_array_info", "of 4 found"]);
    refused("entry.so", with("MISSING_ENTRY", "kv_write"), &["the entry kv_write of the table is NULL"]);
    refused("none.so", with("NO_TABLE", "1"), &["the door returned no table"]);
    refused("symbol.so", with("NO_SYMBOL", "1"), &["not a door", "infer_mlx_api"]);
    fs::write(folder.path().join("text.so"), "not a library").unwrap();
    Child::new().paths(&[&folder.path().join("text.so")]).refuses(&["not loadable"]);
    Child::new().paths(&[folder.path()]).refuses(&["not a regular file"]);
    Child::new().paths(&[Path::new("libinfer_mlx.so")]).refuses(&["the path is not absolute"]);
    let right = Fake::default().build(&folder.path().join("right.so"));
    let wrong = folder.path().join("version.so");
    let answers = Child::new().paths(&[&wrong, &right, &wrong, &right]).answers();
    assert_eq!(answers, ["refused", &served()[0], "refused", &served()[0]], "one that was refused is in nobody's way");
}

#[test]
fn where_there_is_none_every_place_is_named_and_the_ways_out() {
    let folder = tempfile::tempdir().unwrap();
    Fake::default().build(&folder.path().join(file_name()));
    let text =
        Child::new().env("INFER_CACHE", folder.path().join("cache")).env("LD_LIBRARY_PATH", folder.path()).refuses(&[
            &format!("wanted MLX {VERSION}"),
            "the environment variable INFER_MLX_LIBRARY: not set",
            &format!("cache/mlx/{VERSION}/cpu/{}: No such file", file_name()),
            "beside this program: ",
            "in ../lib of this program: ",
            "`infer setup mlx` builds it into the cache",
            "INFER_MLX_LIBRARY, or in code",
        ]);
    assert!(!text.contains("\nloaded "), "the linker's path is not looked in: {text}");
    let cache = folder.path().join("others");
    put_into_cache(&cache, "metal", &folder.path().join(file_name()), &[]);
    Child::new().env("INFER_CACHE", &cache).refuses(&["metal"]);
    let answers = Child::new().env("INFER_CACHE", &cache).installed().answers();
    assert!(answers[0].contains("variant \"metal\" wanted, \"cpu\" found"), "{answers:?}");
}

/// A door of the cache is loaded from an open file, so that what it needs is not looked for beside it: its hash says what that is.
#[cfg(target_os = "linux")]
#[test]
fn what_the_door_needs_is_checked_and_opened_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let needed = library::needed(&folder.path().join("libneeded.so"));
    let door = Fake::default().with("NEEDS", "1").linked_with(&needed).build(&folder.path().join("door.so"));
    assert_eq!(Child::new().paths(&[&door]).answers(), served(), "by a path, the loader finds it beside the door");

    let cache = folder.path().join("cache");
    let loads = || Child::new().env("INFER_CACHE", &cache);
    let path = put_into_cache(&cache, "cpu", &door, &[&needed]);
    assert_eq!(loads().answers(), served());
    let beside = path.with_file_name("libneeded.so");

    let bytes = fs::read(&beside).unwrap();
    fs::write(&beside, "damaged").unwrap();
    let text = loads().refuses(&["it needs", "libneeded.so", "its sha256 should be"]);
    assert!(!text.contains("\nloaded "), "nothing of it has run: {text}");
    let answers = loads().installed().answers();
    assert!(answers[0].contains("it needs") && answers[0].contains("`infer setup mlx`"), "{answers:?}");
    fs::remove_file(&beside).unwrap();
    loads().refuses(&["it needs", "No such file"]);
    fs::write(&beside, bytes).unwrap();
    assert_eq!(loads().answers(), served(), "put back, it serves");

    let hashes = fs::read_to_string(hash_file(&path)).unwrap();
    let own = hashes.lines().next().unwrap();
    for (line, words) in [
        ("0123".to_owned(), "its hash is not known"),
        (own.replace(file_name(), "../door.so"), "names no file of its folder"),
        (own.split("  ").next().unwrap().to_owned(), "names no file of its folder"),
    ] {
        fs::write(hash_file(&path), format!("{own}\n{line}\n")).unwrap();
        loads().refuses(&[words]);
    }
    fs::write(hash_file(&path), format!("{own}\n")).unwrap();
    loads().refuses(&["not loadable", "libneeded.so"]);
}

/// The library that `cargo xtask setup` made.
#[cfg(target_os = "linux")]
mod the_real_one {
    use super::*;

    fn real() -> std::path::PathBuf {
        build_support::mlx::library().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn it_exports_the_door_alone() {
        let output = Command::new("nm").args(["--dynamic", "--defined-only"]).arg(real()).output();
        let text = String::from_utf8(output.expect("this test needs nm, of binutils").stdout).unwrap();
        let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(names, ["infer_mlx_api"]);
    }

    #[test]
    fn its_folder_serves_wherever_it_lies_and_the_door_alone_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, alone) = (folder.path().join("whole"), folder.path().join("alone"));
        for to in [&whole, &alone] {
            fs::create_dir(to).unwrap();
        }
        for entry in fs::read_dir(real().parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, whole.join(path.file_name().unwrap())).unwrap();
        }
        fs::copy(real(), alone.join(file_name())).unwrap();
        assert_eq!(Child::new().paths(&[&whole.join(file_name())]).answers(), served());
        Child::new().paths(&[&alone.join(file_name())]).refuses(&["not loadable", "libmlx.so"]);
        // Two of them in one process: the loader knows MLX by its name, so that both doors lead to one MLX.
        assert_eq!(Child::new().paths(&[&whole.join(file_name()), &real()]).answers(), [served(), served()].concat());
    }
}
