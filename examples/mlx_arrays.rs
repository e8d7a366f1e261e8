//! Arrays of MLX by hand: weights that stay, scopes that go, and an error that is told when somebody wants the value.
//!
//! `cargo run -p infer-examples --features mlx --bin mlx_arrays`. It needs the library, which `infer setup mlx` builds, and no model.

use infer::mlx::{Array, DType, LoadOptions, Mlx, Owned, Scope};

/// How many states the system has, and how many of them are followed at once.
const STATES: usize = 512;
const RUNS: usize = 16;

/// A layer reads as its formula does: no `?`, no `&`, one name for how long arrays live.
struct Layer {
    weight: Owned,
    norm: Owned,
}

impl Layer {
    fn new(scope: &Scope<'_>, seed: usize) -> Self {
        // Angles without a pattern to speak of, as a matrix.
        let angles = scope.arange(0, (STATES * STATES) as i32, DType::I32).as_type(DType::F32) * (0.7 + seed as f32);
        let weight = (angles.sin() * (2.0 / STATES as f32).sqrt()).reshape(&[STATES as i32, STATES as i32]);
        Self { weight: weight.own(), norm: scope.ones(&[STATES], DType::F32).own() }
    }

    fn forward<'s>(&self, x: Array<'s>) -> Array<'s> {
        x + x.rms_norm(&self.norm, 1e-5).matmul(&self.weight).silu()
    }
}

/// Many steps from `x`, in a scope of their own: what each leaves behind is freed with it, and one array moves out.
fn follow<'s>(layers: &[Layer], x: Array<'s>, steps: usize) -> infer::Result<Array<'s>> {
    let outer = x.scope();
    let mut x = x;
    for _ in 0..steps {
        let step = outer.nest();
        let mut h = step.enter(x);
        for layer in layers {
            h = layer.forward(h);
        }
        h = h / h.square().sum(-1, true).sqrt();
        // Nothing is computed before this line. Kept before it, the array would hold the graph of all steps, and every array in it.
        step.eval([h])?;
        x = step.keep(h);
    }
    Ok(x)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let available = Mlx::available(&LoadOptions::new())?;
    println!("MLX {} ({}): {} devices", available.version, available.variant, available.devices.len());

    let mlx = Mlx::load(&LoadOptions::new())?;
    let layers: Vec<Layer> = {
        let scope = mlx.scope();
        (0..4).map(|seed| Layer::new(&scope, seed)).collect()
    };
    // Until here they are formulas. Computed, they let go of what they were made of.
    mlx.eval(layers.iter().flat_map(|layer| [&layer.weight, &layer.norm]))?;
    println!("weights: {} arrays, {} KiB", mlx.live().owned, mlx.memory()?.active / 1024);

    mlx.reset_peak()?;
    let scope = mlx.scope();
    let start = scope.full(1.0, &[RUNS, STATES], DType::F32);
    for steps in [1, 100] {
        let end = follow(&layers, start, steps)?;
        let (length, most) = (end.square().sum(-1, false).mean(0, false), end.abs().argmax(-1, false));
        scope.eval([length, most])?;
        println!(
            "{steps} steps: length {:.3}, largest at {}; {} arrays are there",
            length.item::<f32>()?,
            most.data::<u32>()?[0],
            mlx.live().arrays
        );
    }
    println!("at most {} KiB, in {} evaluations and {} calls", mlx.memory()?.peak / 1024, mlx.evals(), mlx.crossings());

    // An operation returns no `Result`. What is wrong with one goes through whatever is made of it, with where it was.
    let wrong = start.matmul(start).exp() + 1.0;
    println!("refused: {}", scope.eval([wrong]).unwrap_err());

    drop(scope);
    drop(layers);
    println!("at the end: {} arrays", mlx.live().arrays + mlx.live().owned);
    Ok(())
}
