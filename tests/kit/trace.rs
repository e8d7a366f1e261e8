//! What a session computed and drew, position by position, and when two such runs agree.
//!
//! On a real runtime the same tokens in other passes, or other cells, are added up in another order. So rows are compared
//! within ε, and drawn tokens up to the first position where the draw hangs on less than that: a *near-tie*. Where rows are
//! equal to the bit, so are the tokens.

/// How far two rows of numbers are apart: the largest difference of two numbers in one place.
///
/// # Panics
/// When they are not of one length.
#[must_use]
pub fn apart(one: &[f32], other: &[f32]) -> f32 {
    assert_eq!(one.len(), other.len(), "rows of different lengths");
    one.iter().zip(other).map(|(a, b)| if a == b { 0.0 } else { (a - b).abs() }).fold(0.0, |most, apart| {
        // NaN is far from everything.
        if apart <= most {
            most
        } else if apart.is_nan() {
            f32::INFINITY
        } else {
            apart
        }
    })
}

/// The natural logarithm of the softmax of a row.
#[must_use]
pub fn log_softmax(row: &[f32]) -> Vec<f64> {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f64 = row.iter().map(|&logit| f64::from(logit - most).exp()).sum();
    row.iter().map(|&logit| f64::from(logit - most) - total.ln()).collect()
}

/// Tokens that were drawn, each with the logits it was drawn from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The tokens, by id.
    pub tokens: Vec<u32>,
    /// The rows.
    pub rows: Vec<Vec<f32>>,
}

/// How two traces agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Token for token.
    Equal,
    /// Token for token before this position, at which the draw is a near-tie.
    UntilNearTie(usize),
}

impl Trace {
    /// Compares another run of the same text with this one.
    ///
    /// # Errors
    /// Rows are further apart than ε, tokens differ where the rows are the same, or one run is longer: says where.
    pub fn agrees_with(&self, other: &Self, epsilon: f32) -> Result<Agreement, String> {
        for (at, (one, two)) in self.rows.iter().zip(&other.rows).enumerate() {
            let apart = apart(one, two);
            if apart > epsilon {
                return Err(format!("the logits for token {at} are {apart} apart, more than {epsilon}"));
            }
            let (one, two) = (self.tokens[at], other.tokens[at]);
            if one == two {
                continue;
            }
            // From other numbers another token may be drawn, and from there on it is another text.
            return if apart > 0.0 {
                Ok(Agreement::UntilNearTie(at))
            } else {
                Err(format!("token {at} is {one} against {two}, drawn from the same logits"))
            };
        }
        if self.tokens.len() != other.tokens.len() {
            return Err(format!("{} tokens against {}", self.tokens.len(), other.tokens.len()));
        }
        Ok(Agreement::Equal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(tokens: &[u32], rows: &[[f32; 2]]) -> Trace {
        Trace { tokens: tokens.to_vec(), rows: rows.iter().map(|row| row.to_vec()).collect() }
    }

    #[test]
    fn agrees_until_a_near_tie_and_no_further() {
        let one = trace(&[0, 1], &[[1.0, 0.0], [0.5, 0.5]]);
        assert_eq!(one.agrees_with(&one, 0.0), Ok(Agreement::Equal));
        let tie = trace(&[0, 0], &[[1.0, 0.0], [0.51, 0.5]]);
        assert_eq!(one.agrees_with(&tie, 0.1), Ok(Agreement::UntilNearTie(1)));
        assert!(one.agrees_with(&tie, 0.0).unwrap_err().contains("token 1 are 0.00999"));
        let other = trace(&[0, 0], &[[1.0, 0.0], [0.5, 0.5]]);
        assert!(one.agrees_with(&other, 0.1).unwrap_err().contains("drawn from the same logits"));
        let far = trace(&[0, 1], &[[1.0, 0.0], [0.9, 0.5]]);
        assert!(one.agrees_with(&far, 0.1).is_err());
    }

    #[test]
    fn a_lost_or_repeated_token_is_no_agreement() {
        let one = trace(&[0, 1], &[[1.0, 0.0], [0.5, 0.5]]);
        assert!(one.agrees_with(&trace(&[0], &[[1.0, 0.0]]), 1.0).is_err());
        assert!(trace(&[0], &[[1.0, 0.0]]).agrees_with(&one, 1.0).is_err());
    }

    #[test]
    fn distances_and_probabilities() {
        assert_eq!(apart(&[1.0, f32::NEG_INFINITY], &[1.5, f32::NEG_INFINITY]), 0.5);
        assert_eq!(apart(&[1.0, f32::NAN, 3.0], &[1.0, 2.0, 3.0]), f32::INFINITY);
        let row = log_softmax(&[0.0, 3_f32.ln()]);
        assert!((row[0] - 0.25_f64.ln()).abs() < 1e-6 && (row[1] - 0.75_f64.ln()).abs() < 1e-6);
    }
}
