//! What MLX itself would compute nonsense of, read outside memory for or end the process over: the door refuses it.

use infer_sys::mlx::bindings::*;

use crate::kit::{Array, Failure, Stream, api, data, eval, f32s, from, i32s, made};

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
