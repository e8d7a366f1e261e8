//! The vocabulary.

use super::Facts;
use crate::gguf::{Array, Strings, Value};
use infer_core::Result;
use std::collections::HashSet;

/// Token types of the file.
const TYPE_BYTE: i32 = 6;

pub(super) fn check(facts: &Facts<'_>) -> Result<()> {
    let Some(model) = facts.text("tokenizer.ggml.model")? else {
        return facts.refuse("tokenizer.ggml.model is missing");
    };
    facts.text("tokenizer.ggml.pre")?;
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
    // llama.cpp asserts that no two tokens are alike. It reads them as C strings, and gives empty ones a name.
    let mut seen = HashSet::with_capacity(tokens.len());
    for (index, token) in tokens.iter().enumerate() {
        let text = token.split(|&byte| byte == 0).next().unwrap_or_default();
        let name =
            if text.is_empty() { format!("[EMPTY_{index}]").into_bytes().into() } else { std::borrow::Cow::from(text) };
        if !seen.insert(name) {
            let shown = String::from_utf8_lossy(text);
            return facts.refuse(format!("{key}: token {index} ({shown:?}) is there twice"));
        }
    }
    Ok(tokens)
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
