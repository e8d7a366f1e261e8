//! Headers of safetensors files: taken apart, or refused in words. No native code is used.

#[path = "kit/safetensors.rs"]
mod kit;

use infer_core::{Error, ErrorKind};
use infer_mlx::{DType, safetensors};
use kit::{Tensor, file, with_header};
use std::io::Cursor;

const NAME: &str = "model.safetensors";

#[track_caller]
fn refused(bytes: Vec<u8>, kind: ErrorKind, words: &str) {
    let error = safetensors::read(Cursor::new(bytes), NAME).expect_err("it is refused");
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    assert!(text.starts_with(NAME) && text.contains(words), "{text}");
}

#[track_caller]
fn invalid(bytes: Vec<u8>, words: &str) {
    refused(bytes, ErrorKind::InvalidModel, words);
}

/// A file with this header, and so many bytes behind it.
fn headed(header: &str, bytes: usize) -> Vec<u8> {
    with_header(header, &vec![0; bytes])
}

#[test]
fn what_is_there_is_found() -> Result<(), Error> {
    let tensors = [
        Tensor::zeros("b", "BF16", &[3]),
        Tensor::zeros("a", "F32", &[2, 5]),
        Tensor::zeros("none", "F16", &[0, 4]),
        Tensor::zeros("one", "U8", &[]),
    ];
    let bytes = file(&tensors);
    let header = safetensors::read(Cursor::new(&bytes), NAME)?;
    let found: Vec<_> = header.tensors().iter().map(|t| (t.name(), t.dtype(), t.shape(), t.bytes())).collect();
    let (bf16, f32, f16, u8) = (DType::Bf16, DType::F32, DType::F16, DType::U8);
    assert_eq!(
        found,
        [("b", bf16, &[3][..], 6), ("a", f32, &[2, 5], 40), ("none", f16, &[0, 4], 0), ("one", u8, &[], 1)]
    );
    assert_eq!(header.bytes(), bytes.len() as u64);
    let data = bytes.len() as u64 - 47;
    let places: Vec<_> = header.tensors().iter().map(|tensor| tensor.offset() - data).collect();
    assert_eq!(places, [0, 6, 46, 46], "the second begins at no multiple of its size, which MLX's own files do too");
    assert_eq!(header.tensors().iter().map(|tensor| tensor.elements()).collect::<Vec<_>>(), [3, 10, 0, 1]);
    Ok(())
}

#[test]
fn tensors_come_in_the_order_in_which_they_lie_and_what_else_is_said_comes_too() -> Result<(), Error> {
    let header = r#"{"__metadata__": {"format": "mlx"},
        "later": {"dtype": "I64", "shape": [1], "data_offsets": [4, 12], "comment": ""},
        "first": {"data_offsets": [0, 4], "shape": [4], "dtype": "I8"}}   "#;
    let header = safetensors::read(Cursor::new(headed(header, 12)), NAME)?;
    let names: Vec<_> = header.tensors().iter().map(|tensor| tensor.name()).collect();
    assert_eq!(names, ["first", "later"]);
    assert_eq!(header.metadata(), [("format".to_owned(), "mlx".to_owned())]);
    Ok(())
}

#[test]
fn a_length_that_cannot_be_is_refused_before_memory_is_asked_for() {
    invalid(Vec::new(), "has 0 bytes");
    invalid(vec![1, 2, 3], "has 3 bytes");
    invalid(u64::MAX.to_le_bytes().to_vec(), "said to have 18446744073709551615 bytes, at most 100000000 are taken");
    invalid(99_999_999_u64.to_le_bytes().to_vec(), "the file ends at byte 8");
    let mut cut = file(&[Tensor::zeros("w", "F32", &[4])]);
    cut.truncate(20);
    invalid(cut, "the file ends at byte 20: it is truncated");
}

#[test]
fn what_is_no_header_is_refused() {
    invalid(headed("", 0), "does not begin with `{`");
    invalid(headed("[1]", 0), "does not begin with `{`");
    invalid(headed(" {}", 0), "does not begin with `{`");
    invalid(headed("{\"a\": ", 0), "not as expected: EOF");
    invalid(headed("{} {}", 0), "not as expected: trailing characters");
    invalid(with_header("{", &[]), "not as expected");
    let mut bytes = headed("{\"é\": 1}", 0);
    bytes[10] = 0xff;
    invalid(bytes, "not UTF-8");
    let deep = format!(r#"{{"a": {}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    invalid(headed(&deep, 0), r#"the tensor "a" is not described as expected"#);
    invalid(headed(r#"{"__metadata__": {"a": 1}}"#, 0), "`__metadata__` is not as expected");
}

#[test]
fn a_tensor_that_is_described_wrongly_is_named() {
    invalid(headed(r#"{"w": 1}"#, 0), r#"the tensor "w" is not described as expected"#);
    invalid(headed(r#"{"w": {"shape": [1], "data_offsets": [0, 4]}}"#, 4), "missing field `dtype`");
    invalid(headed(r#"{"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}"#, 4), "\"w\" is not described");
    invalid(headed(r#"{"w": {"dtype": "F32", "shape": [1.5], "data_offsets": [0, 4]}}"#, 4), "\"w\" is not described");
    invalid(headed(r#"{"w": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}"#, 4), "\"w\" is not described");
    let twice = r#"{"w": {"dtype": "F32", "dtype": "F16", "shape": [1], "data_offsets": [0, 4]}}"#;
    invalid(headed(twice, 4), "duplicate field `dtype`");
    let one = r#""w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}"#;
    invalid(headed(&format!("{{{one}, {one}}}"), 4), r#"has "w" twice"#);
}

#[test]
fn types_that_mlx_does_not_have_are_unsupported_by_name() {
    for dtype in ["F8_E4M3", "F8_E5M2", "F4", "f32", ""] {
        let header = format!(r#"{{"w": {{"dtype": "{dtype}", "shape": [4], "data_offsets": [0, 4]}}}}"#);
        refused(headed(&header, 4), ErrorKind::Unsupported, &format!(r#"the tensor "w" is of type "{dtype}""#));
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let sized = |shape: &str, begin: u64, end: u64| {
        format!(r#"{{"w": {{"dtype": "F32", "shape": {shape}, "data_offsets": [{begin}, {end}]}}}}"#)
    };
    invalid(headed(&sized("[2]", 0, 4), 4), "in bytes 0 to 4, but [2] numbers of type float32 take 8");
    invalid(headed(&sized("[2]", 8, 0), 8), "in bytes 8 to 0");
    invalid(headed(&sized("[2147483648]", 0, 8_589_934_592), 8), "too large");
    invalid(headed(&sized("[2147483647, 2147483647, 2147483647]", 0, 8), 8), "too large");
    invalid(headed(&sized("[1]", u64::MAX - 3, u64::MAX), 4), "but [1] numbers");
    invalid(headed(&sized("[1]", u64::MAX - 4, u64::MAX), 4), "ends at byte");
}

#[test]
fn places_outside_the_file_over_each_other_and_between_are_refused() {
    let two = |first: [usize; 2], second: [usize; 2]| {
        format!(
            r#"{{"a": {{"dtype": "U8", "shape": [{}], "data_offsets": {first:?}}}, "b": {{"dtype": "U8", "shape": [{}], "data_offsets": {second:?}}}}}"#,
            first[1] - first[0],
            second[1] - second[0],
        )
    };
    invalid(headed(&two([0, 4], [4, 9]), 8), r#"the tensor "b" ends at byte"#);
    invalid(headed(&two([0, 4], [3, 8]), 8), r#"the tensors "a" and "b" lie over each other"#);
    invalid(headed(&two([0, 4], [0, 4]), 4), "lie over each other");
    invalid(headed(&two([0, 4], [5, 8]), 8), r#"before the tensor "b", belong to no tensor"#);
    invalid(headed(&two([1, 4], [4, 8]), 8), r#"before the tensor "a", belong to no tensor"#);
    invalid(headed(&two([0, 4], [4, 8]), 9), "what is behind belongs to none");
    invalid(headed("{}", 1), "what is behind belongs to none");
}

#[test]
fn what_is_no_file_is_not_opened() {
    for (path, words) in
        [("/", "a directory"), ("/no/such/file.safetensors", "cannot be read"), ("/dev/zero", "no regular file")]
    {
        let error = safetensors::open(path).expect_err("it is refused");
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains(words), "{error}");
    }
}
