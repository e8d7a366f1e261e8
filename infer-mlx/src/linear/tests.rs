use super::*;
use crate::{DType, LoadOptions, Mlx, Scope};

const ROWS: usize = 24;
const COLUMNS: usize = 256;

/// Whole numbers that look like any, the same each time.
fn words(count: usize) -> Vec<u32> {
    let mut state = 1_u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    (0..count).map(|_| word()).collect()
}

fn numbers(count: usize) -> Vec<f32> {
    words(count).into_iter().map(|word| word as f32 / 2_147_483_648.0 - 1.0).collect()
}

fn weight<T: crate::Element>(scope: &Scope<'_>, data: &[T], shape: &[usize]) -> Weight {
    Weight::of(scope.array(data, shape).own())
}

/// What the bits of a row say: number after number, the lowest bits first.
fn unpacked(packed: &[u32], bits: usize) -> Vec<u32> {
    let bit = |at: usize| packed[at / 32] >> (at % 32) & 1;
    let number = |place: usize| (0..bits).map(|low| bit(place * bits + low) << low).sum();
    (0..packed.len() * 32 / bits).map(number).collect()
}

fn values(array: Array<'_>) -> Vec<f32> {
    let array = array.as_type(DType::F32).contiguous();
    array.scope().eval([array]).unwrap();
    array.data::<f32>().unwrap().to_vec()
}

#[track_caller]
fn near(found: &[f32], wanted: &[f32], what: &str) {
    assert_eq!(found.len(), wanted.len());
    let most = wanted.iter().map(|number| number.abs()).fold(0.0, f32::max);
    let apart = found.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart <= 1e-5 * most, "{what}: {apart} apart, of numbers up to {most}");
}

/// A quantised matrix, and the same one in floating point.
fn both(scope: &Scope<'_>, affine: Affine) -> (Quantized, Vec<f32>) {
    let (row, groups) = affine.row(COLUMNS).unwrap();
    let (packed, scales, biases) = (words(ROWS * row), numbers(ROWS * groups), numbers(2 * ROWS * groups));
    let biases = &biases[ROWS * groups..];
    let of_row = |row_at: usize| {
        let quants = unpacked(&packed[row_at * row..][..row], affine.bits);
        let group = move |column: usize| row_at * groups + column / affine.group_size;
        let number = |(column, quant): (usize, u32)| scales[group(column)] * quant as f32 + biases[group(column)];
        quants.into_iter().enumerate().map(number).collect::<Vec<_>>()
    };
    let plain = (0..ROWS).flat_map(of_row).collect();
    let quantized = Quantized {
        packed: weight(scope, &packed, &[ROWS, row]),
        scales: weight(scope, &scales, &[ROWS, groups]),
        biases: weight(scope, biases, &[ROWS, groups]),
        affine,
    };
    (quantized, plain)
}

#[test]
fn quantised_matrices_are_what_their_bits_say() {
    let mlx = Mlx::load(&LoadOptions::new()).unwrap();
    for bits in [2, 3, 4, 5, 6, 8] {
        for group_size in [32, 64, 128] {
            let scope = mlx.scope();
            let (quantized, plain) = both(&scope, Affine { group_size, bits });
            let what = format!("{bits} bits in groups of {group_size}");
            let table = weight(&scope, &plain, &[ROWS, COLUMNS]);
            let transposed = Weight::of(scope.enter(table.owned()).t().own());
            let bias = weight(&scope, &numbers(ROWS), &[ROWS]);
            let x = scope.array(&numbers(5 * COLUMNS), &[5, COLUMNS]);
            for bias in [None, Some(bias)] {
                let of = |matrix| Linear { matrix, bias: bias.clone() }.forward(x);
                let (found, wanted) = (of(Matrix::Quantized(quantized.clone())), of(Matrix::Float(transposed.clone())));
                near(&values(found), &values(wanted), &what);
            }
            let tokens = scope.array(&[3_u32, 0, 23, 3], &[4]);
            let matrix = Matrix::Quantized(quantized.clone());
            let rows = Embedding { rows: Rows::Quantized(quantized), matrix }.forward(tokens);
            let wanted = [3, 0, 23, 3].map(|row| &plain[row * COLUMNS..][..COLUMNS]).concat();
            near(&values(rows), &wanted, &what);
        }
    }
}
