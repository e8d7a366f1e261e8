//! Python with the packages that make fixtures for the tests, and that the tests compare with: `python.txt`, and beside it `python-mlx.txt`.
//!
//! `cargo xtask setup` installs them into folders of the cache, one for each version of Python and of a list. Nothing that the machine has
//! installed for itself is seen.

use std::path::PathBuf;
use std::process::Command;

use crate::cache::{Cache, sha256};
use crate::env::{self, Env};
use crate::error::{Error, Result};
use crate::pins::{PYTHON_MLX_PACKAGES, PYTHON_PACKAGES};
use crate::tools;

/// The versions of CPython that the list has wheels for, as they call themselves.
const VERSIONS: [&str; 4] = ["cpython-311", "cpython-312", "cpython-313", "cpython-314"];

/// Says which Python it is; a build without the lock of old needs other wheels.
const WHICH: &str = "import sys; print(sys.implementation.cache_tag + getattr(sys, 'abiflags', ''))";

/// Which packages a Python has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packages {
    /// Those of `python.txt`: ONNX Runtime's, and NumPy.
    Common,
    /// Those, and MLX's of `python-mlx.txt`.
    Mlx,
}

/// One list of packages, which has a folder of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    /// What brings it: `cargo xtask setup --only NAME`.
    name: &'static str,
    pub(crate) text: &'static str,
}

const COMMON: List = List { name: "python", text: PYTHON_PACKAGES };
const MLX: List = List { name: "python-mlx", text: PYTHON_MLX_PACKAGES };

impl List {
    /// What it is called in the key of something that is made with it.
    pub(crate) fn key(self) -> &'static str {
        if self.name == COMMON.name { "packages" } else { self.name }
    }
}

impl Packages {
    /// The lists that make it up.
    pub(crate) fn lists(self) -> &'static [List] {
        match self {
            Self::Common => &[COMMON],
            Self::Mlx => &[COMMON, MLX],
        }
    }
}

/// A Python with these packages, for the environment of this process.
///
/// # Errors
/// There is no Python, or not one of a version that has these packages, or they are not in the cache yet.
pub fn command(packages: Packages) -> Result<Command> {
    let env = Env::from_process();
    command_in(&env, &Cache::from_env(&env)?, packages)
}

/// That Python, for another environment.
///
/// # Errors
/// As [`command`].
pub fn command_in(env: &Env, cache: &Cache, packages: Packages) -> Result<Command> {
    let found = Python::find(env)?;
    let mut folders = Vec::new();
    for list in packages.lists() {
        let folder = found.folder(cache, *list);
        if !folder.is_dir() {
            let lacks =
                format!("the Python packages of the tests are not in the cache: {} is not there", folder.display());
            return Err(Error::new(lacks).with_help(format!("cargo xtask setup --only {}", list.name)));
        }
        folders.push(folder);
    }
    let path = std::env::join_paths(folders)
        .map_err(|error| Error::new(format!("Python cannot be told where its packages are: {error}")))?;
    let mut command = Command::new(found.program);
    // -S: the machine's own packages stay out.
    command.arg("-S").env("PYTHONPATH", path).env("PYTHONNOUSERSITE", "1");
    Ok(command)
}

/// An interpreter that the packages are for.
pub(crate) struct Python {
    program: PathBuf,
    version: String,
}

impl Python {
    /// The one that the environment names, else the one on the path.
    pub(crate) fn find(env: &Env) -> Result<Self> {
        let named = || format!("install CPython 3.11 to 3.14 with pip, or set {} to one", env::PYTHON);
        let program = tools::python(env).ok_or_else(|| {
            Error::new("there is no python3 on the path, and tests compare with it").with_help(named())
        })?;
        let output = Command::new(&program)
            .args(["-S", "-c", WHICH])
            .output()
            .map_err(|error| Error::new(format!("cannot start {}: {error}", program.display())).with_help(named()))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !VERSIONS.contains(&version.as_str()) {
            let said = if version.is_empty() { "says nothing".to_owned() } else { format!("is {version}") };
            let wrong = format!("{} {said}, and the packages of the tests are for others", program.display());
            return Err(Error::new(wrong).with_help(named()));
        }
        Ok(Self { program, version })
    }

    /// Where the packages of a list lie.
    pub(crate) fn folder(&self, cache: &Cache, list: List) -> PathBuf {
        let which = list.name.trim_start_matches("python");
        cache.python(&format!("{}{which}-{}", self.version, &sha256(list.text.as_bytes())[..12]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A program that says it is a Python of that version.
    #[cfg(unix)]
    fn pretender(folder: &std::path::Path, version: &str) -> Env {
        let program = folder.join(format!("says-{version}"));
        test_kit::program(&program, &format!("#!/bin/sh\necho {version}\n"));
        Env::of([(env::PYTHON, &program)])
    }

    #[cfg(unix)]
    #[test]
    fn packages_are_for_one_version_and_one_list() {
        let folder = std::env::temp_dir().join(format!("infer-python-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let cache = Cache::at(folder.join("cache"));
        let env = pretender(&folder, "cpython-312");
        let lacks = |env: &Env, packages| command_in(env, &cache, packages).unwrap_err().to_string();
        let error = lacks(&env, Packages::Common);
        assert!(error.contains("python/cpython-312-") && error.ends_with("cargo xtask setup --only python"), "{error}");

        let path = |command: Command| {
            let path = command.get_envs().find(|(name, _)| *name == "PYTHONPATH").unwrap().1.unwrap();
            std::env::split_paths(path).collect::<Vec<_>>()
        };
        let found = Python::find(&env).unwrap();
        let [common, mlx] = [COMMON, MLX].map(|list| found.folder(&cache, list));
        fs::create_dir_all(&common).unwrap();
        assert_eq!(path(command_in(&env, &cache, Packages::Common).unwrap()), [&*common]);
        let error = lacks(&env, Packages::Mlx);
        assert!(error.contains("python/cpython-312-mlx-"), "{error}");
        assert!(error.ends_with("cargo xtask setup --only python-mlx"), "{error}");
        fs::create_dir_all(&mlx).unwrap();
        assert_eq!(path(command_in(&env, &cache, Packages::Mlx).unwrap()), [&*common, &*mlx]);
        assert_eq!(path(command_in(&env, &cache, Packages::Common).unwrap()), [&*common], "and nothing of MLX's");
        let other = pretender(&folder, "cpython-313");
        assert!(command_in(&other, &cache, Packages::Common).is_err(), "another version has packages of its own");
        for version in ["cpython-39", "cpython-313t", "pypy311", ""] {
            let error = lacks(&pretender(&folder, version), Packages::Common);
            assert!(error.contains("are for others") && error.contains(env::PYTHON), "{version}: {error}");
        }
        let none = lacks(&Env::of([(env::PYTHON, "/no/such/python")]), Packages::Common);
        assert!(none.contains("/no/such/python"), "{none}");
        fs::remove_dir_all(folder).unwrap();
    }

    /// pip takes nothing without a hash where one has it; and nothing that is listed may be taken in another version.
    #[test]
    fn every_package_of_a_list_has_a_version_and_hashes() {
        let mut packages = Vec::new();
        let lines = Packages::Mlx.lists().iter().flat_map(|list| list.text.lines());
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let line = line.trim_end_matches('\\').trim();
            match line.strip_prefix("--hash=sha256:") {
                Some(hash) => {
                    assert!(hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()), "{line}");
                    *packages.last_mut().map(|(_, hashes)| hashes).unwrap() += 1;
                }
                // Some are for one system alone.
                None => packages.push((line.split(';').next().unwrap().split_once("==").expect(line), 0)),
            }
        }
        assert!(packages.iter().all(|(_, hashes)| *hashes > 0), "{packages:?}");
        let version = |wanted: &str| packages.iter().find(|((name, _), _)| *name == wanted).unwrap().0.1;
        let pinned = crate::pins::Pin::named("onnxruntime").unwrap();
        assert_eq!(version("onnxruntime"), pinned.version, "compared with the very version that is loaded");
        for core in ["mlx-cpu", "mlx-metal"] {
            assert_eq!(version("mlx"), version(core), "the two halves of one package");
        }
    }
}
