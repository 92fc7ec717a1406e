//! Requests inside the device or waiting before it.

use ssdyno_block::{Completion, Request, Status, Time, Token};
use ssdyno_engine::SlotTable;

use crate::QueueConfig;
use crate::waiting::Waiting;

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    token: Token,
    pub(super) request: Request,
    /// When it entered the device.
    accepted: Time,
    /// Its answer cannot be at the host before this.
    pub(super) ready: Time,
    pub(super) status: Status,
    /// The remaining steps before it completes.
    parts: u32,
}

/// All requests, and how many of them may be inside at a time; slots are used again.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    all: SlotTable<Slot>,
    waiting: Waiting,
    /// Inside the device at most.
    depth: u32,
    inside: u32,
    /// Since when there is always one inside.
    pub(super) busy_since: Time,
    /// Completions that were not reaped yet.
    pub(super) completions: Vec<Completion>,
}

impl Requests {
    pub(super) fn new(config: &QueueConfig) -> Requests {
        Requests {
            all: SlotTable::default(),
            waiting: Waiting::new(config.waiting),
            depth: config.depth,
            inside: 0,
            busy_since: Time::ZERO,
            completions: Vec::with_capacity(64),
        }
    }

    /// Takes a request that came at `now`: its slot, and whether it may enter at once.
    #[inline]
    pub(super) fn arrive(&mut self, now: Time, request: Request, token: Token) -> (u32, bool) {
        let (accepted, ready) = (now, now);
        let slot = Slot { token, request, accepted, ready, status: Status::Ok, parts: 0 };
        let at = self.all.insert(slot);
        // A new request may enter only if there is room. No request can be waiting in this case,
        // because each completion admits the next one at once, so the order of arrival is kept.
        let enters = self.inside < self.depth;
        if enters {
            self.waiting.passed(request.offset_bytes);
        } else {
            self.waiting.push(at, request.offset_bytes);
        }
        (at, enters)
    }

    /// The request in slot `at` enters the device.
    #[inline]
    pub(super) fn enter(&mut self, now: Time, at: u32) {
        if self.inside == 0 {
            self.busy_since = now;
        }
        self.inside += 1;
        self.all[at].accepted = now;
    }

    /// The request in slot `at` has ended, and leaves room for another.
    #[inline]
    pub(super) fn complete(&mut self, now: Time, at: u32) -> Request {
        let Slot { token, accepted, status, request, .. } = self.all.take(at);
        // `accepted` is the time of entry and not of arrival. The paper's response times exclude
        // the wait in the driver (S3-37: 62.61 ms at the device, 123.9 ms including the driver
        // queue).
        self.completions.push(Completion { token, status, accepted, completed: now });
        self.inside -= 1;
        request
    }

    /// The one that enters next.
    #[inline]
    pub(super) fn next_waiting(&mut self) -> Option<u32> {
        self.waiting.pop()
    }
    #[inline]
    pub(super) fn nobody_waits(&self) -> bool {
        self.waiting.is_empty()
    }
    #[inline]
    pub(super) fn nobody_is_inside(&self) -> bool {
        self.inside == 0
    }

    /// The time of the first completion that was not reaped yet.
    #[inline]
    pub(super) fn answered(&self) -> Option<Time> {
        self.completions.first().map(|completion| completion.completed)
    }

    #[inline]
    pub(super) fn get(&self, at: u32) -> &Slot {
        &self.all[at]
    }
    #[inline]
    pub(super) fn get_mut(&mut self, at: u32) -> &mut Slot {
        &mut self.all[at]
    }
    /// One more part to wait for.
    #[inline]
    pub(super) fn hold(&mut self, at: u32) {
        self.all[at].parts += 1;
    }
    /// One part fewer; true if it was the last.
    #[inline]
    pub(super) fn release(&mut self, at: u32) -> bool {
        let parts = &mut self.all[at].parts;
        *parts -= 1;
        *parts == 0
    }
}
