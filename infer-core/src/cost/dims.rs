//! What a transformer looks like.

use crate::{Error, Result};

/// Which linear layers add a bias.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Biases {
    /// None (Llama, Mistral, Qwen3).
    #[default]
    None,
    /// Those that make queries, keys and values (Qwen2).
    Qkv,
    /// All, the norms included (GPT-2).
    All,
}

/// The dimensions of a transformer: a decoder, or an encoder.
///
/// All layers are taken to be alike. Not described: layers of different kinds (a few dense ones before the experts),
/// compressed keys and values (MLA), convolutions and recurrent state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Dims {
    /// Layers: each an attention and the feed-forward behind it.
    pub layers: usize,
    /// Width of the hidden state (`d_model`).
    pub width: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Key/value heads: as many as [`heads`](Self::heads), or fewer in grouped-query attention.
    pub kv_heads: usize,
    /// Width of a head: numbers of one query, key or value.
    pub head_dim: usize,
    /// Entries of the vocabulary.
    pub vocab: usize,
    /// Width of the feed-forward layer, of one expert where there are several. `None` where it is not known: its
    /// matrices are then taken to have 8 × [`width`](Self::width)² elements, which is both 4 × width without a gate and
    /// 8/3 × width with one.
    pub feed_forward: Option<usize>,
    /// The feed-forward layer has a gate: three matrices and not two.
    pub gated: bool,
    /// The output layer uses the matrix of the embedding.
    pub tied: bool,
    /// A text is computed at once and every token sees all others (BERT): no KV cache, and no output layer where it has none of its
    /// own.
    pub encoder: bool,
    /// Learned positions; 0 where positions are computed (rotary).
    pub positions: usize,
    /// Which layers add a bias.
    pub biases: Biases,
    /// Queries and keys are normed head by head (Qwen3).
    pub qk_norm: bool,
    /// Experts a layer; 0 for a dense model.
    pub experts: usize,
    /// Experts that a token goes through, beside the shared ones.
    pub experts_used: usize,
    /// Experts that every token goes through.
    pub experts_shared: usize,
}

impl Dims {
    /// A dense model of these dimensions with a gated feed-forward layer of unknown width, an output layer of its own, no
    /// biases and rotary positions: the Llama family.
    #[must_use]
    pub const fn new(
        layers: usize,
        width: usize,
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
        vocab: usize,
    ) -> Self {
        Self {
            layers,
            width,
            heads,
            kv_heads,
            head_dim,
            vocab,
            feed_forward: None,
            gated: true,
            tied: false,
            encoder: false,
            positions: 0,
            biases: Biases::None,
            qk_norm: false,
            experts: 0,
            experts_used: 0,
            experts_shared: 0,
        }
    }

    /// Sets [`feed_forward`](Self::feed_forward).
    #[must_use]
    pub const fn with_feed_forward(mut self, width: usize) -> Self {
        self.feed_forward = Some(width);
        self
    }

    /// Sets [`gated`](Self::gated).
    #[must_use]
    pub const fn with_gated(mut self, gated: bool) -> Self {
        self.gated = gated;
        self
    }

    /// Sets [`tied`](Self::tied).
    #[must_use]
    pub const fn with_tied(mut self, tied: bool) -> Self {
        self.tied = tied;
        self
    }

    /// Sets [`encoder`](Self::encoder).
    #[must_use]
    pub const fn with_encoder(mut self, encoder: bool) -> Self {
        self.encoder = encoder;
        self
    }

    /// Sets [`positions`](Self::positions).
    #[must_use]
    pub const fn with_positions(mut self, positions: usize) -> Self {
        self.positions = positions;
        self
    }

    /// Sets [`biases`](Self::biases).
    #[must_use]
    pub const fn with_biases(mut self, biases: Biases) -> Self {
        self.biases = biases;
        self
    }

    /// Sets [`qk_norm`](Self::qk_norm).
    #[must_use]
    pub const fn with_qk_norm(mut self, qk_norm: bool) -> Self {
        self.qk_norm = qk_norm;
        self
    }

    /// Sets [`experts`](Self::experts), [`experts_used`](Self::experts_used) and [`experts_shared`](Self::experts_shared).
    #[must_use]
    pub const fn with_experts(mut self, experts: usize, used: usize, shared: usize) -> Self {
        self.experts = experts;
        self.experts_used = used;
        self.experts_shared = shared;
        self
    }

    /// Checks that a model can have these dimensions.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), naming the dimension: one that is 0, heads that do not divide
    /// among key/value heads, more experts used than there are.
    pub fn validate(&self) -> Result<()> {
        let required = [
            ("layers", self.layers),
            ("width", self.width),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("vocab", self.vocab),
            ("feed_forward", self.feed_forward.unwrap_or(1)),
        ];
        if let Some((name, _)) = required.into_iter().find(|&(_, size)| size == 0) {
            return Err(Error::invalid_input(format!("{name} is 0, it must be at least 1")));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            let Self { heads, kv_heads, .. } = self;
            return Err(Error::invalid_input(format!("{heads} heads do not divide among {kv_heads} kv_heads")));
        }
        if self.experts_used > self.experts {
            let Self { experts, experts_used, .. } = self;
            return Err(Error::invalid_input(format!("experts_used is {experts_used}, there are {experts} experts")));
        }
        Ok(())
    }

    /// Whether logits are computed.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        !self.encoder || !self.tied
    }
}
