//! A model file's header: read or refused in words, in bounded memory; and what was read can be asked for everything.
#![no_main]

#[path = "../../infer-llama/tests/kit/mod.rs"]
mod kit;

use infer_core::ErrorKind;
use infer_fuzz::{input::Padded, seeds};
use infer_llama::gguf::{self, Header, Purpose, Value};
use kit::{gguf::Gguf, tiny};
use libfuzzer_sys::fuzz_target;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: test_kit::Counting = test_kit::Counting;

/// For files of a megabyte: the strings, once in the file's order and once in the header's, and an index of their names.
const MOST: usize = 64 << 20;
/// What errors call the file.
const NAME: &str = "a-fuzzed-file";

fuzz_target!(init: seeds::write_if_asked(first), |input: &[u8]| {
    let (peak, ()) = test_kit::peak(|| match gguf::read(Padded::new(input), NAME) {
        Ok(header) => ask(&header, Padded::new(input).len()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
            assert!(error.to_string().starts_with(NAME), "{error}");
        }
    });
    assert!(peak < MOST, "{peak} bytes at a time");
});

fn ask(header: &Header, len: u64) {
    for (key, value) in header.metadata() {
        assert_eq!(header.value(key).map(Value::to_string), Some(value.to_string()), "{key}");
        black_box(header.per_layer(key));
    }
    for tensor in header.tensors() {
        let end = tensor.offset().checked_add(tensor.bytes()).expect("it lies in the file");
        assert!(end <= len, "{} ends at {end} of {len}", tensor.name());
        assert_eq!(header.tensor(tensor.name()), Some(tensor), "names are there once");
    }
    black_box(header.weights());
    black_box(header.info());
    let of_model = header.check(Purpose::Model);
    let of_vocab = header.check(Purpose::Vocab);
    for error in [&of_model, &of_vocab].into_iter().filter_map(|check| check.as_ref().err()) {
        assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
        assert!(error.to_string().starts_with(NAME), "{error}");
    }
    assert!(of_model.is_err() || of_vocab.is_ok(), "a model that is good has a good vocabulary");
}

/// Headers of models of two architectures, of the first part of a split one, and of a vocabulary.
fn first() -> Vec<Vec<u8>> {
    let [part, _] = tiny::split(tiny::llama());
    let mut vocabulary = tiny::llama();
    vocabulary.tensors.clear();
    let mut v2 = tiny::llama();
    v2.version = 2;
    [tiny::llama(), tiny::gpt2(8), part, vocabulary, v2, Gguf::new()].iter().map(seed).collect()
}

/// The header, with the byte that has zeros stand for the weights.
fn seed(gguf: &Gguf) -> Vec<u8> {
    let mut bytes = gguf.header();
    bytes.push(20);
    bytes
}
