//! What only this module can show: memory that is written in place.

use crate::{Array, DType, LoadOptions, Mlx, Scope};

fn mlx() -> Mlx {
    Mlx::load(&LoadOptions::new()).unwrap()
}

/// Memory of its own, of zeros.
fn buffer<'s>(scope: &'s Scope<'_>) -> Array<'s> {
    let buffer = scope.zeros(&[1, 4, 2], DType::F32).contiguous();
    scope.eval([buffer]).unwrap();
    buffer
}

#[test]
fn memory_that_was_handed_out_is_not_written() {
    let mlx = mlx();
    let s = mlx.scope();
    let buffer = buffer(&s);
    let data = buffer.data::<f32>().unwrap();
    let written = buffer.kv_write(s.ones(&[1, 1, 2], DType::F32), 1, 2);
    s.eval([written]).unwrap();
    assert_eq!(data, [0.0; 8]);
    assert_eq!(written.data::<f32>().unwrap(), [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn memory_that_was_written_is_not_handed_out() {
    let mlx = mlx();
    let s = mlx.scope();
    let buffer = buffer(&s);
    let written = buffer.kv_write(s.ones(&[1, 1, 2], DType::F32), 1, 2);
    s.eval([written]).unwrap();
    let part = written.slice_many(&[0, 2, 0], &[1, 4, 2]);
    let copy = part + 0.0;
    s.eval([part, copy]).unwrap();
    assert_eq!(copy.data::<f32>().unwrap(), [1.0, 1.0, 0.0, 0.0]);
    for array in [buffer, written, part] {
        let text = array.data::<f32>().unwrap_err().to_string();
        assert!(text.contains("written in place"), "{text}");
    }
    // It is in place: whoever has the buffer sees the rows.
    let seen = buffer + 0.0;
    s.eval([seen]).unwrap();
    assert_eq!(seen.data::<f32>().unwrap(), [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    assert_eq!(written.slice(1, 2..3).slice(2, 0..1).sum(1, false).check().ok(), Some(()));
}

#[test]
fn rows_that_do_not_fit_a_buffer_are_refused() {
    let mlx = mlx();
    let s = mlx.scope();
    let buffer = buffer(&s);
    for (rows, axis, offset) in [
        (s.ones(&[1, 2, 2], DType::F32), 1, 3),
        (s.ones(&[1, 2, 2], DType::F32), 1, -1),
        (s.ones(&[1, 1, 2], DType::F32), 1, i32::MAX),
        (s.ones(&[1, 1, 3], DType::F32), 1, 0),
        (s.ones(&[1, 2], DType::F32), 1, 0),
        (s.ones(&[1, 1, 2], DType::F16), 1, 0),
        (s.ones(&[1, 1, 2], DType::F32), 3, 0),
    ] {
        let text = buffer.kv_write(rows, axis, offset).check().unwrap_err().to_string();
        assert!(text.starts_with("kv_write of float32[1, 4, 2] and "), "{text}");
    }
}
