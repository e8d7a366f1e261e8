//! (being written)
#![deny(unsafe_code)]

pub mod gguf;
