//! One prompt through llama.cpp, ONNX Runtime and MLX, with the same weights in each one's format: their tokens side by side.
//!
//! `cargo run -p infer-examples --bin three_runtimes -- GGUF ONNX-FOLDER MLX-FOLDER [PROMPT [TOKENS]]`
//!
//! `cargo xtask model smollm2-f32`, `smollm2-onnx` and `smollm2-mlx` print the paths of three that are the same numbers of 32 bits.

use infer::{Backend, Completion, Engine, ModelSource, Request, Sampled, Sampling, Token};

/// What one runtime made of the prompt.
struct Run {
    backend: Backend,
    engine: Engine,
    done: Completion,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let paths: Vec<String> = arguments.by_ref().take(3).collect();
    if paths.len() < 3 {
        return Err("which models? one for each of llama.cpp, ONNX Runtime and MLX".into());
    }
    let prompt = arguments.next().unwrap_or_else(|| "The capital of France is".to_owned());
    let count = arguments.next().map_or(Ok(24), |count| count.parse())?;

    // The two best tokens of each place are told as well: how far one was ahead of the other says how sure the choice was.
    let request = Request::text(prompt).with_max_tokens(count).with_sampling(Sampling::greedy().with_logprobs(2));
    let mut runs = Vec::new();
    for path in paths {
        // Whichever runtime it is, its session lives on a thread of the engine's own, as MLX demands.
        let source = ModelSource::new(path);
        let backend = source.backend()?;
        let engine = Engine::builder(source).with_sequences(1).with_context(512).build()?;
        let done = engine.generate(request.clone()).complete()?;
        runs.push(Run { backend, engine, done });
    }

    let places = runs.iter().map(|run| run.done.tokens.len()).min().unwrap_or(0);
    println!("    {}", runs.iter().map(|run| format!("{:<28}", run.backend.name())).collect::<String>().trim_end());
    let mut parted = None;
    for place in 0..places {
        let cells = runs.iter().map(|run| run.cell(place)).collect::<infer::Result<String>>()?;
        let differ = runs.iter().any(|run| run.token(place) != runs[0].token(place));
        println!("{place:>3} {}{}", cells.trim_end(), if differ && parted.is_none() { "  <-" } else { "" });
        parted = parted.or(differ.then_some(place));
    }
    match parted {
        None => println!("the same {places} tokens in all of them"),
        // What is rounded differently matters where two tokens are as good as equally probable. From there on each goes on from its own text.
        Some(place) => {
            let leads = runs.iter().map(|run| format!("{} by {:.4}", run.backend, run.lead(place)));
            let leads = leads.collect::<Vec<_>>().join(", ");
            println!("the same until place {place}, where the best token leads the next one in {leads}");
        }
    }
    Ok(())
}

impl Run {
    fn token(&self, place: usize) -> Token {
        self.done.tokens[place].token
    }

    /// A token as text, with its log-probability.
    fn cell(&self, place: usize) -> infer::Result<String> {
        let Sampled { token, logprob, .. } = self.done.tokens[place];
        let text = format!("{:?}", self.engine.detokenize(&[token])?);
        Ok(format!("{text:<18} {logprob:>8.4} "))
    }

    /// How much more log-probability the best token has than the next.
    fn lead(&self, place: usize) -> f32 {
        let best = &self.done.top[place];
        best[0].logprob - best[1].logprob
    }
}
