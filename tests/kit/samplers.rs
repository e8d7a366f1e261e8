//! What llama.cpp's own samplers leave of a row of logits, and with which probabilities.

use crate::peer::{Over, Program, text};
use infer::{Sampling, Token};
use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{ChildStdin, ChildStdout, Command, Output, Stdio},
    thread::JoinHandle,
};

/// llama.cpp's samplers, in a C program that answers until this is dropped.
#[derive(Debug)]
pub struct Samplers {
    ends: Option<JoinHandle<Output>>,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    _program: Program,
}

impl Samplers {
    /// Compiles the program into `folder` and starts it. DRY's breakers are looked for in the vocabulary of `model`.
    ///
    /// # Errors
    /// There is no build of llama.cpp in the cache, no source tree with its headers, or no C compiler: says which.
    pub fn start(folder: &Path, model: &Path) -> Result<Self, String> {
        let program = Program::build("samplers", Over::Archives, folder)?;
        let mut child = Command::new(&program.0)
            .arg(model)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.0.display()))?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        // Whoever asks much of it has an hour.
        let ends = Some(test_kit::child::watched(child, test_kit::child::LONG * 6));
        Ok(Self { ends, input, output, _program: program })
    }

    /// The logits that the samplers work on from now on.
    ///
    /// # Errors
    /// The program has ended.
    pub fn row(&mut self, logits: &[f32]) -> Result<(), String> {
        let mut bytes = format!("row {}\n", logits.len()).into_bytes();
        bytes.extend(logits.iter().flat_map(|logit| logit.to_ne_bytes()));
        self.send(&bytes)
    }

    /// Runs llama.cpp's usual chain with what `sampling` says, from bias to temperature, on the row and after the tokens of
    /// `history`: the tokens that are left, and their probabilities. `breakers` are those of DRY, as text.
    ///
    /// # Errors
    /// The program has ended, or answers something else.
    pub fn apply(
        &mut self,
        sampling: &Sampling,
        history: &[Token],
        breakers: &[&str],
    ) -> Result<Vec<(Token, f64)>, String> {
        self.send(commands(sampling, history, breakers).as_bytes())?;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(text)?;
        let count: usize = line.trim().parse().map_err(|_| format!("{line:?} is no count of tokens"))?;
        let ids = self.numbers::<4>(count)?.into_iter().map(u32::from_ne_bytes).map(Token);
        let probabilities = self.numbers::<8>(count)?.into_iter().map(f64::from_ne_bytes);
        Ok(ids.zip(probabilities).collect())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let input = self.input.as_mut().expect("it is taken when this is dropped");
        input.write_all(bytes).and_then(|()| input.flush()).map_err(text)
    }

    fn numbers<const SIZE: usize>(&mut self, count: usize) -> Result<Vec<[u8; SIZE]>, String> {
        let mut bytes = vec![0; count * SIZE];
        self.output.read_exact(&mut bytes).map_err(text)?;
        Ok(bytes.as_chunks::<SIZE>().0.to_vec())
    }
}

impl Drop for Samplers {
    fn drop(&mut self) {
        // At the end of its input it ends by itself.
        self.input = None;
        let _ = self.ends.take().map(JoinHandle::join);
    }
}

fn commands(sampling: &Sampling, history: &[Token], breakers: &[&str]) -> String {
    let s = sampling;
    // Longer than the history is as long as it; llama.cpp makes room for all of a window at once.
    let window = |tokens: usize| tokens.min(history.len());
    let mut lines = format!("history {}", history.len());
    for token in history {
        write!(lines, " {token}").expect("a string takes everything");
    }
    let mut line = |command: String| {
        lines.push('\n');
        lines.push_str(&command);
    };
    for breaker in breakers {
        line(format!("breaker {}\n{breaker}", breaker.len()));
    }
    for (token, bias) in &s.logit_bias {
        line(format!("bias {token} {bias}"));
    }
    let (repeat, frequency, presence) = (s.repetition_penalty, s.frequency_penalty, s.presence_penalty);
    line(format!("penalties {} {repeat} {frequency} {presence}", window(s.penalty_window)));
    let (multiplier, base, allowed) = (s.dry_multiplier, s.dry_base, s.dry_allowed_length);
    line(format!("dry {multiplier} {base} {allowed} {}", window(s.dry_window)));
    line(format!("top_n_sigma {}", s.top_n_sigma));
    line(format!("top_k {}", s.top_k));
    line(format!("typical {}", s.typical_p));
    line(format!("top_p {}", s.top_p));
    line(format!("min_p {}", s.min_p));
    line(format!("xtc {} {}", s.xtc_probability, s.xtc_threshold));
    line(format!("temperature {} {} {}", s.temperature, s.dynatemp_range, s.dynatemp_exponent));
    line("apply\n".into());
    lines
}
