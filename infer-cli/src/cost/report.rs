use super::Subject;
use crate::{failure::Failure, output};
use infer::cost::{DtypeWeights, Estimate, Fit, KvType, Setup};
use serde::Serialize;
use std::fmt::Write as _;

/// What `--json` prints; the text has the same numbers.
#[derive(Serialize)]
pub(super) struct Report<'s> {
    model: &'s str,
    parameters: Parameters,
    weights: Weights<'s>,
    /// Those that a token attends to.
    positions: usize,
    /// `None` for an encoder, which has no cache.
    kv: Option<Kv>,
    flops_per_token: Flops,
    memory: Memory,
    /// What to know before it is run so.
    remarks: Vec<String>,
}

#[derive(Serialize)]
struct Parameters {
    total: u64,
    /// Those that one token meets: fewer with experts.
    active: u64,
    embedding: u64,
    attention: u64,
    feed_forward: u64,
    norms_and_biases: u64,
    /// 0 where it is the embedding's matrix, `None` where there is no such layer.
    head: Option<u64>,
}

#[derive(Serialize)]
struct Weights<'s> {
    bytes: u64,
    bits_per_weight: f64,
    by_dtype: &'s [DtypeWeights],
}

#[derive(Serialize)]
struct Kv {
    #[serde(rename = "type")]
    kind: &'static str,
    bytes_per_position: u64,
    positions: usize,
    bytes: u64,
    /// Rows that are taken at once, where they are taken as they are needed; `None` where all are there from the beginning.
    step: Option<usize>,
}

#[derive(Serialize)]
struct Flops {
    /// Every matrix product for a token that attends to `positions`.
    exact: u64,
    projections: u64,
    feed_forward: u64,
    attention: u64,
    /// `None` where there is no such layer.
    head: Option<u64>,
    /// 2 × the parameters a token meets.
    simple: u64,
    /// What the simple formula counts though it is no product: looked-up embeddings, norms, biases.
    simple_counts_too_much: u64,
}

#[derive(Serialize)]
struct Memory {
    weights: u64,
    kv: u64,
    compute: u64,
    /// Tokens computed at once, which `compute` grows with.
    batch: usize,
    total: u64,
    /// `None` where nobody knows how much there is.
    available: Option<u64>,
    fits: Option<bool>,
}

impl<'s> Report<'s> {
    pub(super) fn new(subject: &'s Subject, setup: &Setup, estimate: &Estimate, available: Option<u64>) -> Self {
        let dims = &subject.dims;
        let (parameters, flops) = (dims.parameters(), dims.flops(setup.positions));
        let products = flops.total().saturating_sub(flops.attention);
        Self {
            model: &subject.name,
            parameters: Parameters {
                total: subject.parameters,
                active: if dims.experts == 0 { subject.parameters } else { dims.active_parameters().total() },
                embedding: parameters.embedding,
                attention: parameters.attention,
                feed_forward: parameters.feed_forward,
                norms_and_biases: parameters.norms_and_biases,
                head: dims.has_output().then_some(parameters.head),
            },
            weights: Weights {
                bytes: subject.weights.bytes(),
                bits_per_weight: subject.weights.bits_per_weight(),
                by_dtype: subject.weights.by_dtype(),
            },
            positions: setup.positions,
            kv: (!dims.encoder).then(|| Kv {
                kind: setup.keys.as_str(),
                bytes_per_position: subject.kv.as_ref().map_or_else(
                    || dims.kv_bytes_per_position(setup.keys, setup.values),
                    |(kind, rows)| rows.bytes_per_position(*kind),
                ),
                positions: setup.positions,
                bytes: estimate.kv,
                step: subject.kv.as_ref().map(|(_, rows)| rows.step()),
            }),
            flops_per_token: Flops {
                exact: flops.total(),
                projections: flops.projections,
                feed_forward: flops.feed_forward,
                attention: flops.attention,
                head: dims.has_output().then_some(flops.head),
                simple: dims.simple_flops(),
                simple_counts_too_much: dims.simple_flops().saturating_sub(products),
            },
            memory: Memory {
                weights: estimate.weights,
                kv: estimate.kv,
                compute: estimate.compute,
                batch: setup.batch,
                total: estimate.total(),
                available,
                fits: available.map(|available| matches!(estimate.fit(available), Fit::Fits { .. })),
            },
            remarks: remarks(subject, setup),
        }
    }

    pub(super) fn print(&self, json: bool) -> Result<(), Failure> {
        if json { output::json(self) } else { output::text(&output::printable(&self.text())) }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, value: String| {
            // Infallible: it is a string that is written to.
            let _ = writeln!(text, "{name:<12} {value}");
        };
        let Self { parameters, weights, kv, flops_per_token: flops, memory, .. } = self;
        let positions = output::count(self.positions as u64);
        row("model", self.model.into());
        row("parameters", output::count(parameters.total));
        for (name, count) in [
            ("embedding", Some(parameters.embedding)),
            ("attention", Some(parameters.attention)),
            ("feed-forward", Some(parameters.feed_forward)),
            ("norms, biases", Some(parameters.norms_and_biases)),
            ("output layer", parameters.head),
        ] {
            if let Some(count) = count {
                row("", format!("{:>17} {name}", output::count(count)));
            }
        }
        if parameters.active != parameters.total && parameters.active != 0 {
            row("", format!("{:>17} met by a token", output::count(parameters.active)));
        }
        for dtype in weights.by_dtype {
            row("weights", format!("{} in {}", output::bytes(dtype.bytes), dtype.dtype));
        }
        if let Some(kv) = kv {
            row(
                "KV cache",
                format!(
                    "{} a position, {} at {positions} positions, in {}{}",
                    output::bytes(kv.bytes_per_position),
                    output::bytes(kv.bytes),
                    kv.kind,
                    kv.step.map_or(String::new(), |step| format!(", taken in steps of {step} positions a sequence"))
                ),
            );
        }
        let place = if kv.is_some() { "after" } else { "among" };
        let whole = operations(flops.exact);
        row("a token", format!("{whole} {place} {positions} positions, every matrix product counted:"));
        row(
            "",
            format!(
                "{} projections, {} feed-forward, {} attention{}",
                operations(flops.projections),
                operations(flops.feed_forward),
                operations(flops.attention),
                flops.head.map_or(String::new(), |head| format!(", {} output layer", operations(head)))
            ),
        );
        row(
            "",
            format!(
                "{} by the simple formula, 2 x parameters. It leaves out the attention over the context",
                operations(flops.simple)
            ),
        );
        row(
            "",
            format!(
                "({}), and counts {} for embeddings that are only looked up, norms and biases",
                operations(flops.attention),
                operations(flops.simple_counts_too_much)
            ),
        );
        row(
            "memory",
            format!(
                "{} weights{} + about {} for intermediate results of {} tokens at once = {}",
                output::bytes(memory.weights),
                kv.as_ref().map_or(String::new(), |kv| format!(" + {} KV cache", output::bytes(kv.bytes))),
                output::bytes(memory.compute),
                output::count(memory.batch as u64),
                output::bytes(memory.total)
            ),
        );
        row("", "left out: what the runtime itself takes, and a second copy of weights that are repacked".into());
        if let Some(available) = memory.available {
            let (whole, difference) = (output::bytes(available), output::bytes(available.abs_diff(memory.total)));
            row(
                "fits",
                if memory.total <= available {
                    format!("yes: {difference} are left of {whole}")
                } else {
                    format!("no: {difference} are missing, there are {whole}")
                },
            );
        }
        for remark in &self.remarks {
            row("remark", remark.clone());
        }
        text
    }
}

fn remarks(subject: &Subject, setup: &Setup) -> Vec<String> {
    let Setup { positions, keys: format, .. } = *setup;
    let mut remarks = Vec::new();
    if let Some(trained) = subject.context.filter(|&trained| positions > trained) {
        let (positions, trained) = (output::count(positions as u64), output::count(trained as u64));
        // What keeps rows as they are needed has no more of them than that.
        let then = match subject.kv {
            Some(_) => "no sequence gets that many, but several together may",
            None => "results beyond them may be nonsense, and a model whose positions are learned refuses them",
        };
        remarks.push(format!("{positions} positions are more than the {trained} the model was trained for: {then}"));
    }
    if subject.kv.as_ref().is_some_and(|(_, rows)| rows.has_window(positions)) {
        remarks.push(
            "layers with a sliding window are counted with what they keep at most, and not with every position".into(),
        );
    }
    let (block, head) = (format.block_elements(), subject.dims.head_dim);
    if subject.dims.encoder {
        if format != KvType::F16 {
            remarks.push(format!("an encoder has no KV cache that could be in {format}"));
        }
    } else if !head.is_multiple_of(block) {
        remarks.push(format!(
            "a session with a KV cache in {format} is refused: that comes in blocks of {block} numbers, and a head of this model has {head}"
        ));
    }
    remarks
}

/// A number of floating-point operations, in the unit that gives one to four digits before the point.
fn operations(count: u64) -> String {
    const UNITS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    let power =
        (0..UNITS.len() - 1).find(|&power| count / 1000_u64.pow(power as u32) < 1000).unwrap_or(UNITS.len() - 1);
    let value = count as f64 / 1000_f64.powi(power as i32);
    format!("{value:.*} {}FLOP", if power == 0 { 0 } else { 2 }, UNITS[power])
}

#[cfg(test)]
mod tests {
    use super::operations;

    #[test]
    fn operations_have_the_unit_that_reads_best() {
        assert_eq!(
            [0, 999, 1000, 8_044_936_192, u64::MAX].map(operations),
            ["0 FLOP", "999 FLOP", "1.00 kFLOP", "8.04 GFLOP", "18.45 EFLOP"]
        );
    }
}
