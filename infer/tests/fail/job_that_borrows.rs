//! A job owns what it takes along: it may run after its caller has gone.

use infer::Worker;

fn count(worker: &Worker<String>, also: &str) -> infer::Result<usize> {
    worker.call(|text| text.len() + also.len())
}

fn main() {}
