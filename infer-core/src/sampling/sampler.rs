use super::{
    Logit,
    constrained::{Constrained, LookAhead},
    draw::{Peaked, Pool, Scratch},
    dry,
    penalties::Counts,
    row::{Peak, Softmax, runtime},
    uniform::{Chances, uniform},
};
use crate::{Error, Result, Sampled, Sampling, Token, Vocab};
use std::sync::Arc;

/// Draws the tokens of one sequence.
///
/// Its state is a function of the [`Sampling`], the prompt and the tokens fed: it changes when tokens are *fed*
/// ([`accept`](Self::accept)), never when one is drawn. So a draw can be repeated or thrown away, and a failed pass needs
/// no taking back.
///
/// It is small: what a draw works in belongs to the thread, grows with the vocabulary and DRY's window and is used again, so that
/// a draw allocates nothing once the thread has drawn before.
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
    /// How long the prompt is.
    prompt: usize,
    /// Up to which position the tokens are known.
    len: usize,
    /// What stands in the sequence, from its beginning, where penalties, DRY or a constraint look at it.
    history: Option<Vec<Token>>,
    /// Where penalties are set.
    counts: Option<Counts>,
    constrained: Option<Constrained>,
}

impl Sampler {
    /// Room for this many tokens is made at once, so that a generation of usual length allocates nothing on its way.
    const RESERVE: usize = 4096;
    /// After so many draws that a constraint's budget has no time for, what closes the text is taken.
    const MOST_REDRAWS: usize = 3;

    /// A sampler for a sequence that begins with `prompt`, or is about to. `vocab` is the length of a row of logits.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a parameter out of range ([`Sampling::validate`]), a token
    /// of the prompt outside the vocabulary, or a constraint: that takes [`for_vocab`](Self::for_vocab).
    pub fn new(sampling: &Sampling, prompt: &[Token], vocab: usize) -> Result<Self> {
        if sampling.constraint.is_some() {
            return Err(Error::invalid_input(
                "a constraint has to know what the tokens stand for; make the sampler with `for_vocab`",
            ));
        }
        Self::unconstrained(sampling, prompt, vocab)
    }

    /// A sampler for a sequence that begins with `prompt`, or is about to, and for the constraint if there is one. It is compiled
    /// for the vocabulary, unless it [was](crate::Constraint::compile). A row of logits is as long as the vocabulary.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a parameter out of range ([`Sampling::validate`]) or a token
    /// of the prompt outside the vocabulary. Those of [`Constraint::compile`](crate::Constraint::compile).
    pub fn for_vocab(sampling: &Sampling, prompt: &[Token], vocab: &Arc<Vocab>) -> Result<Self> {
        let mut sampler = Self::unconstrained(sampling, prompt, vocab.len())?;
        sampler.constrained =
            sampling.constraint.as_ref().map(|constraint| Constrained::new(constraint, vocab)).transpose()?;
        Ok(sampler)
    }

    fn unconstrained(sampling: &Sampling, prompt: &[Token], vocab: usize) -> Result<Self> {
        sampling.validate(vocab)?;
        if let Some(at) = prompt.iter().position(|token| token.index() >= vocab) {
            let token = prompt[at];
            return Err(Error::invalid_input(format!(
                "token {token} at {at} of the prompt is outside the vocabulary of {vocab}"
            )));
        }
        let room = prompt.len() + Self::RESERVE;
        let history = || {
            let mut tokens = Vec::with_capacity(room);
            tokens.extend_from_slice(prompt);
            tokens
        };
        Ok(Self {
            sampling: sampling.clone(),
            vocab,
            prompt: prompt.len(),
            len: prompt.len(),
            history: (sampling.has_penalties() || sampling.has_dry() || sampling.constraint.is_some()).then(history),
            counts: sampling.has_penalties().then(|| Counts::new(sampling.penalty_window, room)),
            constrained: None,
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
        if let Some(history) = &mut self.history {
            history.extend_from_slice(tokens);
        }
        self.len += tokens.len();
    }

    /// The sequence was cut to its first `len` positions. The prompt stays known, also where the cut is within it.
    pub fn truncate(&mut self, len: usize) {
        let len = len.max(self.prompt);
        if len < self.len {
            self.len = len;
            if let Some(history) = &mut self.history {
                history.truncate(len);
            }
            if let Some(counts) = &mut self.counts {
                counts.truncate(len);
            }
        }
    }

    /// The random number the draw at `position` uses, in `[0, 1)`: for runtimes that draw on a device. See
    /// [`uniform`].
    #[must_use]
    pub fn uniform(&self, position: usize) -> f32 {
        uniform(self.sampling.seed, position)
    }

    /// What is added to the row of logits for `position` before anything else of its draw, in place of what `out` held: biases, and negative
    /// infinity where the constraint or a bias forbids a token. For runtimes that draw on a device. `false`, and nothing in `out`, where there is
    /// nothing to add.
    ///
    /// A budget of the constraint is not in it: that is looked at when a token was drawn.
    ///
    /// # Errors
    /// Those of [`sample`](Self::sample) that have nothing to do with logits.
    pub fn additions(&mut self, position: usize, out: &mut Vec<f32>) -> Result<bool> {
        self.check_position(position)?;
        out.clear();
        if self.sampling.logit_bias.is_empty() && self.constrained.is_none() {
            return Ok(false);
        }
        out.resize(self.vocab, 0.0);
        if let Some((constrained, text)) = self.constrained(position) {
            constrained.mask(text, out)?;
        }
        self.add_bias(out);
        Ok(true)
    }

    /// Appends to `out` what a device has drawn for `position`, and the tokens that a constraint forces after it: all that
    /// [`sample`](Self::sample) would append.
    pub fn take_drawn(&mut self, drawn: Sampled, position: usize, out: &mut Vec<Sampled>) {
        out.push(drawn);
        if let Some((constrained, text)) = self.constrained(position) {
            out.extend(constrained.forced(text, drawn.token).iter().map(|&token| Sampled::new(token, f32::NAN)));
        }
    }

    /// Draws the token for `position`, the position it would take, from the logits that the position before it gave, and
    /// appends it to `out`. Where a constraint leaves no choice after it, the tokens that follow are appended as well, without a
    /// [`logprob`](Sampled::logprob): no logits were there to take it from.
    ///
    /// A logit of positive infinity takes all; of several the token with the lowest id is drawn.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a row that is not as long as the vocabulary, or a position
    /// beyond the tokens [accepted](Self::accept). [`Runtime`](crate::ErrorKind::Runtime) for a logit that is not a
    /// number, and where all are negative infinity or the bias forbids every token.
    /// [`InvalidConstraint`](crate::ErrorKind::InvalidConstraint) where the tokens accepted do not keep to the constraint, none of the
    /// vocabulary can follow them, or finding that out is too much. `out` is then as it was.
    pub fn sample<L: Logit>(&mut self, logits: &[L], position: usize, out: &mut Vec<Sampled>) -> Result<()> {
        let sampled = Scratch::with(|Scratch { wide, adjusted, dry, pool }| {
            let row = self.row(logits, position, wide)?;
            let model = Softmax::of(row)?;
            let token = self.choose(row, model, position, adjusted, dry, pool)?;
            Ok(Sampled::new(token, model.logprob(row[token.index()])))
        })?;
        self.take_drawn(sampled, position, out);
        Ok(())
    }

    /// Every token that [`sample`](Self::sample) can draw for `position` with its probability, the most probable first,
    /// in place of what `out` held. Greedy, that is one. What the [budget](crate::Constraint::with_budget) of a constraint has no time for is
    /// among them: that is looked at when a token is drawn.
    ///
    /// # Errors
    /// Those of [`sample`](Self::sample); `out` is then empty.
    pub fn distribution<L: Logit>(&mut self, logits: &[L], position: usize, out: &mut Vec<(Token, f32)>) -> Result<()> {
        out.clear();
        Scratch::with(|Scratch { wide, adjusted, dry, pool }| {
            let row = self.row(logits, position, wide)?;
            match self.adjust(row, Softmax::of(row)?, position, &[], adjusted, dry)? {
                Choice::One(token) => out.push((token, 1.0)),
                Choice::Draw(logits) => pool.distribution(logits, &self.sampling, self.chances(position).xtc, out)?,
            }
            Ok(())
        })
    }

    /// Appends the [`Sampling::logprobs`] most probable tokens of the model's own distribution to `out`, the most probable
    /// first, of equals the one with the lower id: before penalties, bias, temperature and truncation. They are fewer where
    /// fewer have any probability.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a row that is not as long as the vocabulary;
    /// [`Runtime`](crate::ErrorKind::Runtime) for a logit that is not a number, and where all are negative infinity. `out` is
    /// then as it was.
    ///
    /// ```
    /// use infer_core::{Sampling, Token, sampling::Sampler};
    ///
    /// let mut sampler = Sampler::new(&Sampling::greedy().with_logprobs(2), &[], 4)?;
    /// let mut top = Vec::new();
    /// sampler.top(&[0.0, 2.0, -1.0, 0.5], &mut top)?;
    /// assert_eq!(top.iter().map(|token| token.token).collect::<Vec<_>>(), [Token(1), Token(3)]);
    /// assert!(top[0].logprob > top[1].logprob);
    /// # Ok::<_, infer_core::Error>(())
    /// ```
    pub fn top<L: Logit>(&mut self, logits: &[L], out: &mut Vec<Sampled>) -> Result<()> {
        let most = self.sampling.logprobs;
        if most == 0 {
            return Ok(());
        }
        Scratch::with(|Scratch { wide, pool, .. }| {
            let row = self.row(logits, self.len, wide)?;
            pool.top(row, Softmax::of(row)?, most, out);
            Ok(())
        })
    }

    /// The constraint's part of the draw that is to come once `tokens` are in the sequence, the first of them at position `at`: which
    /// tokens it will allow. It can be found while the pass runs that feeds them, on another thread:
    /// [`run`](LookAhead::run) it, and [`rejoin`](Self::rejoin) it before the draw. `None` where there is nothing to find.
    ///
    /// Nothing depends on it but when the work is done.
    pub fn look_ahead(&mut self, at: usize, tokens: &[Token]) -> Option<LookAhead> {
        let Self { constrained: Some(constrained), history: Some(history), prompt, len, .. } = self else {
            return None;
        };
        if at > *len {
            return None;
        }
        let new = &tokens[prompt.saturating_sub(at).min(tokens.len())..];
        constrained.look_ahead(history.get(*prompt..at).unwrap_or_default(), new)
    }

    /// Takes back what [`look_ahead`](Self::look_ahead) gave. One of another sampler is dropped.
    pub fn rejoin(&mut self, found: LookAhead) {
        if let Some(constrained) = &mut self.constrained {
            constrained.rejoin(found);
        }
    }

    fn chances(&self, position: usize) -> Chances {
        Chances::of(self.sampling.seed, position)
    }

    fn row<'r, L: Logit>(&self, logits: &'r [L], position: usize, wide: &'r mut Vec<f32>) -> Result<&'r [f32]> {
        let (len, vocab) = (logits.len(), self.vocab);
        if len != vocab {
            return Err(Error::invalid_input(format!("a row of {len} logits, the vocabulary has {vocab} tokens")));
        }
        self.check_position(position)?;
        Ok(L::wide(logits, wide))
    }

    fn check_position(&self, position: usize) -> Result<()> {
        let known = self.len;
        if position <= known {
            return Ok(());
        }
        Err(Error::invalid_input(format!(
            "a draw for position {position} of a sequence whose tokens are known up to {known}; accept what was fed"
        )))
    }

    /// Draws a token, and another one where the constraint's budget has no time for it.
    fn choose(
        &mut self,
        row: &[f32],
        model: Softmax,
        position: usize,
        adjusted: &mut Vec<f32>,
        dry: &mut dry::Work,
        pool: &mut Pool,
    ) -> Result<Token> {
        let mut excluded = Vec::new();
        loop {
            let token = match self.adjust(row, model, position, &excluded, adjusted, dry) {
                Ok(Choice::One(token)) => token,
                Ok(Choice::Draw(logits)) => pool.draw(logits, &self.sampling, self.chances(position))?,
                // There is nothing but what was excluded.
                Err(_) if !excluded.is_empty() => return self.closing_token(position, excluded[0]),
                Err(error) => return Err(error),
            };
            let Some((constrained, text)) = self.constrained(position) else { return Ok(token) };
            if constrained.admits(text, token)? {
                return Ok(token);
            }
            excluded.push(token);
            if excluded.len() > Self::MOST_REDRAWS {
                return self.closing_token(position, token);
            }
        }
    }

    /// In place of one that was drawn.
    fn closing_token(&mut self, position: usize, drawn: Token) -> Result<Token> {
        match self.constrained(position) {
            Some((constrained, text)) => constrained.closing_token(text),
            None => Ok(drawn),
        }
    }

    /// The constraint, and the generated text before `position`.
    fn constrained(&mut self, position: usize) -> Option<(&mut Constrained, &[Token])> {
        let Self { constrained: Some(constrained), history: Some(history), prompt, .. } = self else { return None };
        Some((constrained, history.get(*prompt..position).unwrap_or_default()))
    }

    /// Applies the constraint, adds bias and penalties, DRY's among them.
    fn adjust<'r>(
        &mut self,
        row: &'r [f32],
        model: Softmax,
        position: usize,
        excluded: &[Token],
        adjusted: &'r mut Vec<f32>,
        dry: &mut dry::Work,
    ) -> Result<Choice<'r>> {
        let plain = self.history.is_none() && self.sampling.logit_bias.is_empty();
        let (row, peak, sum) = if plain {
            (row, model.peak, Some(model.sum))
        } else {
            adjusted.clear();
            adjusted.extend_from_slice(row);
            if let Some((constrained, text)) = self.constrained(position) {
                constrained.mask(text, adjusted)?;
                excluded.iter().for_each(|token| adjusted[token.index()] = f32::NEG_INFINITY);
            }
            self.add_bias(adjusted);
            self.penalise(position, adjusted, dry);
            let forbidden =
                || runtime("the constraint or the logit bias forbids every token that the model does not".into());
            (&**adjusted, Peak::of(adjusted).ok_or_else(forbidden)?, None)
        };
        if self.sampling.is_greedy() || peak.logit == f32::INFINITY {
            return Ok(Choice::One(Token(peak.at as u32)));
        }
        Ok(Choice::Draw(Peaked { row, peak: peak.logit, sum }))
    }

    fn penalise(&mut self, position: usize, logits: &mut [f32], dry: &mut dry::Work) {
        let Some(history) = &self.history else { return };
        let tokens = &history[..position];
        if let Some(counts) = &mut self.counts {
            counts.penalise(tokens, &self.sampling, logits);
        }
        if self.sampling.has_dry() {
            let window = &tokens[position.saturating_sub(self.sampling.dry_window)..];
            dry.penalise(&self.sampling, window, logits);
        }
    }

    fn add_bias(&self, logits: &mut [f32]) {
        for &(token, bias) in &self.sampling.logit_bias {
            let logit = &mut logits[token.index()];
            // Forbidding wins over a logit of positive infinity; their sum would not be a number.
            *logit = if bias == f32::NEG_INFINITY { bias } else { *logit + bias };
        }
    }
}

/// Whether there is anything to draw.
enum Choice<'r> {
    One(Token),
    Draw(Peaked<'r>),
}
