//! Rows written into the buffer of keys or values of a sequence: whose memory changes with that, and whose must not.

use infer_sys::mlx::bindings::*;

use crate::kit::{Stream, api, data, eval, f32s, made, place};

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
    let before = place(&lent);
    let written = stream.kv_write(&lent, &rows, 2, 1).unwrap();
    eval(&[&written]).unwrap();
    assert_ne!(place(&written), before);
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
    let deeper = f32s(&[0.0; 4], &[1, 2, 2]);
    for (rows, axis, offset) in [
        (&last, 0, 2),
        (&last, 0, -1),
        (&last, 0, i32::MAX),
        (&last, 1, 0),
        (&last, 2, 0),
        (&bits, 0, 0),
        (&deeper, 0, 0),
    ] {
        assert_eq!(stream.kv_write(&turned, rows, axis, offset).err().unwrap().status, INFER_MLX_ARGUMENT);
    }
    assert_eq!(stream.values(&stream.kv_write(&turned, &none, 0, 2).unwrap()).unwrap(), [1.0, 3.0, 2.0, 4.0]);
}
