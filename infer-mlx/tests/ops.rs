//! Operations: what they give is what their formulas say, in plain Rust.

mod kit;

use half::{bf16, f16};
use infer_core::ErrorKind;
use infer_mlx::{Array, DType, Element, Mask, RopeOffset, Scope};
use kit::{assert_near, mlx, numbers, values};

/// Elements as they come out again, through the library.
#[track_caller]
fn through<T: Element + PartialEq + std::fmt::Debug>(data: &[T]) {
    let mlx = mlx();
    let scope = mlx.scope();
    let a = scope.array(data, &[data.len()]);
    assert_eq!((a.dtype(), a.shape()), (T::DTYPE, &[data.len() as i32][..]));
    assert_eq!(a.data::<T>().unwrap(), data);
    let last = a.slice(0, -1..).reshape(&[]);
    scope.eval([last]).unwrap();
    assert_eq!(last.item::<T>().unwrap(), data[data.len() - 1]);
}

#[test]
fn every_type_of_elements_goes_through() {
    through(&[true, false, true]);
    through(&[0u8, 1, 255]);
    through(&[0u16, 1, u16::MAX]);
    through(&[0u32, 1, u32::MAX]);
    through(&[0u64, 1, u64::MAX]);
    through(&[i8::MIN, -1, i8::MAX]);
    through(&[i16::MIN, -1, i16::MAX]);
    through(&[i32::MIN, -1, i32::MAX]);
    through(&[i64::MIN, -1, i64::MAX]);
    through(&[f16::from_f32(0.5), f16::MAX]);
    through(&[f32::MIN, 1e-40, f32::INFINITY]);
    through(&[f64::MIN, 1e-300, f64::MAX]);
    through(&[bf16::from_f32(0.5), bf16::MAX]);
}

#[test]
fn arrays_are_made_from_nothing() {
    let mlx = mlx();
    let s = mlx.scope();
    assert_eq!(values(s.full(2.5, &[2, 2], DType::F32)), [2.5; 4]);
    assert_eq!(values(s.zeros(&[3], DType::F16).as_type(DType::F32)), [0.0; 3]);
    let ones = s.ones(&[2], DType::I64);
    let range = s.arange(-2, 3, DType::I32);
    let scalar = s.scalar(7.0, DType::U8);
    s.eval([ones, range, scalar]).unwrap();
    assert_eq!(ones.data::<i64>().unwrap(), [1, 1]);
    assert_eq!(range.data::<i32>().unwrap(), [-2, -1, 0, 1, 2]);
    assert_eq!((scalar.item::<u8>().unwrap(), scalar.ndim(), scalar.shape()), (7, 0, &[][..]));
}

#[test]
fn operators_are_those_of_the_elements_in_every_type() {
    let (x, y) = ([1.0f32, -2.0, 3.0, 8.0], [2.0f32, 4.0, -2.0, 1.0]);
    let mlx = mlx();
    let s = mlx.scope();
    for (dtype, most) in
        [(DType::F32, 0.0), (DType::F64, 0.0), (DType::F16, 0.001), (DType::Bf16, 0.01), (DType::I32, 0.0)]
    {
        let [a, b] = [x, y].map(|data| s.array(&data, &[4]).as_type(dtype));
        let got = |array: Array<'_>| {
            assert_eq!(array.dtype(), dtype);
            values(array.as_type(DType::F32))
        };
        let want = |f: fn(f32, f32) -> f32| x.iter().zip(y).map(|(&x, y)| f(x, y)).collect::<Vec<_>>();
        assert_near(&got(a + b), &want(|x, y| x + y), most);
        assert_near(&got(a - b), &want(|x, y| x - y), most);
        assert_near(&got(a * b), &want(|x, y| x * y), most);
        assert_near(&got(-a), &want(|x, _| -x), most);
        assert_near(&got(a.maximum(b)), &want(f32::max), most);
        assert_near(&got(a.minimum(b)), &want(f32::min), most);
        assert_near(&got(a + 2.0), &want(|x, _| x + 2.0), most);
        assert_near(&got(2.0 - a), &want(|x, _| 2.0 - x), most);
        assert_near(&got(a * &b.own()), &want(|x, y| x * y), most);
        assert_near(&got(&b.own() - a), &want(|x, y| y - x), most);
        assert_near(&got(a.square()), &want(|x, _| x * x), most);
        assert_near(&got(a.abs()), &want(|x, _| x.abs()), most);
        if dtype.is_float() {
            assert_near(&got(a / b), &want(|x, y| x / y), most);
            assert_near(&got(a.floor_divide(b)), &want(|x, y| (x / y).floor()), most);
            assert_near(&got(a.remainder(b)), &want(|x, y| x - (x / y).floor() * y), most);
            assert_near(&got(8.0 / b), &want(|_, y| 8.0 / y), most);
            assert_near(&got(a.pow(2.0)), &want(|x, _| x * x), most);
        }
    }
}

/// A division by 0 would end the process, a negative power would never end.
#[test]
fn integers_are_divided_by_numbers_only() {
    let mlx = mlx();
    let s = mlx.scope();
    let a = s.array(&[7i32, -7, 0], &[3]);
    let (quotient, rest, power) = (a.floor_divide(2.0), a.remainder(2.0), a.pow(2.0));
    s.eval([quotient, rest, power]).unwrap();
    assert_eq!(quotient.data::<i32>().unwrap(), [3, -3, 0]);
    assert_eq!(rest.data::<i32>().unwrap(), [1, 1, 0]);
    assert_eq!(power.data::<i32>().unwrap(), [49, 49, 0]);
    for refused in [
        a.floor_divide(0.0),
        a.remainder(-1.0),
        a.pow(-1.0),
        a.floor_divide(a),
        a.remainder(a),
        a.pow(a),
        a.as_type(DType::Bool).floor_divide(s.array(&[0u8, 0, 0], &[3])),
    ] {
        let text = refused.check().unwrap_err().to_string();
        assert!(text.contains(": integers are divided by a number"), "{text}");
    }
    assert_eq!(values(a / 2.0), [3.5, -3.5, 0.0], "a quotient has a fraction");
    assert_eq!(values(s.array(&[1.0f32], &[1]).floor_divide(0.0)), [f32::INFINITY]);
}

#[test]
fn comparisons_give_booleans_that_choose() {
    let mlx = mlx();
    let s = mlx.scope();
    let (a, b) = (s.array(&[1.0f32, 2.0, 3.0], &[3]), s.array(&[3.0f32, 2.0, 1.0], &[3]));
    let bools = |array: Array<'_>| {
        s.eval([array]).unwrap();
        array.data::<bool>().unwrap().to_vec()
    };
    assert_eq!(bools(a.lt(b)), [true, false, false]);
    assert_eq!(bools(a.le(b)), [true, true, false]);
    assert_eq!(bools(a.gt(b)), [false, false, true]);
    assert_eq!(bools(a.ge(b)), [false, true, true]);
    assert_eq!(bools(a.eq(b)), [false, true, false]);
    assert_eq!(bools(a.ne(2.0)), [true, false, true]);
    assert_eq!(bools(a.lt(b).logical_or(a.eq(b))), [true, true, false]);
    assert_eq!(bools(a.le(b).logical_and(a.ge(b))), [false, true, false]);
    assert_eq!(bools(a.lt(b).logical_not()), [false, true, true]);
    assert_eq!(values(a.lt(b).select(a, b)), [1.0, 2.0, 1.0]);
    assert_eq!(values(a.lt(b).select(a, f32::NEG_INFINITY)), [1.0, f32::NEG_INFINITY, f32::NEG_INFINITY]);
    assert_eq!(values(a.lt(2.0).select(0.0, 1.0)), [0.0, 1.0, 1.0]);
    let odd = s.array(&[1.0f32, f32::NAN, f32::INFINITY], &[3]);
    assert_eq!(bools(odd.is_nan()), [false, true, false]);
    assert_eq!(bools(odd.is_finite()), [true, false, false]);
}

/// The error function, by its series.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..60 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

#[test]
fn functions_of_elements_are_their_formulas() {
    type Case<'a> = (fn(Array<'a>) -> Array<'a>, fn(f64) -> f64);
    let mlx = mlx();
    let s = mlx.scope();
    let data = [0.1f32, 0.7, 1.0, 1.9, 3.2];
    let x = s.array(&data, &[5]);
    let cases: [Case<'_>; 20] = [
        (Array::exp, f64::exp),
        (Array::log, f64::ln),
        (Array::sqrt, f64::sqrt),
        (Array::rsqrt, |x| 1.0 / x.sqrt()),
        (Array::square, |x| x * x),
        (Array::reciprocal, |x| 1.0 / x),
        (Array::sin, f64::sin),
        (Array::cos, f64::cos),
        (Array::tanh, f64::tanh),
        (Array::sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        (Array::erf, erf),
        (Array::floor, f64::floor),
        (Array::ceil, f64::ceil),
        (|x| (-x).sign(), |x| -x.signum()),
        (Array::abs, f64::abs),
        (Array::silu, |x| x / (1.0 + (-x).exp())),
        (Array::gelu, |x| x * (1.0 + erf(x / 2f64.sqrt())) / 2.0),
        (Array::gelu_tanh, |x| {
            x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)).tanh()) / 2.0
        }),
        (|x| x.pow(3.0), |x| x.powi(3)),
        (|x| x.remainder(0.5), |x| x.rem_euclid(0.5)),
    ];
    for (index, (ours, formula)) in cases.into_iter().enumerate() {
        let wanted: Vec<f32> = data.iter().map(|&x| formula(x.into()) as f32).collect();
        println!("function {index}");
        assert_near(&values(ours(x)), &wanted, 2e-6);
        assert_near(&values(ours(x.as_type(DType::F16)).as_type(DType::F32)), &wanted, 0.02);
    }
}

#[test]
fn types_are_converted_and_bytes_seen_as_others() {
    let mlx = mlx();
    let s = mlx.scope();
    let a = s.array(&[1.9f32, -1.9, 300.0], &[3]);
    let whole = a.as_type(DType::I32);
    let bytes = s.array(&[1u32, 0x0102_0304], &[2]).view(DType::U8);
    s.eval([whole, bytes]).unwrap();
    assert_eq!(whole.data::<i32>().unwrap(), [1, -1, 300]);
    assert_eq!(bytes.shape(), [8]);
    assert_eq!(bytes.data::<u8>().unwrap(), [1u32, 0x0102_0304].map(u32::to_ne_bytes).concat());
    assert!(s.array(&[2u8], &[1]).view(DType::Bool).check().is_err());
    // A number that begins at an odd byte is computed with, and not handed out where it lies.
    let odd = s.array(&[9u8, 0, 0, 128, 63], &[5]).slice(0, 1..).view(DType::F32);
    s.eval([odd]).unwrap();
    let error = odd.data::<f32>().unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("where no float32 may"), "{error}");
    assert_eq!((odd.item::<f32>().unwrap(), values(odd + 0.0)), (1.0, vec![1.0]));
}

#[test]
fn shapes_change_and_elements_stay() {
    let mlx = mlx();
    let s = mlx.scope();
    let data: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let a = s.array(&data, &[2, 3, 4]);
    assert_eq!(a.reshape(&[6, -1]).shape(), [6, 4]);
    assert_eq!(a.reshape(&[-1]).shape(), [24]);
    let turned = a.transpose(&[2, 0, -2]);
    assert_eq!(turned.shape(), [4, 2, 3]);
    let at = |i: usize, j: usize, k: usize| data[(j * 3 + k) * 4 + i];
    let mut wanted = Vec::new();
    for (i, j, k) in (0..4).flat_map(|i| (0..2).flat_map(move |j| (0..3).map(move |k| (i, j, k)))) {
        wanted.push(at(i, j, k));
    }
    assert_eq!(values(turned), wanted);
    assert_eq!(a.t().shape(), [2, 4, 3]);
    assert_eq!(a.expand_dims(-1).shape(), [2, 3, 4, 1]);
    assert_eq!(a.expand_dims(1).squeeze(1).shape(), [2, 3, 4]);
    assert_eq!(values(s.array(&[1.0f32, 2.0], &[2, 1]).broadcast_to(&[2, 2, 3])).len(), 12);
    assert_eq!(values(s.array(&[1.0f32, 2.0], &[2]).repeat(2, 0)), [1.0, 1.0, 2.0, 2.0]);
}

#[test]
fn parts_are_taken_and_put_together() {
    let mlx = mlx();
    let s = mlx.scope();
    let data: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let a = s.array(&data, &[3, 4]);
    assert_eq!(values(a.slice(0, 1..2)), [4.0, 5.0, 6.0, 7.0]);
    assert_eq!(values(a.slice(-1, -1..)), [3.0, 7.0, 11.0]);
    assert_eq!(a.slice(1, 2..2).shape(), [3, 0]);
    assert_eq!(values(a.slice_many(&[1, 1], &[3, 3])), [5.0, 6.0, 9.0, 10.0]);
    let parts = a.split(1, &[1, 3]);
    assert_eq!((parts[0].shape(), parts[1].shape()), (&[3, 1][..], &[3, 3][..]));
    assert_eq!(values(parts[0]), [0.0, 4.0, 8.0]);
    assert_eq!(values(s.concat(&parts, 1)), data);
    assert_eq!(values(s.concat(&[a, a.slice(0, ..1)], 0))[12..], [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(s.stack(&[a, a], 1).shape(), [3, 2, 4]);
    assert_eq!(values(a.take(s.array(&[2u32, 0], &[2]), 0)), [8.0, 9.0, 10.0, 11.0, 0.0, 1.0, 2.0, 3.0]);
    assert_eq!(values(a.take(s.array(&[-1i32], &[1]), 1)), [3.0, 7.0, 11.0]);
    assert_eq!(values(a.take_along_axis(s.array(&[3u32, 0, 1], &[3, 1]), 1)), [3.0, 4.0, 9.0]);
    let new = a.slice_update(s.array(&[-1.0f32, -2.0], &[2, 1]), &[1, 3]);
    assert_eq!(values(new), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -1.0, 8.0, 9.0, 10.0, -2.0]);
    assert_eq!(values(a), data, "the array itself is as it was");
    assert_eq!(values(s.ones(&[2, 2], DType::F32).tril(0)), [1.0, 0.0, 1.0, 1.0]);
    assert_eq!(values(s.ones(&[2, 2], DType::F32).triu(1)), [0.0, 1.0, 0.0, 0.0]);
}

#[test]
fn along_an_axis() {
    let mlx = mlx();
    let s = mlx.scope();
    let data = [3.0f32, -1.0, 2.0, 0.5, 4.0, -2.0];
    let a = s.array(&data, &[2, 3]);
    assert_eq!(a.sum(1, true).shape(), [2, 1]);
    assert_near(&values(a.sum(1, false)), &[4.0, 2.5], 1e-6);
    assert_near(&values(a.mean(0, false)), &[1.75, 1.5, 0.0], 1e-6);
    assert_near(&values(a.max(-1, false)), &[3.0, 4.0], 0.0);
    assert_near(&values(a.min(-1, false)), &[-1.0, -2.0], 0.0);
    assert_near(&values(a.prod(1, false)), &[-6.0, -4.0], 1e-6);
    assert_near(&values(a.cumsum(1)), &[3.0, 2.0, 4.0, 0.5, 4.5, 2.5], 1e-6);
    assert_near(&values(a.sort(1)), &[-1.0, 2.0, 3.0, -2.0, 0.5, 4.0], 0.0);
    let (most, order) = (a.argmax(1, false), a.argsort(1));
    let split = a.argpartition(1, 1);
    let (all, any) = (a.gt(0.0).all(1, false), a.gt(3.5).any(1, false));
    s.eval([most, order, split, all, any]).unwrap();
    assert_eq!(most.data::<u32>().unwrap(), [0, 1]);
    assert_eq!(order.data::<u32>().unwrap(), [1, 2, 0, 2, 0, 1]);
    assert_eq!(split.data::<u32>().unwrap()[1], 2);
    assert_eq!((all.data::<bool>().unwrap(), any.data::<bool>().unwrap()), (&[false, false][..], &[false, true][..]));
    for row in 0..2 {
        let row = &data[row * 3..][..3];
        let sum: f32 = row.iter().map(|x| x.exp()).sum();
        let part = s.array(row, &[3]);
        assert_near(&values(part.logsumexp(0, true)), &[sum.ln()], 1e-6);
        assert_near(&values(part.softmax(0)), &row.iter().map(|x| x.exp() / sum).collect::<Vec<_>>(), 1e-6);
    }
}

/// The product of two matrices.
fn product(a: &[f32], b: &[f32], [rows, inner, columns]: [usize; 3]) -> Vec<f32> {
    let cell = |i: usize| (0..inner).map(|k| a[i / columns * inner + k] * b[k * columns + i % columns]).sum();
    (0..rows * columns).map(cell).collect()
}

#[test]
fn matrices_are_multiplied() {
    let mlx = mlx();
    let s = mlx.scope();
    let (x, y, z) = (numbers(6, 1), numbers(12, 2), numbers(4, 3));
    let (a, b, c) = (s.array(&x, &[2, 3]), s.array(&y, &[3, 4]), s.array(&z, &[4]));
    let wanted = product(&x, &y, [2, 3, 4]);
    assert_near(&values(a.matmul(b)), &wanted, 1e-6);
    assert_near(&values(a.matmul(&b.own())), &wanted, 1e-6);
    let with_bias: Vec<f32> = wanted.iter().enumerate().map(|(i, x)| x + z[i % 4]).collect();
    assert_near(&values(a.addmm(c, b)), &with_bias, 1e-6);
    assert_eq!(a.expand_dims(0).broadcast_to(&[5, 2, 3]).matmul(b).shape(), [5, 2, 4]);
    let half = a.as_type(DType::Bf16).matmul(b.as_type(DType::Bf16));
    assert_eq!(half.dtype(), DType::Bf16);
    assert_near(&values(half.as_type(DType::F32)), &wanted, 0.05);
}

#[test]
fn norms_are_their_formulas() {
    let mlx = mlx();
    let s = mlx.scope();
    let (x, w, b) = (numbers(12, 4), numbers(6, 5), numbers(6, 6));
    let a = s.array(&x, &[2, 6]);
    let (weight, bias) = (s.array(&w, &[6]).own(), s.array(&b, &[6]).own());
    let each = |f: &dyn Fn(&[f32], usize) -> f32| -> Vec<f32> {
        x.chunks(6).flat_map(|row| (0..6).map(|i| f(row, i)).collect::<Vec<_>>()).collect()
    };
    let rms = |row: &[f32]| (row.iter().map(|x| x * x).sum::<f32>() / 6.0 + 1e-5).sqrt();
    assert_near(&values(a.rms_norm(&weight, 1e-5)), &each(&|row, i| row[i] / rms(row) * w[i]), 1e-5);
    assert_near(&values(a.rms_norm(None, 1e-5)), &each(&|row, i| row[i] / rms(row)), 1e-5);
    let centred = |row: &[f32], i: usize| {
        let mean = row.iter().sum::<f32>() / 6.0;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 6.0;
        (row[i] - mean) / (variance + 1e-5).sqrt()
    };
    assert_near(&values(a.layer_norm(&weight, &bias, 1e-5)), &each(&|row, i| centred(row, i) * w[i] + b[i]), 1e-5);
    assert_near(&values(a.layer_norm(&weight, None, 1e-5)), &each(&|row, i| centred(row, i) * w[i]), 1e-5);
    assert_near(&values(a.layer_norm(None, &bias, 1e-5)), &each(&|row, i| centred(row, i) + b[i]), 1e-5);
    assert_near(&values(a.layer_norm(None, None, 1e-5)), &each(&centred), 1e-5);
}

/// Rotary positions of `[rows, dim]`, of which the first row is at `first`: halves, or neighbours, turned together.
fn turned(x: &[f32], dim: usize, first: usize, frequencies: &[f32], traditional: bool) -> Vec<f32> {
    let mut out = x.to_vec();
    for (row, out) in out.chunks_mut(dim).enumerate() {
        for (i, frequency) in frequencies.iter().enumerate() {
            let (p, q) = if traditional { (2 * i, 2 * i + 1) } else { (i, i + frequencies.len()) };
            let (sin, cos) = ((first + row) as f32 * frequency).sin_cos();
            (out[p], out[q]) =
                (x[row * dim + p] * cos - x[row * dim + q] * sin, x[row * dim + p] * sin + x[row * dim + q] * cos);
        }
    }
    out
}

#[test]
fn positions_turn_rows() {
    let mlx = mlx();
    let s = mlx.scope();
    let x = numbers(2 * 3 * 6, 7);
    let a = s.array(&x, &[2, 1, 3, 6]);
    let frequencies: Vec<f32> = (0..2).map(|i| 100f32.powf(-(i as f32) / 2.0)).collect();
    for traditional in [false, true] {
        let wanted: Vec<f32> = x.chunks(18).flat_map(|one| turned(one, 6, 5, &frequencies, traditional)).collect();
        let got = a.rope(4, traditional, Some(100.0), 1.0, RopeOffset::At(5), None);
        assert_near(&values(got), &wanted, 1e-5);
    }
    let offsets = s.array(&[5i32, 2], &[2]);
    let wanted: Vec<f32> =
        x.chunks(18).zip([5, 2]).flat_map(|(one, at)| turned(one, 6, at, &frequencies, false)).collect();
    assert_near(&values(a.rope(4, false, Some(100.0), 1.0, RopeOffset::Each(offsets), None)), &wanted, 1e-5);
    let wavelengths = s.array(&frequencies.iter().map(|f| 1.0 / f).collect::<Vec<_>>(), &[2]).own();
    let by_freqs = a.rope(4, false, None, 1.0, RopeOffset::Each(offsets), Some(&wavelengths));
    assert_near(&values(by_freqs), &wanted, 1e-5);
}

/// Attention of one head: [l, dim] to [s, dim], of which each query sees what `seen` says.
fn attended(q: &[f32], k: &[f32], v: &[f32], dim: usize, scale: f32, seen: impl Fn(usize, usize) -> bool) -> Vec<f32> {
    let mut out = Vec::new();
    for (i, q) in q.chunks(dim).enumerate() {
        let score = |(j, k): (usize, &[f32])| {
            let dot: f32 = q.iter().zip(k).map(|(q, k)| q * k).sum();
            if seen(i, j) { (dot * scale).exp() } else { 0.0 }
        };
        let weights: Vec<f32> = k.chunks(dim).enumerate().map(score).collect();
        let sum: f32 = weights.iter().sum();
        out.extend((0..dim).map(|d| weights.iter().zip(v.chunks(dim)).map(|(w, v)| w / sum * v[d]).sum::<f32>()));
    }
    out
}

#[test]
fn attention_is_its_formula() {
    let mlx = mlx();
    let s = mlx.scope();
    let (length, source, dim, scale) = (3, 5, 4, 0.5);
    let (q, k, v) = (numbers(2 * length * dim, 8), numbers(source * dim, 9), numbers(source * dim, 10));
    // Two heads of queries share one of keys.
    let queries = s.array(&q, &[1, 2, length, dim]);
    let (keys, vals) = (s.array(&k, &[1, 1, source, dim]), s.array(&v, &[1, 1, source, dim]));
    let wanted = |seen: &dyn Fn(usize, usize) -> bool| -> Vec<f32> {
        q.chunks(length * dim).flat_map(|q| attended(q, &k, &v, dim, scale, seen)).collect()
    };
    assert_near(&values(queries.attention(keys, vals, scale, Mask::None)), &wanted(&|_, _| true), 1e-5);
    let causal = |i: usize, j: usize| j <= source - length + i;
    assert_near(&values(queries.attention(keys, vals, scale, Mask::Causal)), &wanted(&causal), 1e-5);
    let seen: Vec<bool> = (0..length * source).map(|at| causal(at / source, at % source)).collect();
    let mask = s.array(&seen, &[length, source]);
    assert_near(&values(queries.attention(keys, vals, scale, Mask::Array(mask))), &wanted(&causal), 1e-5);
    let added = mask.select(0.0, f32::NEG_INFINITY);
    assert_near(&values(queries.attention(keys, vals, scale, Mask::Array(added))), &wanted(&causal), 1e-5);
    let owned = (keys.own(), vals.own());
    assert_near(&values(queries.attention(&owned.0, &owned.1, scale, Mask::Causal)), &wanted(&causal), 1e-5);
}

/// The numbers that packed words stand for.
fn unpacked(
    s: &Scope<'_>,
    words: Array<'_>,
    scales: Array<'_>,
    biases: Array<'_>,
    group: usize,
    bits: u32,
) -> Vec<f32> {
    s.eval([words, scales, biases]).unwrap();
    let (words, scales, biases) =
        (words.data::<u32>().unwrap(), scales.data::<f32>().unwrap(), biases.data::<f32>().unwrap());
    let count = words.len() * 32 / bits as usize;
    let bit = |at: usize| words[at / 32] >> (at % 32) & 1;
    let word = |i: usize| (0..bits as usize).map(|b| bit(i * bits as usize + b) << b).sum::<u32>();
    (0..count).map(|i| word(i) as f32 * scales[i / group] + biases[i / group]).collect()
}

#[test]
fn matrices_are_quantised_and_multiplied_so() {
    let mlx = mlx();
    let s = mlx.scope();
    for (group, bits) in [(32, 4), (64, 8), (32, 2), (64, 6), (32, 3), (128, 5)] {
        let (w, x) = (numbers(8 * 128, 11), numbers(2 * 128, 12));
        let (matrix, rows) = (s.array(&w, &[8, 128]), s.array(&x, &[2, 128]));
        let [words, scales, biases] = matrix.quantize(group, bits);
        let there = unpacked(&s, words, scales, biases, group as usize, bits as u32);
        assert_near(&values(words.dequantize(scales, biases, group, bits)), &there, 1e-6);
        let most = there.iter().zip(&w).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(most < 2.0 / 2f32.powi(bits) * 1.1, "{bits} bits: off by {most}");
        let (words, scales, biases) = (words.own(), scales.own(), biases.own());
        let got = rows.quantized_matmul(&words, &scales, &biases, true, group, bits);
        let transposed: Vec<f32> = (0..128 * 8).map(|i| there[i % 8 * 128 + i / 8]).collect();
        assert_near(&values(got), &product(&x, &transposed, [2, 128, 8]), 1e-4);
    }
}

#[test]
fn arrays_of_nothing_are_arrays() {
    let mlx = mlx();
    let s = mlx.scope();
    let none = s.array::<f32>(&[], &[0, 3]);
    let more = (none + 1.0).exp().reshape(&[3, 0]);
    let (both, product) = (s.concat(&[none, none], 0), none.t().matmul(none));
    s.eval([more, both, product]).unwrap();
    assert_eq!((more.data::<f32>().unwrap(), both.shape()), (&[][..], &[0, 3][..]));
    assert_eq!(product.data::<f32>().unwrap(), [0.0; 9]);
    assert!(none.sum(0, false).check().unwrap_err().to_string().contains("nothing along its axes"));
}
