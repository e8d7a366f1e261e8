//! What each operator takes, and how its output is put together.

use super::{Kind, Output, Tensor, invalid};
use crate::{
    kernels::{self, Broadcast},
    raw::cpu::Cpu,
};
use ort::operator::KernelContext;

/// `BiasGelu(x, bias)`: `x` is `[…, w]`, `bias` `[w]`.
pub(super) struct BiasGelu;

/// `AddNormalization(x, bias, residual, scale, shift; epsilon)`: `x` and `residual` are `[…, w]`, or are broadcast to it; the others `[w]`.
pub(super) struct AddNormalization {
    epsilon: f32,
}

/// `MaskedSoftmax(x, mask)`: both are broadcast.
pub(super) struct MaskedSoftmax;

/// `BiasHeads(x, bias; heads, transposed)`: `x` is `[a, b, …]` with `a * b * w` elements, `bias` `[w]`; gives `[a, heads, b, w / heads]`, or with the
/// last two axes exchanged.
pub(super) struct BiasHeads {
    heads: usize,
    transposed: bool,
}

impl Kind for BiasGelu {
    const NAME: &'static str = "BiasGelu";
    const INPUTS: usize = 2;

    fn of(_: &KernelContext<'_>) -> ort::Result<Self> {
        Ok(Self)
    }

    fn compute(&self, cpu: Cpu, inputs: &[Tensor<'_>], output: Output<'_>) -> ort::Result<()> {
        let [x, bias] = inputs else { return Err(count()) };
        let Some(&width) = x.shape.last() else { return Err(invalid("x has no axis".to_owned())) };
        vector("bias", bias, "x", &x.shape, width)?;
        output.write(&x.shape, width, |first, y| {
            let x = &x.numbers[first * width..][..y.len()];
            cpu.run(kernels::BiasGelu { x, bias: bias.numbers, y });
        })
    }
}

impl Kind for AddNormalization {
    const NAME: &'static str = "AddNormalization";
    const INPUTS: usize = 5;

    fn of(node: &KernelContext<'_>) -> ort::Result<Self> {
        Ok(Self { epsilon: node.get("epsilon").ok_or_else(|| attribute("epsilon"))? })
    }

    fn compute(&self, cpu: Cpu, inputs: &[Tensor<'_>], output: Output<'_>) -> ort::Result<()> {
        let [x, bias, residual, scale, shift] = inputs else { return Err(count()) };
        let shapes = &broadcast(("x", x), ("residual", residual))?;
        let (shape, width) = (shapes.shape().collect::<Vec<_>>(), shapes.width());
        for (name, input) in [("bias", bias), ("scale", scale), ("shift", shift)] {
            vector(name, input, "x + residual", &shape, width)?;
        }
        let (bias, scale, shift) = (bias.numbers, scale.numbers, shift.numbers);
        let (x, residual, epsilon) = (x.numbers, residual.numbers, self.epsilon);
        output.write(&shape, width, |first, y| {
            cpu.run(kernels::AddNormalization { x, bias, residual, scale, shift, epsilon, shapes, first, y });
        })
    }
}

impl Kind for MaskedSoftmax {
    const NAME: &'static str = "MaskedSoftmax";
    const INPUTS: usize = 2;

    fn of(_: &KernelContext<'_>) -> ort::Result<Self> {
        Ok(Self)
    }

    fn compute(&self, cpu: Cpu, inputs: &[Tensor<'_>], output: Output<'_>) -> ort::Result<()> {
        let [x, mask] = inputs else { return Err(count()) };
        let shapes = &broadcast(("x", x), ("mask", mask))?;
        let (shape, width) = (shapes.shape().collect::<Vec<_>>(), shapes.width());
        // What is a number is made a tensor of one axis by nobody.
        let shape = if x.shape.is_empty() && mask.shape.is_empty() { &[][..] } else { &shape };
        let (x, mask) = (x.numbers, mask.numbers);
        output.write(shape, width, |first, y| {
            cpu.run(kernels::MaskedSoftmax { x, mask, shapes, first, y });
        })
    }
}

impl Kind for BiasHeads {
    const NAME: &'static str = "BiasHeads";
    const INPUTS: usize = 2;

    fn of(node: &KernelContext<'_>) -> ort::Result<Self> {
        let heads: i64 = node.get("heads").ok_or_else(|| attribute("heads"))?;
        let transposed: i64 = node.get("transposed").ok_or_else(|| attribute("transposed"))?;
        let heads = usize::try_from(heads).ok().filter(|&heads| heads > 0);
        Ok(Self { heads: heads.ok_or_else(|| attribute("heads"))?, transposed: transposed != 0 })
    }

    fn compute(&self, cpu: Cpu, inputs: &[Tensor<'_>], output: Output<'_>) -> ort::Result<()> {
        let [x, bias] = inputs else { return Err(count()) };
        let (heads, transposed) = (self.heads, self.transposed);
        let (&[width], &[groups, rows, ..]) = (&*bias.shape, &*x.shape) else {
            return Err(unfit(("x", &x.shape), ("bias", &bias.shape)));
        };
        let elements = groups.checked_mul(rows).and_then(|rows| rows.checked_mul(width));
        if elements != Some(x.numbers.len()) {
            return Err(unfit(("x", &x.shape), ("bias", &bias.shape)));
        }
        if width % heads != 0 {
            return Err(invalid(format!("{heads} heads cannot share the bias {:?} evenly", bias.shape)));
        }
        let size = width / heads;
        let [inner, last] = if transposed { [size, rows] } else { [rows, size] };
        let (x, bias) = (x.numbers, bias.numbers);
        output.write(&[groups, heads, inner, last], rows * size, |first, y| {
            cpu.run(kernels::BiasHeads { x, bias, heads, rows, transposed, first, y });
        })
    }
}

/// How two inputs are one shape.
fn broadcast((a_name, a): (&str, &Tensor<'_>), (b_name, b): (&str, &Tensor<'_>)) -> ort::Result<Broadcast<2>> {
    Broadcast::new([&a.shape, &b.shape]).ok_or_else(|| unfit((a_name, &a.shape), (b_name, &b.shape)))
}

/// That an input is as wide as what it is added to.
fn vector(name: &str, input: &Tensor<'_>, to: &str, shape: &[usize], width: usize) -> ort::Result<()> {
    if input.shape == [width] { Ok(()) } else { Err(unfit((to, shape), (name, &input.shape))) }
}

fn unfit((a, a_shape): (&str, &[usize]), (b, b_shape): (&str, &[usize])) -> ort::Error {
    invalid(format!("{a} of shape {a_shape:?} and {b} of shape {b_shape:?} do not fit each other"))
}

fn attribute(name: &str) -> ort::Error {
    invalid(format!("the attribute {name} is not there, or not one that it can be"))
}

fn count() -> ort::Error {
    invalid("the number of inputs is another than was said".to_owned())
}
