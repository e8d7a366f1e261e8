//! What a step feeds: of each running text what was drawn last, then of prompts as much as the pace allows.
//!
//! Prompts are served by two queues, half of a step's tokens each: the one that came first, and the one that is nearest to its first token. So a
//! short prompt does not wait for a long one before it, and a long one takes at most twice as long for any number of short ones.
//!
//! Of a burst the prompts come first: texts that began while others that had come before they began still wait for their first token pause, so that
//! all of them then go on together, in passes that are as full as can be. Every so many steps they are fed all the same, and nobody pauses for a
//! prompt that is longer than a batch.

use super::{
    Scheduler,
    lanes::Lane,
    pace::{self, Chunk},
    text::Text,
};
use std::time::Instant;

/// Of a burst, running texts are fed in one of so many steps.
pub(super) const PAUSE: u32 = 8;

/// What a step has fed.
#[derive(Clone, Copy, Default)]
pub(super) struct Fed {
    /// Tokens of texts that are being generated.
    pub(super) running: usize,
    /// Tokens of prompts, and of texts that are computed again.
    pub(super) prompts: usize,
}

impl Scheduler {
    /// Fills the batch with what the lane whose turn it is has to feed; empty, there is nothing.
    pub(super) fn fill(&mut self) -> Fed {
        self.batch.clear();
        let Some(lane) = self.lanes.next(&self.running) else { return Fed::default() };
        let most = self.settings.batch.unwrap_or(usize::MAX).clamp(1, self.limits.batch.max(1));
        let fed = self.grant(lane, most);
        let Self { running, batch, .. } = self;
        for text in running.iter_mut().filter(|text| text.share > 0) {
            let share = std::mem::take(&mut text.share);
            let want = text.want(share);
            let seq = text.seq.as_ref().expect("a running text has a sequence");
            // The one rule.
            let row = batch.push(seq, &text.log[seq.len()..][..share], want);
            text.row = Some((row, want));
        }
        fed
    }

    /// Says for each text of the lane how many tokens it is to be fed.
    fn grant(&mut self, lane: Lane, most: usize) -> Fed {
        let (mut running, mut prompts, mut earliest) = (0, 0, None::<Instant>);
        for text in self.running.iter().filter(|text| Lane::of(text) == lane) {
            if text.is_decoding {
                running += text.lacks();
                earliest = earliest.min(text.began).or(text.began);
            } else {
                prompts += 1;
            }
        }
        if most < pace::LEAST && prompts > 0 {
            return self.take_turns(lane, most);
        }
        // A text that began after a prompt had come may be held up by it; one that began before may not.
        let is_free = |text: &Text| earliest.is_none_or(|earliest| text.since <= earliest);
        let free = most.min(self.pace.free_chunk());
        if self.is_pause(lane, running, most, is_free) {
            let fed = Fed { running: 0, prompts: self.grant_prompts(lane, free, most, is_free) };
            if fed.prompts > 0 {
                return fed;
            }
        }
        let reserved = if prompts > 0 { pace::LEAST.min(most / 4) } else { 0 };
        let mut fed = Fed { running: self.grant_running(lane, running, most - reserved), prompts: 0 };
        if prompts == 0 {
            return fed;
        }
        let left = most - fed.running;
        fed.prompts = self.grant_prompts(lane, left.min(free), left, is_free);
        if fed.running > 0
            && let Chunk::Tokens(chunk) = self.pace.chunk(fed.running)
        {
            let chunk = chunk.min(left - fed.prompts);
            fed.prompts += self.grant_prompts(lane, chunk, chunk, |text| !is_free(text));
        }
        fed
    }

    /// Whether running texts are to pause in this step, for prompts that they may wait for.
    fn is_pause(&mut self, lane: Lane, running: usize, most: usize, is_free: impl Fn(&Text) -> bool) -> bool {
        let waits = |text: &Text| !text.is_decoding && Lane::of(text) == lane && is_free(text) && text.lacks() <= most;
        let pauses = running > 0 && self.paused + 1 < PAUSE && self.running.iter().any(waits);
        self.paused = if pauses { self.paused + 1 } else { 0 };
        pauses
    }

    /// Of each running text all it lacks, as long as there is room; where there is not, those first that were served least recently.
    fn grant_running(&mut self, lane: Lane, lacks: usize, most: usize) -> usize {
        let decoding = |text: &&mut Text| text.is_decoding && Lane::of(text) == lane;
        if lacks <= most {
            self.running.iter_mut().filter(decoding).for_each(|text| text.share = text.lacks());
            return lacks;
        }
        let mut left = most;
        while left > 0 {
            let hungry = self.running.iter_mut().filter(decoding).filter(|text| text.share == 0);
            let Some(text) = hungry.min_by_key(|text| text.served) else { break };
            self.served += 1;
            text.served = self.served;
            text.share = text.lacks().min(left);
            left -= text.share;
        }
        most - left
    }

    /// Divides `most` tokens among the prompts of a lane that are meant. A quarter more or less, up to `limit`, is as good where it leaves no
    /// prompt in pieces: each piece costs another, shorter part of a pass.
    fn grant_prompts(&mut self, lane: Lane, most: usize, limit: usize, meant: impl Fn(&Text) -> bool) -> usize {
        let slack = (limit - most).min(most / 4);
        let mut granted = 0;
        let mut first_come = most.div_ceil(2);
        while granted < most {
            let asks = |(_, text): &(usize, &Text)| {
                !text.is_decoding && Lane::of(text) == lane && meant(text) && self.wants(text) > text.share
            };
            let asking = self.running.iter().enumerate().filter(asks);
            let next = if first_come > 0 {
                asking.min_by_key(|(_, text)| text.serial)
            } else {
                asking.min_by_key(|(_, text)| (text.lacks() - text.share, text.serial))
            };
            let Some((at, text)) = next else { break };
            let (asked, left) = (self.wants(text) - text.share, most - granted);
            let give = match asked {
                _ if first_come > 0 => asked.min(first_come),
                _ if asked <= left + slack => asked,
                _ if left <= slack => break,
                _ => left,
            };
            self.running[at].share += give;
            granted += give;
            first_come = 0;
        }
        granted
    }

    /// For batches so small that prompts and running texts do not both find room: a token each, to whom was served least recently.
    fn take_turns(&mut self, lane: Lane, most: usize) -> Fed {
        let mut fed = Fed::default();
        for _ in 0..most {
            let hungry = self.running.iter_mut().filter(|text| Lane::of(text) == lane && text.share == 0);
            let Some(text) = hungry.min_by_key(|text| text.served) else { break };
            self.served += 1;
            text.served = self.served;
            text.share = 1;
            if text.is_decoding { fed.running += 1 } else { fed.prompts += 1 }
        }
        fed
    }

    /// Tokens that a prompt may be fed now. Where sequences can only be forked whole, the one that is to be forked for further completions
    /// stops where they part.
    fn wants(&self, text: &Text) -> usize {
        // The token that overruns the context of a text that is computed again comes when there is room for it.
        let lacks = text.lacks().min(self.limits.context - text.held());
        if self.capabilities.fork || text.call.n == 1 || lacks < 2 {
            return lacks;
        }
        let is_awaited = self.waiting.iter().any(|other| other.behind.is_some_and(|(serial, _)| serial == text.serial));
        if is_awaited { lacks - 1 } else { lacks }
    }
}
