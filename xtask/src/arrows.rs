//! `cargo xtask arrows`: which crate may know which. The map of docs/design.md, read off `cargo metadata`.

use serde_json::Value;

use crate::Result;
use crate::workspace::{cargo, output};

/// Check that dependencies between the crates run down only, as docs/design.md draws them.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// Each crate with those of the workspace it may depend on. A crate that is not here has no place yet, and is an error.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("infer-build-support", &[]),
    ("infer-test-kit", &[]),
    ("infer-core", &[]),
    ("infer-sys", &[]),
    ("infer-llama", &["infer-core", "infer-sys"]),
    ("infer-onnx", &["infer-core", "infer-sys"]),
    ("infer-mlx", &["infer-core", "infer-sys"]),
    ("infer", &["infer-core", "infer-llama", "infer-onnx", "infer-mlx"]),
    // `infer setup` makes libraries by the pins and the code that build scripts use.
    ("infer-cli", &["infer", "infer-build-support"]),
    ("infer-py", &["infer"]),
    ("infer-examples", &["infer"]),
    ("infer-tests", EVERYTHING),
    ("infer-benches", EVERYTHING),
    ("xtask", &["infer-build-support"]),
];

const EVERYTHING: &[&str] = &[
    "infer-build-support",
    "infer-test-kit",
    "infer-core",
    "infer-sys",
    "infer-llama",
    "infer-onnx",
    "infer-mlx",
    "infer",
    "infer-tests",
];

/// One dependency between crates of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Arrow {
    from: String,
    to: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Normal,
    Build,
    Dev,
}

pub(crate) fn run(_: &Arguments) -> Result {
    let wrong = wrong(&arrows()?);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// What is wrong with `arrows`, a line each.
fn wrong(arrows: &[Arrow]) -> Vec<String> {
    arrows
        .iter()
        .filter_map(|arrow| {
            let Arrow { from, to, kind } = arrow;
            let Some((_, may_know)) = MAY_KNOW.iter().find(|(name, _)| name == from) else {
                return Some(format!(
                    "{from} has no place on the map: give it one in xtask/src/arrows.rs and docs/design.md"
                ));
            };
            // Any tests may use what all of them share.
            // Build scripts are where build-support is for; tests find their fixtures by it, and may turn a feature of their own
            // crate's neighbours below on.
            // Tests of examples compare with programs of others, as all tests do: by the same kit.
            let good = may_know.contains(&to.as_str())
                || (to == "infer-build-support" && *kind != Kind::Normal)
                || (to == "infer-test-kit" && *kind == Kind::Dev)
                || (from == "infer-examples" && to == "infer-tests" && *kind == Kind::Dev);
            (!good)
                .then(|| format!("{from} depends on {to} ({kind:?}), and the map of docs/design.md has no such arrow"))
        })
        .collect()
}

/// Every dependency between crates of this workspace.
fn arrows() -> Result<Vec<Arrow>> {
    let metadata: Value = serde_json::from_str(&output(&mut cargo(["metadata", "--format-version=1", "--no-deps"]))?)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let members: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut arrows = Vec::new();
    for package in packages {
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let (Some(from), Some(to)) = (package["name"].as_str(), dependency["name"].as_str()) else { continue };
            let kind = match dependency["kind"].as_str() {
                Some("dev") => Kind::Dev,
                Some("build") => Kind::Build,
                _ => Kind::Normal,
            };
            if members.contains(&to) && from != to {
                arrows.push(Arrow { from: from.to_owned(), to: to.to_owned(), kind });
            }
        }
    }
    Ok(arrows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arrows_of_this_workspace_run_down_only() {
        let arrows = arrows().unwrap();
        assert!(arrows.len() > 5, "cargo metadata was understood: {arrows:?}");
        assert_eq!(wrong(&arrows), Vec::<String>::new());
    }

    #[test]
    fn an_arrow_that_runs_up_or_across_is_found() {
        let arrow = |from: &str, to: &str, kind| Arrow { from: from.into(), to: to.into(), kind };
        for (from, to, kind) in [
            ("infer-core", "infer-sys", Kind::Normal),
            ("infer-sys", "infer-core", Kind::Normal),
            ("infer-llama", "infer-onnx", Kind::Normal),
            ("infer-llama", "infer", Kind::Dev),
            ("infer", "infer-sys", Kind::Normal),
            ("infer", "infer-build-support", Kind::Normal),
            ("infer-cli", "infer-llama", Kind::Normal),
            ("infer-build-support", "infer-core", Kind::Normal),
            ("infer-new", "infer-core", Kind::Normal),
            ("infer-llama", "infer-test-kit", Kind::Normal),
        ] {
            assert_eq!(wrong(&[arrow(from, to, kind)]).len(), 1, "{from} -> {to}");
        }
        for (from, to, kind) in [
            ("infer-llama", "infer-core", Kind::Normal),
            ("infer-sys", "infer-build-support", Kind::Build),
            ("infer", "infer-build-support", Kind::Dev),
            ("infer-core", "infer-test-kit", Kind::Dev),
        ] {
            assert_eq!(wrong(&[arrow(from, to, kind)]), Vec::<String>::new());
        }
    }
}
