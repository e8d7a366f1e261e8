//! Constraints, on the scripted session: each byte is a token there, so a text can be cut into tokens in one way only.

mod budget;
mod draws;
mod errors;
mod json;
mod kit;

use infer_core::{Constraint, Sampling};
use kit::{generate, warm};

#[test]
fn what_is_drawn_keeps_to_an_expression() {
    for seed in 0..20 {
        let text = generate(&warm(Constraint::regex("(yes|no), [0-9]{2,4}"), seed), 40);
        let (word, digits) = text.split_once(", ").unwrap();
        assert!(["yes", "no"].contains(&word), "{text}");
        assert!((2..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()), "{text}");
    }
}

#[test]
fn greedy_draws_keep_to_it_too() {
    let text =
        generate(&Sampling::greedy().with_constraint(Constraint::lark("start: \"a\" (\"b\" | \"c\") \"d\"")), 40);
    assert!(["abd", "acd"].contains(&text.as_str()), "{text}");
}
