//! What a model and its session take: asked before anything is loaded, and measured.

use crate::{
    Llama, Model, ModelOptions, Session, SessionOptions, raw,
    session::open::{Plan, check_context, check_model},
};
use infer_core::Result;
use std::{
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

/// Memory that a model and a session of it take, by where it lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Each kind of memory with something in it.
    pub buffers: Vec<BufferUse>,
}

/// Memory of one kind: the machine's, a device's, or the machine's in an order that suits a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferUse {
    /// What the library calls it, such as `CPU`, `CPU_REPACK` or `Vulkan0`.
    pub name: String,
    /// Whether the processor can read it.
    pub is_host: bool,
    /// Bytes of weights. Those of a mapped file are in it: pages that are given up when memory is wanted.
    pub model: u64,
    /// Bytes of keys and values, or of a recurrent state.
    pub context: u64,
    /// Bytes of intermediate results.
    pub compute: u64,
}

impl BufferUse {
    /// All of it, in bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.model.saturating_add(self.context).saturating_add(self.compute)
    }
}

impl MemoryUse {
    /// Bytes of weights.
    #[must_use]
    pub fn model(&self) -> u64 {
        self.sum(|buffer| buffer.model)
    }

    /// Bytes of keys and values, or of a recurrent state.
    #[must_use]
    pub fn context(&self) -> u64 {
        self.sum(|buffer| buffer.context)
    }

    /// Bytes of intermediate results.
    #[must_use]
    pub fn compute(&self) -> u64 {
        self.sum(|buffer| buffer.compute)
    }

    /// All of it, in bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.sum(BufferUse::total)
    }

    fn sum(&self, part: impl Fn(&BufferUse) -> u64) -> u64 {
        self.buffers.iter().fold(0, |sum, buffer| sum.saturating_add(part(buffer)))
    }

    fn of(context: &raw::Context) -> Result<Self> {
        let buffers = context.memory()?.into_iter().map(|buffer| BufferUse {
            name: buffer.name,
            is_host: buffer.is_host,
            model: buffer.model,
            context: buffer.context,
            compute: buffer.compute,
        });
        Ok(Self { buffers: buffers.filter(|buffer| buffer.total() > 0).collect() })
    }
}

/// What a model and a session of it would take, without loading a weight: the library plans all its buffers and fills none.
///
/// It takes as long as opening the vocabulary. Adapters are not counted, nor is the row of logits that each sequence has in the
/// machine's memory. What [`Session::memory`] measures afterwards differs by little: a mapped file is counted by pages from its
/// first weight to its last.
///
/// ```
/// # #[cfg(feature = "link")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = build_support::fixtures::model("smollm2")?;
/// use infer_llama::{Llama, ModelOptions, SessionOptions, estimate};
///
/// let session = SessionOptions::new().with_context(1024);
/// let needed = estimate(&Llama::linked()?, path, &ModelOptions::new(), &session)?;
/// // 30 layers of 3 key/value heads of 64 numbers, twice 2 bytes each.
/// assert_eq!(needed.context(), 1024 * 30 * 3 * 64 * 2 * 2);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "link"))]
/// # fn main() {}
/// ```
///
/// # Errors
/// Those of [`Model::open`] and [`Model::session`]; [`OutOfMemory`](infer_core::ErrorKind::OutOfMemory) only where there is none for
/// the library's list of so many cells.
pub fn estimate(
    llama: &Llama,
    path: impl AsRef<Path>,
    model: &ModelOptions,
    session: &SessionOptions,
) -> Result<MemoryUse> {
    let mut absent = model.clone();
    absent.absent = true;
    let model = Model::open_with(llama, path, &absent)?;
    check_model(&model)?;
    let mut plan = Plan::new(&model, session)?;
    // They compute nothing.
    plan.params.threads = 1;
    plan.check_lists(&model)?;
    let context = raw::Context::new(model.raw().clone(), plan.params, Vec::new(), Arc::new(AtomicBool::new(false)))?;
    check_context(&context)?;
    MemoryUse::of(&context)
}

impl Session {
    /// What the model and this session take at this moment. Adapters and logits in the machine's memory are not counted.
    ///
    /// # Errors
    /// [`Unsupported`](infer_core::ErrorKind::Unsupported) for a library of the system's own, which does not tell.
    pub fn memory(&self) -> Result<MemoryUse> {
        MemoryUse::of(self.context())
    }
}
