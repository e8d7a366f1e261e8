mod patterns;
mod text;

use super::*;
use crate::{
    header::{self, Content, Parts},
    test_model as model,
};
use infer_core::ErrorKind;
use model::{GraphOf, Message, element, external, int, node, subgraph, tensor, weights};
use std::{
    collections::BTreeMap,
    fs,
    io::Cursor,
    path::Path,
    time::{Duration, Instant},
};
use text::{fused, graph_of, model_of, steps_of};

/// A pattern, a node before it and one after.
const GELU: &str = "
    m = MatMul(x, matrix)
    u = Add(m, bias)
    g = com.microsoft.Gelu(u)
    y = Relu(g)";

/// The fields of a message, whole, by their number.
fn fields(message: &[u8]) -> Vec<(u32, &[u8])> {
    let parts = Parts::new(message, Path::new("test")).unwrap();
    parts.map(|part| part.map(|part| (part.number, part.whole)).unwrap()).collect()
}

/// What a field of a message holds.
fn inside(message: &[u8], number: u32) -> Vec<&[u8]> {
    let parts = Parts::new(message, Path::new("test")).unwrap().map(Result::unwrap);
    let contents = parts.filter(|part| part.number == number).map(|part| part.content);
    contents.filter_map(|content| if let Content::Bytes(bytes) = content { Some(bytes) } else { None }).collect()
}

#[test]
fn what_is_kept_is_kept_byte_for_byte() {
    let graph = graph_of(GELU).message().clone();
    let graph = graph.bytes(10, "words").message(13, &Message::new().bytes(1, "u")).int(4711, 5).float(4712, 0.5);
    let first = GraphOf::from_message(graph).fields().message(14, &Message::new().bytes(1, "key").bytes(2, "value"));
    let old = first.bytes(4713, [0xff, 0]).into_bytes();
    let new = fuse(&old, "m.onnx").unwrap().expect("it has a pattern");
    assert_eq!(new.operators, 1);

    let ours = Message::new().message(8, &Message::new().bytes(1, "infer").int(2, 1)).into_bytes();
    let (before, after) = (fields(&old), fields(&new.model));
    assert_eq!(after.last().unwrap(), &(8, &ours[..]), "our own operators are said to be used");
    let is_other = |field: &&(u32, &[u8])| field.0 != 7;
    let others: Vec<_> = after[..after.len() - 1].iter().filter(is_other).collect();
    assert_eq!(others, before.iter().filter(is_other).collect::<Vec<_>>());
    assert_eq!(
        after.iter().position(|field| field.0 == 7),
        before.iter().position(|field| field.0 == 7),
        "the graph is where it was"
    );

    let (before, after) = (inside(&old, 7)[0], inside(&new.model, 7)[0]);
    let (mut kept, new_node) = (fields(before), fields(after));
    // The sum goes, and the new node stands where the GELU stood.
    let sum = kept.iter().position(|field| field.0 == 1).unwrap() + 1;
    kept.remove(sum);
    let differs = |((old, new), index): (_, usize)| (old != new).then_some(index);
    let different: Vec<_> = kept.iter().zip(&new_node).zip(0..).filter_map(differs).collect();
    assert_eq!((different, kept.len()), (vec![sum], new_node.len()));
}

#[test]
fn large_weights_stay_in_the_file() {
    let large: Vec<u8> = (0..64 * 64 * 4).map(|byte| (byte % 251) as u8).collect();
    let vector: Vec<u8> = large[..8192].to_vec();
    let graph = graph_of(GELU)
        .weights(&weights("large", element::F32, &[64, 64], &large).bytes(12, "words").int(14, 0))
        .weights(&weights("bytes", element::U8, &[4096], &large[..4096]))
        .weights(&weights("places", element::I64, &[1, 512], &large[..4096]))
        .weights(&weights("small", element::F32, &[1023], &large[..4092]))
        .weights(&external("elsewhere", element::F32, &[64, 64], &[("location", "w.bin"), ("length", "16384")]))
        .weights(&weights("odd", element::F32, &[64, 64], &large).bytes(99, "what nobody knows"))
        .weights(&weights("wide", element::F32, &[2048], &vector))
        .weights(&weights("broad", element::F32, &[64, 2048], &large))
        .node(&node("MatMul", &["p", "broad"], &["q"], &[]))
        .node(&node("Add", &["q", "wide"], &["r"], &[]))
        .node(&node("com.microsoft/Gelu", &["r"], &["s"], &[]));
    let old = graph.model();
    let new = fuse(&old, "m.onnx").unwrap().expect("it has a pattern");
    assert_eq!(new.operators, 2);

    let found = header::weights(Cursor::new(&new.model), Path::new("test")).unwrap();
    let places: BTreeMap<_, _> = found.iter().map(|weight| (weight.name.as_str(), weight)).collect();
    for (name, bytes) in [("large", &large[..]), ("bytes", &large[..4096])] {
        let weight = places[name];
        assert_eq!(weight.file.as_deref(), Some(Path::new("m.onnx")), "{name}");
        let range = usize::try_from(weight.bytes.start).unwrap()..usize::try_from(weight.bytes.end).unwrap();
        assert_eq!(&old[range], bytes, "{name}");
    }
    assert_eq!(places["large"].shape, [64, 64]);
    assert_eq!(places["elsewhere"].file.as_deref(), Some(Path::new("w.bin")));
    // One has a field of its own, one is of places, and one is read by an operator of ours.
    assert!(["odd", "places", "wide"].iter().all(|name| places[name].file.is_none()));

    let tensors = |model: &[u8]| inside(inside(model, 7)[0], 5).into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (before, after) = (tensors(&old), tensors(&new.model));
    assert_eq!(before.len(), after.len());
    let changed = before.iter().zip(&after).filter(|(old, new)| old != new).count();
    // The third is as short as a matrix should not be, which the runtime sees wherever it lies.
    assert_eq!(changed, 3);
    let large = after.iter().find(|tensor| inside(tensor, 8) == [b"large"]).unwrap();
    assert_eq!(inside(large, 12), [b"words"]);
}

#[test]
fn constants_that_nothing_needs_any_more_are_gone() {
    let text = "
        m = MatMul(x, matrix)
        u = Add(m, bias)
        c = Constant() value=1.4142135
        t = Div(u, c)
        e = Erf(t)
        a = Add(e, one)
        p = Mul(u, a)
        g = Mul(p, half)
        y = Add(g, one)";
    let graph = graph_of(text).weights(&weights("unused", element::F32, &[], &[0; 4]));
    let new = fuse(&graph.model(), "m.onnx").unwrap().expect("it has a pattern").model;
    assert_eq!(steps_of(&new), ["m = MatMul(x, matrix)", "g = infer.BiasGelu(m, bias)", "y = Add(g, one)"]);
    let names: Vec<_> = inside(inside(&new, 7)[0], 5).iter().map(|tensor| inside(tensor, 8)[0].to_vec()).collect();
    // What was not needed before is as it was.
    assert_eq!(names, [&b"matrix"[..], b"bias", b"one", b"unused"]);
}

/// Shapes that are written down would have the runtime plan memory for what our own operators give.
#[test]
fn nothing_is_said_of_the_shapes_of_what_is_ours() {
    let kind = tensor(element::F32, ["n", "w"]);
    let said = |name: &str| Message::new().bytes(1, name).message(2, &kind);
    let whole = graph_of(GELU);
    let mut graph = whole.message().clone();
    let all = inside(&whole.model(), 7).concat();
    let last = steps_of(&fuse(&whole.model(), "m.onnx").unwrap().unwrap().model);
    let ours = last.iter().find(|step| step.contains("infer.")).unwrap().split(' ').next().unwrap().to_owned();
    for name in ["x", &ours] {
        graph = graph.message(13, &said(name));
    }
    assert!(!all.is_empty());
    let model = GraphOf::from_message(graph).model();
    let new = fuse(&model, "m.onnx").unwrap().unwrap().model;
    let left: Vec<_> = inside(inside(&new, 7)[0], 13).iter().map(|value| inside(value, 1)[0].to_vec()).collect();
    assert_eq!(left, [b"x"]);
}

#[test]
fn some_models_are_left_as_they_are() {
    let whole = graph_of(GELU);
    assert!(fuse(&whole.model(), "m.onnx").unwrap().is_some());
    let scalar = [0_i64; 0];
    let body = GraphOf::new("body").output("u", &tensor(element::F32, scalar));
    let of_graph = [
        ("our own domain", whole.clone().node(&node("infer/BiasGelu", &["x", "bias"], &["z"], &[]))),
        ("a graph in a node", whole.clone().node(&node("If", &["x"], &["z"], &[subgraph("body", body.message())]))),
        ("a node without operator", whole.clone().node(&node("", &["x"], &["z"], &[]))),
        ("a value that two nodes give", whole.clone().node(&node("Relu", &["x"], &["u"], &[]))),
        ("a weight that a node gives", whole.clone().node(&node("Relu", &["x"], &["bias"], &[]))),
        ("an input that a node gives", whole.clone().node(&node("Relu", &["bias"], &["x"], &[]))),
        ("a weight that is there twice", whole.clone().weights(&weights("bias", element::F32, &[4], &[0; 16]))),
        ("a weight that can be fed", whole.clone().input("bias", &tensor(element::F32, [4]))),
        ("a weight without a name", whole.clone().weights(&weights("", element::F32, &[4], &[0; 16]))),
    ];
    for (what, graph) in of_graph {
        assert!(fuse(&graph.model(), "m.onnx").unwrap().is_none(), "{what}");
    }
    let opset = |domain: &str, version| Message::new().bytes(1, domain).int(2, version);
    let of_model = [
        ("our own domain", whole.fields().message(8, &opset("infer", 1))),
        ("two versions of the operators", whole.fields().message(8, &opset("ai.onnx", 17))),
        ("two graphs", whole.fields().message(7, &Message::new().bytes(2, "more"))),
        ("training", whole.fields().message(20, &Message::new())),
        ("a function", whole.fields().message(25, &Message::new().bytes(1, "f"))),
        ("operators of before", Message::new().message(7, whole.message()).message(8, &opset("", 6))),
        ("no version of the operators", Message::new().message(7, whole.message())),
    ];
    for (what, model) in of_model {
        assert!(fuse(&model.into_bytes(), "m.onnx").unwrap().is_none(), "{what}");
    }
    assert!(fuse(&[], "m.onnx").unwrap().is_none());
}

#[test]
fn an_attribute_that_is_a_list_of_graphs_is_one_too() {
    let graphs = Message::new().bytes(1, "bodies").message(11, GraphOf::new("body").message()).int(20, 10);
    let graph = graph_of(GELU).node(&node("Operator", &["x"], &["z"], &[graphs]));
    assert!(fuse(&graph.model(), "m.onnx").unwrap().is_none());
    let plain = graph_of(GELU).node(&node("Operator", &["x"], &["z"], &[int("number", 1)]));
    assert!(fuse(&plain.model(), "m.onnx").unwrap().is_some());
}

#[test]
fn any_bytes_are_taken_or_refused_by_name() {
    let text = "
        m = MatMul(x, matrix)
        s = Add(m, bias)
        r = Reshape(s, heads)
        h = Transpose(r) perm=0,2,1,3
        n = Gemm(x, matrix) transB=0
        i = Add(n, bias)
        j = Add(i, x)
        l = LayerNormalization(j, bias, bias) epsilon=0.5
        v = MatMul(l, matrix)
        w = Add(v, x)
        y = Softmax(w)";
    let model = model_of(text, 17);
    assert_eq!(fuse(&model, "m.onnx").unwrap().map(|new| new.operators), Some(3));
    let is_told = |bytes: &[u8]| match fuse(bytes, "a-file") {
        Ok(_) => {}
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
            assert!(error.to_string().starts_with("a-file"), "{error}");
        }
    };
    for end in 0..model.len() {
        is_told(&model[..end]);
    }
    let mut changed = model.clone();
    for at in 0..model.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff, model[at] ^ 1, model[at] ^ 8, model[at].wrapping_add(1)] {
            changed[at] = byte;
            is_told(&changed);
        }
        changed[at] = model[at];
    }
}

/// Each of many nodes has what another pattern would need, all from a few values, whose nodes have many attributes.
#[test]
fn a_value_that_everybody_uses_takes_no_time() {
    let attributes: Vec<_> = (0..20_000).map(|index| int(&format!("a{index}"), 1)).collect();
    // The first half of them is used by nobody.
    let parts: Vec<_> = (0..40_000).map(|index| format!("part{index}")).collect();
    let graph = graph_of("m = MatMul(x, matrix)\n u = Add(m, bias)\n r = Reshape(u, heads, scale, shift)")
        .node(&node("Gemm", &["x", "matrix"], &["g"], &attributes))
        .node(&node("Add", &["g", "bias"], &["sum"], &[]))
        .node(&node("Reshape", &["sum", "heads"], &["split"], &attributes))
        .node(&node("Constant", &[], &["shape"], &attributes))
        .node(&node("Split", &["x"], &parts.iter().map(String::as_str).collect::<Vec<_>>(), &[]));
    let graph = (0..20_000).fold(graph, |graph, index| {
        let outputs = ["p", "q", "r", "s", "t", "u", "v", "w", "z"].map(|name| format!("{name}{index}"));
        graph
            .node(&node("com.microsoft/Gelu", &["sum"], &[&outputs[0]], &[]))
            .node(&node("com.microsoft/BiasGelu", &["g", "bias"], &[&outputs[1]], &[]))
            .node(&node("Transpose", &["split"], &[&outputs[2]], &[]))
            .node(&node("Reshape", &["sum", "shape"], &[&outputs[3]], &[]))
            .node(&node("com.microsoft/Gelu", &[&parts[20_000 + index]], &[&outputs[4]], &[]))
            .node(&node("Add", &[&parts[20_000 + index], "x"], &[&outputs[5]], &[]))
            .node(&node("LayerNormalization", &[&outputs[5], "scale", "shift"], &[&outputs[6]], &[]))
            .node(&node("Reshape", &[&parts[20_000 + index], "heads"], &[&outputs[7]], &[]))
            .node(&node("Transpose", &[&outputs[7]], &[&outputs[8]], &[]))
    });
    let (model, start) = (graph.model(), Instant::now());
    assert!(fuse(&model, "m.onnx").unwrap().is_none());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn a_sentence_encoder_has_what_its_layers_have() {
    let path = build_support::fixtures::model("minilm-onnx").unwrap().join("model.onnx");
    let old = fs::read(path).unwrap();
    let new = fuse(&old, "model.onnx").unwrap().expect("it has patterns");
    let contents = |model: &[u8]| {
        let (messages, mut count) = (inside(inside(model, 7)[0], 1), BTreeMap::new());
        for message in messages {
            *count.entry(String::from_utf8(inside(message, 4)[0].to_vec()).unwrap()).or_insert(0) += 1;
        }
        count
    };
    let (before, after) = (contents(&old), contents(&new.model));
    let ours = [("BiasGelu", 6), ("AddNormalization", 12), ("MaskedSoftmax", 6), ("BiasHeads", 18)];
    for (operator, count) in ours {
        assert_eq!(after[operator], count, "{operator}");
    }
    assert_eq!(new.operators, 42);
    assert_eq!([before["MatMul"], before["Add"]], [48, 62]);
    assert_eq!([after["MatMul"], after["Add"]], [48, 2], "those of the embeddings stay");
    assert!(["Erf", "Softmax", "Mul"].iter().all(|operator| !after.contains_key(*operator)));
    assert_eq!(after["LayerNormalization"], 1);
    assert!(new.model.len() < 400 << 10, "{} bytes", new.model.len());

    // Each weight is where the new model says.
    let [at_first, now] =
        [&old, &new.model].map(|model| header::weights(Cursor::new(model), Path::new("test")).unwrap());
    assert!(now.len() > 30 && at_first.len() == now.len());
    for (old, new) in at_first.iter().zip(&now) {
        assert_eq!((&old.name, old.dtype, &old.shape), (&new.name, new.dtype, &new.shape));
        assert!(new.file.is_none() || new.bytes == old.bytes, "{}", new.name);
    }
    let inline = now.iter().filter(|weight| weight.file.is_none());
    assert!(inline.clone().all(|weight| weight.shape.len() == 1), "those that our own operators read are in it");
    assert!(fused(&new.model).is_none(), "what is rewritten is not rewritten again");
}
