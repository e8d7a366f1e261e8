//! `infer cost` without a model: the numbers of published ones.

use assert_cmd::Command;
use serde_json::Value;

fn infer(arguments: &str) -> (String, String) {
    let mut infer = Command::cargo_bin("infer").unwrap();
    let output = infer.timeout(test_kit::child::LONG).args(arguments.split_whitespace()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert!(output.status.success(), "{}", text(output.stderr));
    (text(output.stdout), text(output.stderr))
}

fn cost(arguments: &str) -> Value {
    let (stdout, stderr) = infer(&format!("cost --json {arguments}"));
    assert_eq!((stdout.lines().count(), stderr.as_str()), (1, ""));
    serde_json::from_str(&stdout).unwrap()
}

const QWEN3_4B: &str =
    "--layers 36 --d-model 2560 --heads 32 --kv-heads 8 --head-dim 128 --vocab 151936 --ff 9728 --tied";

#[test]
fn the_kv_cache_of_known_models() {
    const KIB: u64 = 1 << 10;
    for (dims, position) in [
        (QWEN3_4B, 144 * KIB),
        ("--layers 12 --d-model 768 --heads 12 --vocab 50257 --ff 3072 --no-gate --tied", 36 * KIB),
        ("--layers 32 --d-model 4096 --heads 32 --kv-heads 8 --vocab 128256 --ff 14336", 128 * KIB),
        ("--layers 80 --d-model 8192 --heads 64 --kv-heads 8 --vocab 128256 --ff 28672", 320 * KIB),
    ] {
        let cost = cost(&format!("{dims} --ctx 4096"));
        assert_eq!(cost["kv"]["bytes_per_position"], position, "{dims}");
        assert_eq!(cost["kv"]["bytes"], position * 4096, "{dims}");
    }
    assert_eq!(cost(&format!("{QWEN3_4B} --kv q8_0"))["kv"]["bytes_per_position"], 144 * KIB * 34 / 64);
}

#[test]
fn people_read_the_same_numbers() {
    let (text, _) = infer(&format!("cost {QWEN3_4B} --ctx 4096 --memory 16GiB"));
    assert!(text.contains("144 KiB a position, 576 MiB at 4,096 positions, in f16"), "{text}");
    assert!(text.contains("fits         yes: "), "{text}");
    assert!(text.contains("by the simple formula") && text.contains("leaves out"), "{text}");
    let (text, _) = infer(&format!("cost {QWEN3_4B} --memory 4GiB"));
    assert!(text.contains("fits         no: "), "{text}");
}

#[test]
fn the_exact_count_and_the_simple_formula_differ_by_what_is_said() {
    let flops = cost(&format!("{QWEN3_4B} --ctx 4096"))["flops_per_token"].clone();
    let number = |name: &str| flops[name].as_u64().unwrap();
    let parts = ["projections", "feed_forward", "attention", "head"].map(number);
    assert_eq!(number("exact"), parts.iter().sum::<u64>());
    assert_eq!(number("simple") - number("simple_counts_too_much") + number("attention"), number("exact"));
    // 4 operations for each of 32 heads of 128 in each of 36 layers and each of 4096 positions.
    assert_eq!(number("attention"), 4 * 36 * 32 * 128 * 4096);
}

#[test]
fn a_config_is_read_as_the_dimensions_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    let config = r#"{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
        "num_hidden_layers": 32, "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": false,
        "max_position_embeddings": 8192, "torch_dtype": "bfloat16"}"#;
    std::fs::write(&path, config).unwrap();
    let cost = cost(&format!("--config {} --memory 1GiB", path.display()));
    assert_eq!(cost["parameters"]["total"], 8_030_261_248_u64);
    assert_eq!(cost["weights"]["bytes"], 2 * 8_030_261_248_u64);
    assert_eq!((&cost["weights"]["by_dtype"][0]["dtype"], &cost["kv"]["positions"]), (&"bf16".into(), &8192.into()));
    assert_eq!(cost["memory"]["fits"], false);
}

fn of_model(name: &str, arguments: &str) -> (i32, String, String) {
    let model = build_support::fixtures::model(name).expect("`cargo xtask setup` brings it");
    let mut infer = Command::cargo_bin("infer").unwrap();
    infer.timeout(test_kit::child::LONG);
    let output = infer.arg("cost").arg(model).args(arguments.split_whitespace()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

#[test]
fn an_encoder_has_no_cache_and_no_output_layer() {
    for name in ["minilm", "tiny-rank"] {
        let (code, text, stderr) = of_model(name, "--memory 1GiB");
        assert_eq!((code, stderr.as_str()), (0, ""));
        assert!(!text.contains("KV cache") && !text.contains("output layer"), "{text}");
        assert!(text.contains("parameters") && text.contains("fits         yes"), "{text}");
        let cost: Value = serde_json::from_str(&of_model(name, "--json").1).unwrap();
        assert_eq!((&cost["kv"], &cost["memory"]["kv"]), (&Value::Null, &0.into()));
        assert_eq!((&cost["flops_per_token"]["head"], &cost["parameters"]["head"]), (&Value::Null, &Value::Null));
    }
    let (_, text, _) = of_model("minilm", "--kv q8_0");
    assert!(text.contains("remark       an encoder has no KV cache that could be in q8_0"), "{text}");
    let (_, text, _) = of_model("tiny-llama", "");
    assert!(text.contains("KV cache") && text.contains("output layer"), "{text}");
}

#[test]
fn an_adapter_is_called_one() {
    let (code, stdout, stderr) = of_model("tiny-lora", "");
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("is an adapter, not a model: 2,048 parameters in 8 KiB"), "{stderr}");
}

#[test]
fn what_would_go_wrong_is_remarked() {
    let remarks =
        |arguments: &str| of_model("tiny-llama", arguments).1.lines().filter(|line| line.starts_with("remark")).count();
    assert_eq!(remarks(""), 0);
    assert_eq!(remarks("--ctx 512"), 0);
    let (_, text, _) = of_model("tiny-llama", "--ctx 1000");
    assert!(text.contains("1,000 positions are more than the 512 the model was trained for"), "{text}");
    let (_, text, _) = of_model("tiny-llama", "--kv q8_0");
    assert!(
        text.contains("in q8_0 is refused: that comes in blocks of 32 numbers, and a head of this model has 16"),
        "{text}"
    );
    assert_eq!(remarks("--kv q8_0 --ctx 1000"), 2);
}
