//! Suspend and resume of the whole controller.
//!
//! No command is taken any more and the outstanding ones are brought to their end, as for a stop; then the
//! controller is shut down, or goes to a power state with its queues in place. What this driver has taken
//! completes before the suspend is over, once, by the controller or, where that needed a reset, as given
//! up; a command that comes meanwhile is refused ([`IoError::NotReady`](crate::IoError::NotReady)) and
//! stays with its submitter, who sends it after the resume.

use ssdyno_block::MonotonicTime;
use ssdyno_pci::{FunctionError, PciFunction};
use ssdyno_spec::nvme::registers;
use ssdyno_spec::pci;

use crate::control_log::Order;
use crate::start::set_command;
use crate::state::Phase;
use crate::step::{Step, Suspension};
use crate::{Controller, IoCompletion, NvmeDriver, NvmeError, Quirks, ResetCause};

/// How a controller is suspended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SuspendMode {
    /// It is shut down (CC.SHN) and disabled, and may lose its power: suspend to memory by firmware,
    /// hibernation, D3cold.
    PowerOff,
    /// It keeps its power and goes to its deepest power state (Set Features, power management), as for a
    /// suspend to idle; queues and interrupts stay. A controller without such a state, one that refuses it,
    /// and one with [`Quirks::SUSPEND_BY_SHUTDOWN`] is shut down instead, as Linux does (6.16,
    /// `nvme_suspend`).
    PowerState,
}

impl Controller {
    /// Begins to suspend the controller; [`poll`](Controller::poll) goes on until the state is
    /// [`Suspended`](crate::DriverState::Suspended). Pairs and memory stay.
    ///
    /// # Errors
    /// The driver is not ready.
    pub fn suspend(
        &mut self,
        now: impl Into<MonotonicTime>,
        mode: SuspendMode,
    ) -> Result<(), NvmeError> {
        if self.phase != Phase::Ready {
            return Err(NvmeError::WrongState { state: "not ready" });
        }
        let by_state =
            mode == SuspendMode::PowerState && !self.quirks.contains(Quirks::SUSPEND_BY_SHUTDOWN);
        let target = if by_state { self.deepest_power_state() } else { None };
        self.suspension = Some(Suspension { target, before: 0 });
        self.phase = Phase::Draining;
        self.order(Order::Drain);
        self.look_at = now.into();
        Ok(())
    }

    /// The deepest power state that may be used, if there is any but the first.
    pub(crate) fn deepest_power_state(&self) -> Option<u8> {
        let deepest = self.identity().map_or(0, |c| c.power_states.min(31));
        let spared = u8::from(self.quirks.contains(Quirks::NO_DEEPEST_POWER));
        Some(deepest.saturating_sub(spared)).filter(|state| *state > 0)
    }

    /// The last command completed: goes on with the suspend or the stop.
    pub(crate) fn drained<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime) {
        if let Some(Suspension { target: Some(_), .. }) = self.suspension {
            self.phase = Phase::Sleeping;
            return self.begin(f, now, Step::ReadPowerState);
        }
        self.phase = Phase::Deleting;
        let all = self.queues();
        self.begin(f, now, Step::DeleteSubmissionQueue(all));
    }

    /// The controller returned its power state: it enters another one.
    pub(crate) fn power_state_read(&mut self, good: bool, state: u8) -> Step {
        match &mut self.suspension {
            Some(suspension) if good => {
                suspension.before = state;
                Step::Sleep
            }
            _ => self.not_asleep(),
        }
    }

    /// The controller does not go to a power state: it is shut down instead.
    pub(crate) fn not_asleep(&mut self) -> Step {
        if let Some(suspension) = &mut self.suspension {
            suspension.target = None;
        }
        self.phase = Phase::Deleting;
        Step::DeleteSubmissionQueue(self.queues())
    }

    /// Everything is quiet.
    pub(crate) fn suspended<F: PciFunction>(&mut self, f: &mut F) {
        let off = self.suspension.is_none_or(|suspension| suspension.target.is_none());
        if off {
            set_command(f, pci::COMMAND_BUS_MASTER, false);
        }
        self.phase = Phase::Suspended { off };
        self.look_at = MonotonicTime::MAX;
        self.watch_at = MonotonicTime::MAX;
    }

    /// Begins to resume the controller; [`poll`](Controller::poll) goes on until the state is
    /// [`Ready`](crate::DriverState::Ready). Configuration space (addresses, capabilities) is restored
    /// already: that is the system's. One that lost its power, or was shut down, is brought up again, with
    /// interrupts, features and queues as before; one in a power state goes back to the state before, and
    /// is reset where it does not.
    ///
    /// # Errors
    /// The driver is not suspended, or the controller does not respond; then it counts as
    /// [removed](Controller::removed).
    pub fn resume<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
    ) -> Result<(), NvmeError> {
        let Phase::Suspended { off } = self.phase else {
            return Err(NvmeError::WrongState { state: "not suspended" });
        };
        let now = now.into();
        set_command(function, pci::COMMAND_MEMORY | pci::COMMAND_BUS_MASTER, true);
        let status = function.bar_read32(0, registers::CSTS);
        if status == !0 {
            let error = FunctionError::Gone.into();
            self.fail(function, error);
            return Err(error);
        }
        let awake =
            status & (registers::CSTS_READY | registers::CSTS_FATAL) == registers::CSTS_READY;
        if !off && awake {
            self.phase = Phase::Waking;
            self.look_at = now;
            self.begin(function, now, Step::Wake);
            return Ok(());
        }
        self.suspension = None;
        if let Err(error) = self.restore_interrupts(function) {
            self.fail(function, error);
            return Err(error);
        }
        self.recovering = true;
        self.disable(function, now);
        Ok(())
    }

    /// The controller was asked to go back to its power state.
    pub(crate) fn woken<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime, good: bool) {
        self.suspension = None;
        if good {
            self.phase = Phase::Ready;
            self.look_at = MonotonicTime::MAX;
            self.order(Order::Run);
        } else {
            self.begin_reset(f, now, ResetCause::NotAwake);
        }
    }

    /// The same interrupts as before: a function that lost its power has forgotten them.
    fn restore_interrupts<F: PciFunction>(&mut self, f: &mut F) -> Result<(), NvmeError> {
        let Some(mode) = self.interrupts else { return Ok(()) };
        let granted = f.enable_interrupts(mode, self.vectors.max(1))?;
        if granted < self.vectors {
            return Err(FunctionError::NoInterrupt { mode }.into());
        }
        Ok(())
    }
}

impl NvmeDriver {
    /// See [`Controller::resume`]; here [`poll`](NvmeDriver::poll) goes on. Where the controller is gone,
    /// nothing is outstanding that would be appended to `out`.
    ///
    /// # Errors
    /// The same.
    pub fn resume<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
        out: &mut alloc::vec::Vec<IoCompletion>,
    ) -> Result<(), NvmeError> {
        let now = now.into();
        let resumed = self.controller.resume(function, now);
        self.settle(function, now, out);
        resumed
    }
}
