//! What the fuzz targets share: where their first inputs go, and what takes them apart.
#![forbid(unsafe_code)]

pub mod input;
pub mod seeds;
