//! A source tree of llama.cpp: patching it, and knowing it again.
//!
//! A tree that was unpacked and patched here carries a stamp: which pin it came from, which patches are on it, and a digest
//! of its contents. By the stamp a build script knows the tree in its own package, and sees when somebody edited one.

use std::fs;
use std::path::{Path, PathBuf};

use diffy::Patch;
use diffy::patch_set::{FileOperation, ParseOptions, PatchKind, PatchSet};

use crate::cache::{KeyOf, sha256, sha256_file};
use crate::choose::Variant;
use crate::error::{At, Error, Result};
use crate::pins::{Pin, llama_patches};

const STAMP: &str = "infer-stamp.txt";

/// What the tree of the pinned source that `variant` is built from is called in the cache.
pub fn name(pin: &Pin, variant: Variant) -> String {
    name_of(pin, &parts(pin, variant), variant)
}

/// What a tree with `parts` of the pinned source, for the CPU alone, is called.
pub fn name_with(pin: &Pin, parts: &[String]) -> String {
    name_of(pin, parts, Variant::Cpu)
}

/// By the commit, and by what was taken and what was patched.
fn name_of(pin: &Pin, parts: &[String], variant: Variant) -> String {
    let commit = pin.commit.as_deref().unwrap_or(&pin.version);
    let contents = sha256(format!("{}{}", patches_hash(variant), parts.join("\n")).as_bytes());
    format!("{}.cpp-{}-{}", pin.name, &commit[..commit.len().min(12)], &contents[..8])
}

/// What is unpacked for `variant`.
pub fn parts(pin: &Pin, variant: Variant) -> Vec<String> {
    pin.parts.iter().cloned().chain(variant.parts().iter().map(|part| (*part).to_owned())).collect()
}

/// Puts our patches on a freshly unpacked tree and stamps it.
///
/// # Errors
/// A patch does not apply: the message names the patch and the file.
pub fn finish(tree: &Path, pin: &Pin, variant: Variant) -> Result<()> {
    patch(tree, &llama_patches(variant))?;
    let stamp = format!("{}contents = {}\n", origin(pin, variant), digest(tree)?);
    let path = tree.join(STAMP);
    fs::write(&path, stamp).at("write", &path)
}

/// What a tree is to a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No tree, or one of another pin or other patches.
    NotOurs,
    /// The pinned source, patched, as it was unpacked.
    Pinned,
    /// The pinned source, patched, and edited since: its digest.
    Edited(String),
}

/// What `tree` is to a build of `variant`.
///
/// # Errors
/// It cannot be read.
pub fn standing(tree: &Path, pin: &Pin, variant: Variant) -> Result<Standing> {
    let Ok(stamp) = fs::read_to_string(tree.join(STAMP)) else { return Ok(Standing::NotOurs) };
    let Some(contents) = stamp.strip_prefix(&origin(pin, variant)) else { return Ok(Standing::NotOurs) };
    let digest = digest(tree)?;
    Ok(if contents == format!("contents = {digest}\n") { Standing::Pinned } else { Standing::Edited(digest) })
}

fn origin(pin: &Pin, variant: Variant) -> String {
    let commit = pin.commit.as_deref().unwrap_or_default();
    let package = pin.files.first().map_or("", |file| &file.sha256);
    // Every tree has what the CPU's has; one without a back end's folder is no tree for it.
    let more: String = variant.parts().iter().map(|part| format!("part = {part}\n")).collect();
    format!("commit = {commit}\npackage = {package}\npatches = {}\n{more}", patches_hash(variant))
}

fn patches_hash(variant: Variant) -> String {
    let all: String = llama_patches(variant).iter().map(|(name, text)| format!("{name}\n{text}")).collect();
    sha256(all.as_bytes())
}

/// A hash of every file below `tree`, by name and contents; the stamp, and what version control keeps there, are left out.
///
/// # Errors
/// It cannot be read.
pub fn digest(tree: &Path) -> Result<String> {
    let mut files = Vec::new();
    list(tree, &mut files)?;
    files.sort();
    let mut all = KeyOf::default();
    for file in files {
        let name = file.strip_prefix(tree).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        if name != STAMP {
            all = all.value(&name, &sha256_file(&file)?);
        }
    }
    Ok(sha256(all.key().text().as_bytes()))
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).at("read", folder)? {
        let entry = entry.at("read", folder)?;
        let path = entry.path();
        if path.is_dir() && entry.file_name() != ".git" {
            list(&path, files)?;
        } else if path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// Applies `patches` to the files below `tree`.
///
/// # Errors
/// A patch is malformed, does more than change files, or does not apply.
pub fn patch(tree: &Path, patches: &[(&str, &str)]) -> Result<()> {
    for (name, text) in patches {
        for piece in PatchSet::parse(text, ParseOptions::unidiff()) {
            let piece = piece.map_err(|error| Error::new(format!("the patch {name} is malformed: {error}")))?;
            let operation = piece.operation().strip_prefix(1);
            let (FileOperation::Modify { modified, .. }, PatchKind::Text(change)) = (&operation, piece.patch()) else {
                return Err(Error::new(format!("the patch {name} does more than change the text of files")));
            };
            apply(tree, name, modified, change)?;
        }
    }
    Ok(())
}

fn apply(tree: &Path, name: &str, file: &str, change: &Patch<'_, str>) -> Result<()> {
    let path = tree.join(file);
    let before = fs::read_to_string(&path).at("read", &path)?;
    let after = diffy::apply(&before, change).map_err(|error| {
        Error::new(format!("the patch {name} does not apply to {file}: {error}"))
            .with_help("the pinned source and the patches have parted: make the patch anew for this source")
    })?;
    fs::write(&path, after).at("write", &path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins::MLX_C_PATCHES;

    const CHANGE: &str = "why\n\n--- a/d/f.c\n+++ b/d/f.c\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";

    fn tree(name: &str, text: &str) -> PathBuf {
        let tree = std::env::temp_dir().join(format!("infer-tree-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&tree);
        fs::create_dir_all(tree.join("d")).unwrap();
        fs::write(tree.join("d/f.c"), text).unwrap();
        tree
    }

    #[test]
    fn a_patch_applies_even_when_lines_moved() {
        let tree = tree("applies", "zero\nhalf\none\ntwo\nthree\n");
        patch(&tree, &[("p", CHANGE)]).unwrap();
        assert_eq!(fs::read_to_string(tree.join("d/f.c")).unwrap(), "zero\nhalf\none\n2\nthree\n");
        fs::remove_dir_all(tree).unwrap();
    }

    #[test]
    fn a_patch_that_does_not_apply_is_named_with_its_file() {
        let tree = tree("parted", "one\nzwei\nthree\n");
        let error = patch(&tree, &[("0007-x.patch", CHANGE)]).unwrap_err().to_string();
        assert!(error.contains("0007-x.patch") && error.contains("d/f.c"), "{error}");
        assert_eq!(fs::read_to_string(tree.join("d/f.c")).unwrap(), "one\nzwei\nthree\n", "left as it was");
        fs::remove_dir_all(tree).unwrap();
    }

    #[test]
    fn a_patch_may_only_change_files() {
        let tree = tree("creates", "");
        let text = "--- /dev/null\n+++ b/new.c\n@@ -0,0 +1 @@\n+x\n";
        let error = patch(&tree, &[("p", text)]).unwrap_err().to_string();
        assert!(error.contains("does more than change"), "{error}");
        fs::remove_dir_all(tree).unwrap();
    }

    #[test]
    fn what_is_taken_is_in_a_trees_name() {
        let pin = Pin::named("llama").unwrap();
        let names = Variant::ALL.map(|variant| name(&pin, variant));
        assert!(names.iter().enumerate().all(|(i, name)| !names[..i].contains(name)), "{names:?}");
        assert!(names[0].starts_with(&format!("llama.cpp-{}-", &pin.commit.unwrap()[..12])), "{names:?}");
    }

    #[test]
    fn every_patch_of_ours_says_why_and_changes_something() {
        for (name, text) in Variant::ALL.into_iter().flat_map(llama_patches).chain(MLX_C_PATCHES.iter().copied()) {
            assert!(text.lines().take_while(|line| !line.starts_with("--- ")).count() > 2, "{name} says why");
            let pieces: Vec<_> = PatchSet::parse(text, ParseOptions::unidiff()).collect::<Result<_, _>>().unwrap();
            assert!(!pieces.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_tree_is_known_by_its_stamp_and_an_edit_is_seen() {
        let pin = Pin::named("llama").unwrap();
        let tree = tree("stamp", "one\n");
        assert_eq!(standing(&tree, &pin, Variant::Cpu).unwrap(), Standing::NotOurs);
        fs::write(tree.join(STAMP), format!("{}contents = {}\n", origin(&pin, Variant::Cpu), digest(&tree).unwrap()))
            .unwrap();
        assert_eq!(standing(&tree, &pin, Variant::Cpu).unwrap(), Standing::Pinned);
        for variant in [Variant::Vulkan, Variant::Cuda, Variant::Metal] {
            let standing = standing(&tree, &pin, variant).unwrap();
            assert_eq!(standing, Standing::NotOurs, "it lacks the folder of {variant}");
        }
        fs::write(tree.join("d/f.c"), "two\n").unwrap();
        let Standing::Edited(first) = standing(&tree, &pin, Variant::Cpu).unwrap() else { panic!("an edit is seen") };
        fs::write(tree.join("d/g.c"), "").unwrap();
        assert_ne!(standing(&tree, &pin, Variant::Cpu).unwrap(), Standing::Edited(first), "so is a new file");
        let mut other = pin.clone();
        other.commit = Some("0".repeat(40));
        assert_eq!(standing(&tree, &other, Variant::Cpu).unwrap(), Standing::NotOurs, "another commit");
        fs::remove_dir_all(tree).unwrap();
    }
}
