//! The tokens that may follow a text.

use super::compile::Tokens;
use crate::Token;
use toktrie::{SimpleVob, TokTrie};

/// Which they are.
#[derive(Clone)]
pub(super) enum Allowed {
    One(Token),
    /// Those whose bit is set.
    Many(SimpleVob),
    /// Those that end a text.
    End,
}

impl Allowed {
    /// Puts negative infinity in the place of the logits of all others.
    pub(super) fn mask(&self, tokens: &Tokens, logits: &mut [f32]) {
        match self {
            Self::One(token) => {
                let logit = logits[token.index()];
                logits.fill(f32::NEG_INFINITY);
                logits[token.index()] = logit;
            }
            Self::Many(set) => keep(logits, set),
            Self::End => keep(logits, tokens.end_set()),
        }
    }
}

fn keep(logits: &mut [f32], set: &SimpleVob) {
    for (&word, block) in set.as_slice().iter().zip(logits.chunks_mut(u32::BITS as usize)) {
        match word {
            0 => block.fill(f32::NEG_INFINITY),
            u32::MAX => {}
            _ => {
                for (bit, logit) in block.iter_mut().enumerate() {
                    *logit = if word >> bit & 1 == 1 { *logit } else { f32::NEG_INFINITY };
                }
            }
        }
    }
}

/// The longest token that a text begins with; none where one begins with all of the text and goes on.
pub(super) fn longest(trie: &TokTrie, text: &[u8]) -> Option<Token> {
    if text.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER) {
        return None;
    }
    let (mut node, mut longest) = (trie.root(), None);
    for &byte in text {
        match trie.child_at_byte(node, byte) {
            Some(child) => node = child,
            None => return longest,
        }
        longest = node.token_id().map(Token).or(longest);
    }
    // All of the text was walked: what lies below goes on.
    longest.filter(|_| node.subtree_size() == 1)
}
