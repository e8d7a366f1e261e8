pub(crate) mod counting;
