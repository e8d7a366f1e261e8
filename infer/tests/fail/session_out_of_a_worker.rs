//! A session stays on the thread of its worker: a job cannot hand it out.

use infer::{Result, Session, Worker};

fn take(worker: &Worker<Option<Box<dyn Session>>>) -> Result<Option<Box<dyn Session>>> {
    worker.call(|session| session.take())
}

fn main() {}
