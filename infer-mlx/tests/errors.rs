//! What is wrong is told by whoever wants the value, with the operation, the shapes and the place.

mod kit;

use infer_core::ErrorKind;
use infer_mlx::{Array, DType, Mask, RopeOffset};
use kit::{mlx, values};

/// What `check` says, which is what `eval`, `data` and `item` say too.
#[track_caller]
fn told(array: Array<'_>) -> String {
    let error = array.check().expect_err("it is an error");
    assert_eq!(error.backend(), Some("mlx"));
    let text = error.to_string();
    assert_eq!(array.scope().eval([array]).unwrap_err().to_string(), text);
    assert_eq!(array.data::<f32>().unwrap_err().to_string(), text);
    assert_eq!(array.item::<u8>().unwrap_err().to_string(), text);
    assert_eq!(array.own().check().unwrap_err().to_string(), text);
    assert_eq!((array.shape(), array.ndim()), (&[][..], 0));
    text
}

#[test]
fn an_error_has_the_operation_the_shapes_and_the_place() {
    let mlx = mlx();
    let s = mlx.scope();
    let (a, b) = (s.ones(&[1, 4], DType::F32), s.ones(&[3, 3], DType::F16));
    let (product, line) = (a.matmul(b), line!());
    let text = told(product);
    let here = format!("matmul of float32[1, 4] and float16[3, 3] at infer-mlx/tests/errors.rs:{line}:");
    assert!(text.starts_with(&here), "{text}");
    assert_eq!(product.check().unwrap_err().kind(), ErrorKind::InvalidInput);
    let (sum, line) = (a + b, line!());
    let here = format!("add of float32[1, 4] and float16[3, 3] at infer-mlx/tests/errors.rs:{line}:");
    assert!(told(sum).starts_with(&here), "{}", told(sum));
}

#[test]
fn the_first_error_wins_wherever_it_goes() {
    let mlx = mlx();
    let outer = mlx.scope();
    let s = outer.nest();
    let (a, b) = (outer.ones(&[1, 4], DType::F32), s.ones(&[3, 3], DType::F32));
    let first = a.matmul(a);
    let text = told(first);
    assert!(text.contains("matmul of float32[1, 4] and float32[1, 4]"), "{text}");
    let weight = b.own();
    let kept = s.keep(s.enter(first) + b);
    for array in [
        first + b,
        b + first,
        b.matmul(first + a),
        first.exp().reshape(&[7]),
        first.t(),
        first.slice(9, 3..),
        first.split(5, &[1])[0],
        s.concat(&[b, first], 0),
        s.stack(&[first, b], 0),
        b.gt(first).select(b, b),
        b.eq(b).select(first, 0.0),
        first.rms_norm(&weight, 1e-5),
        first * &weight,
        &first.own() + b,
        b.addmm(first, &weight),
        first.quantize(32, 4)[1],
        b.attention(b, b, 1.0, Mask::Array(first)),
        b.rope(2, false, Some(9.0), 1.0, RopeOffset::Each(first), None),
        b.slice_update(first, &[0, 0]),
        s.enter(&first.own()),
        2.0 * first,
        kept,
    ] {
        assert_eq!(told(array), text);
    }
    let second = b.matmul(a);
    assert!(told(second + first).contains("matmul of float32[3, 3]"), "the left one's own, which came first");
    assert_eq!(s.eval([a, first, second]).unwrap_err().to_string(), text, "the first in the list");
    assert!(!a.is_evaluated(), "and nothing was computed");
}

#[test]
fn what_cannot_be_is_refused_by_every_operation() {
    let mlx = mlx();
    let s = mlx.scope();
    let a = s.array(&[1.0f32; 6], &[2, 3]);
    let i = s.array(&[0i32, 1], &[2]);
    let w = a.own();
    let none = s.zeros(&[2, 0], DType::F32);
    let cases: Vec<(&str, Array<'_>)> = vec![
        ("array", s.array(&[1.0f32], &[2])),
        ("array", s.array::<f32>(&[], &[usize::MAX, 2, 0, 3])),
        ("full", s.zeros(&[usize::MAX], DType::F32)),
        ("full", s.full(0.5, &[1], DType::I32)),
        ("full", s.full(256.0, &[1], DType::U8)),
        ("arange", s.arange(i32::MIN, i32::MAX, DType::I32)),
        ("add", a + s.ones(&[4], DType::F32)),
        ("add", i + 0.5),
        ("mul", i * f32::NAN),
        ("matmul", a.matmul(a)),
        ("matmul", a.matmul(2.0)),
        ("addmm", a.addmm(s.ones(&[7], DType::F32), a.t())),
        ("select", a.select(i, a)),
        ("transpose", a.transpose(&[0, 0])),
        ("transpose", a.transpose(&[0])),
        ("transpose", a.transpose(&[0, 5])),
        ("t", i.t()),
        ("reshape", a.reshape(&[4])),
        ("reshape", a.reshape(&[-1, -1])),
        ("reshape", a.reshape(&[-2, -3])),
        ("reshape", a.reshape(&[4, -1])),
        ("expand_dims", a.expand_dims(4)),
        ("squeeze", a.squeeze(0)),
        ("squeeze", a.squeeze(9)),
        ("broadcast_to", a.broadcast_to(&[2, 4])),
        ("broadcast_to", a.broadcast_to(&[1 << 31])),
        ("broadcast_to", s.ones(&[1], DType::F32).broadcast_to(&[1 << 20, 1 << 20, 1 << 20, 1 << 20])),
        ("repeat", a.repeat(-1, 0)),
        ("repeat", a.repeat(2, 5)),
        ("slice", a.slice(2, ..)),
        ("slice", a.slice(0, 1..3)),
        ("slice_many", a.slice_many(&[0], &[1])),
        ("slice_many", a.slice_many(&[0, 2], &[2, 1])),
        ("slice_update", a.slice_update(a, &[0, 1])),
        ("slice_update", a.slice_update(i, &[0])),
        ("split", a.split(0, &[1])[0]),
        ("split", a.split(7, &[1])[0]),
        ("take", a.take(a, 0)),
        ("take", a.take(i, 2)),
        ("take_along_axis", a.take_along_axis(i, 0)),
        ("concat", s.concat(&[a, i], 0)),
        ("concat", s.concat(&[], 0)),
        ("stack", s.stack(&[a, i], 0)),
        ("sum", a.sum(2, false)),
        ("sum", a.sum(-3, false)),
        ("argmax", a.argmax(5, false)),
        ("argmax", s.zeros(&[2, 0], DType::F32).argmax(1, false)),
        ("max", s.zeros(&[2, 0], DType::F32).max(1, false)),
        ("softmax", a.softmax(3)),
        ("cumsum", a.cumsum(3)),
        ("sort", a.sort(-4)),
        ("argpartition", a.argpartition(3, 1)),
        ("argpartition", a.argpartition(0, 2)),
        ("rms_norm", a.rms_norm(&s.ones(&[4], DType::F32).own(), 1e-5)),
        ("rms_norm", a.rms_norm(&w, 1e-5)),
        ("layer_norm", a.layer_norm(None, &s.ones(&[4], DType::F32).own(), 1e-5)),
        ("rope", a.rope(2, false, Some(100.0), 1.0, RopeOffset::At(0), None)),
        ("rope", s.ones(&[1, 2, 3], DType::F32).rope(8, false, Some(100.0), 1.0, RopeOffset::At(0), None)),
        ("rope", s.ones(&[1, 2, 4], DType::F32).rope(3, false, Some(100.0), 1.0, RopeOffset::At(0), None)),
        ("rope", s.ones(&[1, 2, 4], DType::F32).rope(-2, false, Some(100.0), 1.0, RopeOffset::At(0), None)),
        ("rope", s.ones(&[1, 2, 4], DType::F32).rope(0, false, Some(100.0), 1.0, RopeOffset::At(0), None)),
        ("rope", s.ones(&[1, 2, 4], DType::F32).rope(4, false, None, 1.0, RopeOffset::At(0), None)),
        ("rope", s.ones(&[1, 2, 4], DType::F32).rope(4, false, None, 1.0, RopeOffset::At(0), Some(&w))),
        (
            "rope",
            s.ones(&[1, 2, 4], DType::F32).rope(
                4,
                false,
                Some(9.0),
                1.0,
                RopeOffset::Each(s.arange(0, 3, DType::I32)),
                None,
            ),
        ),
        (
            "rope",
            s.ones(&[1, 2, 4], DType::F32).rope(
                4,
                false,
                Some(9.0),
                1.0,
                RopeOffset::Each(s.ones(&[1], DType::F32)),
                None,
            ),
        ),
        ("attention", a.attention(a, a, 1.0, Mask::None)),
        ("attention", {
            let q = s.ones(&[1, 3, 2, 4], DType::F32);
            let k = s.ones(&[1, 2, 2, 4], DType::F32);
            q.attention(k, k, 1.0, Mask::None)
        }),
        ("attention", {
            let q = s.ones(&[1, 2, 2, 4], DType::F32);
            q.attention(q, s.ones(&[1, 2, 3, 4], DType::F32), 1.0, Mask::None)
        }),
        ("attention", {
            let q = s.ones(&[1, 2, 2, 4], DType::F32);
            q.attention(q, q, 1.0, Mask::Array(s.ones(&[5, 5], DType::F32)))
        }),
        ("quantize", a.quantize(32, 4)[0]),
        ("quantize", s.ones(&[2, 64], DType::F32).quantize(31, 4)[2]),
        ("quantize", s.ones(&[2, 64], DType::F32).quantize(32, 9)[0]),
        ("quantize", s.ones(&[2, 64], DType::F32).quantize(0, 4)[0]),
        ("quantized_matmul", a.quantized_matmul(&w, &w, &w, true, 32, 4)),
        ("dequantize", a.dequantize(a, a, 32, 4)),
        // Of other rows than the matrix: MLX would read behind the scales.
        ("quantized_matmul", {
            let (words, scales) = (s.zeros(&[512, 4], DType::U32).own(), s.ones(&[1, 1], DType::F32).own());
            s.ones(&[1, 32], DType::F32).quantized_matmul(&words, &scales, &scales, true, 32, 4)
        }),
        ("quantized_matmul", {
            let words = s.zeros(&[512, 4], DType::U32).own();
            let (scales, biases) = (s.ones(&[512, 1], DType::F32).own(), s.ones(&[1, 1], DType::F32).own());
            s.ones(&[1, 32], DType::F32).quantized_matmul(&words, &scales, &biases, true, 32, 4)
        }),
        // All scores at once are terabytes, of arrays that take next to nothing.
        ("attention", {
            let x = s.ones(&[1, 1, 1, 2], DType::F16).broadcast_to(&[1, 1, 1 << 21, 2]);
            x.attention(x, x, 1.0, Mask::None)
        }),
        ("floor_divide", i.floor_divide(0.0)),
        // Of nothing: kernels that divide by how much there is, or never come to its end.
        ("sum", none.sum(0, false)),
        ("all", none.all(1, false)),
        ("softmax", none.softmax(0)),
        ("cumsum", none.cumsum(0)),
        ("sort", none.sort(0)),
        ("argsort", none.argsort(1)),
        ("argpartition", none.argpartition(0, 0)),
        ("rms_norm", none.rms_norm(None, 1e-5)),
        ("layer_norm", none.layer_norm(None, None, 1e-5)),
        ("reshape", none.reshape(&[0, -1])),
        ("quantize", none.quantize(32, 4)[0]),
        ("attention", {
            let q = s.ones(&[1, 2, 3, 4], DType::F32);
            let k = s.ones(&[1, 0, 3, 4], DType::F32);
            q.attention(k, k, 1.0, Mask::None)
        }),
        ("view", s.array(&[1u8, 2, 3], &[3]).view(DType::F32)),
    ];
    let taken = cases.iter().enumerate().filter(|(_, (_, array))| array.check().is_ok());
    let taken: Vec<String> = taken.map(|(index, (op, array))| format!("{index}: {op} {array:?}")).collect();
    assert_eq!(taken, Vec::<String>::new(), "taken, and should not be");
    for (op, array) in cases {
        let text = told(array);
        assert!(text.starts_with(op) && text.contains(" at infer-mlx/tests/errors.rs:"), "{op}: {text}");
    }
    assert_eq!(values(a), [1.0; 6], "and everything is usable");
}
