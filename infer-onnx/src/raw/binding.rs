//! Values that stay bound to a graph from run to run.

use super::{
    Api, Borrowed, Value,
    api::some,
    session::{Owner, writable_as},
};
use crate::{
    error::invalid_input,
    tensor::{Element, ValueType},
};
use infer_core::Result;
use infer_sys::onnxruntime::{OrtIoBinding, OrtValue};
use std::{
    mem,
    ptr::{self, NonNull},
    slice,
    sync::Arc,
};

/// Inputs and outputs of a graph, kept bound.
///
/// What is bound is *in* here, owned or borrowed for `'m`: it is read and written through the binding, which a run borrows exclusively, so
/// nothing is read while it is written. A tensor that is an input and an output at once (keys and values that a graph extends in place) is
/// here once ([`bind_shared`](Self::bind_shared)).
///
/// `Send`, as its parts are; not `Sync`.
pub(crate) struct Binding<'m> {
    /// Released first: it has references to the values.
    handle: Handle,
    inputs: Vec<Option<Borrowed<'m>>>,
    outputs: Vec<Output<'m>>,
    /// What each output is declared as.
    kinds: Vec<ValueType>,
    /// Indices of outputs in the order in which the runtime has them.
    order: Vec<usize>,
    /// Outputs that have to be asked for after the next run.
    stale: bool,
    /// A run has begun, and what came of it was not looked at: so it stays where a panic of what takes log lines has cut one short.
    begun: bool,
}

/// Where an output goes.
enum Output<'m> {
    /// Nowhere: it was not bound.
    Unbound,
    /// Into memory of the runtime's choice.
    Runtime(Chosen),
    /// Into this.
    Given(Borrowed<'m>),
    /// Into what is bound as this input.
    Shared(usize),
}

/// An output whose memory the runtime chooses.
#[derive(Default)]
struct Chosen {
    /// What the last run gave.
    value: Option<Value>,
    /// Whether that is what the runtime has bound, and will write into again.
    known: bool,
    /// Whether the next run may write there: the shape is the same for ever, and the memory is the output's alone.
    stays: bool,
}

/// One `OrtIoBinding`, and the session it is of.
struct Handle {
    owner: Arc<Owner>,
    binding: NonNull<OrtIoBinding>,
}

// SAFETY: a binding is a list of names and counted values, bound to no thread; what it has is here and `Send`.
unsafe impl Send for Handle {}

impl<'m> Binding<'m> {
    pub(super) fn new(owner: Arc<Owner>, inputs: usize, kinds: Vec<ValueType>) -> Result<Self> {
        let mut binding = ptr::null_mut();
        // SAFETY: the session lives: `owner` is held; `binding` is a valid place.
        let status = unsafe { (owner.api.table().CreateIoBinding)(owner.session(), &raw mut binding) };
        owner.api.check("make a binding", status)?;
        Ok(Self {
            handle: Handle { binding: some(binding)?, owner },
            inputs: (0..inputs).map(|_| None).collect(),
            outputs: kinds.iter().map(|_| Output::Unbound).collect(),
            kinds,
            order: Vec::new(),
            stale: false,
            begun: false,
        })
    }

    /// Binds a value as an input, in the place of what was bound before.
    pub(crate) fn bind_input(&mut self, index: usize, value: impl Into<Borrowed<'m>>) -> Result<()> {
        let value = value.into();
        self.tell_input(index, &value)?;
        self.unshare(index)?;
        self.inputs[index] = Some(value);
        Ok(())
    }

    /// Binds a tensor that is written into as an output.
    pub(crate) fn bind_output(&mut self, index: usize, value: impl Into<Borrowed<'m>>) -> Result<()> {
        let value = value.into();
        self.tell_output(index, &value)?;
        self.outputs[index] = Output::Given(value);
        Ok(())
    }

    /// Binds a tensor as an input and as an output: the graph writes where it reads.
    pub(crate) fn bind_shared(&mut self, input: usize, output: usize, value: impl Into<Borrowed<'m>>) -> Result<()> {
        let value = value.into();
        self.tell_output(output, &value)?;
        // From here on the runtime may have one value as both; whatever fails, it is kept with the output.
        if let Err(error) = self.tell_input(input, &value).and_then(|()| self.unshare(input)) {
            self.outputs[output] = Output::Given(value);
            return Err(error);
        }
        self.outputs[output] = Output::Shared(input);
        self.inputs[input] = Some(value);
        Ok(())
    }

    /// Has the runtime choose memory of the host for an output.
    pub(crate) fn bind_output_to_cpu(&mut self, index: usize) -> Result<()> {
        self.tell_cpu(index)?;
        self.outputs[index] = Output::Runtime(Chosen::default());
        self.stale = true;
        Ok(())
    }

    /// What is bound as an input.
    pub(crate) fn input(&self, index: usize) -> Option<&Value> {
        self.inputs.get(index)?.as_deref()
    }

    /// The elements of a tensor that is bound as an input, to be written; of memory made here or given to be written.
    pub(crate) fn input_elements_mut<T: Element>(&mut self, index: usize) -> Result<&mut [T]> {
        self.writable_input(index)?.elements_mut()
    }

    fn writable_input(&mut self, index: usize) -> Result<&mut Value> {
        let value = self.inputs.get_mut(index).and_then(Option::as_mut);
        // What is not written in place would be copied, and the runtime would go on with the old one.
        value
            .filter(|value| value.may_be_written())
            .map(Borrowed::value_mut)
            .ok_or_else(|| invalid_input(format!("nothing that can be written is bound as input {index}")))
    }

    /// What an output was in the last run, or what is bound as it.
    pub(crate) fn output(&self, index: usize) -> Option<&Value> {
        match self.outputs.get(index)? {
            Output::Unbound => None,
            Output::Runtime(chosen) => chosen.value.as_ref(),
            Output::Given(value) => Some(value),
            Output::Shared(input) => self.input(*input),
        }
    }

    /// Takes what the runtime chose for an output in the last run. The next run chooses anew.
    pub(crate) fn take_output(&mut self, index: usize) -> Result<Option<Value>> {
        let Some(Output::Runtime(chosen)) = self.outputs.get_mut(index) else { return Ok(None) };
        let value = chosen.value.take();
        // The runtime would write into the same memory again: as this output, or as one that it gave the same memory.
        for other in 0..self.outputs.len() {
            let same = |other: &Value| value.as_ref().is_some_and(|value| value.overlaps(other));
            if other == index || self.output(other).is_some_and(same) {
                self.renew(other)?;
            }
        }
        Ok(value)
    }

    /// Whether an input has a value.
    pub(crate) fn is_bound(&self, input: usize) -> bool {
        self.input(input).is_some()
    }

    pub(super) fn owner(&self) -> &Arc<Owner> {
        &self.handle.owner
    }

    pub(super) fn as_ptr(&self) -> *const OrtIoBinding {
        self.handle.binding.as_ptr()
    }

    /// Before a run: outputs that cannot be written where they were are chosen anew.
    pub(super) fn prepare(&mut self) -> Result<()> {
        let begun = mem::replace(&mut self.begun, true);
        for index in 0..self.outputs.len() {
            let Output::Runtime(chosen) = &self.outputs[index] else { continue };
            // The runtime has what a run that was cut short gave, and nobody here does.
            if begun || (chosen.known && !chosen.stays) {
                self.renew(index)?;
            }
        }
        Ok(())
    }

    /// After a run: takes hold of what the runtime chose.
    pub(super) fn finish(&mut self, ran: Result<()>) -> Result<()> {
        self.begun = false;
        let done = ran.and_then(|()| if self.stale { self.fetch() } else { Ok(()) });
        if done.is_err() {
            // What a run left half done is not shown, and not written into again.
            for index in 0..self.outputs.len() {
                if let Output::Runtime(chosen) = &mut self.outputs[index] {
                    chosen.value = None;
                    self.renew(index)?;
                }
            }
        }
        done
    }

    /// Has the runtime choose memory again for an output that is of its choice. The last value stays until then.
    fn renew(&mut self, index: usize) -> Result<()> {
        if matches!(self.outputs.get(index), Some(Output::Runtime(_))) {
            self.tell_cpu(index)?;
            self.stale = true;
        }
        if let Some(Output::Runtime(chosen)) = self.outputs.get_mut(index) {
            chosen.known = false;
        }
        Ok(())
    }

    fn fetch(&mut self) -> Result<()> {
        let api = self.handle.owner.api;
        let (mut values, mut count) = (ptr::null_mut(), 0);
        // SAFETY: the binding lives; the allocator lives for ever; both are valid places.
        let status = unsafe {
            (api.table().GetBoundOutputValues)(self.as_ptr(), api.allocator(), &raw mut values, &raw mut count)
        };
        api.check("ask for the outputs", status)?;
        let mut first_error = None;
        if count > 0 && !values.is_null() {
            // SAFETY: the entry gives an array of so many values, for us to own.
            let given = unsafe { slice::from_raw_parts(values, count) };
            for (position, &value) in given.iter().enumerate() {
                if let Err(error) = some(value).and_then(|value| self.place(api, position, value)) {
                    first_error.get_or_insert(error);
                }
            }
        }
        // SAFETY: the array is from that allocator; each value in it has an owner now.
        unsafe { api.free(values) };
        self.stale = first_error.is_some();
        first_error.map_or(Ok(()), Err)
    }

    /// Owns a value that the runtime gave, and puts it in its place.
    fn place(&mut self, api: Api, position: usize, given: NonNull<OrtValue>) -> Result<()> {
        let owner = &self.handle.owner;
        let index = self.order.get(position).copied().filter(|&index| index < self.outputs.len());
        let Some((index, Output::Runtime(chosen))) = index.map(|index| (index, &mut self.outputs[index])) else {
            // Not of its choice; this second reference is let go of.
            Value::release(api, given);
            return Ok(());
        };
        match &mut chosen.value {
            Some(value) => value.replace(given)?,
            None => chosen.value = Some(Value::of_run(api, given, Arc::clone(owner))?),
        }
        let Some(value) = &mut chosen.value else { return Ok(()) };
        (chosen.known, chosen.stays) = (true, has_shape_of(value, &self.kinds[index]));
        // A graph can hand an input through: then this is memory of the caller's, or memory that is written here.
        if self.inputs.iter().flatten().any(|input| input.overlaps(value)) {
            *value = value.copied()?;
            chosen.stays = false;
        }
        Ok(())
    }

    /// Where the input was shared with an output, the output keeps its value for itself.
    fn unshare(&mut self, input: usize) -> Result<()> {
        let shared = |output: &Output<'m>| matches!(output, Output::Shared(shared) if *shared == input);
        if let Some(output) = self.outputs.iter().position(shared) {
            self.outputs[output] = self.inputs[input].take().map_or(Output::Unbound, Output::Given);
        }
        Ok(())
    }

    fn tell_input(&self, index: usize, value: &Value) -> Result<()> {
        let (api, name) = (self.handle.owner.api, self.handle.owner.input_name(index)?);
        if value.is_none() {
            return Err(invalid_input(format!("input {name:?} was given a value that is not there")));
        }
        // SAFETY: the binding lives and is ours exclusively; the name is a C string; the value lives. The binding keeps a reference to the
        // value, and the caller of this the value itself, in `inputs`, for as long.
        let status = unsafe { (api.table().BindInput)(self.handle.binding.as_ptr(), name.as_ptr(), value.as_ptr()) };
        api.check("bind an input", status)
    }

    fn tell_output(&mut self, index: usize, value: &Value) -> Result<()> {
        let (api, name) = (self.handle.owner.api, self.handle.owner.output_name(index)?);
        writable_as(value, &self.kinds[index]).map_err(|why| invalid_input(format!("the output {name:?} {why}")))?;
        if self.handle.owner.hands_through(index) {
            let message = format!("the output {name:?} is an input handed through, which is written into no value");
            return Err(invalid_input(message));
        }
        // SAFETY: as in `tell_input`; the value is a tensor of what the graph writes, and may be written.
        let status = unsafe { (api.table().BindOutput)(self.handle.binding.as_ptr(), name.as_ptr(), value.as_ptr()) };
        api.check("bind an output", status)?;
        self.note_order(index);
        Ok(())
    }

    fn tell_cpu(&mut self, index: usize) -> Result<()> {
        let (api, name) = (self.handle.owner.api, self.handle.owner.output_name(index)?);
        // SAFETY: the binding lives and is ours exclusively; the name is a C string; the memory info lives for ever.
        let status =
            unsafe { (api.table().BindOutputToDevice)(self.handle.binding.as_ptr(), name.as_ptr(), api.memory()) };
        api.check("bind an output to memory of the host", status)?;
        self.note_order(index);
        Ok(())
    }

    /// The runtime has outputs in the order in which they were bound first.
    fn note_order(&mut self, index: usize) {
        if !self.order.contains(&index) {
            self.order.push(index);
        }
    }
}

/// Whether the graph says that the shape is always this one.
fn has_shape_of(value: &Value, kind: &ValueType) -> bool {
    kind.fixed_shape().is_some_and(|dims| dims.eq(value.shape().iter().copied()))
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by `CreateIoBinding` and released once; the session goes afterwards, at the earliest.
        unsafe { (self.owner.api.table().ReleaseIoBinding)(self.binding.as_ptr()) };
    }
}
