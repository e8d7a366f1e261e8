//! The operators as nodes, in sessions.

use super::super::{Api, RunOptions, Session, Value};
use super::{DOMAIN, Domain, Kind, Node, Output, Tensor, VERSION, add_to, added, are_worth_it, can_run, table};
use crate::{
    DType, GraphOptions, LoadOptions, Onnx,
    kernels::tests::reference::{self, assert_near, random, size, spread},
    test_model::{GraphOf, Message, attribute, element, external, int, node, tensor_of},
};
use infer_core::{ErrorKind, Result};
use std::ffi::CStr;

type Input<'a> = (&'a [usize], &'a [f32]);

/// A graph of these nodes, which makes `y` out of `a`, `b`, ….
fn session(nodes: &[Message], inputs: usize, threads: usize) -> Result<Session> {
    let model = model(nodes, inputs);
    let onnx = Onnx::load(&LoadOptions::new()).unwrap();
    let options = add_to(GraphOptions::new().with_threads(threads).session(&onnx)?)?;
    Session::from_bytes(onnx.environment(), options, None, &model)
}

fn model(nodes: &[Message], inputs: usize) -> Vec<u8> {
    let kind = tensor_of(element::F32);
    let graph = nodes.iter().fold(GraphOf::new("operators"), GraphOf::node).output("y", &kind);
    let graph = NAMES[..inputs].iter().fold(graph, |graph, name| graph.input(name, &kind));
    let opset = Message::new().bytes(1, DOMAIN).int(2, VERSION.into());
    graph.fields().message(8, &opset).into_bytes()
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// One of the operators.
fn own(operator: &str, inputs: usize, attributes: &[Message]) -> Message {
    node(&format!("{DOMAIN}/{operator}"), &NAMES[..inputs], &["y"], attributes)
}

fn run(session: &mut Session, inputs: &[Input<'_>]) -> Result<(Vec<i64>, Vec<f32>)> {
    let value = |&(shape, numbers): &Input<'_>| {
        let shape: Vec<i64> = shape.iter().map(|&size| size as i64).collect();
        let mut value = Value::tensor(DType::F32, &shape).unwrap();
        value.elements_mut::<f32>().unwrap().copy_from_slice(numbers);
        value
    };
    let values: Vec<Value> = inputs.iter().map(value).collect();
    let mut outputs = [(0, None)];
    session.run(&RunOptions::new("operators")?, &values.iter().enumerate().collect::<Vec<_>>(), &mut outputs)?;
    let y = outputs[0].1.as_ref().unwrap();
    Ok((y.shape().to_vec(), crate::raw::as_elements(y.bytes()).unwrap().to_vec()))
}

/// Runs one operator with one thread and with two.
fn of_node(operator: &Message, inputs: &[Input<'_>]) -> (Vec<i64>, Vec<f32>) {
    let [one, two] = [1, 2].map(|threads| {
        let mut session = session(std::slice::from_ref(operator), inputs.len(), threads).unwrap();
        run(&mut session, inputs).unwrap()
    });
    assert_eq!(one.0, two.0);
    assert!(one.1.iter().zip(&two.1).all(|(one, two)| one.to_bits() == two.to_bits()), "threads make no difference");
    one
}

#[test]
fn bias_gelu() {
    for shape in [&[7][..], &[2, 3, 17], &[40, 1536], &[0, 5], &[3, 0]] {
        let (x, bias) = (random(size(shape), 1), random(shape[shape.len() - 1], 2));
        let (found, y) = of_node(&own("BiasGelu", 2, &[]), &[(shape, &x), (&[bias.len()], &bias)]);
        assert!(found.iter().eq(shape.iter().map(|&size| size as i64).collect::<Vec<_>>().iter()));
        assert_near(&y, &reference::gelu(&x, &bias), 1e-6, &format!("{shape:?}"));
    }
}

#[test]
fn add_normalization() {
    let operator = own("AddNormalization", 5, &[attribute("epsilon").float(2, 1e-5).int(20, 1)]);
    let cases: [[&[usize]; 3]; 5] = [
        [&[2, 3, 17], &[2, 3, 17], &[2, 3, 17]],
        [&[3, 60, 384], &[3, 60, 384], &[3, 60, 384]],
        [&[3, 60, 384], &[1, 60, 384], &[3, 60, 384]],
        [&[60, 384], &[3, 1, 384], &[3, 60, 384]],
        [&[2, 0, 8], &[2, 0, 8], &[2, 0, 8]],
    ];
    for [x_shape, other, common] in cases {
        let width = common[2];
        let (x, residual) = (random(size(x_shape), 1), random(size(other), 2));
        let [bias, scale, shift] = [3, 4, 5].map(|seed| random(width, seed));
        let of_width = |numbers| -> Input<'_> { (&common[2..], numbers) };
        let inputs = [(x_shape, &x[..]), of_width(&bias), (other, &residual), of_width(&scale), of_width(&shift)];
        let (_, y) = of_node(&operator, &inputs);
        let spreads = [&spread(&x, x_shape, common)[..], &spread(&residual, other, common)[..]];
        let wanted = reference::normalization(spreads, [&bias, &scale, &shift], 1e-5);
        assert_near(&y, &wanted, 3e-6, &format!("{x_shape:?} {other:?}"));
    }
}

#[test]
fn masked_softmax() {
    let cases: [[&[usize]; 3]; 4] = [
        [&[2, 3, 5, 5], &[2, 1, 1, 5], &[2, 3, 5, 5]],
        [&[9, 12, 56, 56], &[9, 1, 1, 56], &[9, 12, 56, 56]],
        [&[40, 60], &[9, 1, 60], &[9, 40, 60]],
        [&[2, 0], &[1, 0], &[2, 0]],
    ];
    for [x_shape, other, common] in cases {
        let (x, mask) = (random(size(x_shape), 1), random(size(other), 2));
        let (shape, y) = of_node(&own("MaskedSoftmax", 2, &[]), &[(x_shape, &x), (other, &mask)]);
        assert!(shape.iter().map(|&size| size as usize).eq(common.iter().copied()));
        let width = common[common.len() - 1].max(1);
        let wanted = reference::softmax(&spread(&x, x_shape, common), &spread(&mask, other, common), width);
        assert_near(&y, &wanted, 3e-7, &format!("{x_shape:?} {other:?}"));
    }
}

#[test]
fn bias_heads() {
    for (transposed, [groups, rows, heads, head]) in [0, 1].into_iter().flat_map(|way| {
        [[9, 56, 12, 32], [2, 3, 4, 5], [1, 300, 2, 64], [2, 0, 3, 4], [7, 1, 2, 8], [2, 6, 4, 5]]
            .map(|sizes| (way, sizes))
    }) {
        let operator = own("BiasHeads", 2, &[int("heads", heads as i64), int("transposed", transposed)]);
        let (x, bias) = (random(groups * rows * heads * head, 1), random(heads * head, 2));
        let wanted = reference::heads(&x, &bias, [groups, rows, heads], transposed == 1);
        let width = heads * head;
        let mut shapes = vec![vec![groups, rows, width], vec![groups, 1, rows, width]];
        if rows == 1 {
            shapes.push(vec![groups, width]);
        } else if rows == 6 {
            shapes.push(vec![groups, 2, 3, width]);
        }
        for shape in &shapes {
            let (found, y) = of_node(&operator, &[(shape, &x), (&[bias.len()], &bias)]);
            let last = if transposed == 1 { [head, rows] } else { [rows, head] };
            assert_eq!(found, [groups, heads, last[0], last[1]].map(|size| size as i64));
            assert_near(&y, &wanted, 0.0, &format!("{shape:?}"));
        }
    }
}

/// Numbers that are none, and rows in which everything is left out: as the runtime's own operators have it.
#[test]
fn odd_numbers_are_what_the_runtime_makes_of_them() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let rows = [
        [-inf; 8],
        [f32::MIN; 8],
        [0.0, -inf, 1.0, -inf, f32::MIN, -100.0, -87.4, 2.0],
        [1.0, nan, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, nan],
        [inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -inf],
        [f32::MAX, 1.0, 0.0, f32::MIN, -1.0, -50.0, 80.0, 8e9],
    ];
    let (x, bias) = (rows.concat(), [0.0; 8]);
    let inputs: [Input<'_>; 2] = [(&[rows.len(), 8], &x), (&[8], &bias)];
    let add = node("Add", &["a", "b"], &["u"], &[]);
    for (operator, own_name, most) in [("Softmax", "MaskedSoftmax", 3e-7), ("com.microsoft/Gelu", "BiasGelu", 1e-6)] {
        let theirs = [add.clone(), node(operator, &["u"], &["y"], &[])];
        let (_, wanted) = run(&mut session(&theirs, 2, 1).unwrap(), &inputs).unwrap();
        let wanted: Vec<f64> = wanted.into_iter().map(f64::from).collect();
        let (_, y) = of_node(&own(own_name, 2, &[]), &inputs);
        assert_near(&y, &wanted, most, own_name);
    }
}

/// An operator by its name, its node, inputs that fit each other and others that do not, and what the error says of those.
type Unfit<'a> = (&'a str, Message, Vec<Input<'a>>, Vec<Input<'a>>, &'a str);

#[test]
fn what_does_not_fit_is_an_error_by_name_and_the_session_goes_on() {
    let heads = [int("heads", 2), int("transposed", 0)];
    let epsilon = [attribute("epsilon").float(2, 1e-5).int(20, 1)];
    let n = |count| &[1.0_f32; 64][..count];
    let [w, x, y]: [Input<'_>; 3] = [(&[4], n(4)), (&[2, 4], n(8)), (&[2, 3, 4], n(24))];
    let cases: [Unfit<'_>; 6] = [
        ("BiasGelu", own("BiasGelu", 2, &[]), vec![x, w], vec![x, (&[3], n(3))], "[3]"),
        ("BiasGelu", own("BiasGelu", 2, &[]), vec![x, w], vec![(&[], n(1)), w], "no axis"),
        (
            "AddNormalization",
            own("AddNormalization", 5, &epsilon),
            vec![x, w, x, w, w],
            vec![x, w, x, w, (&[1], n(1))],
            "[1]",
        ),
        (
            "AddNormalization",
            own("AddNormalization", 5, &epsilon),
            vec![x, w, x, w, w],
            vec![x, w, (&[3, 4], n(12)), w, w],
            "[3, 4]",
        ),
        ("MaskedSoftmax", own("MaskedSoftmax", 2, &[]), vec![x, w], vec![x, (&[3], n(3))], "[3]"),
        ("BiasHeads", own("BiasHeads", 2, &heads), vec![y, w], vec![y, (&[3], n(3))], "[3]"),
    ];
    for (name, operator, good, bad, says) in cases {
        let mut session = session(&[operator], good.len(), 1).unwrap();
        for _ in 0..2 {
            run(&mut session, &good).unwrap();
            let error = run(&mut session, &bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            let message = error.to_string();
            assert!(message.contains(&format!("{name}: ")) && message.contains(says), "{message}");
        }
    }
    let uneven = own("BiasHeads", 2, &[int("heads", 3), int("transposed", 0)]);
    let error = run(&mut session(&[uneven], 2, 1).unwrap(), &[y, w]).unwrap_err();
    assert!(error.to_string().contains("3 heads"), "{error}");
    let none = own("BiasHeads", 2, &[int("heads", 0), int("transposed", 0)]);
    for (wrong, inputs) in [(none, 2), (own("AddNormalization", 5, &[]), 5)] {
        let error = session(&[wrong], inputs, 1).unwrap_err();
        assert!(error.to_string().contains("attribute"), "{error}");
    }
}

/// One session, on several threads at once.
#[test]
fn runs_at_the_same_time_are_apart() {
    let shape = [9, 12, 56, 56];
    let first = session(&[own("MaskedSoftmax", 2, &[])], 2, 1).unwrap();
    let second = first.twin().unwrap();
    std::thread::scope(|scope| {
        for (mut session, seed) in [(first, 1), (second, 2)] {
            scope.spawn(move || {
                let (x, mask) = (random(size(&shape), seed), random(size(&[9, 1, 1, 56]), seed + 2));
                let spreads = [spread(&x, &shape, &shape), spread(&mask, &[9, 1, 1, 56], &shape)];
                let wanted = reference::softmax(&spreads[0], &spreads[1], 56);
                for _ in 0..5 {
                    let (_, y) = run(&mut session, &[(&shape, &x), (&[9, 1, 1, 56], &mask)]).unwrap();
                    assert_near(&y, &wanted, 3e-7, "one of two");
                }
            });
        }
    });
}

/// A kernel with a bug: at once, or in one part of many.
struct Panicking;

impl Kind for Panicking {
    const NAME: &'static CStr = c"Panicking";
    const INPUTS: usize = 1;

    fn of(_: &Node<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn compute(&self, _: crate::raw::Cpu, inputs: &[Tensor<'_>], output: Output<'_>) -> Result<()> {
        assert!(inputs[0].shape.len() == 2, "a panic on purpose");
        output.write(&inputs[0].shape, 1024, |first, y| {
            assert!(first != 64 || inputs[0].numbers[0] != 1.0, "a panic on purpose");
            y.fill(2.0);
        })
    }
}

#[test]
fn a_panic_of_a_kernel_is_an_error_of_the_run() {
    let onnx = Onnx::load(&LoadOptions::new()).unwrap();
    // The name is known then.
    add_to(GraphOptions::new().session(&onnx).unwrap()).unwrap();
    let api = Api::loaded().unwrap();
    let domain = Domain::new(api, &[table::of::<Panicking>()]).unwrap();
    for threads in [1, 2] {
        let options = GraphOptions::new().with_threads(threads).session(&onnx).unwrap();
        let options = added(api, options, domain).unwrap();
        let model = model(&[own("Panicking", 1, &[])], 1);
        let mut session = Session::from_bytes(onnx.environment(), options, None, &model).unwrap();
        let bad: [Input<'_>; 2] = [(&[1], &[0.0]), (&[256, 1024], &vec![1.0; 256 * 1024])];
        for bad in bad {
            let error = run(&mut session, &[bad]).unwrap_err();
            assert!(error.to_string().contains("Panicking: the kernel panicked"), "{error}");
            let (_, y) = run(&mut session, &[(&[256, 1024], &vec![0.0; 256 * 1024])]).unwrap();
            assert!(y.iter().all(|&y| y == 2.0));
        }
    }
}

/// What one place would be bound to as input and output is not written.
#[test]
fn an_output_is_not_written_where_an_input_is() {
    let mut session = session(&[own("BiasGelu", 2, &[])], 2, 1).unwrap();
    let mut binding = session.binding().unwrap();
    binding.bind_shared(0, 0, Value::tensor(DType::F32, &[2, 4]).unwrap()).unwrap();
    binding.bind_input(1, Value::tensor(DType::F32, &[4]).unwrap()).unwrap();
    let error = session.run_bound(&RunOptions::new("operators").unwrap(), &mut binding).unwrap_err();
    assert!(error.to_string().contains("where an input is"), "{error}");
}

/// The runtime maps weights that lie in a file, wherever they lie there.
#[test]
fn weights_may_lie_at_any_byte_of_their_file() {
    let folder = test_kit::Folder::new();
    let bias = random(8, 3);
    let bytes: Vec<u8> = bias.iter().flat_map(|number| number.to_le_bytes()).collect();
    let x = random(16, 4);
    let wanted = reference::gelu(&x, &bias);
    for offset in 0..5 {
        folder.file("w.bin", &[&vec![1; offset][..], &bytes].concat());
        let entries = [("location", "w.bin"), ("offset", &offset.to_string()), ("length", "32")];
        let kind = tensor_of(element::F32);
        let graph = GraphOf::new("operators").input("a", &kind).output("y", &kind).node(&own("BiasGelu", 2, &[]));
        let opset = Message::new().bytes(1, DOMAIN).int(2, VERSION.into());
        let graph = graph.weights(&external("b", element::F32, &[8], &entries));
        let model = graph.fields().message(8, &opset).into_bytes();
        let onnx = Onnx::load(&LoadOptions::new()).unwrap();
        let options = add_to(GraphOptions::new().session(&onnx).unwrap()).unwrap();
        let key = "session.model_external_initializers_file_folder_path";
        let options = options.with_config_entry(key, folder.path().to_str().unwrap()).unwrap();
        let mut session = Session::from_bytes(onnx.environment(), options, None, &model).unwrap();
        let (_, y) = run(&mut session, &[(&[2, 8], &x)]).unwrap();
        assert_near(&y, &wanted, 1.2e-6, &format!("at byte {offset}"));
    }
}

#[test]
fn are_of_use_where_the_compiler_and_the_processor_are() {
    assert_eq!(are_worth_it(), can_run() && !cfg!(debug_assertions));
    #[cfg(target_arch = "x86_64")]
    assert_eq!(can_run(), is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"));
    #[cfg(not(target_arch = "x86_64"))]
    assert!(!can_run());
}
