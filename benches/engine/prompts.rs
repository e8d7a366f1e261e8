//! Prompts of exact lengths, the same ones at every run.

use infer::{Special, Token, Tokenizer};
use infer_benches::Random;

const WORDS: [&str; 32] = [
    "amber", "basin", "candle", "delta", "ember", "falcon", "garden", "harbour", "island", "juniper", "kettle",
    "lantern", "meadow", "needle", "orchard", "pebble", "quarry", "ribbon", "saddle", "timber", "umbrella", "valley",
    "willow", "yarrow", "zephyr", "anchor", "bridge", "copper", "dagger", "engine", "feather", "granite",
];

/// A text of `count` tokens. Two with other numbers differ from their beginnings on, so that no cache serves for both.
///
/// # Panics
/// When the tokenizer fails: the text has nothing special in it.
pub(crate) fn tokens(tokenizer: &dyn Tokenizer, number: u64, count: usize) -> Vec<Token> {
    // A word has a token at least. The first ones write the number down in words.
    let mut random = Random::new(number);
    let mut text = String::new();
    for at in 0..count {
        let word = if at < 5 { number >> (5 * at) } else { random.any() };
        text.push_str(WORDS[(word % 32) as usize]);
        text.push_str(if random.below(9) == 0 { ".\n" } else { " " });
    }
    let mut tokens = Vec::new();
    tokenizer.encode(&text, Special::NONE, &mut tokens).unwrap_or_else(|error| panic!("{error}"));
    tokens.truncate(count);
    assert_eq!(tokens.len(), count, "a word has a token at least");
    tokens
}

/// The ids as a list of JSON.
pub(crate) fn json(tokens: &[Token]) -> String {
    let ids: Vec<String> = tokens.iter().map(|token| token.0.to_string()).collect();
    format!("[{}]", ids.join(","))
}
