//! Models of a few hundred kilobytes with random weights, one of each kind of architecture.
//!
//! They say nothing sensible, and compute as their large relatives do: what comes after a text depends on all of it,
//! as far as the architecture looks back. So forks, cuts, saved states and batches can be compared on a real runtime in
//! milliseconds. Each is made from nothing, is the same on every machine, and is pinned by its hash.
//!
//! `fixtures::model("tiny-mamba")` finds one in the cache, or makes it; `cargo xtask model tiny-mamba` does it by hand.

mod adapters;
mod decoders;
mod encoders;
mod maker;
mod vocabulary;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cache::{Cache, sha256, sha256_file};
use crate::error::{At, Error, Result};
use crate::gguf::Gguf;

pub use adapters::{adapter, other_adapter};
pub use decoders::{HEADS, INNER, KV_HEADS, LAYERS, VOCAB, WIDTH, WINDOW, gemma3, gpt2, lfm2, llama, mamba};
pub use encoders::{LABELS, bert, rank};

/// One tiny model, or an adapter for one.
#[derive(Clone, Copy, Debug)]
pub struct Tiny {
    /// What it is called.
    pub name: &'static str,
    /// What it is there for, in a line.
    pub about: &'static str,
    pub(crate) sha256: &'static str,
    make: fn() -> Gguf,
}

/// All of them.
pub const ALL: &[Tiny] = &[
    Tiny {
        name: "tiny-llama",
        about: "a decoder with a KV cache (llama)",
        sha256: "2d9836ec3f3a8a275d515ce1b252f2043e2d209c067f5de87a3950fc090a8134",
        make: llama,
    },
    Tiny {
        name: "tiny-gemma3",
        about: "a decoder with a sliding window of 32 positions in every other layer (gemma3)",
        sha256: "f5fdc1294e2fc86ce0eea47748ee17b0bdc968a388fb0deaa2eaab37b3db43a2",
        make: gemma3,
    },
    Tiny {
        name: "tiny-mamba",
        about: "a recurrent decoder, which has a state in place of a cache (mamba)",
        sha256: "63cf8d6a8adbc2ccb938c867398f27581df72b487fdc364e3214d8425ddff873",
        make: mamba,
    },
    Tiny {
        name: "tiny-lfm2",
        about: "a hybrid of recurrent layers and attention (lfm2)",
        sha256: "6d74d798d8f9b0dd6c76fc562753f8050bacf44c5e808b89ebd9782d4bfcfed4",
        make: lfm2,
    },
    Tiny {
        name: "tiny-bert",
        about: "an encoder whose embedding is the mean of its tokens' (bert)",
        sha256: "5c9569bedd407fb6fc97b743eb5948f448fd13d12f857444066b0285a793ad25",
        make: bert,
    },
    Tiny {
        name: "tiny-rank",
        about: "an encoder that classifies by three labels (bert)",
        sha256: "77428112085bc4fb48f4e96484c12bcf7d993a3b54e73c7771d745a971cef01e",
        make: rank,
    },
    Tiny {
        name: "tiny-lora",
        about: "an adapter for tiny-llama",
        sha256: "7809a8bed7aaa64363b293fd90c04cc2a025a45b66898130471deed404104a6b",
        make: adapter,
    },
    Tiny {
        name: "tiny-lora-other",
        about: "an adapter for a llama of twice its width",
        sha256: "7e2d7e60f4d893aed267e75daf77f45fdbccf29d53b50f4c182b384f6590986f",
        make: other_adapter,
    },
];

/// The one called `name`.
#[must_use]
pub fn named(name: &str) -> Option<&'static Tiny> {
    ALL.iter().find(|tiny| tiny.name == name)
}

impl Tiny {
    /// The file as it is to be.
    ///
    /// # Errors
    /// What is made has another hash than the one that is pinned.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let bytes = (self.make)().bytes();
        let found = sha256(&bytes);
        if found == self.sha256 {
            return Ok(bytes);
        }
        Err(Error::new(format!("{} came out with the sha256 {found}, {} is pinned", self.name, self.sha256))
            .with_help("where the change is meant, pin the new one in build-support/src/tiny/mod.rs"))
    }

    /// Its file in the cache, which is made if it is not there, or not what it is to be.
    ///
    /// # Errors
    /// It cannot be made or written.
    pub fn file(&self, cache: &Cache) -> Result<PathBuf> {
        // The hash is in the name, so that checkouts of several versions have a file each.
        let folder = cache.model("tiny");
        let path = folder.join(format!("{}-{}.gguf", self.name, &self.sha256[..12]));
        if sha256_file(&path).is_ok_and(|found| found == self.sha256) {
            return Ok(path);
        }
        let bytes = self.bytes()?;
        fs::create_dir_all(&folder).at("create", &folder)?;
        // Tests run side by side: each writes its own, and the last to be renamed is the one that stays.
        let unfinished = own_name(&folder, self.name);
        fs::write(&unfinished, bytes).at("write", &unfinished)?;
        fs::rename(&unfinished, &path).at("put into the cache", &path)?;
        Ok(path)
    }
}

/// A name in `folder` that no other thread and no other process uses.
fn own_name(folder: &Path, name: &str) -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    folder.join(format!(".{name}-{}-{number}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_out_as_it_is_pinned() {
        let wrong: Vec<String> = ALL.iter().filter_map(|tiny| Some(tiny.bytes().err()?.message().to_owned())).collect();
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }

    #[test]
    fn they_are_small_and_have_names_of_their_own() {
        for tiny in ALL {
            assert!((tiny.make)().bytes().len() < 1 << 20, "{}", tiny.name);
            assert_eq!(named(tiny.name).unwrap().about, tiny.about);
        }
        assert!(named("tiny-nothing").is_none());
    }

    #[test]
    fn a_damaged_file_in_the_cache_is_made_anew() {
        let folder = std::env::temp_dir().join(format!("infer-tiny-{}", std::process::id()));
        let cache = Cache::at(&folder);
        let tiny = named("tiny-llama").unwrap();
        let path = tiny.file(&cache).unwrap();
        let good = fs::read(&path).unwrap();
        fs::write(&path, &good[..good.len() - 1]).unwrap();
        assert_eq!(tiny.file(&cache).unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), good);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing unfinished is left");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn numbers_depend_on_model_tensor_and_place() {
        let (first, second) = (llama(), llama());
        assert!(first.tensors.iter().zip(&second.tensors).all(|(a, b)| a.data == b.data));
        let of = |gguf: &Gguf, name: &str| gguf.clone().tensor(name).data.clone();
        assert_ne!(of(&first, "blk.0.attn_q.weight"), of(&first, "blk.1.attn_q.weight"));
        assert_ne!(of(&first, "token_embd.weight"), of(&mamba(), "token_embd.weight"));
    }
}
