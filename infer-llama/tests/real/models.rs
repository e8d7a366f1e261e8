//! How a model is opened, and what is known of it then.

use crate::{SMOLLM2, alone, kit::tiny, llama};
use infer_core::{ErrorKind, Session as _, Special, Token, Tokenizer as _};
use infer_llama::{DeviceKind, LoadMode, Model, ModelOptions, SessionOptions, Tokenizer};
use std::fs::File;
use test_kit::Folder;

/// A tiny model, from one file and from two.
#[test]
fn a_model_is_the_same_however_it_is_opened() {
    let folder = Folder::new();
    let path = folder.file("tiny.gguf", &tiny::llama().bytes());
    let [first, second] = tiny::split(tiny::llama());
    folder.file("parts-00002-of-00002.gguf", &second.bytes());
    let parts = folder.file("parts-00001-of-00002.gguf", &first.bytes());
    let prompt: Vec<_> = (60..90).map(Token).collect();

    let by_path = Model::open(&llama(), &path).unwrap();
    let row = alone(&by_path, &prompt);
    let mut file = File::open(&path).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(77)).unwrap();
    let by_handle = Model::from_file(&llama(), &file, "a handle", &ModelOptions::new()).unwrap();
    drop(file);
    let split = Model::open(&llama(), &parts).unwrap();
    let options = ModelOptions::new().with_load_mode(LoadMode::Copied).with_repack(false).with_check_tensors(true);
    let copied = Model::open_with(&llama(), &path, &options).unwrap();
    for model in [&by_handle, &split, &copied] {
        assert_eq!(alone(model, &prompt), row, "{model:?}");
    }
    assert_eq!((split.header().parts().len(), split.info().parameters), (2, by_path.info().parameters));

    let error = Model::from_file(&llama(), &File::open(&parts).unwrap(), "a part", &ModelOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let error = Model::open(&llama(), "a\0path.gguf").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::InvalidInput), "{error}");
}

#[cfg(unix)]
#[test]
fn a_path_need_not_be_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let name =
        |suffix: &str| folder.path().join(std::ffi::OsStr::from_bytes(&[b"caf\xe9", suffix.as_bytes()].concat()));
    let [first, second] = tiny::split(tiny::llama());
    std::fs::write(name("-00001-of-00002.gguf"), first.bytes()).unwrap();
    std::fs::write(name("-00002-of-00002.gguf"), second.bytes()).unwrap();
    std::fs::write(name(".gguf"), tiny::llama().bytes()).unwrap();
    Model::open(&llama(), name(".gguf")).unwrap();
    Model::open(&llama(), name("-00001-of-00002.gguf")).unwrap();
}

#[test]
fn facts_of_a_model() {
    let info = SMOLLM2.info();
    assert_eq!(
        (info.architecture.as_str(), info.layers, info.width, info.heads, info.kv_heads),
        ("llama", 30, 576, 9, 3)
    );
    assert_eq!((info.vocab, info.context, info.parameters), (49_152, 8192, 134_515_008));
    assert!(info.chat_template.as_deref().is_some_and(|template| template.contains("im_start")));
    let special = SMOLLM2.tokenizer().vocab().special();
    let end = special.eos.unwrap();
    assert_eq!(SMOLLM2.tokenizer().vocab().bytes(end), Some(&b"<|im_end|>"[..]));
    assert!(SMOLLM2.tokenizer().vocab().is_end(end));
    let own = SMOLLM2.session(&SessionOptions::new().with_context(0)).unwrap();
    assert_eq!(own.limits().context, 8192);
}

#[test]
fn every_vocabulary_opens_without_weights() {
    let folder = build_support::fixtures::vocabularies().unwrap();
    let mut opened = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "gguf") {
            continue;
        }
        let tokenizer = Tokenizer::open(&llama(), &path).unwrap_or_else(|error| panic!("{error}"));
        let mut tokens = vec![Token(1)];
        for special in [Special::NONE, Special::PARSE, Special { add: true, parse: true }] {
            tokenizer.encode("Grüße, \0 世界! 🦀\n", special, &mut tokens).unwrap();
        }
        tokenizer.encode("", Special { add: true, parse: false }, &mut tokens).unwrap();
        assert!(tokens.len() > 20 && tokens[0] == Token(1), "{}", path.display());
        opened += 1;
    }
    assert!(opened >= 17, "{opened}");
}

#[test]
fn texts_with_nul_and_long_ones_encode() {
    let tokenizer = SMOLLM2.tokenizer();
    let mut out = Vec::new();
    tokenizer.encode("a\0b", Special::NONE, &mut out).unwrap();
    let vocab = tokenizer.vocab();
    assert_eq!(out.iter().flat_map(|&token| vocab.bytes(token).unwrap().to_vec()).collect::<Vec<_>>(), b"a\0b");
    out.clear();
    // More tokens than a quarter of the bytes: the first guess at the room is too small.
    tokenizer.encode(&"1 2 3 ".repeat(20_000), Special::NONE, &mut out).unwrap();
    assert!(out.len() > 60_000, "{}", out.len());
}

#[test]
fn the_library_says_what_it_is() {
    let llama = llama();
    assert_eq!((llama.commit().len(), llama.variant()), (40, "cpu"));
    assert!(llama.system_info().unwrap().contains("CPU"));
    let devices = llama.devices().unwrap();
    assert!(devices.iter().any(|device| device.kind == DeviceKind::Cpu && device.memory_total > 0), "{devices:?}");
}

#[test]
fn every_layer_is_placed_somewhere() {
    let folder = Folder::new();
    let path = folder.file("tiny.gguf", &tiny::llama().bytes());
    let processor = llama().devices().unwrap().into_iter().find(|device| device.kind == DeviceKind::Cpu).unwrap().name;
    let open = |options: &ModelOptions| Model::open_with(&llama(), &path, options);
    for options in [ModelOptions::new().with_devices([&processor]), ModelOptions::new().with_gpu_layers(0)] {
        let model = open(&options).unwrap();
        let placed = model.placement().unwrap();
        let [all] = &placed[..] else { panic!("{placed:?}") };
        assert_eq!((&all.device, all.layers, all.output), (&processor, model.info().layers, true));
    }
    assert_eq!(open(&ModelOptions::new().with_vocab_only(true)).unwrap().placement().unwrap(), []);
    let error = open(&ModelOptions::new().with_devices(["Nowhere7"])).unwrap_err();
    assert!(error.to_string().contains(&format!("the devices are: {processor}")), "{error}");
}
