use super::*;

fn recipe() -> Recipe {
    Recipe {
        source: "pinned 1".into(),
        commit: "c".repeat(40),
        patched: true,
        variant: Variant::Cpu,
        target: Target::new("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"),
        native: true,
        user_flags: vec![],
    }
}

const PATCHES: &[(&str, &str)] = &[("0001", "one"), ("0002", "two")];
const SHIM: &[(&str, &str)] = &[("door.h", "header"), ("door.cpp", "source")];

fn keys(recipe: &Recipe) -> Keys {
    recipe.keys_with("gcc 12", "avx2", PATCHES, SHIM)
}

#[test]
fn the_same_recipe_has_the_same_keys() {
    let (a, b) = (keys(&recipe()), keys(&recipe()));
    assert_eq!((a.archives, a.door), (b.archives, b.door));
}

/// A touched pin, patch, compiler or flag builds llama.cpp again, and so the door.
#[test]
fn what_goes_into_the_archives_changes_both_keys() {
    let base = keys(&recipe());
    let changed = [
        ("pin or native header", keys(&Recipe { source: "pinned 2".into(), ..recipe() })),
        ("commit", keys(&Recipe { commit: "d".repeat(40), ..recipe() })),
        ("variant", keys(&Recipe { variant: Variant::Vulkan, ..recipe() })),
        ("target", keys(&Recipe { target: Target::new("aarch64-unknown-linux-gnu", ""), ..recipe() })),
        ("no patches", keys(&Recipe { patched: false, ..recipe() })),
        ("user's flag", keys(&Recipe { user_flags: vec![("CFLAGS", "-g".into())], ..recipe() })),
        ("user's other flag", keys(&Recipe { user_flags: vec![("CXXFLAGS", "-g".into())], ..recipe() })),
        ("compiler", recipe().keys_with("gcc 13", "avx2", PATCHES, SHIM)),
        ("CPU", recipe().keys_with("gcc 12", "avx512", PATCHES, SHIM)),
        ("a patch", recipe().keys_with("gcc 12", "avx2", &[("0001", "one"), ("0002", "zwei")], SHIM)),
        ("a patch less", recipe().keys_with("gcc 12", "avx2", &PATCHES[..1], SHIM)),
        ("the order of patches", recipe().keys_with("gcc 12", "avx2", &[PATCHES[1], PATCHES[0]], SHIM)),
    ];
    for (what, changed) in &changed {
        assert_ne!(changed.archives, base.archives, "{what}");
        assert_ne!(changed.door, base.door, "{what}");
    }
    let mut all: Vec<_> = changed.iter().map(|(_, keys)| keys.archives.short().to_owned()).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), changed.len(), "each differs from each");
}

#[test]
fn a_touched_file_of_the_shim_makes_the_door_again_and_not_the_archives() {
    let base = keys(&recipe());
    for shim in [[("door.h", "Header"), SHIM[1]], [SHIM[0], ("door.cpp", "Source")]] {
        let touched = recipe().keys_with("gcc 12", "avx2", PATCHES, &shim);
        assert_eq!(touched.archives, base.archives);
        assert_ne!(touched.door, base.door);
    }
}

/// Without linking to this machine's CPU there is nothing of it in the key.
#[test]
fn a_portable_build_has_one_key_on_every_machine() {
    let portable = Recipe { native: false, ..recipe() };
    let Some(toolchain) = Toolchain::find(&Target::host()) else { panic!("these tests need a C++ compiler") };
    let keys = portable.keys(&toolchain);
    let same = portable.keys_with(&toolchain.identity(), "portable", &llama_patches(Variant::Cpu), LLAMA_SHIM);
    assert_eq!(keys.archives, same.archives);
    assert_ne!(keys.archives, Recipe { native: true, ..portable }.keys(&toolchain).archives);
}

/// No path is in a key, so a cache can be moved and be shared by checkouts; and no Rust source.
#[test]
fn a_key_names_no_path_and_no_rust_source() {
    let Some(toolchain) = Toolchain::find(&Target::host()) else { panic!("these tests need a C++ compiler") };
    let keys = recipe().keys(&toolchain);
    for text in [keys.archives.text(), keys.door.text()] {
        assert!(
            !text.contains(env!("CARGO_MANIFEST_DIR")) && !text.contains("/usr/") && !text.contains(".rs"),
            "{text}"
        );
    }
}

#[test]
fn the_child_is_told_what_the_parent_meant() {
    let cmake = |product| Work::Cmake { product, native: true, generator: "Ninja".into(), make: "/t/ninja".into() };
    for work in [cmake(Product::Archives), cmake(Product::Programs("/an archive's".into())), Work::Door] {
        let step = Step {
            from: "/a tree/with spaces".into(),
            folder: "/b".into(),
            target: Target { triple: "x86_64-unknown-linux-gnu".into(), is_host: true },
            variant: Variant::Vulkan,
            commit: "c".repeat(40),
            work,
        };
        assert_eq!(Step::from_os_str(&step.to_os_string().unwrap()), Some(step));
    }
    let long = ["a"; 11].join("\u{1f}");
    for malformed in ["", "a\u{1f}b", "a\u{1f}b\u{1f}t\u{1f}on\u{1f}opencl\u{1f}c", &long] {
        assert_eq!(Step::from_os_str(OsStr::new(malformed)), None, "{malformed:?}");
    }
}
