//! How a next token is chosen.

mod params;

pub use params::Sampling;
