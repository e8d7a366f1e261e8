//! ONNX Runtime through this library: beside its own Python package, beside its C table, and beside itself.
//!
//! Where both sides can be in one process they take turns there, block by block; a Python package runs in a process of its own, which is asked
//! for a block in its turn. Both load the same library of the same version, and compute on as many threads.

mod decode;
mod encode;
#[allow(dead_code, reason = "only some of what tests need")]
#[path = "../../infer-onnx/tests/kit/model.rs"]
mod model;
mod node;
mod pool;
mod setting;

use infer_benches::Run;
use std::process::ExitCode;

#[global_allocator]
static HEAP: kit::Counting = kit::Counting;

/// What a part does.
type Measure = fn(&mut Run);

/// The parts, by name.
const PARTS: [(&str, Measure); 4] =
    [("node", node::measure), ("decode", decode::measure), ("encode", encode::measure), ("pool", pool::measure)];

fn main() -> ExitCode {
    let mut run = Run::of_parts(&PARTS.map(|(name, _)| name));
    for (name, measure) in PARTS {
        if run.wants(name) {
            measure(&mut run);
        }
    }
    run.finish()
}
