//! The weights of a model: found, compared with what its architecture wants, and read, in this order.
//!
//! An architecture does not read: it says in a [`Plan`] which weights it wants, of which shape, and gets a [`Weight`] for each, an empty place
//! so far. The plan is held against the headers of the files; only when all is there, and nothing else, the bytes are read, in the order in which
//! they lie, each tensor straight into the memory that MLX computes with. So everything that can be wrong with a model, but for its numbers, is
//! found without the native library and before the first byte of a weight.

mod plan;
mod read;
mod shards;

pub(crate) use plan::{Plan, Planned};
pub(crate) use shards::Shards;

use crate::Owned;
use std::{cell::OnceCell, fmt, rc::Rc};

/// The place of a weight. Clones are the same place.
#[derive(Clone, Default)]
pub(crate) struct Weight(Rc<OnceCell<Owned>>);

impl Weight {
    /// What lies there.
    ///
    /// # Panics
    /// Before the plan that it is from was read.
    pub(crate) fn owned(&self) -> &Owned {
        self.0.get().expect("a model is handed out when its weights have been read")
    }

    /// Whether it is the same place.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// A place with this in it.
    #[cfg(test)]
    pub(crate) fn of(weight: Owned) -> Self {
        let place = Self::default();
        place.fill(weight);
        place
    }

    /// Each place is filled once.
    fn fill(&self, weight: Owned) {
        let filled = self.0.set(weight);
        debug_assert!(filled.is_ok(), "a plan is read once");
    }
}

impl fmt::Debug for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "Weight" } else { "Weight, not read" })
    }
}
