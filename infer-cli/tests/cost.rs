//! `infer cost` without a model: the numbers of published ones.

use assert_cmd::Command;
use serde_json::Value;

fn infer(arguments: &str) -> (String, String) {
    let output = Command::cargo_bin("infer").unwrap().args(arguments.split_whitespace()).output().unwrap();
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
