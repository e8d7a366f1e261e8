//! Many requests, one forward pass.

mod channel;
mod job;
mod settings;
