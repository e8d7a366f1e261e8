//! MLX through this library: beside mlx-lm, which is Python over the same library of the same version, and beside itself.
//!
//! mlx-lm runs in a process of its own, which is asked for a block in its turn.

mod decode;
mod hammer;
mod load;
mod setting;
mod share;
mod soak;

use infer_benches::Run;
use std::process::ExitCode;

/// What a part does.
type Measure = fn(&mut Run);

/// The parts, by name.
const PARTS: [(&str, Measure); 6] = [
    ("load", load::measure),
    ("decode", decode::measure),
    ("4bit", decode::measure_quantised),
    ("share", share::measure),
    ("soak", soak::measure),
    ("hammer", hammer::measure),
];

fn main() -> ExitCode {
    if let Some(way) = load::way() {
        load::in_this_process(&way);
        return ExitCode::SUCCESS;
    }
    if let Some((model, steps)) = share::way() {
        share::in_this_process(&model, steps);
        return ExitCode::SUCCESS;
    }
    let mut run = Run::of_parts(&PARTS.map(|(name, _)| name));
    for (name, measure) in PARTS {
        if run.wants(name) {
            measure(&mut run);
        }
    }
    run.finish()
}
