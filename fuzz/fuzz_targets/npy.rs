//! A `.npy` file: read or refused in words, in memory bounded by its size; and what was read is written and read again as it was.
#![no_main]

#[path = "../../infer-cli/src/run/npy.rs"]
mod npy;

use infer_fuzz::seeds;
use libfuzzer_sys::fuzz_target;
use npy::{Array, Kind};

#[global_allocator]
static ALLOCATOR: test_kit::Counting = test_kit::Counting;

/// Of a file of a megabyte: its numbers in one order and in the other, what is written of it, and as text.
const MOST: usize = 64 << 20;

fuzz_target!(init: seeds::write_if_asked(first), |input: &[u8]| {
    let (peak, ()) = test_kit::peak(|| match Array::read(&mut &input[..], u64::MAX) {
        Ok(array) => again(&array),
        Err(what) => assert!(!what.is_empty() && !what.contains('\u{1b}'), "{what:?}"),
    });
    assert!(peak < MOST, "{peak} bytes at a time");
});

fn again(array: &Array) {
    let mut written = Vec::new();
    array.write(&mut written).expect("it has no more dimensions than can be read");
    assert_eq!(Array::read(&mut &written[..], u64::MAX).as_ref(), Ok(array));
    if let Some(Ok(texts)) = array.texts() {
        let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
        let again = Array::of_texts(&array.shape, &borrowed).expect("no text ends with padding");
        assert_eq!(again.texts(), Some(Ok(texts)));
    }
}

/// Numbers, texts of both kinds, nothing, and an array in both other orders.
fn first() -> Vec<Vec<u8>> {
    let written = |kind, shape: &[usize], bytes: &[u8]| {
        let mut file = Vec::new();
        Array { kind, shape: shape.to_vec(), bytes: bytes.to_vec() }.write(&mut file).expect("memory takes it");
        file
    };
    let mut other = written(Kind::Number(b'u', 2), &[2, 3], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let place = other.windows(2).position(|two| two == b"<u").expect("its header says so");
    other[place] = b'>';
    let text = String::from_utf8_lossy(&other[10..128]).replace("False, ", "True,  ");
    other[10..128].copy_from_slice(text.as_bytes());
    vec![
        written(Kind::Number(b'f', 4), &[2], &[0; 8]),
        written(Kind::Number(b'b', 1), &[], &[1]),
        written(Kind::Text(2), &[1, 1], &[b'a', 0, 0, 0, 0, 0, 0, 0]),
        written(Kind::Bytes(3), &[1], b"ab\0"),
        written(Kind::Raw(2), &[0, 9], &[]),
        other,
    ]
}
