//! `infer chat`: a conversation.

use crate::{
    args::{self, ModelArgs},
    constraint::{ConstraintArgs, closed, closed_by},
    ctrl_c::Reader,
    failure::{self, Failure},
    generate,
    lines::{Ended, Lines},
    output,
    sampling::SamplingArgs,
};
use clap::builder::NonEmptyStringValueParser;
use infer::{
    AdapterSource, Engine, EngineBuilder, Error, ErrorKind, Finish, FinishReason, Overflow, Prompt, Request,
    chat::{Message, Role},
};
use std::{io::IsTerminal, ops::ControlFlow};

/// Talk with a model: a line is a message, and what was said before is kept.
///
/// Answers go to stdout, everything else to stderr. Lines come from the terminal, or from a pipe. Only what is new of a conversation is
/// computed. Where it has grown too long for the context, its older half is left out, which is told.
///
/// Ctrl-C stops an answer; what came of it stays part of the conversation. Between answers Ctrl-C and Ctrl-D end the program.
///
/// A line that begins with / is a command: /clear begins anew, /exit ends, /help lists them.
#[derive(clap::Args, Debug)]
#[command(allow_negative_numbers = true)] // so that -1 is told to be out of range, and not to be unknown
pub(crate) struct Chat {
    #[command(flatten)]
    model: ModelArgs,

    /// A system message before everything else.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    system: Option<String>,

    /// Tokens of an answer at most, and no more than half the context.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1024)]
    max_tokens: usize,

    /// End an answer where this text comes; it is left out. May be given several times.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    stop: Vec<String>,

    /// Threads, at most the CPUs this process may run on; as many as it may use if not given.
    #[arg(long, short, value_name = "N")]
    threads: Option<usize>,

    /// Context in tokens, the conversation and the next answer together; 0 is what the model was trained for. If not given, that, but 4096 at
    /// most.
    #[arg(long, short, value_name = "N")]
    ctx: Option<usize>,

    /// An adapter (LoRA) for the model, a GGUF file, and how strongly it counts if not as it was trained: FILE:0.5.
    #[arg(long, value_name = "FILE[:SCALE]", value_parser = generate::adapter)]
    adapter: Option<AdapterSource>,

    #[command(flatten)]
    constraint: ConstraintArgs,

    #[command(flatten)]
    sampling: SamplingArgs,
}

const COMMANDS: &str = "/clear begins the conversation anew, /exit ends it (as Ctrl-D does), /help says this";

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
enum Said<'l> {
    Nothing,
    Message(&'l str),
    Clear,
    Exit,
    Help,
    /// It begins as a command, and is none.
    Unknown(&'l str),
}

impl Chat {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        // What can be wrong without the model is found before it is loaded.
        let request = self.request()?;
        let engine = self.engine()?;
        let mut talk = Talk {
            request: self.fit(request, &engine)?,
            reader: Reader::new()?,
            engine,
            messages: self.system.iter().map(Message::system).collect(),
        };
        let is_person = std::io::stdin().is_terminal();
        let mut lines = Lines::new(std::io::stdin().lock(), args::LONGEST_LINE);
        if is_person {
            output::note(COMMANDS);
        }
        let mut line = Vec::new();
        loop {
            if is_person {
                output::aside("> ");
            }
            let Some(ended) = lines.next(&mut line).map_err(|error| args::unreadable("stdin", error))? else {
                break;
            };
            match talk.line(&line, ended) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                // A person can say something else; for a script it is over.
                Err(Failure::Run(error)) if is_person && !is_over(&error) => {
                    output::note(&output::printable(&format!("error: {}", failure::chain(&error))));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    fn request(&self) -> Result<Request, Failure> {
        let mut sampling = self.sampling.sampling()?;
        sampling.constraint = self.constraint.constraint()?;
        let request = Request::chat([]).with_sampling(sampling);
        let request = match &self.adapter {
            Some(adapter) => request.with_adapter(&adapter.name),
            None => request,
        };
        Ok(self.stop.iter().fold(request, |request, text| request.with_stop(text)))
    }

    fn engine(&self) -> Result<Engine, Failure> {
        // The turn before is found in the prefix cache.
        let mut builder = self.model.engine(self.threads).with_sequences(1);
        if let Some(ctx) = self.ctx {
            builder = builder.with_context(ctx);
        }
        let builder = self.adapter.iter().cloned().fold(builder, EngineBuilder::with_adapter);
        self.model.build(builder)
    }

    /// What depends on the engine.
    fn fit(&self, mut request: Request, engine: &Engine) -> Result<Request, Failure> {
        // An answer that may fill the whole context would leave no room for what it answers.
        let context = engine.limits().map_or(usize::MAX, |limits| limits.context);
        let most = self.max_tokens.min(context.div_ceil(2));
        request.max_tokens = Some(most);
        let mut sampling = self.sampling.with_breakers(request.sampling, &**engine.tokenizer())?;
        self.constraint.check(&sampling, engine)?;
        if self.constraint.closes() {
            sampling.constraint = sampling.constraint.map(|constraint| closed(constraint, most));
        }
        request.sampling = sampling;
        Ok(request)
    }
}

/// A conversation under way.
struct Talk {
    engine: Engine,
    reader: Reader,
    /// All of a request but the messages.
    request: Request,
    /// A system message, if there is one, and then messages of user and assistant in turn.
    messages: Vec<Message>,
}

impl Talk {
    /// Does what a line says.
    fn line(&mut self, line: &[u8], ended: Ended) -> Result<ControlFlow<()>, Failure> {
        if ended == Ended::TooLong {
            let most = output::bytes(args::LONGEST_LINE as u64);
            return Err(Error::invalid_input(format!("the message has more than {most}")).into());
        }
        let text = str::from_utf8(line).map_err(|_| Error::invalid_input("the message is not UTF-8 text"))?;
        match Said::of(text) {
            Said::Nothing => {}
            Said::Message(text) => self.message(text)?,
            Said::Clear => self.messages.retain(|message| message.role == Role::System),
            Said::Exit => return Ok(ControlFlow::Break(())),
            Said::Help => output::note(COMMANDS),
            Said::Unknown(name) => {
                let message =
                    format!("there is no command {name}: {COMMANDS}; a message may begin with a space before a /");
                return Err(Error::invalid_input(message).into());
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Answers a message.
    fn message(&mut self, text: &str) -> Result<(), Failure> {
        self.messages.push(Message::user(text));
        let (mut answer, mut end) = self.answer();
        while let Err(Failure::Run(error)) = &end
            && error.kind() == ErrorKind::ContextFull
            && self.forget()
        {
            (answer, end) = self.answer();
        }
        match answer {
            Some(answer) => self.messages.push(answer),
            None => drop(self.messages.pop()),
        }
        end
    }

    /// Streams an answer, and returns what came of it.
    fn answer(&mut self) -> (Option<Message>, Result<(), Failure>) {
        let mut request = self.request.clone();
        request.prompt = Prompt::Chat(self.messages.clone());
        // As long as something can be left out, an answer is to have room.
        request.overflow = if self.can_forget() { Overflow::Error } else { Overflow::Stop };
        let (mut answer, mut reasoning, mut finish) = (String::new(), String::new(), None);
        let mut end = self.reader.read(self.engine.generate(request), |piece| {
            output::aside(&piece.reasoning);
            reasoning += &piece.reasoning;
            if answer.is_empty() && !piece.text.is_empty() && !reasoning.is_empty() {
                output::aside("\n");
            }
            output::text(&piece.text)?;
            answer += &piece.text;
            finish = finish.take().or(piece.finish);
            Ok(())
        });
        if let Err(Failure::Run(error)) = end {
            let constraint = self.request.sampling.constraint.as_ref();
            end = Err(closed_by("--max-tokens", error, constraint, &self.engine).into());
        }
        if !answer.is_empty() {
            end = end.and(output::text("\n"))
        }
        if let Some(finish) = finish {
            output::note(&told(&finish));
        }
        let message = match (answer.is_empty(), reasoning.is_empty()) {
            (true, _) => None,
            (false, true) => Some(Message::assistant(answer)),
            (false, false) => Some(Message::assistant(answer).with_reasoning(&reasoning)),
        };
        (message, end)
    }

    fn can_forget(&self) -> bool {
        self.messages.iter().filter(|message| message.role == Role::User).count() > 1
    }

    /// Leaves out the older half of the conversation, its first messages but the system's. Returns whether there was one.
    fn forget(&mut self) -> bool {
        if !self.can_forget() {
            return false;
        }
        let first = usize::from(self.messages[0].role == Role::System);
        let turns = (self.messages.len() - first) / 2; // the last one has no answer yet
        let dropped = turns.div_ceil(2);
        self.messages.drain(first..first + 2 * dropped);
        output::note(&format!(
            "[the context is full: the {dropped} oldest turns are left out from here on; --ctx makes it larger]"
        ));
        true
    }
}

/// What is said of an answer.
fn told(finish: &Finish) -> String {
    let stats = &finish.stats;
    let why = match finish.reason {
        FinishReason::Cancelled => ", stopped",
        FinishReason::Length => ", cut off: --max-tokens gives it more",
        FinishReason::ContextFull => ", cut off: the context is full, /clear begins anew and --ctx makes it larger",
        _ => "",
    };
    format!(
        "[{} prompt tokens, {} of them new; {} tokens, {:.1} a second{why}]",
        stats.prompt_tokens,
        stats.prompt_tokens - stats.cached_tokens,
        stats.generated_tokens,
        stats.decode_rate(),
    )
}

/// Whether nothing can be answered any more.
fn is_over(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Closed | ErrorKind::Panicked)
}

impl<'l> Said<'l> {
    fn of(line: &'l str) -> Self {
        match line {
            "/clear" => Self::Clear,
            "/exit" => Self::Exit,
            "/help" => Self::Help,
            command if command.starts_with('/') => Self::Unknown(command),
            text if text.trim().is_empty() => Self::Nothing,
            text => Self::Message(text.trim()),
        }
    }
}
