//! Arrays that outlive scopes.

use crate::{
    DType, Element,
    array::failed,
    operand::Inner,
    poison::{Poison, unread},
    raw,
};
use infer_core::Result;
use std::{fmt, panic::Location, rc::Rc};

/// An array that outlives scopes: a weight, a cache. Freed with its last clone.
///
/// It keeps the library's stream of its thread alive, and cannot leave the thread.
#[derive(Clone)]
pub struct Owned(Rc<State>);

enum State {
    Live(raw::Held),
    Poisoned(Rc<Poison>),
}

impl Owned {
    #[track_caller]
    pub(crate) fn share(node: raw::Node<'_>, runtime: &Rc<raw::Runtime>) -> Self {
        match runtime.share(node) {
            Ok(fresh) => Self(Rc::new(State::Live(raw::Held::new(fresh, runtime)))),
            Err(failure) => {
                let place = Location::caller();
                Self::poisoned(Rc::new(Poison::refused(runtime, "own", &[node], failure, place)))
            }
        }
    }

    pub(crate) fn poisoned(poison: Rc<Poison>) -> Self {
        Self(Rc::new(State::Poisoned(poison)))
    }

    pub(crate) fn inner(&self) -> Inner<'_> {
        match &*self.0 {
            State::Live(held) => Inner::Live(held.node()),
            State::Poisoned(poison) => Inner::Poisoned(Rc::clone(poison)),
        }
    }

    /// Computes it if it is not computed yet; and lets go of what it was made of.
    ///
    /// As long as an array is not computed, its graph keeps every array that goes into it: weights that were dropped keep their memory for
    /// its sake. Afterwards it has no more than its own memory. (Parts of an array share its memory: `contiguous` makes a copy of one.)
    ///
    /// # Errors
    /// It is an error; or the computation failed.
    pub fn detach(&self) -> Result<()> {
        match &*self.0 {
            State::Live(held) => held.eval().map_err(|failure| failed("evaluate", failure)),
            State::Poisoned(poison) => Err(poison.error()),
        }
    }

    /// The size of each dimension. Empty for a scalar, and for an array that is an error.
    #[must_use]
    pub fn shape(&self) -> &[i32] {
        self.info().map_or(&[], |info| info.shape)
    }

    /// How many dimensions it has.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// The type of its elements; [`DType::F32`] for an array that is an error.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.info().map_or(DType::F32, |info| info.dtype)
    }

    /// Whether all went well on the way to it. As [`Array::check`](crate::Array::check).
    ///
    /// # Errors
    /// The first thing that went wrong.
    pub fn check(&self) -> Result<()> {
        match &*self.0 {
            State::Live(_) => Ok(()),
            State::Poisoned(poison) => Err(poison.error()),
        }
    }

    /// The elements, row by row. As [`Array::data`](crate::Array::data).
    ///
    /// # Errors
    /// As [`Array::data`](crate::Array::data).
    #[track_caller]
    pub fn data<T: Element>(&self) -> Result<&[T]> {
        match &*self.0 {
            State::Live(held) => {
                let (runtime, node, place) = (held.runtime(), held.node(), Location::caller());
                runtime.data(node).map_err(|failure| unread(runtime, "the elements", node, failure, "Mlx::eval", place))
            }
            State::Poisoned(poison) => Err(poison.error()),
        }
    }

    /// The one element.
    ///
    /// # Errors
    /// As [`data`](Self::data); or it has not exactly one element.
    #[track_caller]
    pub fn item<T: Element>(&self) -> Result<T> {
        match &*self.0 {
            State::Live(held) => {
                let (runtime, node, place) = (held.runtime(), held.node(), Location::caller());
                runtime.item(node).map_err(|failure| unread(runtime, "the element", node, failure, "Mlx::eval", place))
            }
            State::Poisoned(poison) => Err(poison.error()),
        }
    }

    fn info(&self) -> Option<raw::Info<'_>> {
        match &*self.0 {
            State::Live(held) => held.runtime().info(held.node()).ok(),
            State::Poisoned(_) => None,
        }
    }
}

impl fmt::Debug for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Some(info) => write!(f, "Owned({}{:?})", info.dtype, info.shape),
            None => f.debug_tuple("Owned").field(&self.check()).finish(),
        }
    }
}
