//! The door made of the cache's archives, by the same path a build script takes. A program of its own rather than a test of
//! the harness, because a native build runs in a child that is this executable started again.
//!
//! Needs what `cargo xtask setup` brings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use build_support::cache::sha256_file;
use build_support::choose::{Source, Target, Variant, Wanted};
use build_support::door::PROBE_PROGRAM;
use build_support::env::{self, Env};
use build_support::llama::Llama;
use build_support::{Silent, begin, cache::Cache};

fn main() {
    let host = begin();
    let wanted = Wanted { link: true, variant: Variant::Cpu };
    let env = Env::from_process();
    let ready = Llama::look(&env, wanted, Target::host(), None).unwrap();
    assert_eq!(ready.choose(), Ok(Source::Built), "run cargo xtask setup first");

    // A cache that has the archives and nothing else: no source, no tools, no door.
    let scratch = Scratch::new();
    let archives = ready.archives_folder().unwrap();
    let copied = scratch.0.join("build").join(archives.file_name().unwrap());
    copy(&archives, &copied);
    if cfg!(target_os = "linux") {
        // As an archive is that was built from a tree without our patches.
        add_a_terminate_handler(&copied.join("libggml-base.a"), &scratch.0);
    }
    let env = env.with(env::CACHE, &scratch.0);
    let llama = Llama::look(&env, wanted, Target::host(), None).unwrap();
    assert_eq!(llama.choose(), Ok(Source::Archives));

    let made = llama.door(&host, &mut Silent).unwrap();
    assert!(made.fresh);
    assert!(!llama.door(&host, &mut Silent).unwrap().fresh, "made once");
    let again = Llama::look(&env, wanted, Target::host(), None).unwrap();
    assert_eq!(again.choose(), Ok(Source::Built));
    assert_eq!(again.folder().unwrap(), made.path);
    assert!(Cache::from_env(&env).unwrap().log(&name(&made.path)).exists(), "its log is kept");
    assert!(!made.path.join("scratch").exists());

    if cfg!(target_os = "linux") {
        one_name_is_left(&made.path.join("libinfer_llama.a"), &["-g"]);
        one_name_is_left(&made.path.join("libinfer_llama.so"), &["-D"]);
        the_hash_beside_is_the_librarys(&made.path.join("libinfer_llama.so"));
        the_hash_beside_is_the_librarys(&made.path.join(PROBE_PROGRAM));
        the_probe_likes_it(&made.path.join(PROBE_PROGRAM), &made.path.join("libinfer_llama.so"));
        no_debugger_is_forked(&made.path.join("libinfer_llama.so"));
        assert_eq!(
            sha256_file(&made.path.join("libinfer_llama.so")).unwrap(),
            sha256_file(&ready.folder().unwrap().join("libinfer_llama.so")).unwrap(),
            "the same bytes, wherever the cache lies"
        );
    }
    println!("ok: the door of the cache's archives");
}

fn one_name_is_left(library: &Path, flags: &[&str]) {
    let output = Command::new("nm").args(flags).arg("--defined-only").arg(library).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> = text.lines().filter(|line| line.starts_with('0')).collect();
    assert!(names.len() == 1 && names[0].ends_with(" T infer_llama_api"), "{}: {text}", library.display());
}

fn the_hash_beside_is_the_librarys(library: &Path) {
    let beside = fs::read_to_string(format!("{}.sha256", library.display())).unwrap();
    assert_eq!(beside, format!("{}  {}\n", sha256_file(library).unwrap(), name(library)));
}

fn the_probe_likes_it(probe: &Path, library: &Path) {
    let answer = |library: &Path| {
        let output = test_kit::child::output(Command::new(probe).arg(library).arg("60"));
        assert!(output.status.success(), "{}", output.status);
        String::from_utf8(output.stdout).unwrap()
    };
    let good = answer(library);
    assert!(good.starts_with("infer-llama-probe ") && good.ends_with("\ndevice CPU\ndone\n"), "{good}");
    let bad = answer(Path::new("/no/such/library.so"));
    assert!(bad.contains("\nunloadable ") && bad.ends_with("\ndone\n"), "{bad}");
}

/// ggml's backtrace names the debuggers it would start; patched out, the names are gone with the code.
fn no_debugger_is_forked(library: &Path) {
    let bytes = fs::read(library).unwrap();
    for word in [&b"TracerPid"[..], b"--batch", b"lldb"] {
        assert!(!bytes.windows(word.len()).any(|window| window == word), "{}", String::from_utf8_lossy(word));
    }
}

/// Adds the member in which ggml installs its terminate handler, with a name in it that the test looks for.
fn add_a_terminate_handler(archive: &Path, folder: &Path) {
    let (source, object) = (folder.join("handler.c"), folder.join("ggml.cpp.o"));
    fs::write(&source, "const char * handler = \"lldb\"; __attribute__((constructor)) static void install(void) {}")
        .unwrap();
    let compiled = Command::new("cc").arg("-c").arg(&source).arg("-o").arg(&object).status().unwrap();
    let added = Command::new("ar").arg("r").arg(archive).arg(&object).status().unwrap();
    assert!(compiled.success() && added.success());
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("infer-door-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
