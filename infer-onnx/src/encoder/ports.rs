//! What a graph of an encoder takes and gives, by the names that exporters give these.

use super::pooling::Rows;
use crate::{DType, Dim, Port, ValueType, error::BACKEND, raw::Value};
use infer_core::{Error, Result, Token, huggingface::PairForm};

/// Outputs with a hidden state for each token.
const HIDDEN: [&str; 3] = ["last_hidden_state", "token_embeddings", "hidden_states"];
/// Outputs with a vector for each text.
const POOLED: [&str; 2] = ["sentence_embedding", "text_embeds"];
/// The output of a classification head.
const SCORES: &str = "logits";

/// Tokens of the largest table that a graph may insist on: each run fills all of it.
const MOST: usize = 1 << 22;

/// Which of a session's inputs and outputs are what.
#[derive(Debug)]
pub(super) struct Ports {
    pub(super) inputs: Vec<Input>,
    pub(super) output: Output,
    /// Rows and columns that the graph insists on.
    fixed: [Option<usize>; 2],
    /// What stands between two texts that are compared, where it matters to the graph which is which.
    between: Vec<Token>,
    /// The types of tokens of the first and of the second text.
    types: [u32; 2],
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Input {
    pub(super) index: usize,
    pub(super) dtype: DType,
    pub(super) what: What,
}

/// What is fed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum What {
    Tokens,
    /// 1 for each token, 0 behind them.
    Mask,
    /// Which of two texts a token is of.
    Types,
    Positions,
}

/// An output that vectors are made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Output {
    pub(super) index: usize,
    /// Whether it has one row a text, not one a token.
    pub(super) is_pooled: bool,
}

/// The outputs that a graph has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Given {
    /// Hidden states.
    pub(super) hidden: Option<Output>,
    /// A vector for each text.
    pub(super) pooled: Option<Output>,
    /// A score for each text and label.
    pub(super) scores: Option<Output>,
}

impl Given {
    pub(super) fn of(outputs: &[Port]) -> Self {
        // A graph may leave the rank of an output open; the first run shows it.
        let has_rank = |port: &Port, rank| match &port.kind {
            ValueType::Tensor { dims, .. } => dims.as_ref().is_none_or(|dims| dims.len() == rank),
            _ => false,
        };
        let named = |names: &[&str], rank, is_pooled| {
            let found = names.iter().find_map(|name| outputs.iter().position(|port| port.name == *name));
            found.filter(|&index| has_rank(&outputs[index], rank)).map(|index| Output { index, is_pooled })
        };
        Self { hidden: named(&HIDDEN, 3, false), pooled: named(&POOLED, 2, true), scores: named(&[SCORES], 2, true) }
    }
}

impl What {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "input_ids" => Self::Tokens,
            "attention_mask" => Self::Mask,
            "token_type_ids" => Self::Types,
            "position_ids" => Self::Positions,
            _ => return None,
        })
    }

    /// A row of `columns` numbers.
    pub(super) fn numbers<'t>(
        self,
        text: &'t [Token],
        columns: usize,
        padding: Token,
        ports: &Ports,
    ) -> impl Iterator<Item = i64> + 't {
        let (second, types) = (if self == Self::Types { ports.second(text) } else { 0 }, ports.types);
        (0..columns).map(move |place| match (self, text.get(place)) {
            (Self::Tokens, token) => token.unwrap_or(&padding).0.into(),
            (Self::Mask, token) => i64::from(token.is_some()),
            (Self::Types, token) => types[usize::from(token.is_some() && place >= second)].into(),
            // Behind a text too: these are looked up.
            (Self::Positions, _) => place as i64,
        })
    }
}

impl Ports {
    /// Finds what it takes. `pair` is how two texts are joined.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) for a graph that is no encoder of text.
    pub(super) fn new(inputs: &[Port], output: Output, pair: Option<&PairForm>) -> Result<Self> {
        let mut ports = Self { inputs: Vec::new(), output, fixed: [None; 2], between: Vec::new(), types: [0; 2] };
        if let Some(pair) = pair {
            (ports.between, ports.types) = (pair.between().to_vec(), pair.types());
        }
        for (index, port) in inputs.iter().enumerate().filter(|(_, port)| !port.has_default) {
            let Some(what) = What::named(&port.name) else {
                return Err(unsupported(format!(
                    "the graph asks for `{}`, which encoders of text do not: it is another kind of model",
                    port.name
                )));
            };
            let (dtype, dims) = table(&port.kind).ok_or_else(|| {
                unsupported(format!(
                    "the graph's `{}` is {}, and no table of integers, [texts, tokens]",
                    port.name, port.kind
                ))
            })?;
            for (fixed, dim) in ports.fixed.iter_mut().zip(dims) {
                if let Dim::Fixed(length) = dim {
                    *fixed = Some(*length);
                }
            }
            ports.inputs.push(Input { index, dtype, what });
        }
        if !ports.inputs.iter().any(|input| input.what == What::Tokens) {
            return Err(unsupported("the graph has no input `input_ids`: it is no encoder of text"));
        }
        let [rows, columns] = ports.fixed.map(|length| length.unwrap_or(1));
        if !rows.checked_mul(columns).is_some_and(|tokens| (1..=MOST).contains(&tokens)) {
            return Err(unsupported(format!("the graph insists on {rows} texts of {columns} tokens at once")));
        }
        Ok(ports)
    }

    /// Rows and columns of the tables for so many texts of up to so many tokens.
    pub(super) fn shape(&self, texts: usize, longest: usize) -> [usize; 2] {
        let [rows, columns] = self.fixed;
        [rows.unwrap_or(texts), columns.unwrap_or(longest)]
    }

    /// Texts a pass has, and tokens a text, where the graph takes no other number.
    pub(super) fn fixed(&self) -> [Option<usize>; 2] {
        self.fixed
    }

    /// Whether the graph can tell a text from what is behind it.
    pub(super) fn is_masked(&self) -> bool {
        self.inputs.iter().any(|input| input.what == What::Mask)
    }

    /// Where the second of two texts begins; at the end, if there is one only.
    fn second(&self, text: &[Token]) -> usize {
        let between = &self.between[..];
        if between.is_empty() || self.types[0] == self.types[1] {
            return text.len();
        }
        text.windows(between.len()).position(|tokens| tokens == between).map_or(text.len(), |at| at + between.len())
    }

    /// What a run has given for tables of this shape, if it is as it should be: numbers for each text, or for each of its tokens.
    pub(super) fn rows<'v>(&self, output: &'v Value, shape: [usize; 2]) -> Result<Rows<'v>> {
        let [texts, tokens] = shape.map(|length| length as i64);
        let width = match *output.shape() {
            [rows, width] if self.output.is_pooled && rows == texts => usize::try_from(width).ok(),
            [rows, columns, width] if !self.output.is_pooled && [rows, columns] == [texts, tokens] => {
                usize::try_from(width).ok()
            }
            _ => None,
        };
        let rows = width.zip(output.dtype()).and_then(|(width, dtype)| Rows::new(dtype, output.bytes(), width));
        rows.ok_or_else(|| {
            let wanted = if self.output.is_pooled { format!("[{texts}, …]") } else { format!("[{texts}, {tokens}, …]") };
            unsupported(format!(
                "the graph gives {} of the shape {:?} for {texts} texts of {tokens} tokens, where floating-point numbers of {wanted} are \
                 expected",
                output.dtype().map_or("no tensor", DType::as_str),
                output.shape()
            ))
        })
    }
}

/// Type and dimensions of a table of integers, where their number is said.
fn table(kind: &ValueType) -> Option<(DType, &[Dim])> {
    match kind {
        ValueType::Tensor { dtype: dtype @ (DType::I64 | DType::I32), dims } => match dims.as_deref() {
            None => Some((*dtype, &[])),
            Some(dims @ [_, _]) => Some((*dtype, dims)),
            Some(_) => None,
        },
        _ => None,
    }
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported(message).with_backend(BACKEND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use infer_core::ErrorKind;

    const POOLED: Output = Output { index: 0, is_pooled: true };

    fn port(name: &str, dtype: DType, shape: &[i64]) -> Port {
        let dim = |&length: &i64| usize::try_from(length).map_or(Dim::Dynamic(None), Dim::Fixed);
        let kind = ValueType::Tensor { dtype, dims: Some(shape.iter().map(dim).collect()) };
        Port { name: name.to_owned(), kind, has_default: false }
    }

    fn fed(what: What, text: &[u32], columns: usize, between: &[u32]) -> Vec<i64> {
        let tokens = |ids: &[u32]| ids.iter().map(|&id| Token(id)).collect::<Vec<_>>();
        let inputs = [port("input_ids", DType::I64, &[-1, -1])];
        let mut ports = Ports::new(&inputs, POOLED, None).unwrap();
        (ports.between, ports.types) = (tokens(between), [0, 1]);
        what.numbers(&tokens(text), columns, Token(9), &ports).collect()
    }

    #[test]
    fn what_is_behind_a_text_is_padding_that_the_mask_tells() {
        assert_eq!(fed(What::Tokens, &[5, 6, 7], 5, &[]), [5, 6, 7, 9, 9]);
        assert_eq!(fed(What::Mask, &[5, 6, 7], 5, &[]), [1, 1, 1, 0, 0]);
        assert_eq!(fed(What::Positions, &[5, 6, 7], 5, &[]), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_second_of_two_texts_is_behind_what_stands_between() {
        // [CLS] 5 6 [SEP] 7 [SEP]
        assert_eq!(fed(What::Types, &[1, 5, 6, 2, 7, 2], 8, &[2]), [0, 0, 0, 0, 1, 1, 0, 0]);
        // A text alone ends with what else stands between two.
        assert_eq!(fed(What::Types, &[1, 5, 6, 2], 4, &[2]), [0, 0, 0, 0]);
        assert_eq!(fed(What::Types, &[1, 5, 2, 2, 7, 2], 6, &[2, 2]), [0, 0, 0, 0, 1, 1]);
        assert_eq!(fed(What::Types, &[1, 5, 2, 7, 2], 5, &[]), [0; 5]);
    }

    #[test]
    fn graphs_that_are_no_encoders_of_text_say_why() {
        let ids = || port("input_ids", DType::I64, &[-1, -1]);
        for (inputs, said) in [
            (vec![ids(), port("past_key_values.0.key", DType::F32, &[-1, 3, -1, 64])], "`past_key_values.0.key`"),
            (vec![port("attention_mask", DType::I64, &[-1, -1])], "no input `input_ids`"),
            (vec![port("input_ids", DType::F32, &[-1, -1])], "`input_ids` is "),
            (vec![port("input_ids", DType::I64, &[-1])], "no table of integers"),
            (vec![port("input_ids", DType::I64, &[0, -1])], "insists on 0 texts"),
            (vec![port("input_ids", DType::I64, &[-1, 1 << 40])], "of 1099511627776 tokens"),
            (vec![port("input_ids", DType::I64, &[1 << 40, 1 << 40])], "insists on"),
        ] {
            let error = Ports::new(&inputs, POOLED, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(said), "{error}");
        }
        let fixed = [port("input_ids", DType::I32, &[-1, 128]), port("attention_mask", DType::I32, &[2, -1])];
        let ports = Ports::new(&fixed, POOLED, None).unwrap();
        assert_eq!((ports.fixed(), ports.shape(1, 5), ports.is_masked()), ([Some(2), Some(128)], [2, 128], true));
    }

    #[test]
    fn outputs_are_known_by_name_and_rank() {
        let numbers = |name, shape: &[i64]| port(name, DType::F32, shape);
        let outputs = [numbers("token_embeddings", &[-1, -1, 384]), numbers("sentence_embedding", &[-1, 384])];
        let given = Given::of(&outputs);
        assert_eq!(given.hidden, Some(Output { index: 0, is_pooled: false }));
        assert_eq!((given.pooled, given.scores), (Some(Output { index: 1, is_pooled: true }), None));
        assert_eq!(Given::of(&[numbers("logits", &[-1, 2])]).scores, Some(POOLED));
        // One a token.
        assert_eq!(Given::of(&[numbers("logits", &[-1, -1, 2]), numbers("score", &[-1, 2])]), Given::default());
    }
}
