//! Scopes: what lives how long, what is freed when, and what is told of errors.

mod kit;

use kit::mlx;

#[test]
fn what_is_made_in_a_scope_goes_with_it_in_one_crossing() {
    let mlx = mlx();
    let before = mlx.live();
    {
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
    }
    assert_eq!(mlx.live(), before);
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
        let kept = inner.keep(c);
        assert_eq!(mlx.live().arrays, live + 1);
        drop(inner);
        assert_eq!(mlx.live().arrays, live + 1 - 5, "b, c, d, e and a's second handle are gone");
        kept
    };
    assert_eq!(kept.data::<f32>().unwrap(), [11.0, 22.0]);
    let (first, second) = (outer.nest(), outer.nest());
    let sum = first.enter(a) + second.enter(a);
    outer.eval([sum]).unwrap();
    assert_eq!(sum.data::<f32>().unwrap(), [2.0, 4.0]);
}
