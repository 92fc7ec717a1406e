//! Generators: what [`crate::WorkloadConfig`] builds.

pub(crate) mod arrivals;
pub(crate) mod disksim;
pub(crate) mod place;
pub(crate) mod zipf;

use ssdyno_block::{Op, Request, Time};
use ssdyno_engine::Rng;

use crate::{Finished, Workload, WorkloadStep};
use arrivals::Pacing;
use place::{ONE, Place, happens};

/// Requests drawn at a time, and told of twice. Several memory accesses at once take little more
/// time than one, and devices complete in bursts (channels in step with one another).
const BATCH: usize = 8;

/// The requests drawn ahead, in order: more than one batch, up to two.
#[derive(Clone, Debug)]
struct Drawn {
    all: [Request; 2 * BATCH],
    /// The first that was not taken.
    next: usize,
}

/// When a workload ends and how much it may have outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Requests still to issue.
    pub(crate) left: u64,
    /// Nothing starts at this time or later.
    pub(crate) end: Time,
    /// Most outstanding.
    pub(crate) depth: u64,
}

/// Operations and sizes by weight.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    /// Probability of a read.
    pub(crate) read: u64,
    /// Probability of a write where it is not a read.
    pub(crate) write: u64,
    /// Sizes in bytes with the upper end of their share of [`ONE`].
    pub(crate) sizes: Vec<(u32, u64)>,
}

impl Mix {
    #[inline]
    fn op(&self, rng: &mut Rng) -> Op {
        if happens(self.read, rng) {
            Op::Read
        } else if happens(self.write, rng) {
            Op::Write
        } else {
            Op::Trim
        }
    }

    #[inline]
    fn size(&self, rng: &mut Rng) -> (usize, u32) {
        // A single size consumes no random number, so the usual load costs one draw less. A list of
        // one size is therefore exactly the same load as `block_size`.
        let last = self.sizes.len() - 1;
        if last == 0 {
            return (0, self.sizes[0].0);
        }
        let at = rng.below(ONE);
        let index = self.sizes.iter().position(|&(_, upto)| at < upto).unwrap_or(last);
        (index, self.sizes[index].0)
    }
}

/// The sequence of requests.
pub(crate) trait Draw {
    /// The next request; `None` if there are no more.
    fn draw(&mut self, rng: &mut Rng) -> Option<Request>;

    /// Draws as many as there is room for, or as there are; says how many.
    fn fill(&mut self, rng: &mut Rng, room: &mut [Request]) -> usize {
        fill_one_by_one(self, rng, room)
    }
}

#[inline]
fn fill_one_by_one<D: Draw + ?Sized>(source: &mut D, rng: &mut Rng, room: &mut [Request]) -> usize {
    for (at, request) in room.iter_mut().enumerate() {
        let Some(drawn) = source.draw(rng) else { return at };
        *request = drawn;
    }
    room.len()
}

/// A weighted mix of operations, sizes and addresses.
#[derive(Clone, Debug)]
pub(crate) struct Mixed {
    pub(crate) mix: Mix,
    pub(crate) place: Place,
}

impl Draw for Mixed {
    #[inline]
    fn draw(&mut self, rng: &mut Rng) -> Option<Request> {
        let op = self.mix.op(rng);
        let (index, length_bytes) = self.mix.size(rng);
        let offset_bytes = self.place.draw(index, u64::from(length_bytes), rng);
        Some(Request { op, offset_bytes, length_bytes })
    }

    fn fill(&mut self, rng: &mut Rng, room: &mut [Request]) -> usize {
        let Mixed { mix, place } = self;
        // The usual load does not ask for each request what it is.
        if let (&[(length_bytes, _)], Some(slots)) = (&mix.sizes[..], place.uniform()) {
            for request in &mut *room {
                let op = mix.op(rng);
                let offset_bytes = place.start + rng.below(slots) * place.alignment;
                *request = Request { op, offset_bytes, length_bytes };
            }
            return room.len();
        }
        fill_one_by_one(self, rng, room)
    }
}

/// Where writes of [`Apart`] go.
#[derive(Clone, Debug)]
pub(crate) struct WritePlaces {
    pub(crate) length_bytes: u32,
    pub(crate) place: Place,
}

/// A mix whose writes have a size and places of their own.
#[derive(Clone, Debug)]
pub(crate) struct Apart {
    pub(crate) others: Mixed,
    pub(crate) writes: WritePlaces,
}

impl Draw for Apart {
    #[inline]
    fn draw(&mut self, rng: &mut Rng) -> Option<Request> {
        let Apart { others: Mixed { mix, place }, writes } = self;
        let op = mix.op(rng);
        if op == Op::Write {
            let length_bytes = writes.length_bytes;
            let offset_bytes = writes.place.draw(0, u64::from(length_bytes), rng);
            return Some(Request { op, offset_bytes, length_bytes });
        }
        let (index, length_bytes) = mix.size(rng);
        let offset_bytes = place.draw(index, u64::from(length_bytes), rng);
        Some(Request { op, offset_bytes, length_bytes })
    }
}

/// Requests that are drawn, issued within limits and at the times of a process of arrivals.
#[derive(Clone, Debug)]
pub(crate) struct Generator<D> {
    limits: Limits,
    pacing: Pacing,
    source: D,
    /// The next arrival of an open loop.
    arrival: Time,
    outstanding: u64,
    /// Drawn ahead: what a request is does not depend on when it starts.
    upcoming: Drawn,
    rng: Rng,
    /// Arrivals have their own stream: another size or address does not move them.
    gaps: Rng,
}

impl<D: Draw> Generator<D> {
    pub(crate) fn new(limits: Limits, mut pacing: Pacing, source: D, seed: u64) -> Generator<D> {
        // Arrivals and requests have separate random streams. The same seed then gives the same
        // addresses in a closed and in an open loop, so that two runs differ in the load only.
        let mut gaps = Rng::new(seed, "workload arrivals");
        let arrival = pacing.first(&mut gaps);
        let rng = Rng::new(seed, "workload requests");
        let upcoming = Drawn { all: [Request::flush(); 2 * BATCH], next: 0 };
        let mut generator =
            Generator { limits, pacing, source, arrival, outstanding: 0, upcoming, rng, gaps };
        generator.draw_from(0, 0);
        generator
    }

    /// The same with its first arrival at time 0, as fio has it.
    pub(crate) fn at_once(self) -> Generator<D> {
        Generator { arrival: Time::ZERO, ..self }
    }

    /// Nothing more arrives in time. An open loop lasts as long as it was meant to: over less than that
    /// the rate of its requests would be too high.
    #[cold]
    fn end_of_time(&mut self, now: Time) -> WorkloadStep {
        if now < self.limits.end {
            // An open loop whose next arrival lies beyond the end still lasts until the end. If it
            // ended with the last arrival, the rate of a run would be too high by a part of a gap.
            return WorkloadStep::NotBefore(self.limits.end);
        }
        self.limits.left = 0;
        WorkloadStep::Done
    }

    /// The next request.
    #[inline]
    fn request(&mut self) -> Request {
        let request = self.upcoming.all[self.upcoming.next];
        self.upcoming.next += 1;
        if self.upcoming.next == BATCH {
            self.draw_batch();
        }
        request
    }

    /// Draws one more batch behind the one that is left, while the last one taken has yet to be
    /// issued.
    fn draw_batch(&mut self) {
        self.upcoming.all.copy_within(BATCH.., 0);
        self.draw_from(BATCH, 1);
        self.upcoming.next = 0;
    }

    /// Draws those from number `from` on, with `taken` more to be issued before the first.
    #[inline]
    fn draw_from(&mut self, from: usize, taken: usize) {
        let room = &mut self.upcoming.all[from..];
        let drawn = self.source.fill(&mut self.rng, room);
        if drawn < room.len() {
            room[drawn..].fill(Request::flush());
            // Requests are drawn in advance, so the source can end before the requests that it gave
            // are issued. The limit ends the run at the last real request and not at the filler.
            self.limits.left = self.limits.left.min((taken + from + drawn) as u64);
        }
    }
}

impl<D: Draw> Workload for Generator<D> {
    fn next(&mut self, now: Time) -> WorkloadStep {
        if self.limits.left == 0 {
            return WorkloadStep::Done;
        }
        let closed = matches!(self.pacing, Pacing::Closed);
        let intended = if closed { now } else { self.arrival };
        if intended >= self.limits.end {
            return self.end_of_time(now);
        }
        // The arrival keeps its time while it waits for the depth. Its latency includes this wait,
        // so a limit of the depth cannot hide an overload.
        if self.outstanding >= self.limits.depth {
            return WorkloadStep::Wait;
        }
        if intended > now {
            return WorkloadStep::NotBefore(intended);
        }
        if !closed {
            self.arrival = self.pacing.after(intended, &mut self.gaps);
        }
        let request = self.request();
        self.limits.left -= 1;
        self.outstanding += 1;
        WorkloadStep::Issue { request, intended }
    }

    fn upcoming(&self) -> &[Request] {
        if self.upcoming.next == 0 { &self.upcoming.all } else { &[] }
    }

    fn completed(&mut self, _finished: Finished, now: Time) {
        self.completed_many(1, now);
    }

    fn completed_many(&mut self, count: u64, _now: Time) {
        self.outstanding = self.outstanding.saturating_sub(count);
    }
}
