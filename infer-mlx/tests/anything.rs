//! Any operation on any arrays is a value or an error: nothing ends the process, whatever the types, shapes and numbers are.

mod kit;

use infer_mlx::{Array, DType, Mask, Mlx, RopeOffset, Scope};
use kit::mlx;
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use test_kit::Random;

const DTYPES: [DType; 14] = [
    DType::Bool,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::Bf16,
    DType::Complex64,
];

/// Names the seed for the process that has it for itself.
const SEED: &str = "INFER_TEST_SEED";

/// Numbers at random, the same each time.
struct Dice(Random);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0.index(end)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        self.0.pick(all)
    }

    /// A whole number: mostly small ones, at times one that nothing has.
    fn int(&mut self) -> i32 {
        let small = self.below(8) as i32 - 3;
        if self.below(12) == 0 { self.of(&[i32::MIN, i32::MAX, -100, 1000, 1 << 30]) } else { small }
    }

    fn ints(&mut self) -> Vec<i32> {
        (0..self.below(5)).map(|_| self.int()).collect()
    }

    fn sizes(&mut self) -> Vec<usize> {
        (0..self.below(5)).map(|_| self.of(&[0, 1, 1, 2, 2, 3, 4, 5, 32, 64])).collect()
    }

    fn float(&mut self) -> f32 {
        self.of(&[0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e30, -1e-30, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e9])
    }
}

/// An array of any type and shape.
fn any<'s>(s: &'s Scope<'_>, dice: &mut Dice) -> Array<'s> {
    let (shape, dtype) = (dice.sizes(), dice.of(&DTYPES));
    let count = shape.iter().product::<usize>();
    if count > 1 << 14 {
        return s.zeros(&[2, 3], dtype);
    }
    let data: Vec<f32> = (0..count).map(|i| if dice.below(9) == 0 { dice.float() } else { i as f32 - 2.0 }).collect();
    let array = s.array(&data, &shape).as_type(dtype);
    match dice.below(6) {
        0 => array.t(),
        1 => array.slice(-1, 1..),
        2 => array.broadcast_to(&[&[2], &shape[..]].concat()),
        3 => s.full(dice.float(), &shape, dtype),
        _ => array,
    }
}

/// One operation, any of them, and what it is called.
fn operation<'s>(s: &'s Scope<'_>, all: &[Array<'s>], which: usize, dice: &mut Dice) -> (&'static str, Vec<Array<'s>>) {
    let (a, b, c) = (dice.of(all), dice.of(all), dice.of(all));
    let (i, j, x, keep) = (dice.int(), dice.int(), dice.float(), dice.below(2) == 0);
    let (ints, sizes, dtype) = (dice.ints(), dice.sizes(), dice.of(&DTYPES));
    let (group, bits) = (dice.of(&[32, 64, 128, 0, -1, 33]), dice.of(&[2, 3, 4, 5, 6, 7, 8, 0, -4, 33]));
    let mask = match dice.below(4) {
        0 => Mask::None,
        1 => Mask::Causal,
        _ => Mask::Array(c),
    };
    let dims = dice.of(&[2, 4, 6, 32, i]);
    let offset = if keep { RopeOffset::At(j) } else { RopeOffset::Each(c) };
    let (w, v) = (b.own(), c.own());
    let one = |name, array| (name, vec![array]);
    match which {
        0 => one("add", a + b),
        1 => one("sub", a - b),
        2 => one("mul", a * b),
        3 => one("div", a / b),
        4 => one("add number", a + x),
        5 => one("number div", x / a),
        6 => one("floor_divide", a.floor_divide(b)),
        7 => one("floor_divide number", a.floor_divide(x)),
        8 => one("remainder", a.remainder(b)),
        9 => one("remainder number", a.remainder(x)),
        10 => one("pow", a.pow(b)),
        11 => one("pow number", a.pow(x)),
        12 => one("maximum", a.maximum(b)),
        13 => one("lt", a.lt(b)),
        14 => one("eq", a.eq(x)),
        15 => one("logical_and", a.logical_and(b)),
        16 => one("select", a.select(b, c)),
        17 => one("select number", a.select(b, x)),
        18 => one("neg", -a),
        19 => one("exp", a.exp()),
        20 => one("log", a.log()),
        21 => one("rsqrt", a.rsqrt()),
        22 => one("square", a.square()),
        23 => one("erf", a.erf()),
        24 => one("floor", a.floor()),
        25 => one("sign", a.sign().abs().tanh()),
        26 => one("silu", a.silu()),
        27 => one("gelu", a.gelu()),
        28 => one("gelu_tanh", a.gelu_tanh()),
        29 => one("logical_not", a.logical_not()),
        30 => one("is_nan", a.is_nan()),
        31 => one("as_type", a.as_type(dtype)),
        32 => one("view", a.view(dtype)),
        33 => one("transpose", a.transpose(&ints)),
        34 => one("t", a.t()),
        35 => one("reshape", a.reshape(&ints)),
        36 => one("expand_dims", a.expand_dims(i)),
        37 => one("squeeze", a.squeeze(i)),
        38 => one("broadcast_to", a.broadcast_to(&sizes)),
        39 => one("repeat", a.repeat(i, j)),
        40 => one("contiguous", a.contiguous()),
        41 => one("slice", a.slice(i, j..)),
        42 => one("slice_many", a.slice_many(&ints, a.shape())),
        43 => one("slice_update", a.slice_update(b, &ints)),
        44 => ("split", a.split(i, &sizes)),
        45 => one("take", a.take(b, i)),
        46 => one("take_along_axis", a.take_along_axis(b, i)),
        47 => one("concat", s.concat(&[a, b, c], i)),
        48 => one("stack", s.stack(&[a, b], i)),
        49 => one("tril", if keep { a.tril(i) } else { a.triu(i) }),
        50 => one("sum", a.sum(i, keep)),
        51 => one("mean", a.mean(i, keep)),
        52 => ("max", vec![a.max(i, keep), a.min(i, keep), a.prod(i, keep), a.argmax(i, keep), a.argmin(i, keep)]),
        53 => ("all", vec![a.all(i, keep), a.any(i, keep), a.logsumexp(i, keep)]),
        54 => one("softmax", a.softmax(i)),
        55 => ("sort", vec![a.sort(i), a.argsort(i), a.argpartition(j, i), a.cumsum(i)]),
        56 => one("matmul", a.matmul(b)),
        57 => one("addmm", a.addmm(b, c)),
        58 => (
            "norms",
            vec![a.rms_norm(&w, x), a.rms_norm(None, x), a.layer_norm(&w, &v, x), a.layer_norm(None, None, x)],
        ),
        59 => (
            "rope",
            vec![a.rope(dims, keep, Some(x), x, offset, None), a.rope(dims, keep, None, 1.0, offset, Some(&w))],
        ),
        60 => one("attention", a.attention(b, if keep { b } else { c }, x, mask)),
        _ => {
            let [words, scales, biases] = a.quantize(group, bits);
            let (w2, s2, b2) = (words.own(), scales.own(), biases.own());
            let mut all = vec![words.dequantize(scales, biases, group, bits), a.dequantize(b, c, group, bits)];
            all.push(b.quantized_matmul(&w2, &s2, &b2, keep, group, bits));
            all.push(a.quantized_matmul(&w, &v, &v, keep, group, bits));
            ("quantised", all)
        }
    }
}

/// Operations one after the other, each on what those before have given.
fn run(mlx: &Mlx, seed: u64, rounds: usize) {
    let mut dice = Dice(Random(seed));
    let (mut values, mut errors) = (0, 0);
    for round in 0..rounds {
        let s = mlx.scope();
        let mut all: Vec<_> = (0..4).map(|_| any(&s, &mut dice)).collect();
        for _ in 0..12 {
            let shapes: Vec<_> = all.iter().map(|array| format!("{array:?}")).collect();
            let which = dice.below(62);
            println!("round {round}: operation {which} of {shapes:?}");
            let (name, made) = operation(&s, &all, which, &mut dice);
            for array in made {
                // What stands last is what did it.
                println!("round {round}: {name} gives {:?} from {shapes:?}", array.check().map(|()| array.shape()));
                let fine = array.shape().iter().map(|&size| size as usize).product::<usize>() < 1 << 16;
                if array.check().is_ok() && fine && s.eval([array.contiguous()]).is_ok() {
                    values += 1;
                    let place = dice.below(4);
                    all[place] = array;
                } else {
                    errors += 1;
                }
            }
        }
    }
    assert!(values > rounds && errors > rounds, "{values} values, {errors} errors");
}

#[test]
fn any_operation_on_any_arrays_is_a_value_or_an_error() {
    if let Ok(seed) = std::env::var(SEED) {
        return run(&mlx(), seed.parse().unwrap(), 150);
    }
    for seed in 1..=4 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "any_operation_on_any_arrays_is_a_value_or_an_error", "--nocapture"]);
        let mut child = command.env(SEED, seed.to_string()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let (mut line, mut last) = (String::new(), String::new());
        let reader = std::thread::spawn(move || {
            while said.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                last = std::mem::take(&mut line);
            }
            last
        });
        // A kernel that never ends is as bad as one that ends the process.
        let end = Instant::now() + Duration::from_secs(120);
        let status = loop {
            match child.try_wait().unwrap() {
                None if Instant::now() > end => child.kill().unwrap(),
                None => std::thread::sleep(Duration::from_millis(5)),
                Some(status) => break status,
            }
        };
        let last = reader.join().unwrap();
        assert!(status.success(), "seed {seed}: {status} in {last}");
    }
}
