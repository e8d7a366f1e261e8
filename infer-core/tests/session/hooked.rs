//! A session with hooks is the one inside, but where they say otherwise.

use super::*;
use infer_core::testing::{Hooked, Hooks};

/// Says nothing otherwise.
struct Idle;

impl Hooks for Idle {}

/// Refuses the second pass, and every other call after it.
#[derive(Default)]
struct Tired {
    passes: usize,
}

impl Hooks for Tired {
    fn before(&mut self) -> Result<()> {
        if self.passes < 2 { Ok(()) } else { Err(ErrorKind::SessionLost.into()) }
    }

    fn decode(&mut self, inner: &mut dyn Session, batch: &Batch) -> Result<()> {
        self.passes += 1;
        self.before()?;
        inner.decode(batch)
    }
}

#[test]
fn hooks_that_say_nothing_change_nothing() {
    let bare = session(Script::new(), 3);
    let (limits, capabilities) = (bare.limits().clone(), bare.capabilities().clone());
    let mut hooked = Hooked::new(Box::new(bare), Idle);
    assert_eq!((hooked.limits(), hooked.capabilities()), (&limits, &capabilities));
    let seq = open(&mut hooked);
    hooked.sample_with(&seq, &Sampling::greedy(), &tokens("a text")).unwrap();
    assert_eq!(logits(&mut hooked, &seq, &tokens("a text")), recomputed(&tokens("a text")));
    let fork = hooked.fork(&seq, 3).unwrap();
    assert_eq!(logits(&mut hooked, &fork, &tokens("xt")), recomputed(&tokens("a txt")));
    hooked.truncate(&seq, 1).unwrap();
    let mut state = Vec::new();
    hooked.save(&seq, &mut state).unwrap();
    let restored = hooked.restore(&mut &state[..]).unwrap();
    assert_eq!((restored.len(), hooked.usage().sequences), (1, 3));
    hooked.shift(&fork, 0..2).unwrap();
    assert_eq!(fork.len(), 3);
}

#[test]
fn what_hooks_refuse_does_not_reach_the_session() {
    let mut hooked = Hooked::new(Box::new(session(Script::new(), 2)), Tired::default());
    let seq = open(&mut hooked);
    feed(&mut hooked, &seq, &tokens("ab"), Want::Nothing).unwrap();
    let others = [
        kind(feed(&mut hooked, &seq, &tokens("c"), Want::Nothing)),
        kind(hooked.open(&OpenOptions::default())),
        kind(hooked.fork(&seq, 1)),
        kind(hooked.truncate(&seq, 1)),
        kind(hooked.shift(&seq, 0..1)),
        kind(hooked.sample_with(&seq, &Sampling::greedy(), &[])),
        kind(hooked.save(&seq, &mut Vec::new())),
        kind(hooked.restore(&mut &b""[..])),
    ];
    assert_eq!(others, [ErrorKind::SessionLost; 8]);
    assert_eq!((seq.len(), hooked.usage().sequences), (2, 1));
}
