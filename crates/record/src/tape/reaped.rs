//! Requests that were reaped together: the clock was read once for all of them.

use ssdyno_block::{Op, Request, Status, Time};

use super::{PS_PER_NS, Sent, Tape};
use crate::rows::{Row, Stamp};
use crate::totals::is_data;

/// The figures of one operation in one [`Reaped`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) latency_ns: u64,
    pub(super) latency_ns_min: u64,
    pub(super) latency_ns_max: u64,
}

impl Sum {
    pub(super) const NONE: Sum =
        Sum { count: 0, bytes: 0, latency_ns: 0, latency_ns_min: u64::MAX, latency_ns_max: 0 };
}

/// Requests that follow one another in a [`Reaped`], were issued together, did not fail or wait, and have the same
/// length: requests issued at once often complete at once.
#[derive(Clone, Copy, Debug)]
struct Alike {
    length_bytes: u32,
    intended_ns: u64,
    /// Whether they move data.
    data: bool,
    /// How many of each operation.
    counts: [u32; 4],
    /// What their rows share.
    stamp: Stamp,
}

impl Alike {
    /// None, and no request is like them: no request has its intended start at the end of time.
    const NONE: Alike = Alike {
        length_bytes: 0,
        intended_ns: u64::MAX,
        data: false,
        counts: [0; 4],
        stamp: Stamp::NONE,
    };
}

/// Requests that were reaped together; they count when it is dropped.
#[derive(Debug)]
pub struct Reaped<'a> {
    tape: &'a mut Tape,
    now_ns: u64,
    completed: Time,
    alike: Alike,
    departed: u64,
    stays: u64,
    stay_ns: u64,
    latency_ns: u64,
    /// Operations that occurred, as bits.
    used: u8,
}

impl<'a> Reaped<'a> {
    #[inline]
    pub(super) fn new(tape: &'a mut Tape, now_ns: u64) -> Reaped<'a> {
        // A job may learn late that the window began. What it reaped before that counts at the
        // start, because the series has no earlier place.
        let start_ns = if tape.start_ns == u64::MAX { 0 } else { tape.start_ns };
        Reaped {
            now_ns,
            completed: Time::from_ns(now_ns.max(start_ns)),
            alike: Alike::NONE,
            departed: 0,
            stays: 0,
            stay_ns: 0,
            latency_ns: 0,
            used: 0,
            tape,
        }
    }
}

impl Reaped<'_> {
    /// Takes the request of a place, which is free then.
    #[inline]
    pub fn take(&mut self, place: u32) -> Sent {
        let place = &mut self.tape.sent[place as usize];
        let sent = *place;
        place.accepted_ns = u64::MAX;
        sent
    }

    /// Counts a request of the ramp-up, which is not recorded.
    pub fn skip(&mut self) {
        self.departed += 1;
        self.tape.skipped += 1;
    }

    /// Records a request that was meant to start at `intended_ns` and reached the target at
    /// `accepted_ns`.
    #[inline]
    pub fn add(&mut self, request: &Request, intended_ns: u64, accepted_ns: u64, status: Status) {
        // The conditions are joined without branches. Nearly always all of them hold, and one
        // jump decides for the whole.
        let alike = (request.length_bytes == self.alike.length_bytes)
            & (intended_ns == self.alike.intended_ns)
            & (is_data(request.op) == self.alike.data)
            & (accepted_ns <= intended_ns)
            & (status == Status::Ok);
        if !alike {
            return self.add_other(request, intended_ns, accepted_ns, status, 0);
        }
        self.alike.counts[request.op as usize] += 1;
        if let Some(rows) = &mut self.tape.rows {
            let latency_ns = self.now_ns.saturating_sub(intended_ns);
            rows.push_stamped(self.alike.stamp, request, || {
                Row::punctual(request, intended_ns, latency_ns, status)
            });
        }
    }

    /// As [`add`](Reaped::add), of a request that failed: `errno` is the error number of the system, 0 without an
    /// error.
    #[cold]
    pub fn add_failed(
        &mut self,
        request: &Request,
        intended_ns: u64,
        accepted_ns: u64,
        status: Status,
        errno: u16,
    ) {
        self.add_other(request, intended_ns, accepted_ns, status, errno);
    }

    /// Records a request that is not like the one before it.
    fn add_other(
        &mut self,
        request: &Request,
        intended_ns: u64,
        accepted_ns: u64,
        status: Status,
        errno: u16,
    ) {
        self.close_alike();
        let latency_ns = self.now_ns.saturating_sub(intended_ns);
        let mut stamp = Stamp::NONE;
        if let Some(rows) = &mut self.tape.rows {
            let submit_ns = accepted_ns.max(intended_ns);
            let punctual = Row::punctual(request, intended_ns, latency_ns, status);
            let row = Row { submit_ns, errno, ..punctual };
            stamp = rows.stamp(&row);
            rows.push_stamped(stamp, request, || row);
        }
        if status == Status::Ok && accepted_ns <= intended_ns {
            let Request { op, length_bytes, .. } = *request;
            self.alike =
                Alike { length_bytes, intended_ns, data: is_data(op), counts: [0; 4], stamp };
            self.alike.counts[op as usize] = 1;
            return;
        }
        self.departed += 1;
        self.stays += 1;
        self.latency_ns += latency_ns;
        // Little's law counts the part of a stay that lies inside the window. During the ramp-up
        // the start is the end of time, so nothing is added.
        self.stay_ns += self.now_ns.saturating_sub(intended_ns.max(self.tape.start_ns));
        if status != Status::Ok {
            let tape = &mut *self.tape;
            let (totals, failed) = (&mut tape.ops[request.op as usize], (request.op, status));
            let waited = Time::from_ns(latency_ns);
            return totals.add_failed(&mut tape.series, failed, waited, self.completed);
        }
        let moved = if is_data(request.op) { u64::from(request.length_bytes) } else { 0 };
        self.tape.batches.add(latency_ns * PS_PER_NS, moved, 1, self.completed);
        self.waited(request, latency_ns, accepted_ns);
    }

    /// Counts those that were alike.
    #[inline]
    fn close_alike(&mut self) {
        let Alike { length_bytes, intended_ns, data, counts, .. } = self.alike;
        let count = counts.iter().copied().map(u64::from).sum();
        if count == 0 {
            return;
        }
        self.alike = Alike::NONE;
        let latency_ns = self.now_ns.saturating_sub(intended_ns);
        self.departed += count;
        self.stays += count;
        self.latency_ns += count * latency_ns;
        self.stay_ns += count * self.now_ns.saturating_sub(intended_ns.max(self.tape.start_ns));
        // From here on histogram, series, batches and sums receive all equal requests at once. A
        // request thus costs little if many come back together.
        let bytes = u64::from(length_bytes);
        let moved = if data { bytes } else { 0 };
        self.tape.batches.add(latency_ns * PS_PER_NS, moved, count, self.completed);
        for (op, count) in counts.into_iter().enumerate() {
            if count == 0 {
                continue;
            }
            let count = u64::from(count);
            self.tape.ops[op].latencies.histogram.add_many(latency_ns, count);
            self.tape.series.add_latencies(Op::ALL[op], latency_ns, count, self.completed);
            self.used |= 1 << op;
            let sum = &mut self.tape.sums[op];
            sum.count += count;
            sum.bytes += count * bytes;
            sum.latency_ns += count * latency_ns;
            sum.latency_ns_min = sum.latency_ns_min.min(latency_ns);
            sum.latency_ns_max = sum.latency_ns_max.max(latency_ns);
        }
    }

    fn waited(&mut self, request: &Request, latency_ns: u64, accepted_ns: u64) {
        let waited = self.tape.waited.get_or_insert_default();
        let inside = Time::from_ns(self.now_ns.saturating_sub(accepted_ns).min(latency_ns));
        let (bytes, latency) = (u64::from(request.length_bytes), Time::from_ns(latency_ns));
        let totals = &mut waited.ops[request.op as usize];
        totals.bytes += bytes;
        totals.latencies.add(latency);
        waited.inside.add(inside);
        self.tape.series.add(request.op, bytes, latency, self.completed);
    }
}

impl Drop for Reaped<'_> {
    #[inline]
    fn drop(&mut self) {
        self.close_alike();
        if self.departed == 0 {
            return;
        }
        let tape = &mut *self.tape;
        tape.departures += self.departed;
        tape.little.departed_many(Time::from_ns(self.now_ns), self.departed);
        tape.little.stayed_many(self.stays, u128::from(self.stay_ns) * u128::from(PS_PER_NS));
        tape.latency_ns += self.latency_ns;
        // Operations that did not occur are not touched. `& 3` tells the compiler that the index
        // lies inside the array, so it checks no bound.
        let mut used = self.used;
        while used != 0 {
            let op = used.trailing_zeros() as usize & 3;
            used &= used - 1;
            tape.close(op, self.completed);
        }
        if tape.slices.due(tape.departures) && tape.start_ns != u64::MAX {
            tape.close_slice(self.completed);
        }
    }
}
