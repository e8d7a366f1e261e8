//! Ctrl-C ends what is being generated; a second one ends the program.

use crate::failure::Failure;
use infer::{Error, ErrorKind, Interrupt};
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a program that Ctrl-C has ended, by convention of shells.
const ENDED_BY_CTRL_C: i32 = 130;

/// From now on Ctrl-C raises the interrupt. To be called once a process.
pub(crate) fn raises(interrupt: Interrupt) -> Result<(), Failure> {
    let pressed = AtomicBool::new(false);
    let handler = move || {
        if pressed.swap(true, Ordering::Relaxed) {
            std::process::exit(ENDED_BY_CTRL_C);
        }
        interrupt.raise();
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Error::new(ErrorKind::Io, "cannot handle Ctrl-C").with_source(error).into())
}
