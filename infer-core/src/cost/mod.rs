//! What a model costs, from metadata alone: parameters, work a token, KV cache, memory.
//!
//! [`Dims`] says what a transformer looks like. The counts come in two kinds. *Exact* ones add up every
//! matrix product of the architecture. The *simple* formula that everybody knows, two operations a parameter a token, is
//! [`Dims::simple_flops`]; what it leaves out is said there.
//!
//! ```
//! use infer_core::cost::{Dims, KvType};
//!
//! // Qwen3-4B: 36 layers, width 2560, 32 heads on 8 key/value heads of 128.
//! let dims = Dims::new(36, 2560, 32, 8, 128, 151_936).with_feed_forward(9728).with_tied(true).with_qk_norm(true);
//! assert_eq!(dims.kv_bytes_per_position(KvType::F16, KvType::F16), 144 << 10);
//! assert_eq!(dims.parameters().total(), 4_022_468_096);
//! ```
//!
//! Counts that do not fit 64 bits stay at the largest number there is; [`Dims::validate`] finds dimensions that cannot be.

mod dims;
mod flops;
mod kv;
mod memory;
mod parameters;
#[cfg(test)]
mod tests;

pub use dims::{Biases, Dims};
pub use flops::Flops;
pub use kv::{KvRows, KvType};
pub use memory::{DtypeWeights, Estimate, Fit, Setup, Weights};
pub use parameters::Parameters;

/// The product, or the largest number there is.
fn product(factors: &[usize]) -> u64 {
    factors.iter().fold(1, |product: u64, &factor| product.saturating_mul(factor as u64))
}

/// The sum, or the largest number there is.
fn sum(terms: &[u64]) -> u64 {
    terms.iter().fold(0, |sum: u64, &term| sum.saturating_add(term))
}
