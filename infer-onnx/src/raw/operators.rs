//! Operators of our own, which graphs are rewritten to have: each does what several of the runtime's do, and reads and writes memory once.
//!
//! They are of a domain that only sessions of such graphs know. Memory of their outputs is never that of an input, and the runtime is not told their
//! shapes beforehand: with either it plans memory so that the operators between are a good part slower.

mod kinds;
#[cfg(test)]
mod tests;

use super::{Session, cpu::Cpu, started};
use crate::error::{error, from_ort};
use infer_core::{ErrorKind, Result};
use kinds::{AddNormalization, BiasGelu, BiasHeads, MaskedSoftmax};
use ort::{
    logging::LogLevel,
    operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorDomain, OperatorInput, OperatorOutput},
    session::builder::SessionBuilder,
    value::{TensorElementType, ValueRef},
};
use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

/// What the domain of the operators is called.
pub(crate) const DOMAIN: &str = "infer";

/// Its version.
pub(crate) const VERSION: i64 = 1;

/// Whether the operators are quicker here than the runtime's own that they stand for.
pub(crate) fn are_worth_it() -> bool {
    // Kernels that were compiled for looking at them are slower than any.
    !cfg!(debug_assertions) && can_run()
}

/// Whether the processor has what makes them quick. Right they are everywhere.
pub(crate) fn can_run() -> bool {
    Cpu::best() != Cpu::PLAIN
}

/// Sessions that are made with these options know the operators.
pub(crate) fn add_to(builder: SessionBuilder) -> Result<SessionBuilder> {
    added(builder, domain()?)
}

fn added(builder: SessionBuilder, domain: Arc<OperatorDomain>) -> Result<SessionBuilder> {
    builder.with_operators(domain).map_err(|error| from_ort("add the domain of the operators", &error))
}

/// The domain: one a process, for ever, since sessions keep pointers into it, and not what it is kept alive by.
fn domain() -> Result<Arc<OperatorDomain>> {
    struct Domain(Arc<OperatorDomain>);
    // SAFETY: what is in there is made before it is shared and only read afterwards: the descriptions of the operators and, by the library, the list of
    // them. The operators are `Send` and `Sync`, as `Operator` wants. The static, which is never dropped, is the last owner.
    unsafe impl Send for Domain {}
    // SAFETY: as above.
    unsafe impl Sync for Domain {}
    static ONE: OnceLock<Domain> = OnceLock::new();
    static FIRST: Mutex<()> = Mutex::new(());
    if ONE.get().is_none() {
        let _first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
        if ONE.get().is_none() {
            let made = made().map_err(|error| from_ort("make the domain of the operators", &error))?;
            introduce(&made)?;
            ONE.get_or_init(|| Domain(made));
        }
    }
    let one = ONE.get().ok_or_else(|| error(ErrorKind::Runtime, "the domain of the operators is not there"))?;
    Ok(Arc::clone(&one.0))
}

#[allow(clippy::arc_with_non_send_sync, reason = "`Domain` says why it may be shared")]
fn made() -> ort::Result<Arc<OperatorDomain>> {
    let domain = OperatorDomain::new(DOMAIN)?
        .add(Registered::<BiasGelu>::new())?
        .add(Registered::<AddNormalization>::new())?
        .add(Registered::<MaskedSoftmax>::new())?
        .add(Registered::<BiasHeads>::new())?;
    Ok(Arc::new(domain))
}

/// Has the runtime note the name of the domain. It does so with the first session that has it, and not on two threads at once: it looks whether the name
/// is there, and fails to add it where it then is. So this is a session, of a graph of one `Identity`. It logs nothing: whoever waits for it waits for
/// nobody else.
fn introduce(domain: &Arc<OperatorDomain>) -> Result<()> {
    const MODEL: &[u8] =
        b"\x08\x08\x3a\x2b\x0a\x10\x0a\x01x\x12\x01y\x22\x08Identity\x12\x01g\x5a\x09\x0a\x01x\x12\x04\x0a\x02\x08\x01\
        \x62\x09\x0a\x01y\x12\x04\x0a\x02\x08\x01\x42\x04\x0a\x00\x10\x11";
    let started = started().ok_or_else(|| error(ErrorKind::Library, "ONNX Runtime is not loaded in this process"))?;
    let environment = started.environment();
    let builder = SessionBuilder::new(environment)
        .and_then(|builder| Ok(builder.with_log_level(LogLevel::Fatal)?.with_intra_threads(1)?))
        .map_err(|error| from_ort("make session options", &error))?;
    Session::from_bytes(environment, added(builder, Arc::clone(domain))?, None, MODEL).map(drop)
}

/// One of the operators, with what a node says about it. Tensors are of `f32`.
trait Kind: Send + Sync + Sized + 'static {
    const NAME: &'static str;
    const INPUTS: usize;

    /// Of a node with these attributes.
    fn of(node: &KernelContext<'_>) -> ort::Result<Self>;

    /// Reads the inputs, of which there are as many as was said, and gives the output.
    fn compute(&self, cpu: Cpu, inputs: &[Tensor<'_>], output: Output<'_>) -> ort::Result<()>;
}

/// An input.
struct Tensor<'a> {
    shape: Vec<usize>,
    numbers: &'a [f32],
}

/// Where an output goes.
struct Output<'a> {
    context: &'a ComputeContext,
    inputs: &'a [Tensor<'a>],
}

/// So many numbers are work enough for a thread to be asked.
const BLOCK: usize = 16 * 1024;

impl Output<'_> {
    /// Makes the output, of this shape. It is written by rows of so many numbers, in parts: each is given which row it begins with. Parts may be
    /// written on several threads at once.
    fn write(self, shape: &[usize], row: usize, part: impl Fn(usize, &mut [f32]) + Send + Sync) -> ort::Result<()> {
        let value = self.context.output(0, shape)?;
        let mut value = value.ok_or_else(|| ort::Error::new("ONNX Runtime gave no output to write"))?;
        let (_, y) = value.try_extract_tensor_mut::<f32>()?;
        if y.is_empty() {
            return Ok(());
        }
        let (start, end) = (y.as_ptr().addr(), y.as_ptr_range().end.addr());
        let overlaps = |x: &[f32]| !x.is_empty() && x.as_ptr().addr() < end && start < x.as_ptr_range().end.addr();
        // The runtime does this for operators that say they can, and these do not; a caller could have bound both to one place.
        if self.inputs.iter().any(|input| overlaps(input.numbers)) {
            return Err(invalid("the output was to be written where an input is".to_owned()));
        }
        let rows = (BLOCK / row.max(1)).max(1);
        if y.len() <= rows * row {
            part(0, y);
            return Ok(());
        }
        // A lock is nothing beside a part, and nobody has to be trusted to ask for each once.
        let parts: Vec<_> = y.chunks_mut(rows * row).map(Mutex::new).collect();
        let panicked = Mutex::new(false);
        self.context.par_for(parts.len(), 0, |number| {
            let compute = || {
                let mut y = parts[number].lock().unwrap_or_else(PoisonError::into_inner);
                part(number * rows, &mut y);
            };
            if catch_unwind(AssertUnwindSafe(compute)).is_err() {
                *panicked.lock().unwrap_or_else(PoisonError::into_inner) = true;
            }
        })?;
        if panicked.into_inner().unwrap_or(true) { Err(bug()) } else { Ok(()) }
    }
}

/// An operator as the runtime asks for it.
struct Registered<K>(PhantomData<fn() -> K>);

impl<K> Registered<K> {
    fn new() -> Self {
        Self(PhantomData)
    }
}

impl<K: Kind> Operator for Registered<K> {
    type Kernel<'a> = Computed<K>;

    fn name(&self) -> &str {
        K::NAME
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        (0..K::INPUTS).map(|_| OperatorInput::required(TensorElementType::Float32))
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }

    fn create_kernel<'a>(&self, node: &KernelContext<'a>) -> ort::Result<Self::Kernel<'a>> {
        let kind = guarded(|| K::of(node)).map_err(named::<K>)?;
        Ok(Computed { kind, cpu: Cpu::best() })
    }
}

/// An operator as it is in a session. Runs of one session at the same time (`Session::twin`) come to one of these, which `ort` lends to each as if it
/// were its own: so nothing in it is ever written.
struct Computed<K> {
    kind: K,
    cpu: Cpu,
}

impl<K: Kind> Kernel for Computed<K> {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        guarded(|| {
            let values = (0..K::INPUTS).map(|index| input(context, index)).collect::<ort::Result<Vec<_>>>()?;
            let inputs = values.iter().map(tensor).collect::<ort::Result<Vec<_>>>()?;
            self.kind.compute(self.cpu, &inputs, Output { context, inputs: &inputs })
        })
        .map_err(named::<K>)
    }
}

fn input(context: &ComputeContext, index: usize) -> ort::Result<ValueRef<'_>> {
    context.input(index)?.ok_or_else(|| invalid(format!("input {index} is not there")))
}

fn tensor<'v>(value: &'v ValueRef<'_>) -> ort::Result<Tensor<'v>> {
    let (shape, numbers) = value.try_extract_tensor::<f32>()?;
    let shape = shape.iter().map(|&size| usize::try_from(size)).collect::<Result<_, _>>();
    Ok(Tensor { shape: shape.map_err(|_| invalid("a shape has a negative size".to_owned()))?, numbers })
}

/// What is called by C: no panic comes out of it.
fn guarded<T>(compute: impl FnOnce() -> ort::Result<T>) -> ort::Result<T> {
    // What a panic leaves half done is an output that nobody is given.
    catch_unwind(AssertUnwindSafe(compute)).unwrap_or_else(|_| Err(bug()))
}

/// What a panic becomes: its message is where panics are written to.
fn bug() -> ort::Error {
    ort::Error::new("the kernel panicked, which is a bug of infer")
}

fn invalid(message: String) -> ort::Error {
    ort::Error::new(message)
}

/// The error with the operator's name.
fn named<K: Kind>(error: ort::Error) -> ort::Error {
    ort::Error::new(format!("{}: {}", K::NAME, error.message()))
}
