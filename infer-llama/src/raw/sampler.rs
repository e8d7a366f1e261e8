//! Tokens that are drawn in the graph: owners of an `infer_llama_sampler`, one a sequence.

use super::{Context, Fresh, call};
use infer_core::{Error, ErrorKind, Result};
use infer_sys::llama::{Api, bindings::infer_llama_sampler};
use std::{
    mem,
    ptr::{self, NonNull},
};

/// What a draw looks like in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrawShape {
    /// The largest logit.
    Greedy,
    /// By temperature.
    Warm {
        /// From those that min_p leaves.
        min_p: bool,
        /// Of the largest so many at most; 0: of all.
        candidates: u32,
    },
}

/// What one draw uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DrawInputs {
    /// In `[0, 1)`.
    pub(crate) uniform: f32,
    /// 1 / temperature.
    pub(crate) scale: f32,
    /// How far below the largest logit one may be: the logarithm of min_p.
    pub(crate) least: f32,
    pub(crate) top_k: u32,
}

/// A sampler that is attached to a sequence of a context, or was.
pub(super) struct Sampler {
    ptr: NonNull<infer_llama_sampler>,
    shape: DrawShape,
    api: Api,
}

// SAFETY: a sampler belongs to no thread; it is used by the context that owns it, through `&mut`.
unsafe impl Send for Sampler {}

impl Sampler {
    fn new(api: Api, shape: DrawShape) -> Result<Self> {
        // SAFETY: what was made and nobody owns yet is freed once; nothing uses it.
        let mut fresh = Fresh::new(|sampler| unsafe { api.sampler_free(sampler) });
        let out = fresh.place();
        let (greedy, min_p, candidates) = match shape {
            DrawShape::Greedy => (true, false, 0),
            DrawShape::Warm { min_p, candidates } => (false, min_p, candidates),
        };
        call("make a sampler", |error|
            // SAFETY: the place is valid.
            unsafe { api.sampler_new(greedy, min_p, candidates, out, error) })?;
        Ok(Self { ptr: fresh.take(), shape, api })
    }
}

/// What a sequence of a context has.
pub(super) enum Attached {
    Nothing,
    This(Sampler),
    /// Something that is kept, or nothing: a call did not come to its end.
    Unknown,
}

impl Attached {
    fn is(&self, shape: Option<DrawShape>) -> bool {
        match self {
            Self::Nothing => shape.is_none(),
            Self::This(sampler) => shape == Some(sampler.shape),
            Self::Unknown => false,
        }
    }

    fn into_sampler(self) -> Option<Sampler> {
        match self {
            Self::This(sampler) => Some(sampler),
            Self::Nothing | Self::Unknown => None,
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `sampler_new` and is freed once, here. The context it was attached to is gone or has let go of it:
        // it keeps its samplers until then.
        unsafe { self.api.sampler_free(self.ptr.as_ptr()) };
    }
}

impl Context {
    /// Has the tokens of a sequence drawn in the graph from the next pass on; with `None` its logits come out again. A change has the
    /// next pass plan its graph anew. The context must have been made for it ([`ContextParams::draws`](super::ContextParams::draws)).
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where the device cannot do it: then logits come out.
    pub(crate) fn set_draw(&mut self, sequence: u32, shape: Option<DrawShape>) -> Result<()> {
        let id = self.sequence(sequence)?;
        let at = sequence as usize;
        if self.samplers[at].is(shape) {
            return Ok(());
        }
        self.forget_rows();
        let (api, context) = (self.model.door.api, self.ptr.as_ptr());
        let new = shape.map(|shape| Sampler::new(api, shape)).transpose()?;
        let pointer = new.as_ref().map_or(ptr::null_mut(), |sampler| sampler.ptr.as_ptr());
        // Whichever of the two the context has afterwards must live, also when the call fails or a subscriber panics in it.
        let before = self.kept.len();
        let old = mem::replace(&mut self.samplers[at], Attached::Unknown);
        self.kept.extend(old.into_sampler());
        self.kept.extend(new);
        call("attach a sampler", |error|
            // SAFETY: the context lives and is this thread's alone; the sequence is one it has; the sampler is new or NULL, and lives
            // until the context is gone or has let go of it.
            unsafe { api.sampler_attach(context, id, pointer, error) })?;
        let new = if shape.is_some() { self.kept.pop() } else { None };
        self.samplers[at] = new.map_or(Attached::Nothing, Attached::This);
        self.kept.truncate(before);
        Ok(())
    }

    /// Whether the tokens of a sequence are drawn in the graph.
    pub(crate) fn is_drawn(&self, sequence: u32) -> bool {
        matches!(self.samplers.get(sequence as usize), Some(Attached::This(_)))
    }

    /// What the next draw of a sequence uses.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a sequence whose tokens are not drawn in the graph.
    pub(crate) fn set_draw_inputs(&mut self, sequence: u32, inputs: DrawInputs) -> Result<()> {
        self.forget_rows();
        let Some(Attached::This(sampler)) = self.samplers.get(sequence as usize) else {
            return Err(Error::invalid_input(format!("tokens of sequence {sequence} are not drawn in the graph")));
        };
        let DrawInputs { uniform, scale, least, top_k } = inputs;
        let (api, sampler) = (self.model.door.api, sampler.ptr.as_ptr());
        call("tell a sampler what to draw by", |error|
            // SAFETY: the sampler lives, and no pass of its context runs; numbers out of range are refused.
            unsafe { api.sampler_inputs(sampler, uniform, scale, least, top_k, error) })
    }

    /// The token that was drawn at this place of the last batch, and the logarithm of its probability.
    pub(crate) fn drawn(&mut self, place: i32) -> Result<(u32, f32)> {
        let (mut token, mut logprob) = (-1, f32::NAN);
        let (api, context) = (self.model.door.api, self.ptr.as_ptr());
        let (out, out_logprob) = (&raw mut token, &raw mut logprob);
        call("read what was drawn", |error|
            // SAFETY: the context lives and is this thread's alone; both places are valid; a place without a draw is refused.
            unsafe { api.sampled(context, place, out, out_logprob, error) })?;
        let token =
            u32::try_from(token).map_err(|_| Error::new(ErrorKind::Runtime, format!("token {token} was drawn")))?;
        Ok((token, logprob))
    }
}
