//! Completions on their way back, and interrupts (base 2.0c, clauses 3.3.3.2 and 3.4.2).

use ssdyno_block::Time;
use ssdyno_pci::BusMaster;
use ssdyno_spec::nvme::{CompletionEntry, NvmeStatus};
use zerocopy::IntoBytes;

use super::NvmeController;
use super::commands::{Command, NIL, State};
use super::interrupts::Wait;
use super::subsystem::FailedCommand;
use super::timers::Timer;
use ssdyno_device::Device;

impl<D: Device> NvmeController<D> {
    /// The command has ended at `at`; its completion sets out.
    #[inline(always)]
    pub(super) fn finish(&mut self, at: Time, slot: u32, status: NvmeStatus) {
        let command = self.commands.get_mut(slot);
        command.status = status;
        command.state = State::Posting;
        if !status.is_success() {
            command.status = self.subsystem.version().status(status);
            let Command { queue, id, status, .. } = *self.commands.get(slot);
            let nvm = &self.commands.get(slot).nvm;
            self.subsystem.log_error(FailedCommand { queue, id, status }, nvm);
        }
        // Entry and message cross the wire as one reservation, so that nothing gets between
        // them. The entry is in memory when the message still has to cross.
        let message = self.wire.times.message;
        let (_, end) = self.wire.to_host.reserve(at, self.wire.times.completion + message);
        self.pipes.posts.send(end - message + self.subsystem.config().completion_latency.0, slot);
    }

    /// The completion of `slot` reaches host memory, or waits for room there.
    #[inline]
    pub(super) fn post(&mut self, at: Time, slot: u32, bus: &mut dyn BusMaster) {
        let queue = self.commands.get(slot).queue;
        let Some(completion) = self.queues.completion_of(queue) else {
            return self.drop_command(slot);
        };
        // A completion also waits if others wait already, even if there is room. Otherwise it
        // would overtake them.
        if completion.is_full() || completion.held.is_some() {
            self.commands.get_mut(slot).state = State::Held;
            self.commands.get_mut(slot).next = NIL;
            match &mut completion.held {
                Some((_, last)) => {
                    self.commands.get_mut(*last).next = slot;
                    *last = slot;
                }
                held => *held = Some((slot, slot)),
            }
        } else {
            self.write_entry(at, slot, bus);
        }
        // A deletion of a queue waits for the commands of that queue. This completion may have
        // been the last one.
        if !self.queues.deletions.is_empty() {
            self.finish_deletions(at);
        }
    }

    #[inline(always)]
    fn write_entry(&mut self, at: Time, slot: u32, bus: &mut dyn BusMaster) {
        let command = *self.commands.get(slot);
        let Some(submission) = self.queues.submission(command.queue) else { return };
        let (head, id) = (submission.head, submission.completion);
        // The identifier is free before the host can see the completion. The host may use it
        // again in the same instant in which it finds the entry.
        if command.owns_id {
            submission.free_id(command.id);
        }
        let Some(completion) = self.queues.completion(id) else { return };
        let (address, phase) = completion.push(at);
        let (vector, interrupts) = (completion.vector, completion.interrupts);
        let entry = CompletionEntry {
            dword0: command.dword0.into(),
            dword1: 0.into(),
            // The head is read when the entry is written and not when the command ended. A later
            // value frees more entries of the ring for the host.
            submission_head: (head as u16).into(),
            submission_queue: command.queue.into(),
            command_id: command.id.into(),
            status_and_phase: (command.status.bits() << 1 | u16::from(phase)).into(),
        };
        // The slot is free before the interrupt goes out: the host may answer at once with the
        // next command, which needs a place.
        self.drop_command(slot);
        if command.queue != 0 && self.commands.is_idle() {
            self.subsystem.logs.idle(at);
        }
        self.counters.completions += 1;
        if bus.write(address, entry.as_bytes()).is_err() {
            // Without its queues a controller cannot go on (base 2.0c, clause 9.5).
            return self.registers.set_fatal();
        }
        if interrupts {
            match self.interrupts.posted(vector, id == 0) {
                Wait::Unchanged => {}
                Wait::Start(time) => self.timers.set(at + time, Timer::Coalesced(vector)),
                Wait::Stop => self.timers.cancel(Timer::Coalesced(vector)),
            }
        }
    }

    /// There is room again in completion queue `queue`.
    pub(super) fn post_held(&mut self, at: Time, queue: u16, bus: &mut dyn BusMaster) {
        while let Some(completion) = self.queues.completion(queue)
            && !completion.is_full()
            && let Some((first, last)) = completion.held
        {
            let next = self.commands.get(first).next;
            // The chain is cut before the entry is written, because writing gives the slot back
            // and its link is lost with it.
            completion.held = (next != NIL).then_some((next, last));
            self.write_entry(at, first, bus);
        }
    }

    /// Sends the interrupts that are due.
    #[inline]
    pub(super) fn signal(&mut self, at: Time, bus: &mut dyn BusMaster) {
        if !self.interrupts.is_quiet(self.registers.mask) {
            self.send_interrupts(at, bus);
        }
    }

    #[inline(always)]
    fn send_interrupts(&mut self, at: Time, bus: &mut dyn BusMaster) {
        self.interrupts.set_mask(self.registers.mask);
        // The pin is level-triggered. It is released before other messages are sent, so that a
        // vector that is due now asserts it anew.
        if self.interrupts.must_release() {
            bus.deassert(at);
        }
        while let Some(vector) = self.interrupts.next_due() {
            if !self.faults.loses_interrupt() {
                self.counters.interrupts += 1;
                let pin = bus.interrupt(at + self.wire.times.message, vector);
                self.interrupts.sent(pin);
            }
        }
    }

    /// Answers asynchronous event requests as far as there are events.
    pub(super) fn send_events(&mut self, now: Time) {
        while let Some((slot, event)) = self.subsystem.next_event_due() {
            let command = self.commands.get_mut(slot);
            command.dword0 = event.dword();
            self.finish(now, slot, NvmeStatus::SUCCESS);
        }
    }
}
