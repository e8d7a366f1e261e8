//! Graphs that are decoders, and those that are not quite.

use super::*;
use crate::decoder::Names;

fn port(name: &str, dtype: DType, shape: &[i64]) -> Port {
    Port { name: name.into(), kind: kind(dtype, shape), has_default: false }
}

/// -1 is a dimension that is not fixed.
fn kind(dtype: DType, shape: &[i64]) -> ValueType {
    let dim = |&size: &i64| usize::try_from(size).map_or(Dim::Dynamic(None), Dim::Fixed);
    ValueType::Tensor { dtype, dims: Some(shape.iter().map(dim).collect()) }
}

fn sample() -> (Config, Vec<Port>, Vec<Port>) {
    let past = ["key", "value"].map(|part| Pattern::around("past_key_values.", &format!(".{part}")));
    let present = ["key", "value"].map(|part| Pattern::around("present.", &format!(".{part}")));
    let mut inputs = vec![port("input_ids", DType::I64, &[-1, -1]), port("attention_mask", DType::I64, &[-1, -1])];
    let mut outputs = vec![port("logits", DType::F32, &[-1, -1, 300])];
    for layer in 0..2 {
        inputs.extend(past.each_ref().map(|pattern| port(&pattern.name(layer), DType::F32, &[-1, 2, -1, 8])));
        outputs.extend(present.each_ref().map(|pattern| port(&pattern.name(layer), DType::F32, &[-1, 2, -1, 8])));
    }
    let names = Names {
        tokens: "input_ids".into(),
        mask: "attention_mask".into(),
        positions: "position_ids".into(),
        past,
        present,
        logits: "logits".into(),
    };
    let config = Config {
        graph: "model.onnx".into(),
        architecture: "llama".into(),
        context: 64,
        vocab: 300,
        layers: 2,
        kv_heads: 2,
        head_size: 8,
        names,
        shares_buffer: false,
        one_token: false,
    };
    (config, inputs, outputs)
}

fn found(change: impl FnOnce(&mut Config, &mut Vec<Port>, &mut Vec<Port>)) -> Result<Ports> {
    let (mut config, mut inputs, mut outputs) = sample();
    change(&mut config, &mut inputs, &mut outputs);
    Ports::new(&config, &inputs, &outputs)
}

#[track_caller]
fn refused(words: &str, change: impl FnOnce(&mut Config, &mut Vec<Port>, &mut Vec<Port>)) {
    let error = found(change).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidModel | ErrorKind::Unsupported), "{error}");
    assert!(error.to_string().contains(words) && error.to_string().starts_with("model.onnx: "), "{error}");
}

#[test]
fn ports_are_found_by_name_in_any_order() {
    let ports = found(|_, inputs, outputs| {
        inputs.reverse();
        outputs.reverse();
    })
    .unwrap();
    assert_eq!((ports.tokens.index, ports.mask.index, ports.positions), (5, 4, None));
    assert_eq!((ports.past, ports.present, ports.logits), (vec![3, 2, 1, 0], vec![3, 2, 1, 0], 4));
    assert_eq!(ports.cells, Cells { layers: 2, heads: 2, size: 8, dtype: DType::F32 });
    assert_eq!((ports.vocab, ports.last_only, ports.batches), (300, false, true));
    assert_eq!((ports.cells.tensors(), ports.cells.bytes(), ports.cells.shape(3, 5)), (4, 32, [3, 2, 5, 8]));
    let ports = found(|config, inputs, outputs| {
        // What the files do not say, the graph does.
        (config.layers, config.kv_heads, config.head_size, config.vocab) = (0, 0, 0, 0);
        inputs.push(port("position_ids", DType::I32, &[-1, -1]));
        outputs[0].kind = kind(DType::F32, &[-1, 1, 300]);
        inputs[0].kind = kind(DType::I64, &[1, -1]);
    })
    .unwrap();
    assert!(!ports.batches);
    assert_eq!(ports.positions, Some(Whole { index: 6, dtype: DType::I32 }));
    assert!(ports.last_only);
}

#[test]
fn what_was_made_for_one_token_gets_one() {
    let most = |ports: &Ports| [0, 1, 9].map(|past| ports.most_tokens(past));
    assert_eq!(most(&found(|_, _, _| ()).unwrap()), [usize::MAX; 3]);
    assert_eq!(most(&found(|config, _, _| config.one_token = true).unwrap()), [1; 3]);
    for (shape, rank) in [(&[1][..], 1), (&[-1], 1), (&[], 0)] {
        let ports = found(|_, inputs, _| inputs.insert(1, port("use_cache_branch", DType::Bool, shape))).unwrap();
        assert_eq!((ports.branch, most(&ports)), (Some(Branch { index: 1, rank }), [usize::MAX, 1, 1]));
    }
}

#[test]
fn what_is_not_as_it_should_be_is_named() {
    refused("no input \"input_ids\"", |_, inputs, _| _ = inputs.remove(0));
    refused("no input \"attention_mask\"", |_, inputs, _| _ = inputs.remove(1));
    refused("no output \"logits\"", |_, _, outputs| _ = outputs.remove(0));
    refused("past_key_values.1.value", |_, inputs, _| _ = inputs.pop());
    refused("present.1.value", |_, _, outputs| _ = outputs.pop());
    refused("takes no keys and values", |_, inputs, _| inputs.truncate(2));
    for (dtype, shape) in [(DType::I64, &[1][..]), (DType::Bool, &[2]), (DType::Bool, &[0]), (DType::Bool, &[1, 1])] {
        refused("use_cache_branch", |_, inputs, _| inputs.push(port("use_cache_branch", dtype, shape)));
    }
    refused("past_present_share_buffer", |config, inputs, _| {
        config.shares_buffer = true;
        inputs.push(port("use_cache_branch", DType::Bool, &[1]));
    });
    refused("\"pixels\"", |_, inputs, _| inputs.push(port("pixels", DType::F32, &[1])));
    refused("of 2 layers, its configuration says 3", |config, _, _| config.layers = 3);
    refused("\"logits\"", |config, _, _| config.vocab = 301);
    refused("heads of keys", |config, _, _| config.kv_heads = 4);
    refused("how many logits", |config, _, outputs| {
        (config.vocab, outputs[0].kind) = (0, kind(DType::F32, &[-1, -1, -1]));
    });
    refused("\"input_ids\" is float32", |_, inputs, _| inputs[0].kind = kind(DType::F32, &[-1, -1]));
    refused("\"input_ids\" is int64[", |_, inputs, _| inputs[0].kind = kind(DType::I64, &[-1, -1, 1]));
    refused("\"past_key_values.0.value\"", |_, inputs, _| inputs[3].kind = kind(DType::F16, &[-1, 2, -1, 8]));
    refused("\"past_key_values.0.key\"", |_, inputs, _| inputs[2].kind = ValueType::Opaque);
    refused("\"past_key_values.0.key\"", |_, inputs, _| inputs[2].kind = kind(DType::I8, &[-1, 2, -1, 8]));
    refused("\"past_key_values.1.key\"", |_, inputs, _| inputs[4].kind = kind(DType::F32, &[-1, 2, -1, 4]));
    refused("fixed length", |_, inputs, _| inputs[0].kind = kind(DType::I64, &[-1, 1]));
    refused("fixed length", |_, inputs, _| inputs[2].kind = kind(DType::F32, &[-1, 2, 64, 8]));
    refused("always has 4 rows", |_, inputs, _| inputs[1].kind = kind(DType::I64, &[4, -1]));
    refused("\"present.0.key\"", |_, _, outputs| outputs[1].kind = kind(DType::F32, &[-1, 2, -1]));
    // A name may say any number.
    refused("takes no keys", |_, inputs, _| {
        inputs.truncate(2);
        inputs.push(port("past_key_values.18446744073709551615.key", DType::F32, &[-1, 2, -1, 8]));
    });
    refused("to be two things", |config, inputs, _| {
        config.names.mask = "input_ids".into();
        inputs.remove(1);
    });
    refused("to be two things", |config, _, _| config.names.positions = "attention_mask".into());
    refused("to be two things", |config, _, _| config.names.present[1] = config.names.present[0].clone());
}

#[test]
fn sizes_that_cannot_be_are_no_keys() {
    for (heads, size) in [(0, 8), (2, 0), (1 << 62, 8), (2, i64::MAX), (1 << 20, 1 << 20)] {
        let fixed = [-1, heads, -1, size];
        refused("none that can be", |config, inputs, outputs| {
            (config.kv_heads, config.head_size) = (0, 0);
            inputs[2..].iter_mut().chain(&mut outputs[1..]).for_each(|port| port.kind = kind(DType::F32, &fixed));
        });
    }
    refused("none that can be", |config, inputs, outputs| {
        (config.kv_heads, config.head_size) = (usize::MAX, usize::MAX);
        let ports = inputs[2..].iter_mut().chain(&mut outputs[1..]);
        ports.for_each(|port| port.kind = kind(DType::F32, &[-1, -1, -1, -1]));
    });
}

#[test]
fn a_pattern_knows_its_own_names() {
    let pattern = Pattern::new("past.%d.key").unwrap();
    assert_eq!((pattern.name(12), pattern.layer("past.12.key")), ("past.12.key".into(), Some(12)));
    for other in ["past.12.value", "past..key", "past.+1.key", "past.01.key", "ast.1.key"] {
        assert_eq!(pattern.layer(other), None, "{other}");
    }
    assert_eq!((Pattern::new("past"), Pattern::new("%d.%d")), (None, None));
}
