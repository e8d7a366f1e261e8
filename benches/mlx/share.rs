//! Our own share of a step, in instructions.
//!
//! A process of this program loads a model and makes so many steps under callgrind, and another one makes more: what they differ by is what steps
//! take, without the load. Two such pairs are made. In one, products and attention are those of the door, as always: that is the step. In the other
//! they are left to MLX, so that what the file of the door still does is what the door is: walls, checks and handles. What the languages bring along
//! does for somebody, such as memory for an object, is theirs who called it.
//!
//! The processor that valgrind plays has AVX2 and no AVX-512. To look closer, by hand:
//!
//! ```text
//! valgrind --tool=callgrind target/release/deps/mlx-… --steps smollm2-mlx 8
//! callgrind_annotate --inclusive=yes callgrind.out.…
//! ```

use crate::setting::{Greedy, mlx, open};
use infer::{Special, Tokenizer as _};
use infer_benches::{
    Figure, Run,
    callgrind::{self, Counts},
};
use std::{path::Path, process::Command, time::Duration};

/// Comes first on a child's command line, before the name of a model and a number of steps.
const CHILD: &str = "--steps";
/// The door's variable, and what it is set to.
const INSTRUCTIONS: &str = "INFER_MLX_INSTRUCTIONS";
const AS_ALWAYS: &str = "avx2";
const LEFT_TO_MLX: &str = "none";

/// Whose steps are counted, and how many of them.
const FULL: (&str, u64) = ("smollm2-mlx", 4);
const QUICK: (&str, u64) = ("tiny-mlx-llama", 4);
/// A step takes seconds on a processor that is played, and with MLX's own products many.
const PATIENCE: Duration = Duration::from_secs(900);

/// The model and the number of steps that this process is to make and nothing else, where it is a child.
pub(crate) fn way() -> Option<(String, u64)> {
    let mut arguments = std::env::args().skip_while(|argument| argument != CHILD).skip(1);
    let (name, steps) = (arguments.next()?, arguments.next()?);
    Some((name, steps.parse().expect("a number of steps")))
}

/// In the child: a prompt, and so many steps after it.
pub(crate) fn in_this_process(name: &str, steps: u64) {
    let mlx = mlx();
    let model = open(&mlx, name);
    let mut greedy = Greedy::new(&model, 64, 1);
    let mut fed = Vec::new();
    model.tokenizer().encode("The", Special::NONE, &mut fed).expect("a text encodes");
    let seq = greedy.open();
    for _ in 0..=steps {
        fed = greedy.step(&[(&seq, &fed)]);
    }
}

pub(crate) fn measure(run: &mut Run) {
    let (model, steps) = if run.quick() { QUICK } else { FULL };
    if !callgrind::is_there() {
        run.progress("instructions are not counted: valgrind is not there");
        return;
    }
    run.progress(&format!("instructions of {steps} steps of {model}, in valgrind"));
    let (step, door) = (Step::count(model, AS_ALWAYS, steps), Step::count(model, LEFT_TO_MLX, steps).door);
    let note = format!(
        "{:.0} thousand in Rust and {:.0} of the door without its kernels, of {:.1} million; {model}",
        step.program / 1e3,
        door / 1e3,
        step.all / 1e6
    );
    let share = (step.program + door) / step.all * 100.0;
    run.figure(Figure::new("mlx/share", share, "% of a step's instructions").with_note(note));
}

/// Instructions of a step.
struct Step {
    all: f64,
    /// Of this program.
    program: f64,
    /// Of the file with the door.
    door: f64,
}

impl Step {
    fn count(model: &str, instructions: &str, steps: u64) -> Self {
        let program = std::env::current_exe().expect("the running program has a path");
        let counts = [1, 1 + steps].map(|steps| {
            let mut command = Command::new(&program);
            command.args([CHILD, model, &steps.to_string()]).env(INSTRUCTIONS, instructions);
            let counts = Counts::take(&command, Path::new(env!("CARGO_TARGET_TMPDIR")), PATIENCE);
            counts.unwrap_or_else(|error| panic!("{error}"))
        });
        let [few, more] = &counts;
        let a_step = |of: &dyn Fn(&Counts) -> f64| (of(more) - of(few)) / steps as f64;
        let is_program = |file: &str| Path::new(file) == program;
        let with_runtime =
            |counts: &Counts, whose: &dyn Fn(&str) -> bool| counts.own(whose) + counts.calls(whose, is_runtime);
        Self {
            all: a_step(&Counts::all),
            program: a_step(&|counts| with_runtime(counts, &is_program)),
            door: a_step(&|counts| with_runtime(counts, &is_door)),
        }
    }
}

fn is_door(file: &str) -> bool {
    name(file).starts_with("libinfer_mlx.")
}

/// What the languages bring along: memory for objects, copies, mathematics.
fn is_runtime(file: &str) -> bool {
    ["libc.", "libc-", "libm.", "libm-", "libstdc++.", "libgcc_s.", "ld-linux"]
        .iter()
        .any(|runtime| name(file).starts_with(runtime))
}

fn name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}
