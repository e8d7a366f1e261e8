//! Models as files, and the files that they name.

mod kit;

use infer_core::ErrorKind;
use infer_onnx::{Graph, GraphOptions, TensorView, header};
use kit::{
    model::{self, GraphOf, element, node, tensor},
    onnx,
};
use std::path::Path;
use test_kit::Folder;

/// `y = x + w`, with `w` in a file, as these entries say.
fn with_file(entries: &[(&str, &str)]) -> Vec<u8> {
    let kind = tensor(element::F32, [2_i64]);
    GraphOf::new("external")
        .node(&node("Add", &["x", "w"], &["y"], &[]))
        .weights(&model::external("w", element::F32, &[2], entries))
        .input("x", &kind)
        .output("y", &kind)
        .model()
}

fn weights() -> Vec<u8> {
    [0.0_f32, 10.0, 20.0].iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[track_caller]
fn runs(path: &Path) {
    let mut graph = Graph::open(&onnx(), path, &GraphOptions::new().with_threads(1)).unwrap();
    graph.run([("x", TensorView::new(&[2], &[1.0_f32, 2.0]).unwrap())]).unwrap();
    assert_eq!(graph.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap(), [11.0, 22.0]);
}

/// Refused with these words and the model's name, by the header alone as well.
#[track_caller]
fn refused(path: &Path, words: &str) {
    let error = Graph::open(&onnx(), path, &GraphOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
    assert!(error.to_string().contains(words), "{error}: no {words:?}");
    assert!(error.to_string().contains(path.file_name().unwrap().to_str().unwrap()), "{error}");
    let early = header::open(path).and_then(|header| header.check_files(path)).unwrap_err();
    assert_eq!(early.to_string(), error.to_string());
}

const WHERE: [(&str, &str); 3] = [("location", "data/w.bin"), ("offset", "4"), ("length", "8")];

#[test]
fn weights_may_be_in_the_models_folder() {
    let folder = Folder::new();
    folder.file("data/w.bin", &weights());
    let path = folder.file("model.onnx", &with_file(&WHERE));
    runs(&path);
    let header = header::open(&path).unwrap();
    let file = &header.files()[0];
    assert_eq!((file.location(), file.tensor(), file.min_len()), ("data/w.bin", "w", 12));
}

#[test]
fn files_that_are_not_there_or_too_short_are_named() {
    let folder = Folder::new();
    let path = folder.file("model.onnx", &with_file(&WHERE));
    refused(&path, "\"data/w.bin\", and there is no such file beside the model");
    folder.file("data/w.bin", &weights()[..8]);
    refused(&path, "\"data/w.bin\" has 8 bytes, but the model has tensors in it up to byte 12");
    let path = folder.file("number.onnx", &with_file(&[("location", "w.bin"), ("offset", "-4")]));
    refused(&path, "the offset of tensor \"w\" in its file is \"-4\"");
    folder.file("folder.bin/x", b"");
    refused(&folder.file("other.onnx", &with_file(&[("location", "folder.bin")])), "no regular file");
}

#[test]
fn files_outside_the_models_folder_are_not_opened() {
    let outside = Folder::new();
    let secret = outside.file("w.bin", &weights());
    let folder = Folder::new();
    folder.file("data/x", b"");
    let up = format!("../{}/w.bin", outside.path().file_name().unwrap().to_str().unwrap());
    let round = format!("data/../{up}");
    for location in [secret.to_str().unwrap(), &up, &round, "*/_ORT_MEM_ADDR_/*", "", "."] {
        let entries = [("location", location), ("offset", "4"), ("length", "8")];
        refused(&folder.file("model.onnx", &with_file(&entries)), "refused");
        // Nor where the tensor lies deep inside: in an attribute of a node of a graph of a node.
        refused(&folder.file("deep.onnx", &deep(&entries)), "refused");
    }
}

/// The same in a constant of a branch.
fn deep(entries: &[(&str, &str)]) -> Vec<u8> {
    let kind = tensor(element::F32, [2_i64]);
    let branch = |name: &str, value: &model::Message| {
        let constant = node("Constant", &[], &[name], &[model::tensor_value("value", value)]);
        GraphOf::new(name).node(&constant).output(name, &kind)
    };
    let (then, other) = (
        branch("a", &model::external("w", element::F32, &[2], entries)),
        branch("b", &model::weights("v", element::F32, &[2], &[0; 8])),
    );
    let branches = [model::subgraph("then_branch", then.message()), model::subgraph("else_branch", other.message())];
    GraphOf::new("deep")
        .node(&node("If", &["c"], &["y"], &branches))
        .input("c", &tensor(element::BOOL, [0_i64; 0]))
        .output("y", &kind)
        .model()
}

#[cfg(unix)]
#[test]
fn a_link_may_not_lead_out_of_the_folder() {
    use std::os::unix::fs::symlink;
    let outside = Folder::new();
    let secret = outside.file("w.bin", &weights());
    let folder = Folder::new();
    let path = folder.file("model.onnx", &with_file(&[("location", "w.bin"), ("offset", "4"), ("length", "8")]));
    symlink(&secret, folder.path().join("w.bin")).unwrap();
    refused(&path, "leads out of the model's folder");
    // Nor through a folder.
    symlink(outside.path(), folder.path().join("data")).unwrap();
    refused(&folder.file("other.onnx", &with_file(&WHERE)), "leads out of the model's folder");
    // Within the folder it may.
    std::fs::remove_file(folder.path().join("w.bin")).unwrap();
    let inside = folder.file("real/w.bin", &weights());
    symlink(inside, folder.path().join("w.bin")).unwrap();
    runs(&path);
}

/// As the cache of the Hugging Face hub has it: both are links to where the files are, side by side.
#[cfg(unix)]
#[test]
fn where_the_model_is_a_link_its_files_may_be_where_it_leads() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let model = folder.file("blobs/0001", &with_file(&[("location", "w.bin"), ("offset", "4"), ("length", "8")]));
    let data = folder.file("blobs/0002", &weights());
    folder.file("snapshots/main/config.json", b"{}");
    let snapshot = folder.path().join("snapshots/main");
    symlink(&model, snapshot.join("model.onnx")).unwrap();
    symlink(&data, snapshot.join("w.bin")).unwrap();
    let early = header::open(snapshot.join("model.onnx")).unwrap();
    early.check_files(snapshot.join("model.onnx")).unwrap();
}

#[test]
fn a_model_in_memory_has_no_folder() {
    let error = Graph::from_bytes(&onnx(), &with_file(&WHERE), &GraphOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidModel);
    assert!(
        error.to_string().contains("\"data/w.bin\"") && error.to_string().contains("open it by its path"),
        "{error}"
    );
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let folder = Folder::new();
    for (path, words) in
        [(folder.path().to_owned(), "a directory"), (folder.path().join("none.onnx"), "cannot be read")]
    {
        let error = Graph::open(&onnx(), path, &GraphOptions::new()).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.to_string().contains(words), "{error}");
    }
    let error = Graph::open(&onnx(), folder.file("m.ort", b"\0\0\0\0ORTM"), &GraphOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let error = Graph::from_bytes(&onnx(), b"\0\0\0\0ORTM", &GraphOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}
