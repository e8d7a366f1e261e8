pub(crate) mod detokenize;
