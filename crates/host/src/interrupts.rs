//! The interrupts of the device, and their receivers.

use ssdyno_block::{Completion, Op, Status, Time};

use crate::Host;
use crate::account::CpuCause;
use crate::config::{CompletionWait, ThreadMode};
use crate::core::Doing;
use crate::host::Event;
use crate::jobs::{Command, State, Step};
use crate::port::{HostPort, ResentCommand};
use crate::watch::CoreWatch;

impl<P: HostPort, W: CoreWatch> Host<P, W> {
    /// The message of `vector` has arrived.
    #[inline(always)]
    pub(crate) fn message(&mut self, at: Time, vector: u16) {
        self.account.messages += 1;
        if self.setup.plan.waiting != CompletionWait::Interrupt {
            // Interrupts are off; the message only says from when on a look finds something.
            return self.found(at, vector);
        }
        // A message that arrives before the handler of its vector has run adds no interrupt: the
        // handler finds both completions. This is the coalescing that occurs under load without a
        // timer.
        if !self.device.raise(vector) {
            self.account.interrupts_merged += 1;
            return;
        }
        self.account.interrupts += 1;
        let mut core = self.port.core_of(vector);
        // A device can have more vectors than the run has cores. The remainder spreads them evenly;
        // the last core for all of them would receive most of the interrupts.
        if usize::from(core) >= self.cores.len() {
            core %= self.cores.len() as u16;
        }
        let end = self.interrupt(core, at);
        self.cores[core as usize].raised.push_back(vector);
        self.queue.schedule(end, Event::Handler(core));
    }

    /// Interrupt entry on `core`; gives when its handler begins.
    #[inline(always)]
    fn interrupt(&mut self, core: u16, at: Time) -> Time {
        let length = self.charge(core, CpuCause::Interrupt, self.setup.costs.interrupt);
        let place = &self.cores[core as usize];
        let mut from = at;
        if let Doing::Idle(since) = place.doing
            && since.max(place.busy_until) < at
        {
            from += self.setup.costs.idle_exit;
        }
        self.work(core, from, length)
    }

    /// Work of `length` at interrupt level that is ready at `at`; gives its end.
    fn work(&mut self, core: u16, at: Time, length: Time) -> Time {
        let place = &mut self.cores[core as usize];
        let end = place.steal(at, length);
        self.watch.interrupted(core, end - length, end);
        // The idle time restarts after the handler. Otherwise a thread that the handler wakes would
        // pay the exit latency of a core that has just been active.
        if let Doing::Idle(since) = &mut place.doing {
            *since = end;
        }
        end
    }

    /// The handler: completed commands, one after another.
    #[inline(always)]
    pub(crate) fn handler(&mut self, at: Time, core: u16) {
        let Some(vector) = self.cores[core as usize].raised.pop_front() else { return };
        self.device.handled(vector);
        self.device.touched = true;
        let registers = self.port.complete(at, vector, &mut self.device.done);
        // An empty interrupt is counted, because it costs CPU without a result. It occurs if an
        // earlier handler of another vector has already taken the completion.
        if self.device.done.is_empty() {
            self.account.interrupts_empty += 1;
        }
        for place in 0..self.device.done.len() {
            let completion = self.device.done[place];
            let length = self.completion_work(core, &completion);
            let known = self.work(core, at, length);
            self.arrived(&completion, at, known, core);
        }
        self.device.done.clear();
        let length = self.registers(core, registers);
        self.work(core, at, length);
        self.pay_resent(at);
    }

    /// Charges commands that the port gave to the device again: what each took below the block layer the first
    /// time, and what it took to see that it had failed.
    #[inline(always)]
    pub(crate) fn pay_resent(&mut self, at: Time) {
        for command in self.port.take_resent() {
            let ResentCommand { core, op, bytes, completed } = command;
            let core = core % self.cores.len() as u16;
            let protocol = self.port.protocol_work(op, bytes, false);
            let seen = if completed { self.setup.costs.completion } else { Time::ZERO };
            let length = self.charge(core, CpuCause::Completion, seen)
                + self.charge(core, CpuCause::Scsi, self.setup.costs.scsi)
                + self.charge(core, CpuCause::Network, protocol)
                + self.charge(core, CpuCause::Driver, self.setup.costs.command);
            self.work(core, at, length);
        }
    }

    /// The cost of handling one completed command.
    fn completion_work(&mut self, core: u16, completion: &Completion) -> Time {
        let Command { op, bytes, .. } = *self.commands.get(completion.token.0);
        let protocol = self.port.protocol_work(op, bytes, true);
        self.charge(core, CpuCause::Completion, self.setup.costs.completion)
            + self.charge(core, CpuCause::Network, protocol)
    }

    /// Without interrupts: commands are done from `at` on, for those who look.
    fn found(&mut self, at: Time, vector: u16) {
        self.device.touched = true;
        let mut registers = self.port.complete(at, vector, &mut self.device.done);
        for place in 0..self.device.done.len() {
            let completion = self.device.done[place];
            let thread = self.commands.get(completion.token.0).thread;
            let core = self.threads[thread as usize].core;
            // The register writes are of whoever looks: the core of the first command.
            let length = self.completion_work(core, &completion)
                + self.registers(core, std::mem::take(&mut registers));
            let known = self.work(core, at, length);
            self.arrived(&completion, at, known, core);
        }
        self.device.done.clear();
        self.pay_resent(at);
    }

    /// One command is done, seen by its handler at `seen` and known to the kernel from `at` on; `by`
    /// wakes the waiting thread.
    #[inline(always)]
    fn arrived(&mut self, completion: &Completion, seen: Time, at: Time, by: u16) {
        let slot = completion.token.0;
        let command = *self.commands.get(slot);
        self.device.completed(&command, completion.status, seen);
        // A request of several commands fails if one of them fails, and a later success must not
        // hide the error. A detached write has already been answered, so its status is counted
        // only.
        if !command.detached && completion.status != Status::Ok {
            self.jobs[command.token].status = completion.status;
        }
        let must_copy = self.setup.copies && command.op == Op::Read;
        if command.detached {
            self.commands.remove(slot);
            self.free_buffer(at);
        } else {
            self.threads[command.thread as usize].at_device -= 1;
            self.jobs[command.token].left_device(&command, completion);
            if must_copy {
                self.threads[command.thread as usize].inbox.push(slot);
            } else {
                self.commands.remove(slot);
                self.free_buffer(at);
                self.part_done(&command);
            }
            self.tell(command.thread, at, by);
        }
        self.pages_arrived(&command, completion, at, by);
        self.room(command.thread, at, by);
    }

    /// Wakes `thread` if what has arrived is what it waits for.
    #[inline(always)]
    pub(crate) fn tell(&mut self, thread: u32, at: Time, by: u16) {
        let waits_for_all = self.setup.plan.mode == ThreadMode::Batch;
        let passes = self.passes_barrier(thread);
        let entry = &self.threads[thread as usize];
        // Its own data may be what fills the buffers.
        let stuck = entry.state == State::NoBuffer && !entry.inbox.is_empty();
        if !stuck && !passes && !entry.may_return(waits_for_all) {
            return;
        }
        match entry.state {
            State::Asleep => {}
            State::Throttled => self.cache.write_back.throttled.retain(|other| *other != thread),
            // The thread leaves the list before it is woken. A thread that stayed in the list could
            // be granted room while it runs, and the room would be lost for the others.
            State::NoRoom => {
                let group = self.group(thread);
                self.contention.leave_room(group, thread);
            }
            State::NoBuffer => {
                self.contention.leave_buffer(thread);
            }
            State::Running(Step::Poll) => {
                return self.stop_polling(thread, at);
            }
            State::Napping | State::Ready | State::Running(_) => return,
        }
        self.wake(thread, at, by);
    }

    /// True if `thread` waits at a barrier that nothing holds any more.
    fn passes_barrier(&self, thread: u32) -> bool {
        let entry = &self.threads[thread as usize];
        let first = entry.to_submit.front().filter(|_| entry.at_barrier);
        first.is_some_and(|token| self.jobs[*token].open == 0)
    }

    pub(crate) fn wake(&mut self, thread: u32, at: Time, by: u16) {
        let length = self.charge(by, CpuCause::Switch, self.setup.costs.wakeup);
        let end = self.work(by, at, length);
        self.make_ready(thread, end);
    }

    /// There is room where `thread` had a command: one of those who wait may have it (S1-59: by
    /// chance).
    #[inline(always)]
    fn room(&mut self, thread: u32, at: Time, by: u16) {
        let group = self.group(thread);
        let threads = &self.threads;
        let core = |thread: u32| threads[thread as usize].core;
        let Some(thread) = self.contention.next_for_room(group, core) else { return };
        // The grant travels with the thread until it runs. Between the wake-up and the run, another
        // thread could otherwise take the free place, and this one would wait again.
        self.threads[thread as usize].granted = true;
        self.wake(thread, at, by);
    }

    /// The nap of `thread` is over.
    pub(crate) fn timer(&mut self, at: Time, thread: u32) {
        // The timer can fire after the completion has already woken the thread. A second wake-up
        // would put one thread into the ready queue twice.
        if self.threads[thread as usize].state != State::Napping {
            return;
        }
        self.threads[thread as usize].napped = true;
        let core = self.threads[thread as usize].core;
        let end = self.interrupt(core, at);
        self.make_ready(thread, end);
    }
}
