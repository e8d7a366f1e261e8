use crate::{
    EncoderInfo, Error, ErrorKind, Pooling, Result, Token, Vectors,
    machine::{Size, available_memory},
};

/// Where an encoder puts the vectors of its texts, in memory that is kept from one call to the next; [`Vectors`] are a view of it. For
/// backends.
///
/// The places of all vectors are known before any is computed: [`begin`](Self::begin); then each text, in any order, is written to its
/// [place](Self::text_mut) and [ended](Self::end_text); and [`finish`](Self::finish) shows them.
#[derive(Debug, Default)]
pub struct VectorTable {
    data: Vec<f32>,
    width: usize,
    /// Text → where its vectors end.
    ends: Vec<u32>,
    /// Whether all vectors are there.
    is_done: bool,
}

impl VectorTable {
    /// Makes room for the vectors of these texts, once they are found to be right. Whether there is any is asked only where there is more to be
    /// had than before. `vocab` is how many tokens there are.
    ///
    /// # Errors
    /// Those of [`EncoderInfo::check`]; [`OutOfMemory`](ErrorKind::OutOfMemory). There is nothing to be seen then.
    pub fn begin(&mut self, info: &EncoderInfo, texts: &[&[Token]], vocab: usize) -> Result<()> {
        self.is_done = false;
        self.ends.clear();
        self.data.clear();
        self.width = info.width;
        info.check(texts, vocab)?;
        let mut vectors = 0;
        for text in texts {
            vectors += if info.pooling == Pooling::None { text.len() } else { 1 };
            self.ends.push(u32::try_from(vectors).expect("the vectors were counted"));
        }
        self.make_room(vectors)
    }

    fn make_room(&mut self, vectors: usize) -> Result<()> {
        let numbers = vectors.saturating_mul(self.width);
        if numbers > self.data.capacity() {
            let bytes = (numbers as u64).saturating_mul(size_of::<f32>() as u64);
            let fits = available_memory().is_none_or(|available| bytes <= available.bytes);
            if !fits || self.data.try_reserve(numbers).is_err() {
                let message =
                    format!("{vectors} vectors take {}, more than can be had; encode fewer texts", Size(bytes));
                return Err(Error::new(ErrorKind::OutOfMemory, message));
            }
        }
        self.data.resize(numbers, 0.0);
        Ok(())
    }

    /// The place of a text's vectors: one, or with [`Pooling::None`] one a token, one after the other.
    ///
    /// # Panics
    /// When there is no such text.
    #[must_use]
    pub fn text_mut(&mut self, text: usize) -> &mut [f32] {
        let start = text.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &mut self.data[start * self.width..self.ends[text] as usize * self.width]
    }

    /// A text's vectors are written: refuses what is not numbers, and normalises them if `info` says so.
    ///
    /// # Errors
    /// [`Runtime`](ErrorKind::Runtime).
    ///
    /// # Panics
    /// When there is no such text.
    pub fn end_text(&mut self, text: usize, info: &EncoderInfo) -> Result<()> {
        let width = self.width.max(1);
        for vector in self.text_mut(text).chunks_exact_mut(width) {
            if !vector.iter().all(|number| number.is_finite()) {
                let message = format!(
                    "what comes of text {text}, or of one beside it, is not numbers; the model file is damaged"
                );
                return Err(Error::new(ErrorKind::Runtime, message));
            }
            info.normalize(vector);
        }
        Ok(())
    }

    /// All texts are there, and can be seen.
    pub fn finish(&mut self) {
        self.is_done = true;
    }

    /// A view of all vectors; of none before they are [all there](Self::finish).
    #[must_use]
    pub fn vectors(&self) -> Vectors<'_> {
        if self.is_done { Vectors::new(&self.data, self.width, &self.ends) } else { Vectors::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(pooling: Pooling) -> EncoderInfo {
        let mut info = EncoderInfo::new(pooling, 2, 8);
        info.normalized = true;
        info
    }

    #[test]
    fn texts_have_places_and_are_seen_when_all_are_there() {
        let tokens = [1, 2, 3].map(Token);
        let texts = [&tokens[..1], &tokens[..]];
        let mut table = VectorTable::default();
        for (pooling, len) in [(Pooling::Mean, 2), (Pooling::None, 6), (Pooling::Mean, 2)] {
            table.begin(&info(pooling), &texts, 4).unwrap();
            assert_eq!(table.text_mut(1).len(), len, "{pooling:?}");
            for text in [1, 0] {
                table.text_mut(text).fill(text as f32 + 1.0);
                table.end_text(text, &info(pooling)).unwrap();
            }
            assert!(table.vectors().is_empty());
            table.finish();
            let vectors = table.vectors();
            assert_eq!((vectors.len(), vectors.tokens(1).len() * 2), (2, len));
            assert_eq!(vectors.vector(0), Some(&[0.5_f32.sqrt(); 2][..]));
        }
    }

    #[test]
    fn texts_that_are_wrong_and_numbers_that_are_none_are_errors() {
        let (mut table, info) = (VectorTable::default(), info(Pooling::Mean));
        table.begin(&info, &[&[Token(1)]], 4).unwrap();
        table.text_mut(0).copy_from_slice(&[0.0, f32::NAN]);
        let error = table.end_text(0, &info).unwrap_err();
        assert!(error.kind() == ErrorKind::Runtime && error.to_string().contains("not numbers"), "{error}");
        table.finish();
        assert_eq!(table.begin(&info, &[&[Token(4)]], 4).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert!(table.vectors().is_empty());
    }

    #[test]
    fn what_is_larger_than_memory_is_not_tried() {
        let (mut table, mut info) = (VectorTable::default(), info(Pooling::Mean));
        info.width = usize::MAX / 8;
        let error = table.begin(&info, &[&[Token(1)]], 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    }
}
