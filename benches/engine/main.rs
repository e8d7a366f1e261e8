//! The engine beside llama.cpp's own server, beside loops by hand, and beside itself.
//!
//! The server is a process of its own, started anew for each measurement and asked over loopback, each stream on a connection that is open before the clock
//! runs; the engine is asked by as many threads. Both compute with the same objects on as many threads, and get the same tokens. Sides take turns, and
//! the best of their rounds counts.

mod batch;
mod by_hand;
mod chat;
mod long;
mod ours;
mod peer;
mod prompts;
mod scheduler;
mod schema;
mod shared;
mod stream;
mod valid;
mod watched;

use infer_benches::Run;
use peer::Setting;
use std::process::ExitCode;

#[global_allocator]
static HEAP: kit::Counting = kit::Counting;

/// What a part does.
type Measure = fn(&mut Run, &Setting);

/// The parts, by name.
const PARTS: [(&str, Measure); 7] = [
    ("stream", stream::measure),
    ("batch", batch::measure),
    ("shared", shared::measure),
    ("chat", chat::measure),
    ("long", long::measure),
    ("schema", schema::measure),
    ("scheduler", scheduler::measure),
];

fn main() -> ExitCode {
    let mut run = Run::of_parts(&PARTS.map(|(name, _)| name));
    let setting = Setting::new(run.quick());
    for (name, measure) in PARTS {
        if run.wants(name) {
            measure(&mut run, &setting);
        }
    }
    run.finish()
}
