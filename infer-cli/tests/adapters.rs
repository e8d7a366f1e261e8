//! `infer generate --adapter`, with a tiny model and its adapters.

use assert_cmd::Command;
use std::path::PathBuf;

fn fixture(name: &str) -> PathBuf {
    build_support::fixtures::model(name).expect("the tiny ones are made")
}

/// Runs it, and gives exit code, stdout and stderr.
fn generate(adapter: Option<&str>) -> (i32, String, String) {
    let mut command = Command::cargo_bin("infer").unwrap();
    command.timeout(test_kit::child::LONG);
    command
        .args(["generate", "--prompt", "Hello", "-n", "12", "--ignore-end", "--threads", "1"])
        .env_remove("INFER_LOG");
    command.arg("--model").arg(fixture("tiny-llama"));
    if let Some(adapter) = adapter {
        command.arg("--adapter").arg(adapter);
    }
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("it was not killed"), text(&output.stdout), text(&output.stderr))
}

#[test]
fn an_adapter_makes_another_text() {
    let path = fixture("tiny-lora");
    let path = path.to_str().unwrap();
    let [bare, tuned, none] =
        [None, Some(format!("{path}:4")), Some(format!("{path}:0"))].map(|adapter| generate(adapter.as_deref()));
    assert_eq!([bare.0, tuned.0, none.0], [0; 3], "{}{}", bare.2, tuned.2);
    assert_ne!(bare.1, tuned.1);
    assert_eq!(bare.1, none.1, "a scale of 0 is none");
}

#[test]
fn an_adapter_of_another_model_is_named() {
    let path = fixture("tiny-lora-other");
    let (code, stdout, stderr) = generate(path.to_str());
    assert!(code != 0 && stdout.is_empty(), "{stdout}");
    for words in ["tiny-lora-other", "another model"] {
        assert!(stderr.contains(words), "{stderr}");
    }
    let (code, _, stderr) = generate(Some("a.gguf:nan"));
    assert!(code == 2 && stderr.contains("scale"), "{code}: {stderr}");
    let (code, _, stderr) = generate(Some(&format!("{}:abc", fixture("tiny-lora").display())));
    assert!(code == 2 && stderr.contains("`abc` behind it is no number for the scale"), "{code}: {stderr}");
}

#[test]
fn an_adapter_in_place_of_a_model_is_told_apart() {
    let model = fixture("tiny-lora");
    for arguments in [&["generate", "--prompt", "Hello"][..], &["tokenize", "Hello"], &["embed", "Hello"]] {
        let mut infer = Command::cargo_bin("infer").unwrap();
        let output = infer.timeout(test_kit::child::LONG).args(arguments).arg("--model").arg(&model).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("an adapter, not a model") && stderr.contains("--adapter"), "{stderr}");
    }
}
