//! Runs that are lent memory, one after another: their room is kept.

use super::{Owner, Session, no_such, outcome};
use crate::{
    DType,
    error::{error, invalid_input},
    raw::{RunOptions, Value, value::Lent},
};
use infer_core::{ErrorKind, Result};
use infer_sys::onnxruntime::OrtValue;
use std::{marker::PhantomData, ptr::NonNull, sync::Arc};

/// One run of a session: what it is given, until it [runs](Self::run).
pub(crate) struct Call<'s, 'a> {
    session: &'s mut Session,
    /// What is lent to it.
    memory: PhantomData<&'a [u8]>,
}

impl Drop for Call<'_, '_> {
    fn drop(&mut self) {
        self.session.slots.iter_mut().for_each(Slot::end);
    }
}

/// An input, from call to call.
#[derive(Default)]
pub(super) struct Slot {
    given: Given,
    /// Tensors over memory that was lent, in this call or earlier ones: two, for whoever fills one buffer while the other is run.
    lent: [Option<Lent>; 2],
    /// Which of them was lent last.
    latest: usize,
    /// A value in memory of its own, for this call.
    own: Option<Value>,
}

/// What an input is given in a call.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Given {
    #[default]
    Nothing,
    Lent,
    Own,
}

impl Session {
    /// Begins a run that is lent memory for `'a`.
    pub(crate) fn call<'a>(&mut self) -> Call<'_, 'a> {
        // Its loans are over, also where the last call was forgotten and not dropped.
        self.slots.iter_mut().for_each(Slot::end);
        Call { session: self, memory: PhantomData }
    }
}

impl<'a> Call<'_, 'a> {
    /// Whether an input has a value.
    pub(crate) fn is_given(&self, index: usize) -> bool {
        self.session.slots.get(index).is_some_and(|slot| slot.given != Given::Nothing)
    }

    /// Lends an input a tensor that it was lent before, last or the time before: the same memory, type and shape. `false` for another one,
    /// which is lent by [`lend`](Self::lend).
    pub(crate) fn lend_again(&mut self, index: usize, dtype: DType, shape: &[usize], bytes: &'a [u8]) -> bool {
        let Some(slot) = self.session.slots.get_mut(index) else { return false };
        let is_it = |lent: &Option<Lent>| lent.as_ref().is_some_and(|lent| lent.is_over(dtype, shape, bytes));
        let Some(place) = slot.lent.iter().position(is_it) else { return false };
        (slot.given, slot.latest) = (Given::Lent, place);
        true
    }

    /// Lends an input a tensor: not copied.
    pub(crate) fn lend(&mut self, index: usize, dtype: DType, shape: &[usize], bytes: &'a [u8]) -> Result<()> {
        let slot = self.slot(index)?;
        let place = 1 - slot.latest;
        slot.lent[place] = Some(Lent::over(dtype, shape, bytes)?);
        (slot.given, slot.latest) = (Given::Lent, place);
        Ok(())
    }

    /// Gives an input a value in memory of its own.
    pub(crate) fn give(&mut self, index: usize, value: Value) -> Result<()> {
        if value.is_none() {
            // The runtime would follow a pointer that is not there.
            return Err(invalid_input(format!("input {index} was given a value that is not there")));
        }
        let slot = self.slot(index)?;
        slot.own = Some(value);
        slot.given = Given::Own;
        Ok(())
    }

    fn slot(&mut self, index: usize) -> Result<&mut Slot> {
        let count = self.session.slots.len();
        self.session.slots.get_mut(index).ok_or_else(|| no_such("input", index, count))
    }

    /// Runs the graph once. After an error there are no outputs.
    pub(crate) fn run(self, options: &RunOptions, outputs: &mut Outputs) -> Result<()> {
        let ran = self.session.run_given(options, outputs);
        self.session.scratch.clear();
        if ran.is_err() {
            outputs.clear();
        }
        ran
    }
}

impl Session {
    /// Runs with what the slots are given.
    fn run_given(&mut self, options: &RunOptions, outputs: &mut Outputs) -> Result<()> {
        if let Some(stop) = options.stop() {
            return Err(stop.into_error());
        }
        let Self { owner, slots, scratch, .. } = self;
        scratch.clear();
        for (name, slot) in owner.input_names.iter().zip(&*slots) {
            if let Some(value) = slot.pointer() {
                scratch.input_names.push(name.as_ptr());
                scratch.inputs.push(value);
            }
        }
        for output in &outputs.wanted {
            scratch.output_names.push(owner.output_name(output.index)?.as_ptr());
            scratch.outputs.push(std::ptr::null_mut());
        }
        // SAFETY: the scratch arrays were just filled: with values of the slots that were given in this call, whose own memory lives in them, and
        // whose lent memory `Call` borrows until the run is over; and with no values for outputs.
        let status = unsafe { self.execute(options) };
        outcome(self.owner.api, options, status)?;
        let Self { owner, slots, scratch, .. } = self;
        // First all that came out is owned, so that whatever fails, it is freed.
        for (output, &value) in outputs.wanted.iter_mut().zip(&scratch.outputs) {
            output.value = NonNull::new(value).map(|value| {
                // One of another session is of no use.
                let hand = outputs.hands.pop().filter(|hand| Arc::ptr_eq(hand, owner));
                Value::given(owner.api, value, hand.unwrap_or_else(|| Arc::clone(owner)))
            });
        }
        outputs.describe(|value| slots.iter().any(|slot| slot.overlaps(value)))
    }
}

impl Slot {
    /// Ends what was given to it.
    fn end(&mut self) {
        self.given = Given::Nothing;
        self.own = None;
    }

    fn pointer(&self) -> Option<*const OrtValue> {
        match self.given {
            Given::Nothing => None,
            Given::Lent => self.lent[self.latest].as_ref().map(Lent::as_ptr),
            Given::Own => self.own.as_ref().map(Value::as_ptr),
        }
    }

    /// Whether the memory of an output overlaps what was given.
    fn overlaps(&self, output: &Value) -> bool {
        match self.given {
            Given::Nothing => false,
            Given::Lent => self.lent[self.latest].as_ref().is_some_and(|lent| lent.overlaps(output)),
            Given::Own => self.own.as_ref().is_some_and(|own| own.overlaps(output)),
        }
    }
}

/// What runs gave, in room that is kept.
#[derive(Default)]
pub(crate) struct Outputs {
    wanted: Vec<Output>,
    /// What keeps the session of values that are gone alive, for those of the next run: counting it less and more takes a while.
    hands: Vec<Arc<Owner>>,
}

/// An output that is wanted, and what the run gave for it.
struct Output {
    index: usize,
    value: Option<Value>,
}

impl Outputs {
    /// Lets go of all, and wants nothing.
    pub(crate) fn clear(&mut self) {
        let values = self.wanted.iter_mut().filter_map(|output| output.value.as_mut());
        self.hands.extend(values.filter_map(Value::hand_over));
        self.wanted.clear();
    }

    /// Wants an output of the next run; `false` where it is wanted already.
    pub(crate) fn want(&mut self, index: usize) -> bool {
        let is_new = self.wanted.iter().all(|output| output.index != index);
        if is_new {
            self.wanted.push(Output { index, value: None });
        }
        is_new
    }

    /// Wants all of so many.
    pub(crate) fn want_all(&mut self, count: usize) {
        self.clear();
        self.hands.reserve(count);
        self.wanted.extend((0..count).map(|index| Output { index, value: None }));
    }

    /// What the run gave for an output.
    pub(crate) fn get(&self, index: usize) -> Option<&Value> {
        self.wanted[self.place(index)?].value.as_ref()
    }

    /// The same, to be kept.
    pub(crate) fn take(&mut self, index: usize) -> Option<Value> {
        let place = self.place(index)?;
        self.wanted[place].value.take()
    }

    /// What is wanted, in this order.
    pub(crate) fn indices(&self) -> impl Iterator<Item = usize> {
        self.wanted.iter().map(|output| output.index)
    }

    /// Where an output is: mostly all are wanted, in their order.
    fn place(&self, index: usize) -> Option<usize> {
        let is_here = |output: &Output| output.index == index;
        if self.wanted.get(index).is_some_and(is_here) { Some(index) } else { self.wanted.iter().position(is_here) }
    }

    /// Asks the runtime what they are. What overlaps an input (a graph can hand one through) is copied: that is memory of the caller's.
    fn describe(&mut self, is_lent: impl Fn(&Value) -> bool) -> Result<()> {
        for output in &mut self.wanted {
            let Some(value) = &mut output.value else {
                return Err(error(ErrorKind::Runtime, "ONNX Runtime said OK and gave nothing"));
            };
            value.describe()?;
            if is_lent(value) {
                *value = value.copied()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::tests::adding;

    fn run(session: &mut Session, outputs: &mut Outputs) {
        outputs.clear();
        let mut call = session.call();
        for input in 0..2 {
            call.give(input, Value::tensor(DType::I32, &[1, 2]).unwrap()).unwrap();
        }
        outputs.want_all(1);
        call.run(&RunOptions::new("test").unwrap(), outputs).unwrap();
    }

    /// Values keep the session alive that they came from: those of the last run, and those that were taken.
    #[test]
    fn a_value_has_a_hand_on_its_own_session() {
        let (mut one, mut two, mut outputs) = (adding(), adding(), Outputs::default());
        let hands = |session: &Session| Arc::strong_count(&session.owner) - 1;
        for _ in 0..3 {
            run(&mut one, &mut outputs);
            assert_eq!(hands(&one), 1);
        }
        let taken = outputs.take(0).unwrap();
        run(&mut one, &mut outputs);
        assert_eq!(hands(&one), 2);
        // The hand on the one is none on the other.
        run(&mut two, &mut outputs);
        assert_eq!((hands(&one), hands(&two)), (1, 1));
        drop(one);
        assert_eq!(taken.bytes(), [0; 8]);
        let last = outputs.take(0).unwrap();
        drop((outputs, taken));
        assert_eq!(hands(&two), 1);
        drop(two);
        assert_eq!(last.bytes(), [0; 8]);
    }
}
