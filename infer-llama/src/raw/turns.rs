//! Who may be inside a model.
//!
//! llama.cpp writes its adapters down in the model, and passes read what is written there. So passes share a model, and who loads or
//! frees an adapter has it alone.

use super::Model;
use infer_core::{Error, Result};
use infer_sys::llama::bindings::llama_adapter_lora;
use std::{
    cell::RefCell,
    mem,
    ptr::{self, NonNull},
    sync::{
        Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, Ordering},
    },
};

/// What a model has for it.
#[derive(Default)]
pub(super) struct Turns {
    lock: RwLock<()>,
    /// Adapters that nobody has any more and that could not be freed yet, since passes ran.
    dropped: Mutex<Vec<Dropped>>,
    any_dropped: AtomicBool,
}

struct Dropped(NonNull<llama_adapter_lora>);

// SAFETY: whoever takes it out of the list owns the adapter, which belongs to no thread.
unsafe impl Send for Dropped {}

thread_local! {
    /// The models this thread is inside, by address: a lock would wait for its own thread. A `tracing` subscriber gets here, when
    /// it uses a model that is logging.
    static INSIDE: RefCell<Vec<(usize, Kind)>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Shared,
    Alone,
}

/// Inside a model with others. What was dropped meanwhile is freed afterwards.
pub(super) struct Shared<'m> {
    model: &'m Model,
    /// `None` where the thread was inside already.
    lock: Option<RwLockReadGuard<'m, ()>>,
}

/// Inside a model alone.
pub(super) struct Alone<'m> {
    model: &'m Model,
    /// Taken out when it ends.
    lock: Option<RwLockWriteGuard<'m, ()>>,
}

impl Model {
    /// Whether [`shared`](Self::shared) would have this thread wait for itself.
    pub(super) fn may_share(&self) -> Result<()> {
        if self.inside() != Some(Kind::Alone) {
            return Ok(());
        }
        Err(Error::invalid_input(
            "a model cannot be used by whoever is told what is logged while an adapter of it is loaded",
        ))
    }

    /// Waits until no adapter is being loaded.
    pub(super) fn shared(&self) -> Result<Shared<'_>> {
        self.may_share()?;
        if self.inside().is_some() {
            return Ok(Shared { model: self, lock: None });
        }
        // A panic in there leaves nothing half done: the lock protects calls, not data.
        let lock = self.turns.lock.read().unwrap_or_else(PoisonError::into_inner);
        self.enter(Kind::Shared);
        Ok(Shared { model: self, lock: Some(lock) })
    }

    /// Waits until nobody is inside.
    pub(super) fn alone(&self) -> Result<Alone<'_>> {
        if self.inside().is_some() {
            return Err(Error::invalid_input(
                "an adapter cannot be loaded by whoever is told what is logged while its model is used",
            ));
        }
        let lock = self.turns.lock.write().unwrap_or_else(PoisonError::into_inner);
        self.enter(Kind::Alone);
        Ok(Alone { model: self, lock: Some(lock) })
    }

    /// Frees an adapter of this model that nobody has any more; where passes run, when they are done: a drop waits for nobody.
    pub(super) fn free_adapter(&self, adapter: NonNull<llama_adapter_lora>) {
        self.turns.dropped.lock().unwrap_or_else(PoisonError::into_inner).push(Dropped(adapter));
        self.turns.any_dropped.store(true, Ordering::SeqCst);
        self.free_dropped();
    }

    /// Frees what was dropped, if nobody is inside. Whoever leaves tries it again.
    pub(super) fn free_dropped(&self) {
        while self.turns.any_dropped.load(Ordering::SeqCst) {
            let _alone = match self.turns.lock.try_write() {
                Ok(lock) => lock,
                Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(std::sync::TryLockError::WouldBlock) => return,
            };
            self.turns.any_dropped.store(false, Ordering::SeqCst);
            let dropped = mem::take(&mut *self.turns.dropped.lock().unwrap_or_else(PoisonError::into_inner));
            for Dropped(adapter) in dropped {
                // SAFETY: the adapter came from a load, its owner was dropped, and it was taken out of the list once; the model lives and
                // is held alone. No context has it set, since those that may keep its owner.
                unsafe { self.door.api.adapter_free(adapter.as_ptr()) };
            }
        }
    }

    fn inside(&self) -> Option<Kind> {
        let here = ptr::from_ref(self).addr();
        INSIDE.with_borrow(|all| all.iter().find(|(model, _)| *model == here).map(|(_, kind)| *kind))
    }

    fn enter(&self, kind: Kind) {
        INSIDE.with_borrow_mut(|all| all.push((ptr::from_ref(self).addr(), kind)));
    }

    fn leave(&self) {
        let here = ptr::from_ref(self).addr();
        INSIDE.with_borrow_mut(|all| all.retain(|(model, _)| *model != here));
    }
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        if let Some(lock) = self.lock.take() {
            self.model.leave();
            drop(lock);
            self.model.free_dropped();
        }
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.model.leave();
        drop(self.lock.take());
        self.model.free_dropped();
    }
}
