//! The time of requests by part, if requested.
//!
//! Nothing is measured for it that the device does not report anyway: the log of events says what each die did when. A
//! request is followed along its critical path, that is the page that comes last. So the parts of a request sum to its
//! latency, and a device without this request pays one comparison.
//!
//! A write that waits for room in the buffer waits for no die of its own. The time that it waits is split as that of the die
//! that gave room in the end: [`Explain::room`] follows those dies while writes wait.

use ssdyno_block::{Op, Request, Time};
use ssdyno_device::{ExplainedRequest, LatencyPart, LatencyParts};
use ssdyno_engine::events::{Activity, Busy, EventLog, PartKind};

use super::history::DieHistory;

/// One request.
#[derive(Clone, Copy, Debug, Default)]
struct Course {
    inside: bool,
    arrived: Time,
    /// Its time by part until `until`.
    parts: LatencyParts,
    until: Time,
    /// The same with the operation that ended last for it.
    reached: (Time, LatencyParts),
    /// The same with the page that is at the host last.
    answer: (Time, LatencyParts),
    /// What was waited for room when it began to wait.
    room: LatencyParts,
}

impl Course {
    /// From `until` to `to` it spent its time on `parts`.
    fn goes_on(&mut self, to: Time, parts: &LatencyParts) {
        if to > self.until {
            self.parts.add_all(parts);
            self.until = to;
        }
    }

    /// The same for a single part.
    fn spends(&mut self, to: Time, part: LatencyPart) {
        let mut parts = LatencyParts::default();
        parts.add(part, to.saturating_sub(self.until));
        self.goes_on(to, &parts);
    }
}

/// The state that the device keeps for it.
#[derive(Debug)]
pub(super) struct Explain {
    courses: Vec<Course>,
    dies: Vec<DieHistory>,
    /// Events of the log that were read.
    seen: u64,
    /// The die that has just ended an operation, and when.
    ended: Option<(u32, Time)>,
    /// The work of dies while writes waited for room in the buffer, and its end.
    room: (Time, LatencyParts),
    /// Writes that wait for it.
    waiters: u32,
    done: Vec<ExplainedRequest>,
}

/// The moments of a command on its way into the controller.
pub(super) struct Entry {
    /// It enters the device.
    pub(super) now: Time,
    /// The device is awake and has the power.
    pub(super) powered: Time,
    /// The link has carried the command.
    pub(super) linked: Time,
    /// All is done.
    pub(super) ready: Time,
}

/// The part that a part of the controller stands for.
fn part_of(kind: PartKind) -> Option<LatencyPart> {
    match kind {
        PartKind::Core => Some(LatencyPart::Firmware),
        PartKind::HostLink => Some(LatencyPart::Link),
        PartKind::Dram => Some(LatencyPart::Dram),
        _ => None,
    }
}

/// The way from `from` to `to` past the parts of the controller that `events` are of, one after another.
fn way(from: Time, to: Time, events: &[Busy], origin: Time) -> LatencyParts {
    let mut parts = LatencyParts::default();
    let mut cursor = from;
    for event in events {
        if let Some(part) = part_of(event.part.kind) {
            let end = (event.to + origin).clamp(cursor, to);
            parts.add(part, end - cursor);
            cursor = end;
        }
    }
    // The link has a latency beside the transfer.
    parts.add(LatencyPart::Link, to - cursor);
    parts
}

impl Explain {
    pub(super) fn new(dies: u32, log: &EventLog) -> Explain {
        Explain {
            courses: Vec::new(),
            dies: (0..dies).map(|_| DieHistory::default()).collect(),
            seen: log.after(u64::MAX).1,
            ended: None,
            room: (Time::ZERO, LatencyParts::default()),
            waiters: 0,
            done: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, out: &mut Vec<ExplainedRequest>) {
        out.append(&mut self.done);
    }

    /// Reads what is new in the log, before somebody clears it.
    pub(super) fn look(&mut self, log: &EventLog) {
        let (events, seen) = log.after(self.seen);
        self.seen = seen;
        for event in events.iter().filter(|event| event.part.kind == PartKind::Die) {
            let Some(die) = self.dies.get_mut(event.part.index as usize) else { continue };
            if die.enter(event, log.origin()) {
                let inside = self.courses.iter().filter(|course| course.inside);
                let oldest = inside.map(|course| course.until).min().unwrap_or(Time::MAX);
                let room = if self.waiters > 0 { self.room.0 } else { Time::MAX };
                die.forget(oldest.min(room));
            }
        }
    }

    /// A request comes into `slot`.
    pub(super) fn arrived(&mut self, now: Time, slot: u32) {
        let slot = slot as usize;
        if self.courses.len() <= slot {
            self.courses.resize(slot + 1, Course::default());
        }
        self.courses[slot] = Course { inside: true, arrived: now, until: now, ..Course::default() };
    }

    /// The command in `slot` is on its way into the controller; `events` are those of the way.
    pub(super) fn entered(&mut self, slot: u32, at: &Entry, events: &[Busy], origin: Time) {
        let course = &mut self.courses[slot as usize];
        course.spends(at.now, LatencyPart::Queue);
        course.spends(at.powered, LatencyPart::Power);
        course.spends(at.linked, LatencyPart::Link);
        course.goes_on(at.ready, &way(at.linked, at.ready, events, origin));
    }

    /// The FTL gets the request in `slot`; only a sector bus lets it wait until then.
    pub(super) fn dispatched(&mut self, now: Time, slot: u32) {
        let course = &mut self.courses[slot as usize];
        course.spends(now, LatencyPart::Link);
        course.answer = (now, course.parts);
    }

    /// `die` has ended operations.
    pub(super) fn ended(&mut self, now: Time, die: u32, log: &EventLog) {
        self.look(log);
        self.ended = Some((die, now));
    }

    /// What came of that is done.
    pub(super) fn settled(&mut self) {
        self.ended = None;
    }

    /// The work since `from` of the die that has just ended something.
    fn since(&self, from: Time, own: Option<Activity>) -> Option<(Time, LatencyParts)> {
        let (die, now) = self.ended?;
        Some((now, self.dies[die as usize].split(from, now, own)))
    }

    /// The operation that ended was one of the request in `slot`, which does `op`; `buffered`: its data goes to the buffer.
    pub(super) fn reached(&mut self, slot: u32, op: Op, buffered: bool) {
        let own = match op {
            Op::Read => Some(Activity::Read),
            // Of a write to the buffer only the rest of a page that is partly written is read.
            Op::Write if buffered => Some(Activity::Read),
            Op::Write => Some(Activity::Program),
            Op::Trim | Op::Flush => None,
        };
        let Course { until, mut parts, .. } = self.courses[slot as usize];
        let Some((now, since)) = self.since(until, own) else { return };
        parts.add_all(&since);
        let course = &mut self.courses[slot as usize];
        course.reached = (now, parts);
        if op != Op::Read && now >= course.answer.0 {
            course.answer = course.reached;
        }
    }

    /// The operation that ended is one without which the next of the request in `slot` cannot begin.
    pub(super) fn before(&mut self, slot: u32, own: Option<Activity>) {
        let until = self.courses[slot as usize].until;
        if let Some((now, parts)) = self.since(until, own) {
            self.courses[slot as usize].goes_on(now, &parts);
        }
    }

    /// A page of the read in `slot`, in the controller at `now`, is at the host at `to`.
    pub(super) fn sent(
        &mut self,
        slot: u32,
        (now, to): (Time, Time),
        events: &[Busy],
        origin: Time,
    ) {
        let course = &mut self.courses[slot as usize];
        let mut parts = if course.reached.0 == now { course.reached.1 } else { course.parts };
        parts.add_all(&way(now, to, events, origin));
        if to >= course.answer.0 {
            course.answer = (to, parts);
        }
    }

    /// The write in `slot` asks for room.
    pub(super) fn wants_room(&mut self, now: Time, slot: u32) {
        self.waiters += 1;
        if self.waiters == 1 {
            self.room.0 = now;
        }
        self.courses[slot as usize].room = self.room.1;
    }

    /// The buffer has room again.
    pub(super) fn room_came(&mut self) {
        if self.waiters > 0
            && let Some((now, parts)) = self.since(self.room.0, None)
            && now > self.room.0
        {
            self.room.0 = now;
            self.room.1.add_all(&parts);
        }
    }

    /// The write in `slot` has got its room.
    pub(super) fn has_room(&mut self, now: Time, slot: u32) {
        self.waiters -= 1;
        let room = self.room.1;
        let course = &mut self.courses[slot as usize];
        let waited = now.saturating_sub(course.until);
        // It may have come between two of the moments at which that is worked out.
        let parts = room.since(&course.room).scaled_to(waited);
        if parts.total() == waited {
            course.goes_on(now, &parts);
            course.answer = course.answer.max_by_time((now, course.parts));
        }
    }

    /// The flush in `slot` waits for nothing more in the buffer.
    pub(super) fn flushed(&mut self, slot: u32) {
        self.before(slot, None);
        let course = &mut self.courses[slot as usize];
        course.answer = (course.until, course.parts);
    }

    /// The request in `slot` completes; what is not known of its time was spent on `rest`.
    pub(super) fn completed(&mut self, now: Time, slot: u32, request: Request, rest: LatencyPart) {
        let course = &mut self.courses[slot as usize];
        course.inside = false;
        let (until, mut parts) = course.answer.max_by_time((course.until, course.parts));
        parts.add(rest, now.saturating_sub(until));
        let latency = now - course.arrived;
        debug_assert_eq!(parts.total(), latency, "{request:?}: {parts:?}");
        self.done.push(ExplainedRequest { request, latency, parts });
    }
}

/// The later of two states; of equals the second.
trait MaxByTime {
    fn max_by_time(self, other: Self) -> Self;
}

impl MaxByTime for (Time, LatencyParts) {
    fn max_by_time(self, other: Self) -> Self {
        if self.0 > other.0 { self } else { other }
    }
}
