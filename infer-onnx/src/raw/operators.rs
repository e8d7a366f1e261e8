//! Operators of our own, which graphs are rewritten to have: each does what several of the runtime's do, and reads and writes memory once.
//!
//! They are of a domain that only sessions of such graphs know. Memory of their outputs is never that of an input, and the runtime is not told their
//! shapes beforehand: with either it plans memory so that the operators between are a good part slower.

mod context;
mod kinds;
mod table;
#[cfg(test)]
mod tests;

use super::{Api, Session, api::some, cpu::Cpu};
use crate::error::{error, from_ort};
use context::{Node, Output, Tensor};
use infer_core::{ErrorKind, Result};
use infer_sys::onnxruntime::{OrtCustomOp, OrtCustomOpDomain};
use kinds::{AddNormalization, BiasGelu, BiasHeads, MaskedSoftmax};
use ort::{AsPointer, environment::Environment, logging::LogLevel, session::builder::SessionBuilder};
use std::{
    ffi::CStr,
    ptr::{self, NonNull},
    sync::OnceLock,
};

/// What the domain of the operators is called.
pub(crate) const DOMAIN: &str = match NAME.to_str() {
    Ok(name) => name,
    Err(_) => unreachable!(),
};
const NAME: &CStr = c"infer";

/// Its version.
pub(crate) const VERSION: u8 = 1;

/// Whether the operators are quicker here than the runtime's own that they stand for.
pub(crate) fn are_worth_it() -> bool {
    // Kernels that were compiled for looking at them are slower than any.
    !cfg!(debug_assertions) && can_run()
}

/// Whether the processor has what makes them quick. Right they are everywhere.
pub(crate) fn can_run() -> bool {
    Cpu::best() != Cpu::PLAIN
}

/// The domain: one a process, for ever, since sessions keep pointers into it.
static DOMAIN_OF_ALL: OnceLock<Domain> = OnceLock::new();

/// Makes the domain, and has the runtime note its name, before anybody else makes a session: a map of all names is then changed, which each load of a
/// model reads without a lock.
pub(super) fn prepare(environment: &Environment) -> Result<()> {
    let api = Api::loaded()?;
    let tables = [
        table::of::<BiasGelu>(),
        table::of::<AddNormalization>(),
        table::of::<MaskedSoftmax>(),
        table::of::<BiasHeads>(),
    ];
    let domain = Domain::new(api, &tables)?;
    introduce(api, environment, domain)?;
    DOMAIN_OF_ALL.get_or_init(|| domain);
    Ok(())
}

/// Sessions that are made with these options know the operators.
pub(crate) fn add_to(builder: SessionBuilder) -> Result<SessionBuilder> {
    let Some(&domain) = DOMAIN_OF_ALL.get() else {
        return Err(error(
            ErrorKind::Runtime,
            "the domain of the operators could not be made when the library was started",
        ));
    };
    added(Api::loaded()?, builder, domain)
}

fn added(api: Api, mut builder: SessionBuilder, domain: Domain) -> Result<SessionBuilder> {
    // SAFETY: the options are the builder's, which nobody else uses meanwhile. Of the domain the header wants that it outlives the sessions: it lives for ever.
    let status = unsafe { (api.table().AddCustomOpDomain)(builder.ptr_mut(), domain.0.as_ptr()) };
    api.check("add the domain of the operators", status)?;
    Ok(builder)
}

/// Operators under one name, for ever.
#[derive(Clone, Copy)]
struct Domain(NonNull<OrtCustomOpDomain>);

// SAFETY: it is filled when it is made, and only read afterwards: a name and a list of tables, which are constants.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

impl Domain {
    fn new(api: Api, tables: &[&'static OrtCustomOp]) -> Result<Self> {
        let mut made = ptr::null_mut();
        // SAFETY: a C string, which is copied, and a valid place.
        let status = unsafe { (api.table().CreateCustomOpDomain)(NAME.as_ptr(), &raw mut made) };
        api.check("make the domain of the operators", status)?;
        let made = some(made)?;
        for &table in tables {
            // SAFETY: the domain was just made and is nobody else's; the table lives for ever.
            let status = unsafe { (api.table().CustomOpDomain_Add)(made.as_ptr(), table) };
            api.check("add an operator to its domain", status)?;
        }
        Ok(Self(made))
    }
}

/// The name is noted with the first session that has the domain: so this is one, of a graph of one `Identity`. It logs nothing: whoever waits for it
/// waits for nobody else.
fn introduce(api: Api, environment: &Environment, domain: Domain) -> Result<()> {
    const MODEL: &[u8] =
        b"\x08\x08\x3a\x2b\x0a\x10\x0a\x01x\x12\x01y\x22\x08Identity\x12\x01g\x5a\x09\x0a\x01x\x12\x04\x0a\x02\x08\x01\
        \x62\x09\x0a\x01y\x12\x04\x0a\x02\x08\x01\x42\x04\x0a\x00\x10\x11";
    let builder = SessionBuilder::new(environment)
        .and_then(|builder| Ok(builder.with_log_level(LogLevel::Fatal)?.with_intra_threads(1)?))
        .map_err(|error| from_ort("make session options", &error))?;
    Session::from_bytes(environment, added(api, builder, domain)?, None, MODEL).map(drop)
}

/// One of the operators, with what a node says about it. Tensors are of `f32`.
trait Kind: Send + Sync + Sized + 'static {
    const NAME: &'static CStr;
    const INPUTS: usize;

    /// Of a node with these attributes.
    fn of(node: &Node<'_>) -> Result<Self>;

    /// Reads the inputs, of which there are as many as was said, and gives the output.
    fn compute(&self, cpu: Cpu, inputs: &[Tensor<'_>], output: Output<'_>) -> Result<()>;
}
