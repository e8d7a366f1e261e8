//! Models that were split into several files: `NAME-00001-of-00003.gguf` and so on, the metadata in the first.

use super::{Header, Value, invalid, open_file, read};
use infer_core::{Error, Result};
use std::{
    collections::HashSet,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Reads the other parts of a model of which `header` is the first, if there are others.
pub(crate) fn complete(mut header: Header) -> Result<Header> {
    let path = header.parts[0].path.clone();
    let count = count(&header)?;
    if count <= 1 {
        return Ok(header);
    }
    let number = number(&header, &path)?;
    let prefix = prefix(&path, number, count).ok_or_else(|| {
        invalid(
            &path,
            format!(
                "split.no and split.count make it part {} of {count}: its name must end in {:?}",
                number + 1,
                suffix(number, count)
            ),
        )
    })?;
    if number != 0 {
        let first = part_path(&prefix, 0, count);
        return Err(invalid(
            &path,
            format!("this is part {} of {count}; open the first: {}", number + 1, first.display()),
        ));
    }
    for index in 1..count {
        append(&mut header, &part_path(&prefix, index, count), index, count)?;
    }
    let total = header.tensors.len();
    match header.value("split.tensors.count") {
        Some(&Value::I32(stated)) if usize::try_from(stated) == Ok(total) => {}
        stated => {
            let stated = stated.map_or("missing".to_owned(), |value| value.to_string());
            return Err(invalid(
                &path,
                format!("split.tensors.count is {stated}, the {count} parts have {total} tensors"),
            ));
        }
    }
    refuse_twins(&header)?;
    Ok(header)
}

/// A file that is handed over open has no name by which its siblings could be found.
pub(crate) fn refuse(header: &Header) -> Result<()> {
    if count(header)? <= 1 {
        return Ok(());
    }
    let name = header.parts[0].path.display();
    Err(Error::unsupported(format!(
        "{name}: split.count says that the model has several files; open it by the path of the first"
    )))
}

fn append(header: &mut Header, path: &Path, index: u16, count: u16) -> Result<()> {
    let mut part = read(open_file(path)?, path)?;
    let found = number(&part, path)?;
    if found != index {
        return Err(invalid(path, format!("split.no is {found}, {index} is wanted in part {} of {count}", index + 1)));
    }
    if let Some(stated) = part.value("split.count").filter(|&stated| *stated != Value::U16(count)) {
        return Err(invalid(path, format!("split.count is {stated}, the first part has {count}")));
    }
    for mut tensor in part.tensors.drain(..) {
        tensor.part = header.parts.len();
        header.tensors.push(tensor);
    }
    header.parts.append(&mut part.parts);
    Ok(())
}

fn refuse_twins(header: &Header) -> Result<()> {
    let mut seen = HashSet::new();
    for tensor in &header.tensors {
        if !seen.insert(&tensor.name) {
            let path = &header.parts[tensor.part].path;
            return Err(invalid(path, format!("the tensor {} is in an earlier part too", tensor.name)));
        }
    }
    Ok(())
}

fn count(header: &Header) -> Result<u16> {
    match header.value("split.count") {
        None => Ok(0),
        Some(&Value::U16(count)) => Ok(count),
        Some(other) => Err(wrong_type(header, "split.count", other)),
    }
}

fn number(header: &Header, path: &Path) -> Result<u16> {
    match header.value("split.no") {
        Some(&Value::U16(number)) => Ok(number),
        Some(other) => Err(wrong_type(header, "split.no", other)),
        None => Err(invalid(path, "split.no is missing, the file is said to be part of a split model")),
    }
}

fn wrong_type(header: &Header, key: &str, value: &Value) -> Error {
    invalid(&header.parts[0].path, format!("{key} is of type {}, not u16", value.type_name()))
}

fn suffix(number: u16, count: u16) -> String {
    format!("-{:05}-of-{count:05}.gguf", u32::from(number) + 1)
}

/// The path without the part's suffix.
fn prefix(path: &Path, number: u16, count: u16) -> Option<PathBuf> {
    let suffix = suffix(number, count);
    let name = path.file_name()?.as_encoded_bytes();
    let stem = name.strip_suffix(suffix.as_bytes()).filter(|stem| !stem.is_empty())?;
    Some(path.with_file_name(os_string(path, stem)?))
}

/// A shorter beginning of the path's file name, whatever its encoding.
fn os_string(path: &Path, stem: &[u8]) -> Option<OsString> {
    let name = path.file_name()?;
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let _ = name;
        Some(std::ffi::OsStr::from_bytes(stem).to_owned())
    }
    #[cfg(not(unix))]
    {
        name.to_str().and_then(|name| name.get(..stem.len())).map(OsString::from)
    }
}

fn part_path(prefix: &Path, number: u16, count: u16) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(suffix(number, count));
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts() {
        let first = Path::new("/models/big-00001-of-00003.gguf");
        let prefix = prefix(first, 0, 3).unwrap();
        assert_eq!(prefix, Path::new("/models/big"));
        assert_eq!(part_path(&prefix, 2, 3), Path::new("/models/big-00003-of-00003.gguf"));
        assert_eq!(super::prefix(first, 1, 3), None);
        assert_eq!(super::prefix(Path::new("-00001-of-00003.gguf"), 0, 3), None);
    }
}
