//! What needs no model: arguments, files that are none, exit codes, and what goes to which stream.

use assert_cmd::Command;
use std::{fs, path::Path};

fn infer(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("infer").unwrap();
    command.timeout(test_kit::child::LONG);
    command.args(arguments).env_remove("INFER_LOG");
    command
}

/// Runs it, and gives exit code, stdout and stderr.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = infer(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

#[test]
fn wrong_arguments_are_code_2_and_nothing_on_stdout() {
    for (arguments, said) in [
        (&["generate", "--prompt", "x"][..], "--model"),
        (&["generate", "--model", "x", "--prompt", "a", "--file", "b"], "cannot be used with"),
        (&["generate", "--model", "x", "--prompt", "a", "--system", "b"], "--chat"),
        (&["generate", "--model", "x", "--prompt", "a", "--stop", ""], "--stop"),
        (&["generate", "--model", "x", "--prompt", "a", "--max-tokens", "-3"], "--max-tokens"),
        (&["generate", "--model", "x", "--prompt", "a", "--max-tokens", "99999999999999999999"], "--max-tokens"),
        (&["generate", "--model", "x", "--prompt", "a", "--backend", "abacus"], "the backends are: llama"),
        (&["generate", "--model", "x", "--prompt", "a", "--temperature", "-1"], "temperature is -1"),
        (&["generate", "--model", "x", "--prompt", "a", "--temperature", "NaN"], "temperature is NaN"),
        (&["generate", "--model", "x", "--prompt", "a", "--top-p", "1.5"], "top_p is 1.5"),
        (&["generate", "--model", "x", "--prompt", "a", "--typical-p", "-1"], "typical_p is -1"),
        (&["generate", "--model", "x", "--prompt", "a", "--dry-base", "0.5"], "dry_base is 0.5"),
        (
            &["generate", "--model", "x", "--prompt", "a", "--dry-breaker", &"-".repeat(41)],
            "--dry-breaker has 41 bytes",
        ),
        (&["generate", "--model", "x", "--prompt", "a", "--logprobs", "3"], "--json"),
        (&["generate", "--model", "x", "--prompt", "a", "--min-p", "inf"], "min_p is inf"),
        (&["generate", "--model", "x", "--prompt", "a", "--repetition-penalty", "0"], "repetition_penalty is 0"),
        (&["tokenize", "--model", "x", "a", "--ids", "--json"], "cannot be used with"),
        (&["cost"], "missing: --layers --d-model --heads --vocab"),
        (&["cost", "x", "--config", "y"], "cannot be used with"),
        (&["cost", "x", "--layers", "3"], "cannot be used with"),
        (&["cost", "--kv", "i8"], "there are f32"),
        (&["cost", "--memory", "lots"], "16GiB"),
        (&["no-such-command"], "no-such-command"),
    ] {
        let (code, stdout, stderr) = run(arguments);
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{arguments:?}: {stderr}");
    }
}

#[test]
fn files_that_are_no_models_are_code_1_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let there = folder.path().to_str().unwrap().to_owned();
    let cut = [&b"GGUF\x03\0\0\0"[..], &[0xff; 16]].concat();
    for (path, said) in [
        (folder.path().join("missing").to_str().unwrap().to_owned(), "because: "),
        (there, "a folder"),
        (file("empty", b""), "is empty"),
        (file("text", b"hello, world"), "`hell`"),
        (file("pointer", b"version https://git-lfs.github.com/spec/v1"), "git lfs pull"),
        (file("magic", b"GGUF"), "magic"),
        (file("absurd", &cut), "absurd"),
    ] {
        for arguments in [
            &["inspect", &path][..],
            &["cost", &path],
            &["tokenize", "--model", &path, "text"],
            &["generate", "--model", &path, "--prompt", "text"],
        ] {
            let (code, stdout, stderr) = run(arguments);
            assert_eq!((code, stdout.as_str()), (1, ""), "{arguments:?}: {stderr}");
            let name = Path::new(&path).file_name().unwrap().to_str().unwrap();
            assert!(stderr.starts_with("error: ") && stderr.contains(name), "{arguments:?}: {stderr}");
            assert!(stderr.contains(said), "{arguments:?}: {stderr}");
        }
    }
}

#[test]
fn a_prompt_that_cannot_be_read_is_told_before_the_model_is_loaded() {
    let (code, _, stderr) = run(&["generate", "--model", "no-model", "--file", "no-prompt"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("no-prompt") && !stderr.contains("no-model"), "{stderr}");
    let output = infer(&["generate", "--model", "no-model"]).write_stdin(&b"caf\xe9"[..]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("stdin is not UTF-8 text: byte 3"), "{stderr}");
}

/// Read to the end, it would take all memory there is.
#[test]
#[cfg(unix)]
fn a_text_without_end_is_refused() {
    for arguments in
        [&["generate", "--model", "no-model", "--file", "/dev/zero"][..], &["cost", "--config", "/dev/zero"]]
    {
        let (code, stdout, stderr) = run(arguments);
        assert_eq!((code, stdout.as_str()), (1, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains("/dev/zero has more than 256 MiB"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn an_error_does_not_speak_to_the_terminal() {
    for arguments in [&["inspect", "\u{1b}[2J"][..], &["generate", "--model", "\u{9b}2J", "--prompt", "x"]] {
        let (code, _, stderr) = run(arguments);
        assert_eq!(code, 1);
        assert!(stderr.contains("\u{fffd}") && !stderr.contains(['\u{1b}', '\u{9b}']), "{stderr:?}");
    }
}

#[test]
fn a_log_filter_that_is_none_is_named() {
    let output = infer(&["cost"]).env("INFER_LOG", "a=b=c").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("INFER_LOG"));
}

#[test]
fn help_and_version_are_answers() {
    let (code, stdout, stderr) = run(&["--help"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(["generate", "tokenize", "inspect", "cost"].iter().all(|name| stdout.contains(name)), "{stdout}");
    let (code, stdout, _) = run(&["--version"]);
    assert_eq!(code, 0);
    assert!(stdout.starts_with(concat!("infer ", env!("CARGO_PKG_VERSION"))), "{stdout}");
}

/// Whatever is given, the answer is an exit code that is documented, and stdout has nothing when it is not 0.
#[test]
fn no_arguments_end_it_in_any_other_way() {
    const WORDS: &[&str] = &[
        "generate",
        "tokenize",
        "inspect",
        "cost",
        "devices",
        "--model",
        "--prompt",
        "--file",
        "--json",
        "--ids",
        "--chat",
        "--system",
        "--stop",
        "--seed",
        "--temperature",
        "--top-k",
        "--max-tokens",
        "--ctx",
        "--threads",
        "--backend",
        "llama",
        "--library",
        "--layers",
        "--d-model",
        "--heads",
        "--kv-heads",
        "--head-dim",
        "--vocab",
        "--ff",
        "--kv",
        "--memory",
        "--config",
        "-v",
        "--",
        "-",
        "",
        "0",
        "-1",
        "18446744073709551615",
        "1e400",
        "nan",
        "q4_0",
        "\u{fffd}",
        "/",
        "/dev/null",
        "no-such-file",
        "--layers=18446744073709551615",
        "--heads=0",
        "--vocab=1",
        "--d-model=1",
    ];
    // A linear congruential generator: the same arguments each time.
    let mut state = 2_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    for _ in 0..150 {
        let mut arguments = vec![WORDS[next() % 5]];
        arguments.extend((0..next() % 7).map(|_| WORDS[next() % WORDS.len()]));
        let output = infer(&arguments).write_stdin("").output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let code = output.status.code();
        assert!(matches!(code, Some(0..=2)), "{arguments:?}: {code:?} {stderr}");
        assert!(code == Some(0) || output.stdout.is_empty(), "{arguments:?}: {stderr}");
        assert!(code == Some(0) || stderr.starts_with("error: "), "{arguments:?}: {stderr}");
    }
}

/// What can be said only by a build that lacks something: `cargo xtask check` runs this one with the features by default, `cargo xtask
/// test` with all.
#[test]
fn a_library_that_this_build_cannot_load_says_how_one_is_installed_that_can() {
    let model = build_support::fixtures::model("tiny-llama").expect("the tiny ones are made");
    let generate = ["generate", "--prompt", "x", "--model", model.to_str().unwrap()];
    for (choice, feature, is_there) in [
        (["--variant", "vulkan"], "llama-vulkan", cfg!(feature = "llama-vulkan")),
        (["--variant", "cpu"], "llama-load", cfg!(feature = "llama-load")),
        (["--library", "/no-such.so"], "llama-load", cfg!(feature = "llama-load")),
    ] {
        if is_there {
            continue;
        }
        let (code, stdout, stderr) = run(&[&generate[..], &choice].concat());
        assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
        let said = format!("`cargo install --path infer-cli --features {feature}`");
        assert!(stderr.contains(&said), "{stderr}");
    }
}

#[test]
fn a_variant_is_one_there_is_and_one_that_can_be_built() {
    let folder = tempfile::tempdir().unwrap();
    let setup = |variant: &str| {
        let mut infer = Command::cargo_bin("infer").unwrap();
        infer.timeout(test_kit::child::LONG);
        let output = infer.args(["setup", "llama", "--variant", variant]).env("INFER_CACHE", folder.path()).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = setup("opencl");
    assert!(code == Some(2) && text.contains("cpu, vulkan, cuda, metal"), "{text}");
    if !cfg!(target_vendor = "apple") {
        let (code, text) = setup("metal");
        assert!(code == Some(1) && text.contains("only Apple's systems have Metal"), "{text}");
    }
    for (runtime, variable) in [("onnx", "INFER_ONNXRUNTIME_LIBRARY"), ("mlx", "INFER_MLX_LIBRARY")] {
        let mut setup = Command::cargo_bin("infer").unwrap();
        setup.timeout(test_kit::child::LONG);
        let setup = setup.args(["setup", runtime, "--variant", "cuda"]).env("INFER_CACHE", folder.path());
        let output = setup.output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("for cpu") && text.contains("`infer setup llama --variant cuda`"), "{text}");
        assert!(text.contains(variable), "{text}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was fetched");
}
