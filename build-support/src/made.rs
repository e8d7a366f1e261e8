//! Models that our Python scripts (`fixtures/`) make out of GGUF files, by name: what ONNX Runtime reads, in the forms that people have
//! it in, and what llama.cpp reads of the same numbers.
//!
//! Like the [tiny] ones each is the same on every machine, and pinned by a hash. They are made by `cargo xtask setup`, or one
//! at a time by `cargo xtask model NAME`, with the packages of [`python`]; [`fixtures::model`] finds them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{Cache, Installed, Key, KeyOf, sha256, sha256_file};
use crate::env::Env;
use crate::error::{At, Error, Result};
use crate::fixtures;
use crate::host;
use crate::pins::{PYTHON_PACKAGES, Pin};
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
    /// The model that it is made of, by its name in [`fixtures::model`].
    pub from: &'static str,
    /// Its file, where it is one and not a folder.
    file: Option<&'static str>,
    sha256: &'static str,
}

/// All of them.
pub const ALL: &[Made] = &[
    Made {
        name: "tiny-onnx",
        about: "tiny-llama as a folder of onnxruntime-genai: a graph with fused attention (GroupQueryAttention)",
        from: "tiny-llama",
        file: None,
        sha256: "158d34158b14f2f2eb7eb562e27f0a16ab92ac6557614a5fd9307f51cee0c85e",
    },
    Made {
        name: "tiny-onnx-int4",
        about: "the same with matrices of 4 bits a number (MatMulNBits)",
        from: "tiny-llama",
        file: None,
        sha256: "5eed8bcf69053dea6f826500cc46a92bab39409ce6af496d99cbb8d715ecb136",
    },
    Made {
        name: "tiny-onnx-f16",
        about: "the same with weights, cache and logits of 16 bits",
        from: "tiny-llama",
        file: None,
        sha256: "6481f3b569f7ba6e0ea5f7c80c9a86ad15dd1c044cea2437d43b66d4a9b1181e",
    },
    Made {
        name: "tiny-onnx-plain",
        about: "tiny-llama as a folder of optimum: attention in plain operators, with position_ids",
        from: "tiny-llama",
        file: None,
        sha256: "88d9716b356b9bdae9f500d3e9b3b61aa829021ece411995070b2bab2e67830d",
    },
    Made {
        name: "tiny-onnx-no-positions",
        about: "the same without position_ids: what is fed comes right after what is cached",
        from: "tiny-llama",
        file: None,
        sha256: "47912f3171f93118bf6e63671379527be97674c0366ff8b43647fc50e7f7f370",
    },
    Made {
        name: "tiny-onnx-encoder",
        about: "tiny-bert: a state a token, whose mean is the embedding",
        from: "tiny-bert",
        file: None,
        sha256: "c8f50a5ed8d027c8e51d8b3f8cc4e3e1666f4eb4746cc8551497e40df703c06d",
    },
    Made {
        name: "tiny-onnx-classifier",
        about: "tiny-rank: a number for each of three labels",
        from: "tiny-rank",
        file: None,
        sha256: "12fc029ac8b611080d3dd293d723aac97ead732e82207a26b860ddba89d6bd57",
    },
    Made {
        name: "tiny-onnx-reranker",
        about: "the same with the number for one label alone, and without token_type_ids",
        from: "tiny-rank",
        file: None,
        sha256: "029287180fcb45d7ad4c0b1ac8a29540842a4991f577fcb28c336719c304a84b",
    },
    Made {
        name: "minilm-onnx",
        about: "all-MiniLM-L6-v2, with its tokenizer as published, which cuts at 128 tokens and fills up to as many",
        from: "minilm",
        file: None,
        sha256: "4395b8fa36c0b69da4e0c75b95ac10069a62e47e3dd8caecc8078b6a23ba3f46",
    },
    Made {
        name: "smollm2-f32",
        about: "SmolLM2-135M-Instruct as GGUF, the numbers of the Q4_1 file as 32-bit floats",
        from: "smollm2",
        file: Some("SmolLM2-135M-Instruct.F32.gguf"),
        sha256: "d75979ca658908a57b52c3ad2a683282e27a4c0addf4bfd104db444423309b42",
    },
    Made {
        name: "smollm2-onnx",
        about: "the same numbers as a folder of onnxruntime-genai: a graph with fused attention (GroupQueryAttention)",
        from: "smollm2",
        file: None,
        sha256: "9dbe1cbd13f8e9b984a79d69c193c14da0c1f2df2201d43b6fe9b262109cb887",
    },
    Made {
        name: "smollm2-onnx-int4",
        about: "the same with matrices of 4 bits a number (MatMulNBits), as the model builder makes them for a CPU",
        from: "smollm2",
        file: None,
        sha256: "2421932abe93fb5ca7b9f8e3f1ce4a9b66394324b563fd7c9665a8d0988dfb78",
    },
    Made {
        name: "smollm2-onnx-plain",
        about: "the same numbers as a folder of optimum: attention in plain operators, with position_ids",
        from: "smollm2",
        file: None,
        sha256: "e5de736b43b9ddcacff5d1c2f87a5c29fcb67883532c7371ec7b930645b4bbeb",
    },
];

/// The scripts, by their file names. The first is the one that is run.
const SCRIPTS: &[(&str, &str)] = &[
    ("make.py", include_str!("../fixtures/make.py")),
    ("decoder.py", include_str!("../fixtures/decoder.py")),
    ("encoder.py", include_str!("../fixtures/encoder.py")),
    ("files.py", include_str!("../fixtures/files.py")),
    ("four_bits.py", include_str!("../fixtures/four_bits.py")),
    ("genai.py", include_str!("../fixtures/genai.py")),
    ("gguf.py", include_str!("../fixtures/gguf.py")),
    ("graph.py", include_str!("../fixtures/graph.py")),
    ("plain.py", include_str!("../fixtures/plain.py")),
    ("tokenizer.py", include_str!("../fixtures/tokenizer.py")),
];

/// The one called `name`.
#[must_use]
pub fn named(name: &str) -> Option<&'static Made> {
    ALL.iter().find(|made| made.name == name)
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
                .with_help("where the change is meant, pin the new one in build-support/src/made.rs"));
            }
            progress.finish("");
            Ok(())
        })
    }

    fn run(&self, env: &Env, cache: &Cache, folder: &Path, progress: &mut dyn Progress) -> Result<()> {
        let source = fixtures::model_in(env, self.from)?;
        let scripts = folder.join("scripts");
        fs::create_dir(&scripts).at("create", &scripts)?;
        for (name, text) in SCRIPTS {
            fs::write(scripts.join(name), text).at("write", &scripts.join(name))?;
        }
        let mut command = python::command_in(env, cache, Packages::Common)?;
        // -B: nothing that is not the model's is left in the folder.
        command.arg("-B").arg(scripts.join(SCRIPTS[0].0)).arg(self.name).arg(source).arg(folder);
        host::watch(command, &cache.log(self.name), &format!("the script that makes {}", self.name), progress)?;
        fs::remove_dir_all(&scripts).at("remove", &scripts)
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
        let key =
            KeyOf::default().value("name", self.name).value("source", &source).contents("packages", PYTHON_PACKAGES);
        Ok(SCRIPTS.iter().fold(key, |key, (name, text)| key.contents(name, text)).key())
    }
}

/// The sha256 of a list of all files in `folder`, by their paths, with the sha256 of each: as `sha256sum` prints it.
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
        } else {
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
        assert_eq!(there, SCRIPTS.iter().map(|(name, _)| (*name).to_owned()).collect());
    }

    #[test]
    fn each_is_made_of_a_model_that_there_is_and_by_a_line_of_the_script() {
        for made in ALL {
            assert!(fixtures::names().contains(&made.from) && named(made.from).is_none(), "{}", made.name);
            assert!(SCRIPTS[0].1.contains(&format!("\"{}\":", made.name)), "{}", made.name);
            assert_eq!(named(made.name).unwrap().about, made.about);
            assert_eq!(made.sha256.len(), 64, "{}", made.name);
        }
        assert!(named("tiny-llama").is_none());
    }

    #[test]
    fn each_has_a_place_of_its_own_that_depends_on_the_scripts_and_on_what_it_is_made_of() {
        let cache = Cache::at("/cache");
        let places: BTreeSet<_> = ALL.iter().map(|made| made.path(&cache).unwrap()).collect();
        assert_eq!(places.len(), ALL.len());
        let key = named("tiny-onnx").unwrap().key().unwrap();
        for line in ["source = \"2d9836ec", "packages = ", "make.py = ", "gguf.py = "] {
            assert!(key.text().contains(line), "{line}: {}", key.text());
        }
    }

    #[test]
    fn one_that_is_not_there_is_not_made_in_passing_and_the_error_says_what_makes_it() {
        let env = Env::of([(crate::env::CACHE, "/no/such/cache")]);
        for made in ALL {
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
        fs::remove_dir_all(&folder).unwrap();
    }
}
