//! Texts that must be JSON of a schema: what the constraint costs, and whether they are.

use crate::{by_hand::ByHand, peer::Setting, prompts, valid};
use infer::{Constraint, Sampling, Token};
use infer_benches::{
    Bar, Figure, Run,
    turns::{Times, take, timed},
};

const UNCONSTRAINED: usize = 0;
const AGAIN: usize = 1;
const CONSTRAINED: usize = 2;

/// Rounds before the measured ones of each set.
const WARM: usize = 4;

/// A schema whose documents are long and whose strings leave the model free for most of their tokens.
const LONG: &str = r#"{"type":"object","properties":{
    "title":{"type":"string","minLength":20,"maxLength":60},
    "chapters":{"type":"array","minItems":20,"maxItems":20,"items":{"type":"object","properties":{
        "heading":{"type":"string","minLength":20,"maxLength":80},"pages":{"type":"integer","minimum":1,"maximum":999}},
        "required":["heading","pages"],"additionalProperties":false}}},
    "required":["title","chapters"],"additionalProperties":false}"#;

pub(crate) fn measure(run: &mut Run, setting: &Setting) {
    decode(run, setting);
    valid::measure(run, setting);
}

/// Three contexts of one model in turns, one step each, all fed the tokens of the constrained one. Tokens that are forced are
/// drawn again, so that all make the same passes.
fn decode(run: &mut Run, setting: &Setting) {
    let (sets, rounds) = if run.quick() { (1, 40) } else { (4, 250) };
    run.progress(&format!("decode under a schema: {sets} × {rounds} rounds of one token"));
    let tokenizer = setting.tokenizer();
    let free = Sampling::greedy();
    let constraint = Constraint::json_schema(LONG);
    let sets = (0..sets).map(|set| {
        let prompt = prompts::tokens(&*tokenizer, 3000 + set, 64);
        let mut sides = [(); 3].map(|()| ByHand::new(setting, 1024));
        let mut next = Token(0);
        for (who, side) in sides.iter_mut().enumerate() {
            let sampling =
                if who == CONSTRAINED { free.clone().with_constraint(constraint.clone()) } else { free.clone() };
            side.begin(&sampling, &prompt);
            next = side.step(&prompt)[0].token;
        }
        // What the constrained side draws in this round is fed to all in the next.
        let (mut drawn, mut steps) = (next, 0);
        let mut measure = |rounds| {
            take::<3>(rounds, |who, _| {
                if steps % 3 == 0 {
                    next = drawn;
                }
                steps += 1;
                let (took, token) = timed(|| sides[who].step(&[next])[0].token);
                if who == CONSTRAINED {
                    drawn = token;
                }
                took
            })
        };
        measure(WARM);
        measure(rounds)
    });
    let times = Times::joined(sets);
    let free = f64::midpoint(times.mean(UNCONSTRAINED), times.mean(AGAIN));
    let medians = f64::midpoint(times.median(UNCONSTRAINED), times.median(AGAIN)) / times.median(CONSTRAINED);
    run.timing(
        Figure::new("engine/schema/decode", free / times.mean(CONSTRAINED), "free/constrained")
            .with_bar(Bar::AtLeast(0.97))
            .with_against_itself(times.mean(UNCONSTRAINED) / times.mean(AGAIN))
            .with_note(format!("means of {} rounds, greedy; medians give {medians:.3}", times.rounds())),
    );
    let note = format!("unconstrained {:.3}", free * 1e3);
    run.timing(Figure::new("engine/schema/step", times.mean(CONSTRAINED) * 1e3, "ms").with_note(note));
}
