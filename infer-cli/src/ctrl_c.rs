//! What Ctrl-C does.

use crate::failure::Failure;
use infer::{Error, ErrorKind, Generation, Piece};
use std::{
    pin::Pin,
    process,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

/// The exit code of a program that Ctrl-C has ended, by convention of shells.
pub(crate) const ENDED_BY_CTRL_C: u8 = 130;

/// From now on Ctrl-C does this, and a second one ends the program. To be called once a process.
pub(crate) fn does(act: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let mut act = Some(act);
    is_taken_by(move || act.take().map(|act| act()).is_some())
}

/// From now on Ctrl-C is told to `taken`, and ends the program where that says no.
fn is_taken_by(mut taken: impl FnMut() -> bool + Send + 'static) -> Result<(), Failure> {
    let handler = move || {
        if !taken() {
            process::exit(ENDED_BY_CTRL_C.into());
        }
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Error::new(ErrorKind::Io, "cannot handle Ctrl-C").with_source(error).into())
}

/// Reads generations on the thread that made it; Ctrl-C ends the one that is being read, and where none is, the program.
pub(crate) struct Reader(Arc<Reading>);

struct Reading {
    state: AtomicU8,
    thread: Thread,
}

/// Nothing is being read.
const IDLE: u8 = 0;
const READING: u8 = 1;
/// Ctrl-C was pressed since it began.
const PRESSED: u8 = 2;

impl Reader {
    /// To be called once a process.
    pub(crate) fn new() -> Result<Self, Failure> {
        let reading = Arc::new(Reading { state: AtomicU8::new(IDLE), thread: thread::current() });
        let pressed = reading.clone();
        is_taken_by(move || {
            let was = pressed.state.compare_exchange(READING, PRESSED, Ordering::AcqRel, Ordering::Acquire);
            pressed.thread.unpark();
            was.is_ok()
        })?;
        Ok(Self(reading))
    }

    /// Hands each piece on as it comes. A press of Ctrl-C ends the generation, which says then how far it came; it is not waited for
    /// a next piece until that is seen.
    pub(crate) fn read(
        &self,
        mut generation: Generation,
        mut each: impl FnMut(Piece) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let waker = Waker::from(self.0.clone());
        self.0.state.store(READING, Ordering::Release);
        let end = loop {
            if self.0.state.load(Ordering::Acquire) == PRESSED {
                generation.cancel();
            }
            let next = futures_core::Stream::poll_next(Pin::new(&mut generation), &mut Context::from_waker(&waker));
            let done = match next {
                Poll::Pending => {
                    thread::park();
                    continue;
                }
                Poll::Ready(None) => break Ok(()),
                Poll::Ready(Some(piece)) => piece.map_err(Failure::from).and_then(&mut each),
            };
            if done.is_err() {
                break done;
            }
        };
        self.0.state.store(IDLE, Ordering::Release);
        end
    }
}

impl Wake for Reading {
    fn wake(self: Arc<Self>) {
        self.thread.unpark();
    }
}
