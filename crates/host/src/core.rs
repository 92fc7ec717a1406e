//! One core: its work at interrupt level and below.

use std::collections::VecDeque;

use ssdyno_block::Time;

/// The work of a core below interrupt level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doing {
    /// Nothing; since then.
    Idle(Time),
    /// A thread's step, which ends at this time unless an interrupt comes in between.
    Step { thread: u32, end: Time },
    /// A thread spins for a lock, or polls: nothing ends by itself.
    Spin { thread: u32, since: Time, stolen: Time },
    /// A thread was told something and is in its own code: it may ask for more at this moment.
    User { thread: u32 },
}

/// A core.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub(crate) doing: Doing,
    /// Busy at interrupt level, or with the end of a step that was not waited for, until then.
    pub(crate) busy_until: Time,
    /// All time that interrupts took.
    pub(crate) stolen: Time,
    /// An event for the end of a step is pending.
    pub(crate) event: bool,
    /// Since when its thread has it.
    pub(crate) since: Time,
    /// Threads that are ready, in order.
    pub(crate) ready: VecDeque<u32>,
    /// Vectors whose handlers wait for their turn.
    pub(crate) raised: VecDeque<u16>,
}

impl Core {
    pub(crate) fn new() -> Core {
        Core {
            doing: Doing::Idle(Time::ZERO),
            busy_until: Time::ZERO,
            stolen: Time::ZERO,
            event: false,
            since: Time::ZERO,
            ready: VecDeque::new(),
            raised: VecDeque::new(),
        }
    }

    /// Work of `length` at interrupt level, ready at `at`: gives its end. A step under way ends
    /// later by that much.
    #[inline]
    pub(crate) fn steal(&mut self, at: Time, length: Time) -> Time {
        // Handlers of one core run one after another: a second interrupt waits until the first
        // handler has ended. Overlapping handlers would give a core more than one second of work
        // per second.
        let from = at.max(self.busy_until);
        self.busy_until = from + length;
        self.stolen += length;
        // The step only moves its end; the event for it stays in the queue and is scheduled again
        // when it fires. A removal from the queue per interrupt would cost more.
        if let Doing::Step { end, .. } = &mut self.doing {
            *end += length;
        }
        self.busy_until
    }

    /// When a step that is ready at `at` can begin.
    #[inline]
    pub(crate) fn begin(&self, at: Time) -> Time {
        at.max(self.busy_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_push_the_end_of_a_step_out() {
        let at = Time::from_ns;
        let mut core = Core::new();
        core.doing = Doing::Step { thread: 1, end: at(100) };
        assert_eq!(core.steal(at(40), at(10)), at(50));
        assert_eq!(core.steal(at(45), at(5)), at(55), "the second one waits for the first");
        assert_eq!(core.doing, Doing::Step { thread: 1, end: at(115) });
        assert_eq!(core.begin(at(50)), at(55));
        assert_eq!(core.stolen, at(15));
    }
}
