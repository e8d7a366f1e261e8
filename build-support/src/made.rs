//! Models that our Python scripts (`fixtures/`) make, by name, mostly out of GGUF files: what ONNX Runtime and MLX read, in the forms that people
//! have it in, and what llama.cpp reads of the same numbers.
//!
//! Like the [tiny] ones each is the same on every machine, and pinned by a hash, but for what another program computes with it: numbers to compare
//! with, whose last digits are the machine's. They are made by `cargo xtask setup`, or one
//! at a time by `cargo xtask model NAME`, with the packages of [`python`]; [`fixtures::model`] finds them.

mod mlx;
mod onnx;

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{Cache, Installed, Key, KeyOf, sha256, sha256_file};
use crate::env::Env;
use crate::error::{At, Error, Result};
use crate::fixtures;
use crate::host;
use crate::pins::Pin;
use crate::progress::Progress;
use crate::python::{self, Packages};
use crate::tiny;

/// One model that is made.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// What it is called.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The model that it is made of, by its name in [`fixtures::model`]; of the tiny ones for MLX it is the vocabulary alone.
    pub from: &'static str,
    /// It is made of the package that `from` came in, and not of the model.
    package: bool,
    /// Its file, where it is one and not a folder.
    file: Option<&'static str>,
    /// Of everything that is not [`COMPUTED`].
    sha256: &'static str,
    by: &'static Scripts,
}

/// What makes models of one kind.
#[derive(Debug)]
struct Scripts {
    packages: Packages,
    /// By their file names. The first is the one that is run.
    files: &'static [(&'static str, &'static str)],
}

/// What another program computes with a model, where it lies beside it.
const COMPUTED: &str = "expected.safetensors";

pub use mlx::MLX;
pub use onnx::ONNX;

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Made> {
    ONNX.iter().chain(MLX)
}

/// The one called `name`.
#[must_use]
pub fn named(name: &str) -> Option<&'static Made> {
    all().find(|made| made.name == name)
}

impl Made {
    /// Where it lies in the cache, whether it is there or not: a folder, or the one file it is.
    ///
    /// # Errors
    /// The table of pins is malformed.
    pub fn path(&self, cache: &Cache) -> Result<PathBuf> {
        let folder = self.folder(cache)?;
        Ok(self.file.map_or(folder.clone(), |file| folder.join(file)))
    }

    /// Makes it, unless it is there. What it is made of is there, and so are Python's packages.
    ///
    /// # Errors
    /// Either is not, or what came out has another hash than the one that is pinned.
    pub fn make(&self, env: &Env, progress: &mut dyn Progress) -> Result<Installed> {
        let cache = Cache::from_env(env)?;
        cache.install(&self.folder(&cache)?, progress, |folder, progress| {
            progress.start(&format!("making {} of {}", self.name, self.from));
            self.run(env, &cache, folder, progress)?;
            let found = sha256_folder(folder)?;
            if found != self.sha256 {
                return Err(Error::new(format!(
                    "{} came out with the sha256 {found}, \"{}\" is pinned",
                    self.name, self.sha256
                ))
                .with_help("where the change is meant, pin the new one in build-support/src/made/"));
            }
            progress.finish("");
            Ok(())
        })
    }

    fn run(&self, env: &Env, cache: &Cache, folder: &Path, progress: &mut dyn Progress) -> Result<()> {
        let source = match self.package()? {
            Some(pin) => cache.downloads().join(&pin.file_for(std::env::consts::OS, std::env::consts::ARCH)?.name),
            None => fixtures::model_in(env, self.from)?,
        };
        let scripts = folder.join("scripts");
        fs::create_dir(&scripts).at("create", &scripts)?;
        for (name, text) in self.by.files {
            fs::write(scripts.join(name), text).at("write", &scripts.join(name))?;
        }
        let mut command = python::command_in(env, cache, self.by.packages)?;
        // -B: nothing that is not the model's is left in the folder.
        command.arg("-B").arg(scripts.join(self.by.files[0].0)).arg(self.name).arg(source).arg(folder);
        host::watch(command, &cache.log(self.name), &format!("the script that makes {}", self.name), progress)?;
        fs::remove_dir_all(&scripts).at("remove", &scripts)
    }

    /// The package that it is made of, where it is not made of a model: it has to be among what was downloaded.
    ///
    /// # Errors
    /// The table of pins is malformed.
    pub fn package(&self) -> Result<Option<Pin>> {
        self.package.then(|| Pin::named(self.from)).transpose()
    }

    /// The packages that it is made with.
    #[must_use]
    pub fn packages(&self) -> Packages {
        self.by.packages
    }

    fn folder(&self, cache: &Cache) -> Result<PathBuf> {
        Ok(cache.model(&format!("{}-{}", self.name, self.key()?.short())))
    }

    /// What it is made of and by: a change of any of it gives it another place.
    fn key(&self) -> Result<Key> {
        let source = match tiny::named(self.from) {
            Some(tiny) => tiny.sha256.to_owned(),
            None => Pin::named(self.from)?.files.iter().map(|file| file.sha256.as_str()).collect::<Vec<_>>().join(" "),
        };
        let mut key = KeyOf::default().value("name", self.name).value("source", &source);
        for list in self.by.packages.lists() {
            key = key.contents(list.key(), list.text);
        }
        Ok(self.by.files.iter().fold(key, |key, (name, text)| key.contents(name, text)).key())
    }
}

/// The sha256 of a list of all files in `folder` but [`COMPUTED`], by their paths, with the sha256 of each: as `sha256sum` prints it.
fn sha256_folder(folder: &Path) -> Result<String> {
    let mut lines = Vec::new();
    list(folder, "", &mut lines)?;
    lines.sort();
    let list: String = lines.into_iter().map(|(path, hash)| format!("{hash}  {path}\n")).collect();
    Ok(sha256(list.as_bytes()))
}

fn list(folder: &Path, prefix: &str, lines: &mut Vec<(String, String)>) -> Result<()> {
    for entry in fs::read_dir(folder).at("read", folder)? {
        let path = entry.at("read", folder)?.path();
        let name = format!("{prefix}{}", path.file_name().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            list(&path, &format!("{name}/"), lines)?;
        } else if name != COMPUTED {
            lines.push((name, sha256_file(&path)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// One that is not in the list would be missing where the scripts are run, and its changes would go unseen.
    #[test]
    fn every_script_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let there: BTreeSet<_> = names.filter(|name| name.ends_with(".py")).collect();
        let listed = all().flat_map(|made| made.by.files).map(|(name, _)| (*name).to_owned());
        assert_eq!(there, listed.collect());
    }

    #[test]
    fn each_is_made_of_a_model_that_there_is_and_by_a_line_of_the_script() {
        for made in all() {
            assert!(fixtures::names().contains(&made.from) && named(made.from).is_none(), "{}", made.name);
            let line = format!("\"{}\":", made.name);
            assert!(made.by.files.iter().any(|(_, text)| text.contains(&line)), "{}", made.name);
            assert_eq!(named(made.name).unwrap().about, made.about);
            assert_eq!(made.sha256.len(), 64, "{}", made.name);
        }
        assert!(named("tiny-llama").is_none());
    }

    #[test]
    fn each_has_a_place_of_its_own_that_depends_on_the_scripts_and_on_what_it_is_made_of() {
        let cache = Cache::at("/cache");
        let places: BTreeSet<_> = all().map(|made| made.path(&cache).unwrap()).collect();
        assert_eq!(places.len(), all().count());
        for (name, first) in [("tiny-onnx", "make.py = "), ("tiny-mlx-llama", "python-mlx = ")] {
            let key = named(name).unwrap().key().unwrap();
            for line in ["source = \"2d9836ec", "packages = ", first, "gguf.py = "] {
                assert!(key.text().contains(line), "{line}: {}", key.text());
            }
        }
    }

    #[test]
    fn one_that_is_not_there_is_not_made_in_passing_and_the_error_says_what_makes_it() {
        let env = Env::of([(crate::env::CACHE, "/no/such/cache")]);
        for made in all() {
            let error = fixtures::model_in(&env, made.name).unwrap_err().to_string();
            assert!(error.contains("/no/such/cache/models/"), "{error}");
            assert!(error.ends_with(&format!("help: cargo xtask model {}", made.name)), "{error}");
        }
    }

    #[test]
    fn the_hash_of_a_folder_is_of_names_and_contents_in_it() {
        let folder = std::env::temp_dir().join(format!("infer-made-{}", std::process::id()));
        let hash = |files: &[(&str, &str)]| {
            let _ = fs::remove_dir_all(&folder);
            for (name, text) in files {
                let path = folder.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            sha256_folder(&folder).unwrap()
        };
        let good = hash(&[("a", "1"), ("b/c", "2")]);
        assert_eq!(good, hash(&[("b/c", "2"), ("a", "1")]));
        let list = format!("{}  a\n{}  b/c\n", sha256(b"1"), sha256(b"2"));
        assert_eq!(good, sha256(list.as_bytes()), "as sha256sum would list them");
        for other in
            [&[("a", "1"), ("b/c", "3")][..], &[("a", "1"), ("b/d", "2")], &[("a", "1")], &[("a", "1"), ("b", "2")]]
        {
            assert_ne!(good, hash(other));
        }
        assert_eq!(
            good,
            hash(&[("a", "1"), ("b/c", "2"), (COMPUTED, "3")]),
            "but for what is computed on each machine"
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
