//! Shapes, parts, and what is computed along an axis.

use crate::kit::{assert_near, mlx, values};
use infer_mlx::DType;

#[test]
fn shapes_change_and_elements_stay() {
    let mlx = mlx();
    let s = mlx.scope();
    let data: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let a = s.array(&data, &[2, 3, 4]);
    assert_eq!(a.reshape(&[6, -1]).shape(), [6, 4]);
    assert_eq!(a.reshape(&[-1]).shape(), [24]);
    let turned = a.transpose(&[2, 0, -2]);
    assert_eq!(turned.shape(), [4, 2, 3]);
    let at = |i: usize, j: usize, k: usize| data[(j * 3 + k) * 4 + i];
    let mut wanted = Vec::new();
    for (i, j, k) in (0..4).flat_map(|i| (0..2).flat_map(move |j| (0..3).map(move |k| (i, j, k)))) {
        wanted.push(at(i, j, k));
    }
    assert_eq!(values(turned), wanted);
    assert_eq!(a.t().shape(), [2, 4, 3]);
    assert_eq!(a.expand_dims(-1).shape(), [2, 3, 4, 1]);
    assert_eq!(a.expand_dims(1).squeeze(1).shape(), [2, 3, 4]);
    assert_eq!(values(s.array(&[1.0f32, 2.0], &[2, 1]).broadcast_to(&[2, 2, 3])).len(), 12);
    assert_eq!(values(s.array(&[1.0f32, 2.0], &[2]).repeat(2, 0)), [1.0, 1.0, 2.0, 2.0]);
}

#[test]
fn parts_are_taken_and_put_together() {
    let mlx = mlx();
    let s = mlx.scope();
    let data: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let a = s.array(&data, &[3, 4]);
    assert_eq!(values(a.slice(0, 1..2)), [4.0, 5.0, 6.0, 7.0]);
    assert_eq!(values(a.slice(-1, -1..)), [3.0, 7.0, 11.0]);
    assert_eq!(a.slice(1, 2..2).shape(), [3, 0]);
    assert_eq!(values(a.slice_many(&[1, 1], &[3, 3])), [5.0, 6.0, 9.0, 10.0]);
    let parts = a.split(1, &[1, 3]);
    assert_eq!((parts[0].shape(), parts[1].shape()), (&[3, 1][..], &[3, 3][..]));
    assert_eq!(values(parts[0]), [0.0, 4.0, 8.0]);
    assert_eq!(values(s.concat(&parts, 1)), data);
    assert_eq!(values(s.concat(&[a, a.slice(0, ..1)], 0))[12..], [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(s.stack(&[a, a], 1).shape(), [3, 2, 4]);
    assert_eq!(values(a.take(s.array(&[2u32, 0], &[2]), 0)), [8.0, 9.0, 10.0, 11.0, 0.0, 1.0, 2.0, 3.0]);
    assert_eq!(values(a.take(s.array(&[-1i32], &[1]), 1)), [3.0, 7.0, 11.0]);
    assert_eq!(values(a.take_along_axis(s.array(&[3u32, 0, 1], &[3, 1]), 1)), [3.0, 4.0, 9.0]);
    let new = a.slice_update(s.array(&[-1.0f32, -2.0], &[2, 1]), &[1, 3]);
    assert_eq!(values(new), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -1.0, 8.0, 9.0, 10.0, -2.0]);
    assert_eq!(values(a), data, "the array itself is as it was");
    assert_eq!(values(s.ones(&[2, 2], DType::F32).tril(0)), [1.0, 0.0, 1.0, 1.0]);
    assert_eq!(values(s.ones(&[2, 2], DType::F32).triu(1)), [0.0, 1.0, 0.0, 0.0]);
}

#[test]
fn along_an_axis() {
    let mlx = mlx();
    let s = mlx.scope();
    let data = [3.0f32, -1.0, 2.0, 0.5, 4.0, -2.0];
    let a = s.array(&data, &[2, 3]);
    assert_eq!(a.sum(1, true).shape(), [2, 1]);
    assert_near(&values(a.sum(1, false)), &[4.0, 2.5], 1e-6);
    assert_near(&values(a.mean(0, false)), &[1.75, 1.5, 0.0], 1e-6);
    assert_near(&values(a.max(-1, false)), &[3.0, 4.0], 0.0);
    assert_near(&values(a.min(-1, false)), &[-1.0, -2.0], 0.0);
    assert_near(&values(a.prod(1, false)), &[-6.0, -4.0], 1e-6);
    assert_near(&values(a.cumsum(1)), &[3.0, 2.0, 4.0, 0.5, 4.5, 2.5], 1e-6);
    assert_near(&values(a.sort(1)), &[-1.0, 2.0, 3.0, -2.0, 0.5, 4.0], 0.0);
    let (most, order) = (a.argmax(1, false), a.argsort(1));
    let split = a.argpartition(1, 1);
    let (all, any) = (a.gt(0.0).all(1, false), a.gt(3.5).any(1, false));
    s.eval([most, order, split, all, any]).unwrap();
    assert_eq!(most.data::<u32>().unwrap(), [0, 1]);
    assert_eq!(order.data::<u32>().unwrap(), [1, 2, 0, 2, 0, 1]);
    assert_eq!(split.data::<u32>().unwrap()[1], 2);
    assert_eq!((all.data::<bool>().unwrap(), any.data::<bool>().unwrap()), (&[false, false][..], &[false, true][..]));
    for row in 0..2 {
        let row = &data[row * 3..][..3];
        let sum: f32 = row.iter().map(|x| x.exp()).sum();
        let part = s.array(row, &[3]);
        assert_near(&values(part.logsumexp(0, true)), &[sum.ln()], 1e-6);
        assert_near(&values(part.softmax(0)), &row.iter().map(|x| x.exp() / sum).collect::<Vec<_>>(), 1e-6);
    }
}

#[test]
fn arrays_of_nothing_are_arrays() {
    let mlx = mlx();
    let s = mlx.scope();
    let none = s.array::<f32>(&[], &[0, 3]);
    let more = (none + 1.0).exp().reshape(&[3, 0]);
    let (both, product) = (s.concat(&[none, none], 0), none.t().matmul(none));
    s.eval([more, both, product]).unwrap();
    assert_eq!((more.data::<f32>().unwrap(), both.shape()), (&[][..], &[0, 3][..]));
    assert_eq!(product.data::<f32>().unwrap(), [0.0; 9]);
    assert!(none.sum(0, false).check().unwrap_err().to_string().contains("nothing along its axes"));
}
