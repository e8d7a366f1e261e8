//! LoRA adapters over the linked door, with a tiny model; wrong ones each in a child process.

mod kit;

use build_support::tiny::{VOCAB, WIDTH};
use infer_core::{AdapterSource, Batch, ErrorKind, OpenOptions, Result, Sampling, Sequence, Session as _, Token, Want};
use infer_llama::{Llama, Model, ModelOptions, Session, SessionOptions};
use kit::{
    gguf::{Field, Gguf, Tensor},
    lora, tiny,
};
use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};
use test_kit::{Folder, Random, child};

const PROMPT: [u32; 7] = [72, 101, 108, 108, 111, 44, 32];

struct Files {
    folder: Folder,
    model: Model,
}

impl Files {
    fn new() -> Self {
        let folder = Folder::new();
        let path = folder.file("tiny.gguf", &tiny::llama().bytes());
        let model = Model::open(&Llama::linked().unwrap(), path).unwrap();
        Self { folder, model }
    }

    fn adapter(&self, seed: u64) -> PathBuf {
        self.folder.file(&format!("adapter-{seed}.gguf"), &lora::llama(seed).bytes())
    }

    fn source(&self, name: &str, seed: u64) -> AdapterSource {
        AdapterSource::new(name, self.adapter(seed))
    }
}

fn options() -> SessionOptions {
    SessionOptions::new().with_context(128).with_threads(1).with_sequences(4)
}

fn with(adapter: &str) -> OpenOptions {
    OpenOptions::new().with_adapter(adapter)
}

fn prompt() -> Vec<Token> {
    PROMPT.map(Token).to_vec()
}

fn feed(session: &mut Session, seq: &Sequence, tokens: &[Token]) -> Vec<f32> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, Want::Logits);
    session.decode(&batch).unwrap();
    session.outputs().logits(0).unwrap().to_vec()
}

fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// What a sequence opened so gives after the prompt, alone in its session.
fn alone(files: &Files, source: Option<AdapterSource>) -> Vec<f32> {
    let open = source.as_ref().map_or_else(OpenOptions::default, |source| with(&source.name));
    let options = source.into_iter().fold(options(), SessionOptions::with_adapter);
    let mut session = files.model.session(&options).unwrap();
    let seq = session.open(&open).unwrap();
    feed(&mut session, &seq, &prompt())
}

#[test]
fn an_adapter_changes_logits_as_much_as_its_scale_says() {
    let files = Files::new();
    let bare = alone(&files, None);
    let full = alone(&files, Some(files.source("a", 1)));
    assert!(apart(&bare, &full) > 0.1, "it makes a difference");
    let none = alone(&files, Some(files.source("a", 1).with_scale(0.0)));
    assert_eq!(none, bare, "with a scale of 0 it is not there");
    let little = alone(&files, Some(files.source("a", 1).with_scale(1e-3)));
    assert!(apart(&bare, &little) > 0.0 && apart(&bare, &little) < apart(&bare, &full) / 50.0);
    assert_ne!(alone(&files, Some(files.source("a", 2))), full, "another adapter is another");
}

#[test]
fn sequences_in_turns_equal_each_alone() {
    let files = Files::new();
    let sources = [files.source("a", 1), files.source("b", 2).with_scale(0.5)];
    let mut expected: Vec<_> = sources.iter().map(|source| alone(&files, Some(source.clone()))).collect();
    expected.push(alone(&files, None));
    let options = sources.into_iter().fold(options(), SessionOptions::with_adapter);
    let mut session = files.model.session(&options).unwrap();
    let opened = [with("a"), with("b"), OpenOptions::default()];
    let sequences = opened.map(|options| session.open(&options).unwrap());
    let mut last = vec![Vec::new(); 3];
    for token in prompt() {
        for (index, seq) in sequences.iter().enumerate() {
            last[index] = feed(&mut session, seq, &[token]);
        }
    }
    for (got, expected) in last.iter().zip(&expected) {
        assert!(apart(got, expected) < 1e-3, "{} apart", apart(got, expected));
    }
}

#[test]
fn a_fork_has_its_parents_adapter() {
    let files = Files::new();
    let expected = alone(&files, Some(files.source("a", 1)));
    let mut session = files.model.session(&options().with_adapter(files.source("a", 1))).unwrap();
    let parent = session.open(&with("a")).unwrap();
    feed(&mut session, &parent, &prompt()[..4]);
    let child = session.fork(&parent, 4).unwrap();
    drop(parent);
    assert!(apart(&feed(&mut session, &child, &prompt()[4..]), &expected) < 1e-3);
    // Its slot goes to a sequence without one.
    drop(child);
    let bare = session.open(&OpenOptions::default()).unwrap();
    assert!(apart(&feed(&mut session, &bare, &prompt()), &alone(&files, None)) < 1e-3);
}

#[test]
fn a_restored_sequence_has_the_adapter_it_was_saved_with() {
    let files = Files::new();
    let sources = || [files.source("a", 1), files.source("b", 2)];
    let expected = alone(&files, Some(files.source("b", 2)));
    let mut session =
        files.model.session(&sources().into_iter().fold(options(), SessionOptions::with_adapter)).unwrap();
    let seq = session.open(&with("b")).unwrap();
    feed(&mut session, &seq, &prompt()[..4]);
    let mut file = Vec::new();
    session.save(&seq, &mut file).unwrap();
    // Found by its name, wherever it stands.
    let mut other = files.model.session(&options().with_adapter(files.source("b", 2))).unwrap();
    for session in [&mut session, &mut other] {
        let restored = session.restore(&mut &file[..]).unwrap();
        assert!(apart(&feed(session, &restored, &prompt()[4..]), &expected) < 1e-3);
    }
    let mut without = files.model.session(&options().with_adapter(files.source("a", 1))).unwrap();
    let error = without.restore(&mut &file[..]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("\"b\""), "{error}");
    assert_eq!(without.usage().sequences, 0);
    // One of that name with other weights, or another strength, is not the one.
    for source in [files.source("b", 1), files.source("b", 2).with_scale(0.5)] {
        let mut other = files.model.session(&options().with_adapter(source)).unwrap();
        let error = other.restore(&mut &file[..]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("another adapter \"b\""), "{error}");
        assert_eq!(other.usage().sequences, 0);
    }
    // The same that is loaded already, from another file with the same in it.
    let path = files.folder.file("copy.gguf", &lora::llama(2).bytes());
    let loaded = files.model.adapter(path).unwrap();
    let mut other = files.model.session(&options().with_loaded_adapter("b", &loaded, 1.0)).unwrap();
    other.restore(&mut &file[..]).unwrap();
}

#[test]
fn a_batch_has_one_adapter() {
    let files = Files::new();
    let mut session = files.model.session(&options().with_adapter(files.source("a", 1))).unwrap();
    let adapted = session.open(&with("a")).unwrap();
    let bare = session.open(&OpenOptions::default()).unwrap();
    let again = session.open(&with("a")).unwrap();
    let mut batch = Batch::new();
    batch.push(&adapted, &prompt(), Want::Logits);
    batch.push(&again, &prompt(), Want::Nothing);
    batch.push(&bare, &prompt(), Want::Logits);
    let error = session.decode(&batch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    for words in ["entry 0", "adapter \"a\"", "entry 2", "no adapter"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!((adapted.len(), bare.len()), (0, 0));
    assert!(apart(&feed(&mut session, &bare, &prompt()), &alone(&files, None)) < 1e-3, "and everything works on");
}

#[test]
fn options_that_are_wrong() {
    let files = Files::new();
    let refused = |options: SessionOptions, kind: ErrorKind, words: &[&str]| {
        let error = files.model.session(&options).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        for word in words {
            assert!(error.to_string().contains(word), "no {word:?} in {error}");
        }
    };
    let source = || files.source("a", 1);
    let twice = options().with_adapter(source()).with_adapter(files.source("a", 2));
    refused(twice, ErrorKind::InvalidInput, &["two adapters", "\"a\""]);
    for scale in [f32::NAN, f32::INFINITY] {
        let options = options().with_adapter(source().with_scale(scale));
        refused(options, ErrorKind::InvalidInput, &["\"a\"", "scale", &scale.to_string()]);
    }
    refused(options().with_adapter(files.source("", 1)), ErrorKind::InvalidInput, &["no name"]);
    let missing = AdapterSource::new("a", files.folder.path().join("missing.gguf"));
    refused(options().with_adapter(missing), ErrorKind::Io, &["\"a\"", "missing.gguf"]);
    let model = AdapterSource::new("a", files.folder.path().join("tiny.gguf"));
    refused(options().with_adapter(model), ErrorKind::InvalidModel, &["\"a\"", "tiny.gguf", "general.type"]);

    let mut session = files.model.session(&options().with_adapter(source())).unwrap();
    let error = session.open(&with("b")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("\"b\"") && error.to_string().contains("there are a"), "{error}");
    session.open(&with("a")).unwrap();
}

#[test]
fn a_loaded_adapter_serves_sessions_of_its_model_and_no_other() {
    let files = Files::new();
    let expected = alone(&files, Some(files.source("a", 1)));
    let adapter = files.model.adapter(files.adapter(1)).unwrap();
    assert_eq!(adapter.header().value("general.name").unwrap().as_str(), Some("tiny adapter"));
    let path = files.folder.path().join("tiny.gguf");
    let other = Model::open(&Llama::linked().unwrap(), &path).unwrap();
    let error = other.session(&options().with_loaded_adapter("a", &adapter, 1.0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let options = options().with_loaded_adapter("a", &adapter, 1.0);
    let mut sessions = [0, 1].map(|_| files.model.session(&options).unwrap());
    // Sessions keep what they compute with.
    drop((adapter, options));
    let Files { folder: _folder, model } = files;
    drop(model);
    for session in &mut sessions {
        let seq = session.open(&with("a")).unwrap();
        assert!(apart(&feed(session, &seq, &prompt()), &expected) < 1e-3);
    }
    let vocab = ModelOptions::new().with_vocab_only(true);
    let error = Model::open_with(&Llama::linked().unwrap(), &path, &vocab).unwrap().adapter(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

/// The library writes its adapters down in the model that passes read.
#[test]
fn adapters_come_and_go_while_others_compute() {
    let files = Files::new();
    let path = files.adapter(1);
    let expected = alone(&files, None);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut session = files.model.session(&options()).unwrap();
                while !done.load(Ordering::Relaxed) {
                    let seq = session.open(&OpenOptions::default()).unwrap();
                    assert!(apart(&feed(&mut session, &seq, &prompt()), &expected) < 1e-3);
                }
            });
        }
        for _ in 0..50 {
            let adapter = files.model.adapter(&path).unwrap();
            let clone = adapter.clone();
            drop(adapter);
            drop(clone);
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Not a case by itself: what the children run.
#[test]
fn load_and_decode() {
    let Some(path) = child::file() else { return };
    match decode_a_little(&path) {
        Ok(()) => child::answer("an adapter"),
        Err(error) => child::answer(&format!("{:?}: {}", error.kind(), error.to_string().replace('\n', " "))),
    }
}

fn decode_a_little(path: &Path) -> Result<()> {
    let model = Model::open(&Llama::linked()?, path.with_file_name("tiny.gguf"))?;
    let adapter = model.adapter(path)?;
    let mut session = model.session(&options().with_loaded_adapter("a", &adapter, 1.0))?;
    let seq = session.open(&with("a"))?;
    session.sample_with(&seq, &Sampling::greedy(), &prompt())?;
    let mut batch = Batch::new();
    batch.push(&seq, &prompt(), Want::Token);
    session.decode(&batch)
}

fn load(path: &Path) -> std::result::Result<String, String> {
    child::open_in_child("load_and_decode", path)
}

/// Changed, and no more to be done with it.
fn done(_: &mut Gguf) {}

/// Each is an error that names the file and what is wrong in it; most of them end the process in llama.cpp, now or in a pass.
#[test]
fn files_that_are_wrong() {
    let files = Files::new();
    let refused = |name: &str, edit: &dyn Fn(&mut Gguf), kind: ErrorKind, words: &[&str]| {
        let mut gguf = lora::llama(1);
        edit(&mut gguf);
        let path = files.folder.file(name, &gguf.bytes());
        let said = load(&path).unwrap_or_else(|end| panic!("{name}: {end}"));
        assert!(said.starts_with(&format!("{kind:?}: ")), "{name}: {said}");
        for word in words.iter().chain([&name]) {
            assert!(said.contains(word), "{name}: no {word:?} in {said}");
        }
    };
    assert_eq!(load(&files.adapter(1)).unwrap(), "an adapter", "the one these are made of is good");
    let invalid = ErrorKind::InvalidModel;
    let q = "blk.0.attn_q.weight";
    let floats = |shape: &[u64]| vec![0; shape.iter().product::<u64>() as usize * 4];
    let reshape = move |gguf: &mut Gguf, name: &str, shape: &[u64]| {
        let tensor = gguf.tensor(name);
        (tensor.shape, tensor.data) = (shape.to_vec(), floats(shape));
    };
    let rename = |gguf: &mut Gguf, from: &str, to: &str| gguf.tensor(from).name = to.to_owned();

    refused("type.gguf", &|gguf| done(gguf.set("general.type", Field::text("model"))), invalid, &["general.type"]);
    refused(
        "type-number.gguf",
        &|gguf| done(gguf.set("general.type", Field::U32(1))),
        invalid,
        &["general.type", "u32"],
    );
    refused("no-kind.gguf", &|gguf| done(gguf.remove("adapter.type")), invalid, &["adapter.type", "missing"]);
    refused("other.gguf", &|gguf| done(gguf.set("general.architecture", Field::text("gpt2"))), invalid, &["gpt2"]);
    refused(
        "alpha.gguf",
        &|gguf| done(gguf.set("adapter.lora.alpha", Field::U32(8))),
        invalid,
        &["adapter.lora.alpha"],
    );
    let nan = Field::F32(f32::NAN);
    refused(
        "nan.gguf",
        &|gguf| done(gguf.set("adapter.lora.alpha", nan.clone())),
        invalid,
        &["adapter.lora.alpha", "NaN"],
    );
    let tokens = Field::U32s(vec![1, 2]);
    refused(
        "alora.gguf",
        &|gguf| done(gguf.set("adapter.alora.invocation_tokens", tokens.clone())),
        ErrorKind::Unsupported,
        &["adapter.alora.invocation_tokens", "aLoRA"],
    );
    refused("empty.gguf", &|gguf| gguf.tensors.clear(), invalid, &["no tensors"]);
    refused("alone.gguf", &|gguf| drop(gguf.tensors.remove(0)), invalid, &[q, "lora_a", "lora_b"]);
    refused("name.gguf", &|gguf| rename(gguf, &format!("{q}.lora_a"), "odd"), invalid, &["odd"]);
    let nested = "blk.0.lora_b.attn_q.weight.lora_a";
    refused("nested.gguf", &|gguf| rename(gguf, &format!("{q}.lora_a"), nested), invalid, &[nested]);
    for (file, side, shape) in [
        ("inputs.gguf", "lora_a", [32, 4]),
        ("outputs.gguf", "lora_b", [4, 32]),
        ("rank.gguf", "lora_b", [8, 64]),
        ("turned.gguf", "lora_a", [4, 64]),
    ] {
        refused(file, &|gguf| reshape(gguf, &format!("{q}.{side}"), &shape), invalid, &[q, "another model"]);
    }
    refused("cube.gguf", &|gguf| reshape(gguf, &format!("{q}.lora_a"), &[64, 4, 3]), invalid, &[q, "64 × 4 × 3"]);
    refused("dtype.gguf", &|gguf| gguf.tensor(&format!("{q}.lora_a")).dtype = 26, invalid, &[q, "I32"]);
    let other_layer = |gguf: &mut Gguf| {
        rename(gguf, &format!("{q}.lora_a"), "blk.9.attn_q.weight.lora_a");
        rename(gguf, &format!("{q}.lora_b"), "blk.9.attn_q.weight.lora_b");
    };
    refused("layer.gguf", &other_layer, invalid, &["blk.9.attn_q.weight", "another model"]);
    let norm = move |gguf: &mut Gguf| {
        rename(gguf, &format!("{q}.lora_a"), "output_norm.weight.lora_a");
        rename(gguf, &format!("{q}.lora_b"), "output_norm.weight.lora_b");
        reshape(gguf, "output_norm.weight.lora_b", &[4, 1]);
    };
    refused("norm.gguf", &norm, invalid, &["output_norm.weight", "matrices only"]);
}

/// They are computed backwards, and where they are the output too, llama.cpp would multiply with the wrong side.
#[test]
fn embeddings_are_adapted_where_they_are_not_the_output_too() {
    let files = Files::new();
    let mut gguf = lora::llama(1);
    gguf.tensors.clear();
    let numbers = |count: u64| (0..count).map(|n| (n % 7) as f32 / 7.0 - 0.4);
    gguf.tensors.push(Tensor::f32("token_embd.weight.lora_a", &[4, VOCAB], numbers(4 * VOCAB)));
    gguf.tensors.push(Tensor::f32("token_embd.weight.lora_b", &[4, WIDTH], numbers(4 * WIDTH)));
    let path = files.folder.file("embeddings.gguf", &gguf.bytes());
    let adapted = alone(&files, Some(AdapterSource::new("a", &path)));
    assert!(apart(&adapted, &alone(&files, None)) > 0.01, "it makes a difference");

    let mut tied = tiny::llama();
    tied.tensors.retain(|tensor| tensor.name != "output.weight");
    let tied = files.folder.file("tied.gguf", &tied.bytes());
    let error = Model::open(&Llama::linked().unwrap(), tied).unwrap().adapter(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("token_embd.weight") && error.to_string().contains("output"), "{error}");
}

/// Whatever became of the file on its way, it is an adapter or an error.
#[test]
fn files_that_were_damaged() {
    let files = Files::new();
    let good = lora::llama(1).bytes();
    let header = lora::llama(1).header().len() as u64;
    let mut random = Random(99);
    for number in 0..12 {
        let end = if number < 6 { random.below(header) } else { header + random.below(good.len() as u64 - header) };
        let path = files.folder.file(&format!("cut-{number}.gguf"), &good[..end as usize]);
        let said = load(&path).unwrap_or_else(|end| panic!("cut {number}: {end}"));
        assert!(said.contains("InvalidModel") && said.contains(&format!("cut-{number}")), "{said}");
    }
    for number in 0..30 {
        let mut bytes = good.clone();
        let at = random.below(header) as usize;
        bytes[at] ^= 1 << random.below(8);
        let path = files.folder.file(&format!("flip-{number}.gguf"), &bytes);
        let said = load(&path).unwrap_or_else(|end| panic!("byte {at}: {end}"));
        assert!(said == "an adapter" || said.contains(&format!("flip-{number}")), "byte {at}: {said}");
    }
}
