//! Folders for MLX that are not what they say, or ask for what is not given to files; sessions and arrays that cannot be; libraries that are no
//! MLX. `infer-mlx/tests` has what the files of weights alone can be told, `infer-sys/tests` what the door refuses.

use super::{
    folders::{Safetensors, copy, edit, fixture},
    said, tokens,
};
use infer::{
    Backend, Batch, ErrorKind, Library, Model, ModelSource, OpenOptions, Result, Session, SessionOptions, Want, mlx,
};
use infer_mlx::{DType, Mlx};
use kit::child;
use serde_json::{Value, json};
use std::{fs, path::Path};
use test_kit::Folder;

const WEIGHTS: &str = "model.safetensors";

fn model(path: &Path) -> Result<Box<dyn Model>> {
    ModelSource::new(path).with_backend(Backend::Mlx).open()
}

/// Opens what lies there, down to a session: whatever is wrong with a model may be seen there first.
fn open(path: &Path) -> Result<Box<dyn Session>> {
    model(path)?.session(&options())
}

fn options() -> SessionOptions {
    SessionOptions::new().with_context(64).with_threads(1)
}

fn library() -> Mlx {
    mlx::library(&Library::Default).unwrap_or_else(|error| panic!("{error}"))
}

/// One pass of a few tokens, whose logits are numbers.
fn works(session: &mut dyn Session) {
    let seq = session.open(&OpenOptions::default()).unwrap();
    let mut batch = Batch::new();
    batch.push(&seq, &tokens(5), Want::Logits);
    session.decode(&batch).unwrap_or_else(|error| panic!("{error}"));
    assert!(session.outputs().logits(0).unwrap().iter().all(|logit| logit.is_finite()));
}

/// Beside a folder that cannot be used the same one, unspoiled, works as before.
fn still_works() {
    works(&mut *open(&fixture("tiny-mlx-llama")).unwrap());
}

/// Spoils a copy of a folder, case by case, each in a process of its own; `spoil` says how it is to be refused, and words that the error has.
fn refused(
    test: &str,
    from: &str,
    cases: &[&str],
    spoil: impl Fn(&str, &Folder) -> (ErrorKind, &'static [&'static str]),
) {
    let answers = child::cases(test, cases, |case| {
        let folder = copy(from);
        let (kind, words) = spoil(case, &folder);
        let answer = said(open(folder.path()), kind, words);
        still_works();
        answer
    });
    let wrong: Vec<_> = cases.iter().zip(&answers).filter(|(_, answer)| *answer != "refused").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn weights_that_are_damaged_are_refused_by_name() {
    const CASES: &[&str] = &[
        "none",
        "half of them",
        "a length and nothing else",
        "a header longer than the file",
        "a header larger than all memory",
        "a header that is no JSON",
        "a tensor beyond the file",
        "a tensor shorter than its shape",
        "two tensors in one place",
        "bytes of no tensor",
        "a shape that cannot be counted",
        "numbers of an unknown type",
    ];
    refused("mlx::weights_that_are_damaged_are_refused_by_name", "tiny-mlx-llama", CASES, |case, folder| {
        let path = folder.path().join(WEIGHTS);
        let (whole, weights) = (fs::read(&path).unwrap(), Safetensors::read(&path));
        let (length, rest) = whole.split_first_chunk::<8>().unwrap();
        let length = u64::from_le_bytes(*length);
        let with_length = |length: u64| [&length.to_le_bytes()[..], rest].concat();
        let first = weights.0[0].0.clone();
        let spoiled = |change: &dyn Fn(&mut Value)| weights.bytes(|header| change(&mut header[&first]));
        let bytes = match case {
            "none" => None,
            "half of them" => Some(whole[..whole.len() / 2].to_vec()),
            "a length and nothing else" => Some(length.to_le_bytes().to_vec()),
            "a header longer than the file" => Some(with_length(whole.len() as u64)),
            "a header larger than all memory" => Some(with_length(u64::MAX - 7)),
            "a header that is no JSON" => Some([&8_u64.to_le_bytes()[..], b"{\"w\": {}", rest].concat()),
            "a tensor beyond the file" => {
                Some(spoiled(&|about| about["data_offsets"] = json!([whole.len(), whole.len() + 256])))
            }
            "a tensor shorter than its shape" => Some(spoiled(&|about| about["shape"][0] = json!(1 << 20))),
            "two tensors in one place" => Some(weights.bytes(|header| {
                let names: Vec<String> = header.keys().cloned().collect();
                let one = header[&names[0]].clone();
                header[&names[1]] = one;
            })),
            "bytes of no tensor" => Some([&whole[..], &[0; 64]].concat()),
            "a shape that cannot be counted" => {
                Some(spoiled(&|about| about["shape"] = json!([1_u64 << 40, 1_u64 << 40])))
            }
            "numbers of an unknown type" => Some(spoiled(&|about| about["dtype"] = json!("F7"))),
            other => panic!("there is no case {other:?}"),
        };
        match bytes {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        match case {
            "numbers of an unknown type" => (ErrorKind::Unsupported, &[WEIGHTS, "F7"]),
            _ => (ErrorKind::InvalidModel, &[WEIGHTS]),
        }
    });
}

#[test]
fn an_index_of_weights_leads_nowhere_else() {
    const CASES: &[&str] = &[
        "a file that is not there",
        "a file above",
        "a file by its whole path",
        "a weight in another file",
        "no JSON",
    ];
    const INDEX: &str = "model.safetensors.index.json";
    refused("mlx::an_index_of_weights_leads_nowhere_else", "tiny-mlx-llama-sharded", CASES, |case, folder| {
        let path = folder.path().join(INDEX);
        if case == "no JSON" {
            fs::write(&path, "{\"weight_map\"").unwrap();
            return (ErrorKind::InvalidModel, &[INDEX]);
        }
        // What it would lead to is there, and fits.
        let outside = folder.path().join("sub/model.safetensors");
        fs::create_dir_all(outside.parent().unwrap()).unwrap();
        edit(folder, INDEX, |index| {
            let map = index["weight_map"].as_object_mut().unwrap();
            let names: Vec<Value> = map.values().cloned().collect();
            let (key, file) = map.iter_mut().next().unwrap();
            let shard = folder.path().join(file.as_str().unwrap());
            fs::copy(&shard, &outside).unwrap();
            *file = match case {
                "a file that is not there" => json!("model-00009-of-00003.safetensors"),
                "a file above" => json!("sub/../sub/model.safetensors"),
                "a file by its whole path" => json!(outside),
                "a weight in another file" => names.into_iter().find(|name| *name != *file).expect(key),
                other => panic!("there is no case {other:?}"),
            };
        });
        match case {
            "a file that is not there" => (ErrorKind::Io, &["model-00009-of-00003.safetensors"]),
            _ => (ErrorKind::InvalidModel, &[INDEX]),
        }
    });
}

#[test]
fn weights_that_do_not_fit_the_configuration_are_named() {
    const CASES: &[&str] = &[
        "one is missing",
        "one too many",
        "one of another shape",
        "one of whole numbers",
        "another width",
        "more layers",
        "fewer layers",
        "more heads",
        "another vocabulary",
        "a head of its own",
    ];
    refused("mlx::weights_that_do_not_fit_the_configuration_are_named", "tiny-mlx-llama", CASES, |case, folder| {
        const NORM: &str = "model.layers.1.input_layernorm.weight";
        let path = folder.path().join(WEIGHTS);
        let mut weights = Safetensors::read(&path);
        match case {
            "one is missing" => weights.0.retain(|(name, ..)| name != NORM),
            "one too many" => {
                let (_, about, bytes) = weights.tensor(NORM).clone();
                weights.0.push(("model.layers.1.mlp.nobody.weight".to_owned(), about, bytes));
            }
            "one of another shape" => {
                let (_, about, bytes) = weights.tensor(NORM);
                about["shape"] = json!([about["shape"][0].as_u64().unwrap() / 2]);
                bytes.truncate(bytes.len() / 2);
            }
            "one of whole numbers" => weights.tensor(NORM).1["dtype"] = json!("I32"),
            _ => {}
        }
        fs::write(&path, weights.bytes(|_| ())).unwrap();
        let config = |key: &str, value: Value| edit(folder, "config.json", |config| config[key] = value);
        match case {
            "another width" => config("hidden_size", json!(128)),
            "more layers" => config("num_hidden_layers", json!(3)),
            "fewer layers" => config("num_hidden_layers", json!(1)),
            "more heads" => config("num_attention_heads", json!(8)),
            "another vocabulary" => config("vocab_size", json!(100_000)),
            "a head of its own" => config("tie_word_embeddings", json!(false)),
            _ => {}
        }
        let words: &[&str] = match case {
            "one is missing" => &[NORM, "missing"],
            "one too many" => &["model.layers.1.mlp.nobody.weight"],
            "one of another shape" | "one of whole numbers" => &[NORM],
            "another width" => &["model.embed_tokens.weight", "128"],
            "more layers" => &["model.layers.2."],
            "fewer layers" => &["model.layers.1."],
            "more heads" => &["k_proj"],
            "another vocabulary" => &["model.embed_tokens.weight", "100000"],
            "a head of its own" => &["lm_head.weight"],
            other => panic!("there is no case {other:?}"),
        };
        (ErrorKind::InvalidModel, words)
    });
}

#[test]
fn configurations_that_cannot_be_are_refused() {
    const CASES: &[&str] = &[
        "none",
        "no JSON",
        "no object",
        "no architecture",
        "no layers",
        "a negative width",
        "half a head",
        "heads that share no keys",
        "a width without end",
        "a context of nothing",
        "a negative base of positions",
    ];
    refused("mlx::configurations_that_cannot_be_are_refused", "tiny-mlx-llama", CASES, |case, folder| {
        let config = |key: &str, value: Value| edit(folder, "config.json", |config| config[key] = value);
        let path = folder.path().join("config.json");
        match case {
            "none" => fs::remove_file(path).unwrap(),
            "no JSON" => fs::write(path, "{\"hidden_size\":").unwrap(),
            "no object" => fs::write(path, "[1, 2]").unwrap(),
            "no architecture" => config("model_type", Value::Null),
            "no layers" => config("num_hidden_layers", json!(0)),
            "a negative width" => config("hidden_size", json!(-64)),
            "half a head" => config("num_attention_heads", json!(0.5)),
            "heads that share no keys" => config("num_key_value_heads", json!(3)),
            "a width without end" => config("intermediate_size", json!(1_u64 << 62)),
            "a context of nothing" => config("max_position_embeddings", json!(0)),
            "a negative base of positions" => config("rope_theta", json!(-1.0)),
            other => panic!("there is no case {other:?}"),
        }
        let words: &[&str] = match case {
            "none" | "no JSON" | "no object" => &["config.json"],
            "no architecture" => &["config.json", "model_type"],
            "no layers" => &["num_hidden_layers", "0"],
            "a negative width" => &["hidden_size", "-64"],
            "half a head" => &["num_attention_heads", "0.5"],
            "heads that share no keys" => &["num_key_value_heads"],
            "a width without end" => &["intermediate_size"],
            "a context of nothing" => &["max_position_embeddings"],
            _ => &["rope_theta"],
        };
        (if case == "none" { ErrorKind::Io } else { ErrorKind::InvalidModel }, words)
    });
}

#[test]
fn what_is_not_built_in_is_unsupported_by_name() {
    const CASES: &[&str] = &[
        "an architecture",
        "positions turned in another way",
        "9 bits a weight",
        "7 weights a scale",
        "another mode of quantisation",
        "another method of quantisation",
    ];
    refused("mlx::what_is_not_built_in_is_unsupported_by_name", "tiny-mlx-llama-4bit", CASES, |case, folder| {
        edit(folder, "config.json", |config| match case {
            "an architecture" => config["model_type"] = json!("abacus"),
            "positions turned in another way" => config["rope_scaling"] = json!({"rope_type": "spiral", "factor": 2.0}),
            "9 bits a weight" => config["quantization"]["bits"] = json!(9),
            "7 weights a scale" => config["quantization"]["group_size"] = json!(7),
            "another mode of quantisation" => config["quantization"]["mode"] = json!("mxfp4"),
            _ => {
                let fields = config.as_object_mut().unwrap();
                fields.remove("quantization");
                fields.insert("quantization_config".to_owned(), json!({"quant_method": "gptq", "bits": 4}));
            }
        });
        let words: &[&str] = match case {
            "an architecture" => &["abacus", "llama"],
            "positions turned in another way" => &["spiral"],
            "9 bits a weight" => &["bits", "9"],
            "7 weights a scale" => &["group_size", "7"],
            "another mode of quantisation" => &["mode", "mxfp4"],
            _ => &["gptq"],
        };
        (ErrorKind::Unsupported, words)
    });
}

/// mlx-lm and transformers would run what these name.
#[test]
fn code_in_a_folder_is_never_run() {
    let name = "mlx::code_in_a_folder_is_never_run";
    let answers = child::cases(name, &["model_file", "auto_map", "a class in the tokenizer"], |case| {
        let folder = copy("tiny-mlx-llama");
        let mark = folder.path().join("was run");
        folder.file("code.py", format!("open({mark:?}, 'w')\n").as_bytes());
        match case {
            "model_file" => edit(&folder, "config.json", |config| config["model_file"] = json!("code.py")),
            "auto_map" => {
                edit(&folder, "config.json", |config| {
                    config["auto_map"] = json!({"AutoModelForCausalLM": "code.Model"})
                });
            }
            _ => {
                folder.file(
                    "tokenizer_config.json",
                    br#"{"tokenizer_class": "Code", "auto_map": {"AutoTokenizer": ["code.Code", null]}}"#,
                );
            }
        }
        let answer = match case {
            "model_file" => said(open(folder.path()), ErrorKind::Unsupported, &["model_file", "code.py"]),
            // Code that is for others: what it names is built in.
            _ => {
                works(&mut *open(folder.path()).unwrap_or_else(|error| panic!("{error}")));
                "refused".to_owned()
            }
        };
        assert!(!mark.exists(), "it was run");
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

#[test]
fn tokenizers_that_are_missing_damaged_or_of_another_model_are_named() {
    const CASES: &[&str] = &["none", "no JSON", "more tokens than the model", "another model's"];
    let name = "mlx::tokenizers_that_are_missing_damaged_or_of_another_model_are_named";
    refused(name, "tiny-mlx-llama", CASES, |case, folder| {
        let path = folder.path().join("tokenizer.json");
        match case {
            "none" => fs::remove_file(path).unwrap(),
            "no JSON" => fs::write(path, "{\"version\"").unwrap(),
            "more tokens than the model" => edit(folder, "tokenizer.json", |file| {
                let vocab = file["model"]["vocab"].as_object_mut().unwrap();
                let next = vocab.values().map(|id| id.as_u64().unwrap()).max().unwrap() + 1;
                vocab.extend((next..next + 1000).map(|id| (format!("zzzz{id}"), json!(id))));
            }),
            _ => {
                fs::copy(fixture("smollm2-mlx").join("tokenizer.json"), path).unwrap();
            }
        }
        (ErrorKind::InvalidModel, if matches!(case, "none" | "no JSON") { &["tokenizer.json"] } else { &["token"] })
    });
}

#[test]
fn sessions_that_cannot_be_are_refused() {
    const CASES: &[&str] = &[
        "no sequences",
        "100,000 sequences",
        "no batch",
        "no threads",
        "more context than the model has",
        "no end of context",
    ];
    let answers = child::cases("mlx::sessions_that_cannot_be_are_refused", CASES, |case| {
        let model = model(&fixture("tiny-mlx-llama")).unwrap();
        let (options, word) = match case {
            "no sequences" => (options().with_sequences(0), "sequences"),
            "100,000 sequences" => (options().with_sequences(100_000), "sequences"),
            "no batch" => (options().with_batch(0), "batch"),
            "no threads" => (options().with_threads(0), "threads"),
            "more context than the model has" => (options().with_context(model.info().context + 1), "context"),
            _ => (options().with_context(usize::MAX), "context"),
        };
        let answer = said(model.session(&options), ErrorKind::InvalidInput, &[word]);
        works(&mut *model.session(&self::options()).unwrap());
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

#[test]
fn a_text_beyond_the_context_is_refused() {
    let answers =
        child::cases("mlx::a_text_beyond_the_context_is_refused", &["tiny-mlx-llama", "tiny-mlx-gemma3"], |case| {
            let mut session = open(&fixture(case)).unwrap();
            let context = session.limits().context;
            let seq = session.open(&OpenOptions::default()).unwrap();
            let mut batch = Batch::new();
            batch.push(&seq, &tokens(context as u32), Want::Nothing);
            session.decode(&batch).unwrap();
            batch.clear();
            batch.push(&seq, &tokens(1), Want::Logits);
            let answer = said(session.decode(&batch), ErrorKind::ContextFull, &[]);
            drop((batch, seq));
            works(&mut *session);
            answer
        });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

#[test]
fn more_memory_than_there_is_is_an_error() {
    let name = "mlx::more_memory_than_there_is_is_an_error";
    let answers = child::cases(name, &["an array", "a session"], |case| {
        let mlx = library();
        let kind = ErrorKind::OutOfMemory;
        let answer = match case {
            "an array" => {
                let scope = mlx.scope();
                said(
                    scope.eval([scope.zeros(&[1 << 20, 1 << 20, 1 << 8], DType::F32)]),
                    kind,
                    &["full", "memory limit"],
                )
            }
            _ => {
                // Keys and values of so many positions are thousands of gigabytes.
                let folder = copy("tiny-mlx-llama");
                edit(&folder, "config.json", |config| config["max_position_embeddings"] = json!(1 << 24));
                let model = model(folder.path()).unwrap();
                said(model.session(&options().with_context(1 << 24).with_sequences(256)), kind, &["context"])
            }
        };
        still_works();
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

#[test]
fn a_library_that_is_none_is_refused_and_another_is_taken() {
    const CASES: &[&str] = &["none", "a text", "llama.cpp", "ONNX Runtime", "a relative path"];
    let answers = child::cases("mlx::a_library_that_is_none_is_refused_and_another_is_taken", CASES, |case| {
        let folder = Folder::new();
        let (path, words): (_, &[&str]) = match case {
            "none" => (folder.path().join("libinfer_mlx.so"), &["libinfer_mlx.so"]),
            "a text" => (folder.file("libinfer_mlx.so", b"no library"), &["libinfer_mlx.so"]),
            "llama.cpp" => {
                let installed = infer_llama::Llama::installed(&infer_llama::LoadOptions::new());
                (installed[0].path.clone(), &["infer_mlx_api"])
            }
            "ONNX Runtime" => (build_support::onnxruntime::library().unwrap(), &["infer_mlx_api"]),
            _ => ("libinfer_mlx.so".into(), &["absolute"]),
        };
        let source = ModelSource::new(fixture("tiny-mlx-llama")).with_library(Library::At(path));
        let answer = said(source.open(), ErrorKind::Library, words);
        still_works();
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

/// As the cache of the Hugging Face hub has them.
#[cfg(unix)]
#[test]
fn files_may_be_links() {
    for name in ["tiny-mlx-llama", "tiny-mlx-llama-sharded"] {
        let (_folder, snapshot) = super::folders::links(name);
        works(&mut *open(&snapshot).unwrap_or_else(|error| panic!("{name}: {error}")));
    }
}
