//! The instructions that this processor has.

#[cfg(target_arch = "x86_64")]
use crate::kernels::Fused;
use crate::kernels::{Plain, Work};

/// Instructions to compute with, which are there: no other is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cpu(Instructions);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instructions {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Cpu {
    /// What every processor of the target has.
    pub(crate) const PLAIN: Self = Self(Instructions::Plain);

    /// The widest that there are.
    pub(crate) fn best() -> Self {
        Self::all().last().unwrap_or(Self::PLAIN)
    }

    /// All that there are, the widest last.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        [
            Some(Instructions::Plain),
            #[cfg(target_arch = "x86_64")]
            (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Instructions::Avx2),
            #[cfg(target_arch = "x86_64")]
            has_avx512().then_some(Instructions::Avx512),
        ]
        .into_iter()
        .flatten()
        .map(Self)
    }

    /// Computes it.
    #[inline]
    pub(crate) fn run(self, work: impl Work) {
        match self.0 {
            Instructions::Plain => work.run::<Plain>(),
            // SAFETY: `all` makes this where the processor was found to have them.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { with_avx2(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => unsafe { with_avx512(work) },
        }
    }
}

/// Whether there is what `with_avx512` is compiled for.
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2(work: impl Work) {
    work.run::<Fused>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,fma")]
fn with_avx512(work: impl Work) {
    work.run::<Fused>();
}
