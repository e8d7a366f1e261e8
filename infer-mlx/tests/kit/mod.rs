//! What the tests of this crate share.
#![allow(dead_code, reason = "each test uses a part of it")]

use infer_mlx::{Array, LoadOptions, Mlx};

/// The library, with a stream of this thread.
pub(crate) fn mlx() -> Mlx {
    Mlx::load(&LoadOptions::new()).unwrap()
}

/// The elements of an array, computed.
#[track_caller]
pub(crate) fn values(array: Array<'_>) -> Vec<f32> {
    let array = array.contiguous();
    array.scope().eval([array]).unwrap();
    array.data::<f32>().unwrap().to_vec()
}

/// That two lists are the same, but for rounding.
#[track_caller]
pub(crate) fn assert_near(got: &[f32], wanted: &[f32], most: f32) {
    assert_eq!(got.len(), wanted.len(), "{got:?} and {wanted:?}");
    for (index, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        let near =
            (got - wanted).abs() <= most * wanted.abs().max(1.0) || got == wanted || got.is_nan() && wanted.is_nan();
        assert!(near, "element {index}: {got}, and it is {wanted}");
    }
}

/// Numbers that look like any, the same each time.
pub(crate) fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        })
        .collect()
}
