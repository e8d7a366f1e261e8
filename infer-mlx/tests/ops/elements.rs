//! What is computed of each element by itself, in every type there is.

use crate::kit::{assert_near, mlx, values};
use half::{bf16, f16};
use infer_core::ErrorKind;
use infer_mlx::{Array, DType, Element};

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
