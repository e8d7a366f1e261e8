use crate::{Batch, Entry, Error, Result, Sampling, Token, Vocab, Want, sampling::Sampler};
use std::{ops::Range, sync::Arc};

/// What a session knows of its sequences beside their keys and values, slot by slot: the tokens that each holds, and how its next one is
/// drawn. For backends.
///
/// A pass goes [`check`](Self::check), before anything is computed; [`accept`](Self::accept), once everything is, for the tokens to be drawn;
/// then [`commit`](Self::commit), or [`take_back`](Self::take_back) when it failed. What slots there are and how many positions each has is
/// said by [`Slots`](crate::Slots).
///
/// All methods that take a slot panic when it is not one of the session's.
#[derive(Debug)]
pub struct Seats {
    seats: Box<[Seat]>,
}

#[derive(Debug, Default)]
struct Seat {
    /// A sampling that is set later has to know them.
    tokens: Vec<Token>,
    sampler: Option<Sampler>,
}

impl Seats {
    /// Seats for `count` sequences at once, all of them empty.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { seats: (0..count).map(|_| Seat::default()).collect() }
    }

    /// Makes room for so many tokens in an empty slot, so that no step allocates; where there is none, it grows as it goes.
    pub fn reserve(&mut self, slot: u32, tokens: usize) {
        drop(self.seat(slot).tokens.try_reserve_exact(tokens));
    }

    /// The tokens that a slot holds.
    #[must_use]
    pub fn tokens(&self, slot: u32) -> &[Token] {
        &self.seats[slot as usize].tokens
    }

    /// How a slot's next token is drawn; `None` until a sampling was set for its sequence.
    #[must_use]
    pub fn sampler(&self, slot: u32) -> Option<&Sampler> {
        self.seats[slot as usize].sampler.as_ref()
    }

    /// As [`sampler`](Self::sampler), to draw with.
    #[must_use]
    pub fn sampler_mut(&mut self, slot: u32) -> Option<&mut Sampler> {
        self.seat(slot).sampler.as_mut()
    }

    /// All of [`Session::sample_with`](crate::Session::sample_with).
    ///
    /// # Errors
    /// Those of [`Sampler::for_vocab`]; the slot's sampling is then as it was.
    pub fn sample_with(&mut self, slot: u32, sampling: &Sampling, prompt: &[Token], vocab: &Arc<Vocab>) -> Result<()> {
        let mut sampler = Sampler::for_vocab(sampling, prompt, vocab)?;
        let seat = self.seat(slot);
        sampler.accept(0, &seat.tokens);
        seat.sampler = Some(sampler);
        Ok(())
    }

    /// Before a pass: refuses a batch that wants a token where no sampling was set.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), with the index of the entry.
    pub fn check(&self, batch: &Batch) -> Result<()> {
        let undrawable = |entry: &Entry| entry.want() == Want::Token && self.sampler(entry.slot()).is_none();
        match batch.entries().iter().position(undrawable) {
            Some(index) => Err(Error::invalid_input(format!(
                "entry {index} of the batch wants a token, and no sampling was set for its sequence; call `sample_with`"
            ))),
            None => Ok(()),
        }
    }

    /// A pass is computed: the samplers know its tokens, and can draw the next.
    pub fn accept(&mut self, batch: &Batch) {
        for entry in batch.entries() {
            if let Some(sampler) = self.sampler_mut(entry.slot()) {
                sampler.accept(entry.start(), batch.tokens(entry));
            }
        }
    }

    /// A pass has succeeded: every sequence of the batch holds what was fed.
    pub fn commit(&mut self, batch: &Batch) {
        for entry in batch.entries() {
            self.seat(entry.slot()).tokens.extend_from_slice(batch.tokens(entry));
        }
    }

    /// A pass has failed: every sequence of the batch holds what it did before.
    pub fn take_back(&mut self, batch: &Batch) {
        for entry in batch.entries() {
            self.truncate(entry.slot(), entry.start());
        }
    }

    /// Gives an empty slot the first `len` tokens of another. How they are drawn is not taken over.
    ///
    /// # Panics
    /// When the other slot holds fewer.
    pub fn fork(&mut self, from: u32, to: u32, len: usize) {
        // Taken out for a moment, since both lie in one slice.
        let tokens = std::mem::take(&mut self.seat(from).tokens);
        self.fill(to, &tokens[..len]);
        self.seat(from).tokens = tokens;
    }

    /// Adds tokens to a slot, as when one is restored.
    pub fn fill(&mut self, slot: u32, tokens: &[Token]) {
        self.seat(slot).tokens.extend_from_slice(tokens);
    }

    /// Cuts a slot to its first `len` tokens.
    pub fn truncate(&mut self, slot: u32, len: usize) {
        let seat = self.seat(slot);
        seat.tokens.truncate(len);
        if let Some(sampler) = &mut seat.sampler {
            sampler.truncate(len);
        }
    }

    /// Takes tokens out of a slot, and those behind them move up. How it draws is forgotten: a sampling set before speaks of other positions.
    ///
    /// # Panics
    /// When the range reaches beyond what the slot holds.
    pub fn remove(&mut self, slot: u32, tokens: Range<usize>) {
        self.seat(slot).tokens.drain(tokens);
        self.forget_sampling(slot);
    }

    /// Forgets how a slot's next token is drawn, until a sampling is set anew.
    pub fn forget_sampling(&mut self, slot: u32) {
        self.seat(slot).sampler = None;
    }

    /// Empties a slot, but for its memory.
    pub fn clear(&mut self, slot: u32) {
        self.seat(slot).tokens.clear();
        self.forget_sampling(slot);
    }

    fn seat(&mut self, slot: u32) -> &mut Seat {
        &mut self.seats[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sequence, Slots, SpecialTokens, TokenFlags, VocabKind};

    fn tokens(ids: &[u32]) -> Vec<Token> {
        ids.iter().copied().map(Token).collect()
    }

    fn vocab() -> Arc<Vocab> {
        let pieces = (0..8_u8).map(|id| ([id], TokenFlags::TEXT));
        Arc::new(Vocab::new(VocabKind::Bpe, SpecialTokens::default(), pieces).unwrap())
    }

    /// Two sequences, the first with three tokens and a sampling for which the fourth must not repeat any.
    fn two() -> (Slots, Seats, [Sequence; 2]) {
        let (mut slots, mut seats) = (Slots::new(2), Seats::new(2));
        let sequences = [slots.open().unwrap().1, slots.open().unwrap().1];
        seats.fill(0, &tokens(&[5, 6, 7]));
        slots.set_len(0, 3);
        let sampling = Sampling::greedy().with_presence_penalty(100.0);
        seats.sample_with(0, &sampling, &tokens(&[5]), &vocab()).unwrap();
        (slots, seats, sequences)
    }

    /// What the sampler of slot 0 draws at `position` where all tokens are as probable.
    fn drawn(seats: &mut Seats, position: usize) -> Result<u32> {
        let mut out = Vec::new();
        seats.sampler_mut(0).unwrap().sample(&[0.0; 8], position, &mut out)?;
        Ok(out[0].token.0)
    }

    #[test]
    fn a_pass_is_accepted_and_then_committed_or_taken_back() {
        let (_, mut seats, [first, second]) = two();
        let mut batch = Batch::new();
        batch.push(&first, &tokens(&[0, 1]), Want::Token);
        batch.push(&second, &tokens(&[4]), Want::Nothing);
        seats.check(&batch).unwrap();
        assert!(drawn(&mut seats, 5).is_err(), "nobody has told it what stands at 3");
        seats.accept(&batch);
        assert_eq!(drawn(&mut seats, 5).unwrap(), 2, "0 and 1 were fed");
        seats.take_back(&batch);
        assert_eq!((drawn(&mut seats, 3).unwrap(), seats.tokens(0).len(), seats.tokens(1).len()), (0, 3, 0));
        seats.accept(&batch);
        seats.commit(&batch);
        assert_eq!((seats.tokens(0), seats.tokens(1)), (&tokens(&[5, 6, 7, 0, 1])[..], &tokens(&[4])[..]));
    }

    #[test]
    fn a_token_is_drawn_only_where_a_sampling_was_set() {
        let (_, seats, [first, second]) = two();
        let mut batch = Batch::new();
        batch.push(&first, &tokens(&[0]), Want::Token);
        batch.push(&second, &tokens(&[0]), Want::Logits);
        seats.check(&batch).unwrap();
        batch.clear();
        batch.push(&first, &tokens(&[0]), Want::Nothing);
        batch.push(&second, &tokens(&[0]), Want::Token);
        let said = seats.check(&batch).unwrap_err().to_string();
        assert!(said.contains("entry 1") && said.contains("sample_with"), "{said}");
    }

    #[test]
    fn sequences_are_forked_cut_and_shifted_with_what_they_draw() {
        let (_, mut seats, _sequences) = two();
        seats.fork(0, 1, 2);
        assert_eq!((seats.tokens(1), seats.tokens(0).len()), (&tokens(&[5, 6])[..], 3));
        assert!(seats.sampler(1).is_none() && seats.sampler(0).is_some());
        seats.truncate(0, 1);
        assert_eq!(drawn(&mut seats, 1).unwrap(), 0);
        assert_eq!(seats.tokens(0), tokens(&[5]));
        seats.remove(1, 0..1);
        assert_eq!(seats.tokens(1), tokens(&[6]));
        seats.clear(0);
        assert!(seats.tokens(0).is_empty() && seats.sampler(0).is_none());
    }
}
