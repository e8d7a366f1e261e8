use crate::{
    AdapterSource, Error, Result,
    state::{Fingerprint, UsedAdapter},
    testing::cache::mix,
};

/// The adapters of a scripted session. None of their files is opened: one is a name and a scale, and another model's logits.
pub(super) struct Adapters(Vec<AdapterSource>);

impl Adapters {
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a name that is there twice and a scale that is not finite.
    pub(super) fn new(sources: &[AdapterSource]) -> Result<Self> {
        for (index, AdapterSource { name, scale, .. }) in sources.iter().enumerate() {
            if sources[..index].iter().any(|other| other.name == *name) {
                return Err(Error::invalid_input(format!("two adapters are called {name:?}")));
            }
            if !scale.is_finite() {
                return Err(Error::invalid_input(format!("adapter {name:?}: its scale is {scale}, it must be finite")));
            }
        }
        Ok(Self(sources.to_vec()))
    }

    /// The adapter of this name; no name is none.
    pub(super) fn find(&self, name: Option<&str>) -> Result<Option<usize>> {
        let Some(name) = name else { return Ok(None) };
        match self.0.iter().position(|source| source.name == name) {
            Some(index) => Ok(Some(index)),
            None => Err(Error::invalid_input(format!("no adapter {name:?} is loaded"))),
        }
    }

    /// What a saved sequence says of its adapter.
    pub(super) fn used(&self, adapter: Option<usize>) -> Option<UsedAdapter> {
        let AdapterSource { name, scale, .. } = &self.0[adapter?];
        Some(UsedAdapter::new(name, Fingerprint::of([name.as_bytes(), &scale.to_bits().to_le_bytes()])))
    }

    /// The adapter that a saved sequence was computed with.
    pub(super) fn find_used(&self, used: Option<&UsedAdapter>) -> Result<Option<usize>> {
        let adapter = self.find(used.map(|used| used.name.as_str()))?;
        match (used, self.used(adapter)) {
            (Some(used), Some(here)) => used.check(here.fingerprint).map(|()| adapter),
            _ => Ok(adapter),
        }
    }

    fn name(&self, adapter: Option<usize>) -> Option<&str> {
        adapter.map(|index| self.0[index].name.as_str())
    }

    /// A pass is computed with one.
    pub(super) fn check(&self, entries: impl Iterator<Item = Option<usize>>) -> Result<()> {
        let mut entries = entries.enumerate();
        let Some((_, first)) = entries.next() else { return Ok(()) };
        let Some((index, other)) = entries.find(|&(_, other)| other != first) else { return Ok(()) };
        let named = |adapter| self.name(adapter).map_or("no adapter".into(), |name| format!("adapter {name:?}"));
        Err(Error::invalid_input(format!(
            "entry 0 of the batch has {} and entry {index} has {}: a pass is computed with one; put them in two batches",
            named(first),
            named(other)
        )))
    }

    /// What the logits of a sequence with this adapter are made of, where those of the bare model are made of `seed`.
    pub(super) fn seed(&self, adapter: Option<usize>, seed: u64) -> u64 {
        match adapter.map(|index| &self.0[index]) {
            Some(AdapterSource { name, scale, .. }) if *scale != 0.0 => {
                let named = name.bytes().fold(mix(seed), |digest, byte| mix(digest ^ u64::from(byte)));
                mix(named ^ u64::from(scale.to_bits()))
            }
            _ => seed,
        }
    }
}
