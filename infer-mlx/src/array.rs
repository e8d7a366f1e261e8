//! Arrays of a scope.

mod arithmetic;
mod axis;
mod index;
mod math;
mod network;
mod shape;

pub use network::{Mask, RopeOffset};

use crate::{
    DType, Element, Owned, Scope,
    error::error,
    operand::{Inner, Operand, Value},
    poison::{Poison, unread},
    raw,
};
use infer_core::Result;
use std::{fmt, panic::Location, rc::Rc};

/// A value that is computed when it is wanted, alive as long as its scope. `Copy`: freeing is the scope's.
///
/// Operations return arrays and no [`Result`]: what is wrong with one (shapes, types) is kept in its result with the operation, the shapes
/// and the place in the source, and told by [`Scope::eval`], [`check`](Self::check), [`data`](Self::data) and [`item`](Self::item). What is made of such
/// an array is the same error again: the first one wins.
///
/// A result lives with its shortest-lived operand. Axes may count from the end: -1 is the last.
#[derive(Clone, Copy)]
pub struct Array<'s> {
    node: Node<'s>,
    scope: &'s Scope<'s>,
}

#[derive(Clone, Copy)]
enum Node<'s> {
    Live(raw::Node<'s>),
    /// Its number among the scope's errors.
    Poisoned(u32),
}

impl<'s> Array<'s> {
    pub(crate) fn live(node: raw::Node<'s>, scope: &'s Scope<'s>) -> Self {
        Self { node: Node::Live(node), scope }
    }

    pub(crate) fn poisoned(number: u32, scope: &'s Scope<'s>) -> Self {
        Self { node: Node::Poisoned(number), scope }
    }

    /// The scope that it lives in.
    #[must_use]
    pub fn scope(self) -> &'s Scope<'s> {
        self.scope
    }

    /// The size of each dimension. Empty for a scalar, and for an array that is an error: code that must work for those takes sizes from
    /// elsewhere.
    #[must_use]
    pub fn shape(self) -> &'s [i32] {
        self.info().map_or(&[], |info| info.shape)
    }

    /// How many dimensions it has.
    #[must_use]
    pub fn ndim(self) -> usize {
        self.shape().len()
    }

    /// The type of its elements; [`DType::F32`] for an array that is an error.
    #[must_use]
    pub fn dtype(self) -> DType {
        self.info().map_or(DType::F32, |info| info.dtype)
    }

    /// Whether it has been computed, or has begun to be ([`Scope::async_eval`]).
    #[must_use]
    pub fn is_evaluated(self) -> bool {
        self.info().is_some_and(|info| info.evaluated)
    }

    /// The same value with an owner of its own, which outlives the scope.
    ///
    /// Of an array that is not evaluated yet it is the whole graph that is kept, with all that goes into it: evaluate first.
    #[track_caller]
    #[must_use]
    pub fn own(self) -> Owned {
        match self.inner() {
            Inner::Live(node) => Owned::share(node, self.scope.runtime()),
            Inner::Poisoned(poison) => Owned::poisoned(poison),
            Inner::Number(_) => unreachable!("an array is no number"),
        }
    }

    /// Whether all went well on the way to it, as far as shapes and types can tell. Nothing is computed.
    ///
    /// # Errors
    /// The first thing that went wrong, with the operation, the shapes and the place in the source.
    pub fn check(self) -> Result<()> {
        match self.inner() {
            Inner::Poisoned(poison) => Err(poison.error()),
            _ => Ok(()),
        }
    }

    /// The elements, row by row, in MLX's memory. After [`Scope::async_eval`] it waits for them.
    ///
    /// # Errors
    /// The array is an error; is not evaluated; has elements of another type; or does not lie in memory row by row (make it
    /// [`contiguous`](Self::contiguous) before it is evaluated).
    #[track_caller]
    pub fn data<T: Element>(self) -> Result<&'s [T]> {
        match self.node {
            Node::Live(node) => {
                let (runtime, place) = (self.scope.runtime(), Location::caller());
                runtime
                    .data(node)
                    .map_err(|failure| unread(runtime, "the elements", node, failure, "Scope::eval", place))
            }
            Node::Poisoned(number) => Err(self.scope.poison(number).error()),
        }
    }

    /// The one element.
    ///
    /// # Errors
    /// As [`data`](Self::data), however it lies in memory; or it has not exactly one element.
    #[track_caller]
    pub fn item<T: Element>(self) -> Result<T> {
        match self.node {
            Node::Live(node) => {
                let (runtime, place) = (self.scope.runtime(), Location::caller());
                runtime
                    .item(node)
                    .map_err(|failure| unread(runtime, "the element", node, failure, "Scope::eval", place))
            }
            Node::Poisoned(number) => Err(self.scope.poison(number).error()),
        }
    }

    pub(crate) fn inner(&self) -> Inner<'s> {
        match self.node {
            Node::Live(node) => Inner::Live(node),
            Node::Poisoned(number) => Inner::Poisoned(self.scope.poison(number)),
        }
    }

    fn info(self) -> Option<raw::Info<'s>> {
        match self.node {
            Node::Live(node) => self.scope.runtime().info(node).ok(),
            Node::Poisoned(_) => None,
        }
    }

    /// An operation on this array alone.
    #[track_caller]
    fn apply(self, op: &'static str, make: impl FnOnce(&raw::Runtime, raw::Node<'_>) -> raw::Made) -> Self {
        match self.node {
            Node::Live(node) => self.scope.take_in(op, &[node], make(self.scope.runtime(), node)),
            Node::Poisoned(_) => self,
        }
    }

    /// An operation on this array and another one.
    #[track_caller]
    fn with(
        self,
        op: &'static str,
        other: &impl Operand<'s>,
        make: impl FnOnce(&raw::Runtime, raw::Node<'_>, raw::Node<'_>) -> raw::Made,
    ) -> Self {
        self.combine(op, other.home(), [other.value()], |runtime, [a, b]| make(runtime, a, b))
    }

    /// An operation on this array and others.
    #[track_caller]
    fn combine<const N: usize, const M: usize>(
        self,
        op: &'static str,
        home: Option<&'s Scope<'s>>,
        others: [Value<'_>; N],
        make: impl FnOnce(&raw::Runtime, [raw::Node<'_>; M]) -> raw::Made,
    ) -> Self {
        const { assert!(M == N + 1) };
        let home = deeper(self.scope, home);
        let Node::Live(first) = self.node else { return self.in_scope(home) };
        let mut nodes = [first; M];
        for (node, other) in nodes[1..].iter_mut().zip(others) {
            match other.0 {
                Inner::Live(other) => *node = other,
                Inner::Poisoned(poison) => return home.poison_with(poison),
                Inner::Number(_) => return home.refuse(op, &[first], "a number cannot stand here", Location::caller()),
            }
        }
        home.take_in(op, &nodes, make(home.runtime(), nodes))
    }

    /// An error where its result would be.
    fn in_scope(self, home: &'s Scope<'s>) -> Self {
        match self.node {
            Node::Poisoned(number) if !std::ptr::eq(home, self.scope) => home.poison_with(self.scope.poison(number)),
            _ => self,
        }
    }

    /// An operation that is refused here.
    #[track_caller]
    #[cold]
    fn refuse(self, op: &'static str, why: &str) -> Self {
        match self.node {
            Node::Live(node) => self.scope.refuse(op, &[node], why, Location::caller()),
            Node::Poisoned(_) => self,
        }
    }
}

/// A result lives with its shortest-lived operand.
fn deeper<'s>(one: &'s Scope<'s>, other: Option<&'s Scope<'s>>) -> &'s Scope<'s> {
    match other {
        Some(other) if other.depth() > one.depth() => other,
        _ => one,
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Some(info) => write!(f, "Array({}{:?})", info.dtype, info.shape),
            None => f.debug_tuple("Array").field(&self.check()).finish(),
        }
    }
}

/// A list of arrays as MLX takes it, or the first error among them.
fn nodes<'a>(arrays: &[Array<'a>]) -> Result<Vec<raw::Node<'a>>, Rc<Poison>> {
    let node = |array: &Array<'a>| match array.inner() {
        Inner::Live(node) => Ok(node),
        Inner::Poisoned(poison) => Err(poison),
        Inner::Number(_) => unreachable!("an array is no number"),
    };
    arrays.iter().map(node).collect()
}

impl<'s> Scope<'s> {
    /// The arrays one after the other along an axis.
    #[track_caller]
    #[must_use]
    pub fn concat(&self, arrays: &[Array<'_>], axis: i32) -> Array<'_> {
        match nodes(arrays) {
            Ok(nodes) => self.take_in("concat", &nodes, self.runtime().concatenate(&nodes, axis)),
            Err(poison) => self.poison_with(poison),
        }
    }

    /// The arrays, all of one shape, along a new axis.
    #[track_caller]
    #[must_use]
    pub fn stack(&self, arrays: &[Array<'_>], axis: i32) -> Array<'_> {
        match nodes(arrays) {
            Ok(nodes) => self.take_in("stack", &nodes, self.runtime().stack(&nodes, axis)),
            Err(poison) => self.poison_with(poison),
        }
    }
}

/// The error of a call that is told at once.
pub(crate) fn failed(what: &str, failure: raw::Failure) -> infer_core::Error {
    error(failure.kind, format!("could not {what}: {}", failure.message)).with_code(failure.code)
}
