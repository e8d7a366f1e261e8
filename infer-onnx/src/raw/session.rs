//! Graphs that are loaded.

mod call;
mod ports;

pub(crate) use call::{Call, Outputs};

use super::{Api, Binding, RunOptions, SharedWeights, Value, api::some, global, load::Load, providers};
use crate::{
    error::{error, invalid_input},
    providers::CPU,
    tensor::{Port, ValueType},
};
use call::Slot;
use infer_core::{ErrorKind, Result};
use infer_sys::onnxruntime::{OrtPrepackedWeightsContainer, OrtSession, OrtSessionOptions, OrtStatusPtr, OrtValue};
use ort::{AsPointer, environment::Environment, session::builder::SessionBuilder};
use std::{
    cell::Cell,
    ffi::{CStr, CString, c_char},
    fmt,
    marker::PhantomData,
    ops::Deref,
    path::Path,
    ptr,
    sync::Arc,
};

/// A graph that is loaded, ready to run.
///
/// `Send`, since nothing in the runtime is bound to a thread. Not `Sync`: runs take it exclusively, because some execution providers do
/// not stand two at a time.
pub(crate) struct Session {
    owner: Arc<Owner>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    scratch: Scratch,
    /// What its calls are given, one for each input.
    slots: Vec<Slot>,
    _not_sync: PhantomData<Cell<()>>,
}

/// One `OrtSession`, kept alive by its values and bindings, with what it needs: names as C strings, and the environment.
pub(super) struct Owner {
    pub(super) api: Api,
    /// Released first: it has references to weights and environment.
    handle: Handle,
    input_names: Vec<CString>,
    output_names: Vec<CString>,
    _weights: Option<Arc<SharedWeights>>,
    _environment: Environment,
}

/// One `OrtSession`, or none yet.
struct Handle {
    api: Api,
    session: *mut OrtSession,
}

// SAFETY: a session is not bound to a thread. What shares it (`Arc`) only keeps it alive, reads the names or makes bindings, which reads the
// session; runs go through a `Session`, exclusively. There is one of these, or several where the CPU alone computes (`twin`). Environment and
// `SharedWeights` are `Send` and `Sync` themselves.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

/// Without it a file whose name ends in `.ort`, and bytes that look so, are read in the runtime's own format, in which nobody has looked for
/// the files that it names.
const FORMAT: (&CStr, &CStr) = (c"session.load_model_format", c"ONNX");

/// Pointers for one call, whose room is kept.
#[derive(Default)]
struct Scratch {
    input_names: Vec<*const c_char>,
    inputs: Vec<*const OrtValue>,
    output_names: Vec<*const c_char>,
    outputs: Vec<*mut OrtValue>,
}

// SAFETY: the pointers are of one call and are forgotten at its end; between calls the vectors are empty.
unsafe impl Send for Scratch {}
// SAFETY: as above, and nothing looks at them through a shared reference.
unsafe impl Sync for Scratch {}

impl Session {
    /// Loads a file. The caller has looked at which other files it names.
    pub(crate) fn from_file(
        environment: &Environment,
        options: SessionBuilder,
        weights: Option<Arc<SharedWeights>>,
        path: &Path,
    ) -> Result<Self> {
        let path = c_path(path)?;
        Self::create(environment, options, weights, |api, options, packed, session| {
            let (table, environment) = (api.table(), environment.ptr());
            match packed {
                // SAFETY: environment, options and container live; the path is a C string; `session` is a valid place.
                Some(packed) => unsafe {
                    (table.CreateSessionWithPrepackedWeightsContainer)(
                        environment,
                        path.as_ptr(),
                        options,
                        packed,
                        session,
                    )
                },
                // SAFETY: as above.
                None => unsafe { (table.CreateSession)(environment, path.as_ptr(), options, session) },
            }
        })
    }

    /// Loads a model that is in memory. The runtime copies what it keeps.
    pub(crate) fn from_bytes(
        environment: &Environment,
        options: SessionBuilder,
        weights: Option<Arc<SharedWeights>>,
        bytes: &[u8],
    ) -> Result<Self> {
        Self::create(environment, options, weights, |api, options, packed, session| {
            let (table, environment) = (api.table(), environment.ptr());
            let (start, len) = (bytes.as_ptr().cast(), bytes.len());
            match packed {
                // SAFETY: environment, options and container live; the bytes are a slice; `session` is a valid place. The session keeps no
                // pointer into the bytes: that is asked for with options that nobody sets here, and only of files of ORT's own format.
                Some(packed) => unsafe {
                    (table.CreateSessionFromArrayWithPrepackedWeightsContainer)(
                        environment,
                        start,
                        len,
                        options,
                        packed,
                        session,
                    )
                },
                // SAFETY: as above.
                None => unsafe { (table.CreateSessionFromArray)(environment, start, len, options, session) },
            }
        })
    }

    fn create(
        environment: &Environment,
        mut options: SessionBuilder,
        weights: Option<Arc<SharedWeights>>,
        create: impl FnOnce(
            Api,
            *const OrtSessionOptions,
            Option<*mut OrtPrepackedWeightsContainer>,
            *mut *mut OrtSession,
        ) -> OrtStatusPtr,
    ) -> Result<Self> {
        let api = Api::start(environment)?;
        for ((key, value), what) in [(providers::RECORD, "ask for who runs which node"), (FORMAT, "say what is loaded")]
        {
            // SAFETY: nobody else fills the options: who ends a load from another thread only sets a flag of theirs, which is atomic. Both are
            // C strings, which are copied.
            let status =
                unsafe { (api.table().AddSessionConfigEntry)(options.ptr_mut(), key.as_ptr(), value.as_ptr()) };
            api.check(what, status)?;
        }
        if let Some(weights) = &weights {
            // SAFETY: nobody else fills the options, and one session is made with them, which keeps the weights alive.
            unsafe { weights.add_to(options.ptr_mut()) }?;
        }
        // SAFETY: the options end with this function, after what was begun here.
        let load = unsafe { Load::begin(api, options.ptr_mut()) };
        // A panic of what takes log lines goes on at the end of the call, when the session may be there: it is released then, before the
        // weights.
        let mut handle = Handle { api, session: ptr::null_mut() };
        let status = global::native(|| {
            create(api, options.ptr(), weights.as_ref().map(|weights| weights.container()), &raw mut handle.session)
        });
        drop(load);
        api.check("load the model", status)?;
        let mut owner = Owner {
            api,
            handle: handle.checked()?,
            input_names: Vec::new(),
            output_names: Vec::new(),
            _weights: weights,
            _environment: environment.clone(),
        };
        let inputs = owner.inputs()?;
        let outputs = owner.outputs()?;
        (owner.input_names, owner.output_names) = (c_names(&inputs)?, c_names(&outputs)?);
        Ok(Self::of(Arc::new(owner), inputs, outputs))
    }

    /// A way into a session, with room of its own for calls.
    fn of(owner: Arc<Owner>, inputs: Vec<Port>, outputs: Vec<Port>) -> Self {
        let slots = inputs.iter().map(|_| Slot::default()).collect();
        Self { owner, inputs, outputs, scratch: Scratch::default(), slots, _not_sync: PhantomData }
    }

    /// What the graph takes: its inputs, then those of its weights that can be replaced.
    pub(crate) fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// What it gives.
    pub(crate) fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Which execution provider was given how many nodes.
    pub(crate) fn assigned(&self) -> Result<Vec<(String, usize)>> {
        // SAFETY: the session lives, and `create` asked for the assignment to be remembered.
        unsafe { providers::assigned(self.owner.api, self.owner.session()) }
    }

    /// Another way into the same session, for another thread, which runs it while this one does.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where not the CPU alone computes.
    pub(crate) fn twin(&self) -> Result<Self> {
        if self.assigned()?.iter().any(|(provider, _)| provider != CPU) {
            return Err(error(ErrorKind::Unsupported, "runs at the same time are for graphs that the CPU computes"));
        }
        // `InferenceSession::Run`: "Multiple threads are allowed to run this function; hence its thread-safe." What it is given and gives is of
        // one call; what is not (the allocators) locks.
        Ok(Self::of(Arc::clone(&self.owner), self.inputs.clone(), self.outputs.clone()))
    }

    /// A place to keep values for many runs.
    pub(crate) fn binding<'m>(&self) -> Result<Binding<'m>> {
        let outputs = self.outputs.iter().map(|port| port.kind.clone()).collect();
        Binding::new(Arc::clone(&self.owner), self.inputs.len(), outputs)
    }

    /// Runs the graph once. Inputs and outputs are by index; an output without a value gets one, another is written into.
    ///
    /// After an error, what outputs that had a value hold is undefined (as a number is, not as memory is), and others may have got none.
    pub(crate) fn run(
        &mut self,
        options: &RunOptions,
        inputs: &[(usize, impl Deref<Target = Value>)],
        outputs: &mut [(usize, Option<Value>)],
    ) -> Result<()> {
        if let Some(stop) = options.stop() {
            return Err(stop.into_error());
        }
        if let Err(error) = self.collect(inputs, outputs) {
            self.scratch.clear();
            return Err(error);
        }
        // SAFETY: `collect` has just filled the scratch arrays: with values of the arguments, which are borrowed until the run is over, and as
        // outputs with none or such as are ours alone, of the graph's types.
        let status = unsafe { self.execute(options) };
        let ran = outcome(self.owner.api, options, status);
        let taken = ran.and_then(|()| take_outputs(&self.owner, &self.scratch.outputs, inputs, outputs));
        self.scratch.clear();
        taken
    }

    /// Runs the graph once with what the scratch arrays have.
    ///
    /// # Safety
    /// The scratch arrays are of names of `owner`, of as many live values, whose memory nobody writes meanwhile, and of as many places for
    /// outputs, which are NULL or values that may be written and that the graph's outputs fit.
    unsafe fn execute(&mut self, options: &RunOptions) -> OrtStatusPtr {
        let Self { owner, scratch, .. } = self;
        let (table, session) = (owner.api.table(), owner.session());
        // SAFETY: the caller's promise; as many of each as is said. The session is run exclusively (`&mut self`), or by several threads
        // where it may be (`twin`).
        global::native(|| unsafe {
            (table.Run)(
                session,
                options.as_ptr(),
                scratch.input_names.as_ptr(),
                scratch.inputs.as_ptr(),
                scratch.inputs.len(),
                scratch.output_names.as_ptr(),
                scratch.outputs.len(),
                scratch.outputs.as_mut_ptr(),
            )
        })
    }

    /// Runs the graph once with what is bound. Outputs that the runtime gives are in the binding afterwards.
    pub(crate) fn run_bound(&mut self, options: &RunOptions, binding: &mut Binding<'_>) -> Result<()> {
        if !Arc::ptr_eq(&self.owner, binding.owner()) {
            return Err(invalid_input("the binding was made for another graph"));
        }
        if let Some(stop) = options.stop() {
            return Err(stop.into_error());
        }
        binding.prepare()?;
        let (api, session) = (self.owner.api, self.owner.session());
        // SAFETY: the binding is of this session (looked at above), which is run exclusively, or as in `execute`; what is bound is owned or borrowed by
        // the binding, which is borrowed exclusively here, so nobody reads what is being written.
        let status =
            global::native(|| unsafe { (api.table().RunWithBinding)(session, options.as_ptr(), binding.as_ptr()) });
        let ran = outcome(api, options, status);
        binding.finish(ran)
    }

    /// Fills the scratch arrays.
    fn collect(
        &mut self,
        inputs: &[(usize, impl Deref<Target = Value>)],
        outputs: &mut [(usize, Option<Value>)],
    ) -> Result<()> {
        self.scratch.clear();
        for (index, value) in inputs {
            let Some(name) = self.owner.input_names.get(*index) else {
                return Err(no_such("input", *index, self.inputs.len()));
            };
            if value.is_none() {
                // The runtime would follow a pointer that is not there.
                return Err(invalid_input(format!(
                    "the input {:?} was given a value that is not there",
                    self.inputs[*index].name
                )));
            }
            self.scratch.input_names.push(name.as_ptr());
            self.scratch.inputs.push(value.as_ptr());
        }
        for (index, value) in &mut *outputs {
            let Some(name) = self.owner.output_names.get(*index) else {
                return Err(no_such("output", *index, self.outputs.len()));
            };
            if let Some(value) = value {
                let port = &self.outputs[*index];
                writable_as(value, &port.kind)
                    .map_err(|why| invalid_input(format!("the output {:?} {why}", port.name)))?;
                if self.owner.input_names.contains(name) {
                    let message = format!(
                        "the output {:?} is an input handed through, which is written into no value",
                        port.name
                    );
                    return Err(invalid_input(message));
                }
            }
            self.scratch.output_names.push(name.as_ptr());
            self.scratch.outputs.push(value.as_ref().map_or(ptr::null_mut(), |value| value.as_ptr().cast_mut()));
        }
        Ok(())
    }
}

/// Why a value cannot be written by the graph as an output of this type.
pub(super) fn writable_as(value: &Value, kind: &ValueType) -> Result<(), String> {
    let ValueType::Tensor { dtype, .. } = kind else {
        return Err(format!("is {kind}, of which only a tensor is written into memory that is given"));
    };
    match value.dtype() {
        // The runtime trusts that the elements of a given output are as large as it writes them.
        Some(given) if given == *dtype && value.may_be_written() => Ok(()),
        Some(given) if given == *dtype => Err("was given memory that is only to be read".to_owned()),
        Some(given) => Err(format!("has elements of {dtype}, but memory for {given} was given")),
        None => Err("was given a value that is no tensor".to_owned()),
    }
}

/// Owns what a run gave, and puts it in its place: all or nothing.
fn take_outputs(
    owner: &Arc<Owner>,
    given: &[*mut OrtValue],
    inputs: &[(usize, impl Deref<Target = Value>)],
    outputs: &mut [(usize, Option<Value>)],
) -> Result<()> {
    let mut first_error = None;
    for (pointer, (_, place)) in given.iter().zip(outputs) {
        if place.is_some() {
            continue;
        }
        // Each pointer is owned, also after an error: it is freed so.
        let value = some(*pointer).and_then(|value| Value::of_run(owner.api, value, Arc::clone(owner)));
        let value = value.and_then(|value| {
            // A graph can hand an input through: then this is memory of the caller's, or memory that the caller may write.
            let shared = inputs.iter().any(|(_, input)| input.overlaps(&value));
            if shared { value.copied() } else { Ok(value) }
        });
        match value {
            Ok(value) => *place = Some(value),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    first_error.map_or(Ok(()), Err)
}

/// What became of a run.
fn outcome(api: Api, options: &RunOptions, status: OrtStatusPtr) -> Result<()> {
    api.check("run the graph", status).map_err(|error| match options.stop() {
        Some(stop) => stop.into_error().with_source(error),
        None => error,
    })
}

fn no_such(what: &str, index: usize, count: usize) -> infer_core::Error {
    invalid_input(format!("{what} {index} was named, but the graph has {count}"))
}

impl Owner {
    pub(super) fn session(&self) -> *mut OrtSession {
        self.handle.session
    }

    pub(super) fn input_name(&self, index: usize) -> Result<&CString> {
        self.input_names.get(index).ok_or_else(|| no_such("input", index, self.input_names.len()))
    }

    pub(super) fn output_name(&self, index: usize) -> Result<&CString> {
        self.output_names.get(index).ok_or_else(|| no_such("output", index, self.output_names.len()))
    }

    /// Whether an output is an input handed through.
    pub(super) fn hands_through(&self, output: usize) -> bool {
        self.output_names.get(output).is_some_and(|name| self.input_names.contains(name))
    }
}

impl Handle {
    /// Itself, where there is a session.
    fn checked(self) -> Result<Self> {
        some(self.session).map(|_| self)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.session.is_null() {
            // SAFETY: made by `CreateSession` and released once: values and bindings hold an `Arc` of the `Owner` that has this, a run
            // borrows the `Session`. Whoever has this drops the environment and the shared weights afterwards.
            global::native_in_drop(|| unsafe { (self.api.table().ReleaseSession)(self.session) });
        }
    }
}

impl Scratch {
    fn clear(&mut self) {
        self.input_names.clear();
        self.inputs.clear();
        self.output_names.clear();
        self.outputs.clear();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("inputs", &self.inputs).field("outputs", &self.outputs).finish_non_exhaustive()
    }
}

fn c_names(ports: &[Port]) -> Result<Vec<CString>> {
    let names = ports.iter().map(|port| CString::new(port.name.as_str()));
    names.collect::<Result<_, _>>().map_err(|_| error(ErrorKind::InvalidModel, "the graph has a name with a NUL in it"))
}

/// A path as the library wants it.
#[cfg(unix)]
fn c_path(path: &Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt as _;
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| invalid_input(format!("the path {} has a NUL in it", path.display())))
}

/// A path as the library wants it: UTF-16 that ends with a NUL.
#[cfg(windows)]
fn c_path(path: &Path) -> Result<Vec<u16>> {
    use std::os::windows::ffi::OsStrExt as _;
    if path.as_os_str().encode_wide().any(|unit| unit == 0) {
        return Err(invalid_input(format!("the path {} has a NUL in it", path.display())));
    }
    Ok(path.as_os_str().encode_wide().chain([0]).collect())
}
