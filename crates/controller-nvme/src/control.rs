//! Enable, reset, shutdown and doorbells (base 2.0c, clauses 3.5 to 3.7).

use ssdyno_block::{Request, Time, Token};
use ssdyno_pci::BusMaster;
use ssdyno_spec::nvme::{AsynchronousEvent, NvmeStatus, registers as offset};

use super::NvmeController;
use super::arbiter::Class;
use super::commands::State;
use super::faults::Stuck;
use super::queues::{BadDoorbell, CompletionQueue, SubmissionQueue};
use super::registers::Change;
use super::timers::Timer;
use ssdyno_device::Device;

/// Tokens from here on are flushes of shutdowns; slots are below.
const SHUTDOWN_TOKENS: u32 = 1 << 31;

/// The shutdown under way.
#[derive(Debug, Default)]
pub(super) struct Shutdown {
    /// The token of its flush.
    flush: Option<u32>,
    /// How many shutdowns there were: each flush has its own token.
    count: u32,
}

impl<D: Device> NvmeController<D> {
    /// A register that is no doorbell is written.
    #[cold]
    pub(super) fn write_register(&mut self, now: Time, offset: u32, value: u32) {
        let change = self.registers.write(offset, value);
        self.changed(now, change);
    }

    /// Executes a register write.
    pub(super) fn changed(&mut self, now: Time, change: Change) {
        match change {
            Change::Nothing => {}
            Change::Enable => self.enable(now),
            Change::Reset => self.reset(now),
            Change::Shutdown { abrupt } => self.shut_down(now, abrupt),
            Change::SubsystemReset => {
                self.reset(now);
                self.registers.subsystem_reset();
            }
        }
    }

    fn enable(&mut self, now: Time) {
        if self.faults.stuck.is_some() {
            return;
        }
        // Malformed set-up ends with CSTS.CFS. A host that waits for CSTS.RDY learns from it
        // that something is wrong, and not from a timeout.
        let Some(admin) = self.registers.admin_queues() else {
            return self.registers.set_fatal();
        };
        // A shutdown before the controller was enabled is over.
        self.registers.set_shutdown(0);
        self.shutdown.flush = None;
        self.timers.cancel(Timer::ShutDown);
        self.arbiter.reset(self.registers.weighted());
        let completion =
            CompletionQueue::new(admin.completion_base, admin.completion_entries, Some(0));
        self.queues.completion[0] = Some(CompletionQueue { submissions: 1, ..completion });
        let submission = SubmissionQueue::new(admin.submission_base, admin.submission_entries, 0);
        self.queues.submission[0] = Some(submission);
        self.arbiter.set_class(0, Class::Admin);
        // The queues exist at once, but doorbells count only once CSTS.RDY is set. `doorbell`
        // tests that bit.
        self.timers.set(now + self.subsystem.config().ready_time.0, Timer::Ready);
    }

    /// All queues are gone, commands in flight are forgotten (base 2.0c, clause 3.7.2).
    fn reset(&mut self, now: Time) {
        match self.faults.stuck {
            Some(Stuck::ForGood) => return,
            Some(Stuck::UntilReset) => self.faults.stuck = None,
            None => {}
        }
        self.registers.reset();
        self.queues.clear();
        // Places that were promised to reads on their way are given back. The reads will bring
        // nothing, and without this every reset would shrink the controller.
        for fetch in self.pipes.fetches.iter_mut() {
            self.commands.give_back(fetch.queue == 0, fetch.count);
        }
        self.pipes.fetches.clear();
        for slot in self.commands.all() {
            match self.commands.get(slot).state {
                State::Free | State::Forgotten => {}
                // The device still works on these. Their slots stay taken until it answers, so
                // that a new command cannot get the token of an old one.
                State::Device | State::Spoilt | State::Sanitized => {
                    self.commands.get_mut(slot).state = State::Forgotten
                }
                _ => self.drop_command(slot),
            }
        }
        self.pipes.lists.clear();
        self.pipes.posts.clear();
        // All timers but that of a sanitize operation are void: the commands that they belong to
        // are gone.
        self.timers.clear();
        self.shutdown.flush = None;
        self.interrupts.reset();
        self.reset_queue_features();
        self.subsystem.reset(now);
    }

    /// A controller level reset that leaves the admin queue registers as after power-on (base 2.0c,
    /// clause 3.7.2). One that hangs for good does not hear it.
    pub(super) fn function_level_reset(&mut self, now: Time) {
        self.reset(now);
        self.registers.function_level_reset();
    }

    fn shut_down(&mut self, now: Time, abrupt: bool) {
        self.registers.set_shutdown(offset::CSTS_SHUTDOWN_PROCESSING);
        // While all is erased nothing is in the cache.
        if abrupt || !self.subsystem.has_cache() || self.subsystem.is_sanitizing() {
            return self.timers.set(now + self.subsystem.config().admin_time.0, Timer::ShutDown);
        }
        // Each flush has a token of its own. If a reset ends this shutdown and another one
        // begins, the answer to the first flush must not complete the second shutdown.
        self.shutdown.count = (self.shutdown.count + 1) % SHUTDOWN_TOKENS;
        let token = SHUTDOWN_TOKENS + self.shutdown.count;
        match self.subsystem.device_mut().submit(now, Request::flush(), Token(token)) {
            Ok(()) => self.shutdown.flush = Some(token),
            // The device takes no flush now. The shutdown completes all the same, because a host
            // that waits for it would wait until its timeout.
            Err(_) => self.timers.set(now, Timer::ShutDown),
        }
    }

    /// A flush of a shutdown is done, perhaps of one that a reset has overtaken.
    pub(super) fn shutdown_flushed(&mut self, token: u32) -> bool {
        if token < SHUTDOWN_TOKENS {
            return false;
        }
        if self.shutdown.flush == Some(token) {
            self.shutdown.flush = None;
            self.registers.set_shutdown(offset::CSTS_SHUTDOWN_COMPLETE);
        }
        true
    }

    pub(super) fn timer(&mut self, at: Time, timer: Timer, bus: &mut dyn BusMaster) {
        match timer {
            Timer::Ready => self.registers.set_ready(),
            Timer::Finish(slot) => {
                let status = self.commands.get(slot).status;
                self.finish(at, slot, status);
            }
            Timer::Begin(slot) => self.begin_on_device(at, slot, bus),
            Timer::Coalesced(vector) => self.interrupts.time_is_up(vector),
            Timer::ShutDown => self.registers.set_shutdown(offset::CSTS_SHUTDOWN_COMPLETE),
            Timer::KeepAlive => self.keep_alive_expired(),
            Timer::Sanitized => {
                self.subsystem.end_sanitize();
                self.send_events(at);
            }
        }
    }

    /// A doorbell is written (base 2.0c, clauses 3.1.4.1 and 3.1.4.2).
    #[inline(always)]
    pub(super) fn doorbell(&mut self, now: Time, at: u32, value: u32) {
        // A doorbell before CSTS.RDY belongs to no queue that the host may use. It is not an error
        // that an event could report, because there is no admin queue to report it in.
        if !self.registers.is_ready() || self.faults.stuck.is_some() {
            return;
        }
        if let Err(bad) = self.ring(at - offset::DOORBELLS, value & 0xffff) {
            self.counters.bad_doorbells += 1;
            let event = match bad {
                BadDoorbell::Register => AsynchronousEvent::INVALID_DOORBELL,
                BadDoorbell::Value => AsynchronousEvent::INVALID_DOORBELL_VALUE,
            };
            self.subsystem.logs.controller_error(NvmeStatus::INVALID_FIELD);
            self.subsystem.raise(event);
            self.send_events(now);
        }
    }

    #[inline(always)]
    fn ring(&mut self, at: u32, value: u32) -> Result<(), BadDoorbell> {
        let stride_shift = self.subsystem.config().doorbell_stride.0.trailing_zeros();
        let number = at >> stride_shift;
        // The stride leaves gaps between doorbells (CAP.DSTRD). A write into a gap is for no
        // queue.
        if at & ((1 << stride_shift) - 1) != 0
            || number >> 1 > u32::from(self.subsystem.config().io_queues)
        {
            return Err(BadDoorbell::Register);
        }
        let queue = (number >> 1) as u16;
        if number & 1 == 0 {
            // The deletion has ended all commands of the queue. An entry that came now would
            // keep it from ever completing.
            if self.is_being_deleted(queue) {
                return Err(BadDoorbell::Register);
            }
            let submission = self.queues.submission(queue).ok_or(BadDoorbell::Register)?;
            submission.ring(value)?;
            self.arbiter.pend(queue);
        } else {
            let completion = self.queues.completion(queue).ok_or(BadDoorbell::Register)?;
            let taken = completion.ring(value)?;
            if completion.interrupts {
                self.interrupts.taken(completion.vector, taken);
            }
            if completion.held.is_some() {
                self.interrupts.has_room.push(queue);
            }
        }
        Ok(())
    }

    /// True if this doorbell tells, rightly, that entries were taken from an I/O completion queue
    /// which has room for all commands that are known, even without it.
    #[inline(always)]
    pub(super) fn makes_needless_room(&self, at: u32, value: u32) -> bool {
        let number = at >> self.subsystem.config().doorbell_stride.0.trailing_zeros();
        let aligned = number << self.subsystem.config().doorbell_stride.0.trailing_zeros() == at;
        if number & 1 == 0 || number < 2 || !aligned || !self.arbiter.is_idle() {
            return false;
        }
        // Every I/O command that is inside could complete to this queue. If all of them fit
        // without the doorbell, no completion can find the queue full before the doorbell is
        // delivered, so its exact time changes nothing.
        let known = self.commands.io();
        let queue = self.queues.completion.get((number >> 1) as usize).and_then(Option::as_ref);
        queue.is_some_and(|queue| {
            queue.held.is_none()
                && queue.waiting() + known < queue.entries
                && queue.has_taken(value).is_ok()
        }) && self.registers.is_ready()
            && self.faults.stuck.is_none()
    }

    /// The remaining effects of register writes, now that there is a bus.
    #[inline(always)]
    pub(super) fn after_writes(&mut self, now: Time, bus: &mut dyn BusMaster) {
        while let Some(queue) = self.interrupts.has_room.pop() {
            self.post_held(now, queue, bus);
        }
        self.signal(now, bus);
        self.start_fetches(now);
    }
}
