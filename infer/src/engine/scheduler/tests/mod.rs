//! The scheduler, driven by hand on scripted sessions.

mod basics;
mod cells;
mod chaos;
mod checks;
mod fairness;
mod faults;
mod poison;
mod prefixes;
mod scores;
mod shifts;
mod stats;
mod world;

use super::*;
use crate::{
    Completion, Generator, Piece, Request,
    engine::{
        channel::{Consumer, channel},
        job::Job,
    },
    piece::Collector,
};
use infer_core::{
    ErrorKind, SessionOptions, Token,
    testing::{Script, ScriptedModel},
};

/// More turns than any test needs: a scheduler that does not come to an end fails.
const TURNS: usize = 100_000;

/// A scheduler on a scripted model, and what its handles would hold.
struct Kit {
    scheduler: Scheduler,
    shared: Arc<Shared>,
    /// What solo runs are made on.
    plain: ScriptedModel,
    options: SessionOptions,
    asked: u64,
}

/// What is asked for and not read yet.
struct Asked {
    stream: Consumer,
    parts: Vec<Collector>,
    end: Option<Result<()>>,
}

impl Kit {
    fn new(script: Script, sequences: usize) -> Self {
        Self::with(script, sequences, Settings { cache: 100_000, ..Settings::default() })
    }

    fn with(script: Script, sequences: usize, settings: Settings) -> Self {
        Self::with_options(script, SessionOptions::new().with_sequences(sequences), settings)
    }

    fn with_options(script: Script, options: SessionOptions, settings: Settings) -> Self {
        Self::made_by(script, options, settings, |model, options| model.session(options))
    }

    fn made_by(
        script: Script,
        options: SessionOptions,
        settings: Settings,
        mut make: impl FnMut(&dyn Model, &SessionOptions) -> Result<Box<dyn Session>> + 'static,
    ) -> Self {
        let model = ScriptedModel::new(script);
        let shared = Arc::new(Shared::new());
        let made = options.clone();
        let make: SessionFactory = Box::new(move |model| make(model, &made));
        let scheduler = Scheduler::new(Box::new(model.clone()), make, settings, shared.clone()).unwrap();
        Self { scheduler, shared, plain: model, options, asked: 0 }
    }

    fn ask(&mut self, request: &Request) -> Asked {
        let prompt = match &request.prompt {
            crate::Prompt::Tokens(tokens) => tokens.clone(),
            crate::Prompt::Text(text, _) => tokens(text),
            #[cfg(feature = "chat")]
            other @ crate::Prompt::Chat(_) => panic!("{other:?} is rendered by the engine"),
        };
        let (out, stream) = channel(request.n);
        let place = self.shared.enter(usize::MAX).unwrap();
        let request = request.clone();
        self.scheduler.push(Job {
            id: self.asked,
            request,
            prompt,
            made: Instant::now(),
            out,
            place,
            span: tracing::Span::none(),
        });
        self.asked += 1;
        Asked { stream, parts: Vec::new(), end: None }
    }

    /// Turns until nothing is left to do.
    fn run(&mut self) {
        for _ in 0..TURNS {
            match self.scheduler.turn() {
                Turn::Again => {}
                Turn::Until(time) => std::thread::sleep(time.saturating_duration_since(Instant::now())),
                Turn::Wait => {
                    assert!(self.scheduler.is_idle());
                    return;
                }
            }
        }
        panic!("not done after {TURNS} turns: {:?}", self.shared.stats());
    }

    fn turns(&mut self, count: usize) {
        for _ in 0..count {
            self.scheduler.turn();
        }
    }

    /// The answer to one request by itself.
    fn answer(&mut self, request: &Request) -> Completion {
        let asked = self.ask(request);
        self.run();
        asked.one()
    }

    /// What a generator makes of a request, alone on a session of its own.
    fn solo(&self, request: &Request) -> Completion {
        self.try_solo(request).unwrap()
    }

    fn try_solo(&self, request: &Request) -> Result<Completion> {
        let mut session = self.plain.session(&self.options).unwrap();
        let mut generator = Generator::new(self.plain.tokenizer());
        let request = match &request.prompt {
            crate::Prompt::Text(text, _) => Request { prompt: crate::Prompt::Tokens(tokens(text)), ..request.clone() },
            _ => request.clone(),
        };
        generator.generate(&mut session, &request)?.complete()
    }

    fn stats(&self) -> EngineStats {
        self.shared.stats()
    }

    /// Nothing may be left once the prefix cache is emptied.
    fn assert_all_is_free(&mut self) {
        assert!(self.scheduler.is_idle());
        self.scheduler.cache.clear();
        // There is no session where the last text ended with it.
        if let Some(session) = &self.scheduler.session {
            let usage = session.usage();
            assert_eq!((usage.sequences, usage.cells), (0, 0));
        }
        assert_eq!(self.shared.waiting(), 0);
    }
}

impl Asked {
    /// Takes all there is, without waiting.
    fn read(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(item)) = self.stream.poll(&mut context) {
            match item {
                Ok(piece) => self.push(piece),
                Err(error) => self.end = Some(Err(error)),
            }
        }
    }

    fn push(&mut self, piece: Piece) {
        while self.parts.len() <= piece.index {
            self.parts.push(Collector::default());
        }
        let index = piece.index;
        self.parts[index].push(piece);
    }

    /// All completions.
    fn all(mut self) -> Vec<Completion> {
        self.read();
        if let Some(Err(error)) = self.end {
            panic!("{error}");
        }
        self.parts.into_iter().map(|part| part.complete().expect("it has ended")).collect()
    }

    fn one(self) -> Completion {
        let mut all = self.all();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    fn error(mut self) -> Error {
        self.read();
        self.end.expect("it has ended").expect_err("it has failed")
    }
}

use std::task::{Context, Poll, Waker};

fn tokens(text: &str) -> Vec<Token> {
    text.bytes().map(|byte| Token(byte.into())).collect()
}

fn drawn(completion: &Completion) -> Vec<Token> {
    completion.tokens.iter().map(|sampled| sampled.token).collect()
}

fn ask(text: &str, max_tokens: usize) -> Request {
    Request::text(text).with_max_tokens(max_tokens)
}
