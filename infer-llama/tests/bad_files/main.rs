//! Files that are wrong, each opened in a child process: an abort, a signal or a hang is a failed case, and so is an error
//! that does not name the file and the field.

mod fields;
#[path = "../kit/mod.rs"]
mod kit;
mod mutations;
mod tensors;
mod vocabulary;

use infer_core::{Batch, ErrorKind, OpenOptions, Result, Sampling, Session as _, Special, Token, Tokenizer as _, Want};
use infer_llama::{Llama, Model, SessionOptions, Tokenizer};
use kit::{
    gguf::{Field, Gguf, Tensor},
    tiny,
};
use std::path::{Path, PathBuf};
use test_kit::{Folder, Random, child};

/// Not a case by itself: what the children run.
#[test]
fn open_and_decode() {
    let Some(path) = child::file() else { return };
    match decode_a_little(&path) {
        Ok(()) => child::answer("a model"),
        Err(error) => child::answer(&format!("{:?}: {}", error.kind(), error.to_string().replace('\n', " "))),
    }
}

/// As far as a header can do damage: loaded, a text encoded, a context made, a prompt and a token computed.
fn decode_a_little(path: &Path) -> Result<()> {
    let model = Model::open(&Llama::linked()?, path)?;
    model.tokenizer().encode("A word, é\n", Special::ADD, &mut Vec::new())?;
    let mut session = model.session(&SessionOptions::new().with_context(64).with_threads(1))?;
    let seq = session.open(&OpenOptions::default())?;
    let prompt = [1, 2, 3].map(Token);
    session.sample_with(&seq, &Sampling::greedy(), &prompt)?;
    let mut batch = Batch::new();
    batch.push(&seq, &prompt, Want::Token);
    session.decode(&batch)?;
    let next = session.outputs().token(0).expect("a token was wanted");
    batch.clear();
    batch.push(&seq, &[next], Want::Token);
    session.decode(&batch)
}

fn open(path: &Path) -> Result<String, String> {
    child::open_in_child("open_and_decode", path)
}

/// Opens the file and wants an error of this kind whose text has all of `words`, the file's name among them.
#[track_caller]
fn refused(path: &Path, kind: ErrorKind, words: &[&str]) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let said = open(path).unwrap_or_else(|end| panic!("{name}: {end}"));
    let wanted = format!("{kind:?}: ");
    assert!(said.starts_with(&wanted), "{name}: {said}, not {kind:?}");
    for word in words.iter().chain([&name]) {
        assert!(said.contains(word), "{name}: no {word:?} in {said}");
    }
}

/// A case: what is done to the good model, and words that the error has to have.
type Case = (&'static str, fn(&mut Gguf), &'static [&'static str]);

fn set(gguf: &mut Gguf, key: &str, value: Field) {
    gguf.set(key, value);
}

#[track_caller]
fn all_refused(cases: &[Case]) {
    let folder = Folder::new();
    for (name, change, words) in cases {
        let mut gguf = tiny::llama();
        change(&mut gguf);
        let path = folder.file(&format!("{name}.gguf"), &gguf.bytes());
        refused(&path, ErrorKind::InvalidModel, words);
    }
}

#[test]
fn the_model_these_are_made_of_is_good() {
    let folder = Folder::new();
    let path = folder.file("tiny.gguf", &tiny::llama().bytes());
    assert_eq!(open(&path).unwrap(), "a model");
}

#[test]
fn no_file_at_all() {
    let folder = Folder::new();
    refused(&folder.path().join("missing.gguf"), ErrorKind::Io, &["No such file"]);
    refused(folder.path(), ErrorKind::Io, &["is a directory"]);
    refused(&folder.file("empty.gguf", b""), ErrorKind::InvalidModel, &["the file is empty"]);
}

#[test]
fn wrong_magic_and_versions() {
    let folder = Folder::new();
    let good = tiny::llama().bytes();
    let with = |name: &str, at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        folder.file(name, &file)
    };
    refused(&with("magic.gguf", 0, b"GGML"), ErrorKind::InvalidModel, &["GGML", "GGUF"]);
    refused(&with("v0.gguf", 4, &0_u32.to_le_bytes()), ErrorKind::InvalidModel, &["version 0"]);
    refused(&with("v1.gguf", 4, &1_u32.to_le_bytes()), ErrorKind::InvalidModel, &["version 1"]);
    refused(&with("v4.gguf", 4, &4_u32.to_le_bytes()), ErrorKind::InvalidModel, &["version 4"]);
    refused(&with("big-endian.gguf", 4, &3_u32.to_be_bytes()), ErrorKind::InvalidModel, &["byte order"]);
}

/// Counts and lengths that claim more than there is: refused at once, without memory for what is claimed.
#[test]
fn counts_that_overflow() {
    let folder = Folder::new();
    let good = tiny::llama().bytes();
    let with = |name: &str, at: usize, number: u64| {
        let mut file = good.clone();
        file[at..at + 8].copy_from_slice(&number.to_le_bytes());
        folder.file(name, &file)
    };
    for (index, number) in [1 << 60, u64::MAX, 1 << 32, i64::MAX as u64].into_iter().enumerate() {
        refused(
            &with(&format!("tensors-{index}.gguf"), 8, number),
            ErrorKind::InvalidModel,
            &["the number of tensors"],
        );
        refused(&with(&format!("fields-{index}.gguf"), 16, number), ErrorKind::InvalidModel, &["metadata fields"]);
        refused(&with(&format!("key-{index}.gguf"), 24, number), ErrorKind::InvalidModel, &["metadata field 0"]);
    }
    let mut array = tiny::llama();
    let claim = [4_u32.to_le_bytes().as_slice(), &(1_u64 << 60).to_le_bytes()].concat();
    array.set("llama.lies", Field::Raw(9, claim));
    refused(&folder.file("array.gguf", &array.bytes()), ErrorKind::InvalidModel, &["llama.lies"]);
}

#[test]
fn fifty_truncations() {
    let folder = Folder::new();
    let good = tiny::llama().bytes();
    let header = tiny::llama().header().len() as u64;
    let mut random = Random(20_240_607);
    for number in 0..50 {
        // Half of them inside the header, which is a small part of the file.
        let end = if number % 2 == 0 { random.below(header) } else { random.below(good.len() as u64 - 32) };
        let path = folder.file(&format!("truncated-{end}.gguf"), &good[..end as usize]);
        let word = if end == 0 {
            "empty"
        } else if end < 8 {
            ""
        } else {
            "truncated"
        };
        let said = open(&path).unwrap_or_else(|how| panic!("cut at {end}: {how}"));
        let names = said.contains(&format!("truncated-{end}.gguf"));
        // Counts may be found out before the end of the file is met.
        let reason = said.contains(word) || said.contains("cannot hold them") || said.contains("this is no GGUF file");
        assert!(said.starts_with("InvalidModel: ") && names && reason, "cut at {end}: {said}");
    }
}

/// A pattern cuts a text into words, and its matcher calls itself for each character of one: what anybody may send must not end the
/// process. Each in a child, of which the test runs on a thread with the usual stack.
#[test]
fn words_without_end() {
    let folder = Folder::new();
    for pre in ["default", "deepseek-llm", "tekken", "gpt-4o", "tiny_aya", "youtu"] {
        let mut gguf = tiny::llama();
        gguf.set("tokenizer.ggml.pre", Field::text(pre));
        let path = folder.file(&format!("{pre}.gguf"), &gguf.bytes());
        assert_eq!(child::open_in_child("encode_long_words", &path).unwrap(), "encoded", "{pre}");
    }
}

/// Not a case by itself: what the children run.
#[test]
fn encode_long_words() {
    let Some(path) = child::file() else { return };
    let tokenizer = Tokenizer::open(&Llama::linked().unwrap(), path).unwrap();
    for word in ["a", "aA", "a ", " ", "1", "!", "\n", "漢", "a\u{301}"] {
        let mut tokens = Vec::new();
        tokenizer.encode(&word.repeat(20_000), Special::NONE, &mut tokens).unwrap();
        assert_eq!(tokens.len(), 20_000 * word.len(), "a token a byte");
    }
    child::answer("encoded");
}

type SplitCase = (&'static str, fn(&mut [Gguf; 2]), &'static [&'static str]);

/// Parts that do not belong together.
#[test]
fn split_models() {
    let folder = Folder::new();
    let parts = tiny::split(tiny::llama());
    let write = |prefix: &str, parts: &[Gguf; 2]| -> PathBuf {
        folder.file(&format!("{prefix}-00002-of-00002.gguf"), &parts[1].bytes());
        folder.file(&format!("{prefix}-00001-of-00002.gguf"), &parts[0].bytes())
    };
    assert_eq!(open(&write("good", &parts)).unwrap(), "a model");

    let cases: [SplitCase; 6] = [
        ("number-type", |p| set(&mut p[1], "split.no", Field::U32(1)), &["split.no is of type u32"]),
        ("number", |p| set(&mut p[1], "split.no", Field::U16(0)), &["split.no is 0"]),
        ("no-number", |p| _ = p[1].remove("split.no"), &["split.no is missing"]),
        ("count", |p| set(&mut p[1], "split.count", Field::U16(3)), &["split.count is 3"]),
        ("tensors", |p| _ = p[1].tensors.pop(), &["split.tensors.count"]),
        ("twins", |p| p[1].tensors[0].name = p[0].tensors[0].name.clone(), &["token_embd.weight"]),
    ];
    for (name, change, words) in cases {
        let mut parts = parts.clone();
        change(&mut parts);
        let path = write(name, &parts);
        let said = open(&path).unwrap();
        assert!(said.starts_with("InvalidModel: ") && said.contains(name), "{name}: {said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{name}: no {word:?} in {said}"));
    }

    let second = folder.path().join("good-00002-of-00002.gguf");
    refused(&second, ErrorKind::InvalidModel, &["this is part 2 of 2", "good-00001-of-00002.gguf"]);
    let alone = folder.file("alone-00001-of-00002.gguf", &parts[0].bytes());
    let said = open(&alone).unwrap();
    assert!(said.starts_with("Io: ") && said.contains("alone-00002-of-00002.gguf"), "{said}");
    let renamed = folder.file("renamed.gguf", &parts[0].bytes());
    refused(&renamed, ErrorKind::InvalidModel, &["split.count"]);
}
