//! What happens when no answer comes: lost interrupts, aborts, resets, removal (S1-33).

use alloc::vec::Vec;

use ssdyno_block::Time;
use ssdyno_pci::{FunctionError, PciFunction};
use ssdyno_spec::nvme::{AsynchronousEvent, registers};
use ssdyno_spec::pci;

use crate::admin::{AdminAnswer, AdminQueue, Owner};
use crate::driver::{Phase, ResetCause};
use crate::queue::{IoQueue, Overdue};
use crate::start::set_command;
use crate::{AdminCommand, AdminCompletion, DriverEvent, IoCompletion, NvmeDriver, NvmeError};

impl NvmeDriver {
    /// A deadline may have passed. First the queues are looked into, for an interrupt may be lost; then
    /// commands are aborted; when that does not help, the controller is reset.
    #[cold]
    pub(crate) fn watch<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: Time,
        out: &mut Vec<IoCompletion>,
    ) {
        let admin = self.admin_deadline();
        let io = self.io_deadline().is_some_and(|at| at <= now);
        if io || admin.is_some_and(|(at, _)| at <= now) {
            let status = f.bar_read32(0, registers::CSTS);
            if status == !0 {
                return self.fail(f, FunctionError::Gone.into(), out);
            }
            if status & registers::CSTS_FATAL != 0 && self.takes_completions() {
                return self.reset(f, now, ResetCause::Fatal, out);
            }
        }
        if let Some((_, opcode)) = admin.filter(|(at, _)| *at <= now) {
            return match self.phase {
                Phase::Configuring if !self.recovering => {
                    self.fail(f, NvmeError::AdminTimeout { opcode }, out);
                }
                _ => self.reset(f, now, ResetCause::AdminTimeout, out),
            };
        }
        if io {
            self.look_after(f, now, out);
        }
        self.arm();
    }

    fn takes_completions(&self) -> bool {
        matches!(self.phase, Phase::Ready | Phase::Draining)
    }

    /// The first deadline of an I/O command, while they can be answered.
    fn io_deadline(&self) -> Option<Time> {
        let queues = self.queues.iter().filter(|_| self.takes_completions());
        queues.filter_map(IoQueue::deadline).min()
    }

    /// The same of an admin command, and its opcode.
    fn admin_deadline(&self) -> Option<(Time, u8)> {
        let answered = matches!(
            self.phase,
            Phase::Configuring | Phase::Ready | Phase::Draining | Phase::Deleting
        );
        self.admin.as_ref().filter(|_| answered).and_then(AdminQueue::deadline)
    }

    /// No deadline is earlier than this.
    fn arm(&mut self) {
        let admin = self.admin_deadline().map(|(at, _)| at);
        self.watch_at = self.io_deadline().into_iter().chain(admin).min().unwrap_or(Time::MAX);
    }

    /// Some I/O command is overdue.
    fn look_after<F: PciFunction>(&mut self, f: &mut F, now: Time, out: &mut Vec<IoCompletion>) {
        for queue in 1..=self.queues() {
            let index = usize::from(queue) - 1;
            if self.queues[index].overdue(now).is_some() {
                // It may have been staged and never told; then telling helps.
                self.ring_doorbell(f, queue);
                self.counters.lost_interrupts += u64::from(self.poll_queue(f, queue, out));
            }
            while let Some(overdue) = self.queues[index].overdue(now) {
                match overdue {
                    Overdue::Late(command) => self.abort(f, now, index, command),
                    Overdue::Lost => {
                        return self.reset(f, now, ResetCause::CommandTimeout, out);
                    }
                }
            }
        }
    }

    /// Asks for the abort of `command`, or puts that off where the controller takes no more aborts.
    fn abort<F: PciFunction>(&mut self, f: &mut F, now: Time, index: usize, command: u16) {
        let deadline = now.saturating_add(self.config.admin_timeout);
        let limit = self.controller.as_ref().map_or(0, |c| c.abort_limit);
        let sent = self.admin.as_mut().is_some_and(|admin| {
            let abort = AdminCommand::abort(index as u16 + 1, command);
            admin.count(Owner::Abort) <= usize::from(limit)
                && admin.submit(f, &abort, Owner::Abort, deadline).is_ok()
        });
        self.counters.aborts += u64::from(sent);
        self.queues[index].extend(command, deadline, sent);
    }

    /// Resets the controller. What is outstanding is given up once the controller is idle.
    pub(crate) fn reset<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: Time,
        cause: ResetCause,
        out: &mut Vec<IoCompletion>,
    ) {
        for queue in 1..=self.queues() {
            self.poll_queue(f, queue, out);
        }
        let (resets, completions) = self.resets_in_a_row;
        let row = if completions == self.counters.completions { resets + 1 } else { 1 };
        self.resets_in_a_row = (row, self.counters.completions);
        if row > self.config.resets_max {
            return self.fail(f, NvmeError::Unresponsive { resets: row - 1 }, out);
        }
        self.counters.resets += 1;
        self.events.push(DriverEvent::Reset(cause));
        self.recovering = true;
        self.watch_at = Time::MAX;
        self.disable(f, now);
    }

    /// Answers everything that is outstanding with *abandoned*. The controller is idle, or cannot
    /// reach memory.
    pub(crate) fn abandon(&mut self, out: &mut Vec<IoCompletion>) {
        self.queues.iter_mut().for_each(|queue| queue.abandon(out));
        let done = &mut self.admin_done;
        if let Some(admin) = self.admin.as_mut() {
            admin.abandon(|token| {
                let (status, dword0, data) = (None, 0, Vec::new());
                done.push(AdminCompletion { token, status, dword0, data });
            });
        }
        self.step = None;
        self.watch_at = Time::MAX;
    }

    /// Gives up: the device is kept from memory, and everything is answered.
    #[cold]
    pub(crate) fn fail<F: PciFunction>(
        &mut self,
        f: &mut F,
        error: NvmeError,
        out: &mut Vec<IoCompletion>,
    ) {
        self.end(f, out, Phase::Failed(error));
    }

    /// The last act: no bus mastering, no memory, no queue.
    pub(crate) fn end<F: PciFunction>(
        &mut self,
        f: &mut F,
        out: &mut Vec<IoCompletion>,
        phase: Phase,
    ) {
        set_command(f, pci::COMMAND_BUS_MASTER, false);
        self.abandon(out);
        if let Some(admin) = self.admin.take() {
            admin.release(f);
        }
        for queue in core::mem::take(&mut self.queues) {
            queue.release(f);
        }
        self.namespaces.clear();
        self.phase = phase;
        self.look_at = Time::MAX;
    }

    /// The device was pulled, as the slot says: everything is answered at once.
    pub fn removed<F: PciFunction>(&mut self, function: &mut F, out: &mut Vec<IoCompletion>) {
        if !matches!(self.phase, Phase::Stopped | Phase::Failed(_)) {
            self.fail(function, FunctionError::Gone.into(), out);
        }
    }

    /// One answer of the admin queue.
    pub(crate) fn admin_answered<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: Time,
        answer: AdminAnswer,
        out: &mut Vec<IoCompletion>,
    ) {
        match answer.owner {
            Owner::Step => {
                if let Err(error) = self.step_done(f, now, &answer) {
                    self.fail(f, error, out);
                }
            }
            Owner::Caller(token) => {
                let (status, dword0, data) = (Some(answer.status), answer.dword0, answer.data);
                self.admin_done.push(AdminCompletion { token, status, dword0, data });
            }
            // An aborted command has its own completion; one that was not has a deadline.
            Owner::Abort => {}
            Owner::Event if answer.status.is_success() => {
                let event = AsynchronousEvent::from_dword(answer.dword0);
                self.events.push(DriverEvent::Asynchronous(event));
                self.request_event(f);
            }
            Owner::Event => {}
        }
    }
}
