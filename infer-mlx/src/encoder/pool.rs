//! From hidden states to vectors, where they are computed.

use crate::{Array, DType};
use infer_core::Pooling;

/// The vectors `[texts, numbers]` of hidden states `[texts, length, numbers]`; or the hidden states as they are, where they are wanted.
/// `mask`, `[texts, length]`, is true where there is a token; there is none where every text has the same `lengths`, `[texts, 1]`.
pub(super) fn pool<'s>(hidden: Array<'s>, pooling: Pooling, mask: Option<Array<'s>>, lengths: Array<'s>) -> Array<'s> {
    // What is behind a text's end is put out of the way.
    let masked = |out: f32| mask.map_or(hidden, |mask| mask.expand_dims(2).select(hidden, out));
    match pooling {
        Pooling::Mean => masked(0.0).sum(1, false) / lengths.as_type(DType::F32),
        Pooling::Max => masked(f32::NEG_INFINITY).max(1, false),
        Pooling::Last => {
            let last = lengths.as_type(DType::I32).expand_dims(2) - 1.0;
            let [texts, _, width] = shape(hidden);
            hidden.take_along_axis(last.broadcast_to(&[texts, 1, width]), 1).squeeze(1)
        }
        Pooling::Cls => hidden.slice(1, 0..1).squeeze(1),
        _ => hidden,
    }
}

/// The three sizes of hidden states; none where they are an error, which whoever evaluates is told.
fn shape(hidden: Array<'_>) -> [usize; 3] {
    let mut sizes = [0; 3];
    sizes.iter_mut().zip(hidden.shape()).for_each(|(size, &given)| *size = given as usize);
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoadOptions, Mlx};

    /// Two texts of three places, the second of two tokens, each of two numbers.
    const HIDDEN: [f32; 12] = [1.0, -8.0, 3.5, 2.0, -0.5, 4.0, 5.0, 7.0, -1.0, -3.0, 99.0, -99.0];

    fn pooled(pooling: Pooling, lengths: [u32; 2], masked: bool) -> Vec<f32> {
        let mlx = Mlx::load(&LoadOptions::new()).unwrap();
        let scope = mlx.scope();
        let (hidden, lengths) = (scope.array(&HIDDEN, &[2, 3, 2]), scope.array(&lengths, &[2, 1]));
        let mask = masked.then(|| scope.arange(0, 3, DType::U32).lt(lengths));
        let found = pool(hidden, pooling, mask, lengths).contiguous();
        scope.eval([found]).unwrap();
        found.data::<f32>().unwrap().to_vec()
    }

    #[test]
    fn the_rows_of_a_text_are_pooled_and_no_others() {
        for (pooling, wanted) in [
            (Pooling::Mean, [4.0 / 3.0, -2.0 / 3.0, 2.0, 2.0]),
            (Pooling::Cls, [1.0, -8.0, 5.0, 7.0]),
            (Pooling::Last, [-0.5, 4.0, -1.0, -3.0]),
            (Pooling::Max, [3.5, 4.0, 5.0, 7.0]),
        ] {
            let found = pooled(pooling, [3, 2], true);
            let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
            assert!(found.iter().zip(&wanted).all(near) && found.len() == 4, "{pooling:?}: {found:?}");
        }
        assert_eq!(pooled(Pooling::None, [3, 2], true), HIDDEN);
    }

    #[test]
    fn texts_of_one_length_need_no_mask() {
        for pooling in [Pooling::Mean, Pooling::Cls, Pooling::Last, Pooling::Max] {
            assert_eq!(pooled(pooling, [3, 3], false), pooled(pooling, [3, 3], true), "{pooling:?}");
        }
    }
}
