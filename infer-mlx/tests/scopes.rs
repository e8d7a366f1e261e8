//! Scopes: what lives how long, and what is freed when.

mod kit;

use infer_core::ErrorKind;
use infer_mlx::{Array, DType, Owned};
use kit::{mlx, numbers, values};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn what_is_made_in_a_scope_goes_with_it_in_one_crossing() {
    let mlx = mlx();
    let before = mlx.live();
    let scope = mlx.scope();
    let mut x = scope.array(&[1.0f32, 2.0], &[2]);
    for _ in 0..50 {
        x = x + 1.0;
    }
    assert_eq!(mlx.live().arrays, before.arrays + 51);
    scope.eval([x]).unwrap();
    assert_eq!(x.data::<f32>().unwrap(), [51.0, 52.0]);
    let crossings = mlx.crossings();
    drop(scope);
    assert_eq!(mlx.crossings(), crossings + 1);
    assert_eq!(mlx.live(), before);
    drop(mlx.scope());
    assert_eq!(mlx.crossings(), crossings + 1, "an empty one has nothing to free");
}

#[test]
fn nesting_keeping_and_mixing() {
    let mlx = mlx();
    let outer = mlx.scope();
    let a = outer.array(&[1.0f32, 2.0], &[1, 2]);
    let kept = {
        let inner = outer.nest();
        let b = inner.array(&[10.0f32, 20.0], &[1, 2]);
        let c = a + b;
        let d = b + a;
        let e = inner.enter(a) + a;
        let live = mlx.live().arrays;
        inner.eval([c, d, e]).unwrap();
        assert_eq!(c.data::<f32>().unwrap(), d.data::<f32>().unwrap());
        assert_eq!(e.data::<f32>().unwrap(), [2.0, 4.0]);
        let kept = inner.keep(c);
        assert_eq!(mlx.live().arrays, live + 1, "a handle, not a copy");
        drop(inner);
        assert_eq!(mlx.live().arrays, 2, "what lived in the inner one is gone: sums with one of its arrays too");
        kept
    };
    assert_eq!(kept.data::<f32>().unwrap(), [11.0, 22.0]);
    let (first, second) = (outer.nest(), outer.nest());
    let sum = first.enter(a) + second.enter(a);
    outer.eval([sum]).unwrap();
    assert_eq!(sum.data::<f32>().unwrap(), [2.0, 4.0]);
    let number = first.enter(2.5);
    assert_eq!((number.dtype(), values(number)), (DType::F32, vec![2.5]));
}

#[test]
fn keeping_in_an_outermost_scope_panics_and_says_what_to_do() {
    let mlx = mlx();
    let scope = mlx.scope();
    let a = scope.scalar(1.0, DType::F32);
    let panic = catch_unwind(AssertUnwindSafe(|| scope.keep(a))).unwrap_err();
    assert!(panic.downcast_ref::<&str>().unwrap().contains("`own` keeps the array"));
    assert_eq!(values(a), [1.0]);
}

/// The idiom for bounded peak memory: a part's temporaries go when it is left, its result moves out.
fn part<'s>(x: Array<'s>, w: &Owned) -> infer_core::Result<Array<'s>> {
    let inner = x.scope().nest();
    let mut h = inner.enter(x);
    for _ in 0..5 {
        h = (h.matmul(w) + h).silu();
    }
    inner.eval([h])?;
    Ok(inner.keep(h))
}

#[test]
fn a_function_with_a_scope_of_its_own() {
    let mlx = mlx();
    let s = mlx.scope();
    let w = s.array(&numbers(4, 1), &[2, 2]).own();
    let x = s.array(&[1.0f32, 2.0], &[1, 2]);
    let live = mlx.live().arrays;
    let mut best = part(x, &w).unwrap();
    assert_eq!(mlx.live().arrays, live + 1);
    for _ in 0..3 {
        best = part(best, &w).unwrap();
    }
    assert!(best.data::<f32>().is_ok());
    let wrong = s.array(&[0.0f32; 9], &[3, 3]).own();
    assert!(part(x, &wrong).unwrap_err().to_string().contains("tests/scopes.rs"));
}

#[test]
fn a_panic_frees_the_scopes_it_goes_through() {
    let mlx = mlx();
    let outer = mlx.scope();
    let a = outer.array(&[1.0f32; 8], &[8]);
    let live = mlx.live();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let inner = outer.nest();
        let b = inner.enter(a).exp();
        let innermost = inner.nest();
        let owned = (innermost.enter(b) * 2.0).own();
        innermost.eval(std::iter::once_with(|| -> Array<'_> { panic!("in the list, with {owned:?}") }))
    }));
    assert!(panicked.is_err());
    assert_eq!(mlx.live(), live);
    assert_eq!(values(a), [1.0; 8]);
}

#[test]
fn a_forgotten_scope_leaks_and_nothing_else() {
    let mlx = mlx();
    let live = mlx.live().arrays;
    let scope = mlx.scope();
    let _ = scope.scalar(1.0, DType::F32);
    std::mem::forget(scope);
    assert_eq!(mlx.live().arrays, live + 1);
    let leaked = Box::leak(Box::new(mlx.scope()));
    let a = leaked.scalar(2.0, DType::F32);
    assert_eq!(values(a), [2.0]);
}

#[test]
fn an_owner_outlives_everything_else_of_its_thread() {
    let owned = {
        let mlx = mlx();
        let scope = mlx.scope();
        let sum = scope.array(&[1.0f32, 2.0], &[2]) + 1.0;
        let owned = sum.own();
        let second = owned.clone();
        assert_eq!(mlx.live().owned, 1, "clones share one");
        drop(second);
        owned
    };
    let error = owned.data::<f32>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let place = format!("could not read the elements of float32[2] at {}:", file!());
    assert!(error.to_string().starts_with(&place), "{error}");
    assert!(error.to_string().contains("the array is not evaluated: call `Mlx::eval` first"), "{error}");
    owned.detach().unwrap();
    assert_eq!(owned.data::<f32>().unwrap(), [2.0, 3.0]);
    let mlx = mlx();
    assert_eq!(mlx.live().owned, 1, "what is loaded on a thread again is the same");
    let scope = mlx.scope();
    assert_eq!(values(scope.enter(&owned) * &owned), [4.0, 9.0]);
    drop(owned);
    assert_eq!(mlx.live().owned, 0);
}

#[test]
fn data_is_there_when_it_is_evaluated_and_not_before() {
    let mlx = mlx();
    let s = mlx.scope();
    let a = s.array(&numbers(6, 2), &[2, 3]);
    let sum = a + a;
    assert!(!sum.is_evaluated());
    let (unread, line) = (sum.data::<f32>().unwrap_err().to_string(), line!());
    let said = format!("could not read the elements of float32[2, 3] at {}:{line}:", file!());
    assert!(unread.starts_with(&said) && unread.contains("not evaluated: call `Scope::eval` first"), "{unread}");
    let unread = sum.item::<f32>().unwrap_err().to_string();
    assert!(unread.starts_with("could not read the element of") && unread.contains("`Scope::eval`"), "{unread}");
    s.eval([sum]).unwrap();
    assert!(sum.is_evaluated());
    let other = sum.data::<i32>().unwrap_err().to_string();
    assert!(other.contains("float32 elements, not int32") && !other.contains("eval`"), "{other}");
    assert_eq!(sum.item::<f32>().unwrap_err().kind(), ErrorKind::InvalidInput);
    let turned = a.t();
    s.eval([turned]).unwrap();
    assert!(turned.data::<f32>().unwrap_err().to_string().contains("contiguous"));
    let later = turned.contiguous() * 2.0;
    s.async_eval([later]).unwrap();
    assert_eq!(later.data::<f32>().unwrap().len(), 6, "it waits");
    s.eval([]).unwrap();
}

#[test]
fn an_index_outside_fails_the_evaluation_and_what_came_of_it_is_refused() {
    let mlx = mlx();
    let s = mlx.scope();
    let table = s.array(&numbers(8, 3), &[4, 2]);
    for (indices, outside) in [(vec![0i32, 4], "4"), (vec![-5, 0], "-5"), (vec![i32::MIN, 1], "-2147483648")] {
        let rows = table.take(s.array(&indices, &[2]), 0);
        let scaled = rows * 2.0;
        let error = s.eval([scaled]).unwrap_err();
        assert!(error.to_string().contains(&format!("index {outside} of an axis of length 4")), "{error}");
        for array in [rows, scaled] {
            assert!(array.data::<f32>().is_err() && s.eval([array]).is_err(), "{array:?}");
        }
        let along = table.take_along_axis(s.array(&indices, &[2, 1]).broadcast_to(&[2, 2]), 0);
        assert!(s.eval([along]).is_err());
    }
    assert_eq!(values(table.take(s.array(&[3i32, -4], &[2]), 0)).len(), 4, "and everything is usable");
    assert_eq!(table.data::<f32>().unwrap().len(), 8);
}

#[test]
fn more_memory_than_there_is_is_an_error() {
    let mlx = mlx();
    let s = mlx.scope();
    let huge = s.zeros(&[1 << 20, 1 << 20, 16], DType::F32);
    let error = huge.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    let row = s.zeros(&[1 << 20, 1], DType::F32);
    assert_eq!((row + row.t().repeat(64, 0)).check().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!((row + row.t()).check().unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert_eq!(values(s.ones(&[2], DType::F32)), [1.0; 2]);
}

#[test]
fn a_graph_keeps_its_weights_until_it_is_detached() {
    const BYTES: u64 = 4 << 20;
    // The memory is the process's, and other tests use it too: a child has it for itself.
    if std::env::var_os("INFER_TEST_ALONE").is_none() {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "a_graph_keeps_its_weights_until_it_is_detached"]).env("INFER_TEST_ALONE", "1");
        let output = test_kit::child::output(&mut command);
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let mlx = mlx();
    mlx.set_cache_limit(0).unwrap();
    let active = || mlx.memory().unwrap().active;
    let before = active();
    let (weight, product) = {
        let s = mlx.scope();
        let weight = s.zeros(&[1024, 1024], DType::F32).contiguous();
        s.eval([weight]).unwrap();
        let weight = weight.own();
        (weight.clone(), s.ones(&[1, 1024], DType::F32).matmul(&weight).own())
    };
    assert!(active() >= before + BYTES);
    drop(weight);
    assert!(active() >= before + BYTES, "the graph of the product has it");
    product.detach().unwrap();
    assert!(active() < before + BYTES / 4, "{} bytes more", active() - before);
    assert_eq!(product.data::<f32>().unwrap(), [0.0; 1024]);
    assert!(mlx.memory().unwrap().peak >= before + BYTES);
    mlx.reset_peak().unwrap();
    assert!(mlx.memory().unwrap().peak < before + BYTES / 4);
    let limit = mlx.memory().unwrap().limit;
    assert_eq!(mlx.set_memory_limit(limit / 2).unwrap(), limit);
    assert_eq!(mlx.set_memory_limit(limit).unwrap(), limit / 2);
    mlx.clear_cache().unwrap();
    assert_eq!(mlx.memory().unwrap().cache, 0);
}

#[test]
fn evaluations_and_crossings_are_counted() {
    let mlx = mlx();
    let s = mlx.scope();
    let (evals, crossings) = (mlx.evals(), mlx.crossings());
    let x = s.array(&[1.0f32], &[1]);
    let y = (x + 1.0) * 2.0;
    assert_eq!(mlx.crossings(), crossings + 3, "an operation is one");
    s.eval([y]).unwrap();
    assert_eq!((mlx.evals(), mlx.crossings()), (evals + 1, crossings + 4));
}

#[test]
fn every_thread_has_its_own() {
    let threads: Vec<_> = (0..8)
        .map(|number| {
            std::thread::spawn(move || {
                for round in 0..20 {
                    let mlx = mlx();
                    let s = mlx.scope();
                    let w = s.array(&numbers(64 * 64, number), &[64, 64]).own();
                    let mut x = s.ones(&[4, 64], DType::F32);
                    for _ in 0..4 {
                        x = part(x, &w).unwrap().rms_norm(None, 1e-5);
                    }
                    s.eval([x]).unwrap();
                    assert!(x.data::<f32>().unwrap().iter().all(|x| x.is_finite()), "thread {number}, round {round}");
                    drop((w, s));
                    assert_eq!((mlx.live().arrays, mlx.live().owned), (0, 0));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Destructors of thread-local values run when the library has, or has not, let go of the thread: either way nothing is harmed.
#[test]
fn owners_in_thread_local_values_end_with_their_thread() {
    use std::cell::RefCell;
    struct Late(RefCell<Vec<Owned>>);
    impl Drop for Late {
        fn drop(&mut self) {
            if let Ok(mlx) = infer_mlx::Mlx::load(&infer_mlx::LoadOptions::new()) {
                let s = mlx.scope();
                let sum = s.scalar(1.0, DType::F32) + 1.0;
                if s.eval([sum]).is_ok() {
                    assert_eq!(sum.item::<f32>().unwrap(), 2.0);
                }
            }
            self.0.borrow_mut().clear();
        }
    }
    thread_local!(static LATE: Late = const { Late(RefCell::new(Vec::new())) });
    for first in [true, false] {
        std::thread::spawn(move || {
            if first {
                LATE.with(|_| ());
            }
            let mlx = mlx();
            let s = mlx.scope();
            let sum = s.scalar(1.0, DType::F32) + 1.0;
            LATE.with(|late| late.0.borrow_mut().push(sum.own()));
            s.eval([sum]).unwrap();
        })
        .join()
        .unwrap();
    }
}
