//! What a vocabulary keeps of the constraints that were compiled for it.

use super::{
    Constraint,
    compile::{Compiled, Tokens},
};
use crate::{Result, Vocab};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Compiled constraints, the last used ones. No part of what the vocabulary *is*: two vocabularies are equal whatever is in
/// theirs, and a clone shares it.
#[derive(Clone, Default)]
pub(crate) struct Cache(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// The vocabulary in the form that constraints are compiled for; made for the first of them.
    tokens: Mutex<Option<Arc<Tokens>>>,
    /// The last used one comes last.
    places: Mutex<Vec<(Constraint, Arc<Place>)>>,
}

/// Where one constraint is, or is being compiled: who asks for it meanwhile waits here, and nobody else.
type Place = Mutex<Option<Arc<Compiled>>>;

impl Cache {
    /// A compiled constraint can take megabytes; requests of one service have few different ones at a time.
    const MOST: usize = 64;

    /// The constraint, compiled now unless it was.
    pub(crate) fn get(&self, constraint: &Constraint, vocab: &Vocab) -> Result<Arc<Compiled>> {
        let key = constraint.clone().grammar_only();
        let place = self.place(&key);
        let mut compiled = lock(&place);
        if let Some(compiled) = &*compiled {
            return Ok(compiled.clone());
        }
        let outcome = self.tokens(vocab).and_then(|tokens| Compiled::new(&key, tokens)).map(Arc::new);
        match outcome {
            Ok(new) => {
                *compiled = Some(new.clone());
                Ok(new)
            }
            Err(error) => {
                // One that cannot be compiled is not to push out others.
                lock(&self.0.places).retain(|(other, _)| *other != key);
                Err(error)
            }
        }
    }

    fn place(&self, key: &Constraint) -> Arc<Place> {
        let mut places = lock(&self.0.places);
        let found = places.iter().position(|(other, _)| other == key);
        let entry = match found {
            Some(at) => places.remove(at),
            None => (key.clone(), Arc::default()),
        };
        let place = entry.1.clone();
        places.push(entry);
        if places.len() > Self::MOST {
            places.remove(0);
        }
        place
    }

    fn tokens(&self, vocab: &Vocab) -> Result<Arc<Tokens>> {
        let mut tokens = lock(&self.0.tokens);
        if tokens.is_none() {
            *tokens = Some(Arc::new(Tokens::new(vocab)?));
        }
        Ok(tokens.clone().expect("it was just made"))
    }
}

/// What is kept here is whole also after a panic: each place is written once, at the end.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PartialEq for Cache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compiled = lock(&self.0.places).len();
        write!(f, "{compiled} constraints compiled")
    }
}
