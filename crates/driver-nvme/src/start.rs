//! Start and stop, as a machine of states: each call does what can be done at once and says when to
//! call again (base 2.0c, clauses 3.5.1 and 3.6.1; S1-25).

use ssdyno_block::{MonotonicTime, Time};
use ssdyno_pci::{FunctionError, InterruptMode, PciFunction};
use ssdyno_spec::nvme::registers::{self, ControllerCapabilities};
use ssdyno_spec::pci;

use crate::admin::{ADMIN_ENTRIES, AdminQueue};
use crate::control_log::{ControlLog, Order};
use crate::controller::EVENTS_MAX;
use crate::quirks::READY_DELAY;
use crate::state::Phase;
use crate::step::Step;
use crate::{Controller, DriverEvent, InterruptChoice, NvmeError, QueuePolicy, Quirks, ResetCause};

/// The unit of CAP.TO.
const TIMEOUT_UNIT: Time = Time::from_ms(500);
/// How often registers are looked at where the start does not poll.
const LOOK: Time = Time::from_ms(1);

impl Controller {
    /// Begins to bring the controller up; [`poll`](Controller::poll) goes on until the state is
    /// [`Ready`](crate::DriverState::Ready).
    ///
    /// # Errors
    /// The function is not a controller that this driver can use, or the driver is in use already.
    pub fn start<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
    ) -> Result<(), NvmeError> {
        if !self.phase.is_over() {
            return Err(NvmeError::WrongState { state: "running" });
        }
        self.events.try_reserve(EVENTS_MAX.saturating_sub(self.events.len()))?;
        // Pairs of an earlier start may still have to learn that it ended; they do not receive the messages of this
        // start.
        (self.board, self.ordered) = (Some(ControlLog::new()?), false);
        self.records.clear();
        self.resets_in_a_row = (0, 0);
        // Memory decoding must be on before the first register access. Bus mastering lets the
        // controller reach its admin queue.
        set_command(function, pci::COMMAND_MEMORY | pci::COMMAND_BUS_MASTER, true);
        (self.recovering, self.stopping, self.suspension) = (false, false, None);
        if let Err(error) = self.check_controller(function) {
            set_command(function, pci::COMMAND_BUS_MASTER, false);
            return Err(error);
        }
        self.disable(function, now.into());
        Ok(())
    }

    /// Reads the capabilities and refuses what this driver cannot use.
    fn check_controller<F: PciFunction>(&mut self, f: &mut F) -> Result<(), NvmeError> {
        let bytes = f.bar_bytes(0);
        let least = u64::from(registers::DOORBELLS) + 8;
        if bytes < least {
            return Err(NvmeError::RegistersMissing { bytes, needed: least });
        }
        let capabilities = ControllerCapabilities(f.bar_read64(0, registers::CAP));
        // A device that is not there answers every read with ones. No valid CAP has all bits
        // set.
        if capabilities.0 == u64::MAX {
            return Err(FunctionError::Gone.into());
        }
        if !capabilities.nvm_command_set() {
            return Err(NvmeError::NoNvmCommandSet);
        }
        // The driver's lists and rings assume memory pages of 4 KiB. A controller that needs
        // larger ones cannot be used.
        if capabilities.page_shift_min() > 12 {
            return Err(NvmeError::PageSize { bytes: 1 << capabilities.page_shift_min() });
        }
        if matches!(self.config.policy, QueuePolicy::Weighted { .. })
            && !capabilities.weighted_round_robin()
        {
            return Err(NvmeError::NoWeightedArbitration);
        }
        self.quirks = self.config.quirks.unwrap_or_else(|| quirks_of(f));
        if self.quirks.contains(Quirks::ENTRIES_OF_128_BYTES) {
            return Err(NvmeError::EntrySizes { submission: 7, completion: 4 });
        }
        self.capabilities = capabilities;
        self.version = f.bar_read32(0, registers::VS);
        Ok(())
    }

    /// How long a change of CSTS.RDY may take.
    pub(crate) fn ready_limit(&self) -> Time {
        TIMEOUT_UNIT * u64::from(self.capabilities.timeout_500ms()).max(1)
    }

    /// Clears CC.EN where it is set, and looks at once whether the controller is idle. One that is on its
    /// way to be ready is waited for first, unless it was already.
    pub(crate) fn disable<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime) {
        self.step = None;
        self.scanned = Default::default();
        let enabled = f.bar_read32(0, registers::CC) & registers::CC_ENABLE != 0;
        let settled = registers::CSTS_READY | registers::CSTS_FATAL;
        // Clearing CC.EN while CSTS.RDY is still 0 has undefined results (base 2.0c, figure 46).
        // A boot loader may have enabled the controller a moment ago.
        if enabled && !self.recovering && f.bar_read32(0, registers::CSTS) & settled == 0 {
            self.phase = Phase::Settling { until: now.after(self.ready_limit()) };
            self.look_at = now;
            return;
        }
        self.clear_enable(f, now);
    }

    fn clear_enable<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime) {
        let cc = f.bar_read32(0, registers::CC);
        if cc & registers::CC_ENABLE != 0 {
            f.bar_write32(0, registers::CC, cc & !registers::CC_ENABLE);
        }
        let delay = self.quirks.contains(Quirks::DELAY_BEFORE_READY);
        // Some drives need a pause before CSTS.RDY is read. Linux waits for them, too
        // (NVME_QUIRK_DELAY_BEFORE_CHK_RDY).
        let look_at = if delay { now.after(READY_DELAY) } else { now };
        self.phase = Phase::Disabling { until: look_at.after(self.ready_limit()) };
        self.look_at = look_at;
    }

    /// Does what is due at `now`: start, stop, admin commands, orders to the pairs, timeouts. I/O
    /// queues are their pairs' business.
    pub fn poll<F: PciFunction>(&mut self, function: &mut F, now: impl Into<MonotonicTime>) {
        let now = now.into();
        self.poll_admin(function, now);
        self.look_if_due(function, now);
        self.serve(function, now);
        self.call_late(now);
    }

    /// Looks at what the phase waits for, if it is time.
    pub(crate) fn look_if_due<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime) {
        if now >= self.look_at {
            self.look_at = now.after(self.config.start_poll.unwrap_or(LOOK));
            self.look(f, now);
        }
    }

    /// Looks at what the phase waits for.
    fn look<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime) {
        let (until, wanted, mask) = match self.phase {
            Phase::Disabling { until } | Phase::Stopping { until } => {
                (until, 0, registers::CSTS_READY)
            }
            Phase::Enabling { until } | Phase::Settling { until } => {
                (until, registers::CSTS_READY, registers::CSTS_READY)
            }
            Phase::ShuttingDown { until } => {
                (until, registers::CSTS_SHUTDOWN_COMPLETE, registers::CSTS_SHUTDOWN_COMPLETE)
            }
            _ => return self.look_at_pairs(f, now),
        };
        let status = f.bar_read32(0, registers::CSTS);
        // All ones: the device was removed. A timeout would tell the same, but only after
        // seconds.
        if status == !0 {
            self.fail(f, FunctionError::Gone.into());
        } else if let Phase::Settling { .. } = self.phase {
            let broken = status & registers::CSTS_FATAL != 0;
            if status & mask == wanted || broken || now >= until {
                self.clear_enable(f, now);
            }
        } else if status & mask == wanted {
            match self.phase {
                Phase::Disabling { .. } => self.idle(f, now),
                Phase::Enabling { .. } => self.begin(f, now, Step::Identify),
                Phase::ShuttingDown { .. } => self.switch_off(f, now),
                _ if self.suspension.is_some() => self.idle(f, now),
                _ => self.end(f, Phase::Stopped),
            }
        } else if matches!(self.phase, Phase::Enabling { .. })
            && status & registers::CSTS_FATAL != 0
        {
            self.not_up(f, now, NvmeError::Fatal);
        } else if now >= until {
            let limit = self.ready_limit();
            match self.phase {
                Phase::Enabling { .. } => {
                    self.not_up(f, now, NvmeError::ReadyTimeout { ready: true, limit });
                }
                // The system sleeps all the same.
                Phase::ShuttingDown { .. } if self.suspension.is_some() => self.switch_off(f, now),
                Phase::ShuttingDown { .. } => {
                    let limit = self.config.shutdown_timeout;
                    self.fail(f, NvmeError::ShutdownTimeout { limit });
                }
                _ => self.fail(f, NvmeError::ReadyTimeout { ready: false, limit }),
            }
        }
    }

    /// Goes on where the phase waits for the pairs, and all have obeyed.
    pub(crate) fn look_at_pairs<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime) {
        if !matches!(self.phase, Phase::Holding { .. } | Phase::Collecting | Phase::Draining) {
            return;
        }
        let obeyed = self.all_obeyed(f);
        match self.phase {
            // A core that never comes must not keep the controller from being reset. After
            // `owner_timeout` the controller is disabled all the same; enabling waits for every
            // owner.
            Phase::Holding { until, cause } if obeyed || now >= until => self.held(f, now, cause),
            Phase::Collecting if obeyed && self.suspension.is_some() => self.suspended(f),
            Phase::Collecting if obeyed => self.enable(f, now),
            Phase::Draining if obeyed && !self.admin.as_ref().is_some_and(AdminQueue::is_busy) => {
                self.drained(f, now);
            }
            _ => {}
        }
    }

    /// The controller did not come up: after a reset it gets another one.
    fn not_up<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime, error: NvmeError) {
        if self.recovering {
            self.begin_reset(f, now, ResetCause::NotReady);
        } else {
            self.fail(f, error);
        }
    }

    /// The controller is idle: it no longer accesses memory, and its commands can complete.
    fn idle<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime) {
        if self.stopping {
            return self.end(f, Phase::Stopped);
        }
        self.abandon_admin();
        // The first start of a driver begins with `Collect`, which all pairs have obeyed. A
        // second one would only cost a round.
        if self.last_order() != Order::Collect {
            self.order(Order::Collect);
        }
        self.phase = Phase::Collecting;
        self.look_at = now;
        self.look_at_pairs(f, now);
    }

    /// All rings are empty: admin queue, interrupts, CC.EN.
    fn enable<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime) {
        if let Err(error) = self.prepare(f) {
            return self.fail(f, error);
        }
        let weighted = matches!(self.config.policy, QueuePolicy::Weighted { .. });
        let arbitration = if weighted { registers::CC_ARBITRATION_WEIGHTED } else { 0 };
        let cc = registers::CC_ENABLE | registers::CC_ENTRY_SIZES | arbitration;
        f.bar_write32(0, registers::CC, cc);
        self.phase = Phase::Enabling { until: now.after(self.ready_limit()) };
        self.look_at = now.after(self.config.start_poll.unwrap_or(LOOK));
    }

    fn prepare<F: PciFunction>(&mut self, f: &mut F) -> Result<(), NvmeError> {
        let admin = match self.admin.take() {
            Some(mut queue) => {
                // The memory of the admin queue is used again: a reset needs no memory, and so
                // it works also where memory is short.
                queue.clear(f);
                queue
            }
            None => {
                let generations = !self.quirks.contains(Quirks::NO_GENERATION);
                AdminQueue::new(f, self.capabilities.doorbell_stride(), generations)?
            }
        };
        let (submission, completion) = admin.addresses();
        self.admin = Some(admin);
        f.bar_write32(0, registers::AQA, (ADMIN_ENTRIES - 1) << 16 | (ADMIN_ENTRIES - 1));
        f.bar_write64(0, registers::ASQ, submission);
        f.bar_write64(0, registers::ACQ, completion);
        if !self.recovering {
            self.first_interrupts(f)?;
        }
        if self.masks() {
            f.bar_write32(0, registers::INTMS, !0);
        }
        Ok(())
    }

    /// Interrupts before the controller answers: the pin alone, or the final ones (S1-21).
    fn first_interrupts<F: PciFunction>(&mut self, f: &mut F) -> Result<(), NvmeError> {
        (self.interrupts, self.vectors) = (None, 0);
        if self.config.interrupts == InterruptChoice::Polling {
            set_command(f, pci::COMMAND_INTERRUPT_DISABLE, true);
            return Ok(());
        }
        set_command(f, pci::COMMAND_INTERRUPT_DISABLE, false);
        if self.config.pin_first {
            self.vectors = f.enable_interrupts(InterruptMode::Pin, 1)?;
            self.interrupts = Some(InterruptMode::Pin);
            return Ok(());
        }
        let queues = self.wanted_queues();
        self.final_interrupts(f, queues + 1)
    }

    /// The best kind of interrupts that there is, or the one that the configuration names.
    pub(crate) fn final_interrupts<F: PciFunction>(
        &mut self,
        f: &mut F,
        vectors: u16,
    ) -> Result<(), NvmeError> {
        let choice = self.config.interrupts;
        let choices = match &choice {
            InterruptChoice::Polling => return Ok(()),
            InterruptChoice::Only(mode) => core::slice::from_ref(mode),
            InterruptChoice::Best => {
                &[InterruptMode::MsiX, InterruptMode::Msi, InterruptMode::Pin][..]
            }
        };
        let single = self.quirks.contains(Quirks::SINGLE_VECTOR);
        let vectors = if single { 1 } else { vectors };
        let mut refused = FunctionError::NoInterrupt { mode: InterruptMode::Pin };
        for &mode in choices {
            let broken = mode == InterruptMode::Msi && self.quirks.contains(Quirks::BROKEN_MSI);
            if broken && choice == InterruptChoice::Best {
                continue;
            }
            match f.enable_interrupts(mode, vectors) {
                Ok(granted) => {
                    (self.interrupts, self.vectors) = (Some(mode), granted);
                    return Ok(());
                }
                Err(error) => refused = error,
            }
        }
        Err(refused.into())
    }

    /// INTMS and INTMC may be touched: not with MSI-X (base 2.0c, clause 3.1.3.3).
    pub(crate) fn masks(&self) -> bool {
        let kind = matches!(self.interrupts, Some(InterruptMode::Pin | InterruptMode::Msi));
        kind && self.config.start_poll.is_some()
    }

    /// Begins to stop: the driver accepts no more commands and waits for the outstanding ones. It then deletes the
    /// queues, notifies the controller (CC.SHN), disables it, and frees all memory; the next call of its owner frees
    /// that of a pair. [`poll`](Controller::poll) goes on until the state is [`Stopped`](crate::DriverState::Stopped).
    ///
    /// # Errors
    /// The driver is not ready.
    pub fn shutdown<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
    ) -> Result<(), NvmeError> {
        if let Phase::Suspended { off: true } = self.phase {
            // It was notified already, and is off.
            self.end(function, Phase::Stopped);
            return Ok(());
        }
        if self.phase != Phase::Ready {
            return Err(NvmeError::WrongState { state: "not ready" });
        }
        self.phase = Phase::Draining;
        self.stopping = true;
        self.order(Order::Drain);
        self.look_at = now.into();
        Ok(())
    }

    /// The controller has shut down, or had its time for it.
    fn switch_off<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime) {
        f.bar_write32(0, registers::CC, 0);
        self.phase = Phase::Stopping { until: now.after(self.ready_limit()) };
        self.look_at = now;
    }

    pub(crate) fn notify_shutdown<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime) {
        let cc = f.bar_read32(0, registers::CC) | registers::CC_SHUTDOWN_NORMAL;
        f.bar_write32(0, registers::CC, cc);
        let until = now.after(self.config.shutdown_timeout);
        self.phase = Phase::ShuttingDown { until };
        self.look_at = now.after(self.config.start_poll.unwrap_or(LOOK));
    }

    /// Takes what the admin queue completed.
    pub(crate) fn poll_admin<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime) {
        // A disabled controller has no doorbells; entries that it left in the queue do not count.
        if self.phase.is_disabled() {
            return;
        }
        while let Some(answer) = self.admin.as_mut().and_then(|queue| queue.take(f)) {
            match answer {
                Ok(answer) => self.admin_answered(f, now, answer),
                Err(command) => {
                    self.counters.strays += 1;
                    self.tell(DriverEvent::StrayCompletion { queue: 0, command });
                }
            }
        }
    }
}

/// Those of the function's PCI vendor and device.
fn quirks_of<F: PciFunction>(f: &mut F) -> Quirks {
    let identity = f.config_read(pci::VENDOR_ID);
    Quirks::of_device(identity as u16, (identity >> 16) as u16)
}

/// Sets or clears bits of the command register.
pub(crate) fn set_command<F: PciFunction>(f: &mut F, bits: u16, on: bool) {
    // The upper half is the status register: writing 0 changes nothing there.
    let old = f.config_read(pci::COMMAND) as u16;
    f.config_write(pci::COMMAND, u32::from(if on { old | bits } else { old & !bits }));
}
