//! Headers read without native code.

mod kit;

use infer_core::ErrorKind;
use infer_llama::gguf::{self, Array, DType, Purpose, Value};
use kit::{
    gguf::{Field, Gguf},
    tiny,
};
use std::io::Cursor;
use test_kit::{Folder, Random};

#[test]
fn every_type_of_field_comes_back() {
    let mut file = Gguf::new();
    file.set("general.architecture", Field::text("llama"))
        .set("llama.block_count", Field::U32(3))
        .set("a.u8", Field::U8(200))
        .set("a.u16", Field::U16(60_000))
        .set("a.i32", Field::I32(-5))
        .set("a.u64", Field::U64(u64::MAX))
        .set("a.f32", Field::F32(0.5))
        .set("a.bool", Field::Bool(true))
        .set("a.bytes", Field::Str(b"\xff\xfe".to_vec()))
        .set("a.strings", Field::Strs(vec![b"x".to_vec(), vec![], b"\xff".to_vec()]))
        .set("llama.each", Field::U32s(vec![1, 2, 3]))
        .set("llama.same", Field::U32(9));
    let header = gguf::read(Cursor::new(file.bytes()), "made-up").unwrap();
    assert_eq!((header.version(), header.architecture(), header.tensors().len()), (3, Some("llama"), 0));
    assert_eq!(header.value("a.u8"), Some(&Value::U8(200)));
    assert_eq!(header.value("a.u16"), Some(&Value::U16(60_000)));
    assert_eq!(header.value("a.i32"), Some(&Value::I32(-5)));
    assert_eq!(header.value("a.u64"), Some(&Value::U64(u64::MAX)));
    assert_eq!(header.value("a.f32"), Some(&Value::F32(0.5)));
    assert_eq!(header.value("a.bool"), Some(&Value::Bool(true)));
    assert_eq!(header.value("a.bytes").and_then(Value::as_str), None, "not UTF-8");
    let strings = header.value("a.strings").and_then(Value::as_strings).unwrap();
    assert_eq!(strings.iter().collect::<Vec<_>>(), [&b"x"[..], b"", b"\xff"]);
    assert_eq!(header.field("each"), Some(&Value::Array(Array::U32(vec![1, 2, 3]))));
    assert_eq!(header.per_layer("each"), Some(vec![1, 2, 3]));
    assert_eq!(header.per_layer("same"), Some(vec![9, 9, 9]));
    assert_eq!(header.metadata().len(), 12);
}

#[test]
fn tensors_are_where_the_file_says() {
    let file = tiny::llama();
    let (bytes, header) = (file.bytes(), gguf::read(Cursor::new(file.bytes()), "tiny").unwrap());
    for (tensor, written) in header.tensors().iter().zip(&file.tensors) {
        assert_eq!((tensor.name(), tensor.shape(), tensor.dtype()), (&*written.name, &*written.shape, DType::F32));
        let from = usize::try_from(tensor.offset()).unwrap();
        assert_eq!(bytes[from..][..written.data.len()], written.data);
    }
    let weights = header.weights();
    assert_eq!((weights.len(), weights[0].dtype, weights[0].tensors), (1, DType::F32, file.tensors.len()));
    let info = header.info();
    assert_eq!((info.parameters * 4, info.bytes), (weights[0].bytes, weights[0].bytes));
    assert_eq!((info.layers, info.width, info.heads, info.kv_heads, info.vocab), (2, 64, 4, 2, 259));
    header.check(Purpose::Model).unwrap();
}

#[test]
fn quantised_formats_count_blocks() {
    let q4_k = DType::from_id(12).unwrap();
    assert_eq!((q4_k.name(), q4_k.bytes(512), q4_k.bytes(511)), ("Q4_K", Some(288), None));
    assert_eq!(DType::from_id(4), None);
    assert!(!DType::from_id(9).unwrap().is_weight());
}

#[test]
fn a_vocabulary_needs_no_tensors_and_a_model_does() {
    let mut file = tiny::llama();
    file.tensors.clear();
    let header = gguf::read(Cursor::new(file.bytes()), "vocab").unwrap();
    header.check(Purpose::Vocab).unwrap();
    assert_eq!(header.check(Purpose::Model).unwrap_err().kind(), ErrorKind::InvalidModel);
}

#[test]
fn an_adapter_is_no_model_and_says_how_it_is_used() {
    let header = gguf::read(Cursor::new(build_support::tiny::adapter().bytes()), "lora").unwrap();
    for purpose in [Purpose::Vocab, Purpose::Model] {
        let error = header.check(purpose).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModel);
        let text = error.to_string();
        for words in ["lora", "general.type is \"adapter\"", "SessionOptions::with_adapter"] {
            assert!(text.contains(words), "{text}");
        }
    }
}

/// Anything at all: read, or refused, in a moment and without memory for what is only claimed.
#[test]
fn five_thousand_mutations() {
    let good = tiny::llama();
    let (header, len) = (good.header(), good.bytes().len());
    let mut random = Random(1);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..5_000 {
        let mut file = header.clone();
        for _ in 0..=random.below(4) {
            let at = random.index(file.len());
            file[at] = random.next() as u8;
        }
        if random.below(8) == 0 {
            file.truncate(random.index(file.len()));
        } else {
            file.resize(len, 0);
        }
        match gguf::read(Cursor::new(file), "mutated") {
            Ok(header) => {
                read += 1;
                let _ = (header.check(Purpose::Model), header.info(), header.weights());
            }
            Err(error) => {
                refused += 1;
                assert_eq!(error.kind(), ErrorKind::InvalidModel);
                assert!(error.to_string().starts_with("mutated: "), "{error}");
            }
        }
    }
    assert!(read > 250 && refused > 250, "{read} read, {refused} refused");
}

#[test]
fn the_real_one_and_all_vocabularies_pass() {
    let smollm2 = gguf::open(build_support::fixtures::model("smollm2").unwrap()).unwrap();
    smollm2.check(Purpose::Model).unwrap();
    assert_eq!(smollm2.info().description, "llama, 135 M parameters, mostly Q4_1");
    for entry in std::fs::read_dir(build_support::fixtures::vocabularies().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "gguf") {
            gguf::open(&path).and_then(|header| header.check(Purpose::Vocab)).unwrap();
        }
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let folder = Folder::new();
    let pipe = folder.path().join("pipe.gguf");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let error = gguf::open(&pipe).unwrap_err();
    assert!(error.to_string().contains("no regular file"), "{error}");
}
