//! How a model is put together: fields by their short names, and weights.

use crate::gguf::{Field, Gguf, Tensor};

/// A model that is being made.
///
/// A weight is a function of the names of model and tensor and of its place, so adding a tensor changes no other.
pub(super) struct Maker {
    gguf: Gguf,
    name: &'static str,
    architecture: &'static str,
}

impl Maker {
    pub(super) fn new(name: &'static str, architecture: &'static str) -> Self {
        let mut gguf = Gguf::new();
        gguf.set("general.architecture", Field::text(architecture)).set("general.name", Field::text(name));
        Self { gguf, name, architecture }
    }

    pub(super) fn gguf(&mut self) -> &mut Gguf {
        &mut self.gguf
    }

    pub(super) fn done(self) -> Gguf {
        self.gguf
    }

    /// Sets fields of the architecture.
    pub(super) fn fields<const N: usize>(&mut self, fields: [(&str, Field); N]) {
        for (name, value) in fields {
            self.gguf.set(&format!("{}.{name}", self.architecture), value);
        }
    }

    /// A matrix that maps numbers of size 1 to numbers of size `gain`.
    pub(super) fn matrix(&mut self, name: &str, shape: [u64; 2], gain: f32) {
        // Uniform numbers between -x and x are of size x / √3; as many as a row has of them are added up.
        let scale = gain * (3.0 / shape[0] as f32).sqrt();
        self.add(name, &shape, 0.0, scale);
    }

    /// A table whose rows are looked up, of numbers of size `size`.
    pub(super) fn table(&mut self, name: &str, shape: [u64; 2], size: f32) {
        self.add(name, &shape, 0.0, size * 3_f32.sqrt());
    }

    /// The weights of a norm, near 1.
    pub(super) fn norm(&mut self, name: &str, width: u64) {
        self.add(name, &[width], 1.0, 0.2);
    }

    /// Numbers around `centre`, at most `spread` away.
    pub(super) fn around(&mut self, name: &str, shape: &[u64], centre: f32, spread: f32) {
        self.add(name, shape, centre, spread);
    }

    fn add(&mut self, name: &str, shape: &[u64], centre: f32, spread: f32) {
        let seed = hash(hash(0, self.name.as_bytes()), name.as_bytes());
        let count: u64 = shape.iter().product();
        let numbers = (0..count).map(|at| centre + spread * unit(seed, at));
        self.gguf.tensors.push(Tensor::f32(name, shape, numbers));
    }
}

/// The `at`th number of a seed, between -1 and 1.
fn unit(seed: u64, at: u64) -> f32 {
    (mix(seed ^ mix(at)) >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn hash(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |sum, &byte| mix(sum ^ u64::from(byte)))
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
