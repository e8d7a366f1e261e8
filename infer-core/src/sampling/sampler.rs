use super::{penalties::Window, uniform};
use crate::{Error, ErrorKind, Result, Sampled, Sampling, Token};

/// Draws the tokens of one sequence.
///
/// Its state is a function of the [`Sampling`], the prompt and the tokens fed: it changes when tokens are *fed*
/// ([`accept`](Self::accept)), never when one is drawn. So a draw can be repeated or thrown away, and a failed pass needs
/// no taking back.
///
/// ```
/// use infer_core::{Sampling, Token, sampling::Sampler};
///
/// let prompt = [Token(3), Token(1)];
/// let mut sampler = Sampler::new(&Sampling::greedy(), &prompt, 4)?;
/// let mut drawn = Vec::new();
/// sampler.sample(&[0.0, 2.0, -1.0, 0.5], prompt.len(), &mut drawn)?;
/// assert_eq!(drawn[0].token, Token(1));
/// sampler.accept(2, &[drawn[0].token]);
/// # Ok::<_, infer_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sampler {
    sampling: Sampling,
    vocab: usize,
    prompt: usize,
    len: usize,
    /// Only where penalties need it.
    window: Option<Window>,
    adjusted: Vec<f32>,
    candidates: Vec<(f32, u32)>,
}

impl Sampler {
    /// A sampler for a sequence that begins with `prompt`, or is about to. `vocab` is the length of a row of logits.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a parameter out of range ([`Sampling::validate`]) or a token of the
    /// prompt outside the vocabulary.
    pub fn new(sampling: &Sampling, prompt: &[Token], vocab: usize) -> Result<Self> {
        sampling.validate(vocab)?;
        if let Some(at) = prompt.iter().position(|token| token.index() >= vocab) {
            let token = prompt[at];
            return Err(Error::invalid_input(format!(
                "token {token} at {at} of the prompt is outside the vocabulary of {vocab}"
            )));
        }
        Ok(Self {
            sampling: sampling.clone(),
            vocab,
            prompt: prompt.len(),
            len: prompt.len(),
            window: sampling.has_penalties().then(|| Window::new(sampling.penalty_window, prompt)),
            adjusted: Vec::with_capacity(vocab),
            candidates: Vec::with_capacity(vocab),
        })
    }

    /// How tokens are drawn.
    #[must_use]
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// Tokens that are in the sequence now, the first of them at position `at`. Called after the pass that fed them has
    /// succeeded.
    ///
    /// Positions of the prompt are counted already, and are not counted twice. Tokens put where others were replace
    /// them and all that followed. Tokens beyond a gap are not taken, and the draw after them says so.
    pub fn accept(&mut self, at: usize, tokens: &[Token]) {
        let known = self.prompt.saturating_sub(at).min(tokens.len());
        let (at, tokens) = (at + known, &tokens[known..]);
        if tokens.is_empty() || at > self.len {
            return;
        }
        self.truncate(at);
        if let Some(window) = &mut self.window {
            window.extend(tokens);
        }
        self.len += tokens.len();
    }

    /// The sequence was cut to its first `len` positions. The prompt stays known, also where the cut is within it.
    pub fn truncate(&mut self, len: usize) {
        let len = len.max(self.prompt);
        if len < self.len {
            self.len = len;
            if let Some(window) = &mut self.window {
                window.truncate(len);
            }
        }
    }

    /// The random number the draw at `position` uses, in `[0, 1)`: for runtimes that draw on a device. See
    /// [`uniform`].
    #[must_use]
    pub fn uniform(&self, position: usize) -> f32 {
        uniform(self.sampling.seed, position)
    }

    /// Draws the token for `position`, the position it would take, from the logits that the position before it gave, and
    /// appends it to `out`.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a row that is not as long as the vocabulary, or a position beyond
    /// the tokens [accepted](Self::accept). [`Runtime`](ErrorKind::Runtime) for logits that are not a number, or all
    /// negative infinity, and when the bias forbids every token. `out` is then as it was.
    pub fn sample<L: Logit>(&mut self, logits: &[L], position: usize, out: &mut Vec<Sampled>) -> Result<()> {
        if logits.len() != self.vocab {
            return Err(Error::invalid_input(format!(
                "a row of {} logits for a vocabulary of {}",
                logits.len(),
                self.vocab
            )));
        }
        if position > self.len {
            return Err(Error::invalid_input(format!(
                "a token for position {position} of a sequence whose tokens are known up to {}",
                self.len
            )));
        }
        self.adjusted.clear();
        self.adjusted.extend(logits.iter().map(|logit| logit.to_f32()));
        if self.adjusted.iter().any(|logit| logit.is_nan()) {
            return Err(Error::new(ErrorKind::Runtime, "a logit is not a number"));
        }
        let largest = |row: &[f32]| row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let raw_max = largest(&self.adjusted);
        let raw_sum: f64 = self.adjusted.iter().map(|&logit| f64::from((logit - raw_max).exp())).sum();
        for &(token, bias) in &self.sampling.logit_bias {
            self.adjusted[token.index()] += bias;
        }
        if let Some(window) = &mut self.window {
            window.penalise(position, &self.sampling, &mut self.adjusted);
        }
        let max = largest(&self.adjusted);
        if max == f32::NEG_INFINITY {
            return Err(Error::new(ErrorKind::Runtime, "every token is forbidden"));
        }
        self.candidates.clear();
        self.candidates.extend(self.adjusted.iter().copied().zip(0..));
        self.candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        self.truncate_candidates();
        let token = self.draw(position);
        let logprob = f64::from(logits[token.index()].to_f32() - raw_max) - raw_sum.ln();
        out.push(Sampled::new(token, logprob as f32));
        Ok(())
    }

    fn truncate_candidates(&mut self) {
        let Sampling { top_k, top_p, min_p, .. } = self.sampling;
        let max = self.candidates[0].0;
        if top_k > 0 {
            self.candidates.truncate(top_k);
        }
        let mass: f64 = self.candidates.iter().map(|&(logit, _)| f64::from((logit - max).exp())).sum();
        let mut seen = 0.0;
        let nucleus = self.candidates.iter().position(|&(logit, _)| {
            seen += f64::from((logit - max).exp());
            seen >= mass * f64::from(top_p)
        });
        if top_p < 1.0 {
            self.candidates.truncate(nucleus.map_or(usize::MAX, |last| last + 1));
        }
        if min_p > 0.0 {
            self.candidates.retain(|&(logit, _)| logit >= max + min_p.ln());
        }
    }

    fn draw(&self, position: usize) -> Token {
        if self.sampling.is_greedy() {
            return Token(self.candidates[0].1);
        }
        let max = self.candidates[0].0;
        let weight = |logit: f32| f64::from(((logit - max) / self.sampling.temperature).exp());
        let mut left =
            self.candidates.iter().map(|&(logit, _)| weight(logit)).sum::<f64>() * f64::from(self.uniform(position));
        let chosen = self.candidates.iter().find(|&&(logit, _)| {
            left -= weight(logit);
            left < 0.0
        });
        Token(chosen.unwrap_or(&self.candidates[0]).1)
    }
}

/// A number type that logits come in: `f32`, and with feature `half` its `f16` and `bf16`. Sealed.
pub trait Logit: sealed::Number {}

impl Logit for f32 {}

mod sealed {
    pub trait Number: Copy {
        fn to_f32(self) -> f32;
    }

    impl Number for f32 {
        fn to_f32(self) -> f32 {
            self
        }
    }
}
