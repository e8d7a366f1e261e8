//! What the operators are, in `f64` and as plainly as can be.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Numbers that are the same each time.
pub(crate) fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 * 8.0 - 4.0
    };
    (0..count).map(|_| next()).collect()
}

pub(crate) fn size(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// That the two are the same but for so much.
#[track_caller]
pub(crate) fn assert_near(found: &[f32], wanted: &[f64], most: f64, what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (at, (&found, &wanted)) in found.iter().zip(wanted).enumerate() {
        let (found, bound) = (f64::from(found), most * wanted.abs().max(1.0));
        let same = (found - wanted).abs() <= bound || found == wanted || found.is_nan() && wanted.is_nan();
        assert!(same, "{what}: {found} is not {wanted} at {at}");
    }
}

/// A tensor in a larger shape.
pub(crate) fn spread(numbers: &[f32], shape: &[usize], common: &[usize]) -> Vec<f64> {
    let lacking = common.len() - shape.len();
    let of = |mut at: usize| {
        let (mut index, mut step) = (0, 1);
        for (axis, &size) in common.iter().enumerate().rev() {
            if let Some(&own) = axis.checked_sub(lacking).and_then(|axis| shape.get(axis)) {
                index += if own == 1 { 0 } else { at % size * step };
                step *= own;
            }
            at /= size;
        }
        f64::from(numbers[index])
    };
    (0..size(common)).map(of).collect()
}

pub(crate) fn gelu(x: &[f32], bias: &[f32]) -> Vec<f64> {
    let of = |(&x, &bias): (&f32, &f32)| {
        let u = f64::from(x + bias);
        if u == f64::INFINITY { u } else { u / 2.0 * (1.0 + erf(u * FRAC_1_SQRT_2)) }
    };
    x.iter().zip(bias.iter().cycle()).map(of).collect()
}

/// A sum in which nothing is taken away.
fn erf(t: f64) -> f64 {
    if t.abs() > 6.0 {
        return t.signum();
    }
    let (mut term, mut sum) = (t, t);
    for n in 1..200 {
        term *= 2.0 * t * t / f64::from(2 * n + 1);
        sum += term;
    }
    2.0 / PI.sqrt() * (-t * t).exp() * sum
}

/// `x` and `residual` in the shape that they are together.
pub(crate) fn normalization([x, residual]: [&[f64]; 2], [bias, scale, shift]: [&[f32]; 3], epsilon: f32) -> Vec<f64> {
    let width = bias.len();
    let row = |(x, residual): (&[f64], &[f64])| {
        let u: Vec<f64> = (0..width).map(|at| x[at] + f64::from(bias[at]) + residual[at]).collect();
        let mean = u.iter().sum::<f64>() / width as f64;
        let variance = u.iter().map(|u| (u - mean).powi(2)).sum::<f64>() / width as f64;
        let part = |(at, u): (usize, &f64)| {
            (u - mean) / (variance + f64::from(epsilon)).sqrt() * f64::from(scale[at]) + f64::from(shift[at])
        };
        u.iter().enumerate().map(part).collect::<Vec<_>>()
    };
    x.chunks(width).zip(residual.chunks(width)).flat_map(row).collect()
}

/// `x` and `mask` in the shape that they are together.
pub(crate) fn softmax(x: &[f64], mask: &[f64], width: usize) -> Vec<f64> {
    let row = |(x, mask): (&[f64], &[f64])| {
        let sums: Vec<f64> = x.iter().zip(mask).map(|(x, mask)| x + mask).collect();
        let most = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exps: Vec<f64> = sums.iter().map(|sum| (sum - most).exp()).collect();
        let all: f64 = exps.iter().sum();
        exps.into_iter().map(|exp| exp / all).collect::<Vec<_>>()
    };
    x.chunks(width).zip(mask.chunks(width)).flat_map(row).collect()
}

/// `x` is of so many groups of rows.
pub(crate) fn heads(x: &[f32], bias: &[f32], [groups, rows, heads]: [usize; 3], transposed: bool) -> Vec<f64> {
    let width = bias.len();
    let size = width / heads;
    let mut y = vec![0.0; x.len()];
    for group in 0..groups {
        for row in 0..rows {
            for column in 0..width {
                let (head, at) = (column / size, column % size);
                let inner = if transposed { at * rows + row } else { row * size + at };
                let x = x[(group * rows + row) * width + column];
                y[(group * heads + head) * rows * size + inner] = f64::from(x + bias[column]);
            }
        }
    }
    y
}
