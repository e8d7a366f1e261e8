//! What the tests of this crate share.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod lora;
pub(crate) mod tiny;

pub(crate) use build_support::gguf;
