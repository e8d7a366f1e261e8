use super::{Logit, draw::Scratch, row::Softmax};
use crate::{Error, Result, Token};

/// The natural-log probability of a token in the model's own distribution, by the row of logits before it: what
/// [`Sampled::logprob`](crate::Sampled::logprob) is of a token that is drawn.
///
/// # Errors
/// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a token beyond the row; [`Runtime`](crate::ErrorKind::Runtime) for a logit that is not a
/// number, and where all are negative infinity.
pub fn log_probability<L: Logit>(logits: &[L], token: Token) -> Result<f32> {
    Scratch::with(|Scratch { wide, .. }| {
        let row = L::wide(logits, wide);
        let Some(&logit) = row.get(token.index()) else {
            return Err(Error::invalid_input(format!("token {token} is beyond a row of {} logits", row.len())));
        };
        Ok(Softmax::of(row)?.logprob(logit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_sum_to_one_whatever_the_logits_are() {
        for shift in [0.0, 1e4, -1e4] {
            let row: Vec<f32> = (0..1000).map(|i| shift + (i % 17) as f32 * 0.25).collect();
            let sum: f64 = (0..1000).map(|token| f64::from(log_probability(&row, Token(token)).unwrap()).exp()).sum();
            assert!((sum - 1.0).abs() < 1e-4, "{sum}");
        }
    }

    #[test]
    fn what_cannot_be_has_no_probability() {
        assert_eq!(log_probability(&[0.0, f32::NEG_INFINITY], Token(1)).unwrap(), f32::NEG_INFINITY);
        assert_eq!(log_probability(&[f32::INFINITY, 0.0], Token(0)).unwrap(), 0.0);
        let said = log_probability(&[0.0, f32::NAN], Token(0)).unwrap_err().to_string();
        assert!(said.contains("token 1 is not a number"), "{said}");
        assert!(log_probability(&[0.0, 1.0], Token(2)).is_err());
    }
}
