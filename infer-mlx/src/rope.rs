//! Rotary positions: by which angles queries and keys are turned.
//!
//! Number `i` of the first half of what is turned and number `i` of the second are a point of the plane, turned by
//! `position × scale / base^(2i/dims)` (Su et al., RoFormer, arXiv:2104.09864, section 3.2.2; in the *traditional* order its points are
//! neighbours). Models that were made to see further than they were first trained for have other wavelengths; each way to get them is
//! a function here.

#[cfg(test)]
mod tests;

use crate::{
    Array, DType,
    config::Config,
    weights::{Plan, Weight},
};
use infer_core::Result;
use std::f64::consts::TAU;

/// How queries and keys are turned. Clones share what they have computed.
#[derive(Clone)]
pub(crate) struct Rope {
    dims: usize,
    is_traditional: bool,
    scale: f32,
    input_scale: Option<f32>,
    /// `[dims / 2]`, f32: by how much each point is turned from one position to the next.
    speeds: Weight,
}

/// What the settings of a model say of its rotation.
pub(crate) struct Rotation {
    dims: usize,
    is_traditional: bool,
    scale: f32,
    input_scale: Option<f32>,
    wavelengths: Wavelengths,
}

/// Positions for one radian, in each plane.
#[derive(Debug, PartialEq)]
enum Wavelengths {
    /// `base^(2i/dims)`.
    Base(f32),
    /// These.
    Each(Vec<f32>),
}

impl Rotation {
    /// Turns the first `dims` numbers of a head, the slowest plane by one radian in about `base` positions.
    pub(crate) fn new(dims: usize, base: f64) -> Self {
        let wavelengths = Wavelengths::Base(base as f32);
        Self { dims, is_traditional: false, scale: 1.0, input_scale: None, wavelengths }
    }

    /// Reads `rope_theta`, `rope_scaling` and `rope_traditional`. Newer files have the first two in `rope_parameters`.
    pub(crate) fn read(config: &Config, dims: usize, default_base: Option<f64>) -> Result<Self> {
        let newer = config.optional_part("rope_parameters")?;
        let mut base = config.optional_positive("rope_theta")?;
        if let (None, Some(newer)) = (base, &newer) {
            base = newer.optional_positive("rope_theta")?;
        }
        let base = match base.or(default_base) {
            Some(base) => base,
            None => config.positive("rope_theta")?,
        };
        let rotation = match config.optional_part("rope_scaling")?.or(newer) {
            None => Self::new(dims, base),
            Some(scaling) => Self::scaled(config, &scaling, dims, base)?,
        };
        Ok(Self { is_traditional: config.flag("rope_traditional")?.unwrap_or(false), ..rotation })
    }

    /// A rotation that was changed to see further.
    pub(crate) fn scaled(config: &Config, scaling: &Config, dims: usize, base: f64) -> Result<Self> {
        let kind = match scaling.text("type")? {
            Some(kind) => Some(kind),
            None => scaling.text("rope_type")?,
        };
        let plain = Self::new(dims, base);
        match kind.unwrap_or("default") {
            "default" => Ok(plain),
            // Chen et al., arXiv:2306.15595: positions are closer together.
            "linear" => Ok(Self { scale: (1.0 / scaling.positive("factor")?) as f32, ..plain }),
            "llama3" => {
                let wavelengths = Wavelengths::Each(Llama3::read(scaling)?.wavelengths(dims, base));
                Ok(Self { wavelengths, ..plain })
            }
            "longrope" | "su" => Self::long(config, scaling, dims, base),
            other => {
                let known = "default, linear, llama3 and longrope are";
                Err(scaling.unsupported(format!("the rotary positions are of the kind {other:?}; supported {known}")))
            }
        }
    }

    /// LongRoPE (Ding et al., arXiv:2402.13753): each wavelength has a factor of its own, and what is turned is longer. As mlx-lm has it: with
    /// the factors for long texts, whatever the length.
    fn long(config: &Config, scaling: &Config, dims: usize, base: f64) -> Result<Self> {
        let most = crate::config::most::POSITIONS;
        let trained = match scaling.optional_size("original_max_position_embeddings", most)? {
            Some(trained) => trained,
            None => config.optional_size("original_max_position_embeddings", most)?.unwrap_or(4096),
        } as f64;
        let factor = config.optional_size("max_position_embeddings", most)?.unwrap_or(131_072) as f64 / trained;
        // Its logarithm is divided by.
        if trained < 2.0 {
            return Err(
                config.invalid("original_max_position_embeddings is 1, and longrope needs at least 2 positions")
            );
        }
        let factors = scaling.positives("long_factor", dims / 2)?;
        let each = powers(dims, base).zip(factors).map(|(wavelength, factor)| factor as f32 * wavelength);
        let input_scale = (factor > 1.0).then(|| (1.0 + factor.ln() / trained.ln()).sqrt() as f32);
        Ok(Self { input_scale, wavelengths: Wavelengths::Each(each.collect()), ..Self::new(dims, base) })
    }

    /// The rotation that layers use.
    pub(crate) fn plan(self, plan: &mut Plan<'_>) -> Rope {
        let Self { dims, is_traditional, scale, input_scale, wavelengths } = self;
        let half = dims / 2;
        let speeds = plan.computed(move |scope| match &wavelengths {
            // As MLX computes it, to the last digit.
            Wavelengths::Base(base) => (scope.arange(0, half as i32, DType::F32) * -(base.ln() / half as f32)).exp(),
            Wavelengths::Each(each) => scope.array(each, &[half]).reciprocal(),
        });
        Rope { dims, is_traditional, scale, input_scale, speeds }
    }
}

impl Rope {
    /// How many numbers of a head are turned: the first ones.
    pub(crate) fn dims(&self) -> usize {
        self.dims
    }

    /// Whether the points are neighbours, and not a number of the first half with one of the second.
    pub(crate) fn is_traditional(&self) -> bool {
        self.is_traditional
    }

    /// What the numbers are multiplied with before they are turned.
    pub(crate) fn input_scale(&self) -> Option<f32> {
        self.input_scale
    }

    /// The angles, `[tokens, dims / 2]` in f32, for these positions, `[tokens]`. Cosines and sines of them are rounded to the type of what is
    /// turned, and that is computed in its type: MLX's own habit.
    pub(crate) fn angles<'s>(&self, positions: Array<'s>) -> Array<'s> {
        let positions = positions.as_type(DType::F32);
        let positions = if self.scale == 1.0 { positions } else { positions * self.scale };
        positions.expand_dims(-1) * self.speeds.owned()
    }

    /// Whether the other turns in the same way, since it is a clone of this one: what was computed for one of them can be used for both.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.speeds.is_same(&other.speeds)
    }
}

/// Llama 3.1 (`apply_scaling` in Meta's reference code): short wavelengths stay, long ones are stretched by a factor, and between the two it
/// goes over smoothly.
struct Llama3 {
    factor: f64,
    low: f64,
    high: f64,
    trained: f64,
}

impl Llama3 {
    fn read(scaling: &Config) -> Result<Self> {
        let (low, high) = ("low_freq_factor", "high_freq_factor");
        let found = Self {
            factor: scaling.positive("factor")?,
            low: scaling.optional_positive(low)?.unwrap_or(1.0),
            high: scaling.optional_positive(high)?.unwrap_or(4.0),
            trained: scaling.optional_positive("original_max_position_embeddings")?.unwrap_or(8192.0),
        };
        if found.high <= found.low {
            let Self { low: less, high: more, .. } = found;
            return Err(scaling.invalid(format!("`{high}` is {more}, not above `{low}`, {less}")));
        }
        Ok(found)
    }

    fn wavelengths(&self, dims: usize, base: f64) -> Vec<f32> {
        let (factor, low, trained) = (self.factor as f32, self.low as f32, self.trained as f32);
        let (longest, shortest) = ((self.trained / self.low) as f32, (self.trained / self.high) as f32);
        let stretched = |radian: f32| {
            let whole = TAU as f32 * radian;
            if whole > longest {
                return radian * factor;
            }
            if whole <= shortest || whole >= longest {
                return radian;
            }
            let smooth = (trained / whole - low) / (self.high - self.low) as f32;
            radian / ((1.0 - smooth) / factor + smooth)
        };
        powers(dims, base).map(stretched).collect()
    }
}

/// `base^(2i/dims)` for each plane.
fn powers(dims: usize, base: f64) -> impl Iterator<Item = f32> {
    (0..dims / 2).map(move |plane| (base as f32).powf(2.0 * plane as f32 / dims as f32))
}
