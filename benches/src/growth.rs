//! What a process holds after many rounds of the same work, beside what it held after some of them.

use crate::{Bar, Figure, Run, memory};
use infer_core::Result;
use std::{
    fs,
    time::{Duration, Instant},
};

/// How long a quick run takes.
const QUICK: Duration = Duration::from_secs(20);
/// One round in so many warms up.
const WARM: usize = 10;
/// Memory that an allocator takes or splits by the way.
const MOST_MAPPINGS: f64 = 8.0;

/// Runs all rounds, or as many as a quick run has time for, and says what they added after those that warm up.
///
/// # Errors
/// What a round returned.
///
/// # Panics
/// Where the system does not tell what a process holds.
pub fn rounds(quick: bool, most: usize, mut round: impl FnMut(usize) -> Result<()>) -> Result<Growth> {
    let (begin, limit) = (Instant::now(), if quick { QUICK } else { Duration::MAX });
    let mut warm = None;
    let mut done = 0;
    while done < most && (begin.elapsed() < limit || done < 2 * WARM) {
        round(done)?;
        done += 1;
        let share = begin.elapsed().as_secs_f64() / limit.as_secs_f64();
        if warm.is_none() && done >= WARM && (done * WARM >= most || share * WARM as f64 >= 1.0) {
            warm = Some((done, Held::now()));
        }
    }
    let (warm_up, before) = warm.expect("there are more rounds than warm up");
    Ok(Growth { warm_up, measured: done - warm_up, before, after: Held::now() })
}

/// What a process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    anonymous: u64,
    files: usize,
    threads: usize,
    mappings: usize,
}

impl Held {
    fn now() -> Self {
        let count = |folder: &str| fs::read_dir(folder).map_or(0, Iterator::count);
        Self {
            anonymous: memory::anonymous().unwrap_or_else(|error| panic!("{error}")),
            files: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
            mappings: fs::read_to_string("/proc/self/maps").map_or(0, |maps| maps.lines().count()),
        }
    }
}

/// What so many rounds added.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    warm_up: usize,
    measured: usize,
    before: Held,
    after: Held,
}

impl Growth {
    /// Bytes in memory that no file backs, before.
    pub fn held_before(&self) -> f64 {
        self.before.anonymous as f64
    }

    /// States it under the name `what`; `most` is how many bytes may have been added.
    pub fn tell(&self, run: &mut Run, what: &str, most: f64) {
        let Self { warm_up, measured, before, after } = self;
        let note = format!("{measured} rounds after {warm_up} that warm up");
        let grown = |after: usize, before: usize| after as f64 - before as f64;
        let bytes = after.anonymous as f64 - before.anonymous as f64;
        let of_memory = format!("{note}; {:.1} MB were held before", before.anonymous as f64 / 1e6);
        let figures = [
            Figure::new(format!("{what}/anonymous"), bytes, "B").with_bar(Bar::AtMost(most)).with_note(of_memory),
            Figure::new(format!("{what}/files"), grown(after.files, before.files), "").with_bar(Bar::AtMost(0.0)),
            Figure::new(format!("{what}/threads"), grown(after.threads, before.threads), "").with_bar(Bar::AtMost(0.0)),
            Figure::new(format!("{what}/mappings"), grown(after.mappings, before.mappings), "")
                .with_bar(Bar::AtMost(MOST_MAPPINGS)),
        ];
        for figure in figures {
            run.figure(figure);
        }
    }
}
