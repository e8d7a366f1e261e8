//! What may stand beside an array in an operation.

use crate::{Array, Owned, Scope, poison::Poison, raw};
use std::rc::Rc;

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::Array<'_> {}
    impl Sealed for &crate::Owned {}
    impl Sealed for f32 {}
}

/// What may stand beside an array in an operation: another [`Array`], an [`Owned`] by reference, or a number, which takes the array's type
/// of elements.
pub trait Operand<'s>: sealed::Sealed {
    #[doc(hidden)]
    fn value(&self) -> Value<'_>;

    /// The scope that it lives in.
    #[doc(hidden)]
    fn home(&self) -> Option<&'s Scope<'s>> {
        None
    }
}

/// What an operand is, for the time of one operation.
#[doc(hidden)]
pub struct Value<'v>(pub(crate) Inner<'v>);

pub(crate) enum Inner<'v> {
    Live(raw::Node<'v>),
    Number(f32),
    Poisoned(Rc<Poison>),
}

impl<'s> Operand<'s> for Array<'s> {
    fn value(&self) -> Value<'_> {
        Value(self.inner())
    }

    fn home(&self) -> Option<&'s Scope<'s>> {
        Some(self.scope())
    }
}

impl<'s> Operand<'s> for &Owned {
    fn value(&self) -> Value<'_> {
        Value(self.inner())
    }
}

impl<'s> Operand<'s> for f32 {
    fn value(&self) -> Value<'_> {
        Value(Inner::Number(*self))
    }
}
