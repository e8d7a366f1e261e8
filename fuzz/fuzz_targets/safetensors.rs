//! A safetensors file: read or refused in words, in bounded memory; and what is read lies inside the file, each byte in one tensor.
#![no_main]

#[path = "../../infer-mlx/tests/kit/safetensors.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod kit;

use infer_core::ErrorKind;
use infer_fuzz::{input::Padded, seeds};
use infer_mlx::safetensors::{self, Header};
use kit::{Tensor, file, with_header};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: test_kit::Counting = test_kit::Counting;

/// For files of a megabyte: the header, and each of its names as a text and in an index.
const MOST: usize = 64 << 20;
/// What errors call the file.
const NAME: &str = "a-fuzzed-file";

fuzz_target!(init: seeds::write_if_asked(first), |input: &[u8]| {
    let file = Padded::new(input);
    let len = file.len();
    let (peak, ()) = test_kit::peak(|| match safetensors::read(file, NAME) {
        Ok(header) => holds(&header, len),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::InvalidModel | ErrorKind::Unsupported), "{error}");
            assert!(error.to_string().starts_with(NAME), "{error}");
        }
    });
    assert!(peak < MOST, "{peak} bytes at a time");
});

fn holds(header: &Header, len: u64) {
    assert_eq!(header.bytes(), len);
    let tensors = header.tensors();
    let mut next = tensors.first().map_or(len, |tensor| tensor.offset());
    for (index, tensor) in tensors.iter().enumerate() {
        assert_eq!(tensor.offset(), next, "one lies behind the other");
        assert_eq!(tensor.bytes(), tensor.elements() * tensor.dtype().bytes() as u64);
        next += tensor.bytes();
        assert!(
            index > 100 || tensors[..index].iter().all(|other| other.name() != tensor.name()),
            "each is there once"
        );
    }
    assert_eq!(next, len);
}

/// Files that are taken, and some that nearly are; the last byte says how much padding there is.
fn first() -> Vec<Vec<u8>> {
    let tensors = [
        Tensor::zeros("model.norm.weight", "BF16", &[3]),
        Tensor::zeros("w", "F32", &[2, 4]),
        Tensor::zeros("n", "U8", &[]),
    ];
    let described = |dtype: &str| {
        let entry = format!(r#""w": {{"dtype": "{dtype}", "shape": [2, 8], "data_offsets": [0, 64]}}"#);
        with_header(&format!(r#"{{"__metadata__": {{"format": "mlx"}}, {entry}}}"#), &[])
    };
    let whole = [file(&tensors), file(&[]), described("F32"), described("F8_E4M3")];
    whole
        .into_iter()
        .flat_map(|bytes| [0, 7].map(|zeros| [&bytes[..], &[zeros]].concat()))
        .chain([Vec::new()])
        .collect()
}
