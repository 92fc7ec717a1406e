//! What happens when no completion comes: lost interrupts, aborts, resets, removal (S1-33).

use alloc::vec::Vec;

use ssdyno_block::MonotonicTime;
use ssdyno_pci::{FunctionError, PciFunction};
use ssdyno_spec::nvme::{AsynchronousEvent, registers};
use ssdyno_spec::pci;

use crate::admin::{AdminAnswer, AdminQueue, Owner};
use crate::control_log::Order;
use crate::start::set_command;
use crate::state::Phase;
use crate::{AdminCommand, AdminCompletion, Controller, DriverEvent, NvmeError, ResetCause};

impl Controller {
    /// Looks after admin commands whose time is up, and after what pairs wish.
    pub(crate) fn serve<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime) {
        let wishes = self.phase.takes_completions()
            && self.records.iter().any(|record| record.desk.has_wishes());
        if !wishes && now < self.watch_at {
            return;
        }
        if self.check(f, now, wishes) && wishes {
            if self.records.iter().any(|record| record.desk.wishes_reset()) {
                self.begin_reset(f, now, ResetCause::CommandTimeout);
            } else {
                self.grant_aborts(f, now);
            }
        }
        self.rearm();
    }

    /// No deadline of an admin command is earlier than the first.
    pub(crate) fn rearm(&mut self) {
        self.watch_at = self.admin_deadline().map_or(MonotonicTime::MAX, |(at, _)| at);
    }

    /// The first look of a watchdog: is the controller there, is it well, does it answer admin
    /// commands? `io` means that I/O commands are late. False: all that can be done was begun.
    #[cold]
    pub(crate) fn check<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: MonotonicTime,
        io: bool,
    ) -> bool {
        let admin = self.admin_deadline().filter(|(at, _)| *at <= now);
        if io || admin.is_some() {
            // A register read costs a round trip over the link. It is worth it only now that a
            // command is late: it distinguishes a removed or broken controller from a slow one.
            let status = f.bar_read32(0, registers::CSTS);
            if status == !0 {
                self.fail(f, FunctionError::Gone.into());
                return false;
            }
            if status & registers::CSTS_FATAL != 0 && self.phase.takes_completions() {
                self.begin_reset(f, now, ResetCause::Fatal);
                return false;
            }
        }
        let Some((_, opcode)) = admin else { return true };
        match self.phase {
            // A first start that hangs is an error for the caller, which can decide whether to try
            // again. After a reset the driver tries again by itself.
            Phase::Configuring if !self.recovering => {
                self.fail(f, NvmeError::AdminTimeout { opcode });
            }
            _ => self.begin_reset(f, now, ResetCause::AdminTimeout),
        }
        false
    }

    /// The first deadline of an admin command while they can complete, and its opcode.
    pub(crate) fn admin_deadline(&self) -> Option<(MonotonicTime, u8)> {
        let shuts_down = matches!(self.phase, Phase::ShuttingDown { .. });
        let answered = !self.phase.is_disabled() && !shuts_down;
        self.admin.as_ref().filter(|_| answered).and_then(AdminQueue::deadline)
    }

    /// Sends the aborts that pairs wish, as far as the controller takes them. The others have their turn
    /// when those complete.
    fn grant_aborts<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime) {
        for index in 0..self.records.len() {
            while self.may_abort() {
                let Some(command) = self.records[index].desk.take_abort() else { break };
                self.abort(f, now, index as u16 + 1, command);
            }
        }
    }

    /// The controller takes one more abort (ACL is zero based).
    fn may_abort(&self) -> bool {
        let limit = self.identity().map_or(0, |c| c.abort_limit);
        self.admin.as_ref().is_some_and(|a| a.count(Owner::Abort) <= usize::from(limit))
    }

    /// Asks for the abort of `command` of `queue`; false where the controller takes no more aborts.
    pub(crate) fn abort<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: MonotonicTime,
        queue: u16,
        command: u16,
    ) -> bool {
        let deadline = now.after(self.config.admin_timeout);
        let may = self.may_abort();
        let sent = self.admin.as_mut().filter(|_| may).is_some_and(|admin| {
            let abort = AdminCommand::abort(queue, command);
            admin.submit(f, &abort, Owner::Abort, deadline).is_ok()
        });
        self.counters.aborts += u64::from(sent);
        sent
    }

    /// Resets the controller, and brings it up again. What is outstanding is given up once the
    /// controller is idle, each command by the owner of its pair.
    ///
    /// # Errors
    /// The driver is not ready.
    pub fn reset<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
    ) -> Result<(), NvmeError> {
        if self.phase != Phase::Ready {
            return Err(NvmeError::WrongState { state: "not ready" });
        }
        self.begin_reset(function, now.into(), ResetCause::Requested);
        Ok(())
    }

    /// Has the pairs take their hands off the rings.
    pub(crate) fn begin_reset<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: MonotonicTime,
        cause: ResetCause,
    ) {
        if self.phase == Phase::Waking {
            self.suspension = None;
        }
        self.recovering = true;
        self.watch_at = MonotonicTime::MAX;
        self.look_at = now;
        let until = now.after(self.config.owner_timeout);
        self.phase = Phase::Holding { until, cause };
        // After `Hold` or `Collect` the pairs leave their rings alone already. A second reset
        // needs no order.
        if matches!(self.last_order(), Order::Run | Order::Drain) {
            self.order(Order::Hold);
        }
        self.look_at_pairs(f, now);
    }

    /// The pairs have taken their hands off: the reset itself.
    pub(crate) fn held<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: MonotonicTime,
        cause: ResetCause,
    ) {
        let completed = self.records.iter().map(|record| record.desk.completions()).sum();
        let (resets, completions) = self.resets_in_a_row;
        if cause != ResetCause::Requested {
            // Resets count as "in a row" while no command completes between them. A controller
            // that needs a reset now and then stays in use; one that only resets is given up.
            let row = if completions == completed { resets + 1 } else { 1 };
            self.resets_in_a_row = (row, completed);
            if row > self.config.resets_max {
                return self.fail(f, NvmeError::Unresponsive { resets: row - 1 });
            }
        }
        self.counters.resets += 1;
        self.tell(DriverEvent::Reset(cause));
        self.disable(f, now);
    }

    /// Answers every admin command with *given up*. The controller is idle, or cannot reach memory.
    pub(crate) fn abandon_admin(&mut self) {
        let done = &mut self.admin_done;
        if let Some(admin) = self.admin.as_mut() {
            admin.abandon(|token| {
                let (status, dword0, data) = (None, 0, Vec::new());
                done.push(AdminCompletion { token, status, dword0, data });
            });
        }
        self.step = None;
        self.watch_at = MonotonicTime::MAX;
    }

    /// Gives up: the device is kept from memory, and everything completes.
    #[cold]
    pub(crate) fn fail<F: PciFunction>(&mut self, f: &mut F, error: NvmeError) {
        self.end(f, Phase::Failed(error));
    }

    /// The last act: no bus mastering, no memory, no queue.
    pub(crate) fn end<F: PciFunction>(&mut self, f: &mut F, phase: Phase) {
        // Bus mastering goes off before any memory is freed. A controller that does not obey
        // CC.EN still cannot write into memory that others use by then.
        set_command(f, pci::COMMAND_BUS_MASTER, false);
        self.abandon_admin();
        if let Some(admin) = self.admin.take() {
            admin.release(f);
        }
        (self.phase, self.suspension) = (phase, None);
        self.look_at = MonotonicTime::MAX;
        self.order(Order::End);
        self.all_obeyed(f);
        self.pairs.clear();
    }

    /// The device was removed, as the slot says: nothing is waited for. Each pair completes everything
    /// with its owner's next call.
    pub fn removed<F: PciFunction>(&mut self, function: &mut F) {
        if !self.phase.is_over() {
            self.fail(function, FunctionError::Gone.into());
        }
    }

    /// One answer of the admin queue.
    pub(crate) fn admin_answered<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: MonotonicTime,
        answer: AdminAnswer,
    ) {
        match answer.owner {
            Owner::Step => {
                if let Err(error) = self.step_done(f, now, &answer) {
                    self.step_failed(f, error);
                }
                if let Some(queue) = &mut self.admin {
                    queue.give_back(answer.data);
                }
            }
            Owner::Caller(token) => {
                let (status, dword0, data) = (Some(answer.status), answer.dword0, answer.data);
                // There is room since it was taken.
                self.admin_done.push(AdminCompletion { token, status, dword0, data });
            }
            // An aborted command has its own completion; one that was not has a deadline. There is room
            // for the next abort.
            Owner::Abort => self.grant_aborts(f, now),
            Owner::Event if answer.status.is_success() => {
                let event = AsynchronousEvent::from_dword(answer.dword0);
                self.tell(DriverEvent::Asynchronous(event));
                self.request_event(f);
            }
            Owner::Event => {}
        }
    }
}
