pub(crate) mod counting;
pub(crate) mod detokenize;
