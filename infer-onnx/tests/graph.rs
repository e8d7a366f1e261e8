//! Graphs run: every kind of value in and out, by name.

mod kit;

use half::{bf16, f16};
use infer_core::ErrorKind;
use infer_onnx::{
    DType, Dim, Element, Graph, GraphOptions, Input, Map, Optimization, Tensor, TensorView, Value, ValueType, ValueView,
};
use kit::{
    load,
    model::{
        self, GraphOf, Message, attribute, element, int, node, optional, sequence, strings, sum_with_default, tensor,
        unary,
    },
    onnx,
};

/// `x` as it comes out of a graph that copies it.
#[track_caller]
fn through<T: Element + PartialEq + std::fmt::Debug>(element: i64, values: &[T]) {
    let kind = tensor(element, ["n"]);
    let mut graph = load(&unary("Identity", &kind));
    let shape = [values.len()];
    graph.run([("x", TensorView::new(&shape, values).unwrap())]).unwrap();
    let y = graph.outputs().tensor("y").unwrap();
    assert_eq!((y.dtype(), y.shape()), (T::DTYPE, &shape[..]));
    assert_eq!(y.as_slice::<T>().unwrap(), values);
    assert_ne!(y.as_slice::<T>().unwrap().as_ptr(), values.as_ptr(), "it is the runtime's memory");
}

#[test]
fn every_type_of_numbers_goes_through() {
    through(element::F32, &[1.5_f32, -0.0, f32::INFINITY]);
    through(element::F64, &[1.5_f64, -2.0, f64::MAX]);
    through(element::F16, &[f16::from_f32(1.5), f16::MAX]);
    through(element::BF16, &[bf16::from_f32(1.5), bf16::MIN]);
    through(element::I8, &[i8::MIN, -1, i8::MAX]);
    through(element::U8, &[0, 1, u8::MAX]);
    through(element::I16, &[i16::MIN, i16::MAX]);
    through(element::U16, &[0, u16::MAX]);
    through(element::I32, &[i32::MIN, i32::MAX]);
    through(element::U32, &[0, u32::MAX]);
    through(element::I64, &[i64::MIN, i64::MAX]);
    through(element::U64, &[0, u64::MAX]);
    through(element::BOOL, &[true, false, true]);
}

#[test]
fn strings_go_through_whatever_is_in_them() {
    let mut graph = load(&unary("Identity", &tensor(element::STRING, ["n"])));
    let texts = ["", "one", "zwölf", "with a \0 inside", "日本語"];
    graph.run([("x", TensorView::strings(&[5], &texts).unwrap())]).unwrap();
    let y = graph.outputs().tensor("y").unwrap();
    assert_eq!((y.dtype(), y.to_strings().unwrap().as_slice()), (DType::String, &texts.map(str::to_owned)[..]));
    assert!(y.as_slice::<u8>().is_err() && y.bytes().is_none());

    let owned = Tensor::strings(&[0], Vec::new()).unwrap();
    graph.run([("x", &owned)]).unwrap();
    assert!(graph.outputs().tensor("y").unwrap().to_strings().unwrap().is_empty());
}

#[test]
fn dimensions_that_are_open_may_be_anything_nothing_too() {
    let mut graph = load(&unary("Relu", &tensor(element::F32, [model::Size::Named("batch"), model::Size::Fixed(3)])));
    let kind = ValueType::to_string(graph.inputs()[0].kind());
    assert_eq!(kind, "float32[batch, 3]");
    for rows in [1, 7, 0, 2] {
        let values = vec![-1.0_f32; rows * 3];
        graph.run([("x", TensorView::new(&[rows, 3], &values).unwrap())]).unwrap();
        let y = graph.outputs().tensor("y").unwrap();
        assert_eq!((y.shape(), y.is_empty()), (&[rows, 3][..], rows == 0));
        assert_eq!(y.as_slice::<f32>().unwrap(), vec![0.0; rows * 3]);
    }
}

#[test]
fn a_scalar_has_no_dimensions_and_one_element() {
    let mut graph = load(&unary("Neg", &tensor(element::I64, [0_i64; 0])));
    graph.run([("x", TensorView::new(&[], &[5_i64]).unwrap())]).unwrap();
    assert_eq!(graph.outputs().tensor("y").unwrap().as_slice::<i64>().unwrap(), [-5]);
    assert_eq!(graph.inputs()[0].kind().dims(), Some(&[][..]));
}

#[test]
fn a_rank_that_is_open_is_told_from_a_scalar() {
    let mut graph = load(&unary("Neg", &model::tensor_of(element::I64)));
    assert_eq!((graph.inputs()[0].kind().dims(), graph.inputs()[0].kind().dtype()), (None, Some(DType::I64)));
    graph.run([("x", TensorView::new(&[1, 2], &[5_i64, 6]).unwrap())]).unwrap();
    assert_eq!(graph.outputs().tensor("y").unwrap().shape(), [1, 2]);
}

#[test]
fn an_input_handed_through_is_not_lent_out_again() {
    let kind = tensor(element::F32, [2_i64]);
    let mut graph = load(&GraphOf::new("through").input("x", &kind).output("x", &kind).model());
    let taken = {
        let values = vec![1.0_f32, 2.0];
        graph.run([("x", TensorView::new(&[2], &values).unwrap())]).unwrap();
        let out = graph.outputs().tensor("x").unwrap().as_slice::<f32>().unwrap();
        assert_ne!(out.as_ptr(), values.as_ptr());
        graph.take("x").unwrap()
    };
    // The caller's memory is gone; this is a copy.
    assert_eq!(taken.as_tensor().unwrap().view().as_slice::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn what_was_taken_outlives_the_graph() {
    let mut graph = load(&unary("Relu", &tensor(element::F32, [2_i64])));
    graph.run([("x", TensorView::new(&[2], &[3.0_f32, -1.0]).unwrap())]).unwrap();
    let pointer = graph.outputs().tensor("y").unwrap().bytes().unwrap().as_ptr();
    let Value::Tensor(y) = graph.take("y").unwrap() else { panic!("a tensor") };
    assert_eq!(graph.take("y").unwrap_err().kind(), ErrorKind::InvalidInput);
    drop(graph);
    let y = std::thread::spawn(move || y).join().unwrap();
    assert_eq!((y.view().bytes().unwrap().as_ptr(), y.view().as_slice::<f32>().unwrap()), (pointer, &[3.0, 0.0][..]));
}

#[test]
fn sequences_come_out_and_go_in() {
    let floats = tensor(element::F32, ["n"]);
    let model = GraphOf::new("sequences")
        .node(&node("SequenceInsert", &["s", "x"], &["longer"], &[]))
        .node(&node("SequenceLength", &["longer"], &["len"], &[]))
        .input("s", &sequence(&floats))
        .input("x", &floats)
        .output("longer", &sequence(&floats))
        .output("len", &tensor(element::I64, [0_i64; 0]))
        .model();
    let mut graph = load(&model);
    let x = [7.0_f32, 8.0];
    let first = Tensor::new(&[1], vec![6.0_f32]).unwrap();
    for elements in [vec![], vec![Value::Tensor(first)]] {
        let count = elements.len();
        let s = Value::Sequence(elements);
        graph.run([("s", Input::from(&s)), ("x", TensorView::new(&[2], &x).unwrap().into())]).unwrap();
        let outputs = graph.outputs();
        assert_eq!(outputs.tensor("len").unwrap().as_slice::<i64>().unwrap(), [i64::try_from(count + 1).unwrap()]);
        let ValueView::Sequence(longer) = outputs.get("longer").unwrap() else { panic!("a sequence") };
        assert_eq!(longer.len().unwrap(), count + 1);
        let last = longer.get(count).unwrap();
        assert_eq!(last.as_tensor().unwrap().view().as_slice::<f32>().unwrap(), x);
        assert!(longer.get(count + 1).is_err());
        assert_eq!(
            outputs.tensor("longer").unwrap_err().to_string(),
            "the output \"longer\" is a sequence, not a tensor (onnx)"
        );
        // What came out may go in again.
        let again = outputs.get("longer").unwrap().to_value().unwrap();
        graph.run([("s", Input::from(&again)), ("x", TensorView::new(&[2], &x).unwrap().into())]).unwrap();
        let Value::Sequence(longest) = graph.take("longer").unwrap() else { panic!("a sequence") };
        assert_eq!(longest.len(), count + 2);
    }
}

#[test]
fn maps_come_out_and_go_in() {
    let zip = node("ai.onnx.ml/ZipMap", &["x"], &["maps"], &[strings("classlabels_strings", &["cat", "dog"])]);
    let maps = sequence(&model::map(element::STRING, &tensor(element::F32, [0_i64; 0])));
    let model = GraphOf::new("zip")
        .node(&zip)
        .input("x", &tensor(element::F32, [model::Size::Named("n"), 2.into()]))
        .output("maps", &maps);
    let mut graph = load(&model.model());
    assert_eq!(graph.declared_outputs()[0].kind().to_string(), "sequence of map from string to float32[]");
    graph.run([("x", TensorView::new(&[1, 2], &[0.25_f32, 0.75]).unwrap())]).unwrap();
    let Value::Sequence(maps) = graph.outputs().get("maps").unwrap().to_value().unwrap() else { panic!("a sequence") };
    let [Value::Map(map)] = &maps[..] else { panic!("one map: {maps:?}") };
    assert_eq!(map.keys().view().to_strings().unwrap(), ["cat", "dog"]);
    assert_eq!(map.values().view().as_slice::<f32>().unwrap(), [0.25, 0.75]);

    let vectorize =
        node("ai.onnx.ml/DictVectorizer", &["m"], &["y"], &[strings("string_vocabulary", &["a", "b", "c"])]);
    let kind = model::map(element::STRING, &tensor(element::F32, [0_i64; 0]));
    let model =
        GraphOf::new("vectorize").node(&vectorize).input("m", &kind).output("y", &tensor(element::F32, [1_i64, 3]));
    let mut graph = load(&model.model());
    let keys = Tensor::strings(&[2], vec!["c".to_owned(), "a".to_owned()]).unwrap();
    let map = Value::Map(Map::new(keys, Tensor::new(&[2], vec![3.0_f32, 1.0]).unwrap()).unwrap());
    graph.run([("m", &map)]).unwrap();
    assert_eq!(graph.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap(), [1.0, 0.0, 3.0]);
}

#[test]
fn optional_inputs_may_be_missing_and_optional_outputs_are_told() {
    let kind = tensor(element::F32, [2_i64]);
    let has = node("OptionalHasElement", &["x"], &["has"], &[]);
    let model =
        GraphOf::new("has").node(&has).input("x", &optional(&kind)).output("has", &tensor(element::BOOL, [0_i64; 0]));
    let mut graph = load(&model.model());
    assert!(graph.inputs()[0].is_optional());
    let has = |graph: &Graph| graph.outputs().tensor("has").unwrap().as_slice::<bool>().unwrap().to_vec();
    graph.run([("x", TensorView::new(&[2], &[1.0_f32, 2.0]).unwrap())]).unwrap();
    assert_eq!(has(&graph), [true]);

    let nothing = node("Optional", &[], &["y"], &[attribute("type").message(14, &kind).int(20, 13)]);
    let model = GraphOf::new("nothing").node(&nothing).output("y", &optional(&kind));
    let mut graph = load(&model.model());
    graph.run::<&str, Input<'_>>([]).unwrap();
    assert!(matches!(graph.outputs().get("y").unwrap(), ValueView::Nothing));
    assert!(matches!(graph.take("y").unwrap(), Value::Nothing));
}

#[test]
fn weights_with_the_name_of_an_input_are_its_default() {
    let mut graph = load(&sum_with_default());
    let names: Vec<_> = graph.inputs().iter().map(|port| (port.name(), port.is_optional())).collect();
    assert_eq!(names, [("x", false), ("b", true)]);
    let x = TensorView::new(&[2], &[1.0_f32, 2.0]).unwrap();
    graph.run([("x", x)]).unwrap();
    assert_eq!(graph.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap(), [11.0, 22.0]);
    graph.run([("x", x), ("b", x)]).unwrap();
    assert_eq!(graph.outputs().tensor("y").unwrap().as_slice::<f32>().unwrap(), [2.0, 4.0]);
}

#[test]
fn only_what_is_asked_for_comes_out() {
    let kind = tensor(element::F32, [1_i64]);
    let model = GraphOf::new("two")
        .node(&node("Neg", &["x"], &["minus"], &[]))
        .node(&node("Abs", &["x"], &["size"], &[]))
        .input("x", &kind)
        .output("minus", &kind)
        .output("size", &kind)
        .model();
    let mut graph = load(&model);
    let x = [("x", TensorView::new(&[1], &[-3.0_f32]).unwrap())];
    graph.run(x).unwrap();
    let all: Vec<_> = graph
        .outputs()
        .iter()
        .map(|(name, value)| (name, value.unwrap().tensor().unwrap().as_slice::<f32>().unwrap()[0]))
        .collect();
    assert_eq!(all, [("minus", 3.0), ("size", 3.0)]);
    graph.run_for(&["size"], x).unwrap();
    assert_eq!(graph.outputs().iter().count(), 1);
    assert!(graph.outputs().tensor("size").is_ok());
    assert!(graph.outputs().tensor("minus").unwrap_err().to_string().contains("asked for others"));
    for wrong in [&["size", "size"][..], &["length"]] {
        assert_eq!(graph.run_for(wrong, x).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(graph.outputs().iter().count(), 0);
    }
}

/// Whatever is wrong with an input is an error that names it, and the graph goes on.
#[test]
fn wrong_inputs_are_refused_by_name() {
    let kind = tensor(element::F32, [model::Size::Named("n"), 2.into()]);
    let model = GraphOf::new("add")
        .node(&node("Add", &["left", "right"], &["sum"], &[]))
        .input("left", &kind)
        .input("right", &kind)
        .output("sum", &kind)
        .model();
    let mut graph = load(&model);
    let values = [1.0_f32, 2.0];
    let good = TensorView::new(&[1, 2], &values).unwrap();
    let doubles = [1.0_f64, 2.0];
    let list = Value::Sequence(vec![]);
    let cases: Vec<(Vec<(&str, Input<'_>)>, &str)> = vec![
        (
            vec![("left", good.into()), ("rigth", good.into())],
            "no input \"rigth\"; it has \"left\" (float32[n, 2]), \"right\"",
        ),
        (vec![("left", good.into())], "the input \"right\" (float32[n, 2]) was not given"),
        (vec![("left", good.into()), ("left", good.into())], "the input \"left\" was given twice"),
        (vec![("left", good.into()), ("right", Input::Nothing)], "\"right\" is float32[n, 2], but nothing was given"),
        (vec![("left", TensorView::new(&[1, 2], &doubles).unwrap().into())], "but float64[1, 2] was given"),
        (vec![("left", TensorView::new(&[2], &values).unwrap().into())], "it has 1 dimensions, not 2"),
        (vec![("left", TensorView::new(&[2, 1], &values).unwrap().into())], "dimension 1 differs"),
        (vec![("left", TensorView::strings(&[1, 2], &["a", "b"]).unwrap().into())], "but string[1, 2] was given"),
        (vec![("left", Input::from(&list))], "\"left\" is float32[n, 2], but a sequence was given"),
    ];
    for (inputs, words) in cases {
        let error = graph.run(inputs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(words), "{error}: no {words:?}");
        assert_eq!(graph.outputs().iter().count(), 0);
        graph.run([("left", good), ("right", good)]).unwrap();
        assert_eq!(graph.outputs().tensor("sum").unwrap().as_slice::<f32>().unwrap(), [2.0, 4.0]);
    }
}

/// What only the runtime can see is its error, in its words, and the graph goes on.
#[test]
fn what_the_runtime_refuses_is_said_in_its_words() {
    let kind = tensor(element::F32, ["n"]);
    let model = GraphOf::new("add")
        .node(&node("Add", &["a", "b"], &["sum"], &[]))
        .input("a", &kind)
        .input("b", &kind)
        .output("sum", &kind)
        .model();
    let mut graph = load(&model);
    let (two, three) = ([1.0_f32; 2], [1.0_f32; 3]);
    let (two, three) = (TensorView::new(&[2], &two).unwrap(), TensorView::new(&[3], &three).unwrap());
    let error = graph.run([("a", two), ("b", three)]).unwrap_err();
    assert!(error.to_string().starts_with("could not run the graph: ") && error.to_string().contains("Add"), "{error}");
    assert!(error.code().is_some() && error.backend() == Some("onnx"));
    graph.run([("a", two), ("b", two)]).unwrap();
    assert_eq!(graph.outputs().tensor("sum").unwrap().shape(), [2]);
}

#[test]
fn options_are_taken_or_refused() {
    let model = unary("Relu", &tensor(element::F32, ["n"]));
    let open = |options: &GraphOptions| Graph::from_bytes(&onnx(), &model, options);
    let options = GraphOptions::new()
        .with_threads(2)
        .with_parallel_nodes(2)
        .with_optimization(Optimization::Basic)
        .with_spinning(false)
        .with_memory_pattern(false)
        .with_deterministic(true)
        .with_dimension("n", 3)
        .with_config("session.set_denormal_as_zero", "1");
    let graph = open(&options).unwrap();
    assert_eq!(graph.inputs()[0].kind().dims().unwrap(), [Dim::Fixed(3)]);
    for (options, words) in [
        (GraphOptions::new().with_threads(0), "0 threads"),
        (GraphOptions::new().with_threads(4711), "4711 threads"),
        (GraphOptions::new().with_parallel_nodes(0), "0 nodes at once"),
        (GraphOptions::new().with_dimension("n\0", 1), "NUL"),
        (GraphOptions::new().with_config("session.load_model_format", "ORT"), "refused"),
    ] {
        let error = open(&options).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_model_says_what_it_is() {
    let model = GraphOf::new("main graph")
        .node(&node("Cast", &["x"], &["y"], &[int("to", element::F64)]))
        .input("x", &tensor(element::F32, ["n"]))
        .output("y", &tensor(element::F64, ["n"]))
        .fields()
        .bytes(3, "1.2")
        .bytes(4, "org.example")
        .int(5, 7)
        .bytes(6, "turns floats into doubles")
        .message(14, &Message::new().bytes(1, "author").bytes(2, "somebody"))
        .into_bytes();
    let graph = load(&model);
    let header = graph.header();
    assert_eq!((header.producer(), header.producer_version(), header.domain()), ("infer-tests", "1.2", "org.example"));
    assert_eq!(
        (header.ir_version(), header.model_version(), header.description()),
        (8, 7, "turns floats into doubles")
    );
    assert_eq!(
        (header.graph_name(), header.value("author"), header.value("title")),
        ("main graph", Some("somebody"), None)
    );
    assert_eq!((header.opset("ai.onnx"), header.opset("com.microsoft"), header.opset("x")), (Some(17), Some(1), None));
    assert_eq!(graph.declared_outputs()[0].kind().to_string(), "float64[n]");
}
