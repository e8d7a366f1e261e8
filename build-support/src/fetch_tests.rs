use super::*;
use crate::Silent;
use crate::cache::sha256;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("infer-fetch-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn cache(&self) -> Cache {
        Cache::at(self.0.join("cache"))
    }

    fn download(&self, name: &str, contents: &[u8]) -> PathBuf {
        fs::create_dir_all(self.cache().downloads()).unwrap();
        let path = self.cache().downloads().join(name);
        fs::write(&path, contents).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn pin(sha256: &str) -> Pin {
    Pin {
        name: "thing".into(),
        version: "1".into(),
        commit: None,
        origin: Origin::PipSource,
        package: "infer_test_thing".into(),
        package_version: "1.0".into(),
        root: "r".into(),
        parts: vec![],
        files: vec![File { name: "infer_test_thing-1.0.tar.gz".into(), platform: "any".into(), sha256: sha256.into() }],
    }
}

/// A Python that cannot be started: whoever gets by it fetched nothing.
fn no_python() -> Env {
    Env::of([(env::PYTHON, "/no/such/python")])
}

#[test]
fn a_file_that_is_there_is_taken_without_fetching() {
    let scratch = Scratch::new("there");
    let path = scratch.download("infer_test_thing-1.0.tar.gz", b"right");
    let got = fetch(&pin(&sha256(b"right")), &no_python(), &scratch.cache(), &mut Silent).unwrap();
    assert_eq!(got, path);
}

#[test]
fn a_file_with_another_hash_is_refused_with_both_hashes_and_its_name() {
    let scratch = Scratch::new("wrong");
    let path = scratch.download("infer_test_thing-1.0.tar.gz", b"wrong");
    let error = fetch(&pin(&sha256(b"right")), &no_python(), &scratch.cache(), &mut Silent).unwrap_err().to_string();
    for said in [path.display().to_string(), sha256(b"right"), sha256(b"wrong")] {
        assert!(error.contains(&said), "{said}: {error}");
    }
    assert!(path.exists(), "left for the user to look at");
}

#[test]
fn where_nothing_may_be_fetched_the_error_says_what_to_put_where() {
    let scratch = Scratch::new("offline");
    let env = no_python().with(env::NO_FETCH, "on");
    let error = fetch(&pin(&sha256(b"right")), &env, &scratch.cache(), &mut Silent).unwrap_err().to_string();
    let place = scratch.cache().downloads().join("infer_test_thing-1.0.tar.gz").display().to_string();
    for said in [env::NO_FETCH.to_owned(), place, sha256(b"right")] {
        assert!(error.contains(&said), "{said}: {error}");
    }
}

#[test]
fn a_wheel_for_one_version_of_python_is_fetched_by_any() {
    assert_eq!(
        made_for("p-1.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"),
        [
            "--implementation=cp",
            "--python-version=3.11",
            "--abi=cp311",
            "--platform=manylinux_2_27_x86_64",
            "--platform=manylinux_2_28_x86_64"
        ]
    );
    assert_eq!(
        made_for("p-1.0-1-cp310-abi3-macosx_14_0_arm64.whl")[2..],
        ["--abi=abi3", "--platform=macosx_14_0_arm64"]
    );
    for plain in ["p-1.0-py3-none-any.whl", "p-1.0-py2.py3-none-manylinux2010_x86_64.whl"] {
        assert!(made_for(plain).is_empty(), "{plain}");
    }
}

#[test]
fn without_a_python_the_error_says_so() {
    let scratch = Scratch::new("python");
    let error = fetch(&pin(&sha256(b"right")), &no_python(), &scratch.cache(), &mut Silent).unwrap_err().to_string();
    assert!(error.contains("/no/such/python"), "{error}");
    let error = fetch(&pin(&sha256(b"x")), &Env::default(), &scratch.cache(), &mut Silent).unwrap_err().to_string();
    assert!(error.contains("python3") && error.contains(env::PYTHON), "{error}");
}

/// pip itself, on a source distribution in a folder: its build back end is named, not there, and not needed.
#[cfg(unix)]
mod by_pip {
    use super::*;

    fn source_distribution(folder: &Path) -> Vec<u8> {
        let metadata = "Metadata-Version: 2.1\nName: infer-test-thing\nVersion: 1.0\n";
        let project =
            "[build-system]\nrequires = [\"infer-no-such-back-end\"]\nbuild-backend = \"scikit_build_core.build\"\n";
        let path = folder.join("infer_test_thing-1.0.tar.gz");
        let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), Default::default()));
        for (name, text) in [("PKG-INFO", metadata), ("pyproject.toml", project)] {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, format!("infer_test_thing-1.0/{name}"), text.as_bytes()).unwrap();
        }
        let bytes = tar.into_inner().unwrap().finish().unwrap();
        fs::write(&path, &bytes).unwrap();
        bytes
    }

    /// A wheel of nothing but what pip reads of it.
    fn wheel(folder: &Path, name: &str, tag: &str) -> File {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let metadata = "Metadata-Version: 2.1\nName: infer-test-thing\nVersion: 1.0\n".to_owned();
        let about = format!("Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n");
        for (file, text) in [("METADATA", metadata), ("WHEEL", about), ("RECORD", String::new())] {
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(format!("infer_test_thing-1.0.dist-info/{file}"), options).unwrap();
            std::io::Write::write_all(&mut zip, text.as_bytes()).unwrap();
        }
        let bytes = zip.finish().unwrap().into_inner();
        fs::write(folder.join(name), &bytes).unwrap();
        File { name: name.into(), platform: "any".into(), sha256: sha256(&bytes) }
    }

    #[test]
    fn a_wheel_comes_though_this_python_could_not_use_it() {
        let scratch = Scratch::new("wheel");
        for (name, tag) in [
            ("infer_test_thing-1.0-cp39-cp39-macosx_11_0_arm64.whl", "cp39-cp39-macosx_11_0_arm64"),
            ("infer_test_thing-1.0-cp315-abi3-manylinux_2_28_riscv64.whl", "cp315-abi3-manylinux_2_28_riscv64"),
        ] {
            let file = wheel(&scratch.0, name, tag);
            let pin = Pin { origin: Origin::PipWheel, files: vec![file], ..pin("") };
            let got = fetch(&pin, &python(&scratch.0), &scratch.cache(), &mut Silent).unwrap();
            assert!(got.ends_with(name));
        }
    }

    /// What is listed is installed and nothing else is; with a hash that is not listed nothing is.
    #[test]
    fn a_list_of_packages_is_installed_into_a_folder() {
        let scratch = Scratch::new("install");
        let good = wheel(&scratch.0, "infer_test_thing-1.0-py3-none-any.whl", "py3-none-any");
        let list = scratch.0.join("list.txt");
        let env = python(&scratch.0);
        fs::write(&list, format!("infer-test-thing==1.0 --hash=sha256:{}\n", sha256(b"other"))).unwrap();
        let error = install(&list, &scratch.0.join("bad"), &env, &scratch.cache()).unwrap_err().to_string();
        assert!(error.contains("what is served under this name"), "{error}");
        fs::write(&list, format!("infer-test-thing==1.0 --hash=sha256:{}\n", good.sha256)).unwrap();
        install(&list, &scratch.0.join("good"), &env, &scratch.cache()).unwrap();
        assert!(scratch.0.join("good/infer_test_thing-1.0.dist-info/METADATA").exists());
        // By hand: in the cache's downloads, and nothing may be fetched.
        let offline = Env::of([(env::NO_FETCH, "on"), (env::PYTHON, "python3")]);
        let error = install(&list, &scratch.0.join("none"), &offline, &scratch.cache()).unwrap_err().to_string();
        assert!(error.contains("put the wheels into") && error.contains("downloads"), "{error}");
        fs::copy(scratch.0.join(&good.name), scratch.cache().downloads().join(&good.name)).unwrap();
        install(&list, &scratch.0.join("by-hand"), &offline, &scratch.cache()).unwrap();
        assert!(scratch.0.join("by-hand/infer_test_thing-1.0.dist-info/METADATA").exists());
    }

    /// The machine's Python, with pip looking in `folder` and nowhere else.
    fn python(folder: &Path) -> Env {
        let script = folder.join("python");
        let text = format!("#!/bin/sh\nexec env PIP_NO_INDEX=1 PIP_FIND_LINKS='{}' python3 \"$@\"\n", folder.display());
        test_kit::program(&script, &text);
        Env::of([(env::PYTHON, script)])
    }

    #[test]
    fn a_source_distribution_comes_without_its_build_back_end() {
        let scratch = Scratch::new("pip");
        let bytes = source_distribution(&scratch.0);
        let got = fetch(&pin(&sha256(&bytes)), &python(&scratch.0), &scratch.cache(), &mut Silent).unwrap();
        assert_eq!(fs::read(got).unwrap(), bytes);
        assert!(!scratch.cache().root().join("unfinished/pip-infer_test_thing").exists(), "cleared away");
    }

    #[test]
    fn what_is_served_with_another_hash_is_not_taken() {
        let scratch = Scratch::new("served");
        source_distribution(&scratch.0);
        let error = fetch(&pin(&sha256(b"right")), &python(&scratch.0), &scratch.cache(), &mut Silent).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(&sha256(b"right")) && error.contains("not what was pinned"), "{error}");
        assert!(!scratch.cache().downloads().join("infer_test_thing-1.0.tar.gz").exists());
    }

    #[test]
    fn what_is_not_served_is_an_error_with_pips_own_words() {
        let scratch = Scratch::new("absent");
        let error = fetch(&pin(&sha256(b"right")), &python(&scratch.0), &scratch.cache(), &mut Silent).unwrap_err();
        assert!(error.to_string().contains("No matching distribution"), "{error}");
    }
}
