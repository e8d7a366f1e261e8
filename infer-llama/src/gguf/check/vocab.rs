//! The vocabulary.

use super::Facts;
use crate::gguf::{Array, Strings, Value};
use infer_core::Result;
use std::{borrow::Cow, collections::HashSet};

/// Token types of the file.
const TYPE_BYTE: i32 = 6;

pub(super) fn check(facts: &Facts<'_>) -> Result<()> {
    let Some(model) = facts.text("tokenizer.ggml.model")? else {
        return facts.refuse("tokenizer.ggml.model is missing");
    };
    let pre = facts.text("tokenizer.ggml.pre")?;
    // It leaves spaces as they are, which merging asserts not to see; the model of that name drops them before.
    if pre == Some("whitespace") && matches!(model, "gpt2" | "hybriddna") {
        return facts
            .refuse(format!("tokenizer.ggml.pre is whitespace, which tokenizer.ggml.model {model} does not go with"));
    }
    if matches!(model, "no_vocab" | "none") {
        return check_dummy(facts);
    }
    let tokens = check_tokens(facts)?;
    let count = tokens.len();
    if let Some(stated) = facts.u32("vocab_size")?.filter(|&stated| stated as usize != count) {
        return facts.refuse(format!("{} is {stated}, the token list has {count}", facts.key("vocab_size")));
    }
    check_special(facts, count)?;
    check_types(facts, model, tokens)?;
    if model == "rwkv" {
        check_first_bytes(facts, tokens)?;
    }
    check_merges(facts)
}

/// Without a vocabulary llama.cpp makes up as many tokens as it is told.
fn check_dummy(facts: &Facts<'_>) -> Result<()> {
    const MOST: u64 = 1 << 20;
    let Some(size) = facts.u32("vocab_size")?.map(u64::from) else { return Ok(()) };
    let rows = facts.header.tensor("token_embd.weight").and_then(|tensor| tensor.shape().get(1).copied());
    if size > rows.unwrap_or(MOST) {
        let rows = rows.map_or(format!("{MOST} are allowed"), |rows| format!("token_embd.weight has {rows} rows"));
        return facts.refuse(format!("{} is {size}, {rows}", facts.key("vocab_size")));
    }
    Ok(())
}

fn check_tokens<'h>(facts: &Facts<'h>) -> Result<&'h Strings> {
    let key = "tokenizer.ggml.tokens";
    let tokens = match facts.header.value(key) {
        Some(Value::Array(Array::String(tokens))) if !tokens.is_empty() => tokens,
        Some(Value::Array(Array::String(_))) => return facts.refuse(format!("{key} is empty")),
        Some(other) => return facts.wrong_type(key, other, "an array of strings"),
        None => return facts.refuse(format!("{key} is missing")),
    };
    // llama.cpp asserts that no two tokens are alike.
    let mut seen = HashSet::with_capacity(tokens.len());
    for (index, token) in tokens.iter().enumerate() {
        if !seen.insert(as_read(index, token)) {
            let shown = as_read(index, token);
            let shown = String::from_utf8_lossy(&shown);
            return facts.refuse(format!("{key}: token {index} ({shown:?}) is there twice"));
        }
    }
    Ok(tokens)
}

/// A token as llama.cpp reads it: as a C string, and an empty one is given a name.
fn as_read(index: usize, token: &[u8]) -> Cow<'_, [u8]> {
    match token.split(|&byte| byte == 0).next().unwrap_or_default() {
        [] => format!("[EMPTY_{index}]").into_bytes().into(),
        text => text.into(),
    }
}

fn check_special(facts: &Facts<'_>, count: usize) -> Result<()> {
    for (key, value) in facts.header.metadata() {
        if !(key.starts_with("tokenizer.ggml.") && key.ends_with("_token_id")) {
            continue;
        }
        match value {
            Value::U32(id) if (*id as usize) < count => {}
            Value::U32(id) => return facts.refuse(format!("{key} is {id}, outside the vocabulary of {count}")),
            other => return facts.wrong_type(key, other, "u32"),
        }
    }
    if let Some(id) = facts.u32("decoder_start_token_id")?.filter(|&id| id as usize >= count) {
        return facts
            .refuse(format!("{} is {id}, outside the vocabulary of {count}", facts.key("decoder_start_token_id")));
    }
    Ok(())
}

fn check_types(facts: &Facts<'_>, model: &str, tokens: &Strings) -> Result<()> {
    let key = "tokenizer.ggml.token_type";
    // A wrong type or length is refused by llama.cpp itself, with the reason.
    let Some(Value::Array(Array::I32(types))) = facts.header.value(key) else { return Ok(()) };
    if model == "rwkv" {
        return Ok(());
    }
    for (index, (&kind, token)) in types.iter().zip(tokens.iter()).enumerate() {
        if kind != TYPE_BYTE {
            continue;
        }
        // A byte is spelt "<0x0A>". Asked which byte a token of a WordPiece vocabulary is, llama.cpp aborts.
        let spelt = token.len() == 6 && token.starts_with(b"<0x") && token[3..5].iter().all(u8::is_ascii_hexdigit);
        if !spelt || model == "bert" {
            let shown = String::from_utf8_lossy(token);
            return facts
                .refuse(format!("{key}: token {index} ({shown:?}) is said to be a byte, and is not spelt as one"));
        }
    }
    Ok(())
}

/// RWKV's encoder takes the longest token a text begins with. Where the first byte leads to longer tokens, and neither it nor any
/// of them is there, it begins again at the front of the text, for ever.
fn check_first_bytes(facts: &Facts<'_>, tokens: &Strings) -> Result<()> {
    let mut alone = [false; 256];
    let mut first = [None; 256];
    for (index, token) in tokens.iter().enumerate() {
        match unescaped(&as_read(index, token))[..] {
            [] => {}
            [byte] => alone[usize::from(byte)] = true,
            [byte, ..] => _ = first[usize::from(byte)].get_or_insert(index),
        }
    }
    for (byte, index) in first.iter().enumerate().filter_map(|(byte, index)| Some((byte, (*index)?))) {
        if !alone[byte] {
            return facts.refuse(format!(
                "tokenizer.ggml.tokens: token {index} begins with the byte {byte:#04x}, for which there is no token"
            ));
        }
    }
    Ok(())
}

/// The bytes that an RWKV vocabulary spells with escapes, read as llama.cpp reads them.
fn unescaped(token: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b't') => bytes.push(b'\t'),
            Some(b'n') => bytes.push(b'\n'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'x') => {
                // Any character is taken for a digit.
                let digit = |c: u8| if (b'a'..128).contains(&c) { c - b'a' + 10 } else { c.wrapping_sub(b'0') };
                if let (Some(high), Some(low)) = (rest.next(), rest.next()) {
                    bytes.push((digit(high) << 4).wrapping_add(digit(low)));
                }
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    bytes
}

fn check_merges(facts: &Facts<'_>) -> Result<()> {
    let key = "tokenizer.ggml.merges";
    let Some(Value::Array(Array::String(merges))) = facts.header.value(key) else { return Ok(()) };
    for (index, merge) in merges.iter().enumerate() {
        // The first byte may be a space that is part of the piece.
        let apart = merge.iter().skip(1).any(|&byte| byte == b' ');
        if !apart || merge.contains(&0) {
            let shown = String::from_utf8_lossy(merge);
            return facts
                .refuse(format!("{key}: merge {index} ({shown:?}) is not two pieces with a space between them"));
        }
    }
    Ok(())
}
