//! Every operation is the one its name says. Those that are chosen by a number stand in lists that only agree if somebody has looked.

use infer_sys::mlx::bindings::*;

use crate::kit::{Array, Failure, Stream, api, data, eval, f32s, from, i32s, made, shape};

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
fn a_number_takes_the_arrays_type_and_has_to_fit_it() {
    let stream = Stream::new();
    let with = |a: &Array, b: f64, reversed: bool| {
        // SAFETY: handles that are not freed.
        made(|out| unsafe { api().binary_scalar(out, INFER_MLX_SUBTRACT, a.0, b, reversed, stream.raw()) })
    };
    let whole = i32s(&[5, 7], &[2]);
    let less = with(&whole, 2.0, false).unwrap();
    eval(&[&less]).unwrap();
    assert_eq!(data::<i32>(&less).unwrap(), [3, 5]);
    assert_eq!(stream.values(&with(&whole, 2.0, true).unwrap()).unwrap(), [-3.0, -5.0]);
    let half = from(&[0x3C00u16], &[1], INFER_MLX_F16);
    let less = with(&half, 0.5, false).unwrap();
    eval(&[&less]).unwrap();
    assert_eq!(data::<u16>(&less).unwrap(), [0x3800], "it stays in 16 bits");
    let bytes = from(&[200u8], &[1], INFER_MLX_U8);
    for (a, b) in [(&whole, 0.5), (&whole, 3e9), (&whole, f64::NAN), (&bytes, 256.0), (&bytes, -1.0), (&whole, 1e300)] {
        assert_eq!(with(a, b, false).err().unwrap().status, INFER_MLX_ARGUMENT, "{b}");
    }
    assert_eq!(stream.values(&with(&bytes, 55.0, true).unwrap()).unwrap(), [f32::from(55u8.wrapping_sub(200))]);
}

#[test]
fn integers_are_not_divided_by_what_may_be_0() {
    let stream = Stream::new();
    let (a, zero) = (i32s(&[i32::MIN, 7], &[2]), i32s(&[0, -1], &[2]));
    for op in [INFER_MLX_FLOOR_DIVIDE, INFER_MLX_REMAINDER] {
        assert_eq!(stream.binary(op, &a, &zero).err().unwrap().status, INFER_MLX_UNSUPPORTED);
        let by = |b: f64, reversed: bool| {
            // SAFETY: handles that are not freed.
            made(|out| unsafe { api().binary_scalar(out, op, a.0, b, reversed, stream.raw()) })
        };
        for (b, reversed) in [(0.0, false), (-1.0, false), (3.0, true)] {
            assert_eq!(by(b, reversed).err().unwrap().status, INFER_MLX_UNSUPPORTED, "{b}");
        }
        let wanted = if op == INFER_MLX_REMAINDER { 1 } else { 2 };
        let found = by(3.0, false).unwrap();
        eval(&[&found]).unwrap();
        assert_eq!(data::<i32>(&found).unwrap()[1], wanted);
    }
    assert_eq!(stream.binary(INFER_MLX_POWER, &a, &zero).err().unwrap().status, INFER_MLX_UNSUPPORTED, "it never ends");
    let ones = f32s(&[1.0, 0.0], &[2]);
    assert!(stream.values(&stream.binary(INFER_MLX_REMAINDER, &ones, &ones).unwrap()).unwrap()[1].is_nan());
    let times = i32s(&[0; 65536], &[65536]);
    // SAFETY: a handle that is not freed.
    let many = made(|out| unsafe { api().repeat(out, times.0, 65536, 0, stream.raw()) });
    assert_eq!(many.err().unwrap().status, INFER_MLX_MEMORY, "an axis that wraps around");
}

/// MLX divides by lengths without looking at them.
#[test]
fn where_mlx_would_divide_by_a_length_of_0_it_is_refused() {
    let stream = Stream::new();
    let (api, s) = (api(), stream.raw());
    let none = stream.full(&[2, 0], 0.0, INFER_MLX_F32).unwrap();
    let heads = stream.full(&[1, 0, 2, 4], 0.0, INFER_MLX_F32).unwrap();
    let some = stream.full(&[2, 32], 0.0, INFER_MLX_F32).unwrap();
    let mut parts = [std::ptr::null_mut(); 3];
    // SAFETY: here and below, handles that are not freed, and room for three.
    let told = [
        made(|out| unsafe { api.sort(out, none.0, -1, s) }),
        // SAFETY: as above.
        made(|out| unsafe { api.argsort(out, none.0, 0, s) }),
        // SAFETY: as above.
        made(|out| unsafe { api.argpartition(out, none.0, 0, 0, s) }),
        // SAFETY: as above.
        made(|out| unsafe { api.scan(out, INFER_MLX_CUMSUM, none.0, 1, false, true, s) }),
        // SAFETY: as above.
        made(|out| unsafe {
            api.attention(out, heads.0, heads.0, heads.0, 1.0, INFER_MLX_MASK_NONE, std::ptr::null(), s)
        }),
    ];
    for failure in told {
        assert_eq!(failure.err().unwrap().status, INFER_MLX_UNSUPPORTED);
    }
    for (group_size, bits) in [(0, 4), (-32, 4), (32, 0), (32, 9)] {
        // SAFETY: as above.
        let status = unsafe { api.quantize(parts.as_mut_ptr(), some.0, group_size, bits, s) };
        assert_eq!(status, INFER_MLX_ARGUMENT, "{group_size} {bits}");
    }
}

#[test]
fn an_index_outside_is_an_error_and_not_a_read_outside() {
    let stream = Stream::new();
    let table = f32s(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &[3, 2]);
    let rows = stream.take(&table, &i32s(&[2, 0, -1], &[3]), 0).unwrap();
    assert_eq!(stream.values(&rows).unwrap(), [4.0, 5.0, 0.0, 1.0, 4.0, 5.0]);
    // A transposed index does not lie row by row.
    let square = stream.transpose(&from(&[0u32, 1, 2, 0], &[2, 2], INFER_MLX_U32), &[1, 0]).unwrap();
    let picked = stream.take(&table, &square, 0).unwrap();
    assert_eq!(stream.values(&picked).unwrap(), [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 0.0, 1.0]);
    let outside = |failure: Result<Vec<f32>, Failure>, index: &str| {
        let failure = failure.unwrap_err();
        assert_eq!(failure.status, INFER_MLX_EXCEPTION);
        assert_eq!(failure.message, format!("index {index} of an axis of length 3"));
    };
    for index in [3, -4, i32::MAX, i32::MIN] {
        let rows = stream.take(&table, &i32s(&[0, index, 1], &[3]), 0).unwrap();
        outside(stream.values(&rows), &index.to_string());
        let wide = stream.take(&table, &from(&[i64::from(index) << 20], &[1], INFER_MLX_I64), 0).unwrap();
        outside(stream.values(&wide), &(i64::from(index) << 20).to_string());
    }
    outside(
        stream.values(&stream.take(&table, &from(&[u64::MAX], &[1], INFER_MLX_U64), 0).unwrap()),
        &u64::MAX.to_string(),
    );
    let along = i32s(&[0, 7], &[1, 2]);
    // SAFETY: handles that are not freed.
    let picked = made(|out| unsafe { api().take_along_axis(out, table.0, along.0, 0, stream.raw()) }).unwrap();
    outside(stream.values(&picked), "7");
    // SAFETY: as above.
    let put = made(|out| unsafe { api().put_along_axis(out, table.0, along.0, along.0, 0, stream.raw()) }).unwrap();
    outside(stream.values(&put), "7");
    for index in [&f32s(&[0.0], &[1]), &from(&[true], &[1], INFER_MLX_BOOL)] {
        assert_eq!(stream.take(&table, index, 0).err().unwrap().status, INFER_MLX_ARGUMENT, "no integers");
    }
    assert_eq!(stream.take(&table, &along, 2).err().unwrap().status, INFER_MLX_ARGUMENT, "no such axis");
    // The stream is as good as new.
    assert_eq!(stream.values(&stream.take(&table, &i32s(&[1], &[1]), 0).unwrap()).unwrap(), [2.0, 3.0]);
}

#[test]
fn rows_are_written_into_a_cache_without_a_copy_of_it() {
    let stream = Stream::new();
    let buffer = stream.full(&[1, 2, 4, 3], 0.0, INFER_MLX_F32).unwrap();
    eval(&[&buffer]).unwrap();
    // Heads last, as a layer makes them: the rows of one head do not lie one behind the other.
    let numbers: Vec<f32> = (1..=12).map(|n| n as f32).collect();
    let rows = stream.transpose(&f32s(&numbers, &[1, 2, 2, 3]), &[0, 2, 1, 3]).unwrap();
    let written = stream.kv_write(&buffer, &rows, 2, 1).unwrap();
    eval(&[&written]).unwrap();
    let head = |first: [f32; 3], second: [f32; 3]| [[0.0; 3], first, second, [0.0; 3]].concat();
    let wanted = [head([1.0, 2.0, 3.0], [7.0, 8.0, 9.0]), head([4.0, 5.0, 6.0], [10.0, 11.0, 12.0])].concat();
    // In the same memory: who has the old handle sees them.
    for array in [&written, &buffer] {
        let negative = stream.unary(INFER_MLX_NEGATIVE, array).unwrap();
        assert_eq!(stream.values(&stream.unary(INFER_MLX_NEGATIVE, &negative).unwrap()).unwrap(), wanted);
        assert_eq!(
            data::<f32>(array).unwrap_err().status,
            INFER_MLX_ARGUMENT,
            "what is written in place is not handed out"
        );
    }
    // And what was handed out is copied, so that nothing changes under who reads it.
    let lent = stream.full(&[1, 2, 4, 3], 0.0, INFER_MLX_F32).unwrap();
    eval(&[&lent]).unwrap();
    let place = crate::kit::place(&lent);
    let written = stream.kv_write(&lent, &rows, 2, 1).unwrap();
    eval(&[&written]).unwrap();
    assert_ne!(crate::kit::place(&written), place);
    assert_eq!((data::<f32>(&written).unwrap(), data::<f32>(&lent).unwrap()), (wanted, vec![0.0; 24]));

    // What does not lie row by row is copied first, and stays as it was.
    let turned = stream.transpose(&f32s(&[1.0, 2.0, 3.0, 4.0], &[2, 2]), &[1, 0]).unwrap();
    let last = stream.full(&[1, 2], 9.0, INFER_MLX_F32).unwrap();
    let copy = stream.kv_write(&turned, &last, 0, 1).unwrap();
    assert_eq!(stream.values(&copy).unwrap(), [1.0, 3.0, 9.0, 9.0]);
    assert_eq!(stream.values(&turned).unwrap(), [1.0, 3.0, 2.0, 4.0]);
    // A value that is repeated has the memory of one.
    let one = f32s(&[5.0], &[1, 1]);
    // SAFETY: a handle that is not freed, and a shape that is there.
    let wide = made(|out| unsafe { api().broadcast_to(out, one.0, [2, 2].as_ptr(), 2, stream.raw()) }).unwrap();
    let written = stream.kv_write(&wide, &last, 0, 0).unwrap();
    assert_eq!(stream.values(&written).unwrap(), [9.0, 9.0, 5.0, 5.0]);
    assert_eq!(stream.values(&one).unwrap(), [5.0]);
    // Half of another array is no whole buffer.
    let whole = f32s(&[0.0; 8], &[2, 2, 2]);
    // SAFETY: as above.
    let half = made(|out| unsafe {
        api().slice(out, whole.0, [0, 0, 0].as_ptr(), [2, 1, 2].as_ptr(), [1, 1, 1].as_ptr(), 3, stream.raw())
    });
    let written = stream.kv_write(&half.unwrap(), &f32s(&[7.0; 2], &[1, 1, 2]), 0, 1).unwrap();
    assert_eq!(stream.values(&written).unwrap(), [0.0, 0.0, 7.0, 7.0]);
    assert_eq!(stream.values(&whole).unwrap(), [0.0; 8]);

    // SAFETY: a handle that is not freed.
    let bits = made(|out| unsafe { api().astype(out, last.0, INFER_MLX_F16 as i32, stream.raw()) }).unwrap();
    let none = stream.full(&[0, 2], 0.0, INFER_MLX_F32).unwrap();
    for (rows, axis, offset) in [
        (&last, 0, 2),
        (&last, 0, -1),
        (&last, 0, i32::MAX),
        (&last, 1, 0),
        (&last, 2, 0),
        (&bits, 0, 0),
        (&numbers3(), 0, 0),
    ] {
        assert_eq!(stream.kv_write(&turned, rows, axis, offset).err().unwrap().status, INFER_MLX_ARGUMENT);
    }
    assert_eq!(stream.values(&stream.kv_write(&turned, &none, 0, 2).unwrap()).unwrap(), [1.0, 3.0, 2.0, 4.0]);
}

fn numbers3() -> Array {
    f32s(&[0.0; 4], &[1, 2, 2])
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
    crate::kit::check(unsafe { api.split(parts.as_mut_ptr(), a.0, [1, 1].as_ptr(), 2, 1, s) }).unwrap();
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
    crate::kit::check(unsafe { api.quantize(parts.as_mut_ptr(), w.0, 32, 4, s) }).unwrap();
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
