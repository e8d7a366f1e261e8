//! SmolLM2 beside mlx-lm: the same folder, the same tokens. In 32-bit floats, and in 4 bits, which is information.
//!
//! Each side is a process, and both of them are there all the time: this one, and Python's twice. They take turns, and the best of their
//! rounds counts. What is timed are the calls that compute: neither making a generator or a sequence, nor the way to the other process.
//!
//! Texts are short here: MLX for Linux multiplies matrices one number after the other, so that mlx-lm takes as long for each token of a prompt as
//! for one that it draws, a tenth of a second and more.

use crate::setting::{Greedy, folder, mlx, open};
use infer::{Special, Token, Tokenizer as _};
use infer_benches::{
    Bar, Figure, Run,
    turns::{Times, take, timed},
};
use infer_mlx::Mlx;
use kit::script::Script;
use serde_json::{Value, json};
use std::time::Duration;

const OURS: usize = 0;
const THEIRS: usize = 1;
const THEIRS_AGAIN: usize = 2;

const FLOATS: &str = "smollm2-mlx";
const QUANTISED: &str = "smollm2-mlx-4bit";
const CONTEXT: usize = 512;
/// Texts of a batch.
const STREAMS: usize = 8;
/// Tokens of a short prompt.
const SHORT: usize = 4;

/// How much is computed.
struct Load {
    rounds: usize,
    /// Tokens of the long prompt, whose prefill is timed.
    prompt: usize,
    /// Tokens that are drawn after a short one, by one text and by each of a batch.
    steps: [usize; 2],
}

const FULL: Load = Load { rounds: 5, prompt: 64, steps: [32, 8] };
const QUICK: Load = Load { rounds: 1, prompt: 16, steps: [4, 2] };

/// What share of the tokens has to be the same on both sides: they add numbers in another order, and after a near-tie a text is another.
const ALIKE: f64 = 0.75;

/// The tokens of each text, and how long their prompts and the steps after them took.
type Drawn = (Vec<Vec<Token>>, [Duration; 2]);
const PREFILL: usize = 0;
const DECODE: usize = 1;

pub(crate) fn measure(run: &mut Run) {
    let load = if run.quick() { QUICK } else { FULL };
    let [one, many] = load.steps;
    let mut sides = Sides::new(FLOATS);
    run.progress(&format!("prefill of {} tokens, {one} steps of a text and {many} of {STREAMS}", load.prompt));
    let (long, short) = (sides.texts(1, load.prompt), sides.texts(1, SHORT));
    let bar = Some(Bar::AtLeast(1.0));
    figures(run, "mlx/prefill", bar, &sides.times(load.rounds, &long, 1, PREFILL), load.prompt);
    figures(run, "mlx/decode", bar, &sides.times(load.rounds, &short, one + 1, DECODE), one);
    let batch = sides.texts(STREAMS, SHORT);
    figures(run, "mlx/batch", bar, &sides.times(load.rounds, &batch, many + 1, DECODE), many * STREAMS);
    counted(run, &mut sides, "mlx/decode", &short, one);
    counted(run, &mut sides, "mlx/batch", &batch, many);
}

/// In 4 bits, and 8 for the output layer: MLX's own products, on both sides.
pub(crate) fn measure_quantised(run: &mut Run) {
    let load = if run.quick() { QUICK } else { FULL };
    let steps = load.steps[0];
    let mut sides = Sides::new(QUANTISED);
    run.progress(&format!("{steps} steps of a text in 4 bits"));
    let short = sides.texts(1, SHORT);
    figures(run, "mlx/4bit", None, &sides.times(load.rounds, &short, steps + 1, DECODE), steps);
}

fn figures(run: &mut Run, name: &str, bar: Option<Bar>, times: &Times<3>, tokens: usize) {
    let theirs = times.best(THEIRS).min(times.best(THEIRS_AGAIN));
    let figure = Figure::new(name.to_owned(), theirs / times.best(OURS), "mlx-lm/ours")
        .with_against_itself(times.best(THEIRS) / times.best(THEIRS_AGAIN))
        .with_note(format!("best of {} rounds in turns", times.rounds()));
    run.timing(match bar {
        Some(bar) => figure.with_bar(bar),
        None => figure,
    });
    let per_second = |seconds| tokens as f64 / seconds;
    let note = format!("mlx-lm {:.2}", per_second(theirs));
    run.timing(Figure::new(format!("{name}/rate"), per_second(times.best(OURS)), "tokens/s").with_note(note));
}

/// How often a step evaluates, and how often it calls the library.
fn counted(run: &mut Run, sides: &mut Sides, name: &str, prompts: &[Vec<Token>], steps: usize) {
    let mut counts = [(0, 0); 2];
    // A prompt alone, and then with steps after it.
    for (count, texts) in counts.iter_mut().zip([1, steps + 1]) {
        let before = (sides.mlx.evals(), sides.mlx.crossings());
        sides.ours(prompts, texts);
        *count = (sides.mlx.evals() - before.0, sides.mlx.crossings() - before.1);
    }
    let [alone, whole] = counts;
    let a_step = |whole: u64, alone: u64| whole.saturating_sub(alone) as f64 / steps as f64;
    let texts = prompts.len();
    let evals = Figure::new(format!("{name}/evals"), a_step(whole.0, alone.0), "evaluations a step");
    run.figure(evals.with_bar(Bar::AtMost(1.0)).with_note(format!("of {texts} texts")));
    let crossings = Figure::new(format!("{name}/crossings"), a_step(whole.1, alone.1), "calls of the library a step");
    run.figure(crossings.with_note(format!("of {texts} texts, in a model of 30 layers")));
}

/// What share of all tokens there is before two sides part, text by text.
fn alike(ours: &[Vec<Token>], theirs: &[Vec<Token>]) -> f64 {
    let same = |(ours, theirs): (&Vec<Token>, &Vec<Token>)| ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    let (same, all) = (ours.iter().zip(theirs).map(same).sum::<usize>(), theirs.iter().map(Vec::len).sum::<usize>());
    same as f64 / all as f64
}

struct Sides {
    greedy: Greedy,
    words: Vec<Token>,
    theirs: [Script; 2],
    mlx: Mlx,
}

impl Sides {
    fn new(name: &str) -> Self {
        let mlx = mlx();
        let model = open(&mlx, name);
        let greedy = Greedy::new(&model, CONTEXT, STREAMS);
        let mut words = Vec::new();
        model.tokenizer().encode(&kit::prompts::logbook(60), Special::NONE, &mut words).expect("a text encodes");
        let start = || Script::start("mlx_lm_generate.py", [folder(name)]).unwrap_or_else(|error| panic!("{error}"));
        Self { greedy, words, theirs: [start(), start()], mlx }
    }

    /// So many texts, which begin in different places.
    fn texts(&self, count: usize, length: usize) -> Vec<Vec<Token>> {
        (0..count).map(|text| self.words[text * 5..][..length].to_vec()).collect()
    }

    /// How long a part takes, for all sides. They have to draw the same tokens, but for near-ties.
    fn times(&mut self, rounds: usize, prompts: &[Vec<Token>], count: usize, part: usize) -> Times<3> {
        let wanted = self.ours(prompts, count).0;
        let mut round = |who: usize| {
            let (tokens, times) = match who {
                OURS => self.ours(prompts, count),
                _ => self.theirs(who - THEIRS, prompts, count),
            };
            let share = alike(&tokens, &wanted);
            assert!(share >= ALIKE, "only {share:.2} of the tokens are the same on both sides");
            times[part]
        };
        // By then memory was touched once.
        take::<3>(1, |who, _| round(who));
        take::<3>(rounds, |who, _| round(who))
    }

    /// Our tokens, and how long the prompts and the steps after them took.
    fn ours(&mut self, prompts: &[Vec<Token>], count: usize) -> Drawn {
        let seqs: Vec<_> = prompts.iter().map(|_| self.greedy.open()).collect();
        let fed: Vec<_> = seqs.iter().zip(prompts).map(|(seq, prompt)| (seq, &prompt[..])).collect();
        let (prefill, first) = timed(|| self.greedy.step(&fed));
        let mut tokens: Vec<_> = first.into_iter().map(|token| vec![token]).collect();
        let (decode, ()) = timed(|| {
            for at in 1..count {
                let fed: Vec<_> = seqs.iter().zip(&tokens).map(|(seq, tokens)| (seq, &tokens[at - 1..])).collect();
                let next = self.greedy.step(&fed);
                tokens.iter_mut().zip(next).for_each(|(tokens, next)| tokens.push(next));
            }
        });
        (tokens, [prefill, decode])
    }

    fn theirs(&mut self, which: usize, prompts: &[Vec<Token>], count: usize) -> Drawn {
        let ids: Vec<Vec<u32>> = prompts.iter().map(|prompt| prompt.iter().map(|token| token.0).collect()).collect();
        let task = match &ids[..] {
            [prompt] => json!({ "prompt": prompt, "count": count, "on": true }),
            prompts => json!({ "prompts": prompts, "count": count, "on": true }),
        };
        let answer = self.theirs[which].ask(&task.to_string()).unwrap_or_else(|error| panic!("{error}"));
        let answer: Value = serde_json::from_str(&answer).expect("a line of JSON");
        let ids: Vec<Vec<u32>> = match ids.len() {
            1 => vec![serde_json::from_value(answer["tokens"].clone()).expect("a list of tokens")],
            _ => serde_json::from_value(answer["tokens"].clone()).expect("a list of tokens a text"),
        };
        let seconds = |part: &str| Duration::from_secs_f64(answer[part].as_f64().expect("a number of seconds"));
        let tokens = ids.into_iter().map(|ids| ids.into_iter().map(Token).collect()).collect();
        (tokens, [seconds("prefill"), seconds("decode")])
    }
}
