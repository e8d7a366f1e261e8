//! Every operation is the one its name says. Those that are chosen by a number stand in lists that only agree if somebody has looked.

use infer_sys::mlx::bindings::*;

use crate::kit::{Array, Failure, Stream, api, check, f32s, from, i32s, made, shape};

type OfOne<'f> = &'f dyn Fn(f32) -> f32;
type OfIntegers = fn(i32, i32) -> i32;
type OfTwo<'f> = &'f dyn Fn(f32, f32) -> f32;

fn close(found: &[f32], wanted: &[f32], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}: {found:?}");
    for (found, wanted) in found.iter().zip(wanted) {
        let same = found == wanted
            || found.is_nan() && wanted.is_nan()
            || (found - wanted).abs() <= 1e-5 * wanted.abs().max(1.0);
        assert!(same, "{what}: {found} is not {wanted}");
    }
}

fn truth(value: bool) -> f32 {
    f32::from(u8::from(value))
}

#[test]
fn each_operation_on_one_array_is_what_it_is_called() {
    let stream = Stream::new();
    let inputs = [-1.25, 0.0, 0.375, 2.5];
    let a = f32s(&inputs, &[4]);
    let erf = |x: f32| {
        // By its series.
        let (mut term, mut sum) = (f64::from(x), f64::from(x));
        for n in 1..60 {
            term *= -f64::from(x) * f64::from(x) / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        (sum * 2.0 / std::f64::consts::PI.sqrt()) as f32
    };
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    let functions: &[(infer_mlx_unary, OfOne<'_>)] = &[
        (INFER_MLX_ABS, &f32::abs),
        (INFER_MLX_NEGATIVE, &|x| -x),
        (INFER_MLX_EXP, &f32::exp),
        (INFER_MLX_LOG, &f32::ln),
        (INFER_MLX_LOG1P, &f32::ln_1p),
        (INFER_MLX_SQRT, &f32::sqrt),
        (INFER_MLX_RSQRT, &|x| 1.0 / x.sqrt()),
        (INFER_MLX_SQUARE, &|x| x * x),
        (INFER_MLX_RECIPROCAL, &|x| 1.0 / x),
        (INFER_MLX_SIN, &f32::sin),
        (INFER_MLX_COS, &f32::cos),
        (INFER_MLX_TANH, &f32::tanh),
        (INFER_MLX_SIGMOID, &sigmoid),
        (INFER_MLX_ERF, &erf),
        (INFER_MLX_FLOOR, &f32::floor),
        (INFER_MLX_CEIL, &f32::ceil),
        (INFER_MLX_SIGN, &|x| if x == 0.0 { 0.0 } else { x.signum() }),
        (INFER_MLX_LOGICAL_NOT, &|x| truth(x == 0.0)),
        (INFER_MLX_ISNAN, &|x| truth(x.is_nan())),
        (INFER_MLX_ISFINITE, &|x| truth(x.is_finite())),
        (INFER_MLX_STOP_GRADIENT, &|x| x),
        (INFER_MLX_COPY, &|x| x),
        (INFER_MLX_SILU, &|x| x * sigmoid(x)),
        (INFER_MLX_GELU, &|x| x * (1.0 + erf(x / 2f32.sqrt())) / 2.0),
        (INFER_MLX_GELU_TANH, &|x| {
            x * (1.0 + ((2.0 / std::f32::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh()) / 2.0
        }),
    ];
    assert_eq!(functions.len(), INFER_MLX_UNARY_COUNT as usize);
    for (op, function) in functions {
        let found = stream.values(&stream.unary(*op, &a).unwrap()).unwrap();
        let wanted: Vec<f32> = inputs.iter().map(|x| function(*x)).collect();
        close(&found, &wanted, &format!("operation {op}"));
    }
    assert_eq!(stream.unary(INFER_MLX_UNARY_COUNT, &a).err().unwrap().status, INFER_MLX_ARGUMENT);
}

#[test]
fn each_operation_on_two_arrays_is_what_it_is_called() {
    let stream = Stream::new();
    let (xs, ys) = ([6.0f32, 5.0, 2.0, 0.0], [3.0f32, 2.0, 2.0, 1.0]);
    let (a, b) = (f32s(&xs, &[4]), f32s(&ys, &[4]));
    let floats: &[(infer_mlx_binary, OfTwo<'_>)] = &[
        (INFER_MLX_ADD, &|x, y| x + y),
        (INFER_MLX_SUBTRACT, &|x, y| x - y),
        (INFER_MLX_MULTIPLY, &|x, y| x * y),
        (INFER_MLX_DIVIDE, &|x, y| x / y),
        (INFER_MLX_FLOOR_DIVIDE, &|x, y| (x / y).floor()),
        (INFER_MLX_REMAINDER, &|x, y| x % y),
        (INFER_MLX_POWER, &f32::powf),
        (INFER_MLX_MAXIMUM, &f32::max),
        (INFER_MLX_MINIMUM, &f32::min),
        (INFER_MLX_LOGADDEXP, &|x, y| (x.exp() + y.exp()).ln()),
        (INFER_MLX_EQUAL, &|x, y| truth(x == y)),
        (INFER_MLX_NOT_EQUAL, &|x, y| truth(x != y)),
        (INFER_MLX_LESS, &|x, y| truth(x < y)),
        (INFER_MLX_LESS_EQUAL, &|x, y| truth(x <= y)),
        (INFER_MLX_GREATER, &|x, y| truth(x > y)),
        (INFER_MLX_GREATER_EQUAL, &|x, y| truth(x >= y)),
        (INFER_MLX_LOGICAL_AND, &|x, y| truth(x != 0.0 && y != 0.0)),
        (INFER_MLX_LOGICAL_OR, &|x, y| truth(x != 0.0 || y != 0.0)),
        (INFER_MLX_MATMUL, &|_, _| 32.0),
    ];
    for (op, function) in floats {
        let found = stream.values(&stream.binary(*op, &a, &b).unwrap()).unwrap();
        if *op == INFER_MLX_MATMUL {
            assert_eq!(found, [6.0 * 3.0 + 5.0 * 2.0 + 2.0 * 2.0]);
            continue;
        }
        let wanted: Vec<f32> = xs.iter().zip(ys).map(|(x, y)| function(*x, y)).collect();
        close(&found, &wanted, &format!("operation {op}"));
    }
    let (xs, ys) = ([6, 5, 2, 0], [3, 2, 1, 1]);
    let (a, b) = (i32s(&xs, &[4]), i32s(&ys, &[4]));
    let integers: &[(infer_mlx_binary, OfIntegers)] = &[
        (INFER_MLX_BITWISE_AND, |x, y| x & y),
        (INFER_MLX_BITWISE_OR, |x, y| x | y),
        (INFER_MLX_BITWISE_XOR, |x, y| x ^ y),
        (INFER_MLX_LEFT_SHIFT, |x, y| x << y),
        (INFER_MLX_RIGHT_SHIFT, |x, y| x >> y),
    ];
    for (op, function) in integers {
        let found = stream.values(&stream.binary(*op, &a, &b).unwrap()).unwrap();
        let wanted: Vec<f32> = xs.iter().zip(ys).map(|(x, y)| function(*x, y) as f32).collect();
        close(&found, &wanted, &format!("operation {op}"));
    }
    assert_eq!(floats.len() + integers.len(), INFER_MLX_BINARY_COUNT as usize);
    assert_eq!(stream.binary(INFER_MLX_BINARY_COUNT, &a, &b).err().unwrap().status, INFER_MLX_ARGUMENT);
}

#[test]
fn each_reduction_and_each_scan_is_what_it_is_called() {
    let stream = Stream::new();
    let a = f32s(&[2.0, 0.5, 3.0, 1.0, 0.0, 4.0], &[2, 3]);
    let sum_exp = |row: [f32; 3]| row.map(f32::exp).iter().sum::<f32>().ln();
    for (op, wanted) in [
        (INFER_MLX_SUM, [5.5, 5.0]),
        (INFER_MLX_MEAN, [5.5 / 3.0, 5.0 / 3.0]),
        (INFER_MLX_MAX, [3.0, 4.0]),
        (INFER_MLX_MIN, [0.5, 0.0]),
        (INFER_MLX_PROD, [3.0, 0.0]),
        (INFER_MLX_ALL, [1.0, 0.0]),
        (INFER_MLX_ANY, [1.0, 1.0]),
        (INFER_MLX_LOGSUMEXP, [sum_exp([2.0, 0.5, 3.0]), sum_exp([1.0, 0.0, 4.0])]),
        (INFER_MLX_ARGMAX, [2.0, 2.0]),
        (INFER_MLX_ARGMIN, [1.0, 1.0]),
    ] {
        close(&stream.values(&stream.reduce(op, &a, -1).unwrap()).unwrap(), &wanted, &format!("reduction {op}"));
    }
    assert_eq!(stream.reduce(INFER_MLX_REDUCTION_COUNT, &a, 0).err().unwrap().status, INFER_MLX_ARGUMENT);
    let row = f32s(&[2.0, 0.5, 3.0], &[3]);
    // SAFETY: handles that are not freed.
    let scan = |op| made(|out| unsafe { api().scan(out, op, row.0, 0, false, true, stream.raw()) });
    let log = |values: &[f32]| values.iter().map(|x| x.exp()).sum::<f32>().ln();
    for (op, wanted) in [
        (INFER_MLX_CUMSUM, [2.0, 2.5, 5.5]),
        (INFER_MLX_CUMPROD, [2.0, 1.0, 3.0]),
        (INFER_MLX_CUMMAX, [2.0, 2.0, 3.0]),
        (INFER_MLX_CUMMIN, [2.0, 0.5, 0.5]),
        (INFER_MLX_LOGCUMSUMEXP, [2.0, log(&[2.0, 0.5]), log(&[2.0, 0.5, 3.0])]),
    ] {
        close(&stream.values(&scan(op).unwrap()).unwrap(), &wanted, &format!("scan {op}"));
    }
    assert_eq!(scan(INFER_MLX_SCAN_COUNT).err().unwrap().status, INFER_MLX_ARGUMENT);
}

#[test]
fn shapes_and_parts_are_what_they_are_called() {
    let stream = Stream::new();
    let a = f32s(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3]);
    let s = stream.raw();
    let api = api();
    let is = |array: Result<Array, Failure>, wanted: &[i32], values: &[f32]| {
        let array = array.unwrap();
        assert_eq!(shape(&array), wanted);
        close(&stream.values(&array).unwrap(), values, "values");
    };
    // SAFETY: here and below, handles that are not freed, and lists of these lengths.
    is(made(|out| unsafe { api.reshape(out, a.0, [3, -1].as_ptr(), 2, s) }), &[3, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    // SAFETY: as above.
    is(
        made(|out| unsafe { api.transpose(out, a.0, std::ptr::null(), 0, s) }),
        &[3, 2],
        &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0],
    );
    // SAFETY: as above.
    is(
        made(|out| unsafe { api.expand_dims(out, a.0, [0].as_ptr(), 1, s) }),
        &[1, 2, 3],
        &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    );
    // SAFETY: as above.
    let part = made(|out| unsafe { api.slice(out, a.0, [1, 0].as_ptr(), [2, 9].as_ptr(), [1, 2].as_ptr(), 2, s) });
    is(part, &[1, 2], &[3.0, 5.0]);
    // SAFETY: as above.
    let nothing = made(|out| unsafe { api.slice(out, a.0, [1, 0].as_ptr(), [2, 9].as_ptr(), [1, 0].as_ptr(), 2, s) });
    assert_eq!(nothing.err().unwrap().status, INFER_MLX_ARGUMENT, "a step of 0");
    let both = [a.0.cast_const(), a.0.cast_const()];
    // SAFETY: as above.
    is(
        made(|out| unsafe { api.concatenate(out, both.as_ptr(), 2, 0, s) }),
        &[4, 3],
        &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    );
    // SAFETY: as above.
    is(
        made(|out| unsafe { api.stack(out, both.as_ptr(), 2, 0, s) }),
        &[2, 2, 3],
        &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    );
    let mut parts = [std::ptr::null_mut(); 3];
    // SAFETY: as above; two cuts make three parts.
    check(unsafe { api.split(parts.as_mut_ptr(), a.0, [1, 1].as_ptr(), 2, 1, s) }).unwrap();
    let [first, middle, last] = parts.map(Array);
    is(Ok(first), &[2, 1], &[0.0, 3.0]);
    is(Ok(middle), &[2, 0], &[]);
    is(Ok(last), &[2, 2], &[1.0, 2.0, 4.0, 5.0]);
    // SAFETY: as above.
    is(
        made(|out| unsafe { api.repeat(out, a.0, 2, 0, s) }),
        &[4, 3],
        &[0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 3.0, 4.0, 5.0],
    );
    // SAFETY: as above.
    is(made(|out| unsafe { api.tril(out, a.0, 0, s) }), &[2, 3], &[0.0, 0.0, 0.0, 3.0, 4.0, 0.0]);
    // SAFETY: as above.
    is(made(|out| unsafe { api.triu(out, a.0, 1, s) }), &[2, 3], &[0.0, 1.0, 2.0, 0.0, 0.0, 5.0]);
    // SAFETY: as above.
    is(made(|out| unsafe { api.argsort(out, a.0, -1, s) }), &[2, 3], &[0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    // SAFETY: as above.
    is(
        made(|out| unsafe { api.softmax(out, a.0, 0, true, s) }),
        &[2, 3],
        &[0.047425874, 0.047425874, 0.047425874, 0.95257413, 0.95257413, 0.95257413],
    );
    // SAFETY: as above.
    is(made(|out| unsafe { api.arange(out, 2.0, 8.0, 3.0, INFER_MLX_I32 as i32, s) }), &[2], &[2.0, 5.0]);
    for (start, stop, step) in [(0.0, 1e12, 1.0), (0.0, f64::NAN, 1.0), (0.0, 1.0, 0.0), (0.0, f64::INFINITY, 1.0)] {
        // SAFETY: as above.
        let none = made(|out| unsafe { api.arange(out, start, stop, step, INFER_MLX_F32 as i32, s) });
        assert_eq!(none.err().unwrap().status, INFER_MLX_ARGUMENT);
    }
}

#[test]
fn attention_norms_and_rotation_are_what_they_are_called() {
    let stream = Stream::new();
    let (api, s) = (api(), stream.raw());
    let x = f32s(&[3.0, 4.0], &[1, 2]);
    let weight = f32s(&[1.0, 2.0], &[2]);
    let rms = 12.5f32.sqrt();
    // SAFETY: here and below, handles that are not freed.
    let normed = made(|out| unsafe { api.rms_norm(out, x.0, weight.0, 0.0, s) }).unwrap();
    close(&stream.values(&normed).unwrap(), &[3.0 / rms, 8.0 / rms], "rms_norm");
    // SAFETY: as above; the weight and the bias may be NULL.
    let normed = made(|out| unsafe { api.layer_norm(out, x.0, std::ptr::null(), std::ptr::null(), 0.0, s) }).unwrap();
    close(&stream.values(&normed).unwrap(), &[-1.0, 1.0], "layer_norm");
    let x = f32s(&[1.0, 0.0, 1.0, 0.0], &[2, 1, 2]);
    // SAFETY: as above.
    let turned = made(|out| unsafe { api.rope(out, x.0, 2, false, 10000.0, 1.0, 2, std::ptr::null(), s) }).unwrap();
    let (sin, cos) = 2f32.sin_cos();
    close(&stream.values(&turned).unwrap(), &[cos, sin, cos, sin], "rope");
    let offsets = i32s(&[0, 1], &[2]);
    // SAFETY: as above.
    let turned = made(|out| unsafe { api.rope_at(out, x.0, 2, false, 10000.0, 1.0, offsets.0, std::ptr::null(), s) });
    let (sin, cos) = 1f32.sin_cos();
    close(&stream.values(&turned.unwrap()).unwrap(), &[1.0, 0.0, cos, sin], "rope_at");
    let q = f32s(&[1.0, 1.0], &[1, 1, 2, 1]);
    let v = f32s(&[1.0, 3.0], &[1, 1, 2, 1]);
    for (mask, wanted) in [(INFER_MLX_MASK_NONE, [2.0, 2.0]), (INFER_MLX_MASK_CAUSAL, [1.0, 2.0])] {
        // SAFETY: as above.
        let seen = made(|out| unsafe { api.attention(out, q.0, q.0, v.0, 1.0, mask, std::ptr::null(), s) }).unwrap();
        close(&stream.values(&seen).unwrap(), &wanted, "attention");
    }
    let mask = from(&[false, true, true, true], &[1, 1, 2, 2], INFER_MLX_BOOL);
    // SAFETY: as above.
    let seen = made(|out| unsafe { api.attention(out, q.0, q.0, v.0, 1.0, INFER_MLX_MASK_ARRAY, mask.0, s) }).unwrap();
    close(&stream.values(&seen).unwrap(), &[3.0, 2.0], "attention");
    for (kind, array) in
        [(INFER_MLX_MASK_ARRAY, std::ptr::null_mut()), (INFER_MLX_MASK_CAUSAL, mask.0), (7, std::ptr::null_mut())]
    {
        // SAFETY: as above.
        let none = made(|out| unsafe { api.attention(out, q.0, q.0, v.0, 1.0, kind, array, s) });
        assert_eq!(none.err().unwrap().status, INFER_MLX_ARGUMENT);
    }
}

#[test]
fn a_quantised_matrix_multiplies_as_its_numbers_do() {
    let stream = Stream::new();
    let (api, s) = (api(), stream.raw());
    let numbers: Vec<f32> = (0..64).map(|n| ((n * 7) % 16) as f32).collect();
    let w = f32s(&numbers, &[2, 32]);
    let mut parts = [std::ptr::null_mut(); 3];
    // SAFETY: here and below, handles that are not freed, and room for three.
    check(unsafe { api.quantize(parts.as_mut_ptr(), w.0, 32, 4, s) }).unwrap();
    let [words, scales, biases] = parts.map(Array);
    // SAFETY: as above.
    let back = made(|out| unsafe { api.dequantize(out, words.0, scales.0, biases.0, 32, 4, s) }).unwrap();
    close(&stream.values(&back).unwrap(), &numbers, "sixteen values in four bits");
    let x = f32s(&[1.0; 32], &[1, 32]);
    let y = made(|out| {
        // SAFETY: as above.
        unsafe { api.quantized_matmul(out, x.0, words.0, scales.0, biases.0, true, 32, 4, s) }
    });
    let sums = [numbers[..32].iter().sum(), numbers[32..].iter().sum()];
    close(&stream.values(&y.unwrap()).unwrap(), &sums, "quantized_matmul");
    // SAFETY: as above.
    let odd = made(|out| unsafe { api.quantized_matmul(out, x.0, words.0, scales.0, biases.0, true, 48, 4, s) });
    assert_eq!(odd.err().unwrap().status, INFER_MLX_EXCEPTION);
}
