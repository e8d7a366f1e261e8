//! `infer cost`: what a model takes, before it is downloaded or loaded.

mod config;
mod report;

use crate::{failure::Failure, output};
use infer::{
    Error,
    cost::{Dims, Estimate, KvRows, KvType, Setup, Weights},
};
use report::Report;
use std::path::PathBuf;

/// Count what a model costs: weights, KV cache, work a token, and whether it fits. From metadata alone.
#[derive(clap::Args, Debug)]
pub(crate) struct Cost {
    /// A model file, or for MLX its folder.
    #[arg(conflicts_with = "config")]
    path: Option<PathBuf>,

    /// A config.json, as the Hugging Face hub has them.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,

    #[command(flatten)]
    dims: DimArgs,

    /// Positions in the KV cache, over all sequences; what the model was trained for if not given, or 4096.
    #[arg(long, short, value_name = "N")]
    ctx: Option<usize>,

    /// The number format of the KV cache; f16 if not given, with MLX what the model computes in, which is all there is.
    #[arg(long, value_name = "TYPE")]
    kv: Option<KvType>,

    /// Whether it fits in this much, such as 16GiB; what this process can have now if not given.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<u64>,

    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Without a file")]
#[group(conflicts_with_all = ["path", "config"], multiple = true)]
struct DimArgs {
    /// Blocks.
    #[arg(long, value_name = "N")]
    layers: Option<usize>,

    /// Width of the hidden state.
    #[arg(long, value_name = "N")]
    d_model: Option<usize>,

    /// Query heads.
    #[arg(long, value_name = "N")]
    heads: Option<usize>,

    /// Key/value heads; as many as --heads if not given.
    #[arg(long, value_name = "N")]
    kv_heads: Option<usize>,

    /// Width of a head; --d-model over --heads if not given.
    #[arg(long, value_name = "N")]
    head_dim: Option<usize>,

    /// Entries of the vocabulary.
    #[arg(long, value_name = "N")]
    vocab: Option<usize>,

    /// Width of the feed-forward layer; if not given, its matrices are taken to have 8 x d-model x d-model elements.
    #[arg(long, value_name = "N")]
    ff: Option<usize>,

    /// The feed-forward layer has no gate, as in GPT-2.
    #[arg(long)]
    no_gate: bool,

    /// The output layer uses the matrix of the embedding.
    #[arg(long)]
    tied: bool,

    /// The number format of the weights.
    #[arg(long, value_name = "TYPE", default_value_t = KvType::F16)]
    dtype: KvType,
}

/// What is counted.
struct Subject {
    name: String,
    dims: Dims,
    /// All parameters there are: what the file has, or what the dimensions give.
    parameters: u64,
    weights: Weights,
    context: Option<usize>,
    /// The KV cache, where it is not for the options of a session to choose.
    kv: Option<(KvType, KvRows)>,
}

impl Cost {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let subject = self.subject()?;
        let positions = match (self.ctx, subject.context) {
            (Some(0) | None, Some(trained)) => trained,
            (Some(0) | None, None) => 4096,
            (Some(positions), _) => positions,
        };
        let kv = self.kv_type(&subject)?;
        let mut setup = Setup::new(positions).with_kv(kv, kv);
        if subject.dims.encoder {
            // A text cannot be cut, and there is room for logits of all its tokens also where nothing computes any.
            setup = setup.with_batch(positions).with_outputs(positions);
        }
        let mut estimate = Estimate::new(&subject.dims, subject.weights.bytes(), &setup);
        if let Some((_, rows)) = &subject.kv {
            estimate.kv = rows.bytes(kv, positions);
        }
        let memory = self.memory.or_else(|| Some(infer::machine::available_memory()?.bytes));
        Report::new(&subject, &setup, &estimate, memory).print(self.json)
    }

    fn kv_type(&self, subject: &Subject) -> Result<KvType, Failure> {
        match (self.kv, &subject.kv) {
            (Some(asked), Some((kind, _))) if asked != *kind => Err(Error::unsupported(format!(
                "there is no KV cache in {asked} for {}: the backend keeps keys and values in what the model computes in, which is {kind}; \
                 leave --kv out",
                subject.name
            ))
            .into()),
            (_, Some((kind, _))) => Ok(*kind),
            (asked, None) => Ok(asked.unwrap_or_default()),
        }
    }

    fn subject(&self) -> Result<Subject, Failure> {
        match (&self.path, &self.config) {
            (Some(path), _) => of_file(path),
            (None, Some(path)) => {
                let config = config::read(path)?;
                let dtype = config.dtype.as_deref().map_or(Ok(KvType::F16), named_format).map_err(|error| {
                    Error::invalid_input(format!("{}: the number format of the weights: {error}", path.display()))
                })?;
                Ok(Subject::of_dims(config.architecture, config.dims, dtype, config.context))
            }
            (None, None) => {
                let dims = self.dims.dims()?;
                Ok(Subject::of_dims("these dimensions".into(), dims, self.dims.dtype, None))
            }
        }
    }
}

impl DimArgs {
    fn dims(&self) -> Result<Dims, Failure> {
        let (Some(layers), Some(width), Some(heads), Some(vocab)) = (self.layers, self.d_model, self.heads, self.vocab)
        else {
            let given = [
                ("--layers", self.layers),
                ("--d-model", self.d_model),
                ("--heads", self.heads),
                ("--vocab", self.vocab),
            ];
            let missing: Vec<_> = given.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name).collect();
            return Err(Failure::Usage(format!(
                "give a model file, --config, or dimensions; missing: {}",
                missing.join(" ")
            )));
        };
        let head_dim = self.head_dim.or(width.checked_div(heads)).unwrap_or(0);
        let mut dims = Dims::new(layers, width, heads, self.kv_heads.unwrap_or(heads), head_dim, vocab)
            .with_gated(!self.no_gate)
            .with_tied(self.tied);
        if let Some(inner) = self.ff {
            dims = dims.with_feed_forward(inner);
        }
        dims.validate().map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(dims)
    }
}

impl Subject {
    fn of_dims(name: String, dims: Dims, dtype: KvType, context: Option<usize>) -> Self {
        let parameters = dims.parameters().total();
        let mut weights = Weights::default();
        weights.add(dtype.as_str(), parameters, dtype.bytes(parameters));
        Self { name, dims, parameters, weights, context, kv: None }
    }
}

fn of_file(path: &std::path::Path) -> Result<Subject, Failure> {
    let file = infer::inspect(path)?;
    // Values are shown as they are written in code, with quotes.
    if file.metadata.iter().any(|(name, value)| name == "general.type" && value == "\"adapter\"") {
        return Err(Error::unsupported(format!(
            "{} is an adapter, not a model: {} parameters in {}, which come to what its model costs; name the model's file",
            path.display(),
            output::count(file.info.parameters),
            output::bytes(file.weights.bytes())
        ))
        .into());
    }
    let Some(dims) = file.dims else {
        return Err(Error::unsupported(format!(
            "{} has the architecture `{}`, whose cost is not described by the formulas for transformers; `infer inspect` \
             shows its weights",
            path.display(),
            file.info.architecture
        ))
        .into());
    };
    let context = Some(file.info.context).filter(|&context| context > 0);
    Ok(Subject {
        name: file.info.description.clone(),
        dims,
        parameters: file.info.parameters,
        weights: file.weights,
        context,
        kv: file.kv,
    })
}

/// A number format by the name that a config.json uses.
fn named_format(name: &str) -> Result<KvType, Error> {
    match name {
        "float32" => Ok(KvType::F32),
        "float16" => Ok(KvType::F16),
        "bfloat16" => Ok(KvType::Bf16),
        other => other.parse(),
    }
}

/// `1500`, `16GiB` or `16G` (powers of 1,024), `16GB` (powers of 1,000).
fn bytes(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim().to_ascii_lowercase();
    let power = match unit.chars().next() {
        None | Some('b') => 0,
        Some(prefix) => "kmgtp".find(prefix).map_or(u32::MAX, |at| at as u32 + 1),
    };
    let base: u64 = match unit.get(1..).unwrap_or_default() {
        "" | "ib" if power <= 5 => 1024,
        "b" if power <= 5 => 1000,
        _ => return Err("a number of bytes is wanted, such as 17179869184, 16GiB or 16GB".into()),
    };
    let number: f64 = number.parse().map_err(|_| "a number of bytes is wanted, such as 16GiB")?;
    Ok((number * base.pow(power) as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_both_kinds_of_units() {
        for (text, count) in [
            ("0", 0),
            ("1500", 1500),
            ("1500B", 1500),
            ("16GiB", 16 << 30),
            ("16G", 16 << 30),
            ("16 gib", 16 << 30),
            ("1.5k", 1536),
            ("16GB", 16_000_000_000),
        ] {
            assert_eq!(bytes(text), Ok(count), "{text}");
        }
        for text in ["", "GiB", "16Q", "16GiBs", "-1", "1.2.3G", "∞", "16€"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
