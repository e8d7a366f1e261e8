use crate::{
    Error, ErrorKind, Outputs, Result, Rows, Sampled,
    sampling::{Logit, Sampler},
};

/// What a pass brings, entry by entry, in arrays that are kept from pass to pass; [`Outputs`] are a view of it. For backends.
///
/// Entries end in the order of the batch, each in up to three ways: [`end_entry`](Self::end_entry) for what was drawn and what is shown of the
/// logits, [`end_scores`](Self::end_scores), [`end_hidden`](Self::end_hidden). Of what no entry of a pass can want, none needs to end.
#[derive(Debug, Default)]
pub struct Results {
    sampled: Vec<Sampled>,
    /// Entry → where its tokens end in `sampled`.
    ends: Vec<u32>,
    /// The most probable tokens, where a sampling asks for them.
    top: Vec<Sampled>,
    /// Entry → where its tokens end in `top`.
    top_ends: Vec<u32>,
    logits: Table,
    hidden: Table,
    scores: Vec<f32>,
    /// Entry → where its scores end.
    score_ends: Vec<u32>,
    /// Why no token was drawn for some entries.
    errors: Vec<(u32, Error)>,
}

/// Rows of one width, one after the other.
#[derive(Debug, Default)]
struct Table {
    numbers: Vec<f32>,
    width: usize,
    /// How many there are.
    count: u32,
    /// Entry → its row, if there is one to be shown.
    rows: Vec<u32>,
}

impl Results {
    /// With room for passes of so many entries.
    #[must_use]
    pub fn with_capacity(entries: usize) -> Self {
        let mut results = Self::default();
        results.sampled.reserve(entries);
        results.ends.reserve(entries);
        results.top_ends.reserve(entries);
        results.logits.rows.reserve(entries);
        results
    }

    /// Empties it, but for its memory: before each pass, and when one has failed.
    pub fn clear(&mut self) {
        self.sampled.clear();
        self.ends.clear();
        self.top.clear();
        self.top_ends.clear();
        self.logits.clear();
        self.hidden.clear();
        self.scores.clear();
        self.score_ends.clear();
        self.errors.clear();
    }

    /// Draws the token for `position` from a row of logits, for the entry that is next to [end](Self::end_entry); and finds the most probable ones,
    /// where its sampling asks for them. Where its constraint cannot be kept any further, that is the entry's own
    /// [error](Outputs::error), and no reason to take the others' pass back.
    ///
    /// # Errors
    /// Those of [`Sampler::sample`], but for [`InvalidConstraint`](ErrorKind::InvalidConstraint).
    pub fn draw<L: Logit>(&mut self, row: &[L], sampler: &mut Sampler, position: usize) -> Result<()> {
        match sampler.sample(row, position, &mut self.sampled) {
            Err(error) if error.kind() == ErrorKind::InvalidConstraint => self.fail(error),
            drawn => drawn?,
        }
        sampler.top(row, &mut self.top)
    }

    /// Takes what a device has drawn for `position`, for the entry that is next to [end](Self::end_entry), and what a constraint forces after it.
    pub fn take_drawn(&mut self, drawn: Sampled, sampler: &mut Sampler, position: usize) {
        sampler.take_drawn(drawn, position, &mut self.sampled);
    }

    /// Takes a token that was drawn elsewhere, for the entry that is next to [end](Self::end_entry).
    pub fn add_drawn(&mut self, sampled: Sampled) {
        self.sampled.push(sampled);
    }

    /// No token was drawn for the entry that is next to [end](Self::end_entry), and this is why.
    pub fn fail(&mut self, error: Error) {
        self.errors.push((number(self.ends.len()), error));
    }

    /// Copies a row of logits. Its number is for [`end_entry`](Self::end_entry).
    pub fn add_logits<L: Logit>(&mut self, row: &[L]) -> u32 {
        L::append(row, &mut self.logits.numbers);
        self.logits.add(row.len())
    }

    /// Copies a hidden state. Its number is for [`end_hidden`](Self::end_hidden).
    pub fn add_hidden(&mut self, row: &[f32]) -> u32 {
        self.hidden.numbers.extend_from_slice(row);
        self.hidden.add(row.len())
    }

    /// Refuses hidden states that are not numbers.
    ///
    /// # Errors
    /// [`Runtime`](ErrorKind::Runtime).
    pub fn check_hidden(&self) -> Result<()> {
        if self.hidden.numbers.iter().all(|number| number.is_finite()) {
            return Ok(());
        }
        let message = "a hidden state is not numbers; the model or what was restored for it is damaged";
        Err(Error::new(ErrorKind::Runtime, message))
    }

    /// The scores found so far. Those since the last entry are the next one's that [ends](Self::end_scores).
    pub fn scores_mut(&mut self) -> &mut Vec<f32> {
        &mut self.scores
    }

    /// The tokens that were drawn or found most probable since the last entry are this one's. `logits` is the row of logits that is shown of it:
    /// one that was [added](Self::add_logits), or one of those that [`outputs_over`](Self::outputs_over) is given.
    pub fn end_entry(&mut self, logits: Option<u32>) {
        self.logits.rows.push(logits.unwrap_or(Rows::NONE));
        self.ends.push(number(self.sampled.len()));
        self.top_ends.push(number(self.top.len()));
    }

    /// The scores that were found since the last entry are this one's.
    pub fn end_scores(&mut self) {
        self.score_ends.push(number(self.scores.len()));
    }

    /// The hidden state that was [added](Self::add_hidden) under this number is this entry's.
    pub fn end_hidden(&mut self, hidden: Option<u32>) {
        self.hidden.rows.push(hidden.unwrap_or(Rows::NONE));
    }

    /// A view of it.
    #[must_use]
    pub fn outputs(&self) -> Outputs<'_> {
        self.outputs_over(&self.logits.numbers, self.logits.width)
    }

    /// A view of it, with rows of logits that lie elsewhere, each of `vocab` numbers.
    #[must_use]
    pub fn outputs_over<'s>(&'s self, logits: &'s [f32], vocab: usize) -> Outputs<'s> {
        Outputs::new(&self.sampled, &self.ends)
            .with_top(&self.top, &self.top_ends)
            .with_logits(Rows::new(logits, vocab, &self.logits.rows))
            .with_embeddings(Rows::new(&self.hidden.numbers, self.hidden.width, &self.hidden.rows))
            .with_scores(&self.scores, &self.score_ends)
            .with_errors(&self.errors)
    }
}

impl Table {
    fn clear(&mut self) {
        self.numbers.clear();
        self.rows.clear();
        self.count = 0;
    }

    /// Counts a row whose numbers are there.
    fn add(&mut self, width: usize) -> u32 {
        self.width = width;
        self.count += 1;
        self.count - 1
    }
}

/// A number of entries, or of what they bring: bounded for each, and few.
fn number(count: usize) -> u32 {
    u32::try_from(count).expect("a pass brings fewer than 2^32 of anything")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sampling, Token};

    #[test]
    fn entries_get_what_was_found_since_the_one_before() {
        let mut results = Results::with_capacity(2);
        let mut sampler = Sampler::new(&Sampling::greedy().with_logprobs(2), &[], 3).unwrap();
        for _ in 0..2 {
            results.clear();
            results.draw(&[0.0, 2.0, 1.0], &mut sampler, 0).unwrap();
            results.end_entry(None);
            results.add_drawn(Sampled::new(Token(2), -1.0));
            let row = results.add_logits(&[0.0, 2.0, 1.0]);
            results.end_entry(Some(row));
            results.end_entry(None);
            results.scores_mut().extend([-0.5, -0.25]);
            results.end_scores();
            results.end_scores();
            let hidden = [results.add_hidden(&[1.0, 2.0]), results.add_hidden(&[3.0, 4.0])];
            results.end_hidden(None);
            results.end_hidden(Some(hidden[1]));
            results.end_hidden(Some(hidden[0]));
            let out = results.outputs();
            assert_eq!([0, 1, 2].map(|entry| out.token(entry)), [Some(Token(1)), Some(Token(2)), None]);
            assert_eq!([0, 1, 2].map(|entry| out.top(entry).len()), [2, 0, 0]);
            assert_eq!([0, 1].map(|entry| out.logits(entry)), [None, Some(&[0.0, 2.0, 1.0][..])]);
            assert_eq!([0, 1].map(|entry| out.scores(entry)), [&[-0.5, -0.25][..], &[]]);
            assert_eq!([0, 1, 2].map(|entry| out.embedding(entry)), [None, Some(&[3.0, 4.0][..]), Some(&[1.0, 2.0])]);
        }
        let elsewhere = [9.0, 8.0, 7.0];
        assert_eq!(results.outputs_over(&elsewhere, 3).logits(1), Some(&elsewhere[..]));
    }

    #[test]
    fn what_stops_one_entry_is_that_ones_error() {
        let mut results = Results::default();
        results.end_entry(None);
        results.fail(Error::from(ErrorKind::InvalidConstraint));
        results.end_entry(None);
        let out = results.outputs();
        assert!(out.error(0).is_none() && out.error(1).is_some());
        let mut sampler = Sampler::new(&Sampling::greedy(), &[], 2).unwrap();
        assert_eq!(results.draw(&[f32::NAN, 0.0], &mut sampler, 0).unwrap_err().kind(), ErrorKind::Runtime);
    }

    #[test]
    fn hidden_states_are_numbers() {
        let mut results = Results::default();
        results.add_hidden(&[0.0, 1.0]);
        results.check_hidden().unwrap();
        results.add_hidden(&[0.0, f32::INFINITY]);
        assert_eq!(results.check_hidden().unwrap_err().kind(), ErrorKind::Runtime);
    }

    #[cfg(feature = "half")]
    #[test]
    fn rows_of_16_bits_are_drawn_from_and_shown_as_those_of_32() {
        use half::{bf16, f16};

        fn found<L: Logit>(row: &[L]) -> (Vec<Sampled>, Vec<f32>) {
            let mut sampler = Sampler::new(&Sampling::greedy().with_logprobs(2), &[], 4).unwrap();
            let mut results = Results::default();
            results.add_logits(row);
            results.draw(row, &mut sampler, 0).unwrap();
            let shown = results.add_logits(row);
            results.end_entry(Some(shown));
            let out = results.outputs();
            ([out.sampled(0), out.top(0)].concat(), out.logits(0).unwrap().to_vec())
        }

        let wide = [0.5_f32, -2.0, 3.0, 1.0];
        let (tokens, shown) = found(&wide);
        assert_eq!(tokens.iter().map(|one| one.token.0).collect::<Vec<_>>(), [2, 2, 3]);
        assert_eq!(shown, wide);
        assert_eq!(found(&wide.map(f16::from_f32)), (tokens.clone(), shown.clone()));
        assert_eq!(found(&wide.map(bf16::from_f32)), (tokens, shown));
    }
}
