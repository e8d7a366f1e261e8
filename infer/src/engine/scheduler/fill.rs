//! What a step feeds: of each running text what was drawn last, then of prompts as much as the pace allows.
//!
//! Prompts are served by two queues, half of a step's tokens each: the one that came first, and the one that is nearest to its first token. So a
//! short prompt does not wait for a long one before it, and a long one takes at most twice as long for any number of short ones.

use super::{
    Scheduler,
    lanes::Lane,
    pace::{self, Chunk},
    text::Text,
};
use std::time::Instant;

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
        let reserved = if prompts > 0 { pace::LEAST.min(most / 4) } else { 0 };
        let mut fed = Fed { running: self.grant_running(lane, running, most - reserved), prompts: 0 };
        if prompts == 0 {
            return fed;
        }
        // A text that began after a prompt had come may be held up by it; one that began before may not.
        let left = most - fed.running;
        let is_free = |text: &Text| earliest.is_none_or(|earliest| text.since <= earliest);
        fed.prompts = self.grant_prompts(lane, left.min(self.pace.free_chunk()), is_free);
        if fed.running > 0
            && let Chunk::Tokens(chunk) = self.pace.chunk(fed.running)
        {
            fed.prompts += self.grant_prompts(lane, chunk.min(left - fed.prompts), |text| !is_free(text));
        }
        fed
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

    /// Divides `most` tokens among the prompts of a lane that are meant.
    fn grant_prompts(&mut self, lane: Lane, most: usize, meant: impl Fn(&Text) -> bool) -> usize {
        let mut left = most;
        let mut first_come = most.div_ceil(2);
        while left > 0 {
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
            let give = (self.wants(text) - text.share).min(if first_come > 0 { first_come } else { left });
            self.running[at].share += give;
            left -= give;
            first_come = 0;
        }
        most - left
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
