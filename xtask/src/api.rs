//! `cargo xtask api`: the public API of each library as text, compared with the snapshot in `docs/api/`.
//!
//! The text is made from rustdoc's JSON, which the stable compiler gives only to whom sets `RUSTC_BOOTSTRAP`. That is
//! better here than a nightly: the format then belongs to the very compiler that `rust-version` names and CI tests.

use std::{error::Error, fs, path::Path, process::Command};

/// The libraries whose API is a promise.
const CRATES: [&str; 6] = ["infer-core", "infer-sys", "infer-llama", "infer-onnx", "infer-mlx", "infer"];

/// Crates whose items a public signature may name: std, our own, and the two that the design allows.
const NAMEABLE: [&str; 11] = [
    "std",
    "core",
    "alloc",
    "half",
    "ndarray",
    "infer_core",
    "infer_sys",
    "infer_llama",
    "infer_onnx",
    "infer_mlx",
    "infer",
];

/// Of a door the bindings are the API: those of ONNX Runtime are another crate's.
const BINDINGS: (&str, &str) = ("infer-sys", "ort_sys");

/// Types of the language: paths may begin with one (`u32::from`).
const PRIMITIVES: [&str; 17] = [
    "bool", "char", "str", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
    "usize",
];

/// Compares the API with the snapshot, or writes the snapshot when `bless` is set.
pub(crate) fn run(root: &Path, bless: bool) -> Result<(), Box<dyn Error>> {
    let mut wrong = Vec::new();
    for name in CRATES {
        let api = public_api(root, name)?;
        wrong.extend(foreign_types(name, &api).into_iter().map(|line| format!("{name}: names a foreign type: {line}")));
        let snapshot = root.join("docs/api").join(format!("{name}.txt"));
        if bless {
            fs::create_dir_all(root.join("docs/api"))?;
            fs::write(&snapshot, &api)?;
        } else {
            let kept = fs::read_to_string(&snapshot).unwrap_or_default();
            wrong.extend(difference(&kept, &api).into_iter().map(|line| format!("{name}: {line}")));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the public API is not the one in docs/api:\n{}\nIf the change is meant: cargo xtask api --bless, and an entry in CHANGELOG.md",
        wrong.join("\n")
    )
    .into())
}

/// One line an item, sorted, all features on; derived, automatic and blanket impls left out.
fn public_api(root: &Path, name: &str) -> Result<String, Box<dyn Error>> {
    let target = root.join("target/api");
    let done = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args(["rustdoc", "--quiet", "--lib", "--all-features", "--package", name, "--target-dir"])
        .arg(&target)
        .args(["--", "-Z", "unstable-options", "--output-format", "json", "--cap-lints", "allow"])
        .env("RUSTC_BOOTSTRAP", "1")
        // Documentation needs no native code, and must not wait for any to be built.
        .env("DOCS_RS", "1")
        .status()?;
    if !done.success() {
        return Err(format!("rustdoc failed on {name}").into());
    }
    let json = target.join("doc").join(format!("{}.json", name.replace('-', "_")));
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .sorted(true)
        .build()?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}

/// Lines that name a path of a crate which public signatures must not name. An implementation of a foreign trait (behind
/// a feature, such as serde's) is no signature of ours.
fn foreign_types<'a>(name: &str, api: &'a str) -> Vec<&'a str> {
    let may_be = |root: &str| NAMEABLE.contains(&root) || PRIMITIVES.contains(&root) || (name, root) == BINDINGS;
    let foreign = |line: &&str| !line.starts_with("impl") && roots(line).any(|root| !may_be(root));
    let ours = |line: &&str| !line.contains("::serialize") && !line.contains("::deserialize");
    api.lines().filter(foreign).filter(ours).collect()
}

/// The first segments of the paths in a line: each lower-case word followed by `::` and not preceded by it.
fn roots(line: &str) -> impl Iterator<Item = &str> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices("::").filter_map(move |(at, _)| {
        let start = line[..at].rfind(|c| !word(c)).map_or(0, |before| before + 1);
        let root = &line[start..at];
        let inner = line[..start].ends_with("::");
        (!inner && root.starts_with(|c: char| c.is_lowercase())).then_some(root)
    })
}

/// What was taken away (`-`) and added (`+`), line by line; order does not matter in an API.
fn difference(kept: &str, now: &str) -> Vec<String> {
    let gone = kept.lines().filter(|line| !now.lines().any(|other| other == *line)).map(|line| format!("- {line}"));
    let new = now.lines().filter(|line| !kept.lines().any(|other| other == *line)).map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_type_in_a_signature_is_found() {
        let api = "pub fn infer::open(path: impl core::convert::AsRef<std::path::Path>) -> infer_core::error::Result<()>\n\
                   pub fn infer::graph(&self) -> ort::session::Session\n\
                   pub fn u32::from(token: infer_core::Token) -> Self\n\
                   impl serde_core::ser::Serialize for infer_core::Token";
        assert_eq!(foreign_types("infer", api), ["pub fn infer::graph(&self) -> ort::session::Session"]);
        let table = "pub fn infer_sys::onnxruntime::Api::table(self) -> &'static ort_sys::OrtApi";
        assert_eq!((foreign_types("infer", table).len(), foreign_types("infer-sys", table).len()), (1, 0));
    }

    #[test]
    fn both_directions_of_a_change_are_told() {
        assert_eq!(difference("a\nb\n", "b\nc\n"), ["- a", "+ c"]);
        assert!(difference("a\nb\n", "b\na\n").is_empty());
    }
}
