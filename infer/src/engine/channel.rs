//! What lies between the engine and the reader of one request: pieces add up until they are taken, so that a slow reader gets
//! more tokens a piece, costs memory only for what was generated for it, and stalls nobody.

#[cfg(all(shuttle, test))]
mod orders;

use super::live::Live;
use crate::{
    Finish, Piece, panics,
    sync::{
        Condvar, Mutex,
        atomic::{AtomicU8, Ordering},
    },
};
use infer_core::{Error, Result};
use std::{
    mem,
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// Tokens for which room is made at the beginning, so that the engine's thread allocates nothing for a text of usual length.
const RESERVE: usize = 256;

/// A channel for a request of `n` completions.
pub(crate) fn channel(n: usize) -> (Producer, Consumer) {
    let parts = (0..n).map(Part::new).collect();
    let buffer = Buffer { parts, next: 0, live: n, error: None, over: false, waits: false, waker: None };
    let channel =
        Arc::new(Channel { buffer: Mutex::new(buffer), ready: Condvar::new(), wish: AtomicU8::new(Wish::Go as u8) });
    (Producer { channel: channel.clone(), live: None }, Consumer(channel))
}

/// What the reader wants to become of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Wish {
    Go,
    /// End it, and say how far it came.
    Cancel,
    /// Nobody is reading any more.
    Forget,
}

struct Channel {
    buffer: Mutex<Buffer>,
    ready: Condvar,
    wish: AtomicU8,
}

struct Buffer {
    parts: Vec<Part>,
    /// The completion whose turn it is to be read first.
    next: usize,
    /// Completions that have not ended.
    live: usize,
    /// What ended the request, to be read when all text has been.
    error: Option<Error>,
    /// All was read.
    over: bool,
    /// A thread waits: to notify costs a call of the system, which nobody pays for a reader who is busy.
    waits: bool,
    waker: Option<Waker>,
}

/// What was not read yet of one completion.
struct Part {
    piece: Piece,
    has_ended: bool,
}

impl Part {
    fn new(index: usize) -> Self {
        let mut piece = Piece { index, ..Piece::default() };
        piece.tokens.reserve(RESERVE);
        piece.text.reserve(RESERVE * 4);
        Self { piece, has_ended: false }
    }

    /// A copy of what there is; the memory stays, for what comes.
    fn take(&mut self) -> Piece {
        let taken = Piece {
            index: self.piece.index,
            text: self.piece.text.clone(),
            #[cfg(feature = "chat")]
            reasoning: self.piece.reasoning.clone(),
            #[cfg(feature = "chat")]
            tool_calls: mem::take(&mut self.piece.tool_calls),
            tokens: self.piece.tokens.clone(),
            top: mem::take(&mut self.piece.top),
            finish: self.piece.finish.take(),
        };
        self.piece.text.clear();
        #[cfg(feature = "chat")]
        self.piece.reasoning.clear();
        self.piece.tokens.clear();
        taken
    }
}

impl Channel {
    fn wish(&self) -> Wish {
        match self.wish.load(Ordering::Acquire) {
            wish if wish == Wish::Go as u8 => Wish::Go,
            wish if wish == Wish::Cancel as u8 => Wish::Cancel,
            _ => Wish::Forget,
        }
    }
}

/// The engine's end. Dropped before all completions have ended, it ends the stream with an error: no reader waits for ever.
pub(crate) struct Producer {
    channel: Arc<Channel>,
    /// Counts the request among those that have not ended; given up when its reader has been told how it did.
    live: Option<Live>,
}

impl Producer {
    /// Of a request that is waited for when the engine is drained.
    pub(crate) fn with_live(self, live: Live) -> Self {
        // `self` has a destructor, so its parts cannot be moved out of it.
        let mut producer = self;
        producer.live = Some(live);
        producer
    }

    pub(crate) fn wish(&self) -> Wish {
        self.channel.wish()
    }

    /// Adds to what completion `index` has brought since it was last read.
    pub(crate) fn push(&self, index: usize, add: impl FnOnce(&mut Piece)) {
        self.change(|buffer| {
            let part = &mut buffer.parts[index];
            if !part.has_ended {
                add(&mut part.piece);
            }
        });
    }

    /// Ends a completion.
    pub(crate) fn finish(&self, index: usize, finish: Finish) {
        self.change(|buffer| {
            let part = &mut buffer.parts[index];
            if !mem::replace(&mut part.has_ended, true) {
                part.piece.finish = Some(finish);
                buffer.live -= 1;
            }
        });
    }

    /// Ends the whole request: its text so far can be read, then the error.
    pub(crate) fn fail(&self, error: Error) {
        self.change(|buffer| {
            if buffer.live > 0 {
                buffer.live = 0;
                buffer.parts.iter_mut().for_each(|part| part.has_ended = true);
                buffer.error = Some(error);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Buffer)) {
        let mut buffer = self.channel.buffer.lock();
        change(&mut buffer);
        let waker = buffer.waker.take();
        let waits = mem::take(&mut buffer.waits);
        drop(buffer);
        if waits {
            self.channel.ready.notify_one();
        }
        if let Some(waker) = waker {
            // It is the reader's own: whatever it does is no business of other requests.
            panics::wake(waker);
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.fail(panics::ended("this request had ended"));
    }
}

/// The reader's end. Dropped, the request is forgotten.
pub(crate) struct Consumer(Arc<Channel>);

impl Consumer {
    /// The request is to end.
    pub(crate) fn cancel(&self) {
        let from = Wish::Go as u8;
        // It may have been cancelled already.
        let _ = self.0.wish.compare_exchange(from, Wish::Cancel as u8, Ordering::AcqRel, Ordering::Acquire);
    }

    /// What there is; waits until there is something. `None` when all was read.
    pub(crate) fn wait(&self) -> Option<Result<Piece>> {
        let mut buffer = self.0.buffer.lock();
        loop {
            match buffer.take() {
                Poll::Ready(item) => return item,
                Poll::Pending => {
                    buffer.waits = true;
                    buffer = self.0.ready.wait(buffer);
                }
            }
        }
    }

    /// What there is, if there is something.
    pub(crate) fn look(&self) -> Poll<Option<Result<Piece>>> {
        self.0.buffer.lock().take()
    }

    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<Piece>>> {
        // Cloned, and the one before dropped, while nothing is locked: both may run anything.
        let waker = context.waker().clone();
        let mut buffer = self.0.buffer.lock();
        let item = buffer.take();
        let unused = if item.is_pending() { buffer.waker.replace(waker) } else { Some(waker) };
        drop(buffer);
        drop(unused);
        item
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.0.wish.store(Wish::Forget as u8, Ordering::Release);
        // Nobody is to be woken for it, and what the waker holds need not stay.
        let waker = self.0.buffer.lock().waker.take();
        drop(waker);
    }
}

impl Buffer {
    fn take(&mut self) -> Poll<Option<Result<Piece>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let count = self.parts.len();
        let full = (0..count).map(|step| (self.next + step) % count).find(|&at| !self.parts[at].piece.is_empty());
        if let Some(at) = full {
            self.next = (at + 1) % count;
            return Poll::Ready(Some(Ok(self.parts[at].take())));
        }
        if self.live > 0 {
            return Poll::Pending;
        }
        self.over = true;
        Poll::Ready(self.error.take().map(Err))
    }
}
