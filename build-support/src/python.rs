//! Python with the packages that make fixtures for the tests, and that the tests compare with: `python.txt`.
//!
//! `cargo xtask setup` installs them into a folder of the cache, one for each version of Python and of the list. Nothing that the machine has
//! installed for itself is seen.

use std::path::PathBuf;
use std::process::Command;

use crate::cache::{Cache, sha256};
use crate::env::{self, Env};
use crate::error::{Error, Result};
use crate::pins::PYTHON_PACKAGES;
use crate::tools;

/// The versions of CPython that the list has wheels for, as they call themselves.
const VERSIONS: [&str; 4] = ["cpython-311", "cpython-312", "cpython-313", "cpython-314"];

/// Says which Python it is; a build without the lock of old needs other wheels.
const WHICH: &str = "import sys; print(sys.implementation.cache_tag + getattr(sys, 'abiflags', ''))";

/// That Python, for the environment of this process.
///
/// # Errors
/// There is no Python, or not one of a version that has these packages, or they are not in the cache yet.
pub fn command() -> Result<Command> {
    let env = Env::from_process();
    command_in(&env, &Cache::from_env(&env)?)
}

/// That Python, for another environment.
///
/// # Errors
/// As [`command`].
pub fn command_in(env: &Env, cache: &Cache) -> Result<Command> {
    let found = Python::find(env)?;
    let folder = found.folder(cache);
    if !folder.is_dir() {
        let lacks = format!("the Python packages of the tests are not in the cache: {} is not there", folder.display());
        return Err(Error::new(lacks).with_help("cargo xtask setup --only python"));
    }
    let mut command = Command::new(found.program);
    // -S: the machine's own packages stay out.
    command.arg("-S").env("PYTHONPATH", folder).env("PYTHONNOUSERSITE", "1");
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

    /// Where its packages lie.
    pub(crate) fn folder(&self, cache: &Cache) -> PathBuf {
        cache.python(&format!("{}-{}", self.version, &sha256(PYTHON_PACKAGES.as_bytes())[..12]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A program that says it is a Python of that version.
    #[cfg(unix)]
    fn pretender(folder: &std::path::Path, version: &str) -> Env {
        use std::os::unix::fs::PermissionsExt;
        let program = folder.join(format!("says-{version}"));
        fs::write(&program, format!("#!/bin/sh\necho {version}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Env::of([(env::PYTHON, &program)])
    }

    #[cfg(unix)]
    #[test]
    fn packages_are_for_one_version_and_one_list() {
        let folder = std::env::temp_dir().join(format!("infer-python-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let cache = Cache::at(folder.join("cache"));
        let env = pretender(&folder, "cpython-312");
        let error = command_in(&env, &cache).unwrap_err().to_string();
        assert!(error.contains("python/cpython-312-") && error.contains("cargo xtask setup --only python"), "{error}");

        let packages = Python::find(&env).unwrap().folder(&cache);
        fs::create_dir_all(&packages).unwrap();
        let command = command_in(&env, &cache).unwrap();
        let path = command.get_envs().find(|(name, _)| *name == "PYTHONPATH").unwrap().1.unwrap();
        assert_eq!(path, packages.as_os_str());
        let other = pretender(&folder, "cpython-313");
        assert!(command_in(&other, &cache).is_err(), "another version has packages of its own");
        for version in ["cpython-39", "cpython-313t", "pypy311", ""] {
            let error = command_in(&pretender(&folder, version), &cache).unwrap_err().to_string();
            assert!(error.contains("are for others") && error.contains(env::PYTHON), "{version}: {error}");
        }
        let none = command_in(&Env::of([(env::PYTHON, "/no/such/python")]), &cache).unwrap_err().to_string();
        assert!(none.contains("/no/such/python"), "{none}");
        fs::remove_dir_all(folder).unwrap();
    }

    /// pip takes nothing without a hash where one has it; and nothing that is listed may be taken in another version.
    #[test]
    fn every_package_of_the_list_has_a_version_and_hashes() {
        let mut packages = Vec::new();
        for line in PYTHON_PACKAGES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let line = line.trim_end_matches('\\').trim();
            match line.strip_prefix("--hash=sha256:") {
                Some(hash) => {
                    assert!(hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()), "{line}");
                    *packages.last_mut().map(|(_, hashes)| hashes).unwrap() += 1;
                }
                None => packages.push((line.split_once("==").expect(line), 0)),
            }
        }
        assert!(packages.iter().all(|(_, hashes)| *hashes > 0), "{packages:?}");
        let version = |wanted: &str| packages.iter().find(|((name, _), _)| *name == wanted).unwrap().0.1;
        let pinned = crate::pins::Pin::named("onnxruntime").unwrap();
        assert_eq!(version("onnxruntime"), pinned.version, "compared with the very version that is loaded");
    }
}
