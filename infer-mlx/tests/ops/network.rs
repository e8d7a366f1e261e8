//! What layers are made of: products of matrices, norms, rotary positions, attention, weights in few bits.

use crate::kit::{assert_near, mlx, numbers, values};
use infer_mlx::{Array, DType, Mask, RopeOffset, Scope};

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
