//! The past work of a die, for requests that waited for it.

use std::collections::VecDeque;

use ssdyno_block::Time;
use ssdyno_device::{LatencyPart, LatencyParts};
use ssdyno_engine::events::{Activity, Busy, FlashCause};

/// The die did one thing from `from` to `to`.
#[derive(Clone, Copy, Debug)]
struct Segment {
    from: Time,
    to: Time,
    activity: Activity,
    /// The part of latency for others that wait for it.
    part: LatencyPart,
    /// Part of an operation that was suspended.
    broken_off: bool,
}

/// The past operations of one die, as far back as a request still waits.
#[derive(Debug)]
pub(super) struct DieHistory {
    segments: VecDeque<Segment>,
    /// So many segments may be kept before old ones are looked for.
    room: usize,
}

/// Segments that are kept without a look.
const ROOM: usize = 256;

impl Default for DieHistory {
    fn default() -> DieHistory {
        DieHistory { segments: VecDeque::new(), room: ROOM }
    }
}

fn part_of(event: &Busy) -> LatencyPart {
    match (event.cause, event.activity) {
        (_, Activity::Erase) => LatencyPart::Erases,
        (FlashCause::Cleaning, _) => LatencyPart::Cleaning,
        (FlashCause::Mapping | FlashCause::MappingUpdate, _) => LatencyPart::Mapping,
        (_, Activity::Read) => LatencyPart::Reads,
        (_, Activity::Program) => LatencyPart::Programs,
        _ => LatencyPart::Channel,
    }
}

impl DieHistory {
    /// Enters an event of the die, whose times begin at `origin`. True if it is time to [`forget`](DieHistory::forget).
    pub(super) fn enter(&mut self, event: &Busy, origin: Time) -> bool {
        let (from, to) = (event.from + origin, event.to + origin);
        let (activity, part) = (event.activity, part_of(event));
        if from == to {
            return false;
        }
        // A suspended program reports its first part with zero operations, because the operation
        // counts once, at its end. Both parts belong to the time of the same request.
        let broken_off = activity == Activity::Program && event.operations == 0;
        // Cleaning comes in thousands of operations, whose ends are not needed.
        if let Some(last) = self.segments.back_mut()
            && (last.to, last.part) == (from, part)
            && matches!(part, LatencyPart::Cleaning | LatencyPart::Channel)
        {
            last.to = to;
            return false;
        }
        self.segments.push_back(Segment { from, to, activity, part, broken_off });
        self.segments.len() > self.room
    }

    /// No request has waited since before `oldest`.
    pub(super) fn forget(&mut self, oldest: Time) {
        while self.segments.front().is_some_and(|segment| segment.to <= oldest) {
            self.segments.pop_front();
        }
        // The limit doubles with what must be kept, so the search for the oldest waiter costs a
        // constant amount per segment. A fixed limit would repeat the search at every event at high
        // load.
        self.room = ROOM.max(2 * self.segments.len());
    }

    /// What the time from `from` to `to` went to for an operation that ended at `to`. The last `own` of its array was
    /// for the operation itself.
    ///
    /// If nothing is recorded, the die has begun an operation whose command and data wait for the channel.
    pub(super) fn split(&self, from: Time, to: Time, own: Option<Activity>) -> LatencyParts {
        let mut parts = LatencyParts::default();
        let (mut cursor, mut before, mut found) = (to, LatencyPart::Channel, own.is_none());
        for segment in self.segments.iter().rev() {
            if cursor <= from {
                return parts;
            }
            // With cache registers the array reads the next page while one goes out.
            let is_later = !found && own == Some(segment.activity) && segment.to > cursor;
            if segment.from >= cursor || is_later {
                continue;
            }
            let end = segment.to.min(cursor).max(from);
            parts.add(before, cursor - end);
            let rest = found && segment.broken_off && own == Some(Activity::Program);
            let is_own = !found && own == Some(segment.activity) || rest;
            let part = if is_own { LatencyPart::Flash } else { segment.part };
            found |= is_own;
            let begin = segment.from.max(from).min(end);
            parts.add(part, end - begin);
            cursor = begin;
            before = match segment.part {
                part @ (LatencyPart::Cleaning | LatencyPart::Mapping) => part,
                _ => LatencyPart::Channel,
            };
        }
        parts.add(before, cursor.saturating_sub(from));
        parts
    }
}
