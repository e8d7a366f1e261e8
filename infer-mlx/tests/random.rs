//! Operations at random on nested scopes, compared with a model in plain Rust: every value, and how many handles there are.

mod kit;

use infer_mlx::{Array, Mlx, Owned, Scope};
use kit::mlx;
use proptest::prelude::*;

/// How long the arrays are.
const LEN: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Make(u8),
    Add(usize, usize),
    Scale(usize, u8),
    AddOwned(usize, usize),
    /// Two that do not fit.
    Wrong(usize),
    Enter(usize),
    EnterOwned(usize),
    Own(usize),
    Disown(usize),
    Eval(usize),
    Read(usize),
    /// What follows happens in a scope inside this one, up to its end, from which one array may be kept.
    Nest(Vec<Step>, Option<usize>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => any::<u8>().prop_map(Step::Make),
        4 => any::<(usize, usize)>().prop_map(|(a, b)| Step::Add(a, b)),
        2 => any::<(usize, u8)>().prop_map(|(a, by)| Step::Scale(a, by)),
        2 => any::<(usize, usize)>().prop_map(|(a, b)| Step::AddOwned(a, b)),
        1 => any::<usize>().prop_map(Step::Wrong),
        1 => any::<usize>().prop_map(Step::Enter),
        1 => any::<usize>().prop_map(Step::EnterOwned),
        2 => any::<usize>().prop_map(Step::Own),
        1 => any::<usize>().prop_map(Step::Disown),
        2 => any::<usize>().prop_map(Step::Eval),
        3 => any::<usize>().prop_map(Step::Read),
    ];
    let steps = proptest::collection::vec(step, 0..12);
    steps.prop_recursive(4, 64, 6, |inner| {
        let nest = (inner.clone(), any::<Option<usize>>()).prop_map(|(steps, kept)| Step::Nest(steps, kept));
        (inner.clone(), proptest::collection::vec(nest, 0..3), inner).prop_map(|(mut before, nests, after)| {
            before.extend(nests);
            before.extend(after);
            before
        })
    })
}

/// What an array is in the model: its elements, or an error.
type Value = Option<[u32; LEN]>;

/// What outlives scopes, and what is counted.
struct World<'m> {
    mlx: &'m Mlx,
    owned: Vec<(Owned, Value)>,
    /// Handles in all scopes that are open.
    handles: usize,
}

impl World<'_> {
    /// A handle was made, if there is a value.
    fn made(&mut self, value: Value) {
        self.handles += usize::from(value.is_some());
    }

    fn owned(&self, which: usize) -> Option<&(Owned, Value)> {
        if self.owned.is_empty() { None } else { self.owned.get(which % self.owned.len()) }
    }

    #[track_caller]
    fn check(&self) {
        let owned = self.owned.iter().filter(|(_, value)| value.is_some()).count();
        assert_eq!((self.mlx.live().arrays, self.mlx.live().owned), (self.handles, owned));
    }
}

/// An array with what it is in the model.
type Pair<'s> = (Array<'s>, Value);

fn pick<'s>(all: &[Pair<'s>], which: usize) -> Option<Pair<'s>> {
    if all.is_empty() { None } else { Some(all[which % all.len()]) }
}

fn sum(x: Value, y: Value) -> Value {
    let (x, y) = (x?, y?);
    Some([0, 1, 2].map(|i| x[i].wrapping_add(y[i])))
}

/// Runs the steps in a scope, which sees what is around it, and says which of its arrays is to be kept.
fn run<'s>(
    scope: &'s Scope<'_>,
    around: &[Pair<'s>],
    steps: &[Step],
    kept: Option<usize>,
    world: &mut World<'_>,
) -> Option<Pair<'s>> {
    let mut all = around.to_vec();
    for step in steps {
        let new = one(scope, &all, step, world);
        all.extend(new);
        world.check();
    }
    pick(&all[around.len()..], kept?)
}

/// One step, and the array that it makes, if it does.
fn one<'s>(scope: &'s Scope<'_>, all: &[Pair<'s>], step: &Step, world: &mut World<'_>) -> Option<Pair<'s>> {
    let enter = |world: &mut World<'_>, (array, value): Pair<'s>| {
        world.made(value);
        scope.enter(array)
    };
    let new = match *step {
        Step::Make(first) => {
            let value = [0, 1, 2].map(|i| u32::from(first) + i);
            (scope.array(&value, &[LEN]), Some(value))
        }
        Step::Add(a, b) => {
            let (a, b) = (pick(all, a)?, pick(all, b)?);
            (enter(world, a) + b.0, sum(a.1, b.1))
        }
        Step::Scale(a, by) => {
            let a = pick(all, a)?;
            (enter(world, a) * f32::from(by), a.1.map(|x| x.map(|x| x.wrapping_mul(by.into()))))
        }
        Step::AddOwned(a, b) => {
            let a = pick(all, a)?;
            let entered = enter(world, a);
            let (owned, value) = world.owned(b)?;
            (entered + owned, sum(a.1, *value))
        }
        Step::Wrong(a) => {
            let a = pick(all, a)?;
            (enter(world, a).reshape(&[7]), None)
        }
        Step::Enter(a) => {
            let (array, value) = pick(all, a)?;
            (scope.enter(array), value)
        }
        Step::EnterOwned(a) => {
            let (owned, value) = world.owned(a)?;
            (scope.enter(owned), *value)
        }
        Step::Own(a) => {
            let (array, value) = pick(all, a)?;
            world.owned.push((array.own(), value));
            return None;
        }
        Step::Disown(a) => {
            world.owned(a)?;
            let place = a % world.owned.len();
            world.owned.swap_remove(place);
            return None;
        }
        Step::Eval(a) => {
            let (array, value) = pick(all, a)?;
            assert_eq!(scope.eval([array]).is_ok(), value.is_some());
            return None;
        }
        Step::Read(a) => {
            let (array, value) = pick(all, a)?;
            let read = scope.eval([array]).and_then(|()| array.data::<u32>());
            assert_eq!(read.ok(), value.as_ref().map(|value| &value[..]));
            return None;
        }
        Step::Nest(ref steps, kept) => {
            let handles = world.handles;
            let inner = scope.nest();
            let kept = run(&inner, all, steps, kept, world).map(|(array, value)| (inner.keep(array), value));
            drop(inner);
            world.handles = handles;
            kept?
        }
    };
    world.made(new.1);
    Some(new)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scopes_are_what_their_model_is(steps in steps()) {
        let mlx = mlx();
        let scope = mlx.scope();
        let mut world = World { mlx: &mlx, owned: Vec::new(), handles: 0 };
        run(&scope, &[], &steps, None, &mut world);
        drop(scope);
        world.handles = 0;
        world.check();
        for (owned, value) in &world.owned {
            prop_assert_eq!(owned.detach().is_ok(), value.is_some());
            prop_assert_eq!(owned.data::<u32>().ok(), value.as_ref().map(|value| &value[..]));
        }
        world.owned.clear();
        world.check();
    }
}
