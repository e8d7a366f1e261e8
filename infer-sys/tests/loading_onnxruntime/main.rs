//! Where ONNX Runtime's library is looked for, and which is refused. What holds for both runtimes is tried at `loading`, in every corner; here is what
//! ONNX Runtime adds.
//!
//! Every case runs in a child process: a library that should have been refused could do anything to this one.

mod child;
mod library;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use build_support::choose::Target;
use build_support::onnxruntime::{self, PROBE_PROGRAM};
use child::Child;
use infer_sys::onnxruntime::VERSION;
use library::{Fake, file_name};

#[test]
fn a_right_library_serves_by_path_by_variable_from_the_cache_and_beside_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = Fake::default().build(&folder.path().join("anything.so"));
    assert_eq!(Child::new().paths(&[&path]).answers(), ["served: 1.32.0"]);
    assert_eq!(Child::new().env("INFER_ONNXRUNTIME_LIBRARY", &path).answers(), ["served: 1.32.0"]);
    let newer = Fake::default().with("RELEASE", "\"1.40.1\"").build(&folder.path().join("newer.so"));
    assert_eq!(Child::new().paths(&[&newer]).answers(), ["served: 1.40.1"]);

    let cache = folder.path().join("cache");
    library::put_into_cache(&cache, "cpu", &path);
    assert_eq!(Child::new().env("INFER_CACHE", &cache).answers(), ["served: 1.32.0"]);
    // llama.cpp's variable is not ours.
    let other = Child::new().env("INFER_CACHE", &cache).env("INFER_LLAMA_LIBRARY", "/no/such/library.so");
    assert_eq!(other.answers(), ["served: 1.32.0"]);

    let bin = folder.path().join("prefix/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(folder.path().join("prefix/lib")).unwrap();
    let program = bin.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for beside in [format!("bin/{}", file_name()), format!("lib/{}", library::plain_name())] {
        let beside = folder.path().join("prefix").join(beside);
        fs::copy(&path, &beside).unwrap();
        assert_eq!(Child::of(&program).answers(), ["served: 1.32.0"], "{}", beside.display());
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o777)).unwrap();
        Child::of(&program).refuses(&["everybody can write the file (mode 777)"]);
        fs::remove_file(&beside).unwrap();
    }
}

#[test]
fn a_library_that_is_none_or_too_old_is_refused_by_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, fake: Fake, words: &[&str]| {
        let path = fake.build(&folder.path().join(name));
        Child::new().paths(&[&path]).refuses(words)
    };
    let with = |name: &str, value: &str| Fake::default().with(name, value);
    let old = with("RELEASE", "\"1.17.1\"").with("API", "17");
    let text = refused("old.so", old, &["ONNX Runtime 1.31 or a later 1.x", "\"1.17.1\" found"]);
    assert!(!text.contains("asked for version"), "it was asked for a table all the same: {text}");
    refused("other.so", with("RELEASE", "\"2.0.0\""), &["\"2.0.0\" found"]);
    refused("unnamed.so", with("RELEASE", "0"), &["\"\" found"]);
    refused("bytes.so", with("RELEASE", "\"\\xff\""), &["\"\u{fffd}\" found"]);
    refused("pretends.so", with("API", "30"), &["returned no table"]);
    refused("entry.so", with("MISSING_ENTRY", "427"), &["the entry number 427 of the table is NULL"]);
    refused("base.so", with("NO_BASE", "1"), &["returned no table"]);
    refused("api.so", with("BASE_API", "0"), &["the entry GetApi of the table is NULL"]);
    refused("version.so", with("BASE_VERSION", "0"), &["the entry GetVersionString of the table is NULL"]);
    refused("symbol.so", with("NO_BASE_SYMBOL", "1"), &["not a door", "OrtGetApiBase"]);
    fs::write(folder.path().join("text.so"), "not a library").unwrap();
    Child::new().paths(&[&folder.path().join("text.so")]).refuses(&["not loadable"]);
    Child::new().paths(&[Path::new("libonnxruntime.so")]).refuses(&["the path is not absolute"]);
}

#[test]
fn where_there_is_none_every_place_is_named_and_the_ways_out() {
    let folder = tempfile::tempdir().unwrap();
    Fake::default().build(&folder.path().join(library::plain_name()));
    let text = Child::new()
        .env("INFER_CACHE", folder.path().join("cache"))
        .env("LD_LIBRARY_PATH", folder.path())
        .in_folder(folder.path())
        .refuses(&[
            "wanted ONNX Runtime 1.31 or a later 1.x",
            "the environment variable INFER_ONNXRUNTIME_LIBRARY: not set",
            &format!("cache/onnxruntime/{VERSION}/cpu/{}: No such file", file_name()),
            "beside this program: ",
            "in ../lib of this program: ",
            "`infer setup onnx` fetches it into the cache",
            "INFER_ONNXRUNTIME_LIBRARY, or in code",
            "put it beside the program",
        ]);
    assert!(!text.contains("\nloaded "), "neither the working directory nor the linker's path is looked in: {text}");
}

#[test]
fn the_cache_is_checked_by_hash_before_anything_of_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let right = Fake::default().build(&folder.path().join("right.so"));
    let path = library::put_into_cache(&cache, "cpu", &right);
    fs::write(&path, "damaged").unwrap();
    let text =
        Child::new().env("INFER_CACHE", &cache).refuses(&["its sha256 should be", "in place of one that is damaged"]);
    assert!(!text.contains("\nloaded "), "{text}");
    fs::copy(&right, &path).unwrap();
    fs::remove_file(library::hash_file(&path)).unwrap();
    let text = Child::new().env("INFER_CACHE", &cache).refuses(&["its hash is not known"]);
    assert!(!text.contains("\nloaded "), "{text}");
}

#[test]
fn a_failed_load_can_be_tried_again_and_many_threads_may_load_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let right = Fake::default().build(&folder.path().join("right.so"));
    let wrong = Fake::default().with("NO_BASE_SYMBOL", "1").build(&folder.path().join("wrong.so"));
    let missing = folder.path().join("missing.so");
    let order = [&wrong, &right, &missing, &wrong, &right].map(|path| path.as_path());
    let answers = ["refused", "served: 1.32.0", "refused", "refused", "served: 1.32.0"];
    assert_eq!(Child::new().paths(&order).answers(), answers);
    let many: Vec<&Path> = order.iter().copied().cycle().take(20).collect();
    let expected: Vec<&str> = answers.iter().copied().cycle().take(20).collect();
    assert_eq!(Child::new().paths(&many).at_once().answers(), expected);
}

#[test]
fn a_library_that_does_harm_does_it_to_a_child() {
    let folder = tempfile::tempdir().unwrap();
    let good = Fake::default().build(&folder.path().join("good.so"));
    let bad = Fake::default().with("ON_LOAD", "abort()").build(&folder.path().join("bad.so"));
    Child::new().paths(&[&good]).probed().refuses(&["nothing that does it", PROBE_PROGRAM]);
    onnxruntime::probe(&Target::host(), folder.path()).unwrap();
    let run = || Child::new().paths(&[&bad, &good]);
    assert_eq!(run().answers(), ["refused", "served: 1.32.0"]);
    run().refuses(&["a child process that tried it was ended by signal 6 (SIGABRT)"]);
    assert_eq!(run().probed().answers(), ["refused", "served: 1.32.0"]);
    for (name, value, words) in [
        ("RELEASE", "\"1.17.1\"", "\"1.17.1\" found"),
        ("API", "30", "returned no table"),
        ("NO_BASE", "1", "\"\" found"),
        ("NO_BASE_SYMBOL", "1", "not a door"),
        ("ON_LOAD", "exit(0)", "ended the process"),
    ] {
        let wrong = Fake::default()
            .with(name, value)
            .build(&folder.path().join(format!("wrong-{name}-{value:.3}.so").replace('"', "")));
        let text = Child::new().paths(&[&wrong]).refuses(&[words]);
        assert!(!text.contains("\nloaded "), "it was opened here: {text}");
    }
}

#[test]
fn every_library_that_is_there_is_listed_with_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let right = Fake::default().build(&folder.path().join("right.so"));
    let old = Fake::default().with("RELEASE", "\"1.17.1\"").build(&folder.path().join("old.so"));
    library::put_into_cache(&cache, "cpu", &right);
    library::put_into_cache(&cache, "old", &old);
    let answers =
        Child::new().env("INFER_CACHE", &cache).env("INFER_ONNXRUNTIME_LIBRARY", &right).installed().answers();
    assert_eq!(answers[..2], ["the environment variable INFER_ONNXRUNTIME_LIBRARY has 1.32.0", "the cache has 1.32.0"]);
    assert!(answers[2].contains("\"1.17.1\" found; `infer setup onnx` puts the right one in its place"), "{answers:?}");
    assert_eq!(answers.len(), 3);
}

/// The one that `cargo xtask setup` brings.
#[test]
fn the_pinned_one_serves() {
    let path = onnxruntime::library().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(Child::new().paths(&[&path]).answers(), [format!("served: {VERSION}")]);
}

/// Not a case of its own: what a child does when a case above runs this binary again.
#[test]
fn child() {
    child::task();
}
