//! Asynchronous events (base 2.0c, clause 5.2).

use std::collections::VecDeque;

use ssdyno_spec::nvme::AsynchronousEvent;

/// Requests outstanding at most (AERL + 1).
pub(crate) const REQUESTS_MAX: usize = 4;
/// Events that wait for a request at most; what comes then is lost.
const WAITING_MAX: usize = 16;

/// Events and the requests that they answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    waiting: VecDeque<AsynchronousEvent>,
    requests: VecDeque<u32>,
    /// Kinds that were reported and whose log page was not read since: bit by kind.
    masked: u8,
}

impl Events {
    /// No request is pending, and no event is left to report.
    pub(crate) fn reset(&mut self) {
        *self = Events::default();
    }
    /// The request in `slot` waits for an event; false if too many do.
    pub(crate) fn request(&mut self, slot: u32) -> bool {
        let room = self.requests.len() < REQUESTS_MAX;
        if room {
            self.requests.push_back(slot);
        }
        room
    }
    /// The request in `slot` is withdrawn.
    pub(crate) fn withdraw(&mut self, slot: u32) {
        self.requests.retain(|waiting| *waiting != slot);
    }
    pub(crate) fn push(&mut self, event: AsynchronousEvent) {
        // An event that waits already says the same as a second one: the host reads the log page
        // in any case.
        if self.waiting.len() < WAITING_MAX && !self.waiting.contains(&event) {
            self.waiting.push_back(event);
        }
    }
    /// `event` is no longer of interest: it is not told any more.
    pub(crate) fn withdraw_event(&mut self, event: AsynchronousEvent) {
        self.waiting.retain(|waiting| *waiting != event);
        self.masked &= !(1 << event.kind);
    }
    /// The log page was read: events of the kinds that it explains may come again.
    pub(crate) fn page_read(&mut self, page: u8) {
        // Pages 1, 2 and 4 belong to errors, health and notices, page 81h to Sanitize.
        match page {
            1 => self.masked &= !1,
            2 => self.masked &= !2,
            4 => self.masked &= !4,
            0x81 => self.masked &= !(1 << 6),
            _ => {}
        }
    }
    /// An event with the request that it answers.
    pub(crate) fn next(&mut self) -> Option<(u32, AsynchronousEvent)> {
        // After an event of a kind was reported, further events of that kind wait until the host
        // has read the log page (base 2.0c, clause 5.2). A host that never reads is not flooded.
        let open = |event: &AsynchronousEvent| self.masked >> event.kind & 1 == 0;
        let at = self.waiting.iter().position(open)?;
        let slot = self.requests.pop_front()?;
        let event = self.waiting.remove(at)?;
        self.masked |= 1 << event.kind;
        Some((slot, event))
    }
}
