use crate::backends;
use infer_core::Error;
use std::{fmt, str::FromStr};

/// What a backend's native library computes on. It is built in several ways, which lie side by side: `infer setup llama --variant
/// vulkan` puts one into the cache beside those that are there, and [`Library::Variant`](crate::Library::Variant) chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Variant {
    /// The processor alone.
    Cpu,
    /// GPUs through Vulkan, beside the processor.
    Vulkan,
    /// NVIDIA's GPUs, beside the processor. Builds by the recipe of llama.cpp; never run by this project yet.
    Cuda,
    /// Apple's GPUs, beside the processor. Builds by the recipe of llama.cpp; never run by this project yet.
    Metal,
}

impl Variant {
    /// Every variant there is.
    pub const ALL: &'static [Self] = &[Self::Cpu, Self::Vulkan, Self::Cuda, Self::Metal];

    /// The name by which it is chosen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Vulkan => "vulkan",
            Self::Cuda => "cuda",
            Self::Metal => "metal",
        }
    }

    /// The feature of this crate that lets a program choose it.
    #[must_use]
    pub const fn feature(self) -> &'static str {
        match self {
            Self::Cpu => "llama-load",
            Self::Vulkan => "llama-vulkan",
            Self::Cuda => "llama-cuda",
            Self::Metal => "llama-metal",
        }
    }

    /// Whether this program can choose it.
    #[must_use]
    pub const fn is_compiled_in(self) -> bool {
        backends::has_variant(self)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Variant {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.iter().copied().find(|variant| variant.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|variant| variant.name()).collect();
            Error::invalid_input(format!("there is no variant `{name}`; the variants are: {}", known.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, Library};

    #[test]
    fn each_is_known_by_its_name() {
        for variant in Variant::ALL {
            assert_eq!(variant.name().parse::<Variant>().unwrap(), *variant);
        }
        let text = "opencl".parse::<Variant>().unwrap_err().to_string();
        assert!(text.contains("`opencl`") && text.contains("cpu, vulkan, cuda, metal"), "{text}");
    }

    /// On no machine that runs these tests is every variant both compiled in and built.
    #[test]
    fn one_that_cannot_be_had_says_what_is_missing() {
        for variant in Variant::ALL.iter().filter(|_| crate::Backend::Llama.is_compiled_in()) {
            let Err(error) = crate::devices(&Library::Variant(*variant)) else { continue };
            let text = error.to_string();
            if variant.is_compiled_in() {
                assert_eq!(error.kind(), ErrorKind::Library);
                assert!(text.contains(variant.name()) && text.contains("infer setup llama"), "{text}");
            } else {
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(text.contains(variant.name()) || text.contains("linked"), "{text}");
                assert!(text.contains(&format!("`{}`", variant.feature())), "{text}");
            }
        }
    }
}
