//! A long prompt that arrives among texts that are being generated.

use crate::{
    ours,
    peer::{Ask, Setting},
    prompts,
};
use infer::{Engine, EngineBuilder};
use infer_benches::{Bar, Figure, Run};
use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// Texts that are being generated.
const STREAMS: usize = 8;
const PROMPT: usize = 32;
/// Tokens each of them has when the long prompt arrives.
const BEFORE: usize = 48;
/// Tokens that none of them reaches before the long prompt has been computed.
const MOST: usize = 2000;

/// What one arrival was like.
struct Arrival {
    /// The time to its first token where nothing else was running.
    alone: Duration,
    /// And among the others.
    among: Duration,
    /// Inter-token latencies of the others, in seconds: before it came, and until its first token.
    before: Vec<f64>,
    during: Vec<f64>,
}

pub(crate) fn measure(run: &mut Run, setting: &Setting) {
    let length = if run.quick() { 256 } else { 2048 };
    let knobs: [(&str, &str, Option<Duration>); 3] = [
        ("default", "the default: three times what a step of the running texts takes", None),
        ("even", "with_step_time(1 ms): the running texts flow as evenly as they can", Some(Duration::from_millis(1))),
        ("soon", "with_step_time(1 min): whole passes of the prompt", Some(Duration::from_secs(60))),
    ];
    for (name, note, knob) in knobs {
        let rounds = if run.quick() { 1 } else { 3 };
        run.progress(&format!("long prompt, {name}: {rounds} rounds of {length} tokens among {STREAMS} streams"));
        let context = length.max(PROMPT + MOST) + 16;
        let set = |builder: EngineBuilder| {
            let builder = builder.with_sequences(STREAMS + 1).with_context(context).with_prefix_cache(0);
            let builder = builder.with_cells((STREAMS + 1) * context);
            match knob {
                Some(knob) => builder.with_step_time(knob),
                None => builder,
            }
        };
        let engine = ours::engine(setting, set);
        let arrivals: Vec<Arrival> = (0..rounds).map(|round| arrive(&engine, setting, length, round)).collect();
        report(run, name, note, &arrivals, knob.is_none());
    }
}

fn arrive(engine: &Engine, setting: &Setting, length: usize, round: u64) -> Arrival {
    let tokenizer = setting.tokenizer();
    let prompt = |number: u64, length: usize| prompts::tokens(&*tokenizer, 10_000 + 100 * round + number, length);
    let long = |number| Ask { prompt: prompt(number, length), count: 1 };
    let alone = first_token(engine, &long(90));
    let (stop, (ready, is_ready)) = (AtomicBool::new(false), mpsc::channel());
    thread::scope(|scope| {
        let readers: Vec<_> = (0..STREAMS as u64)
            .map(|number| {
                let ask = Ask { prompt: prompt(number, PROMPT), count: MOST };
                let (stop, ready) = (&stop, ready.clone());
                scope.spawn(move || read(engine, &ask, stop, &ready))
            })
            .collect();
        for _ in 0..STREAMS {
            is_ready.recv().expect("every reader says so");
        }
        let came = Instant::now();
        let among = first_token(engine, &long(91));
        stop.store(true, Ordering::Release);
        let (mut before, mut during) = (Vec::new(), Vec::new());
        for reader in readers {
            for (at, gap) in reader.join().expect("a reader does not panic") {
                if at <= came {
                    before.push(gap);
                } else if at <= came + among {
                    during.push(gap);
                }
            }
        }
        Arrival { alone, among, before, during }
    })
}

fn first_token(engine: &Engine, ask: &Ask) -> Duration {
    let begun = Instant::now();
    ours::generate(engine, ask).next().expect("a token comes");
    begun.elapsed()
}

/// Reads a text until it is told to stop: when tokens came, and how long after those before, a token.
fn read(engine: &Engine, ask: &Ask, stop: &AtomicBool, ready: &mpsc::Sender<()>) -> Vec<(Instant, f64)> {
    let (mut gaps, mut last, mut count) = (Vec::with_capacity(ask.count), None, 0);
    for piece in ours::generate(engine, ask) {
        let (now, tokens) = (Instant::now(), piece.tokens.len());
        if let Some(last) = last.replace(now) {
            let gap = (now - last).as_secs_f64() / tokens.max(1) as f64;
            gaps.extend(std::iter::repeat_n((now, gap), tokens));
        }
        if count < BEFORE && count + tokens >= BEFORE {
            ready.send(()).expect("they are waited for");
        }
        count += tokens;
        if stop.load(Ordering::Acquire) {
            return gaps;
        }
    }
    panic!("the text ended before the long prompt was computed")
}

fn report(run: &mut Run, name: &str, note: &str, arrivals: &[Arrival], judged: bool) {
    let gaps = |gaps: fn(&Arrival) -> &Vec<f64>| median(arrivals.iter().flat_map(gaps).copied().collect());
    let (before, during) = (gaps(|arrival| &arrival.before), gaps(|arrival| &arrival.during));
    let best = |time: fn(&Arrival) -> Duration| arrivals.iter().map(time).min().expect("a round").as_secs_f64();
    let (alone, among) = (best(|arrival| arrival.alone), best(|arrival| arrival.among));
    let latency = Figure::new(format!("engine/long/{name}/inter-token latency"), during / before, "during/before")
        .with_note(format!("{note}; medians of {STREAMS} streams, {:.1} ms and {:.1} ms", during * 1e3, before * 1e3));
    let first = Figure::new(format!("engine/long/{name}/first token"), among / alone, "among/alone")
        .with_note(format!("best of {}, {among:.2} s and {alone:.2} s", arrivals.len()));
    if judged {
        // The running texts are their own measure: one half of the latencies before beside the other.
        let all: Vec<f64> = arrivals.iter().flat_map(|arrival| &arrival.before).copied().collect();
        let half = |odd| median(all.iter().copied().skip(odd).step_by(2).collect());
        run.timing(latency.with_bar(Bar::AtMost(4.0)).with_against_itself(half(0) / half(1)));
        run.timing(first.with_bar(Bar::AtMost(2.5)));
    } else {
        run.timing(latency);
        run.timing(first);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
