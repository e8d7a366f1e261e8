//! Values that are shared.

use super::Value;
use std::{ops::Deref, sync::Arc};

/// A value that has several owners here, and that none of them writes.
#[derive(Clone)]
pub(crate) struct Frozen(Arc<Value>);

// SAFETY: what owners on two threads could do at once takes the value by a shared reference: it reads what was asked of the runtime when the
// value was made, and the elements, which nobody writes, for that takes it exclusively. Runs take values as pointers to const and count
// references to them atomically. The last owner frees it, on any thread, as `Value` may be.
unsafe impl Send for Frozen {}

impl From<Value> for Frozen {
    fn from(value: Value) -> Self {
        Self(Arc::new(value))
    }
}

impl Deref for Frozen {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}
