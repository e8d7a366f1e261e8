//! Nor can a clone of what lives there leave by a ticket.

use infer::{Ticket, Worker};
use std::rc::Rc;

fn clone(worker: &Worker<Rc<str>>) -> Ticket<Rc<str>> {
    worker.submit(|text| text.clone())
}

fn main() {}
