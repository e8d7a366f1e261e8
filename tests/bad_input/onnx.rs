//! Folders of ONNX models that are not what they say, or ask for what is not given to files: nothing outside of them is read, nothing is
//! loaded on their word, and whatever is wrong has a name. `infer-onnx/tests` has what graphs alone can be told.

use super::{
    folders::{copy, edit, files_in, fixture},
    said, tokens,
};
use infer::{Batch, ErrorKind, OpenOptions, Result, Session as _, SessionOptions, Want};
use infer_onnx::{GraphOptions, LoadOptions, Model, ModelOptions, Onnx, Provider, Session};
use kit::child;
use serde_json::{Value, json};
use std::{fs, path::Path};
use test_kit::Folder;

fn options() -> SessionOptions {
    SessionOptions::new().with_context(64).with_threads(1)
}

/// Opens what lies there, down to a session: whatever is wrong with a model may be seen there first.
fn open(path: &Path) -> Result<Session> {
    Model::open(&onnx(), path)?.session(&options())
}

fn onnx() -> Onnx {
    Onnx::load(&LoadOptions::new()).unwrap()
}

/// One pass of a few tokens, whose logits are numbers.
fn works(session: &mut Session) {
    let seq = session.open(&OpenOptions::default()).unwrap();
    let mut batch = Batch::new();
    batch.push(&seq, &tokens(5), Want::Logits);
    session.decode(&batch).unwrap_or_else(|error| panic!("{error}"));
    assert!(session.outputs().logits(0).unwrap().iter().all(|logit| logit.is_finite()));
}

/// Beside a folder that cannot be used the same one, unspoiled, works as before.
fn still_works() {
    works(&mut open(&fixture("tiny-onnx")).unwrap());
}

#[test]
fn a_configuration_that_reaches_outside_or_loads_code_is_refused() {
    const CASES: &[&str] = &[
        "a graph above",
        "a graph by its whole path",
        "a graph through a folder and back",
        "a library of operators",
        "a library of a provider",
        "a file for a provider",
    ];
    let answers = child::cases("onnx::a_configuration_that_reaches_outside_or_loads_code_is_refused", CASES, |case| {
        let (folder, outside) = (copy("tiny-onnx"), copy("tiny-onnx"));
        let graph = outside.path().join("model.onnx");
        let above = format!("../{}/model.onnx", outside.path().file_name().unwrap().to_str().unwrap());
        let (kind, word) = match case.starts_with("a graph") {
            true => (ErrorKind::InvalidModel, "filename"),
            false => {
                (ErrorKind::Unsupported, if case.contains("operators") { "custom_ops_library" } else { "names a file" })
            }
        };
        edit(&folder, "genai_config.json", |file| {
            let decoder = &mut file["model"]["decoder"];
            match case {
                "a graph above" => decoder["filename"] = json!(above),
                "a graph by its whole path" => decoder["filename"] = json!(graph),
                "a graph through a folder and back" => decoder["filename"] = json!(format!("sub/../{above}")),
                "a library of operators" => decoder["session_options"]["custom_ops_library"] = json!("libops.so"),
                "a library of a provider" => {
                    decoder["session_options"]["provider_options"] = json!([{"qnn": {"backend_path": "libQnn.so"}}]);
                }
                "a file for a provider" => {
                    decoder["session_options"]["provider_options"] = json!([{"VitisAI": {"config_file": "../x.json"}}]);
                }
                other => panic!("there is no case {other:?}"),
            }
        });
        let answer = said(open(folder.path()), kind, &[word, "genai_config.json"]);
        still_works();
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

#[test]
fn folders_that_lack_something_or_do_not_fit_together_are_refused() {
    const CASES: &[&str] = &[
        "no tokenizer",
        "a tokenizer that is no JSON",
        "a tokenizer of more tokens than the graph has",
        "a tokenizer of another model",
        "half of the graph",
        "a graph that is no graph",
        "a configuration that is no JSON",
        "a configuration without a decoder",
        "more layers than the graph has",
        "fewer layers than the graph has",
        "other heads than the graph has",
        "heads of another size",
        "an end of text outside the vocabulary",
    ];
    let answers = child::cases("onnx::folders_that_lack_something_or_do_not_fit_together_are_refused", CASES, |case| {
        let folder = copy("tiny-onnx");
        let word = spoil(case, &folder);
        let answer = said(open(folder.path()), ErrorKind::InvalidModel, &[word]);
        still_works();
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

/// Makes the case, and says a word that its error has.
fn spoil(case: &str, folder: &Folder) -> &'static str {
    let file = |name: &str| folder.path().join(name);
    let config = |change: &dyn Fn(&mut Value)| edit(folder, "genai_config.json", |file| change(file));
    let decoder = |key: &str, value: u32| config(&|file| file["model"]["decoder"][key] = json!(value));
    match case {
        "no tokenizer" => fs::remove_file(file("tokenizer.json")).unwrap(),
        "a tokenizer that is no JSON" => fs::write(file("tokenizer.json"), "{\"version\"").unwrap(),
        "a tokenizer of more tokens than the graph has" => edit(folder, "tokenizer.json", |file| {
            let vocab = file["model"]["vocab"].as_object_mut().unwrap();
            let next = vocab.values().map(|id| id.as_u64().unwrap()).max().unwrap() + 1;
            vocab.insert("zzzz".to_owned(), json!(next));
        }),
        "a tokenizer of another model" => {
            fs::copy(fixture("smollm2-onnx-int4").join("tokenizer.json"), file("tokenizer.json")).unwrap();
        }
        "half of the graph" => {
            let graph = fs::read(file("model.onnx")).unwrap();
            fs::write(file("model.onnx"), &graph[..graph.len() / 2]).unwrap();
        }
        "a graph that is no graph" => fs::write(file("model.onnx"), [0xff; 4096]).unwrap(),
        "a configuration that is no JSON" => fs::write(file("genai_config.json"), "{").unwrap(),
        "a configuration without a decoder" => config(&|file| file["model"] = json!({})),
        "more layers than the graph has" => decoder("num_hidden_layers", 3),
        "fewer layers than the graph has" => decoder("num_hidden_layers", 1),
        "other heads than the graph has" => decoder("num_key_value_heads", 64),
        "heads of another size" => decoder("head_size", 1 << 30),
        "an end of text outside the vocabulary" => config(&|file| file["model"]["eos_token_id"] = json!(1 << 30)),
        other => panic!("there is no case {other:?}"),
    }
    match case.split_once("tokenizer") {
        Some(_) => "token",
        None if case.contains("graph") && !case.contains("heads") && !case.contains("layers") => "model.onnx",
        None => "",
    }
}

#[test]
fn weights_that_are_missing_are_named() {
    let answers = child::cases("onnx::weights_that_are_missing_are_named", &["gone", "cut"], |case| {
        let (folder, from) = (Folder::new(), fixture("tiny-onnx"));
        let mut weights = 0;
        for path in files_in(&from) {
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.ends_with(".data") {
                weights += 1;
                if case == "cut" {
                    folder.file(name, &[0; 4096]);
                }
            } else {
                fs::copy(&path, folder.path().join(name)).unwrap();
            }
        }
        assert!(weights > 0, "{} has its weights in files of their own", from.display());
        let answer = said(open(folder.path()), ErrorKind::InvalidModel, &[".data"]);
        still_works();
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

#[test]
fn a_provider_that_is_not_there_is_an_error() {
    let answers = child::cases("onnx::a_provider_that_is_not_there_is_an_error", &["cuda", "nosuch"], |case| {
        let graph = GraphOptions::new().with_provider(Provider::new(case));
        let opened = Model::open_with(&onnx(), fixture("tiny-onnx"), &ModelOptions::new().with_graph(graph));
        let answer = said(
            opened.and_then(|model| model.session(&options())),
            ErrorKind::Unsupported,
            &[if case == "cuda" { "CUDAExecutionProvider" } else { case }],
        );
        still_works();
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
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
    let answers = child::cases("onnx::sessions_that_cannot_be_are_refused", CASES, |case| {
        let model = Model::open(&onnx(), fixture("tiny-onnx")).unwrap();
        let (options, word) = match case {
            "no sequences" => (options().with_sequences(0), "sequences"),
            "100,000 sequences" => (options().with_sequences(100_000), "sequences"),
            "no batch" => (options().with_batch(0), "batch"),
            "no threads" => (options().with_threads(0), "threads"),
            "more context than the model has" => (options().with_context(model.info().context + 1), "context"),
            _ => (options().with_context(usize::MAX), "context"),
        };
        let answer = said(model.session(&options), ErrorKind::InvalidInput, &[word]);
        works(&mut model.session(&self::options()).unwrap());
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

#[test]
fn a_text_beyond_the_context_is_refused() {
    const CASES: &[&str] = &["tiny-onnx", "tiny-onnx-plain"];
    let answers = child::cases("onnx::a_text_beyond_the_context_is_refused", CASES, |case| {
        let mut session = open(&fixture(case)).unwrap();
        let context = session.limits().context;
        let seq = session.open(&OpenOptions::default()).unwrap();
        let mut batch = Batch::new();
        batch.push(&seq, &tokens(context as u32), Want::Nothing);
        session.decode(&batch).unwrap();
        batch.clear();
        batch.push(&seq, &tokens(1), Want::Logits);
        let answer = said(session.decode(&batch), ErrorKind::ContextFull, &[]);
        drop(seq);
        works(&mut session);
        answer
    });
    assert!(answers.iter().all(|answer| answer == "refused"), "{answers:?}");
}

/// As the cache of the Hugging Face hub has them.
#[cfg(unix)]
#[test]
fn files_may_be_links() {
    for name in ["tiny-onnx", "tiny-onnx-plain"] {
        let (_folder, snapshot) = super::folders::links(name);
        works(&mut open(&snapshot).unwrap_or_else(|error| panic!("{name}: {error}")));
    }
}
