use super::*;

const LINUX: &str = "x86_64-unknown-linux-gnu";

fn script(env: Env) -> Script {
    Script::with(env, "/no/such/package").pins().unwrap()
}

fn linking(pairs: &[(&str, &str)]) -> Env {
    let always = [("CARGO_FEATURE_LLAMA_LINK", "1"), ("TARGET", LINUX), (env::CACHE, "/no/such/cache")];
    Env::of(always.iter().chain(pairs).copied())
}

fn has(script: &Script, start: &str) -> bool {
    script.lines.iter().any(|line| line.starts_with(start))
}

#[test]
fn the_commit_is_told_with_and_without_linking() {
    let script = script(Env::default());
    let commit = Pin::named("llama").unwrap().commit.unwrap();
    assert!(script.lines.contains(&format!("rustc-env=INFER_LLAMA_COMMIT={commit}")));
    let version = Pin::named("onnxruntime").unwrap().version;
    assert!(script.lines.contains(&format!("rustc-env=INFER_ONNXRUNTIME_VERSION={version}")));
    let version = Pin::named("mlx").unwrap().version;
    assert!(script.lines.contains(&format!("rustc-env=INFER_MLX_VERSION={version}")));
    assert!(script.lines.contains(&"rustc-env=INFER_LLAMA_VARIANT=cpu".to_owned()));
    assert!(has(&script, "rustc-check-cfg=cfg(infer_llama_missing)"));
}

/// With `llama-load` alone no compiler, cmake or cache is looked at: their variables are not even watched.
#[test]
fn without_linking_nothing_native_is_asked_for() {
    let env = Env::of([("TARGET", LINUX), (env::CC, "/bin/false"), (env::CMAKE, "/bin/false")]);
    let script = script(env).llama(&crate::begin()).unwrap();
    for start in ["rustc-link", "rustc-cfg", "warning", "rerun-if-env-changed=CC", "rerun-if-env-changed=INFER_CACHE"] {
        assert!(!has(&script, start), "{start}: {:?}", script.lines);
    }
}

#[test]
fn documentation_links_nothing_and_misses_nothing() {
    let script = script(linking(&[(env::DOCS_RS, "1")])).llama(&crate::begin()).unwrap();
    assert!(!has(&script, "rustc-link") && !has(&script, "rustc-cfg") && !has(&script, "warning"));
}

#[test]
fn what_is_missing_is_a_warning_that_teaches_and_no_failure() {
    let script = script(linking(&[])).llama(&crate::begin()).unwrap();
    let text = script.lines.join("\n");
    assert!(has(&script, "rustc-cfg=infer_llama_missing"), "{text}");
    assert!(!has(&script, "rustc-link"), "{text}");
    for said in [
        "there is no llama.cpp source tree",
        "looked for: /no/such/package/vendor/llama.cpp is not there",
        "looked for: /no/such/cache/sources/llama.cpp-",
        "cargo xtask setup",
        "llama-load",
        env::LLAMA_SOURCE,
        env::LLAMA_PREFIX,
        env::LLAMA_SYSTEM,
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(text.contains("rerun-if-changed=/no/such/cache"), "asked again, once something is there: {text}");
}

#[test]
fn exactly_what_a_native_build_is_made_from_is_watched() {
    let script = script(linking(&[])).llama(&crate::begin()).unwrap();
    let folder = env!("CARGO_MANIFEST_DIR");
    let watched = |line: &str| line.strip_prefix("rerun-if-changed=").map(str::to_owned);
    let files: Vec<String> =
        script.lines.iter().filter_map(|line| watched(line)).filter(|file| file.starts_with(folder)).collect();
    let mut want = vec!["native.toml".to_owned()];
    want.extend(llama_patches(Variant::Cpu).iter().map(|(name, _)| format!("patches/llama/{name}")));
    want.extend(LLAMA_SHIM.iter().map(|(name, _)| format!("shim/{name}")));
    assert_eq!(files, want.iter().map(|file| format!("{folder}/{file}")).collect::<Vec<_>>());
    let rust: Vec<_> = script.lines.iter().filter(|line| line.ends_with(".rs")).collect();
    assert_eq!(rust, ["rerun-if-changed=build.rs"]);
    for name in [env::CACHE, env::LLAMA_SOURCE, env::CC, env::CXX, env::CMAKE, env::NATIVE_CPU] {
        assert!(script.lines.contains(&format!("rerun-if-env-changed={name}")), "{name}");
    }
    assert!(!script.lines.contains(&format!("rerun-if-env-changed={}", env::NO_FETCH)));
}

#[test]
fn a_prefix_is_linked_from_itself_or_its_lib_and_an_empty_one_is_an_error() {
    let prefix = std::env::temp_dir().join(format!("infer-prefix-{}", std::process::id()));
    let lib = prefix.join("lib");
    std::fs::create_dir_all(&lib).unwrap();
    let link = || script(linking(&[(env::LLAMA_PREFIX, prefix.to_str().unwrap())])).llama(&crate::begin());
    let error = link().unwrap_err().to_string();
    assert!(error.contains("libinfer_llama.a") && error.contains(&prefix.display().to_string()), "{error}");
    std::fs::write(lib.join("libinfer_llama.so"), "").unwrap();
    assert!(has(&link().unwrap(), "rustc-link-lib=dylib=infer_llama"));
    std::fs::write(lib.join("libinfer_llama.a"), "").unwrap();
    let script = link().unwrap();
    assert!(has(&script, "rustc-link-lib=static=infer_llama") && has(&script, "rustc-link-lib=dylib=stdc++"));
    assert!(script.lines.contains(&format!("rustc-link-search=native={}", lib.display())));
    std::fs::remove_dir_all(prefix).unwrap();
}

#[test]
fn a_variant_there_is_not_is_an_error_even_without_linking() {
    let script = Script::with(Env::of([(env::LLAMA_VARIANT, "opencl")]), "/p").pins();
    assert!(script.unwrap_err().to_string().contains("opencl"));
}

#[test]
fn what_cannot_be_is_an_error_and_not_a_warning() {
    for (pairs, said) in [
        (&[(env::LLAMA_PREFIX, "/p"), (env::LLAMA_SYSTEM, "on")][..], "both set"),
        (&[(env::LLAMA_SOURCE, "/no/such/tree")], "INFER_LLAMA_SOURCE is /no/such/tree"),
        (&[(env::LLAMA_VARIANT, "metal")], "metal"),
        (&[(env::LLAMA_SYSTEM, "maybe")], "maybe"),
    ] {
        let error = script(linking(pairs)).llama(&crate::begin()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(said), "{said}: {error}");
    }
}

#[cfg(unix)]
#[test]
fn where_no_cache_can_be_made_it_is_in_cargos_own_folder() {
    let out = std::env::temp_dir().join(format!("infer-out-{}", std::process::id()));
    std::fs::create_dir_all(out.join("tree/include")).unwrap();
    std::fs::write(out.join("tree/include/llama.h"), "").unwrap();
    // Below a file nothing can be made, whoever asks.
    let (file, tool) = (out.join("file"), out.join("ninja"));
    std::fs::write(&file, "").unwrap();
    test_kit::program(&tool, "#!/bin/sh\n");
    let target = Target::new(LINUX, LINUX);
    let cache = |pairs: &[(&str, &Path)]| {
        let script = script(Env::of([("OUT_DIR", out.as_path())].iter().chain(pairs).copied()));
        script.look(Wanted { link: true, variant: Variant::Cpu }, &target).unwrap().cache.root().to_owned()
    };
    let (own, mine, tree) = (out.join("native-cache"), out.join("mine"), out.join("tree"));
    assert_eq!(cache(&[]), own, "no home");
    assert_eq!(cache(&[(env::CACHE, &mine)]), mine);
    assert!(!mine.exists(), "none is made where nothing is built");
    let builds = [(env::LLAMA_SOURCE, tree.as_path()), (env::CMAKE, &tool), ("PATH", &out)];
    for (root, want) in [(&mine, &mine), (&file.join("cache"), &own)] {
        let all: Vec<_> = builds.into_iter().chain([(env::CACHE, root.as_path())]).collect();
        assert_eq!(&cache(&all), want, "{}", root.display());
    }
    std::fs::remove_dir_all(out).unwrap();
}
