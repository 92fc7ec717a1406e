//! The receiver of the work of each core: either none, which costs nothing, or a timeline.
//!
//! The account knows how long and why; here it also gets its place in time. Charges are collected until
//! the work they belong to has one: a step of a thread when it ends, because interrupts may cut it into
//! pieces; interrupts and spinning at once.

use std::fmt::Debug;

use ssdyno_block::Time;
use ssdyno_engine::events::{self, Activity, Busy, EventLog, PartEvent, PartKind};

use crate::account::{CAUSES, CpuCause};

/// Activity of a core that spins for a lock: beside those of the causes.
const LOCK_WAIT: u8 = CAUSES as u8;

/// The events of the cores of a [`Host`](crate::Host), not heard if there is no other method for them. Times are those of the host.
pub trait CoreWatch: Debug + Send {
    /// For so many cores.
    fn new(cores: u16) -> Self;
    /// `time` was charged to `core`; its place follows.
    #[inline(always)]
    fn charged(&mut self, _core: u16, _cause: CpuCause, _time: Time) {}
    /// What was charged is a thread's step that ends at `end`, or later by the interrupts until then.
    #[inline(always)]
    fn begun(&mut self, _core: u16, _end: Time) {}
    /// The step has ended.
    #[inline(always)]
    fn ended(&mut self, _core: u16) {}
    /// What was charged was interrupt work from `from` to `to`.
    #[inline(always)]
    fn interrupted(&mut self, _core: u16, _from: Time, _to: Time) {}
    /// What was charged lies before `end`, in one piece.
    #[inline(always)]
    fn placed(&mut self, _core: u16, _end: Time) {}
    /// The core begins to spin.
    #[inline(always)]
    fn spins(&mut self, _core: u16) {}
    /// It has spun from `from` to `to`, for a lock or for the device, with the interrupts in between.
    #[inline(always)]
    fn spun(&mut self, _core: u16, _cause: CpuCause, _from: Time, _to: Time) {}
    /// Hands what was heard to `log`, in the time of its readers.
    #[inline(always)]
    fn show(&mut self, _log: &mut EventLog) {}
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl CoreWatch for Unwatched {
    #[inline(always)]
    fn new(_: u16) -> Unwatched {
        Unwatched
    }
}

/// Events for a timeline: a core is a part, its work the activity, none of which overlap.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    lanes: Vec<Lane>,
    events: Vec<Busy>,
}

/// One core.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// Charged, and not yet placed.
    charged: Vec<(u8, Time)>,
    /// The step under way, from `from` on.
    step: Vec<(u8, Time)>,
    from: Time,
    /// A step or spinning is under way, and these interrupts came in between.
    open: bool,
    away: Vec<(Time, Time)>,
    /// Where the last event ends, and where it did when that began.
    end: Time,
    before: Time,
}

impl Lane {
    fn charge(&mut self, work: u8, time: Time) {
        match self.charged.last_mut() {
            Some((last, length)) if *last == work => *length += time,
            _ => self.charged.push((work, time)),
        }
    }

    // Interrupts inside a step are reported before the step itself, whose end is not known yet.
    // `before` remembers the position to which the step goes back.
    fn opens(&mut self) {
        self.open = true;
        self.before = self.end;
        self.away.clear();
    }

    /// What was charged, with its length.
    fn take(&mut self) -> (Vec<(u8, Time)>, Time) {
        let all = std::mem::take(&mut self.charged);
        let length = all.iter().map(|(_, time)| *time).sum();
        (all, length)
    }
}

impl Watched {
    /// One event, not before the last one of its core has ended.
    fn push(&mut self, core: u16, work: u8, from: Time, to: Time) {
        let lane = &mut self.lanes[usize::from(core)];
        // Events of one core must not overlap: trace viewers stack overlapping slices as nested
        // calls, and the sum over a core would exceed its time.
        let from = from.max(lane.end);
        if from >= to {
            return;
        }
        lane.end = to;
        self.events.push(Busy {
            part: PartEvent::new(PartKind::HostCore, core),
            activity: Activity::Cpu(work),
            cause: events::FlashCause::Host,
            operations: 0,
            from,
            to,
        });
    }

    /// Work from `from` on, with gaps for `away`.
    fn lay(&mut self, core: u16, all: &[(u8, Time)], mut from: Time, away: &[(Time, Time)]) {
        let mut away = away.iter().peekable();
        for &(work, mut left) in all {
            while left > Time::ZERO {
                while let Some(gap) = away.next_if(|gap| gap.0 <= from) {
                    from = from.max(gap.1);
                }
                let until = away.peek().map_or(Time::MAX, |gap| gap.0);
                let length = left.min(until - from);
                self.push(core, work, from, from + length);
                from += length;
                left -= length;
            }
        }
    }
}

impl CoreWatch for Watched {
    fn new(cores: u16) -> Watched {
        Watched { lanes: vec![Lane::default(); usize::from(cores)], events: Vec::new() }
    }

    fn charged(&mut self, core: u16, cause: CpuCause, time: Time) {
        if time > Time::ZERO {
            self.lanes[usize::from(core)].charge(cause as u8, time);
        }
    }

    fn begun(&mut self, core: u16, end: Time) {
        let lane = &mut self.lanes[usize::from(core)];
        let (all, length) = lane.take();
        lane.step = all;
        lane.from = end.saturating_sub(length);
        lane.opens();
    }

    fn ended(&mut self, core: u16) {
        let lane = &mut self.lanes[usize::from(core)];
        lane.open = false;
        let (all, from) = (std::mem::take(&mut lane.step), lane.from);
        // The interrupts have been told already: the lane is at their end.
        let (away, end) = (std::mem::take(&mut lane.away), lane.end);
        lane.end = lane.before;
        self.lay(core, &all, from, &away);
        let lane = &mut self.lanes[usize::from(core)];
        lane.end = lane.end.max(end);
    }

    fn interrupted(&mut self, core: u16, from: Time, to: Time) {
        let lane = &mut self.lanes[usize::from(core)];
        if lane.open {
            lane.away.push((from, to));
        }
        let (all, _) = lane.take();
        self.lay(core, &all, from, &[]);
    }

    fn placed(&mut self, core: u16, end: Time) {
        let (all, length) = self.lanes[usize::from(core)].take();
        self.lay(core, &all, end.saturating_sub(length), &[]);
    }

    fn spins(&mut self, core: u16) {
        self.lanes[usize::from(core)].opens();
    }

    fn spun(&mut self, core: u16, cause: CpuCause, from: Time, to: Time) {
        let lane = &mut self.lanes[usize::from(core)];
        lane.open = false;
        let away = std::mem::take(&mut lane.away);
        let inside = |gap: &(Time, Time)| gap.1.min(to).saturating_sub(gap.0.max(from));
        let length = to.saturating_sub(from).saturating_sub(away.iter().map(inside).sum());
        // Waiting for a lock and taking it are different activities in a timeline. The penalty of a
        // shared queue (S1-58, S1-62) is the wait, and a timeline must show it apart.
        let work = if cause == CpuCause::Lock { LOCK_WAIT } else { cause as u8 };
        let end = lane.end;
        lane.end = lane.before;
        self.lay(core, &[(work, length)], from, &away);
        let lane = &mut self.lanes[usize::from(core)];
        lane.end = lane.end.max(end);
    }

    fn show(&mut self, log: &mut EventLog) {
        for event in self.events.drain(..) {
            log.push_for_readers(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_block::{Request, Token};

    use super::*;
    use crate::tests::{FixedPort, config, plan};
    use crate::{CompletionWait, Host, HostUse, LockOrder, ThreadMode};

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    fn told(watch: &Watched) -> Vec<(&'static str, u64, u64)> {
        let mut all: Vec<_> = watch.events.iter().collect();
        all.sort_by_key(|event| event.from);
        let ns = |time: Time| time.as_ps() / 1000;
        all.iter().map(|e| (e.activity.name(), ns(e.from), ns(e.to))).collect()
    }

    #[test]
    fn names_are_those_of_the_causes() {
        for cause in CpuCause::ALL {
            assert_eq!(Activity::Cpu(cause as u8).name(), cause.name());
        }
        assert_eq!(Activity::Cpu(LOCK_WAIT).name(), "lock_wait");
    }

    #[test]
    fn interrupts_cut_a_step_into_pieces() {
        let mut watch = Watched::new(1);
        watch.charged(0, CpuCause::SystemCall, at(30));
        watch.charged(0, CpuCause::Driver, at(70));
        watch.begun(0, at(200));
        for from in [110, 150] {
            watch.charged(0, CpuCause::Interrupt, at(5));
            watch.charged(0, CpuCause::Completion, at(5));
            watch.interrupted(0, at(from), at(from + 10));
        }
        watch.ended(0);
        watch.charged(0, CpuCause::Registers, at(20));
        watch.placed(0, at(240));
        assert_eq!(
            told(&watch),
            [
                ("system_call", 100, 110),
                ("interrupt", 110, 115),
                ("completion", 115, 120),
                ("system_call", 120, 140),
                ("driver", 140, 150),
                ("interrupt", 150, 155),
                ("completion", 155, 160),
                ("driver", 160, 220),
                ("registers", 220, 240),
            ]
        );
    }

    #[test]
    fn spinning_is_told_without_the_interrupts() {
        let mut watch = Watched::new(2);
        watch.spins(1);
        watch.charged(1, CpuCause::Interrupt, at(10));
        watch.interrupted(1, at(20), at(30));
        watch.spun(1, CpuCause::Lock, at(5), at(50));
        assert_eq!(
            told(&watch),
            [("lock_wait", 5, 20), ("interrupt", 20, 30), ("lock_wait", 30, 50)]
        );
    }

    /// A closed loop over a device of fixed times.
    fn run(plan: HostUse, shared: bool, depth: u32) -> Host<FixedPort, Watched> {
        let mut config = config();
        config.lock.order = LockOrder::Fifo;
        let cores = plan.cores;
        let port = FixedPort::new(cores, if shared { 1 } else { cores }, shared, 64, 4);
        let mut host = Host::<_, Watched>::new(&config, plan, port, 3).unwrap();
        let request = Request::read(0, 4096);
        let (mut now, mut left, mut batch) = (Time::ZERO, 2000_u32, Vec::new());
        (0..depth).for_each(|token| host.submit(now, request, Token(token)).unwrap());
        while let Some(next) = host.next_event() {
            now = next;
            host.reap(now, &mut batch);
            for done in batch.drain(..) {
                if left > 0 {
                    left -= 1;
                    host.submit(now, request, done.token).unwrap();
                }
            }
        }
        host
    }

    /// The events of each core do not overlap, and add up to its account to the picosecond.
    #[test]
    fn lanes_are_the_account_in_time() {
        for waiting in [CompletionWait::Interrupt, CompletionWait::Poll, CompletionWait::Hybrid] {
            for (cores, shared) in [(1, false), (3, false), (1, true), (4, true)] {
                for mode in [ThreadMode::Sync, ThreadMode::Async, ThreadMode::Batch] {
                    let host = run(HostUse { waiting, ..plan(cores, mode) }, shared, 12);
                    let account = &host.account().cpu;
                    let what = format!("{waiting:?} {cores} {shared} {mode:?}");
                    let mut by_core = vec![[Time::ZERO; CAUSES + 1]; usize::from(cores)];
                    let mut last = vec![Time::ZERO; usize::from(cores)];
                    let mut events = host.watch.events.clone();
                    events.sort_by_key(|event| event.from);
                    for event in &events {
                        let core = usize::from(event.part.index);
                        assert!(event.from >= last[core], "{what}: {event:?} overlaps");
                        last[core] = event.to;
                        let Activity::Cpu(work) = event.activity else { panic!("{event:?}") };
                        by_core[core][usize::from(work)] += event.to - event.from;
                    }
                    for cause in CpuCause::ALL {
                        let waited = if cause == CpuCause::Lock { CAUSES } else { cause as usize };
                        let of = |core: &[Time; CAUSES + 1]| {
                            let own = core[cause as usize];
                            if waited == CAUSES { own + core[CAUSES] } else { own }
                        };
                        let told = by_core.iter().map(of).sum::<Time>();
                        let charged = account.of(cause);
                        // A lock may be handed to a core that an interrupt holds up: the hand-over is
                        // charged, but takes no time of its own.
                        let hidden = charged.saturating_sub(told);
                        let exact = hidden == Time::ZERO || cause != CpuCause::Lock;
                        assert!(!exact || told == charged, "{what}: {cause:?} {told} {charged}");
                        assert!(exact || hidden * 100 < charged, "{what}: {hidden} of {charged}");
                    }
                }
            }
        }
    }
}
