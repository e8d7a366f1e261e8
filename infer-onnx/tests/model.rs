//! Models as they are opened: what a folder must have, and what is said where it has not.

use infer_core::{
    Batch, ErrorKind, OpenOptions, Sampling, Session as _, SessionOptions, Special, Tokenizer as _, Want,
};
use infer_onnx::{Form, LoadOptions, Model, ModelOptions, Onnx, Package};
use std::{
    fs,
    ops::ControlFlow,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
};
use test_kit::Folder;

fn onnx() -> Onnx {
    Onnx::load(&LoadOptions::new()).unwrap_or_else(|error| panic!("{error}"))
}

fn fixture(name: &str) -> PathBuf {
    build_support::fixtures::model(name).expect("`cargo xtask setup` brings it")
}

/// A copy of a fixture's folder, to be changed.
fn copy_of(name: &str) -> Folder {
    Folder::copy_of(fixture(name))
}

#[track_caller]
fn refused(folder: &Folder, kind: ErrorKind, words: &[&str]) {
    let error = Model::open(&onnx(), folder.path()).and_then(|model| model.session(&one_thread())).unwrap_err();
    assert_eq!((error.kind(), error.backend()), (kind, Some("onnx")), "{error}");
    let said = error.to_string();
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}

fn one_thread() -> SessionOptions {
    SessionOptions::new().with_threads(1).with_context(64)
}

/// The tokens a model goes on with.
fn generated(model: &dyn infer_core::Model, prompt: &str, count: usize) -> Vec<infer_core::Token> {
    let mut session = model.session(&one_thread()).unwrap();
    let mut feed = Vec::new();
    model.tokenizer().encode(prompt, Special::ADD, &mut feed).unwrap();
    let seq = session.open(&OpenOptions::default()).unwrap();
    session.sample_with(&seq, &Sampling::greedy(), &feed).unwrap();
    let (mut batch, mut tokens) = (Batch::new(), Vec::new());
    for _ in 0..count {
        batch.clear();
        batch.push(&seq, &feed, Want::Token);
        session.decode(&batch).unwrap();
        feed = vec![session.outputs().token(0).unwrap()];
        tokens.push(feed[0]);
    }
    tokens
}

#[test]
fn a_folder_of_onnxruntime_genai_is_a_decoder() {
    let path = fixture("tiny-onnx");
    let model = Model::open(&onnx(), &path).unwrap();
    let info = model.info();
    assert_eq!((model.package().form(), info.architecture.as_str()), (Form::Genai, "llama"));
    assert_eq!((info.vocab, info.context, info.layers), (259, 512, 2));
    assert_eq!((info.width, info.heads, info.kv_heads), (64, 4, 2));
    assert!(info.parameters > 10_000 && info.bytes >= 4 * info.parameters, "{info:?}");
    let tokens = generated(&model, "Hello", 4);
    // The graph alone, with the files around it, is the same model.
    let beside = Model::open(&onnx(), path.join("model.onnx")).unwrap();
    assert_eq!(beside.package().form(), Form::Genai);
    assert_eq!(generated(&beside, "Hello", 4), tokens);
}

#[test]
fn a_folder_of_optimum_is_a_decoder() {
    let copy = copy_of("tiny-onnx-plain");
    let model = Model::open(&onnx(), copy.path()).unwrap();
    assert_eq!(model.package().form(), Form::Optimum);
    let tokens = generated(&model, "Hello", 4);
    // As on the hub: graphs in a folder `onnx`, and settings around it.
    let files = ["model.onnx", "model.onnx_data", "model.onnx.data"];
    fs::create_dir(copy.path().join("onnx")).unwrap();
    for file in files.iter().filter(|file| copy.path().join(file).exists()) {
        fs::rename(copy.path().join(file), copy.path().join("onnx").join(file)).unwrap();
    }
    for path in [copy.path().to_owned(), copy.path().join("onnx/model.onnx")] {
        assert_eq!(generated(&Model::open(&onnx(), path).unwrap(), "Hello", 4), tokens);
    }
}

#[test]
fn an_encoder_and_other_graphs_are_no_decoders() {
    let model = Model::open(&onnx(), fixture("tiny-onnx-encoder")).unwrap();
    assert_eq!(model.package().form(), Form::Encoder);
    let error = model.session(&one_thread()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("no decoder"), "{error}");
    let graph = fixture("magika");
    assert_eq!(Package::read(&graph).unwrap().form(), Form::Graph);
    let error = Model::open(&onnx(), graph).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("input_ids"), "{error}");
}

#[test]
fn a_vocabulary_opens_alone() {
    let model = Model::open_with(&onnx(), fixture("tiny-onnx"), &ModelOptions::new().with_vocab_only(true)).unwrap();
    let mut tokens = Vec::new();
    model.tokenizer().encode("a<|im_end|>", Special::PARSE, &mut tokens).unwrap();
    assert!(model.tokenizer().vocab().is_end(*tokens.last().unwrap()));
    let error = model.session(&one_thread()).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("vocabulary only"), "{error}");
}

#[test]
fn a_load_is_watched_and_ended() {
    let (onnx, path, options) = (onnx(), fixture("tiny-onnx"), ModelOptions::new());
    let mut shares = Vec::new();
    Model::open_watched(&onnx, &path, &options, &mut |share| {
        shares.push(share);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(shares.is_sorted() && shares.first() == Some(&0.0) && shares.last() == Some(&1.0), "{shares:?}");
    for last in [0.0, 0.1, 1.0] {
        let mut watch = |share| if share < last { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        let error = Model::open_watched(&onnx, &path, &options, &mut watch).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    }
    let panicked = panic::catch_unwind(AssertUnwindSafe(|| {
        Model::open_watched(&onnx, &path, &options, &mut |_| panic!("enough"))
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"enough"));
    Model::open(&onnx, &path).unwrap();
}

/// The runtime itself is told: the graph is large enough to be read for a while.
#[test]
fn a_graph_that_is_being_loaded_is_given_up() {
    let (mut before, mut asked) = (0, 0);
    let mut watch = |share| {
        before += usize::from(share < 0.1);
        asked += usize::from(share >= 0.1);
        // The first is told before the graph is begun.
        if asked < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let loaded = Model::open_watched(&onnx(), fixture("smollm2-onnx"), &ModelOptions::new(), &mut watch);
    assert_eq!(loaded.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!((before, asked), (1, 2));
}

#[test]
fn a_tokenizer_that_is_missing_damaged_or_of_another_model_is_named() {
    let copy = copy_of("tiny-onnx");
    copy.replace("tokenizer.json", "\"<|im_end|>\": 258", "\"<|im_end|>\": 258, \"zz\": 300");
    refused(&copy, ErrorKind::InvalidModel, &["259 logits", "301"]);
    fs::write(copy.path().join("tokenizer.json"), "{\"model\": ").unwrap();
    refused(&copy, ErrorKind::InvalidModel, &["tokenizer.json"]);
    copy.remove("tokenizer.json");
    refused(&copy, ErrorKind::InvalidModel, &["no tokenizer.json"]);
    fs::create_dir(copy.path().join("tokenizer.json")).unwrap();
    refused(&copy, ErrorKind::Io, &["tokenizer.json", "regular file"]);
}

#[test]
fn settings_that_lead_elsewhere_or_load_libraries_are_refused() {
    let copy = copy_of("tiny-onnx");
    copy.replace("genai_config.json", "\"model.onnx\"", "\"../model.onnx\"");
    refused(&copy, ErrorKind::InvalidModel, &["genai_config.json", "../model.onnx"]);
    copy.replace("genai_config.json", "\"../model.onnx\"", "\"model.onnx\"");
    copy.replace("genai_config.json", "\"log_id\"", "\"custom_ops_library\": \"./evil.so\", \"log_id\"");
    refused(&copy, ErrorKind::Unsupported, &["custom_ops_library", "evil.so"]);
    copy.replace("genai_config.json", "\"custom_ops_library\": \"./evil.so\", ", "");
    Model::open(&onnx(), copy.path()).unwrap();
    fs::write(copy.path().join("tokenizer_config.json"), "[").unwrap();
    refused(&copy, ErrorKind::InvalidModel, &["tokenizer_config.json"]);
}

/// By its name the runtime would take it for a file in its own format, and not as it was looked at.
#[test]
fn a_graph_is_read_as_onnx_whatever_its_name_is() {
    let copy = copy_of("tiny-onnx");
    fs::rename(copy.path().join("model.onnx"), copy.path().join("model.ort")).unwrap();
    copy.replace("genai_config.json", "\"model.onnx\"", "\"model.ort\"");
    Model::open(&onnx(), copy.path()).unwrap();
}

#[test]
fn graphs_that_are_cut_off_or_miss_their_weights_are_named() {
    let copy = copy_of("tiny-onnx");
    let data = ["model.onnx.data", "model.onnx_data"].into_iter().find(|name| copy.path().join(name).exists()).unwrap();
    let graph = fs::read(copy.path().join("model.onnx")).unwrap();
    fs::write(copy.path().join("model.onnx"), &graph[..graph.len() / 2]).unwrap();
    refused(&copy, ErrorKind::InvalidModel, &["model.onnx"]);
    fs::write(copy.path().join("model.onnx"), &graph).unwrap();
    let weights = fs::read(copy.path().join(data)).unwrap();
    fs::write(copy.path().join(data), &weights[..weights.len() / 2]).unwrap();
    refused(&copy, ErrorKind::InvalidModel, &[data]);
    copy.remove(data);
    refused(&copy, ErrorKind::InvalidModel, &[data]);
    copy.remove("model.onnx");
    refused(&copy, ErrorKind::Io, &["model.onnx"]);
    assert_eq!(Model::open(&onnx(), Path::new("nowhere")).unwrap_err().kind(), ErrorKind::Io);
}

/// A template of its own file has the last word, then that of the settings; of several the one for conversations.
#[test]
fn a_chat_template_comes_from_the_files_beside() {
    let copy = copy_of("tiny-onnx");
    let template = || Package::read(copy.path()).unwrap().info().chat_template.clone();
    assert_eq!(template(), None);
    copy.replace("tokenizer_config.json", "\"eos_token\"", "\"chat_template\": \"one\", \"eos_token\"");
    assert_eq!(template().as_deref(), Some("one"));
    let several =
        "[{\"name\": \"tool_use\", \"template\": \"tools\"}, {\"name\": \"default\", \"template\": \"talk\"}]";
    copy.replace("tokenizer_config.json", "\"one\"", several);
    assert_eq!(template().as_deref(), Some("talk"));
    fs::write(copy.path().join("chat_template.jinja"), "{{ messages }}").unwrap();
    assert_eq!(template().as_deref(), Some("{{ messages }}"));
}
