//! Requests are answered, several at once, and each answer is written as soon as it is there.

use super::{
    answer::{Answer, Said, Usage},
    input::Entry,
    line::{BadLine, Defaults, Line},
};
use crate::failure::{self, Failure};
use infer::{Error, ErrorKind, Request};
use serde_json::value::RawValue;
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// What was done.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) tokens: u64,
}

/// How requests are answered, and where answers go.
pub(crate) struct Work<'w> {
    /// What a line does not say.
    pub(crate) defaults: &'w Defaults,
    /// Requests that are under way at once: as many as are computed together, and some that wait to be next.
    pub(crate) at_once: usize,
    /// Given a request, and whether log-probabilities are to be told; `None` where it was stopped half-way.
    pub(crate) answer: &'w (dyn Fn(Request, bool) -> Result<Option<Said>, Error> + Sync),
    /// Set from outside, or here after a failure: nothing more is begun.
    pub(crate) stop: &'w AtomicBool,
    /// Called after a failure, so that what is under way ends soon.
    pub(crate) halt: &'w (dyn Fn() + Sync),
}

/// What the threads share.
struct Shared<E, W> {
    entries: Mutex<E>,
    written: Mutex<Written<W>>,
}

struct Written<W> {
    write: W,
    tally: Tally,
    /// Half a line may stand at the end: nothing is written behind it.
    has_failed: bool,
}

impl Work<'_> {
    /// Answers all entries. Where it was stopped, what was not answered by then is not written.
    ///
    /// # Errors
    /// Where entries cannot be read, answers cannot be written, or no request can be answered any more.
    pub(crate) fn run<E, W>(&self, entries: E, write: W) -> Result<Tally, Failure>
    where
        E: Iterator<Item = Result<Entry, Error>> + Send,
        W: FnMut(&Answer<'_>, &Tally) -> Result<(), Failure> + Send,
    {
        let written = Mutex::new(Written { write, tally: Tally::default(), has_failed: false });
        let shared = Shared { entries: Mutex::new(entries), written };
        let end = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.at_once).map(|_| scope.spawn(|| self.take_turns(&shared))).collect();
            // All are waited for, and the first failure is told.
            let ends: Vec<_> =
                threads.into_iter().map(|thread| thread.join().expect("answering does not panic")).collect();
            ends.into_iter().collect::<Result<(), Failure>>()
        });
        end.map(|()| shared.written.into_inner().unwrap_or_else(PoisonError::into_inner).tally)
    }

    fn take_turns<E, W>(&self, shared: &Shared<E, W>) -> Result<(), Failure>
    where
        E: Iterator<Item = Result<Entry, Error>>,
        W: FnMut(&Answer<'_>, &Tally) -> Result<(), Failure>,
    {
        let end = loop {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let next = lock(&shared.entries).next();
            let done = match next {
                None => return Ok(()),
                Some(Ok(entry)) => self.one(entry, &shared.written),
                Some(Err(error)) => Err(error.into()),
            };
            if done.is_err() {
                break done;
            }
        };
        // What fails because another one has failed, or because it was stopped, is no failure of its own.
        if self.stop.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        (self.halt)();
        end
    }

    fn one<W>(&self, entry: Entry, written: &Mutex<Written<W>>) -> Result<(), Failure>
    where
        W: FnMut(&Answer<'_>, &Tally) -> Result<(), Failure>,
    {
        let (id, said) = self.said(&entry);
        let said = match said {
            Ok(Some(said)) => said,
            Ok(None) => return Ok(()),
            Err(error) if is_everybodys(&error) => return Err(error.into()),
            // It may have failed because it was stopped.
            Err(_) if self.stop.load(Ordering::Relaxed) => return Ok(()),
            Err(error) => Said::failed(error.kind(), format!("line {}: {}", entry.line, failure::chain(&error))),
        };
        let mut written = lock(written);
        let Written { write, tally, has_failed } = &mut *written;
        if *has_failed {
            return Ok(());
        }
        tally.add(said.usage());
        let end = write(&Answer { index: entry.index, id: id.as_deref(), said, key: entry.key }, tally);
        *has_failed = end.is_err();
        end
    }

    /// What a line is answered, and what the answer is to be known by; `None` where it was stopped half-way.
    fn said(&self, entry: &Entry) -> (Option<Box<RawValue>>, Result<Option<Said>, Error>) {
        let line = match &entry.text {
            Ok(text) => Line::parse(text, self.defaults),
            Err(what) => Err(BadLine { id: None, what: what.clone() }),
        };
        match line {
            Ok(Line { id, request, has_logprobs }) => (id, (self.answer)(request, has_logprobs)),
            Err(BadLine { id, what }) => (id, Err(Error::invalid_input(what))),
        }
    }
}

impl Tally {
    /// Counts an answer; `None` is an error.
    fn add(&mut self, usage: Option<Usage>) {
        self.requests += 1;
        match usage {
            None => self.errors += 1,
            Some(usage) => {
                self.prompt_tokens += usage.prompt_tokens as u64;
                self.cached_tokens += usage.cached_tokens as u64;
                self.tokens += usage.completion_tokens as u64;
            }
        }
    }
}

/// Whether no other request would fare better.
fn is_everybodys(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Closed | ErrorKind::Panicked)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::answer::Key;
    use infer::Prompt;
    use std::sync::atomic::AtomicUsize;

    fn defaults() -> Defaults {
        Defaults { request: Request::text("").with_max_tokens(4), close: false }
    }

    fn entries(lines: &[&str]) -> Vec<Result<Entry, Error>> {
        let entry = |(index, text): (usize, &&str)| {
            let (index, key) = (index as u64, Key::new("", text.as_bytes()));
            Ok(Entry { index, line: index + 1, key, text: Ok((*text).to_owned()) })
        };
        lines.iter().enumerate().map(entry).collect()
    }

    /// The prompt, as an answer that has as many tokens as it may.
    fn echo(request: Request, _: bool) -> Result<Option<Said>, Error> {
        let Prompt::Text(text, _) = request.prompt else { panic!("{request:?}") };
        Ok(Some(Said::of(&text, request.max_tokens.unwrap())))
    }

    /// Answers these, three at once, and gives the lines that were written, in the order of their numbers.
    fn run(
        entries: Vec<Result<Entry, Error>>,
        answer: &(dyn Fn(Request, bool) -> Result<Option<Said>, Error> + Sync),
        stop: &AtomicBool,
        halt: &(dyn Fn() + Sync),
    ) -> (Vec<serde_json::Value>, Result<Tally, Failure>) {
        let mut lines = Vec::new();
        let work = Work { defaults: &defaults(), at_once: 3, answer, stop, halt };
        let tally = work.run(entries.into_iter(), |answer, _| {
            lines.push(serde_json::to_value(answer).unwrap());
            Ok(())
        });
        lines.sort_by_key(|line| line["index"].as_u64());
        (lines, tally)
    }

    #[test]
    fn each_line_is_answered_and_a_bad_one_is_an_error_of_its_own() {
        let lines = [
            r#"{"prompt": "one"}"#,
            "hello",
            r#"{"prompt": "two", "max_tokens": 2}"#,
            r#"{"id": "b", "prompt": "three"}"#,
            r#"{"id": 4, "prompt": "four"}"#,
        ];
        let answer = |request: Request, has_logprobs| match &request.prompt {
            Prompt::Text(text, _) if text == "three" => Err(Error::new(ErrorKind::ContextFull, "it does not fit")),
            _ => echo(request, has_logprobs),
        };
        let stop = AtomicBool::new(false);
        let (lines, tally) = run(entries(&lines), &answer, &stop, &|| panic!("nothing failed"));
        let tally = tally.unwrap();
        assert_eq!((tally.requests, tally.errors, tally.tokens, tally.prompt_tokens), (5, 2, 10, 3));
        assert_eq!(lines.len(), 5);
        assert_eq!((&lines[0]["text"], &lines[0]["usage"]["completion_tokens"]), (&"one".into(), &4.into()));
        assert!(lines[0].get("logprobs").is_none() && lines[0].get("id").is_none() && lines[0].get("error").is_none());
        assert_eq!(lines[1]["error"]["kind"], "invalid input");
        assert_eq!(lines[1]["error"]["message"], "line 2: not JSON: expected value at column 1");
        assert_eq!(lines[2]["tokens"].as_array().unwrap().len(), 2);
        assert_eq!((&lines[3]["id"], &lines[3]["error"]["kind"]), (&"b".into(), &"the context is full".into()));
        assert_eq!(lines[3]["error"]["message"], "line 4: it does not fit");
        assert_eq!((&lines[4]["id"], &lines[4]["text"]), (&4.into(), &"four".into()));
    }

    #[test]
    fn what_is_stopped_is_not_written() {
        let (stop, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
        let stopping = |request: Request, has_logprobs| {
            let number = begun.fetch_add(1, Ordering::Relaxed);
            if number == 1 {
                stop.store(true, Ordering::Relaxed);
            }
            match number {
                0 => echo(request, has_logprobs),
                1 => Ok(None),
                _ => Err(Error::new(ErrorKind::Closed, "shut down")),
            }
        };
        let (lines, tally) = run(entries(&[r#"{"prompt": "x"}"#; 100]), &stopping, &stop, &|| panic!("no failure"));
        assert_eq!((tally.unwrap().requests, lines.len()), (1, 1));
        assert!(begun.into_inner() <= 4, "three at once, and the next one of who was first");
    }

    #[test]
    fn what_stops_everybody_is_told_once_and_ends_the_rest() {
        let (stop, halted) = (AtomicBool::new(false), AtomicUsize::new(0));
        let halt = || {
            halted.fetch_add(1, Ordering::Relaxed);
        };
        let closed = |_, _| Err(Error::new(ErrorKind::Panicked, "it panicked"));
        let (lines, tally) = run(entries(&[r#"{"prompt": "x"}"#; 100]), &closed, &stop, &halt);
        let Err(Failure::Run(error)) = tally else { panic!("a failure was dropped") };
        assert_eq!((error.kind(), lines.len(), halted.load(Ordering::Relaxed)), (ErrorKind::Panicked, 0, 1));

        let stop = AtomicBool::new(false);
        let mut entries = entries(&[r#"{"prompt": "x"}"#; 2]);
        entries.insert(1, Err(Error::new(ErrorKind::Io, "cannot read")));
        let (_, tally) = run(entries, &echo, &stop, &halt);
        assert!(matches!(tally, Err(Failure::Run(error)) if error.kind() == ErrorKind::Io));
        assert_eq!(halted.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn an_answer_that_cannot_be_written_ends_it() {
        let (stop, defaults) = (AtomicBool::new(false), defaults());
        let work = Work { defaults: &defaults, at_once: 2, answer: &echo, stop: &stop, halt: &|| {} };
        let entries = entries(&[r#"{"prompt": "x"}"#; 50]);
        let mut written = 0;
        let end = work.run(entries.into_iter(), |_, _| {
            written += 1;
            if written == 3 { Err(Error::new(ErrorKind::Io, "the disk is full").into()) } else { Ok(()) }
        });
        assert!(matches!(end, Err(Failure::Run(error)) if error.to_string() == "the disk is full"));
        assert_eq!(written, 3, "nothing comes behind a line that may be half there");
    }
}
