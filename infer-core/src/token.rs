/// The id of one entry of a vocabulary, 0-based.
///
/// The layout is that of a `u32`, so that a slice of tokens can be handed to native code without a copy. Ids are
/// checked against the vocabulary where they enter a session ([`Slots::check`](crate::Slots::check)), not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[repr(transparent)]
pub struct Token(pub u32);

impl Token {
    /// The id as an index into a table of the vocabulary's size.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<u32> for Token {
    fn from(id: u32) -> Self {
        Self(id)
    }
}

impl From<Token> for u32 {
    fn from(token: Token) -> Self {
        token.0
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
