use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, mpsc};

use super::*;
use crate::Silent;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("infer-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }

    fn cache(&self) -> Cache {
        Cache::at(&self.0)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text_in(folder: &Path, text: &str) -> Result<()> {
    fs::write(folder.join("f"), text).at("write", folder)
}

#[test]
fn a_thing_is_made_once() {
    let scratch = Scratch::new("once");
    let (cache, mut made) = (scratch.cache(), 0);
    let folder = cache.source("tree");
    for fresh in [true, false, false] {
        let installed = cache
            .install(&folder, &mut Silent, |folder, _| {
                made += 1;
                text_in(folder, "whole")
            })
            .unwrap();
        assert_eq!(installed, Installed { path: folder.clone(), fresh });
    }
    assert_eq!(made, 1);
    assert_eq!(fs::read_to_string(folder.join("f")).unwrap(), "whole");
}

#[test]
fn a_failure_leaves_nothing_and_the_next_attempt_succeeds() {
    let scratch = Scratch::new("failure");
    let cache = scratch.cache();
    let folder = cache.source("tree");
    let error = cache.install(&folder, &mut Silent, |folder, _| {
        text_in(folder, "half")?;
        Err(Error::new("the disk is tired"))
    });
    assert_eq!(error.unwrap_err().to_string(), "the disk is tired");
    assert!(!folder.exists());
    let installed = cache.install(&folder, &mut Silent, |folder, _| {
        assert!(fs::read_dir(folder).unwrap().next().is_none(), "begins empty");
        Ok(())
    });
    assert!(installed.unwrap().fresh);
}

#[test]
fn what_a_killed_process_left_is_cleared_away() {
    let scratch = Scratch::new("killed");
    let cache = scratch.cache();
    let folder = cache.source("tree");
    let left = scratch.0.join("unfinished/sources-tree");
    fs::create_dir_all(&left).unwrap();
    text_in(&left, "half").unwrap();
    cache.install(&folder, &mut Silent, |_, _| Ok(())).unwrap();
    assert!(!folder.join("f").exists() && !left.exists());
}

#[test]
fn two_threads_at_once_make_it_once_and_the_other_says_it_waits() {
    /// Keeps what it hears and passes on that it heard.
    struct Notes(Vec<String>, mpsc::Sender<()>);
    impl Progress for Notes {
        fn note(&mut self, line: &str) {
            self.0.push(line.to_owned());
            self.1.send(()).unwrap();
        }
    }
    let scratch = Scratch::new("threads");
    let (cache, made) = (scratch.cache(), AtomicUsize::new(0));
    let folder = cache.source("tree");
    // The second is let go when the first is inside, and the first stays inside until the second has said that it waits.
    let (inside, (says, hears)) = (Barrier::new(2), mpsc::channel());
    let mut notes = Notes(Vec::new(), says);
    std::thread::scope(|scope| {
        let (cache, folder, made, inside) = (&cache, &folder, &made, &inside);
        let first = scope.spawn(move || {
            cache.install(folder, &mut Silent, |_, _| {
                made.fetch_add(1, Ordering::SeqCst);
                inside.wait();
                hears.recv().unwrap();
                Ok(())
            })
        });
        inside.wait();
        let second = cache.install(folder, &mut notes, |_, _| {
            made.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        assert!(first.join().unwrap().unwrap().fresh);
        assert!(!second.unwrap().fresh);
    });
    assert_eq!(notes.0, ["waiting for another process that is making sources-tree"]);
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

/// The same between processes: this test is its own child.
#[test]
fn processes_at_once_make_it_once() {
    const CACHE: &str = "INFER_TEST_CHILD_CACHE";
    let count = |root: &Path| root.join("made");
    if let Some(root) = std::env::var_os(CACHE).map(PathBuf::from) {
        let cache = Cache::at(&root);
        let make = |folder: &Path, _: &mut dyn Progress| {
            let mut log = File::options().create(true).append(true).open(count(&root)).at("open", folder)?;
            std::io::Write::write_all(&mut log, b"made\n").at("write", folder)?;
            // Long enough for the others to come upon the lock; the outcome does not depend on it.
            std::thread::sleep(Duration::from_millis(200));
            text_in(folder, "whole")
        };
        let installed = cache.install(&cache.source("tree"), &mut Silent, make).unwrap();
        assert_eq!(fs::read_to_string(installed.path.join("f")).unwrap(), "whole");
        return;
    }
    let scratch = Scratch::new("processes");
    fs::create_dir_all(&scratch.0).unwrap();
    let name = "cache::tests::processes_at_once_make_it_once";
    let children: Vec<_> = (0..4)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", name])
                .env(CACHE, &scratch.0)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        assert!(test_kit::child::ended(child).status.success());
    }
    assert_eq!(fs::read_to_string(count(&scratch.0)).unwrap(), "made\n");
}

#[test]
fn patience_ends_with_an_error_that_names_the_lock() {
    let scratch = Scratch::new("patience");
    let _held = scratch.cache().lock("build-x", &mut Silent).unwrap();
    let error = scratch.cache().with_patience(Duration::ZERO).lock("build-x", &mut Silent).unwrap_err().to_string();
    assert!(error.contains("build-x") && error.contains("locks"), "{error}");
}

#[test]
fn nothing_is_installed_outside_the_cache() {
    let scratch = Scratch::new("outside");
    let error = scratch.cache().install(Path::new("/elsewhere/tree"), &mut Silent, |_, _| Ok(())).unwrap_err();
    assert!(error.to_string().contains("/elsewhere/tree is not in the cache"), "{error}");
}

#[test]
fn the_users_wish_comes_first_then_the_platforms_custom() {
    let root = |pairs: &[(&str, &str)]| Cache::from_env(&Env::of(pairs.iter().copied())).map(|cache| cache.root);
    assert_eq!(root(&[(env::CACHE, "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")]).unwrap(), Path::new("/a"));
    assert_eq!(root(&[("XDG_CACHE_HOME", "/b"), ("HOME", "/c")]).unwrap(), Path::new("/b/infer"));
    assert_eq!(root(&[("XDG_CACHE_HOME", "b"), ("HOME", "/c")]).unwrap(), root(&[("HOME", "/c")]).unwrap());
    let relative = root(&[(env::CACHE, "a"), ("HOME", "/c")]).unwrap_err().to_string();
    assert!(relative.contains("INFER_CACHE is a,") && relative.contains("absolute"), "{relative}");
    if cfg!(target_os = "linux") {
        assert_eq!(root(&[("HOME", "/c")]).unwrap(), Path::new("/c/.cache/infer"));
    }
    assert!(root(&[]).unwrap_err().to_string().contains("INFER_CACHE"));
}

#[test]
fn hashes_are_sha256_in_lower_case() {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(sha256(b""), empty);
    let scratch = Scratch::new("hash");
    fs::create_dir_all(&scratch.0).unwrap();
    fs::write(scratch.0.join("f"), vec![7; 3 << 20]).unwrap();
    assert_eq!(sha256_file(&scratch.0.join("f")).unwrap(), sha256(&vec![7; 3 << 20]));
}

#[test]
fn no_two_lists_of_values_have_one_key() {
    let key = |pairs: &[(&str, &str)]| {
        pairs.iter().fold(KeyOf::default(), |key, (name, value)| key.value(name, value)).key().sha256
    };
    assert_ne!(key(&[("a", "1\"\nb = \"2")]), key(&[("a", "1"), ("b", "2")]));
    assert_ne!(key(&[("a", "1"), ("b", "2")]), key(&[("b", "2"), ("a", "1")]));
    assert_eq!(key(&[("a", "1")]), key(&[("a", "1")]));
}
