//! Decoders that were exported as two graphs: both in one, and one of them alone.

use crate::kit::{copy, feed, folder, growing, merged, open, open_in, options, text};
use infer_core::{ErrorKind, Sampling, Session as _, Token};
use infer_onnx::{Model, Package};
use std::{fs, path::Path};

/// What a model goes on with, greedily, where the text is fed in these pieces.
fn greedy<'a>(model: &Model, pieces: impl IntoIterator<Item = &'a [Token]>) -> Vec<Token> {
    let mut session = model.session(&options()).unwrap();
    let seq = open_in(&mut session);
    let mut row = Vec::new();
    for piece in pieces {
        row = feed(&mut session, &seq, piece);
    }
    (0..30)
        .map(|_| {
            let next = (0..row.len()).max_by(|&one, &other| row[one].total_cmp(&row[other])).unwrap();
            row = feed(&mut session, &seq, &[Token(next as u32)]);
            Token(next as u32)
        })
        .collect()
}

#[test]
fn two_graphs_in_one_draw_what_one_graph_draws() {
    for seed in 0..4 {
        let prompt = text(seed, 20);
        let wanted = greedy(&growing().model(), [&prompt[..]]);
        assert_eq!(greedy(&merged().model(), [&prompt[..]]), wanted);
        // Tokens behind others would see later ones, if they were computed together: that graph does not hide them.
        assert_eq!(greedy(&merged().model(), prompt.chunks(6)), wanted);
        assert_eq!(greedy(&merged().model(), prompt.chunks(1)), wanted);
    }
}

/// What its fixture is for: a graph that computes two tokens behind others, wrongly.
#[test]
fn the_graph_behind_a_past_does_not_hide_later_tokens() {
    let copy = copy(merged());
    let next = copy.path().join("decoder_with_past_model.onnx");
    // By a name that says nothing, it is taken for one that computes any number of tokens.
    let renamed = copy.path().join("another.onnx");
    fs::copy(next, &renamed).unwrap();
    let prompt = text(0, 20);
    let wanted = greedy(&growing().model(), [&prompt[..]]);
    assert_ne!(greedy(&open(&renamed).unwrap(), [&prompt[..]]), wanted);
    assert_eq!(greedy(&open(&renamed).unwrap(), prompt.chunks(1)), wanted);
}

#[test]
fn a_folder_of_both_graphs_is_told_and_the_one_with_a_past_works_by_its_name() {
    let copy = copy(merged());
    assert!(Package::read(copy.path()).unwrap().graph().ends_with("decoder_model_merged.onnx"));
    fs::remove_file(copy.path().join("decoder_model_merged.onnx")).unwrap();
    let error = open(copy.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let names = ["decoder_model.onnx", "decoder_with_past_model.onnx", "decoder_model_merged.onnx"];
    assert!(names.iter().all(|name| error.to_string().contains(name)), "{error}");
    let next = copy.path().join("decoder_with_past_model.onnx");
    let prompt = text(3, 20);
    let wanted = greedy(&growing().model(), [&prompt[..]]);
    assert_eq!(greedy(&open(&next).unwrap(), prompt.chunks(7)), wanted);
    fs::remove_file(copy.path().join("decoder_model.onnx")).unwrap();
    assert_eq!(greedy(&open(copy.path()).unwrap(), [&prompt[..]]), wanted);
}

/// The one for first tokens has no cache to go on from.
#[test]
fn the_graph_for_first_tokens_is_no_decoder() {
    let first = folder(merged().name).join("decoder_model.onnx");
    let error = open(Path::new(&first)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("takes no keys and values"), "{error}");
}

/// On the hub such graphs lie in a folder `onnx`, with settings around it, and generate as any other.
#[test]
fn in_a_folder_of_the_hub_it_is_found() {
    let copy = copy(merged());
    fs::create_dir(copy.path().join("onnx")).unwrap();
    for entry in fs::read_dir(copy.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with("decoder_") {
            fs::rename(&path, copy.path().join("onnx").join(name)).unwrap();
        }
    }
    let model = open(copy.path()).unwrap();
    let mut session = model.session(&options()).unwrap();
    let seq = open_in(&mut session);
    session.sample_with(&seq, &Sampling::greedy(), &text(1, 9)).unwrap();
    let row = feed(&mut session, &seq, &text(1, 9));
    merged().near(&row, &text(1, 9), "in a folder `onnx`");
}
