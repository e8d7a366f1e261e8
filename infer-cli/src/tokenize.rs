//! `infer tokenize`: text in, tokens out.

use crate::{
    args::{self, ModelArgs},
    failure::Failure,
    output,
};
use infer::{Special, Token, Vocab};
use serde::Serialize;
use std::fmt::Write as _;

/// Show the tokens of a text. Loads the vocabulary only.
#[derive(clap::Args, Debug)]
pub(crate) struct Tokenize {
    #[command(flatten)]
    model: ModelArgs,

    /// The text. Without it, all of stdin is read, byte for byte.
    text: Option<String>,

    /// Add the tokens that the model wants around a text.
    #[arg(long)]
    add: bool,

    /// Take names of control tokens, such as <|im_end|>, as those tokens.
    #[arg(long)]
    special: bool,

    /// Only the ids, on one line.
    #[arg(long, conflicts_with = "json")]
    ids: bool,

    /// One JSON object: `tokens` are the ids, `pieces` their texts (bytes, where a piece is not UTF-8 by itself).
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'v> {
    tokens: &'v [Token],
    pieces: Vec<Piece<'v>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Piece<'v> {
    Text(&'v str),
    Bytes(&'v [u8]),
}

impl Tokenize {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let text = match &self.text {
            Some(text) => text.clone(),
            None => args::stdin("the text")?,
        };
        let model = self.model.open_vocab()?;
        let (tokenizer, mut tokens) = (model.tokenizer(), Vec::new());
        tokenizer.encode(&text, Special { add: self.add, parse: self.special }, &mut tokens)?;
        let pieces = tokens.iter().map(|&token| piece(tokenizer.vocab(), token));
        if self.json {
            return output::json(&Report { tokens: &tokens, pieces: pieces.collect() });
        }
        if self.ids {
            let ids: Vec<String> = tokens.iter().map(Token::to_string).collect();
            return output::text(&(ids.join(" ") + "\n"));
        }
        let mut lines = String::new();
        for (token, piece) in tokens.iter().zip(pieces) {
            // Infallible: it is a string that is written to.
            let _ = match piece {
                Piece::Text(text) => writeln!(lines, "{token:>7}  {text:?}"),
                Piece::Bytes(bytes) => writeln!(lines, "{token:>7}  b\"{}\"", bytes.escape_ascii()),
            };
        }
        output::text(&lines)
    }
}

fn piece(vocab: &Vocab, token: Token) -> Piece<'_> {
    let bytes = vocab.bytes(token).unwrap_or_default();
    std::str::from_utf8(bytes).map_or(Piece::Bytes(bytes), Piece::Text)
}
