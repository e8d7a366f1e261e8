//! The adapters (LoRA) of a session: which are there, and which one the context computes with.

use super::Session;
use crate::{Adapter, Model, SessionOptions, error::BACKEND, raw};
use infer_core::{
    Batch, Error, ErrorKind, OpenOptions, Result,
    state::{Fingerprint, UsedAdapter},
};
use std::sync::Arc;

/// By index, which is that of the context too.
#[derive(Default)]
pub(super) struct Adapters {
    names: Vec<String>,
    scales: Vec<f32>,
    /// Kept for what their files say.
    loaded: Vec<Adapter>,
    /// What the context computes with. `None` where a call failed, and nobody knows.
    set: Option<Option<usize>>,
}

impl Adapters {
    /// Loads what the options name by path, and takes what is loaded.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a name that is there twice or empty and for a scale that is not finite, before any file is
    /// opened; those of [`Model::adapter`], with the adapter's name.
    pub(super) fn load(model: &Model, options: &SessionOptions) -> Result<(Self, Vec<Arc<raw::Adapter>>)> {
        let by_path = options.common.adapters.iter().map(|source| (&source.name, source.scale));
        let loaded = options.adapters.iter().map(|loaded| (&loaded.name, loaded.scale));
        let mut adapters = Self { set: Some(None), ..Self::default() };
        for (name, scale) in by_path.chain(loaded) {
            adapters.add(name, scale)?;
        }
        let open = |source: &infer_core::AdapterSource| -> Result<Adapter> {
            model.adapter(&source.path).map_err(|error| about(&source.name, error))
        };
        let by_path = options.common.adapters.iter().map(open);
        let loaded = options.adapters.iter().map(|loaded| Ok(loaded.adapter.clone()));
        adapters.loaded = by_path.chain(loaded).collect::<Result<_>>()?;
        let raw = adapters.loaded.iter().map(|adapter| adapter.raw().clone()).collect();
        Ok((adapters, raw))
    }

    fn add(&mut self, name: &str, scale: f32) -> Result<()> {
        if name.is_empty() {
            return Err(Error::invalid_input("an adapter has no name"));
        }
        if self.names.iter().any(|other| other == name) {
            return Err(Error::invalid_input(format!("two adapters are called {name:?}")));
        }
        if !scale.is_finite() {
            return Err(Error::invalid_input(format!("adapter {name:?}: its scale is {scale}, it must be finite")));
        }
        self.names.push(name.to_owned());
        self.scales.push(scale);
        Ok(())
    }

    /// The adapter of this name.
    pub(super) fn find(&self, name: &str) -> Result<usize> {
        self.names.iter().position(|other| other == name).ok_or_else(|| {
            let known = if self.names.is_empty() {
                "the session was made without any".to_owned()
            } else {
                format!("there are {}", self.names.join(", "))
            };
            Error::invalid_input(format!("no adapter {name:?} is loaded; {known}"))
        })
    }

    /// What a saved sequence says of its adapter.
    pub(super) fn used(&self, adapter: Option<usize>) -> Result<Option<UsedAdapter>> {
        let Some(index) = adapter else { return Ok(None) };
        let (name, scale) = (&self.names[index], self.scales[index]);
        let file = self.loaded[index].fingerprint().map_err(|error| about(name, error))?;
        let fingerprint = Fingerprint::of([file.to_string().as_bytes(), &scale.to_bits().to_le_bytes()]);
        Ok(Some(UsedAdapter::new(name, fingerprint)))
    }

    /// Whether the adapter that a saved sequence was computed with is here.
    pub(super) fn check_used(&self, used: &UsedAdapter) -> Result<()> {
        match self.used(Some(self.find(&used.name)?))? {
            Some(here) => used.check(here.fingerprint),
            None => Ok(()),
        }
    }

    fn name(&self, adapter: Option<usize>) -> Option<&str> {
        adapter.map(|index| self.names[index].as_str())
    }
}

/// The same error, with the name that the session knows the adapter by.
fn about(name: &str, error: Error) -> Error {
    Error::new(error.kind(), format!("adapter {name:?}: {error}")).with_backend(BACKEND).with_source(error)
}

impl Session {
    /// The adapter that a sequence is opened with.
    pub(super) fn adapter_of(&self, options: &OpenOptions) -> Result<Option<usize>> {
        options.adapter.as_deref().map(|name| self.adapters.find(name)).transpose()
    }

    /// The one adapter of all sequences of a batch.
    pub(super) fn adapter_for(&self, batch: &Batch) -> Result<Option<usize>> {
        let mut entries = batch.entries().iter().map(|entry| self.adapted[entry.slot() as usize]).enumerate();
        let Some((_, first)) = entries.next() else { return Ok(None) };
        let Some((index, other)) = entries.find(|&(_, other)| other != first) else { return Ok(first) };
        let named = |adapter| match self.adapters.name(adapter) {
            Some(name) => format!("adapter {name:?}"),
            None => "no adapter".to_owned(),
        };
        Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "entry 0 of the batch has {} and entry {index} has {}: a pass is computed with one; put them in two batches",
                named(first),
                named(other)
            ),
        ))
    }

    /// Has the next pass computed with this adapter. A change costs the library a new plan of its graph, so there is none where
    /// there need not be.
    pub(super) fn set_adapter(&mut self, adapter: Option<usize>) -> Result<()> {
        if self.adapters.set == Some(adapter) {
            return Ok(());
        }
        self.adapters.set = None;
        self.context.set_adapter(adapter.map(|index| (index, self.adapters.scales[index])))?;
        self.adapters.set = Some(adapter);
        Ok(())
    }
}
