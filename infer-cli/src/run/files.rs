//! The files that arrays are read from and written to.

use super::{npy::Array, npz};
use infer::{Error, ErrorKind, machine::available_memory};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read, Seek, Write},
    path::{Path, PathBuf},
    str::FromStr,
};

/// What follows `--input`: a file, and what its array is called where the file does not say.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Input {
    name: Option<String>,
    path: PathBuf,
}

impl FromStr for Input {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) => (Some(name.to_owned()), path),
            None => (None, text),
        };
        if path.is_empty() || name.as_deref() == Some("") {
            return Err("a file is wanted, or a name and a file: NAME=FILE".into());
        }
        Ok(Self { name, path: path.into() })
    }
}

/// The arrays of all files by name. `wanted` are the names that the graph asks for.
pub(super) fn read(inputs: &[Input], wanted: &[&str]) -> Result<BTreeMap<String, Array>, Error> {
    let mut arrays = BTreeMap::new();
    for input in inputs {
        for (name, array) in input.read(wanted)? {
            if arrays.contains_key(&name) {
                let path = input.path.display();
                return Err(Error::invalid_input(format!("{path}: the input `{name}` is given already; give it once")));
            }
            arrays.insert(name, array);
        }
    }
    Ok(arrays)
}

impl Input {
    fn read(&self, wanted: &[&str]) -> Result<BTreeMap<String, Array>, Error> {
        let path = self.path.display();
        let unreadable = |error: io::Error| Error::new(ErrorKind::Io, format!("cannot read {path}")).with_source(error);
        let wrong = |what: String| Error::invalid_input(format!("{path} {what}"));
        let mut file = File::open(&self.path).map_err(unreadable)?;
        let mut magic = Vec::new();
        Read::by_ref(&mut file).take(4).read_to_end(&mut magic).map_err(unreadable)?;
        file.rewind().map_err(unreadable)?;
        let is_archive = npz::MAGICS.iter().any(|known| magic == **known);
        let name = match (&self.name, wanted) {
            (None, _) if is_archive => return npz::read(file, room).map_err(wrong),
            (Some(name), _) if is_archive => {
                return Err(wrong(format!("is an archive of arrays, which have names: give it without `{name}=`")));
            }
            (Some(name), _) => name.as_str(),
            (None, [only]) => *only,
            (None, names) => {
                let names = names.join(", ");
                return Err(wrong(format!("is one array, and does not say which: give it as NAME=FILE, of {names}")));
            }
        };
        let array = Array::read(&mut BufReader::new(file), room()).map_err(wrong)?;
        Ok(BTreeMap::from([(name.to_owned(), array)]))
    }
}

/// Bytes of memory there are; without end where the system does not say.
fn room() -> u64 {
    available_memory().map_or(u64::MAX, |available| available.bytes)
}

/// Where outputs are written to.
#[derive(Debug)]
pub(super) enum Output {
    /// A file for each, in a folder that is made.
    Folder(PathBuf),
    /// One archive.
    Archive(PathBuf),
}

impl Output {
    pub(super) fn new(path: &Path) -> Self {
        let is_archive = path.extension().is_some_and(|extension| extension == "npz");
        if is_archive { Self::Archive(path.to_owned()) } else { Self::Folder(path.to_owned()) }
    }

    /// Writes all arrays, over those that are there, and gives the file of each.
    pub(super) fn write<'a>(&self, arrays: impl Iterator<Item = (&'a str, &'a Array)>) -> Result<Vec<PathBuf>, Error> {
        let (names, arrays): (Vec<_>, Vec<_>) = arrays.unzip();
        let names = file_names(names.into_iter());
        match self {
            Self::Archive(path) => {
                let all = names.iter().map(String::as_str).zip(arrays.iter().copied());
                File::create(path).and_then(|file| npz::write(file, all)).map_err(|error| unwritable(path, error))?;
                Ok(vec![path.clone(); arrays.len()])
            }
            Self::Folder(folder) => {
                fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
                let files = names.iter().map(|name| folder.join(format!("{name}.npy"))).collect::<Vec<_>>();
                for (path, array) in files.iter().zip(arrays) {
                    let write = |file| {
                        let mut file = BufWriter::new(file);
                        array.write(&mut file).and_then(|()| file.flush())
                    };
                    File::create(path).and_then(write).map_err(|error| unwritable(path, error))?;
                }
                Ok(files)
            }
        }
    }
}

fn unwritable(path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write {}", path.display())).with_source(error)
}

/// A file's name for each output: graphs call them anything, slashes and all. No two are the same, also where letters of both cases are.
fn file_names<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    const LONGEST: usize = 100;
    let mut taken = BTreeSet::new();
    let harmless = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let plain = |name: &str| {
        let name: String = name.chars().take(LONGEST).map(harmless).collect();
        let visible = name.trim_start_matches('.');
        if visible.is_empty() { "_".to_owned() } else { visible.to_owned() }
    };
    names
        .map(|name| {
            let name = plain(name);
            let numbered = (2..).map(|number| format!("{name}-{number}"));
            let mut free = std::iter::once(name.clone()).chain(numbered);
            free.find(|name| taken.insert(name.to_lowercase())).expect("there are more numbers than names")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::npy::Kind, *};

    fn array(bytes: &[u8]) -> Array {
        Array { kind: Kind::Number(b'u', 1), shape: vec![bytes.len()], bytes: bytes.to_vec() }
    }

    fn input(text: &str) -> Input {
        text.parse().unwrap()
    }

    #[test]
    fn an_input_has_a_name_or_is_a_file() {
        assert_eq!(input("x=a=b.npy"), Input { name: Some("x".into()), path: "a=b.npy".into() });
        assert_eq!(input("b.npz"), Input { name: None, path: "b.npz".into() });
        for wrong in ["", "x=", "=a.npy"] {
            assert!(wrong.parse::<Input>().unwrap_err().contains("NAME=FILE"));
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (xy, z) = (array(b"xy"), array(b"z"));
        let write = |path: &Path| Output::new(path).write([("a/b", &xy), ("c", &z)].into_iter());
        let files = write(&folder.path().join("deep/er")).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a_b.npy", "c.npy"]);
        let path = |file: &Path| file.to_str().unwrap().to_owned();
        let one = input(&path(&files[1]));
        assert_eq!(read(std::slice::from_ref(&one), &["in"]).unwrap(), BTreeMap::from([("in".into(), array(b"z"))]));

        let archive = folder.path().join("all.npz");
        write(&archive).unwrap();
        let all = read(&[input(&path(&archive))], &[]).unwrap();
        assert_eq!(all.into_iter().collect::<Vec<_>>(), [("a_b".into(), array(b"xy")), ("c".into(), array(b"z"))]);

        let named = |name: &str, file: &Path| input(&format!("{name}={}", path(file)));
        for (inputs, said) in [
            (vec![one], "of in, other"),
            (vec![named("x", &archive)], "give it without `x=`"),
            (vec![named("x", &files[0]), named("x", &files[1])], "`x` is given already"),
            (vec![named("x", Path::new("no/such.npy"))], "cannot read no/such.npy"),
            (vec![named("x", folder.path())], "cannot read"),
        ] {
            let error = read(&inputs, &["in", "other"]).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let error = write(&files[0]).unwrap_err().to_string();
        assert!(error.contains("cannot write") && error.contains("a_b.npy"), "{error}");
    }

    #[test]
    fn names_of_files_are_harmless_and_differ() {
        let names = ["x", "../x", "X", "a:b/c", "", "...", "é", "x"];
        let wanted = ["x", "_x", "X-2", "a_b_c", "_", "_-2", "_-3", "x-3"];
        assert_eq!(file_names(names.into_iter()), wanted);
        assert!(file_names(["y".repeat(9999).as_str()].into_iter())[0].len() <= 100);
    }
}
