//! What the fuzz targets share: where their first inputs go, and what takes them apart.
#![deny(unsafe_code)]

pub mod input;
pub mod seeds;

#[allow(unsafe_code, reason = "a global allocator that counts")]
#[path = "../../infer-core/tests/kit/held.rs"]
pub mod held;
