//! A thousand short texts on a tiny model, in sequences that are opened, forked, cut and dropped: nothing stays behind.

use crate::setting::{mlx, open};
use infer::{Batch, OpenOptions, Result, Sampling, Sequence, Session as _, Token, Want};
use infer_benches::{Bar, Figure, Random, Run, growth::rounds, memory};
use infer_mlx::{Session, SessionOptions};

const TEXTS: usize = 1_000;
const FIXTURE: &str = "tiny-mlx-mistral-windows";
/// Tokens that are drawn in a text, after a prompt of up to as many; together they are more than its windows have.
const LENGTH: u64 = 24;
/// Ids of tokens are below this.
const VOCAB: u64 = 256;
/// What may be added, in parts of what was resident before.
const MOST: f64 = 0.02;

pub(crate) fn measure(run: &mut Run) {
    run.progress(&format!("{TEXTS} short texts on {FIXTURE}"));
    soak(run).unwrap_or_else(|error| panic!("{error}"));
}

fn soak(run: &mut Run) -> Result<()> {
    let mlx = mlx();
    let model = open(&mlx, FIXTURE);
    let (loaded, held) = (mlx.live(), mlx.memory()?.active);
    let mut session = model.session(&SessionOptions::new().with_context(256).with_sequences(4))?;
    let resident = memory::resident().unwrap_or_else(|error| panic!("{error}"));
    let mut random = Random::new(1);
    let mut left = 0;
    let growth = rounds(run.quick(), TEXTS, |_| {
        text(&mut session, &mut random)?;
        left = left.max(mlx.live().arrays);
        Ok(())
    })?;
    drop(session);
    let now = mlx.live();
    run.figure(Figure::new("mlx/soak/arrays", left as f64, "arrays of scopes after a text").with_bar(Bar::AtMost(0.0)));
    let owned = now.owned as f64 - loaded.owned as f64;
    run.figure(Figure::new("mlx/soak/owned", owned, "arrays beside the model").with_bar(Bar::AtMost(0.0)));
    let active = mlx.memory()?.active as f64 - held as f64;
    let note = format!("{:.2} MB were held by the model", held as f64 / 1e6);
    run.figure(Figure::new("mlx/soak/active", active, "B").with_bar(Bar::AtMost(0.0)).with_note(note));
    growth.tell(run, "mlx/soak", MOST * resident as f64);
    Ok(())
}

/// A prompt and what is drawn after it, and a second way to go on from its middle.
fn text(session: &mut Session, random: &mut Random) -> Result<()> {
    let seq = session.open(&OpenOptions::default())?;
    let sampling = Sampling::default().with_temperature(random.below(3) as f32 / 2.0).with_seed(random.any());
    session.sample_with(&seq, &sampling, &[])?;
    let length = 1 + random.below(LENGTH);
    let prompt: Vec<Token> = (0..length).map(|_| Token(random.below(VOCAB) as u32)).collect();
    let last = draw(session, &seq, &prompt, LENGTH)?;
    let fork = session.fork(&seq, length as usize)?;
    drop(seq);
    session.sample_with(&fork, &sampling, &[])?;
    draw(session, &fork, &[last], LENGTH / 2)?;
    Ok(())
}

/// Feeds these tokens and draws so many. The last that was drawn.
fn draw(session: &mut Session, seq: &Sequence, tokens: &[Token], count: u64) -> Result<Token> {
    let (mut batch, mut tokens) = (Batch::new(), tokens.to_vec());
    for _ in 0..count {
        batch.clear();
        batch.push(seq, &tokens, Want::Token);
        session.decode(&batch)?;
        tokens = vec![session.outputs().token(0).expect("it was wanted")];
    }
    Ok(tokens[0])
}
