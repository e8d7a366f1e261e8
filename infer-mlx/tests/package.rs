//! Folders of models: what is read of them, and what is wrong with them, by name. No native code is used.

#[path = "kit/architectures.rs"]
mod architectures;
#[path = "kit/safetensors.rs"]
mod safetensors;

use architectures::{Model, all, bert, gemma3, llama, phi3, quantized, qwen2, qwen3, seeing_gemma3};
use infer_core::{Error, ErrorKind, cost::Biases};
use infer_mlx::Package;
use safetensors::{Tensor, file};
use serde_json::{Value, json};
use test_kit::Folder;

#[track_caller]
fn refused_folder(folder: &Folder, kind: ErrorKind, words: &[&str]) {
    let error = Package::read(folder.path()).expect_err("it is refused");
    let text = error.to_string();
    let missing = words.iter().find(|word| !text.contains(**word));
    assert!(error.kind() == kind && missing.is_none(), "{:?}: {text}, without {missing:?}", error.kind());
    assert!(text.contains(&folder.path().display().to_string()), "it says where: {text}");
}

/// Changes a model, and looks at what is said against it.
#[track_caller]
fn refused(model: &Model, kind: ErrorKind, words: &[&str], change: impl FnOnce(&mut Model)) {
    let mut model = model.clone();
    change(&mut model);
    refused_folder(&model.write(), kind, words);
}

#[track_caller]
fn invalid(model: &Model, words: &[&str], change: impl FnOnce(&mut Model)) {
    refused(model, ErrorKind::InvalidModel, words, change);
}

#[track_caller]
fn unsupported(model: &Model, words: &[&str], change: impl FnOnce(&mut Model)) {
    refused(model, ErrorKind::Unsupported, words, change);
}

#[track_caller]
fn taken(model: &Model, change: impl FnOnce(&mut Model)) -> Package {
    let mut model = model.clone();
    change(&mut model);
    Package::read(model.write().path()).expect("it is taken")
}

fn set(name: &str, value: impl Into<Value>) -> impl FnOnce(&mut Model) {
    let value = value.into();
    move |model| model.config[name] = value
}

fn weight<'m>(model: &'m mut Model, name: &str) -> &'m mut Tensor {
    model.weights.iter_mut().find(|weight| weight.name == name).expect("it is there")
}

fn without(name: &str) -> impl FnOnce(&mut Model) {
    move |model| model.weights.retain(|weight| weight.name != name)
}

#[test]
fn every_architecture_is_read() {
    for (name, model) in all() {
        let package = taken(&model, |_| ());
        let (info, dims) = (package.info(), package.dims());
        assert_eq!(info.architecture, name);
        assert_eq!((info.layers, info.width, info.heads, info.vocab), (2, 32, 4, 64), "{name}");
        let bytes: usize = model.weights.iter().map(|weight| weight.bytes.len()).sum();
        assert_eq!((info.bytes, info.parameters), (bytes as u64, bytes as u64 / 4), "{name}");
        assert_eq!(package.is_encoder(), name == "bert");
        assert!(dims.validate().is_ok());
        // Gemma 3 has two more norms a layer than the counting knows.
        let more = if name.starts_with("gemma3") { 2 * 2 * 32 } else { 0 };
        // BERT has kinds of texts, with a table of their own.
        let more = if name == "bert" { 2 * 32 } else { more };
        assert_eq!(dims.parameters().total() + more, info.parameters, "{name}");
        assert!(info.description.starts_with(&format!("{name}, ")), "{}", info.description);
        assert!(info.description.ends_with("parameters, mostly float32"), "{}", info.description);
    }
}

#[test]
fn half_precision_and_several_types_are_taken() {
    for dtype in ["F16", "BF16"] {
        taken(&llama(), |model| {
            model
                .weights
                .iter_mut()
                .for_each(|weight| *weight = Tensor::zeros(weight.name.clone(), dtype, &weight.shape));
            *weight(model, "model.norm.weight") = Tensor::zeros("model.norm.weight", "F32", &[32]);
        });
    }
    invalid(&llama(), &["model.norm.weight is of type int32, not float32 or float16 or bfloat16"], |model| {
        *weight(model, "model.norm.weight") = Tensor::zeros("model.norm.weight", "I32", &[32]);
    });
}

#[test]
fn biases_and_heads_are_wanted_where_the_settings_say_so() {
    let untied = |model: &mut Model| {
        model.config["tie_word_embeddings"] = false.into();
        model.weights.push(Tensor::zeros("lm_head.weight", "F32", &[64, 32]));
    };
    let package = taken(&llama(), untied);
    assert!(!package.dims().tied);
    invalid(&llama(), &["weights are missing: lm_head.weight"], set("tie_word_embeddings", false));
    invalid(&llama(), &["missing", "self_attn.q_proj.bias", "and 3 more"], set("attention_bias", true));
    invalid(&llama(), &["missing", "mlp.gate_proj.bias"], set("mlp_bias", true));
    let tied = taken(&llama(), |model| model.weights.push(Tensor::zeros("lm_head.weight", "F32", &[64, 32])));
    assert!(tied.dims().tied, "an output layer that is not used is passed over");
    assert_eq!(taken(&qwen2(), |_| ()).dims().biases, Biases::Qkv);
    assert!(taken(&qwen3(), |_| ()).dims().qk_norm);
    let own = taken(&gemma3(), |model| model.weights.push(Tensor::zeros("lm_head.weight", "F32", &[64, 32])));
    assert!(!own.dims().tied, "an output layer that is there is used");
}

#[test]
fn weights_that_are_missing_too_many_or_of_another_shape_are_named() {
    for (_, model) in all() {
        for index in (0..model.weights.len()).filter(|index| !model.weights[*index].name.contains("lm_head")) {
            let name = model.weights[index].name.clone();
            invalid(&model, &["missing", &name], without(&name));
            invalid(&model, &["not what config.json says", &name, "not [", "has the shape"], |model| {
                let shape = &model.weights[index].shape;
                let shape = [&[shape[0] + 1], &shape[1..]].concat();
                model.weights[index] = Tensor::zeros(name.clone(), "F32", &shape);
            });
        }
        invalid(&model, &["not known to this architecture: model.layers.0.extra.weight"], |model| {
            model.weights.push(Tensor::zeros("model.layers.0.extra.weight", "F32", &[1]));
        });
    }
    invalid(&llama(), &["and 6 more"], |model| {
        (0..11).for_each(|index| model.weights.push(Tensor::zeros(format!("extra.{index}"), "F32", &[1])));
    });
    // One layer more than there are weights for, and one less.
    invalid(&llama(), &["missing: model.layers.2.input_layernorm.weight"], set("num_hidden_layers", 3));
    invalid(&llama(), &["not known to this architecture: model.layers.1."], set("num_hidden_layers", 1));
}

#[test]
fn what_old_files_have_too_much_is_passed_over() {
    taken(&llama(), |model| {
        let name = "model.layers.1.self_attn.rotary_emb.inv_freq";
        model.weights.push(Tensor::zeros(name, "F32", &[4]));
    });
    taken(&bert(), |model| {
        model.weights.push(Tensor::zeros("embeddings.position_ids", "I64", &[1, 16]));
        model.weights.push(Tensor::zeros("pooler.dense.weight", "F32", &[32, 32]));
    });
    taken(&bert(), |model| {
        model.weights.iter_mut().for_each(|weight| weight.name.insert_str(0, "bert."));
        model.weights.push(Tensor::zeros("bert.pooler.dense.weight", "F32", &[32, 32]));
        model.weights.push(Tensor::zeros("cls.predictions.bias", "F32", &[64]));
    });
}

#[test]
fn sizes_that_cannot_be_are_refused_by_name() {
    let model = llama();
    for name in ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"] {
        for (value, shown) in
            [(json!(0), "is 0"), (json!(-5), "is -5"), (json!(2.5), "is 2.5"), (json!("x"), "is \"x\"")]
        {
            invalid(&model, &[&format!("`{name}` {shown}"), "a whole number from 1 to"], set(name, value));
        }
        invalid(&model, &[&format!("`{name}` is missing")], set(name, Value::Null));
        invalid(&model, &[&format!("`{name}` is 1000000000;")], set(name, 1_000_000_000));
        invalid(&model, &[&format!("`{name}` is 18446744073709551615;")], set(name, u64::MAX));
    }
    invalid(&model, &["`num_attention_heads` is 4, which does not divide among 3"], set("num_key_value_heads", 3));
    invalid(&model, &["`hidden_size` is 32, which does not divide among 5"], |model| {
        (model.config["num_attention_heads"], model.config["num_key_value_heads"]) = (5.into(), 5.into());
    });
    invalid(&model, &["of heads of 7 numbers 7 are to be turned"], set("head_dim", 7));
    for name in ["rms_norm_eps", "rope_theta"] {
        for (value, shown) in
            [(json!(0), "is 0"), (json!(-1e-6), "is -1e-6"), (json!(1e300), "is 1e+300"), (json!([]), "is []")]
        {
            invalid(&model, &[&format!("`{name}` {shown}"), "a number above 0"], set(name, value));
        }
    }
    invalid(&model, &["`tie_word_embeddings` is 1; true or false"], set("tie_word_embeddings", 1));
    invalid(&bert(), &["`hidden_size` is 32, which does not divide among 5"], set("num_attention_heads", 5));
    invalid(&bert(), &["`max_position_embeddings` is missing"], set("max_position_embeddings", Value::Null));
    let mut long = llama();
    long.config["hidden_size"] = "x".repeat(500).into();
    let error = Package::read(long.write().path());
    assert!(error.is_err_and(|error| error.to_string().len() < 400), "not all of a long value is shown");
}

#[test]
fn architectures_and_choices_that_are_not_built_in_are_unsupported_by_name() {
    let known = "llama, mistral, qwen2, qwen3, gemma3_text, gemma3, phi3, bert are";
    unsupported(&llama(), &["`model_type` is \"mamba\"", known], set("model_type", "mamba"));
    invalid(&llama(), &["`model_type` is missing"], set("model_type", Value::Null));
    unsupported(&llama(), &["`hidden_act` is \"gelu\"; supported is silu"], set("hidden_act", "gelu"));
    unsupported(&gemma3(), &["`hidden_activation` is \"gelu\""], set("hidden_activation", "gelu"));
    unsupported(&gemma3(), &["`final_logit_softcapping` is 30.0"], set("final_logit_softcapping", 30.0));
    unsupported(
        &bert(),
        &["`position_embedding_type` is \"relative_key\""],
        set("position_embedding_type", "relative_key"),
    );
    unsupported(&bert(), &["`hidden_act` is \"silu\"; supported is gelu"], set("hidden_act", "silu"));
    let yarn = json!({"type": "yarn", "factor": 4.0});
    unsupported(&qwen3(), &["of the kind \"yarn\"; supported default, linear"], set("rope_scaling", yarn));
    let recurrent = json!(["full_attention", "linear_attention"]);
    unsupported(
        &llama(),
        &["`layer_types` has a layer of the kind \"linear_attention\""],
        set("layer_types", recurrent),
    );
    invalid(
        &llama(),
        &["`layer_types` is [\"full_attention\"]; a list of 2"],
        set("layer_types", json!(["full_attention"])),
    );
    let sliding = json!(["full_attention", "sliding_attention"]);
    invalid(&llama(), &["`sliding_window` is missing"], set("layer_types", sliding));
}

#[test]
fn rotations_are_read_and_refused() {
    let llama3 = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0});
    taken(&llama(), set("rope_scaling", llama3.clone()));
    taken(&llama(), set("rope_scaling", json!({"type": "linear", "factor": 2})));
    taken(&llama(), set("rope_scaling", Value::Null));
    taken(&qwen3(), |model| {
        model.config["rope_theta"] = Value::Null;
        model.config["rope_parameters"] = json!({"rope_theta": 1e6, "rope_type": "default"});
    });
    invalid(&qwen3(), &["`rope_theta` is missing"], set("rope_theta", Value::Null));
    invalid(&llama(), &["`rope_scaling.factor` is missing"], set("rope_scaling", json!({"type": "linear"})));
    invalid(&llama(), &["`rope_scaling.factor` is 0"], set("rope_scaling", json!({"type": "linear", "factor": 0})));
    invalid(&llama(), &["`rope_scaling` is \"linear\"; an object"], set("rope_scaling", "linear"));
    let mut turned = llama3;
    (turned["low_freq_factor"], turned["high_freq_factor"]) = (4.into(), 1.into());
    invalid(&llama(), &["`high_freq_factor` is 1, not above `low_freq_factor`, 4"], set("rope_scaling", turned));
    let long = |factors: Value| json!({"type": "longrope", "long_factor": factors, "short_factor": [1.0, 1.0]});
    taken(&phi3(), |model| {
        model.config["partial_rotary_factor"] = 0.5.into();
        model.config["rope_scaling"] = long(json!([1.0, 2.0]));
    });
    invalid(
        &phi3(),
        &["`rope_scaling.long_factor` is [1.0,2.0]; a list of 4 numbers"],
        set("rope_scaling", long(json!([1.0, 2.0]))),
    );
    // It is 0 in 32 bits, and is divided by.
    invalid(
        &phi3(),
        &["`rope_scaling.long_factor` is [1.0,", "a list of 4 numbers above 0"],
        set("rope_scaling", long(json!([1.0, 1.0, 1.0, 1e-50]))),
    );
    invalid(&phi3(), &["of heads of 8 numbers 9 are to be turned"], set("partial_rotary_factor", 1.2));
}

#[test]
fn quantised_weights_are_taken_as_the_settings_say() {
    for bits in [2, 3, 4, 5, 6, 8] {
        let package = taken(&quantized(bits, 32), |_| ());
        let of_layers = &package.weights().by_dtype()[0];
        assert_eq!(of_layers.dtype, format!("{bits}-bit, groups of 32"));
        // A scale and a bias of 16 bits for each 32 weights.
        assert_eq!(of_layers.bytes, of_layers.elements * (bits as u64 + 1) / 8);
        assert_eq!(package.info().parameters, package.dims().parameters().total());
    }
    for (name, value, words) in [
        ("bits", json!(7), "`quantization.bits` is 7; supported are 2, 3, 4, 5, 6, 8"),
        ("bits", json!(16), "`quantization.bits` is 16"),
        ("group_size", json!(16), "`quantization.group_size` is 16; supported are 32, 64, 128"),
        ("mode", json!("mxfp4"), "`quantization.mode` is \"mxfp4\"; supported is affine"),
    ] {
        unsupported(&quantized(4, 32), &[words], |model| model.config["quantization"][name] = value);
    }
    invalid(&quantized(4, 32), &["`quantization.bits` is -4"], |model| {
        model.config["quantization"]["bits"] = json!(-4)
    });
    invalid(&quantized(4, 32), &["`quantization` is 4; an object"], set("quantization", 4));
    unsupported(
        &llama(),
        &["by the method \"awq\"", "mlx_lm.convert"],
        set("quantization_config", json!({"quant_method": "awq"})),
    );
    invalid(&quantized(4, 32), &["not what config.json says"], set("quantization", Value::Null));
    invalid(
        &quantized(4, 32),
        &["missing: model.layers.0.mlp.up_proj.biases"],
        without("model.layers.0.mlp.up_proj.biases"),
    );
}

#[test]
fn layers_may_be_quantised_each_in_its_own_way() {
    const UP: &str = "model.layers.1.mlp.up_proj";
    let float = |model: &mut Model| {
        model.weights.retain(|weight| !weight.name.starts_with(UP));
        model.weights.push(Tensor::zeros(format!("{UP}.weight"), "F16", &[64, 32]));
    };
    // Said or not, a layer without scales is none that is quantised.
    taken(&quantized(4, 32), float);
    taken(&quantized(4, 32), |model| {
        float(model);
        model.config["quantization"][UP] = false.into();
    });
    let finer = |model: &mut Model| {
        *weight(model, &format!("{UP}.weight")) = Tensor::zeros(format!("{UP}.weight"), "U32", &[64, 8])
    };
    let package = taken(&quantized(4, 32), finer);
    assert!(package.weights().by_dtype().iter().any(|row| row.dtype == "8-bit, groups of 32"), "its shape tells it");
    let said = |bits: u64| {
        move |model: &mut Model| {
            finer(model);
            model.config["quantization"][UP] = json!({"group_size": 32, "bits": bits});
        }
    };
    taken(&quantized(4, 32), said(8));
    invalid(&quantized(4, 32), &[&format!("{UP}.weight has the shape [64, 8], not [64, 6]")], said(6));
    unsupported(&quantized(4, 32), &[&format!("`quantization.{UP}.bits` is 7")], said(7));
    invalid(&quantized(4, 32), &["not what config.json says", UP], |model| {
        model.config["quantization"][UP] = false.into()
    });
    unsupported(&quantized(4, 32), &[UP, "no quantisation that is known"], |model| {
        *weight(model, &format!("{UP}.weight")) = Tensor::zeros(format!("{UP}.weight"), "U32", &[64, 7]);
    });
    unsupported(&quantized(4, 32), &[UP, "no whole groups of 64 of 4 bits"], |model| {
        model.config["quantization"][UP] = json!({"group_size": 64, "bits": 4});
    });
    unsupported(&quantized(4, 32), &[UP, "scales of type uint8"], |model| {
        *weight(model, &format!("{UP}.scales")) = Tensor::zeros(format!("{UP}.scales"), "U8", &[64, 1]);
    });
}

/// Settings for a layer that there is not are none that anybody can have meant; those that a tool leaves there for parts that are not run are taken.
#[test]
fn settings_for_layers_that_there_are_not_are_refused() {
    let said = |path: &'static str, value: Value| move |model: &mut Model| model.config["quantization"][path] = value;
    let unknown = "names what is no layer of the model";
    for path in ["model.layers.2.mlp.up_proj", "model.layers.0.mlp.up", "model.norm", "model.layers.0", "vision.fc1"] {
        for value in [json!({"group_size": 32, "bits": 4}), json!(true), json!({})] {
            invalid(&quantized(4, 32), &["`quantization` in config.json", unknown, path], said(path, value));
        }
        taken(&quantized(4, 32), said(path, false.into()));
        taken(&quantized(4, 32), said(path, Value::Null));
        invalid(&quantized(4, 32), &[&format!("`quantization.{path}` is \"x\"; true, false")], said(path, json!("x")));
    }
    // Five of them by name.
    invalid(&quantized(4, 32), &["x.0, x.1, x.2, x.3, x.4 and 2 more; mend the names"], |model| {
        (0..7).for_each(|at| model.config["quantization"][format!("x.{at}")] = json!({"bits": 8}));
    });
    // A flag that is not known is none of a layer.
    taken(&quantized(4, 32), said("some_flag", true.into()));
    for path in ["vision_tower.layers.0.fc1", "multi_modal_projector.proj"] {
        taken(&seeing_gemma3(), |model| model.config["quantization"] = json!({"bits": 4, path: {"bits": 8}}));
    }
    // Of a model whose output layer is its table of embeddings.
    let tied = |model: &mut Model| {
        model.config["tie_word_embeddings"] = true.into();
        model.weights.retain(|weight| !weight.name.starts_with("lm_head"));
        model.config["quantization"]["lm_head"] = json!({"group_size": 32, "bits": 4});
    };
    taken(&quantized(4, 32), tied);
}

/// A model in two files and an index, which `change` may change.
fn sharded(change: impl FnOnce(&mut Value)) -> Folder {
    let model = llama();
    let folder = Folder::new();
    folder.file("config.json", &model.config.to_string());
    let (first, second) = model.weights.split_at(5);
    let mut places = serde_json::Map::new();
    for (name, weights) in [("model-00001-of-00002.safetensors", first), ("model-00002-of-00002.safetensors", second)] {
        folder.file(name, &file(weights));
        places.extend(weights.iter().map(|weight| (weight.name.clone(), name.into())));
    }
    let mut index = json!({"metadata": {"total_size": 1}, "weight_map": places});
    change(&mut index);
    folder.file("model.safetensors.index.json", &index.to_string());
    folder
}

#[test]
fn weights_may_lie_in_several_files() -> Result<(), Error> {
    let folder = sharded(|_| ());
    let package = Package::read(folder.path())?;
    assert_eq!(package.headers().len(), 2);
    assert_eq!(package.files().len(), 3);
    assert!(package.files().iter().all(|(_, bytes)| *bytes > 0));
    let file = folder.path().join("model-00001-of-00002.safetensors");
    assert_eq!(Package::read(file)?.info(), package.info(), "a file stands for its folder");
    folder.remove("model.safetensors.index.json");
    assert_eq!(Package::read(folder.path())?.info(), package.info(), "an index is not needed");
    folder.remove("model-00002-of-00002.safetensors");
    refused_folder(&folder, ErrorKind::InvalidModel, &["missing"]);
    Ok(())
}

#[test]
fn an_index_that_leads_elsewhere_is_refused() {
    const NORM: &str = "model.norm.weight";
    for name in [
        "../model.safetensors",
        "/etc/passwd",
        "a/model.safetensors",
        "..\\model.safetensors",
        "C:model.safetensors",
        "..",
        "",
    ] {
        let folder = sharded(|index| index["weight_map"][NORM] = name.into());
        refused_folder(&folder, ErrorKind::InvalidModel, &["no file in the model's folder: refused", NORM]);
    }
    let elsewhere = sharded(|index| index["weight_map"][NORM] = "model-00001-of-00002.safetensors".into());
    let placed = Package::read(elsewhere.path()).is_ok();
    assert!(!placed, "a weight is not in the file that the index says");
    refused_folder(&elsewhere, ErrorKind::InvalidModel, &[NORM, "and it is not"]);
    let unknown = sharded(|index| index["weight_map"]["extra"] = "model-00001-of-00002.safetensors".into());
    refused_folder(&unknown, ErrorKind::InvalidModel, &["extra", "and it is not"]);
    let gone = sharded(|index| index["weight_map"][NORM] = "gone.safetensors".into());
    refused_folder(&gone, ErrorKind::Io, &["gone.safetensors cannot be read"]);
    refused_folder(
        &sharded(|index| *index = json!({"weight_map": {}})),
        ErrorKind::InvalidModel,
        &["names no weights"],
    );
    refused_folder(&sharded(|index| *index = json!([])), ErrorKind::InvalidModel, &["is not as expected"]);
    #[cfg(unix)]
    {
        let nowhere = sharded(|_| ());
        nowhere.remove("model.safetensors.index.json");
        std::os::unix::fs::symlink("gone", nowhere.path().join("model.safetensors.index.json"))
            .expect("a link is made");
        refused_folder(&nowhere, ErrorKind::Io, &["model.safetensors.index.json cannot be read"]);
    }
    let twice = sharded(|_| ());
    let again = std::fs::read(twice.path().join("model-00001-of-00002.safetensors")).expect("it was written");
    twice.remove("model.safetensors.index.json");
    twice.file("model-again.safetensors", &again);
    refused_folder(&twice, ErrorKind::InvalidModel, &["model.embed_tokens.weight\" is in", "too"]);
}

#[test]
fn what_is_no_model_is_refused() {
    let folder = Folder::new();
    refused_folder(&folder, ErrorKind::Io, &["config.json", "cannot be read"]);
    folder.file("config.json", &llama().config.to_string());
    refused_folder(&folder, ErrorKind::InvalidModel, &["there is no model.safetensors"]);
    folder.file("model.safetensors", b"short");
    refused_folder(&folder, ErrorKind::InvalidModel, &["model.safetensors", "has 5 bytes"]);
    for (config, words) in [("{", "is not JSON"), ("[]", "is no object"), ("", "is not JSON"), ("\u{0}", "is not JSON")]
    {
        folder.file("config.json", config);
        refused_folder(&folder, ErrorKind::InvalidModel, &["config.json", words]);
    }
    let error = Package::read("/no/such/folder").expect_err("there is none");
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn code_in_a_folder_is_never_run() {
    let wants = &["`model_file` wants the code in \"model.py\" to be run, which is never done"];
    unsupported(&llama(), wants, set("model_file", "model.py"));
    // Written by most tools beside architectures that are built in; it is not looked at.
    let folder = {
        let mut model = llama();
        model.config["auto_map"] = json!({"AutoModelForCausalLM": "modeling.Model"});
        model.write()
    };
    folder.file("modeling.py", "raise SystemExit");
    assert!(Package::read(folder.path()).is_ok());
}
