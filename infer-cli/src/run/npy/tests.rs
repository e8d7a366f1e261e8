use super::*;

fn written(array: &Array) -> Vec<u8> {
    let mut bytes = Vec::new();
    array.write(&mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<Array, String> {
    Array::read(&mut &bytes[..], u64::MAX)
}

/// A file with this header.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [&MAGIC[..], &[1, 0], &length, header.as_bytes(), data].concat()
}

fn array(kind: Kind, shape: &[usize], bytes: &[u8]) -> Array {
    Array { kind, shape: shape.to_vec(), bytes: bytes.to_vec() }
}

#[test]
fn what_is_written_is_read_again() {
    for (kind, shape, len) in [
        (Kind::Number(b'f', 4), &[2, 3][..], 24),
        (Kind::Number(b'b', 1), &[], 1),
        (Kind::Number(b'i', 8), &[0, 7], 0),
        (Kind::Number(b'c', 16), &[1], 16),
        (Kind::Raw(2), &[3], 6),
        (Kind::Text(2), &[1, 1, 1], 8),
        (Kind::Bytes(5), &[2], 10),
    ] {
        let bytes: Vec<u8> = (0..len).collect();
        let array = array(kind, shape, &bytes);
        let written = written(&array);
        assert_eq!(read(&written), Ok(array));
        assert_eq!((written.len() - bytes.len()) % ALIGNMENT, 0, "NumPy maps what is aligned");
    }
}

/// Byte for byte, as `numpy.save` of NumPy 2 writes them.
#[test]
fn it_is_written_as_numpy_does() {
    let header = |text: &str| {
        let mut header = text.as_bytes().to_vec();
        header.resize(117, b' ');
        [&b"\x93NUMPY\x01\0\x76\0"[..], &header, b"\n"].concat()
    };
    if cfg!(target_endian = "little") {
        let one = array(Kind::Number(b'f', 4), &[1], &1.5_f32.to_le_bytes());
        let wanted = header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }");
        assert_eq!(written(&one), [&wanted[..], &[0, 0, 0xc0, 0x3f]].concat());
        let none = array(Kind::Number(b'u', 1), &[2, 0], &[]);
        assert_eq!(written(&none), header("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 0), }"));
        let single = array(Kind::Number(b'b', 1), &[], &[1]);
        let wanted = header("{'descr': '|b1', 'fortran_order': False, 'shape': (), }");
        assert_eq!(written(&single), [&wanted[..], &[1]].concat());
    }
}

#[test]
fn both_orders_are_put_into_ours() {
    let header =
        |descr: &str, order: &str| format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': (2, 3)}}");
    let numbers = |all: [u16; 6]| all.map(u16::to_ne_bytes).concat();
    let other = if cfg!(target_endian = "little") { ">u2" } else { "<u2" };
    let swapped = [0, 1, 2, 3, 4, 5].map(|number: u16| number.swap_bytes().to_ne_bytes()).concat();
    let array = read(&file(&header(other, "False"), &swapped)).unwrap();
    assert_eq!(array.bytes, numbers([0, 1, 2, 3, 4, 5]));

    // Of [[0, 1, 2], [3, 4, 5]], column by column.
    let own = if cfg!(target_endian = "little") { "<u2" } else { ">u2" };
    let array = read(&file(&header(own, "True"), &numbers([0, 3, 1, 4, 2, 5]))).unwrap();
    assert_eq!(array.bytes, numbers([0, 1, 2, 3, 4, 5]));
    let none = read(&file("{'descr': '<f8', 'fortran_order': True, 'shape': (4611686018427387904, 0)}", b"")).unwrap();
    assert_eq!(none.shape, [1 << 62, 0]);
}

#[test]
fn texts_keep_what_numpy_can_keep() {
    let texts = ["", "é\0b", "a much longer one 🦀"];
    let array = Array::of_texts(&[3], &texts).unwrap();
    assert_eq!(read(&written(&array)).unwrap().texts(), Some(Ok(texts.map(str::to_owned).to_vec())));
    assert_eq!(Array::of_texts(&[2], &["a", "b\0"]), Err(1));
    assert_eq!(Array::of_texts(&[0], &[]).unwrap().kind, Kind::Text(1));

    let array = read(&file("{'descr': '|S3', 'fortran_order': False, 'shape': (2,)}", b"ab\0\xff\0\0")).unwrap();
    assert_eq!(array.texts(), Some(Err(1)));
    assert_eq!(self::array(Kind::Text(1), &[1], &0xd800_u32.to_ne_bytes()).texts(), Some(Err(0)));
    assert_eq!(self::array(Kind::Raw(1), &[1], &[7]).texts(), None);
}

#[test]
fn files_that_are_wrong_are_refused_in_words() {
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)}";
    let huge = "{'descr': '<f8', 'fortran_order': True, 'shape': (4294967296, 4294967296)}";
    let mut v9 = file(header, b"abc");
    v9[6] = 9;
    let mut long = file(header, b"abc");
    long[6] = 2;
    long[8..12].copy_from_slice(&[0xff; 4]);
    for (bytes, said) in [
        (vec![], "ends within its header"),
        (b"PK\x03\x04 and more".to_vec(), "no .npy file: it begins with `PK"),
        (file(header, b"abc")[..20].to_vec(), "ends within its header"),
        (file(header, b"ab"), "ends after 2 of the 3 bytes"),
        (file(header, b"abcd"), "goes on after the 3 bytes"),
        (file(huge, b""), "more than any memory holds"),
        (file("\u{1b}[2J", b""), "\\u{1b}[2J"),
        (v9, "version 9"),
        (long, "a header of 4294967295 bytes"),
    ] {
        let error = read(&bytes).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}
