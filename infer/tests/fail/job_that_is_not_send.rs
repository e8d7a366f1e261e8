//! What a job takes along crosses threads.

use infer::Worker;
use std::rc::Rc;

fn store(worker: &Worker<Vec<String>>, text: Rc<String>) -> infer::Result<()> {
    worker.call(move |texts| texts.push(text.to_string()))
}

fn main() {}
