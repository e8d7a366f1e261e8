//! GBNF, llama.cpp's grammars, as Lark.
use super::compile::invalid;
use crate::Result;

pub(super) fn to_lark(text: &str) -> Result<String> {
    Err(invalid(format!("GBNF {}", text.len())))
}
