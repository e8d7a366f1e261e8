//! NumPy's `.npz` files: zip archives of `.npy` files, an array each, by name.

use super::npy::Array;
use std::{
    collections::BTreeMap,
    io::{self, BufReader, BufWriter, Read, Seek, Write},
};
use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

/// How the first file of an archive begins, and how one ends that has none.
pub(crate) const MAGICS: [&[u8; 4]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// Reads all arrays. `room` says how many bytes of memory there are for the next one and for what is made of it.
///
/// # Errors
/// What is wrong with it, in words that go on after the file's name.
pub(crate) fn read(source: impl Read + Seek, room: impl Fn() -> u64) -> Result<BTreeMap<String, Array>, String> {
    let broken = |error: ZipError| format!("is no zip archive that can be read: {error}");
    let mut archive = ZipArchive::new(source).map_err(broken)?;
    let mut arrays = BTreeMap::new();
    for place in 0..archive.len() {
        let entry = archive.by_index(place).map_err(broken)?;
        let name = entry.name().map_err(broken)?.to_string();
        let Some(name) = name.strip_suffix(".npy").map(str::to_owned) else {
            return Err(format!("has a file `{}` that is no .npy file", name.escape_debug()));
        };
        let array = Array::read(&mut BufReader::new(entry), room());
        let array = array.map_err(|what| format!("has an array `{}` that {what}", name.escape_debug()))?;
        if arrays.insert(name.clone(), array).is_some() {
            return Err(format!("has two arrays `{}`", name.escape_debug()));
        }
    }
    Ok(arrays)
}

/// Writes arrays, not compressed, as `numpy.savez` does. No two names may be the same.
///
/// # Errors
/// Those of writing.
pub(crate) fn write<'a>(
    to: impl Write + Seek,
    arrays: impl IntoIterator<Item = (&'a str, &'a Array)>,
) -> io::Result<()> {
    let mut archive = ZipWriter::new(BufWriter::new(to));
    // Archives and arrays may be larger than 4 GiB.
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (name, array) in arrays {
        archive.start_file(format!("{name}.npy"), options).map_err(io::Error::from)?;
        array.write(&mut archive)?;
    }
    archive.finish().map_err(io::Error::from)?.flush()
}

#[cfg(test)]
mod tests {
    use super::{super::npy::Kind, *};
    use std::io::Cursor;

    fn array(bytes: &[u8]) -> Array {
        Array { kind: Kind::Number(b'u', 1), shape: vec![bytes.len()], bytes: bytes.to_vec() }
    }

    fn archive(files: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in files {
            let options = SimpleFileOptions::default().compression_method(method);
            archive.start_file(*name, options).unwrap();
            archive.write_all(bytes).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    fn plenty() -> u64 {
        u64::MAX
    }

    /// An archive is small where its arrays are not.
    #[test]
    fn an_array_without_room_is_not_unpacked() {
        let mut npy = Vec::new();
        array(&[0; 1 << 20]).write(&mut npy).unwrap();
        let compressed = archive(&[("a.npy", &npy), ("zeros.npy", &npy)], CompressionMethod::Deflated);
        assert!(compressed.len() < 1 << 14);
        let left = std::cell::Cell::new(3_u64 << 20);
        let room = || left.replace(left.get().saturating_sub(2 << 20));
        let error = read(Cursor::new(&compressed), room).unwrap_err();
        assert!(error.contains("an array `zeros` that has the shape [1048576], which takes 2097152 bytes"), "{error}");
        assert_eq!(read(Cursor::new(&compressed), || 2 << 20).unwrap().len(), 2);
    }

    #[test]
    fn arrays_come_back_by_name_compressed_or_not() {
        let arrays = BTreeMap::from([("a".to_owned(), array(b"xyz")), ("b/c".to_owned(), array(b""))]);
        let mut bytes = Cursor::new(Vec::new());
        write(&mut bytes, arrays.iter().map(|(name, array)| (name.as_str(), array))).unwrap();
        assert!(MAGICS.iter().any(|magic| bytes.get_ref().starts_with(*magic)));
        assert_eq!(read(Cursor::new(bytes.get_ref()), plenty).unwrap(), arrays);

        let mut npy = Vec::new();
        array(&[7; 999]).write(&mut npy).unwrap();
        let compressed = archive(&[("many.npy", &npy)], CompressionMethod::Deflated);
        assert!(compressed.len() < npy.len());
        assert_eq!(read(Cursor::new(compressed), plenty).unwrap()["many"], array(&[7; 999]));
    }

    #[test]
    fn archives_that_are_wrong_are_refused_in_words() {
        let stored = CompressionMethod::Stored;
        let mut damaged = Vec::new();
        write(Cursor::new(&mut damaged), [("a", &array(b"xyz"))]).unwrap();
        let at = damaged.windows(3).position(|bytes| bytes == b"xyz").unwrap();
        damaged[at] ^= 1;
        for (bytes, said) in [
            (b"PK\x03\x04".to_vec(), "no zip archive"),
            (archive(&[("readme.txt", b"hello")], stored), "a file `readme.txt`"),
            (archive(&[("a.npy", b"hello")], stored), "an array `a` that ends within"),
            (damaged, "an array `a` that cannot be read"),
        ] {
            let error = read(Cursor::new(bytes), plenty).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert!(read(Cursor::new(archive(&[], stored)), plenty).unwrap().is_empty());
    }
}
