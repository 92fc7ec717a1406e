//! Threads that spin: for a lock of the driver, or for an answer.

use ssdyno_block::Time;

use crate::Host;
use crate::account::CpuCause;
use crate::core::Doing;
use crate::jobs::{State, Step};
use crate::lock::Waiter;
use crate::port::HostPort;
use crate::watch::CoreWatch;

impl<P: HostPort, W: CoreWatch> Host<P, W> {
    pub(crate) fn take_lock(&mut self, core: u16, thread: u32, at: Time) {
        let class = self.threads[thread as usize].class;
        let choice = self.port.choose(core, class);
        let lock = choice.lock.unwrap_or(choice.queue);
        self.account.locks += 1;
        if self.contention.acquire(lock, Waiter { core, thread }) {
            return self.hold(core, thread, Step::Issue { queue: choice.queue, lock }, at);
        }
        self.account.locks_contended += 1;
        self.spin(core, thread, Step::Spin { queue: choice.queue }, at);
    }

    /// The lock is held: build the command and issue it.
    fn hold(&mut self, core: u16, thread: u32, issue: Step, at: Time) {
        let length = self.charge(core, CpuCause::Lock, self.setup.costs.lock)
            + self.charge(core, CpuCause::Driver, self.setup.costs.command);
        self.begin(core, thread, issue, at, length);
    }

    pub(crate) fn give_lock(&mut self, lock: u16, at: Time) {
        let cores = &self.cores;
        let away = |core: u16| cores[core as usize].busy_until > at;
        let winner = self.contention.release(lock, away);
        let Some(winner) = winner else { return };
        let state = self.threads[winner.thread as usize].state;
        let State::Running(Step::Spin { queue }) = state else {
            unreachable!("{state:?} waits for a lock")
        };
        // The spin ends before the hand-over is charged. Both are lock costs, but the hand-over is
        // work with a fixed cost (assumed, S1-71), and only the spin depends on the other cores.
        let spun = self.end_spin(winner.core, CpuCause::Lock, at);
        self.account.lock_wait += spun;
        // A core inside an interrupt takes it when it is back.
        let back = self.cores[winner.core as usize].begin(at);
        let from = back + self.charge(winner.core, CpuCause::Lock, self.setup.costs.lock_handover);
        self.watch.placed(winner.core, from);
        self.hold(winner.core, winner.thread, Step::Issue { queue, lock }, from);
    }

    pub(crate) fn spin(&mut self, core: u16, thread: u32, step: Step, at: Time) {
        self.threads[thread as usize].state = State::Running(step);
        let place = &mut self.cores[core as usize];
        let since = place.begin(at);
        // What interrupts took before it began is not its loss.
        place.doing = Doing::Spin { thread, since, stolen: place.stolen };
        self.watch.placed(core, at);
        self.watch.spins(core);
    }

    /// Ends the spinning of `core` and charges it; gives how long it was.
    pub(crate) fn end_spin(&mut self, core: u16, cause: CpuCause, at: Time) -> Time {
        let place = &self.cores[core as usize];
        let Doing::Spin { since, stolen, .. } = place.doing else { return Time::ZERO };
        let until = place.begin(at);
        let interrupts = place.stolen - stolen;
        // Time in interrupt handlers was already charged to interrupts. Without the subtraction the
        // parts of the CPU time would exceed the time of the core.
        let spun = until.saturating_sub(since).saturating_sub(interrupts);
        self.watch.spun(core, cause, since, until);
        self.account.cpu.charge(core, cause, spun);
        spun
    }
}
