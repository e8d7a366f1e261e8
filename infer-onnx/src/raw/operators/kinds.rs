//! What each operator takes, and how its output is put together.

use super::{Kind, Node, Output, Tensor};
use crate::{
    error::invalid_input,
    kernels::{self, Broadcast},
    raw::cpu::Cpu,
};
use infer_core::{Error, Result};
use std::ffi::CStr;

/// `BiasGelu(x, bias)`: `x` is `[…, w]`, `bias` `[w]`.
pub(super) struct BiasGelu;

/// `AddNormalization(x, bias, residual, scale, shift; epsilon)`: `x` and `residual` are `[…, w]`, or are broadcast to it; the others `[w]`.
pub(super) struct AddNormalization {
    epsilon: f32,
}

/// `MaskedSoftmax(x, mask)`: both are broadcast.
pub(super) struct MaskedSoftmax;

/// `BiasHeads(x, bias; heads, transposed)`: `x` is `[a, …, w]` with `b` rows in each of the `a`, `bias` `[w]`; gives `[a, heads, b, w / heads]`, or with
/// the last two axes exchanged.
pub(super) struct BiasHeads {
    heads: usize,
    transposed: bool,
}

impl Kind for BiasGelu {
    const NAME: &'static CStr = c"BiasGelu";
    const INPUTS: usize = 2;

    fn of(_: &Node<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn compute(&self, cpu: Cpu, inputs: &[Tensor<'_>], output: Output<'_>) -> Result<()> {
        let [x, bias] = inputs else { return Err(count()) };
        let Some(&width) = x.shape.last() else { return Err(invalid_input("x has no axis")) };
        vector("bias", bias, "x", &x.shape, width)?;
        output.write(&x.shape, width, |first, y| {
            let x = &x.numbers[first * width..][..y.len()];
            cpu.run(kernels::BiasGelu { x, bias: &bias.numbers, y });
        })
    }
}

impl Kind for AddNormalization {
    const NAME: &'static CStr = c"AddNormalization";
    const INPUTS: usize = 5;

    fn of(node: &Node<'_>) -> Result<Self> {
        Ok(Self { epsilon: node.float(c"epsilon")? })
    }

    fn compute(&self, cpu: Cpu, inputs: &[Tensor<'_>], output: Output<'_>) -> Result<()> {
        let [x, bias, residual, scale, shift] = inputs else { return Err(count()) };
        let shapes = &broadcast(("x", x), ("residual", residual))?;
        let (shape, width) = (shapes.shape().collect::<Vec<_>>(), shapes.width());
        for (name, input) in [("bias", bias), ("scale", scale), ("shift", shift)] {
            vector(name, input, "x + residual", &shape, width)?;
        }
        let (bias, scale, shift) = (&*bias.numbers, &*scale.numbers, &*shift.numbers);
        let (x, residual, epsilon) = (&*x.numbers, &*residual.numbers, self.epsilon);
        output.write(&shape, width, |first, y| {
            cpu.run(kernels::AddNormalization { x, bias, residual, scale, shift, epsilon, shapes, first, y });
        })
    }
}

impl Kind for MaskedSoftmax {
    const NAME: &'static CStr = c"MaskedSoftmax";
    const INPUTS: usize = 2;

    fn of(_: &Node<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn compute(&self, cpu: Cpu, inputs: &[Tensor<'_>], output: Output<'_>) -> Result<()> {
        let [x, mask] = inputs else { return Err(count()) };
        let shapes = &broadcast(("x", x), ("mask", mask))?;
        let (shape, width) = (shapes.shape().collect::<Vec<_>>(), shapes.width());
        // What is a number is made a tensor of one axis by nobody.
        let shape = if x.shape.is_empty() && mask.shape.is_empty() { &[][..] } else { &shape };
        let (x, mask) = (&*x.numbers, &*mask.numbers);
        output.write(shape, width, |first, y| {
            cpu.run(kernels::MaskedSoftmax { x, mask, shapes, first, y });
        })
    }
}

impl Kind for BiasHeads {
    const NAME: &'static CStr = c"BiasHeads";
    const INPUTS: usize = 2;

    fn of(node: &Node<'_>) -> Result<Self> {
        let heads = node.integer(c"heads")?;
        let Some(heads) = usize::try_from(heads).ok().filter(|&heads| heads > 0) else {
            return Err(invalid_input(format!("the attribute heads is {heads}")));
        };
        Ok(Self { heads, transposed: node.integer(c"transposed")? != 0 })
    }

    fn compute(&self, cpu: Cpu, inputs: &[Tensor<'_>], output: Output<'_>) -> Result<()> {
        let [x, bias] = inputs else { return Err(count()) };
        let (heads, transposed) = (self.heads, self.transposed);
        // The axes between the first and the last are one.
        let (&[width], &[groups, ref between @ .., last]) = (&*bias.shape, &*x.shape) else {
            return Err(unfit(("x", &x.shape), ("bias", &bias.shape)));
        };
        if last != width {
            return Err(unfit(("x", &x.shape), ("bias", &bias.shape)));
        }
        let rows: usize = between.iter().product();
        if width % heads != 0 {
            return Err(invalid_input(format!("{heads} heads cannot share the bias {:?} evenly", bias.shape)));
        }
        let size = width / heads;
        let [inner, last] = if transposed { [size, rows] } else { [rows, size] };
        let (x, bias) = (&*x.numbers, &*bias.numbers);
        output.write(&[groups, heads, inner, last], rows * size, |first, y| {
            cpu.run(kernels::BiasHeads { x, bias, heads, rows, transposed, first, y });
        })
    }
}

/// How two inputs are one shape.
fn broadcast((a_name, a): (&str, &Tensor<'_>), (b_name, b): (&str, &Tensor<'_>)) -> Result<Broadcast<2>> {
    Broadcast::new([&a.shape, &b.shape]).ok_or_else(|| unfit((a_name, &a.shape), (b_name, &b.shape)))
}

/// That an input is as wide as what it is added to.
fn vector(name: &str, input: &Tensor<'_>, to: &str, shape: &[usize], width: usize) -> Result<()> {
    if input.shape == [width] { Ok(()) } else { Err(unfit((to, shape), (name, &input.shape))) }
}

fn unfit((a, a_shape): (&str, &[usize]), (b, b_shape): (&str, &[usize])) -> Error {
    invalid_input(format!("{a} of shape {a_shape:?} and {b} of shape {b_shape:?} do not fit each other"))
}

fn count() -> Error {
    invalid_input("the number of inputs is another than was said")
}
