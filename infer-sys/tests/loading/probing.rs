//! Libraries that do harm when they are opened or started: it happens to a child, and the one that wanted them goes on.
//!
//! Needs the headers that `cargo xtask setup` brings.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use build_support::cache::Cache;
use build_support::choose::{Target, Variant};
use build_support::door::{self, PROBE_PROGRAM};
use build_support::env::Env;
use build_support::pins::Pin;
use build_support::tree;
use infer_sys::llama::bindings::INFER_LLAMA_DOOR_VERSION;

use crate::library::{self, Door};
use crate::probe::{self, Probe};

/// Compiles the program as `infer setup` does.
fn program(folder: &Path) -> PathBuf {
    let cache = Cache::from_env(&Env::from_process()).unwrap();
    let source = cache.source(&tree::name(&Pin::named("llama").unwrap(), Variant::Cpu));
    assert!(source.is_dir(), "{} is not there: cargo xtask setup", source.display());
    let headers = [source.join("include"), source.join("ggml/include")];
    let scratch = folder.join("scratch");
    fs::create_dir_all(&scratch).unwrap();
    door::probe(&Target::host(), &headers, &scratch, folder).unwrap().unwrap()
}

/// A program that writes a line each time it is run, and then does what the real one does.
fn counting(folder: &Path) -> PathBuf {
    let real = program(&{
        let real = folder.join("real");
        fs::create_dir_all(&real).unwrap();
        real
    });
    let (path, count) = (folder.join(PROBE_PROGRAM), folder.join("runs"));
    let script = format!("#!/bin/sh\necho run >> '{}'\nexec '{}' \"$@\"\n", count.display(), real.display());
    test_kit::program(&path, &script);
    count
}

fn runs(count: &Path) -> usize {
    fs::read_to_string(count).map_or(0, |text| text.lines().count())
}

#[test]
fn what_happens_to_the_child_is_told_and_a_good_one_serves_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    let good = Door::default().build(&folder.path().join("good.so"));
    for (name, what, code, words) in [
        ("aborts.so", "ON_LOAD", "abort()", &["SIGABRT"][..]),
        ("crashes.so", "ON_LOAD", "raise(SIGSEGV)", &["signal 11 (SIGSEGV)"]),
        ("ends.so", "ON_LOAD", "exit(0)", &["ended the process"]),
        ("ends-badly.so", "ON_LOAD", "_exit(3)", &["ended the process", "status: 3"]),
        ("start.so", "ON_START", "*(volatile int *) 0 = 1", &["SIGSEGV"]),
        ("speaks.so", "ON_START", "fputs(\"my last words\\n\", stderr); abort()", &["SIGABRT", "| my last words"]),
        ("fails.so", "ON_START", "strcpy(error->message, \"no driver\"); return -5", &["did not start: no driver"]),
        ("shouts.so", "ON_LOAD", "for (int i = 0; i < 99999; ++i) puts(\"noise\"); abort()", &["SIGABRT", "| noise"]),
    ] {
        let bad = Door::default().with(what, code).build(&folder.path().join(name));
        let run = Probe::new().paths(&[&bad, &good, &bad]).run();
        assert_eq!(run.answers(), ["refused", "test", "refused"], "{name}");
        run.refuses(&["a child process that tried it"]);
        run.refuses(words);
    }
}

/// Such a process is not told how a child ended: what the child did not say to its end is bad news all the same.
#[test]
fn a_process_that_ignores_its_children_is_told_too() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    let good = Door::default().build(&folder.path().join("good.so"));
    let bad = Door::default().with("ON_LOAD", "abort()").build(&folder.path().join("bad.so"));
    let run = Probe::new().paths(&[&bad, &good]).ignoring_children().run();
    assert_eq!(run.answers(), ["refused", "test"]);
    run.refuses(&["a child process that tried it ended the process"]);
}

#[test]
fn one_that_hangs_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    let good = Door::default().build(&folder.path().join("good.so"));
    let hangs = Door::default().with("ON_LOAD", "for (;;) pause()").build(&folder.path().join("hangs.so"));
    let run = Probe::new().paths(&[&hangs, &good]).probed(true).seconds(4).run();
    assert_eq!(run.answers(), ["refused", "test"]);
    run.refuses(&["was not done after 4.0 s"]);
}

#[test]
fn one_may_take_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    let good = Door::default().build(&folder.path().join("good.so"));
    let run = Probe::new().path(&good).probed(true).seconds(u64::MAX).run();
    assert_eq!(run.answers(), ["test"]);
}

#[test]
fn what_is_no_door_is_refused_without_letting_it_in() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    let refused = |name: &str, door: Door, words: &[&str]| {
        let path = door.build(&folder.path().join(name));
        let run = Probe::new().path(&path).run();
        run.refuses(words);
        run.loaded_nothing();
    };
    let with = |name: &str, value: &str| Door::default().with(name, value);
    refused("version.so", with("VERSION", "7"), &[&format!("door version {INFER_LLAMA_DOOR_VERSION} wanted, 7 found")]);
    refused("size.so", with("SIZE", "96"), &["a table of", "wanted, of 96 found"]);
    refused("short.so", with("SHORT", "1"), &["wanted, of 8 found"]);
    refused("table.so", with("NO_TABLE", "1"), &["no table"]);
    refused("door.so", with("NO_DOOR", "1"), &["not a door", "infer_llama_api"]);
    let text = folder.path().join("text.so");
    fs::write(&text, "not a library").unwrap();
    Probe::new().path(&text).run().refuses(&["not loadable: "]);
}

#[test]
fn the_very_file_of_the_cache_is_tried_by_the_program_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path());
    let cache = folder.path().join("cache");
    let bad = Door::default().with("ON_START", "abort()").build(&folder.path().join("bad.so"));
    let good = Door::default().build(&folder.path().join("good.so"));
    library::put_into_cache(&cache, "bad", &bad);
    library::put_into_cache(&cache, "cpu", &good);
    // In the folder of "cpu", and it serves for both.
    let beside = library::in_cache(&cache, "cpu").with_file_name(PROBE_PROGRAM);
    fs::copy(&program, &beside).unwrap();
    library::write_hash(&beside);

    let run = Probe::new().cache(&cache).variants(&["bad", "cpu"]).probed(true).run();
    assert_eq!(run.answers(), ["refused", "refused"], "the library's own door says \"test\"");
    run.refuses(&["SIGABRT", "variant \"cpu\" wanted, \"test\" found"]);
    assert_eq!(Probe::new().cache(&cache).probed(true).run().answer(), "served: test");

    // Changed by one byte, it is not run.
    let mut bytes = fs::read(&beside).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&beside, bytes).unwrap();
    Probe::new().cache(&cache).probed(true).run().refuses(&["nothing that does it", "its sha256 should be"]);
    assert_eq!(Probe::new().cache(&cache).run().answer(), "served: test", "unasked, it is opened unprobed");
}

#[test]
fn only_a_program_that_can_be_trusted_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let good = Door::default().build(&folder.path().join("good.so"));
    Probe::new().path(&good).probed(true).run().refuses(&["nothing that does it", PROBE_PROGRAM, "No such file"]);
    let count = counting(folder.path());
    let program = folder.path().join(PROBE_PROGRAM);

    fs::set_permissions(&program, fs::Permissions::from_mode(0o777)).unwrap();
    Probe::new().path(&good).probed(true).run().refuses(&["everybody can write the file (mode 777)"]);
    assert_eq!(Probe::new().path(&good).run().answer(), "served: test");
    assert_eq!(runs(&count), 0);

    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    Probe::new().path(&good).probed(true).run().refuses(&["nothing that does it", "ermission denied"]);

    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(Probe::new().path(&good).probed(false).run().answer(), "served: test");
    assert_eq!(runs(&count), 0);
    assert_eq!(Probe::new().path(&good).probed(true).run().answer(), "served: test");
    assert_eq!(runs(&count), 1);
}

#[test]
fn a_file_is_tried_once() {
    let folder = tempfile::tempdir().unwrap();
    let count = counting(folder.path());
    let [a, b] = ["a.so", "b.so"].map(|name| Door::default().build(&folder.path().join(name)));
    let run = Probe::new().paths(&[&a, &a, &b, &a, &b]).run();
    assert_eq!(run.answers(), ["test"; 5]);
    assert_eq!(runs(&count), 2);
}

#[test]
fn with_raised_privileges_the_child_sees_nothing_of_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let Some(raised) = probe::raised(folder.path()) else {
        eprintln!("not shown here: this user has no second group, or the temporary folder ignores set-group-id");
        return;
    };
    let good = Door::default().build(&folder.path().join("good.so"));
    let (program, seen) = (folder.path().join(PROBE_PROGRAM), folder.path().join("seen"));
    test_kit::program(&program, &format!("#!/bin/sh\n/usr/bin/env > '{}'\nexit 3\n", seen.display()));
    let run = Probe::new().program(&raised).path(&good).env("MARKER", "mine").probed(true).run();
    run.refuses(&["status: 3"]);
    assert!(!fs::read_to_string(seen).unwrap().contains("MARKER"));
}
