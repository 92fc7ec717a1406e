//! Admin commands as the PCI transport carries them out (base 2.0c, clause 5): those of queues here, all others by the
//! subsystem.

use ssdyno_block::{Fault, Time};
use ssdyno_pci::BusMaster;
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry, admin, feature};

use super::NvmeController;
use super::commands::State;
use super::faults::Effect;
use super::pages::HostPages;
use super::subsystem::{ABORTS_MAX, AdminOutcome, Kind, SanitizeOrder};
use super::timers::Timer;
use crate::answer::Answer;
use ssdyno_device::Device;

/// An admin command in the controller.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) at: Time,
    pub(super) slot: u32,
    pub(super) entry: &'a SubmissionEntry,
}

/// The outcome of an admin command.
pub(super) enum Outcome {
    /// It ends after its time, with this dword 0.
    Done(u32),
    /// It ends later, by itself.
    Later,
}

impl<D: Device> NvmeController<D> {
    /// An admin command is in the controller.
    pub(super) fn admin(
        &mut self,
        at: Time,
        slot: u32,
        entry: &SubmissionEntry,
        bus: &mut dyn BusMaster,
    ) {
        let (status, dword0) = match self.execute(Call { at, slot, entry }, bus) {
            Ok(Outcome::Later) => return,
            Ok(Outcome::Done(dword0)) => (NvmeStatus::SUCCESS, dword0),
            Err(status) => (status, 0),
        };
        let command = self.commands.get_mut(slot);
        (command.status, command.dword0) = (status, dword0);
        command.state = State::Timer;
        // A command that fails takes its time, too: the controller has to fetch and decode it
        // before it can refuse it.
        self.timers.set(at + self.subsystem.config().admin_time.0, Timer::Finish(slot));
    }

    fn execute(&mut self, call: Call<'_>, bus: &mut dyn BusMaster) -> Answer<Outcome> {
        let Call { at, slot, entry } = call;
        // Fused commands and SGLs are not offered.
        if entry.flags != 0 {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        self.subsystem.check_admin(entry)?;
        match entry.opcode {
            admin::DELETE_SUBMISSION_QUEUE => return self.delete_submission_queue(call),
            admin::CREATE_SUBMISSION_QUEUE => self.create_submission_queue(entry)?,
            admin::DELETE_COMPLETION_QUEUE => self.delete_completion_queue(entry)?,
            admin::CREATE_COMPLETION_QUEUE => self.create_completion_queue(entry, bus.vectors())?,
            admin::ABORT => return self.abort(call),
            admin::ASYNCHRONOUS_EVENT_REQUEST => return self.request_event(at, slot),
            _ => return self.execute_in_subsystem(call, bus),
        }
        Ok(Outcome::Done(0))
    }

    fn execute_in_subsystem(&mut self, call: Call<'_>, bus: &mut dyn BusMaster) -> Answer<Outcome> {
        let Call { at, slot, entry } = call;
        let outcome = match entry.opcode {
            admin::GET_FEATURES => self.get_features(entry, bus),
            _ => {
                let data = &mut HostPages { entry, registers: &self.registers, bus };
                self.subsystem.execute(at, entry, data)
            }
        };
        // Events go out whether or not the command succeeded: what it did before it failed may
        // have caused them.
        self.send_events(at);
        match outcome? {
            AdminOutcome::Done(dword0) => {
                let sets = entry.opcode == admin::SET_FEATURES
                    && entry.dword10.get() as u8 == feature::KEEP_ALIVE;
                if sets || entry.opcode == admin::KEEP_ALIVE {
                    self.keep_alive(at);
                }
                Ok(Outcome::Done(dword0))
            }
            AdminOutcome::TransportFeature => self.set_own_feature(entry).map(Outcome::Done),
            AdminOutcome::Deallocate(bytes) => {
                let command = &mut self.commands.get_mut(slot).nvm;
                let step = self.subsystem.deallocate_for_admin(command, bytes);
                self.take_step(at, slot, step, bus);
                Ok(Outcome::Later)
            }
            AdminOutcome::Sanitize(order) => self.sanitize(at, slot, order),
        }
    }

    /// Abort (base 2.0c, clause 5.1): what the device has not begun ends; all else goes on.
    fn abort(&mut self, call: Call<'_>) -> Answer<Outcome> {
        let Call { at, slot, entry } = call;
        let outstanding = self.commands.waiting().filter(|other| {
            let other = self.commands.get(*other);
            other.queue == 0 && other.nvm.opcode == admin::ABORT && other.state == State::Timer
        });
        // The command itself is one of them.
        if outstanding.count() > usize::from(ABORTS_MAX) {
            return Err(NvmeStatus::ABORT_LIMIT_EXCEEDED);
        }
        let dword10 = entry.dword10.get();
        let (queue, id) = (dword10 as u16, (dword10 >> 16) as u16);
        let victim = self.commands.find(queue, id).filter(|victim| *victim != slot);
        let ended =
            victim.is_some_and(|victim| self.end_early(at, victim, NvmeStatus::ABORT_REQUESTED));
        // Bit 0: the command was not aborted.
        Ok(Outcome::Done(u32::from(!ended)))
    }

    /// Ends a command that the device has not begun; false where it is too late.
    pub(super) fn end_early(&mut self, at: Time, slot: u32, status: NvmeStatus) -> bool {
        // Only commands that the device has not begun can end early. What the device works on
        // ends as usual, and an abort then reports that it did not abort (base 2.0c, clause
        // 5.1).
        let command = *self.commands.get(slot);
        match command.state {
            State::List => self.pipes.lists.retain(|waiting| *waiting != slot),
            State::Timer if command.queue != 0 => self.timers.cancel(Timer::Begin(slot)),
            State::Parked => self.subsystem.withdraw_event_request(slot),
            State::Lost => {}
            _ => return false,
        }
        self.finish(at, slot, status);
        true
    }

    /// Asynchronous Event Request (base 2.0c, clause 5.2).
    fn request_event(&mut self, at: Time, slot: u32) -> Answer<Outcome> {
        self.subsystem.request_event(slot)?;
        self.commands.get_mut(slot).state = State::Parked;
        self.send_events(at);
        Ok(Outcome::Later)
    }

    /// Begins a sanitize operation, unless a fault hits its command: one of opcode 84h, namespace 0, no blocks.
    fn sanitize(&mut self, at: Time, slot: u32, order: SanitizeOrder) -> Answer<Outcome> {
        let mut later = Time::ZERO;
        let mut fails = false;
        match self.faults.hit_admin(admin::SANITIZE) {
            Some(Effect::Fail(status)) => return Err(status),
            Some(Effect::Meet(Fault::Error)) => fails = true,
            Some(Effect::Meet(Fault::Delay(time))) => later = time,
            Some(Effect::Meet(Fault::Drop)) => {
                self.commands.get_mut(slot).state = State::Lost;
                return Ok(Outcome::Later);
            }
            _ => {}
        }
        self.abort_for_sanitize(at);
        if let Some(ends) = self.subsystem.begin_sanitize(at, order, later, fails) {
            self.timers.set(ends, Timer::Sanitized);
        }
        Ok(Outcome::Done(0))
    }

    /// Ends what is not allowed any more (base 2.0c, clause 8.21.4). What the device has begun is
    /// answered once the device is through with it.
    fn abort_for_sanitize(&mut self, at: Time) {
        // The list is copied, because ending a command changes the slots that the walk is over.
        // A sanitize command is rare, so the copy does not matter.
        let waiting: Vec<u32> = self.commands.waiting().collect();
        for slot in waiting {
            let command = *self.commands.get(slot);
            match command.state {
                State::Device | State::Spoilt if command.nvm.kind != Kind::Flush => {
                    self.commands.get_mut(slot).state = State::Sanitized;
                }
                State::List | State::Timer | State::Lost if command.queue != 0 => {
                    self.end_early(at, slot, NvmeStatus::SANITIZE_IN_PROGRESS);
                }
                _ => {}
            }
        }
    }
}
