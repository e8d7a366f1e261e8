//! What only this crate's own modules can do with the owners.

use super::{Outputs, RunOptions, Session, Value};
use crate::{
    DType, GraphOptions, LoadOptions, Onnx,
    test_model::{self as model, GraphOf, element, node, tensor},
};
use infer_core::ErrorKind;

fn session(model: &[u8]) -> Session {
    let onnx = Onnx::load(&LoadOptions::new()).unwrap();
    let options = GraphOptions::new().with_threads(1).session(&onnx).unwrap();
    Session::from_bytes(onnx.environment(), options, None, model).unwrap()
}

/// `after = before + step`, of any number of rows.
pub(super) fn adding() -> Session {
    let kind = tensor(element::I32, [model::Size::Named("rows"), 2.into()]);
    let add = node("Add", &["before", "step"], &["after"], &[]);
    let graph = GraphOf::new("add").node(&add).input("before", &kind).input("step", &kind).output("after", &kind);
    session(&graph.model())
}

fn numbers(bytes: &[u8]) -> &[i32] {
    super::as_elements(bytes).unwrap()
}

#[test]
fn a_graph_writes_where_it_reads() {
    let (mut session, options) = (adding(), RunOptions::new("test").unwrap());
    let mut binding = session.binding().unwrap();
    let state = Value::tensor(DType::I32, &[3, 2]).unwrap();
    let place = state.bytes().as_ptr();
    binding.bind_shared(0, 0, state).unwrap();
    binding.bind_input(1, Value::tensor(DType::I32, &[3, 2]).unwrap()).unwrap();
    binding.input_elements_mut::<i32>(1).unwrap().copy_from_slice(&[1, 2, 3, 4, 5, 6]);
    for _ in 0..3 {
        session.run_bound(&options, &mut binding).unwrap();
    }
    let after = binding.output(0).unwrap().bytes();
    assert_eq!((numbers(after), after.as_ptr()), (&[3, 6, 9, 12, 15, 18][..], place));
    assert_eq!(numbers(binding.input(0).unwrap().bytes()), numbers(after));
}

#[test]
fn what_was_shared_is_let_go_of_by_halves() {
    let (mut session, options) = (adding(), RunOptions::new("test").unwrap());
    let mut binding = session.binding().unwrap();
    let ones = || {
        let mut ones = Value::tensor(DType::I32, &[1, 2]).unwrap();
        ones.elements_mut::<i32>().unwrap().fill(1);
        ones
    };
    binding.bind_shared(0, 0, ones()).unwrap();
    binding.bind_input(1, ones()).unwrap();
    // The output goes on going to what was shared; the input is another one.
    binding.bind_input(0, ones()).unwrap();
    for _ in 0..2 {
        session.run_bound(&options, &mut binding).unwrap();
        assert_eq!(numbers(binding.output(0).unwrap().bytes()), [2, 2]);
        assert_eq!(numbers(binding.input(0).unwrap().bytes()), [1, 1]);
    }
}

#[test]
fn a_run_writes_into_values_that_are_given_for_outputs() {
    let (mut session, options) = (adding(), RunOptions::new("test").unwrap());
    let mut one = Value::tensor(DType::I32, &[1, 2]).unwrap();
    one.bytes_mut().unwrap()[0] = 1;
    let given = Value::tensor(DType::I32, &[1, 2]).unwrap();
    let place = given.bytes().as_ptr();
    let mut outputs = [(0, Some(given))];
    session.run(&options, &[(0, &one), (1, &one)], &mut outputs).unwrap();
    let after = outputs[0].1.as_ref().unwrap().bytes();
    assert_eq!((numbers(after), after.as_ptr()), (&[2, 0][..], place));

    let wrong = [
        (vec![(0, &one), (2, &one)], (0, None)),
        (vec![(0, &one), (1, &one)], (1, None)),
        (vec![(0, &one), (1, &one)], (0, Some(Value::tensor(DType::I64, &[1, 2]).unwrap()))),
        (vec![(0, &one), (1, &one)], (0, Some(Value::from_strings(&[1, 2], &["a", "b"]).unwrap()))),
    ];
    for (inputs, output) in wrong {
        let error = session.run(&options, &inputs, &mut [output]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
}

#[test]
fn what_a_run_gave_is_copied_before_it_is_written() {
    let (mut session, options) = (adding(), RunOptions::new("test").unwrap());
    let one = Value::tensor(DType::I32, &[1, 2]).unwrap();
    let mut outputs = [(0, None)];
    session.run(&options, &[(0, &one), (1, &one)], &mut outputs).unwrap();
    let value = outputs[0].1.as_mut().unwrap();
    let place = value.bytes().as_ptr();
    value.elements_mut::<i32>().unwrap()[1] = 7;
    assert_eq!(numbers(value.bytes()), [0, 7]);
    assert_ne!(value.bytes().as_ptr(), place, "others may have that memory");
    assert!(value.elements_mut::<f32>().is_err());
    assert_eq!((value.shape(), value.dims(), value.dtype()), (&[1, 2][..], &[1, 2][..], Some(DType::I32)));
}

#[test]
fn memory_is_looked_at_before_it_is_taken() {
    let bytes = [0_u8; 16];
    let cases = [
        Value::view(DType::F32, &[3], &bytes).map(drop),
        Value::view(DType::F32, &[-4], &bytes).map(drop),
        Value::view(DType::F32, &[i64::MAX, 4], &bytes).map(drop),
        Value::view(DType::I64, &[1], &bytes[1..9])
            .and_then(|_| Value::view(DType::I64, &[1], &bytes[2..10]))
            .map(drop),
        Value::view(DType::String, &[0], &[]).map(drop),
        Value::view(DType::Bool, &[1], &[2]).map(drop),
        Value::tensor(DType::F64, &[1 << 60]).map(drop),
        Value::from_strings(&[2], &["one"]).map(drop),
        Value::sequence(vec![]).map(drop),
        Value::tensor(DType::Bool, &[1]).and_then(|mut value| value.bytes_mut().map(drop)),
    ];
    for (number, case) in cases.into_iter().enumerate() {
        let error = case.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "case {number}: {error}");
    }
    let four_bits = Value::view(DType::I4, &[3], &bytes[..2]).unwrap();
    assert_eq!((four_bits.bytes().len(), four_bits.dtype()), (2, Some(DType::I4)));
}

/// Bytes of a tensor are not asked for where type and shape say how many there are: the runtime has to mean the same.
#[test]
fn a_tensor_is_as_large_as_the_runtime_says() {
    let _library = Onnx::load(&LoadOptions::new()).unwrap();
    // Strings have no fixed size, and of complex numbers the runtime makes no tensor.
    let has_size = |dtype: &DType| !matches!(dtype, DType::String | DType::Complex64 | DType::Complex128);
    for dtype in (1..=26).map(|number| super::dtype_of(number).unwrap()).filter(has_size) {
        for shape in [&[][..], &[1], &[7], &[3, 3], &[2, 0], &[1, 2, 3, 4, 5, 6, 7]] {
            let tensor = Value::tensor(dtype, shape).unwrap();
            let elements = shape.iter().product::<i64>() as usize;
            assert_eq!(Some(tensor.bytes().len()), dtype.bytes(elements), "{dtype}{shape:?}");
            tensor.check_size(dtype, tensor.bytes().len()).unwrap();
            let error = tensor.check_size(dtype, tensor.bytes().len() + 1).unwrap_err();
            assert!(error.to_string().contains("bytes, but"), "{error}");
        }
    }
}

/// Of what an input was lent, the last two are known again.
#[test]
fn two_buffers_that_are_lent_by_turns_are_lent_again() {
    let (mut session, options) = (adding(), RunOptions::new("test").unwrap());
    let numbers_of = [[1_i32, 2], [3, 4], [5, 6]];
    let buffers = numbers_of.each_ref().map(|numbers| super::as_bytes(numbers));
    let mut outputs = Outputs::default();
    let mut run = |session: &mut Session, buffer: usize| {
        let mut call = session.call();
        let is_known = call.lend_again(0, DType::I32, &[1, 2], buffers[buffer]);
        if !is_known {
            call.lend(0, DType::I32, &[1, 2], buffers[buffer]).unwrap();
        }
        call.give(1, Value::tensor(DType::I32, &[1, 2]).unwrap()).unwrap();
        outputs.want_all(1);
        call.run(&options, &mut outputs).unwrap();
        assert_eq!(numbers(outputs.get(0).unwrap().bytes()), numbers_of[buffer]);
        is_known
    };
    let known = [0, 1, 0, 1, 1, 0, 2, 0, 2, 1, 0].map(|buffer| run(&mut session, buffer));
    assert_eq!(known, [false, false, true, true, true, true, false, true, true, false, false]);
    // One in the place of another: the one that was lent last stays.
    assert_eq!([1, 2, 1].map(|buffer| run(&mut session, buffer)), [true, false, true]);
}

/// What a call was lent is lent no longer when it is over, however it ended; what it was given of its own is let go of.
#[test]
fn a_call_that_was_forgotten_has_lent_nothing_to_the_next() {
    let (mut session, options) = (adding(), RunOptions::new("test").unwrap());
    let bytes = super::as_bytes(&[1_i32, 2]);
    let mut outputs = Outputs::default();
    for _ in 0..2 {
        let mut call = session.call();
        assert!(call.lend_again(0, DType::I32, &[1, 2], bytes) || call.lend(0, DType::I32, &[1, 2], bytes).is_ok());
        call.give(1, Value::tensor(DType::I32, &[1, 2]).unwrap()).unwrap();
        assert!(call.is_given(0) && call.is_given(1) && !call.is_given(2));
        std::mem::forget(call);
        let mut call = session.call();
        assert!(!call.is_given(0) && !call.is_given(1));
        // It is the same again only where nothing differs.
        assert!(!call.lend_again(0, DType::F32, &[1, 2], bytes) && !call.lend_again(0, DType::I32, &[2, 1], bytes));
        assert!(!call.lend_again(0, DType::I32, &[1, 1], &bytes[..4]) && !call.lend_again(2, DType::I32, &[], bytes));
        assert!(call.lend_again(0, DType::I32, &[1, 2], bytes));
        call.give(1, Value::tensor(DType::I32, &[1, 2]).unwrap()).unwrap();
        outputs.want_all(1);
        call.run(&options, &mut outputs).unwrap();
        assert_eq!(numbers(outputs.get(0).unwrap().bytes()), [1, 2]);
        outputs.clear();
    }
    for (index, dtype, bytes) in [(2, DType::I32, bytes), (0, DType::I32, &bytes[..4]), (0, DType::Bool, &[2, 0][..])] {
        let error = session.call().lend(index, dtype, &[1, 2], bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
}
