//! Products of matrices and attention, by the door's own kernels, against sums in 64 bits: of all sizes around those that the kernels work in, however
//! the matrices lie.

mod kit;

use infer_mlx::{Array, DType, Mask, Scope};
use kit::{mlx, numbers, values};

/// Numbers of a shape, and the same as the sums below take them.
fn matrix<'s>(scope: &'s Scope<'_>, shape: &[usize], seed: u32) -> (Array<'s>, Vec<f64>) {
    let all = numbers(shape.iter().product(), seed);
    (scope.array(&all, shape), all.into_iter().map(f64::from).collect())
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let apart = found.iter().zip(expected).map(|(&a, &b)| (f64::from(a) - b).abs()).fold(0.0, f64::max);
    assert!(apart < 2e-5, "{what}: {apart} apart");
}

/// `a` of `rows` by `depth`, `b` of `depth` by `columns`.
fn product(a: &[f64], b: &[f64], [rows, depth, columns]: [usize; 3]) -> Vec<f64> {
    let of = |i: usize, j: usize| (0..depth).map(|k| a[i * depth + k] * b[k * columns + j]).sum::<f64>();
    (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))).map(|(i, j)| of(i, j)).collect()
}

fn transposed(b: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|j| (0..rows).map(move |i| b[i * columns + j])).collect()
}

#[test]
fn of_all_sizes_and_orders() {
    let mlx = mlx();
    let sizes = [1, 2, 3, 4, 5, 6, 7, 13, 97].into_iter().flat_map(|rows| [(rows, 1), (rows, 8), (rows, 35)]);
    for (rows, depth) in sizes {
        for columns in [1, 3, 4, 5, 16, 18, 64, 83] {
            let (scope, what) = (mlx.scope(), format!("{rows} by {depth} by {columns}"));
            let (a, of_a) = matrix(&scope, &[rows, depth], 1);
            let (b, of_b) = matrix(&scope, &[depth, columns], 2);
            let (stored, of_stored) = matrix(&scope, &[columns, depth], 3);
            let size = [rows, depth, columns];
            assert_close(&values(a.matmul(b)), &product(&of_a, &of_b, size), &what);
            let turned = transposed(&of_stored, columns, depth);
            assert_close(
                &values(a.matmul(stored.t())),
                &product(&of_a, &turned, size),
                &format!("{what}, stored the other way"),
            );
            // As a part of a wider matrix; with neither rows nor columns side by side; of several batches; itself a view.
            let (wide, of_wide) = matrix(&scope, &[depth, columns + 3], 4);
            let part: Vec<_> = of_wide.chunks(columns + 3).flat_map(|row| row[2..columns + 2].to_vec()).collect();
            let end = columns as i32 + 2;
            assert_close(
                &values(a.matmul(wide.slice(-1, 2..end))),
                &product(&of_a, &part, size),
                &format!("{what}, a part"),
            );
            let (deep, of_deep) = matrix(&scope, &[depth, columns, 2], 5);
            let every: Vec<_> = of_deep.chunks(2).map(|pair| pair[1]).collect();
            let second = deep.slice(-1, 1..2).reshape(&[depth as i32, columns as i32]);
            assert_close(&values(a.matmul(second)), &product(&of_a, &every, size), &format!("{what}, every other"));
            let batches = a.reshape(&[1, rows as i32, depth as i32]).repeat(2, 0).matmul(b);
            assert_eq!(batches.shape(), [2, rows as i32, columns as i32]);
            let twice = [product(&of_a, &of_b, size), product(&of_a, &of_b, size)].concat();
            assert_close(&values(batches), &twice, &format!("{what}, twice"));
            let (turned, of_turned) = matrix(&scope, &[depth, rows], 6);
            let expected = product(&transposed(&of_turned, depth, rows), &of_b, size);
            assert_close(&values(turned.t().matmul(b)), &expected, &format!("{what}, a view"));
        }
    }
}

/// The numbers of a matrix of few bits are those that it is unpacked to, wherever it lies.
#[test]
fn of_matrices_in_few_bits() {
    let mlx = mlx();
    for (bits, group) in [2, 3, 4, 5, 6, 8].into_iter().flat_map(|bits| [(bits, 32), (bits, 64), (bits, 128)]) {
        for (rows, columns) in [(1, 1), (1, 5), (2, 4), (7, 6), (97, 3)] {
            let (scope, depth) = (mlx.scope(), 3 * group as usize);
            let what = format!("{rows} by {depth} by {columns}, {bits} bits in groups of {group}");
            let (x, of_x) = matrix(&scope, &[rows, depth], 1);
            let matrix = matrix(&scope, &[columns, depth], 2).0;
            let parts = matrix.quantize(group, bits);
            let [words, scales, biases] = parts;
            let numbers: Vec<f64> =
                values(words.dequantize(scales, biases, group, bits)).into_iter().map(f64::from).collect();
            let expected = product(&of_x, &transposed(&numbers, columns, depth), [rows, depth, columns]);
            let times = |x: Array<'_>, [words, scales, biases]: [Array<'_>; 3]| {
                values(x.quantized_matmul(&words.own(), &scales.own(), &biases.own(), true, group, bits))
            };
            assert_close(&times(x, parts), &expected, &what);
            let batches = times(x.reshape(&[1, rows as i32, depth as i32]).repeat(2, 0), parts);
            assert_close(&batches, &[&expected[..], &expected].concat(), &format!("{what}, twice"));
            // Each a part of a wider one, and rows that are stored the other way round.
            let part = |a: Array<'_>| {
                let width = a.shape()[1];
                scope.concat(&[a, a], 1).slice(1, width..2 * width)
            };
            assert_close(&times(part(x), parts.map(part)), &expected, &format!("{what}, parts"));
            assert_close(&times(x.t().contiguous().t(), parts), &expected, &format!("{what}, the other way"));
        }
    }
}

/// What is no number stays so, and what is infinite; shapes that do not fit are an error.
#[test]
fn of_numbers_that_are_none() {
    let mlx = mlx();
    let scope = mlx.scope();
    let mut row = vec![1.0_f32; 40];
    row[17] = f32::NAN;
    let (a, b) = (scope.array(&[row, vec![1.0; 40]].concat(), &[2, 40]), scope.ones(&[40, 5], DType::F32));
    let found = values(a.matmul(b));
    assert!(found[..5].iter().all(|number| number.is_nan()) && found[5..].iter().all(|&number| number == 40.0));
    let infinite = scope.full(f32::INFINITY, &[5, 40], DType::F32);
    assert!(values(b.t().matmul(infinite.t())).iter().all(|&number| number == f32::INFINITY));
    let error = a.matmul(a).check().unwrap_err();
    assert!(error.to_string().contains("matmul of float32[2, 40]"), "{error}");
    assert!(
        values(scope.zeros(&[3, 0], DType::F32).matmul(scope.zeros(&[0, 2], DType::F32)))
            .iter()
            .all(|&zero| zero == 0.0)
    );
}

/// Queries, keys and values of one batch: their counts, heads of queries, heads of keys, numbers of a head.
struct Sizes {
    length: usize,
    source: usize,
    heads: usize,
    shared: usize,
    dim: usize,
}

/// What attention is, by its formula. `sees` says which query sees which key.
fn attended(
    q: &[f64],
    k: &[f64],
    v: &[f64],
    sizes: &Sizes,
    scale: f64,
    sees: impl Fn(usize, usize) -> bool,
) -> Vec<f64> {
    let Sizes { length, source, heads, shared, dim } = *sizes;
    let mut out = Vec::new();
    for (head, i) in (0..heads).flat_map(|head| (0..length).map(move |i| (head, i))) {
        let of_keys = head / (heads / shared) * source;
        let dot =
            |j: usize| (0..dim).map(|d| q[(head * length + i) * dim + d] * k[(of_keys + j) * dim + d]).sum::<f64>();
        let weights: Vec<f64> = (0..source).map(|j| if sees(i, j) { (scale * dot(j)).exp() } else { 0.0 }).collect();
        let sum: f64 = weights.iter().sum();
        let value = |d: usize| (0..source).map(|j| weights[j] / sum * v[(of_keys + j) * dim + d]).sum::<f64>();
        out.extend((0..dim).map(value));
    }
    out
}

#[test]
fn attention_is_its_formula() {
    let mlx = mlx();
    for (length, source) in [(1, 1), (1, 37), (5, 5), (5, 60), (50, 50), (97, 130)] {
        for (heads, shared, dim) in [(1, 1, 16), (4, 2, 24), (6, 2, 7)] {
            let sizes = Sizes { length, source, heads, shared, dim };
            let (scope, what) = (mlx.scope(), format!("{length} to {source}, {heads} heads to {shared} of {dim}"));
            let (q, of_q) = matrix(&scope, &[1, heads, length, dim], 1);
            let (k, of_k) = matrix(&scope, &[1, shared, source, dim], 2);
            let (v, of_v) = matrix(&scope, &[1, shared, source, dim], 3);
            let expected = |sees: &dyn Fn(usize, usize) -> bool| attended(&of_q, &of_k, &of_v, &sizes, 1.5, sees);
            assert_close(&values(q.attention(k, v, 1.5, Mask::None)), &expected(&|_, _| true), &what);
            let causal = |i: usize, j: usize| j <= source - length + i;
            assert_close(&values(q.attention(k, v, 1.5, Mask::Causal)), &expected(&causal), &what);
            // The first and the last key, and every third.
            let some = |i: usize, j: usize| j == 0 || j + 1 == source || (i + j).is_multiple_of(3);
            let mask: Vec<bool> = (0..length).flat_map(|i| (0..source).map(move |j| some(i, j))).collect();
            let mask = scope.array(&mask, &[length, source]);
            assert_close(&values(q.attention(k, v, 1.5, Mask::Array(mask))), &expected(&some), &what);
            // Rows that are further apart, as in a cache, and heads beside each other, as layers have them.
            let cache = |x: Array<'_>| scope.concat(&[x, scope.ones(&[1, shared, 9, dim], DType::F32)], 2);
            let end = source as i32;
            let (k, v) = (cache(k).slice(2, 0..end), cache(v).slice(2, 0..end));
            let beside = q.transpose(&[0, 2, 1, 3]).contiguous().transpose(&[0, 2, 1, 3]);
            assert_close(&values(beside.attention(k, v, 1.5, Mask::Causal)), &expected(&causal), &what);
            let sideways = q.transpose(&[0, 1, 3, 2]).contiguous().transpose(&[0, 1, 3, 2]);
            assert_close(&values(sideways.attention(k, v, 1.5, Mask::None)), &expected(&|_, _| true), &what);
        }
    }
}

/// Scores of any size have weights that add up to 1.
#[test]
fn attention_of_large_scores() {
    let mlx = mlx();
    let scope = mlx.scope();
    let q = scope.full(100.0, &[1, 1, 1, 16], DType::F32);
    let keys: Vec<f32> = (0..20).flat_map(|j| [if j == 7 { 9.0 } else { -9.0 }; 16]).collect();
    let k = scope.array(&keys, &[1, 1, 20, 16]);
    let v = scope.arange(0, 20, DType::F32).reshape(&[1, 1, 20, 1]);
    assert_eq!(values(q.attention(k, v, 1.0, Mask::None)), [7.0]);
    let nothing = k * f32::NAN;
    assert!(values(q.attention(nothing, v, 1.0, Mask::None))[0].is_nan());
}

/// Whatever the scale: who sees no key has the mean of all values, as MLX has it for masks of four dimensions.
#[test]
fn attention_to_nothing_is_the_mean() {
    let mlx = mlx();
    let scope = mlx.scope();
    let part = |shape: &[usize], seed| matrix(&scope, shape, seed).0;
    let (q, k, v) = (part(&[1, 2, 3, 5], 1), part(&[1, 2, 19, 5], 2), part(&[1, 2, 19, 4], 3));
    let mask: Vec<bool> = (0..3 * 19).map(|place| place / 19 != 1 && place != 4).collect();
    for scale in [0.5, 0.0, -0.5] {
        let ours = values(q.attention(k, v, scale, Mask::Array(scope.array(&mask, &[3, 19]))));
        let theirs = values(q.attention(k, v, scale, Mask::Array(scope.array(&mask, &[1, 1, 3, 19]))));
        assert_close(&ours, &theirs.into_iter().map(f64::from).collect::<Vec<_>>(), &format!("scale {scale}"));
        assert_close(&ours[4..8], &values(v.mean(2, false))[..4].iter().map(|&x| x.into()).collect::<Vec<_>>(), "mean");
    }
}

/// What a processor with less than this one takes: all of this again in a process that is told to use no more.
#[test]
fn on_processors_with_less() {
    const VARIABLE: &str = "INFER_MLX_INSTRUCTIONS";
    if std::env::var_os(VARIABLE).is_some() {
        return;
    }
    for most in ["avx2", "none"] {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = test_kit::child::output(command.env(VARIABLE, most));
        assert!(output.status.success(), "{most}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
