//! Each kernel, on all the instructions that this machine has.

pub(crate) mod reference;

use super::*;
use crate::raw::Cpu;
use reference::{assert_near, random, size, spread};

const WIDTHS: [usize; 6] = [1, 15, 16, 17, 64, 384];
const ROWS: [usize; 5] = [0, 1, 15, 16, 33];

#[test]
fn gelu_of_what_is_added() {
    for (width, rows) in WIDTHS.into_iter().flat_map(|width| ROWS.map(|rows| (width, rows))) {
        let (x, bias) = (random(rows * width, 1), random(width, 2));
        let wanted = reference::gelu(&x, &bias);
        for cpu in Cpu::all() {
            let mut y = vec![0.0; x.len()];
            cpu.run(BiasGelu { x: &x, bias: &bias, y: &mut y });
            assert_near(&y, &wanted, 1e-6, &format!("{cpu:?} {rows} x {width}"));
        }
    }
}

#[test]
fn gelu_from_end_to_end() {
    let x: Vec<f32> =
        (-120_000..=120_000).map(|step| step as f32 / 10_000.0).chain([f32::MIN, f32::MAX, -1e30, 1e30]).collect();
    let wanted = reference::gelu(&x, &[0.0]);
    for cpu in Cpu::all() {
        let mut y = vec![0.0; x.len()];
        cpu.run(BiasGelu { x: &x, bias: &vec![0.0; x.len()], y: &mut y });
        assert_near(&y, &wanted, 1.2e-6, &format!("{cpu:?}"));
        let odd = [f32::NAN, f32::INFINITY, f32::NAN];
        let mut y = [0.0; 3];
        cpu.run(BiasGelu { x: &odd, bias: &[0.5], y: &mut y });
        assert!(y[0].is_nan() && y[1] == f32::INFINITY && y[2].is_nan(), "{cpu:?} {y:?}");
    }
}

/// Shapes of `x` and of what is added, and of both together.
fn shapes(width: usize) -> Vec<[Vec<usize>; 3]> {
    vec![
        [vec![2, 3, width], vec![2, 3, width], vec![2, 3, width]],
        [vec![2, 3, 4, width], vec![2, 1, 1, width], vec![2, 3, 4, width]],
        [vec![2, 3, 4, width], vec![2, 1, 4, width], vec![2, 3, 4, width]],
        [vec![5, width], vec![width], vec![5, width]],
        [vec![width], vec![17, 1, width], vec![17, 1, width]],
        [vec![3, 1, width], vec![1, 6, 1], vec![3, 6, width]],
        [vec![4, 1], vec![2, 1, width], vec![2, 4, width]],
        [vec![0, 3, width], vec![1, 3, width], vec![0, 3, width]],
        [vec![1, width], vec![1], vec![1, width]],
    ]
}

/// Whole, and in parts as threads would have it.
fn in_parts(cpu: Cpu, common: &[usize], part: impl Fn(Cpu, usize, &mut [f32])) -> Vec<f32> {
    let width = common[common.len() - 1];
    let (mut whole, mut parts) = (vec![0.0; size(common)], vec![0.0; size(common)]);
    part(cpu, 0, &mut whole);
    for (number, y) in parts.chunks_mut(3 * width).enumerate() {
        part(cpu, number * 3, y);
    }
    assert_eq!(
        whole.iter().map(|y| y.to_bits()).collect::<Vec<_>>(),
        parts.iter().map(|y| y.to_bits()).collect::<Vec<_>>()
    );
    whole
}

#[test]
fn normalization_of_what_is_added() {
    for [x_shape, other, common] in WIDTHS.into_iter().flat_map(shapes) {
        let width = common[common.len() - 1];
        let (x, residual) = (random(size(&x_shape), 1), random(size(&other), 2));
        let [bias, scale, shift] = [3, 4, 5].map(|seed| random(width, seed));
        let spreads = [&spread(&x, &x_shape, &common)[..], &spread(&residual, &other, &common)[..]];
        let wanted = reference::normalization(spreads, [&bias, &scale, &shift], 1e-5);
        let shapes = Broadcast::new([&x_shape, &other]).unwrap();
        assert!(shapes.shape().eq(common.iter().copied()) && shapes.width() == width);
        for cpu in Cpu::all() {
            let y = in_parts(cpu, &common, |cpu, first, y| {
                let (bias, scale, shift, shapes) = (&bias, &scale, &shift, &shapes);
                let (x, residual, epsilon) = (&x, &residual, 1e-5);
                cpu.run(AddNormalization { x, bias, residual, scale, shift, epsilon, shapes, first, y });
            });
            assert_near(&y, &wanted, 3e-6, &format!("{cpu:?} {x_shape:?} {other:?}"));
        }
    }
}

#[test]
fn softmax_of_what_is_masked() {
    for [x_shape, other, common] in WIDTHS.into_iter().flat_map(shapes) {
        let width = common[common.len() - 1];
        let (x, mut mask) = (random(size(&x_shape), 1), random(size(&other), 2));
        // Some are left out, but never all of a row.
        mask.iter_mut()
            .skip(1)
            .step_by(3)
            .for_each(|mask| *mask = [f32::MIN, f32::NEG_INFINITY, -90.0][(*mask > 0.0) as usize]);
        if other[other.len() - 1] == 1 || width < 4 {
            mask = random(size(&other), 2);
        }
        let wanted = reference::softmax(&spread(&x, &x_shape, &common), &spread(&mask, &other, &common), width);
        let shapes = Broadcast::new([&x_shape, &other]).unwrap();
        for cpu in Cpu::all() {
            let y = in_parts(cpu, &common, |cpu, first, y| {
                cpu.run(MaskedSoftmax { x: &x, mask: &mask, shapes: &shapes, first, y });
            });
            assert_near(&y, &wanted, 3e-7, &format!("{cpu:?} {x_shape:?} {other:?}"));
        }
    }
}

/// Fewer rows than are computed together, of which each is long.
#[test]
fn a_few_long_rows() {
    let shape = [3, 5000];
    let (x, mask) = (random(size(&shape), 1), random(5000, 2));
    let shapes = Broadcast::new([&shape[..], &[5000]]).unwrap();
    let wanted = reference::softmax(&spread(&x, &shape, &shape), &spread(&mask, &[5000], &shape), 5000);
    for cpu in Cpu::all() {
        let y = in_parts(cpu, &shape, |cpu, first, y| {
            cpu.run(MaskedSoftmax { x: &x, mask: &mask, shapes: &shapes, first, y });
        });
        assert_near(&y, &wanted, 3e-7, &format!("{cpu:?}"));
    }
}

/// What is small is right too, not only less than anybody would see.
#[test]
fn exponentials_are_right_relatively() {
    let x: Vec<f32> = (0..8700).map(|step| step as f32 * -0.01).collect();
    let shapes = Broadcast::new([&[x.len()][..], &[1]]).unwrap();
    for cpu in Cpu::all() {
        let mut y = vec![0.0; x.len()];
        cpu.run(MaskedSoftmax { x: &x, mask: &[0.0], shapes: &shapes, first: 0, y: &mut y });
        let wanted = reference::softmax(&spread(&x, &[x.len()], &[x.len()]), &vec![0.0; x.len()], x.len());
        for (y, wanted) in y.iter().zip(wanted).filter(|(_, wanted)| *wanted > 1.2e-38) {
            assert!((f64::from(*y) / wanted - 1.0).abs() < 5e-7, "{cpu:?}: {y} is not {wanted}");
        }
    }
}

#[test]
fn heads_of_rows() {
    for (head, rows) in [1, 5, 32, 64].into_iter().flat_map(|head| [0, 1, 7, 8, 9, 56].map(|rows| (head, rows))) {
        let (groups, heads) = (2, 3);
        let (x, bias) = (random(groups * rows * heads * head, 1), random(heads * head, 2));
        for transposed in [false, true] {
            let wanted = reference::heads(&x, &bias, [groups, rows, heads], transposed);
            for cpu in Cpu::all() {
                let mut y = vec![0.0; x.len()];
                let (before, after) = y.split_at_mut(2 * rows * head);
                for (first, y) in [(0, before), (2, after)] {
                    cpu.run(BiasHeads { x: &x, bias: &bias, heads, rows, transposed, first, y });
                }
                assert_near(&y, &wanted, 0.0, &format!("{cpu:?} {rows} rows, {heads} heads of {head}, {transposed}"));
            }
        }
    }
}

#[test]
fn shapes_that_do_not_fit() {
    for (a, b) in [(&[2, 3][..], &[3, 3][..]), (&[2], &[3]), (&[4, 2, 3], &[4, 1, 2]), (&[0], &[2])] {
        assert!(Broadcast::new([a, b]).is_none(), "{a:?} {b:?}");
    }
    let none: [&[usize]; 2] = [&[], &[]];
    assert!(Broadcast::new(none).unwrap().shape().eq([1]));
}
