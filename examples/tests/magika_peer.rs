//! What `classify` says of files is what the `magika` package says of them.

use kit::script;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Files, and kinds among them.
const FILES: usize = 100;
const KINDS: usize = 50;

#[test]
fn labels_are_those_of_the_package() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("magika-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let theirs = script::run("magika_labels.py", [vec![folder.clone()], own()].concat(), "");
    let theirs: Vec<(String, String, String)> =
        serde_json::from_str(&theirs.unwrap_or_else(|error| panic!("{error}"))).unwrap();
    let kinds: BTreeSet<&str> = theirs.iter().map(|(_, label, _)| label.as_str()).collect();
    assert!(theirs.len() >= FILES && kinds.len() >= KINDS, "{} files of {} kinds", theirs.len(), kinds.len());

    let model = build_support::fixtures::model("magika").unwrap_or_else(|error| panic!("{error}"));
    let mut classify = Command::new(env!("CARGO_BIN_EXE_classify"));
    let output = test_kit::child::output(classify.arg(model).args(theirs.iter().map(|(path, ..)| path)));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let ours: Vec<&str> = text.lines().collect();
    assert_eq!(ours.len(), theirs.len());
    for (ours, (path, label, guess)) in ours.iter().zip(&theirs) {
        let answer =
            ours.strip_prefix(path).and_then(|rest| rest.strip_prefix(": ")).expect("a line begins with its file");
        let same = match answer.strip_prefix("not sure; ") {
            // The package says no more then than whether it is text.
            Some(perhaps) => perhaps.split(',').next() == Some(guess) && matches!(&**label, "txt" | "unknown"),
            None => answer.split(' ').next() == Some(label),
        };
        assert!(same, "{ours}, and in Python {label} (perhaps {guess})");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Files of this repository, of several kinds, and programs as they come out of a compiler.
fn own() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = [".", ".ci", "build-support", "build-support/shim", "benches/peers", "infer-core/src"];
    let files = folders.iter().flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let mut files: Vec<PathBuf> =
        files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file() && !path.is_symlink()).collect();
    files.push(env!("CARGO_BIN_EXE_classify").into());
    files
}
