//! From a constraint as text to one that can be followed, by `llguidance`.

use super::{Constraint, ConstraintFormat, gbnf, schema};
use crate::{Error, ErrorKind, Result, Token, Vocab};
use llguidance::{
    Matcher, ParserFactory,
    api::{ParserLimits, TopLevelGrammar},
    earley::SlicedBiasComputer,
};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use toktrie::{ApproximateTokEnv, INVALID_TOKEN, InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie};

/// Longer texts are refused unread.
const LONGEST_TEXT: usize = 4 << 20;
/// Rules that refer to each other are followed on the stack.
pub(super) const MOST_RULES: usize = 2_000;
/// For as many rules or schemas within each other as are allowed: up to 30 kB each, unoptimised. Memory is taken as it is used.
const STACK: usize = 128 << 20;
/// Errors of the library quote the line they are in, however long it is.
const LONGEST_ERROR: usize = 600;

/// What a constraint may cost. A text that needs more is an error where it is compiled, and a draw where it is followed.
fn limits() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 2_000,
        // About 20 ms.
        initial_lexer_fuel: 1_000_000,
        // About 15 ms.
        step_lexer_fuel: 200_000,
        step_max_items: 50_000,
        // About 1 kB each, for each sequence.
        max_lexer_states: 50_000,
        max_grammar_size: 500_000,
        precompute_large_lexemes: true,
        verbose_errors: false,
    }
}

/// The library's word for a place from which no token goes on.
pub(super) const DEAD_END: &str = "NoExtensionBias";

/// A vocabulary in the form that constraints are compiled for.
pub(crate) struct Tokens {
    factory: ParserFactory,
    env: TokEnv,
    ends: Vec<Token>,
    end_set: SimpleVob,
    /// Byte → whether it is a token by itself. A text of such bytes can be cut into tokens wherever it is cut first.
    is_token: [bool; 256],
}

impl Tokens {
    pub(super) fn new(vocab: &Vocab) -> Result<Self> {
        let tokens = || (0..vocab.len()).map(|id| Token(id as u32));
        let ends: Vec<Token> = tokens().filter(|&token| vocab.is_end(token)).collect();
        if ends.is_empty() {
            return Err(invalid(
                "the vocabulary has no token that ends a text, so none can end where a constraint says",
            ));
        }
        let word = |token| {
            let bytes = vocab.bytes(token).unwrap_or_default();
            // The mark keeps names of control tokens apart from text that reads the same.
            let is_structure = vocab.is_control(token) || vocab.is_end(token);
            let mark: &[u8] = if is_structure { &[TokTrie::SPECIAL_TOKEN_MARKER] } else { &[] };
            [mark, bytes].concat()
        };
        let words: Vec<Vec<u8>> = tokens().map(word).collect();
        let size = u32::try_from(words.len()).map_err(|_| invalid("the vocabulary has 2^32 tokens or more"))?;
        contained(|| {
            let info = TokRxInfo::new(size, INVALID_TOKEN);
            let ids: Vec<u32> = ends.iter().map(|token| token.0).collect();
            let trie = TokTrie::from(&info, &words).with_eos_tokens(&ids);
            let is_token = std::array::from_fn(|byte| trie.token_id_at_bytes(&[byte as u8]).is_some());
            let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
            let slices = SlicedBiasComputer::general_slices();
            let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices)
                .map_err(|error| invalid(said(&error)))?;
            *factory.limits_mut() = limits();
            factory.quiet();
            let end_set = env.tok_trie().eos_token_set();
            Ok(Self { factory, env, ends, end_set, is_token })
        })
    }

    pub(super) fn trie(&self) -> &TokTrie {
        self.env.tok_trie()
    }

    /// The tokens that end a text.
    pub(super) fn ends(&self) -> &[Token] {
        &self.ends
    }

    pub(super) fn end_set(&self) -> &SimpleVob {
        &self.end_set
    }

    /// Whether this text can be cut into tokens wherever it is cut first.
    pub(super) fn is_dense(&self, text: &[u8]) -> bool {
        text.iter().all(|&byte| self.is_token[usize::from(byte)])
    }
}

/// A constraint at the beginning of a text.
pub(crate) struct Compiled {
    tokens: Arc<Tokens>,
    beginning: Mutex<Matcher>,
    /// How often [`beginning`](Self::beginning) was replaced by one that knew more.
    lessons: AtomicUsize,
}

impl Compiled {
    const MOST_LESSONS: usize = 4;

    pub(super) fn new(constraint: &Constraint, tokens: Arc<Tokens>) -> Result<Self> {
        let len = constraint.text.len();
        if len > LONGEST_TEXT {
            return Err(invalid(format!("a constraint of {len} bytes, {LONGEST_TEXT} are the most")));
        }
        let compile = || Self::compile(constraint, &tokens);
        let beginning = with_stack(compile).map_err(|error| match error.kind() {
            ErrorKind::InvalidConstraint => invalid(format!("{}: {error}", name(constraint.format))),
            _ => error,
        })?;
        Ok(Self { tokens, beginning: Mutex::new(beginning), lessons: AtomicUsize::new(0) })
    }

    fn compile(constraint: &Constraint, tokens: &Tokens) -> Result<Matcher> {
        let grammar = match constraint.format {
            ConstraintFormat::JsonSchema => {
                TopLevelGrammar::from_json_schema(schema::prepare(&constraint.text, constraint.whitespace)?)
            }
            ConstraintFormat::Regex => TopLevelGrammar::from_regex(&constraint.text),
            ConstraintFormat::Lark => lark(constraint.text.clone())?,
            ConstraintFormat::Gbnf => lark(gbnf::to_lark(&constraint.text)?)?,
        };
        contained(|| {
            let parser = tokens.factory.create_parser(grammar).map_err(|error| invalid(said(&error)))?;
            let matcher = Matcher::new(Ok(parser));
            // Found out now, and not at the first draw.
            match matcher.deep_clone().compute_mask_or_eos() {
                Ok(_) => Ok(matcher),
                Err(error) if said(&error).contains(DEAD_END) => {
                    Err(invalid("no text that the vocabulary can write meets the constraint"))
                }
                Err(error) => Err(invalid(said(&error))),
            }
        })
    }

    pub(super) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// One to follow a text with. It shares nothing that changes: what one text asks too much of, another one does not notice.
    pub(super) fn begin(&self) -> Matcher {
        self.beginning.lock().unwrap_or_else(PoisonError::into_inner).deep_clone()
    }

    /// Has later texts begin with one that has followed a text: states of its lexer that were met need not be computed again. What
    /// is allowed is the same. A few times only, for states count towards the limit of what is followed.
    pub(super) fn learn(&self, mut matcher: Matcher) -> Result<()> {
        if self.lessons.fetch_add(1, Ordering::Relaxed) < Self::MOST_LESSONS {
            matcher.reset().map_err(|error| invalid(said(&error)))?;
            matcher.invalidate_bias_cache();
            *self.beginning.lock().unwrap_or_else(PoisonError::into_inner) = matcher;
        }
        Ok(())
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").finish_non_exhaustive()
    }
}

fn name(format: ConstraintFormat) -> &'static str {
    match format {
        ConstraintFormat::JsonSchema => "JSON schema",
        ConstraintFormat::Regex => "regular expression",
        ConstraintFormat::Lark => "Lark grammar",
        ConstraintFormat::Gbnf => "GBNF grammar",
    }
}

/// Each rule that refers to another takes stack.
fn lark(text: String) -> Result<TopLevelGrammar> {
    let rules = text.lines().filter(|line| line.contains(':')).count();
    if rules > MOST_RULES {
        return Err(invalid(format!("a grammar of {rules} rules, {MOST_RULES} are the most")));
    }
    // Schemas in it, too, and each has a bracket.
    let brackets = text.matches('{').count();
    if text.contains("%json") && brackets > 2 * MOST_RULES {
        let message =
            format!("a grammar with schemas in it that have {brackets} brackets, {} are the most", 2 * MOST_RULES);
        return Err(invalid(message));
    }
    Ok(TopLevelGrammar::from_lark(text))
}

/// Compiles on a stack that is sure to be enough: the library follows rules and references into each other, and a caller's
/// stack that overflows ends the process. The thread does nothing else, and is gone when this returns.
fn with_stack<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("constraint".into()).stack_size(STACK);
        let thread = builder.spawn_scoped(scope, work).map_err(|error| {
            Error::new(ErrorKind::OutOfMemory, "no thread for compiling a constraint can be started").with_source(error)
        })?;
        thread.join().unwrap_or_else(|_| Err(invalid("compiling the constraint panicked")))
    })
}

/// Runs what the library does; a panic in it is an error.
pub(super) fn contained<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let words = payload.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without words");
        Err(invalid(format!("llguidance panicked: {words}")))
    })
}

/// What the library says, without the traces and listings it may add.
pub(super) fn said(error: &impl fmt::Display) -> String {
    let text = format!("{error:#}");
    if text.contains("oneOf constraints are not supported") {
        return "a text of oneOf can be kept to one of its schemas only where their types or constants tell them apart; use \
                anyOf if more than one may hold"
            .into();
    }
    let end = ["<backtrace>", "<state>", "<non-verbose/>"].iter().filter_map(|mark| text.find(mark)).min();
    let text = text[..end.unwrap_or(text.len())].trim_end();
    if text.len() <= LONGEST_ERROR {
        text.to_owned()
    } else {
        format!("{}…", &text[..text.floor_char_boundary(LONGEST_ERROR)])
    }
}

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidConstraint, message)
}
