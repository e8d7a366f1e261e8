//! Where libraries are looked for, and which are refused.
//!
//! Every case runs in a child process: a library that should have been refused could do anything to this one.

mod library;
mod probe;
mod probing;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use infer_sys::llama::COMMIT;
use infer_sys::llama::bindings::INFER_LLAMA_DOOR_VERSION;
use library::{Door, FILE_NAME};
use probe::{Probe, probe};

/// What a child writes when it could use the library.
const SERVED: &str = "served: ";

#[test]
fn a_right_library_serves_by_path_by_variable_and_from_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let path = Door::default().build(&folder.path().join("anything.so"));
    assert_eq!(Probe::new().path(&path).run().answer(), "served: test");
    assert_eq!(Probe::new().variable(&path).run().answer(), "served: test");
    assert_eq!(Probe::new().path(&path).variant("test").run().answer(), "served: test");

    let cache = folder.path().join("cache");
    library::put_into_cache(&cache, "cpu", &path);
    assert_eq!(Probe::new().cache(&cache).run().answer(), "served: test");
    assert_eq!(Probe::new().env("INFER_CACHE", &cache).run().answer(), "served: test");
    library::put_into_cache(&folder.path().join("xdg/infer"), "cpu", &path);
    assert_eq!(Probe::new().env("XDG_CACHE_HOME", folder.path().join("xdg")).run().answer(), "served: test");
}

#[test]
fn beside_the_program_and_in_lib_next_to_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("prefix/bin");
    fs::create_dir_all(&bin).unwrap();
    let program = bin.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();

    let beside = Door::default().build(&bin.join(FILE_NAME));
    assert_eq!(Probe::new().program(&program).run().answer(), "served: test");

    fs::set_permissions(&beside, fs::Permissions::from_mode(0o777)).unwrap();
    Probe::new().program(&program).run().refuses(&["beside this program", "everybody can write the file (mode 777)"]);
    fs::remove_file(&beside).unwrap();

    let lib = folder.path().join("prefix/lib");
    fs::create_dir_all(&lib).unwrap();
    Door::default().build(&lib.join(FILE_NAME));
    assert_eq!(Probe::new().program(&program).run().answer(), "served: test");
    fs::set_permissions(&lib, fs::Permissions::from_mode(0o777)).unwrap();
    Probe::new().program(&program).run().refuses(&["in ../lib", "everybody can write its folder"]);
    // Only root can give a folder to a group it is not in.
    fs::set_permissions(&lib, fs::Permissions::from_mode(0o775)).unwrap();
    if chown(&lib, None, Some(65534)).is_ok() {
        Probe::new().program(&program).run().refuses(&["in ../lib", "group 65534 can write its folder"]);
    }
}

#[test]
fn a_library_that_is_not_ours_is_refused_by_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, door: Door, words: &[&str]| {
        let path = door.build(&folder.path().join(name));
        Probe::new().path(&path).run().refuses(words);
    };
    let with = |name: &str, value: &str| Door::default().with(name, value);
    refused("version.so", with("VERSION", "7"), &[&format!("door version {INFER_LLAMA_DOOR_VERSION} wanted, 7 found")]);
    refused("size.so", with("SIZE", "96"), &["a table of", "wanted, of 96 found"]);
    refused("short.so", with("SHORT", "1"), &["wanted, of 8 found"]);
    refused("commit.so", with("COMMIT", "\"abcdef\""), &[COMMIT, "\"abcdef\" found"]);
    refused("none.so", with("COMMIT", "0"), &["\"\" found"]);
    refused("struct.so", Door::default().with_struct_size(2, 1), &["struct llama_context_params of", "of 1 found"]);
    refused("entry.so", with("MISSING_ENTRY", "3"), &["the entry time_us of the table is NULL"]);
    refused("table.so", with("NO_TABLE", "1"), &["no table"]);
    refused("crooked.so", with("CROOKED", "1"), &["no table"]);
    refused("door.so", with("NO_DOOR", "1"), &["not a door", "infer_llama_api"]);

    let path = Door::default().build(&folder.path().join("right.so"));
    Probe::new().path(&path).variant("cuda").run().refuses(&["variant \"cuda\" wanted, \"test\" found"]);
}

#[test]
fn what_is_no_library_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    Probe::new().path(&at("missing.so")).run().refuses(&["the path given", "missing.so", "No such file"]);
    Probe::new().path(folder.path()).run().refuses(&["not a regular file"]);

    fs::write(at("text.so"), "not a library").unwrap();
    Probe::new().path(&at("text.so")).run().refuses(&["not loadable: dlopen failed: "]);
    fs::write(at("empty.so"), "").unwrap();
    Probe::new().path(&at("empty.so")).run().refuses(&["not loadable"]);

    // A pipe nobody writes to would hold up whoever opens it.
    assert!(Command::new("mkfifo").arg(at("pipe.so")).status().unwrap().success());
    Probe::new().path(&at("pipe.so")).run().refuses(&["not a regular file"]);
    let cached = library::in_cache(&at("cache"), "cpu");
    fs::create_dir_all(cached.parent().unwrap()).unwrap();
    fs::rename(at("pipe.so"), &cached).unwrap();
    Probe::new().cache(&at("cache")).run().refuses(&["not a regular file"]);
}

#[test]
fn neither_the_working_directory_nor_the_linkers_path_is_looked_in() {
    let folder = tempfile::tempdir().unwrap();
    Door::default().build(&folder.path().join(FILE_NAME));
    let in_folder = || Probe::new().folder(folder.path()).env("LD_LIBRARY_PATH", folder.path());

    let search = in_folder().run();
    search.refuses(&["INFER_LLAMA_LIBRARY: not set", "the cache", "beside this program", "in ../lib of this program"]);
    search.loaded_nothing();
    for name in [FILE_NAME, "./libinfer_llama.so", "../libinfer_llama.so"] {
        let by_path = in_folder().path(Path::new(name)).run();
        by_path.refuses(&["the path is not absolute"]);
        by_path.loaded_nothing();
        let by_variable = in_folder().variable(Path::new(name)).run();
        by_variable.refuses(&["INFER_LLAMA_LIBRARY", "the path is not absolute"]);
        by_variable.loaded_nothing();
    }
    let by_cache = in_folder().env("INFER_CACHE", ".").run();
    by_cache.refuses(&["the cache: refused, because the path is not absolute"]);
    by_cache.loaded_nothing();
    // An empty variable is one that is not set: it must not become the working directory.
    let by_empty = in_folder().variable(Path::new("")).run();
    by_empty.refuses(&["INFER_LLAMA_LIBRARY: not set"]);
    by_empty.loaded_nothing();
}

#[test]
fn a_named_library_is_that_one_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let right = Door::default().build(&folder.path().join("right.so"));
    let cache = folder.path().join("cache");
    library::put_into_cache(&cache, "cpu", &right);
    let missing = folder.path().join("missing.so");
    let run = Probe::new().variable(&missing).cache(&cache).run();
    run.refuses(&["missing.so"]);
    run.loaded_nothing();
}

#[test]
fn the_cache_is_checked_by_hash_before_anything_of_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let right = Door::default().build(&folder.path().join("right.so"));
    let path = library::put_into_cache(&cache, "cpu", &right);
    let hash = library::hash_file(&path);
    let refused = |words: &[&str]| {
        let run = Probe::new().cache(&cache).run();
        run.refuses(words);
        run.loaded_nothing();
    };

    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, &bytes).unwrap();
    refused(&["its sha256 should be"]);
    bytes.truncate(last);
    fs::write(&path, &bytes).unwrap();
    refused(&["its sha256 should be"]);

    fs::copy(&right, &path).unwrap();
    let written = fs::read_to_string(&hash).unwrap();
    for (text, words) in
        [("", "does not begin with a sha256"), ("abc", "does not begin"), (&"g".repeat(64), "does not begin")]
    {
        fs::write(&hash, text).unwrap();
        refused(&["its hash is not known", words]);
    }
    fs::remove_file(&hash).unwrap();
    refused(&["its hash is not known", "No such file"]);

    fs::write(&hash, written.to_uppercase()).unwrap();
    assert_eq!(Probe::new().cache(&cache).run().answer(), "served: test");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    refused(&["everybody can write the file"]);
    fs::remove_file(&path).unwrap();
    refused(&["No such file"]);

    // A right file of another commit: the hash vouches for it, and the door says what it is.
    let other = Door::default().with("COMMIT", "\"0123\"").build(&folder.path().join("other.so"));
    library::put_into_cache(&cache, "cpu", &other);
    Probe::new().cache(&cache).run().refuses(&["\"0123\" found", "`infer setup llama`"]);
    // One of an older version of this library.
    let older = Door::default().with("VERSION", "1").build(&folder.path().join("older.so"));
    library::put_into_cache(&cache, "cpu", &older);
    let run = Probe::new().cache(&cache).run();
    run.refuses(&[
        "wanted, 1 found",
        "three ways to provide one",
        "`infer setup llama` builds it into the cache, also in place of one that is old",
        "`infer setup llama --variant vulkan`",
        "INFER_LLAMA_LIBRARY, or in code",
        "the feature `llama`",
    ]);
}

#[test]
fn a_variant_is_a_name_and_leads_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let right = Door::default().build(&folder.path().join("right.so"));
    library::put_into_cache(&cache, "test", &right);
    assert_eq!(Probe::new().cache(&cache).variant("test").run().answer(), "served: test");
    Probe::new().cache(&cache).run().refuses(&["not there; there are libraries of other variants", ": test"]);
    for variant in ["../test", "/", "", ".", "a/b", "Test"] {
        Probe::new().cache(&cache).variant(variant).run().refuses(&["is not a variant"]);
    }
}

#[test]
fn a_bad_library_does_not_spoil_a_good_one_opened_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let build = |name: &str, variant: &str, door: Door| {
        let path = door.with("VARIANT", &format!("\"{variant}\"")).build(&folder.path().join(name));
        library::put_into_cache(&cache, variant, &path);
        path
    };
    // A library that stays loaded though it was refused, and two right ones.
    let bad = build("bad.so", "bad", Door::default().with("VERSION", "9").with_linker_flag("-z,nodelete"));
    let one = build("one.so", "one", Door::default());
    build("two", "two", Door::default());

    let variants = ["bad", "one", "bad", "two", "one", "two", "bad", "one"];
    let run = Probe::new().cache(&cache).variants(&variants).run();
    let served: Vec<&str> = run.answers();
    assert_eq!(served, ["refused", "one", "refused", "two", "one", "two", "refused", "one"]);

    assert_eq!(Probe::new().paths(&[&bad, &one, &bad, &one]).run().answers(), ["refused", "one", "refused", "one"]);
    // The same file by another name is the same library.
    let link = folder.path().join("link.so");
    symlink(&one, &link).unwrap();
    assert_eq!(Probe::new().paths(&[&one, &link]).run().answers(), ["one", "one"]);
}

#[test]
fn every_library_that_is_there_is_listed_with_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    for (variant, says) in [("one", "one"), ("two", "two"), ("other", "else")] {
        let door = Door::default().with("VARIANT", &format!("\"{says}\""));
        library::put_into_cache(&cache, variant, &door.build(&folder.path().join(variant)));
    }
    let damaged = library::put_into_cache(&cache, "zzz", &folder.path().join("one"));
    fs::write(damaged, "damaged").unwrap();
    fs::create_dir_all(cache.join("llama").join(COMMIT).join("empty")).unwrap();
    let named = Door::default().build(&folder.path().join("named.so"));

    let search = || Probe::new().cache(&cache).variable(&named).installed();
    let run = search().run();
    let seen = run.answers();
    assert_eq!(
        seen[..3],
        [
            "the environment variable INFER_LLAMA_LIBRARY has test",
            "the cache has one",
            "the cache has none: variant \"other\" wanted, \"else\" found; `infer setup llama --variant other` puts the right one in its \
             place"
        ]
    );
    assert_eq!(seen[3], "the cache has two");
    assert!(seen[4].starts_with("the cache has none: refused, because its sha256"), "{seen:?}");
    assert_eq!(seen.len(), 5, "{seen:?}");
    assert_eq!(search().variant("two").run().answers().last(), Some(&"the cache has two"));
}

#[test]
fn many_threads_may_load_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    for (variant, version) in [("one", INFER_LLAMA_DOOR_VERSION), ("bad", INFER_LLAMA_DOOR_VERSION + 1)] {
        let door = Door::default().with("VARIANT", &format!("\"{variant}\"")).with("VERSION", &version.to_string());
        library::put_into_cache(&cache, variant, &door.build(&folder.path().join(variant)));
    }
    let run =
        Probe::new().cache(&cache).variants(&["one", "bad", "one", "bad", "one", "one", "bad", "one"]).at_once().run();
    assert_eq!(run.answers(), ["one", "refused", "one", "refused", "one", "one", "refused", "one"]);
}

#[test]
fn the_environment_is_not_obeyed_with_raised_privileges() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let Some(program) = probe::raised(folder.path()) else {
        eprintln!("not shown here: this user has no second group, or the temporary folder ignores set-group-id");
        return;
    };
    let right = Door::default().build(&folder.path().join(FILE_NAME));
    let cache = folder.path().join("cache");
    library::put_into_cache(&cache, "cpu", &right);

    let run = Probe::new().program(&program).variable(&right).env("INFER_CACHE", &cache).env("HOME", &cache).run();
    run.refuses(&[
        "INFER_LLAMA_LIBRARY: ",
        "ignored, because this process runs with raised privileges",
        "the cache: ignored",
    ]);
    run.refuses(&["beside this program: ignored"]);
    run.loaded_nothing();
    assert_eq!(
        Probe::new().program(&program).path(&right).run().answer(),
        "served: test",
        "what the program says holds"
    );
}

/// Not a case of its own: what a child does when a case above runs this binary again.
#[test]
fn child() {
    probe();
}
