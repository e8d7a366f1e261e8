//! Scopes: what was made in one is freed with it.

use crate::{Array, DType, Element, Mlx, Operand, array::failed, operand::Inner, poison::Poison, raw};
use infer_core::Result;
use std::{cell::RefCell, fmt, marker::PhantomData, panic::Location, rc::Rc};

/// Where arrays live: what is made in a scope is freed with it, all at once.
pub struct Scope<'p> {
    arena: raw::Arena,
    /// What went wrong in it.
    poisons: RefCell<Vec<Rc<Poison>>>,
    parent: Option<&'p Scope<'p>>,
    depth: u32,
    mlx: PhantomData<&'p Mlx>,
}

impl<'p> Scope<'p> {
    pub(crate) fn outermost(runtime: &Rc<raw::Runtime>) -> Self {
        Self::inside(runtime, None)
    }

    fn inside(runtime: &Rc<raw::Runtime>, parent: Option<&'p Scope<'p>>) -> Self {
        let depth = parent.map_or(0, |parent| parent.depth + 1);
        Self { arena: raw::Arena::new(runtime), poisons: RefCell::default(), parent, depth, mlx: PhantomData }
    }

    /// A scope inside this one.
    #[must_use]
    pub fn nest(&self) -> Scope<'_> {
        Scope::inside(self.arena.runtime(), Some(self))
    }

    /// Brings an array or a weight in here, so that what is made of it is freed with this scope.
    #[track_caller]
    #[must_use]
    pub fn enter<'s>(&'s self, a: impl Operand<'s>) -> Array<'s> {
        match a.value().0 {
            Inner::Live(node) => self.take_in("enter", &[node], self.runtime().share(node)),
            Inner::Number(number) => self.scalar(number, DType::F32),
            Inner::Poisoned(poison) => self.poison_with(poison),
        }
    }

    /// Hands an array to the scope around this one: the same value, alive as long as that one.
    ///
    /// Of an array that is not evaluated yet it is the whole graph that is kept, with all that goes into it: evaluate first.
    ///
    /// # Panics
    /// This is an outermost scope, and nothing is around it: [`Array::own`] is for what outlives all scopes.
    #[track_caller]
    #[must_use]
    pub fn keep(&self, a: Array<'_>) -> Array<'p> {
        let Some(outer) = self.parent else { panic!("nothing is around an outermost scope: `own` keeps the array") };
        match a.inner() {
            Inner::Live(node) => outer.take_in("keep", &[node], outer.runtime().share(node)),
            Inner::Poisoned(poison) => outer.poison_with(poison),
            Inner::Number(_) => unreachable!("an array is no number"),
        }
    }

    /// Computes the arrays, and what they are made of. The only place where anything is computed, besides [`async_eval`](Self::async_eval).
    ///
    /// # Errors
    /// One of them is an error: the first such is returned, and nothing is computed. Or the computation failed.
    pub fn eval<'a>(&self, arrays: impl IntoIterator<Item = Array<'a>>) -> Result<()> {
        evaluate(self.runtime(), arrays.into_iter().map(|array| array.inner()), true)
    }

    /// Starts computing the arrays, and returns. Who reads their data waits for it.
    ///
    /// # Errors
    /// As [`eval`](Self::eval); what goes wrong later is told to who reads.
    pub fn async_eval<'a>(&self, arrays: impl IntoIterator<Item = Array<'a>>) -> Result<()> {
        evaluate(self.runtime(), arrays.into_iter().map(|array| array.inner()), false)
    }

    /// An array of these elements, copied, row by row.
    #[track_caller]
    #[must_use]
    pub fn array<T: Element>(&self, data: &[T], shape: &[usize]) -> Array<'_> {
        let elements = shape.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
        if elements != Some(data.len()) {
            let why = format!("shape {shape:?} is not that of {} elements", data.len());
            return self.refuse("array", &[], &why, Location::caller());
        }
        match sizes(shape) {
            Ok(shape) => self.take_in("array", &[], self.runtime().array(data, &shape)),
            Err(why) => self.refuse("array", &[], &why, Location::caller()),
        }
    }

    /// An array whose elements are all `value`.
    #[track_caller]
    #[must_use]
    pub fn full(&self, value: f32, shape: &[usize], dtype: DType) -> Array<'_> {
        match sizes(shape) {
            Ok(shape) => self.take_in("full", &[], self.runtime().full(&shape, value.into(), dtype)),
            Err(why) => self.refuse("full", &[], &why, Location::caller()),
        }
    }

    /// An array of zeros.
    #[track_caller]
    #[must_use]
    pub fn zeros(&self, shape: &[usize], dtype: DType) -> Array<'_> {
        self.full(0.0, shape, dtype)
    }

    /// An array of ones.
    #[track_caller]
    #[must_use]
    pub fn ones(&self, shape: &[usize], dtype: DType) -> Array<'_> {
        self.full(1.0, shape, dtype)
    }

    /// An array of no dimensions.
    #[track_caller]
    #[must_use]
    pub fn scalar(&self, value: f32, dtype: DType) -> Array<'_> {
        self.full(value, &[], dtype)
    }

    /// The whole numbers from `start` on and below `stop`.
    #[track_caller]
    #[must_use]
    pub fn arange(&self, start: i32, stop: i32, dtype: DType) -> Array<'_> {
        self.take_in("arange", &[], self.runtime().arange(start.into(), stop.into(), dtype))
    }

    pub(crate) fn runtime(&self) -> &Rc<raw::Runtime> {
        self.arena.runtime()
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// A new array, which is this scope's from now on.
    pub(crate) fn put(&self, fresh: raw::Fresh) -> Array<'_> {
        Array::live(self.arena.put(fresh), self)
    }

    /// What an operation gave, as an array of this scope.
    #[track_caller]
    pub(crate) fn take_in(&self, op: &'static str, operands: &[raw::Node<'_>], made: raw::Made) -> Array<'_> {
        match made {
            Ok(fresh) => self.put(fresh),
            Err(failure) => {
                let poison = Poison::refused(self.runtime(), op, operands, failure, Location::caller());
                self.poison_with(Rc::new(poison))
            }
        }
    }

    /// An operation that is refused here.
    #[cold]
    pub(crate) fn refuse(
        &self,
        op: &'static str,
        operands: &[raw::Node<'_>],
        why: &str,
        place: &Location<'_>,
    ) -> Array<'_> {
        self.poison_with(Rc::new(Poison::invalid(self.runtime(), op, operands, why, place)))
    }

    /// An array that is this error.
    #[cold]
    pub(crate) fn poison_with(&self, poison: Rc<Poison>) -> Array<'_> {
        let mut poisons = self.poisons.borrow_mut();
        // The same one follows itself through a graph.
        if poisons.last().is_none_or(|last| !Rc::ptr_eq(last, &poison)) {
            poisons.push(poison);
        }
        let number = u32::try_from(poisons.len() - 1).unwrap_or(u32::MAX);
        drop(poisons);
        Array::poisoned(number, self)
    }

    pub(crate) fn poison(&self, number: u32) -> Rc<Poison> {
        Rc::clone(&self.poisons.borrow()[number as usize])
    }
}

/// Computes arrays, or begins to, unless one is an error.
pub(crate) fn evaluate<'a>(runtime: &raw::Runtime, arrays: impl Iterator<Item = Inner<'a>>, wait: bool) -> Result<()> {
    let mut nodes = Vec::with_capacity(arrays.size_hint().0);
    for array in arrays {
        match array {
            Inner::Live(node) => nodes.push(node),
            Inner::Poisoned(poison) => return Err(poison.error()),
            Inner::Number(_) => {}
        }
    }
    runtime.eval(&nodes, wait).map_err(|failure| failed("evaluate", failure))
}

/// Sizes as MLX counts them.
pub(crate) fn sizes(shape: &[usize]) -> Result<Vec<i32>, String> {
    let size =
        |&size: &usize| i32::try_from(size).map_err(|_| format!("a dimension of {size} is more than 2147483647"));
    shape.iter().map(size).collect()
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("depth", &self.depth).finish_non_exhaustive()
    }
}
