//! The work of threads, step by step.

use ssdyno_block::{Completion, Op, Request, Status, SubmitError, Time, Token};

use crate::Host;
use crate::account::CpuCause;
use crate::cached::{Next, Prepared};
use crate::config::{CompletionWait, ThreadMode};
use crate::core::Doing;
use crate::host::Event;
use crate::jobs::{Command, INNER, State, Step};
use crate::port::HostPort;
use crate::watch::CoreWatch;

impl<P: HostPort, W: CoreWatch> Host<P, W> {
    /// `thread` wants its core from `at` on.
    pub(crate) fn make_ready(&mut self, thread: u32, at: Time) {
        let core = self.line_up(thread, at);
        match self.cores[core as usize].doing {
            Doing::Idle(_) => self.dispatch(core, at),
            // A thread that only looks gives way.
            Doing::Spin { thread: other, .. }
                if self.threads[other as usize].state == State::Running(Step::Poll) =>
            {
                self.end_spin(core, CpuCause::Poll, at);
                self.line_up(other, at);
                self.dispatch(core, at);
            }
            _ => {}
        }
    }

    /// `thread` waits for its turn on its core, which it can use from `at` on; gives the core.
    pub(crate) fn line_up(&mut self, thread: u32, at: Time) -> u16 {
        let entry = &mut self.threads[thread as usize];
        (entry.state, entry.ready_at) = (State::Ready, at);
        let core = entry.core;
        self.cores[core as usize].ready.push_back(thread);
        core
    }

    /// The core is free from `at` on: the next thread, or idleness.
    pub(crate) fn dispatch(&mut self, core: u16, at: Time) {
        let place = &mut self.cores[core as usize];
        let Some(thread) = place.ready.pop_front() else {
            if !matches!(place.doing, Doing::Idle(_)) {
                place.doing = Doing::Idle(place.begin(at));
            }
            // A switch to idleness is counted apart from a switch to a thread. The switches per I/O
            // of S4-38 can then be computed with and without the idle task.
            self.account.switches_to_idle += 1;
            return;
        };
        let mut at = at.max(self.threads[thread as usize].ready_at);
        if let Doing::Idle(since) = place.doing
            && since.max(place.busy_until) < at
        {
            // The exit latency is paid only if the core was idle for some time. A thread that
            // becomes ready at the moment in which the core becomes free finds the core still
            // awake.
            at += self.setup.costs.idle_exit;
        }
        place.since = at;
        self.account.context_switches += 1;
        let switch = self.charge(core, CpuCause::Switch, self.setup.costs.context_switch);
        self.run_thread(core, thread, at, switch);
    }

    /// `thread` has the core from `at` on: what is next? `before` is work that was charged already.
    pub(crate) fn run_thread(&mut self, core: u16, thread: u32, at: Time, before: Time) {
        let place = &self.cores[core as usize];
        // A thread loses its core only if another thread is ready. Without the second condition a
        // single thread would pay for context switches that no scheduler makes.
        if at > place.since + self.setup.time_slice && !place.ready.is_empty() {
            self.line_up(thread, at + before);
            return self.leave_ready(core, at + before);
        }
        let waits_for_all = self.setup.plan.mode == ThreadMode::Batch;
        let entry = &self.threads[thread as usize];
        if entry.may_return(waits_for_all) {
            return self.go_back(core, thread, at, before);
        }
        if let Some(token) = entry.to_submit.front().copied() {
            self.threads[thread as usize].at_barrier = false;
            match self.prepare(core, thread, token, at) {
                Prepared::Command(length) => {
                    return self.begin(core, thread, Step::Prepare, at, before + length);
                }
                Prepared::Served(length) => {
                    return self.begin(core, thread, Step::Served, at, before + length);
                }
                Prepared::NoBuffer => return self.no_buffer(core, thread, at, before),
                Prepared::Throttled => {
                    self.threads[thread as usize].state = State::Throttled;
                    self.cache.write_back.throttled.push(thread);
                    return self.leave(core, thread, at + before);
                }
                Prepared::Barrier => self.threads[thread as usize].at_barrier = true,
            }
        }
        // Work that was already charged must take time on the core, even if the thread has nothing
        // left to do. Otherwise CPU time and busy time of the core would differ.
        if before > Time::ZERO {
            return self.begin(core, thread, Step::Nothing, at, before);
        }
        self.park(core, thread, at);
    }

    /// There is no buffer for the thread's next command.
    fn no_buffer(&mut self, core: u16, thread: u32, at: Time, before: Time) {
        // This prevents a deadlock: completed commands hold the buffers until the thread copies
        // their data. A thread that slept here would wait for buffers that only itself can release.
        if !self.threads[thread as usize].inbox.is_empty() {
            // Its own data fills the buffers.
            return self.go_back(core, thread, at, before);
        }
        self.threads[thread as usize].state = State::NoBuffer;
        self.contention.wait_for_buffer(thread);
        self.account.queue_full += 1;
        self.leave(core, thread, at + before);
    }

    /// Begins to copy what has arrived.
    #[inline(always)]
    fn go_back(&mut self, core: u16, thread: u32, at: Time, before: Time) {
        let entry = &mut self.threads[thread as usize];
        entry.copying = entry.inbox.len();
        entry.returning = entry.finished.len();
        let bytes = |slot: &u32| self.setup.costs.copy(self.commands.get(*slot).bytes);
        let copies = entry.inbox.iter().map(bytes).sum::<Time>() + self.copies_back(thread);
        let length = before + self.charge(core, CpuCause::Copy, copies);
        self.begin(core, thread, Step::Return, at, length);
    }

    /// A step of `length`, from `at` on or when the core is free of interrupts.
    pub(crate) fn begin(&mut self, core: u16, thread: u32, step: Step, at: Time, length: Time) {
        self.threads[thread as usize].state = State::Running(step);
        let place = &mut self.cores[core as usize];
        let end = place.begin(at) + length;
        place.doing = Doing::Step { thread, end };
        self.watch.begun(core, end);
        if !place.event {
            place.event = true;
            self.queue.schedule(end, Event::StepEnd(core));
        }
    }

    #[inline(always)]
    pub(crate) fn step_end(&mut self, at: Time, core: u16) {
        let place = &mut self.cores[core as usize];
        place.event = false;
        let Doing::Step { thread, end } = place.doing else { return };
        if end > at {
            // Interrupts came in between.
            place.event = true;
            return self.queue.schedule(end, Event::StepEnd(core));
        }
        self.watch.ended(core);
        match self.threads[thread as usize].state {
            // The lock is taken after the preparation: copies and the block layer run outside the
            // critical section. With the copy inside, the lock would serialise all cores (S1-34).
            State::Running(Step::Prepare) if self.setup.shared => self.take_lock(core, thread, at),
            State::Running(Step::Prepare) => {
                let class = self.threads[thread as usize].class;
                let choice = self.port.choose(core, class);
                if let Some(at) = self.issue(core, thread, at, choice.queue) {
                    self.run_thread(core, thread, at, Time::ZERO);
                }
            }
            State::Running(Step::Issue { queue, lock }) => {
                let issued = self.issue(core, thread, at, queue);
                self.give_lock(lock, issued.unwrap_or(at));
                if let Some(at) = issued {
                    self.run_thread(core, thread, at, Time::ZERO);
                }
            }
            State::Running(Step::Served) => self.served(core, thread, at),
            State::Running(Step::Return) => self.take_back(core, thread, at),
            State::Running(Step::Nothing) => self.run_thread(core, thread, at, Time::ZERO),
            state => unreachable!("no step of {state:?} ends"),
        }
    }

    /// The needs of the next command of `token` before it can be issued.
    fn prepare(&mut self, core: u16, thread: u32, token: u32, at: Time) -> Prepared {
        let entry = &mut self.threads[thread as usize];
        if self.setup.copies && !entry.has_buffer {
            if !self.contention.take_buffer() {
                return Prepared::NoBuffer;
            }
            entry.has_buffer = true;
        }
        // A thread that found no room in the queue repeats this step. The flag prevents a second
        // charge for the same command, which would raise the CPU time of a full queue.
        if entry.prepared {
            return Prepared::Command(Time::ZERO);
        }
        let Some(mut length) = self.plan_job(core, token, at) else { return Prepared::Throttled };
        if self.at_barrier(token) {
            return Prepared::Barrier;
        }
        length += self.enter(core, thread, token);
        let Some(next) = self.next_command(token) else { return Prepared::Served(length) };
        self.threads[thread as usize].prepared = true;
        let job = self.jobs[token];
        let costs = self.setup.costs;
        // The block layer works once per request and once per piece. A request that is split at the
        // transfer limit (S1-52) therefore pays `request` only for the first command.
        let first = if job.commands == 0 { costs.request } else { Time::ZERO };
        length += self.charge(core, CpuCause::BlockLayer, first + costs.piece);
        length += self.charge(core, CpuCause::Scsi, costs.scsi);
        let Request { op, length_bytes, .. } = next.request;
        if op == Op::Write && self.setup.copies {
            length += self.charge(core, CpuCause::Copy, costs.copy(length_bytes));
        }
        let protocol = self.port.protocol_work(op, length_bytes, false);
        length += self.charge(core, CpuCause::Network, protocol);
        if !self.setup.shared {
            length += self.charge(core, CpuCause::Driver, costs.command);
        }
        Prepared::Command(length)
    }

    /// Into the kernel, unless the thread is there already; gives what it takes.
    fn enter(&mut self, core: u16, thread: u32, token: u32) -> Time {
        // A batch enters the kernel once. The cost per I/O falls with the batch size, which is the
        // effect that S4-44 compares between psync and io_uring.
        let inside = std::mem::replace(&mut self.threads[thread as usize].entered, true);
        if inside || token & INNER != 0 {
            return Time::ZERO;
        }
        self.account.system_calls += u64::from(self.setup.costs.system_calls);
        let extra = self.threads.switch_more(self.setup.costs.extra_switches);
        self.account.context_switches += extra;
        let switches =
            self.setup.costs.context_switch.as_ps() as f64 * self.setup.costs.extra_switches;
        self.charge(core, CpuCause::SystemCall, self.setup.costs.system_call)
            + self.charge(core, CpuCause::Switch, Time::from_ps(switches as u64))
    }

    /// Hands the next command of `thread` to the driver; gives when the core is free again, or
    /// `None` if there was no room and the thread has left the core.
    #[inline(always)]
    fn issue(&mut self, core: u16, thread: u32, at: Time, queue: u16) -> Option<Time> {
        let group = self.group(thread);
        let entry = &mut self.threads[thread as usize];
        // A newcomer must not overtake threads that wait for room; `granted` marks the thread that
        // was chosen. Without it, a busy core could starve the waiting threads.
        if !std::mem::take(&mut entry.granted) && self.contention.waits_for_room(group) {
            self.no_room(core, thread, at);
            return None;
        }
        let token = entry.to_submit[0];
        let Some(next) = self.next_command(token) else {
            unreachable!("a command was prepared for {token}")
        };
        let Next { request: piece, page, pages, detached, whole } = next;
        let entry = &self.threads[thread as usize];
        // A shared queue rings for each command: the lock is released afterwards, and another
        // core's commands behind an unrung tail would wait for this thread.
        let more = self.setup.plan.doorbell_per_batch
            && !self.setup.shared
            && (!whole || entry.to_submit.len() > 1);
        let command = Command {
            thread,
            token,
            op: piece.op,
            detached,
            bytes: piece.length_bytes,
            issued: at,
            page,
            pages,
        };
        let slot = self.commands.insert(command);
        self.device.touched = true;
        let registers = match self.port.submit(at, queue, piece, Token(slot), more) {
            Ok(registers) => registers,
            Err(error) => {
                assert!(
                    error == SubmitError::Full,
                    "the driver refuses a checked request: {error}"
                );
                self.commands.remove(slot);
                self.no_room(core, thread, at);
                return None;
            }
        };
        self.issued(thread, token, &next);
        let entry = &mut self.threads[thread as usize];
        if !more {
            entry.unrung.retain(|other| *other != queue);
        } else if !entry.unrung.contains(&queue) {
            entry.unrung.push(queue);
        }
        let mut end = at + self.registers(core, registers);
        if !more {
            end += self.ring(core, thread, at);
        }
        self.watch.placed(core, end);
        let place = &mut self.cores[core as usize];
        place.busy_until = place.busy_until.max(end);
        Some(end)
    }

    /// The driver has taken a command of `token`.
    #[inline(always)]
    fn issued(&mut self, thread: u32, token: u32, next: &Next) {
        self.account.commands += 1;
        let entry = &mut self.threads[thread as usize];
        entry.has_buffer = false;
        entry.prepared = false;
        let job = &mut self.jobs[token];
        job.issued += next.request.length_bytes;
        job.commands += 1;
        job.whole = next.whole;
        if !next.detached {
            job.open += 1;
            entry.at_device += 1;
        }
        if next.whole {
            entry.to_submit.pop_front();
            if next.detached && token & INNER == 0 && job.is_done() {
                entry.finished.push(token);
                self.account.delivered_early += u64::from(self.setup.write_behind);
            }
        }
        self.cache.piece_issued(token);
    }

    /// Rings the doorbells that `thread` has put off; gives what it took.
    #[inline(always)]
    fn ring(&mut self, core: u16, thread: u32, at: Time) -> Time {
        if self.threads[thread as usize].unrung.is_empty() {
            return Time::ZERO;
        }
        self.ring_all(core, thread, at)
    }

    fn ring_all(&mut self, core: u16, thread: u32, at: Time) -> Time {
        let mut length = Time::ZERO;
        while let Some(queue) = self.threads[thread as usize].unrung.pop() {
            self.device.touched = true;
            let registers = self.port.ring(at, queue);
            length += self.registers(core, registers);
        }
        length
    }

    fn no_room(&mut self, core: u16, thread: u32, at: Time) {
        self.account.queue_full += 1;
        self.threads[thread as usize].state = State::NoRoom;
        let group = self.group(thread);
        self.contention.wait_for_room(group, thread);
        self.leave(core, thread, at);
    }

    /// The thread gives up its core.
    fn leave(&mut self, core: u16, thread: u32, at: Time) {
        let end = at + self.ring(core, thread, at);
        self.leave_ready(core, end);
    }

    /// Nothing to do but wait.
    fn park(&mut self, core: u16, thread: u32, at: Time) {
        let end = at + self.ring(core, thread, at);
        let awaited = self.threads[thread as usize].at_device > 0;
        if awaited && self.setup.plan.waiting == CompletionWait::Poll {
            return self.look(core, thread, end);
        }
        if awaited && self.setup.plan.waiting == CompletionWait::Hybrid {
            // Hybrid polling sleeps for half of the mean time, as Linux did, and polls afterwards.
            // It polls at once without a mean, and does not sleep twice for one wait.
            if self.threads[thread as usize].napped || self.device.mean == Time::ZERO {
                return self.look(core, thread, end);
            }
            self.threads[thread as usize].state = State::Napping;
            self.queue.schedule(end + self.device.mean / 2, Event::Timer(thread));
            return self.leave(core, thread, end);
        }
        self.threads[thread as usize].state = State::Asleep;
        self.leave(core, thread, end);
    }

    /// Looks for completions, unless somebody else wants the core.
    fn look(&mut self, core: u16, thread: u32, at: Time) {
        if self.cores[core as usize].ready.is_empty() {
            return self.spin(core, thread, Step::Poll, at);
        }
        let look = self.charge(core, CpuCause::Poll, self.setup.costs.poll);
        self.line_up(thread, at + look);
        self.leave_ready(core, at + look);
    }

    fn leave_ready(&mut self, core: u16, at: Time) {
        self.watch.placed(core, at);
        let place = &mut self.cores[core as usize];
        place.busy_until = place.busy_until.max(at);
        place.doing = Doing::Idle(at);
        self.dispatch(core, at);
    }

    /// A thread that looks has found something, or something else to do.
    pub(crate) fn stop_polling(&mut self, thread: u32, at: Time) {
        let core = self.threads[thread as usize].core;
        self.end_spin(core, CpuCause::Poll, at);
        let look = self.charge(core, CpuCause::Poll, self.setup.costs.poll);
        self.run_thread(core, thread, at, look);
    }

    /// The thread takes back what has arrived; whole requests are reported.
    #[inline(always)]
    fn take_back(&mut self, core: u16, thread: u32, at: Time) {
        let mut inbox = std::mem::take(&mut self.threads[thread as usize].inbox);
        let copied = self.threads[thread as usize].copying;
        for slot in inbox.drain(..copied) {
            let command = self.commands.remove(slot);
            self.free_buffer(at);
            self.part_done(&command);
        }
        let entry = &mut self.threads[thread as usize];
        // Nothing arrives while this runs.
        // The vector goes back to keep its memory. A new vector per wake-up would allocate in the
        // path of a request.
        entry.inbox = inbox;
        let all = entry.finished.len() as u32 == entry.outstanding;
        let waits_for_all = self.setup.plan.mode == ThreadMode::Batch;
        if entry.finished.is_empty() || waits_for_all && !all {
            return self.run_thread(core, thread, at, Time::ZERO);
        }
        let mut finished = std::mem::take(&mut entry.finished);
        if self.cache.is_there() {
            // Those that came since have not been copied.
            entry.finished = finished.split_off(entry.returning);
        }
        entry.outstanding -= finished.len() as u32;
        entry.entered = false;
        entry.napped = false;
        self.account.delivered_by_core[core as usize] += finished.len() as u64;
        for token in finished.drain(..) {
            let job = &self.jobs[token];
            if job.status != Status::Ok {
                self.account.failed_by_core[core as usize] += 1;
            } else if matches!(job.request.op, Op::Read | Op::Write) {
                let bytes = u64::from(job.request.length_bytes);
                self.account.bytes_by_core[core as usize] += bytes;
            }
            self.threads.out.push(Completion {
                token: Token(token),
                status: job.status,
                // The completion less the time in the device. The first command's own time would
                // make the driver, the interrupt and the wake-up a part of the device.
                accepted: at.saturating_sub(job.in_device()),
                completed: at,
            });
        }
        let entry = &mut self.threads[thread as usize];
        if entry.finished.is_empty() {
            entry.finished = finished;
        }
        entry.state = State::Running(Step::User);
        self.account.last_delivery = at;
        self.account.device_bytes_at_last_delivery = self.device.bytes;
        self.cores[core as usize].doing = Doing::User { thread };
        self.threads.users.push(core);
    }

    /// One awaited command of a request is done.
    #[inline(always)]
    pub(crate) fn part_done(&mut self, command: &Command) {
        let job = &mut self.jobs[command.token];
        job.open -= 1;
        if job.is_done() {
            self.threads[command.thread as usize].finished.push(command.token);
        }
    }

    /// A buffer is free: the thread that has waited longest may try again.
    pub(crate) fn free_buffer(&mut self, at: Time) {
        if !self.setup.copies {
            return;
        }
        if let Some(thread) = self.contention.free_buffer() {
            self.threads[thread as usize].has_buffer = true;
            self.make_ready(thread, at);
        }
    }
}
