//! Which texts may share a pass: those of one adapter, and, while it is looked for which of them makes passes fail, those of one group. Such
//! sets are lanes, and take turns.

use super::text::Text;

#[derive(Default)]
pub(super) struct Lanes {
    last: Option<Lane>,
    groups: u32,
}

/// The group, and the adapter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lane(u32, u32);

impl Lane {
    pub(super) fn of(text: &Text) -> Self {
        Self(text.trial.group, text.call.adapter)
    }
}

impl Lanes {
    /// The lane whose turn it is; `None` without a text.
    pub(super) fn next(&mut self, texts: &[Text]) -> Option<Lane> {
        let (mut first, mut following) = (None, None);
        for lane in texts.iter().map(Lane::of) {
            let slot = if self.last.is_some_and(|last| lane > last) { &mut following } else { &mut first };
            *slot = Some(slot.map_or(lane, |least: Lane| least.min(lane)));
        }
        self.last = following.or(first);
        self.last
    }

    /// A group that no text is in.
    pub(super) fn new_group(&mut self) -> u32 {
        // 0 is everybody's. After 2^32 faults no text of the first ones is left.
        self.groups = self.groups.checked_add(1).unwrap_or(1);
        self.groups
    }
}
