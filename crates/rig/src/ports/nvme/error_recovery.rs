//! The host's recovery from an NVMe controller that does not respond: commands wait for the end of a reset, failed
//! commands are sent again, and commands of a removed device end. Faults are injected (`[faults]`), or occur because
//! the driver's timeout is shorter than the time of the device.

use std::collections::VecDeque;

use ssdyno_block::{FaultPlan, Request, Status, Time, Token};
use ssdyno_device::Device;
use ssdyno_driver_nvme::{
    DriverEvent, DriverState, IoCompletion, IoError, IoResult, NvmeError, ResetCause,
};
use ssdyno_figures::{DriverRecovery, FaultsResult, Invariant};
use ssdyno_pci::FaultyDevice;

use super::NvmePort;
use crate::faults::{self, DriverActions};
use crate::ports::none_invariant;

/// A command of the host, as it came.
#[derive(Clone, Copy, Debug)]
struct Sent {
    queue: u16,
    request: Request,
    token: Token,
    tries: u32,
}

/// The state that an [`NvmePort`] needs for faults.
#[derive(Debug, Default)]
pub(super) struct ErrorRecovery {
    /// Faults or retries were asked for.
    pub(super) asked: bool,
    /// Something is wrong, or may be at any time: until all is well again each call looks for more than
    /// answers.
    pub(super) alert: bool,
    retries_max: u32,
    /// By token.
    sent: Vec<Option<Sent>>,
    /// Commands that the driver does not take now; they count as outstanding.
    parked: VecDeque<Sent>,
    /// A handler is on its way to completions without an interrupt.
    pub(super) called: bool,
    /// Commands that the driver gave up.
    pub(super) abandoned: u64,
    retries: u64,
    /// Answers that the timeout found and whose interrupt was not under way.
    pub(super) silent: u64,
    /// Resets that no timeout asked for.
    odd_resets: u64,
    events: Vec<DriverEvent>,
    actions: DriverActions,
}

impl ErrorRecovery {
    /// Where faults are injected, or failed commands are tried again.
    pub(super) fn new(faults: bool, retries: u32) -> Box<ErrorRecovery> {
        // A run without faults and retries keeps no copy of its commands. The copies cost time and
        // memory for each request and are needed only to send one again.
        let asked = faults || retries > 0;
        Box::new(ErrorRecovery {
            asked,
            alert: asked,
            retries_max: retries,
            ..ErrorRecovery::default()
        })
    }

    /// A command goes to the driver for the first time.
    pub(super) fn note(&mut self, queue: u16, request: Request, token: Token) {
        let index = token.0 as usize;
        if index >= self.sent.len() {
            self.sent.resize(index + 1, None);
        }
        self.sent[index] = Some(Sent { queue, request, token, tries: 0 });
    }

    /// A command failed; gives it if it goes to the driver again.
    pub(super) fn tries_again(&mut self, token: Token, status: Status) -> Option<Request> {
        let sent = self.sent.get_mut(token.0 as usize)?.as_mut()?;
        // A device that has become read-only answers every further write in the same way. Retries
        // would only delay the error that the application must see.
        if sent.tries >= self.retries_max || status == Status::ReadOnly {
            return None;
        }
        sent.tries += 1;
        let request = sent.request;
        // The retry waits in the queue of parked commands and is not sent from here. The driver is
        // inside its completion path, and a submission there could find the queue full.
        self.parked.push_back(*sent);
        self.retries += 1;
        Some(request)
    }
}

impl<D: Device> NvmePort<D> {
    fn fault_plan(&self) -> Option<&FaultPlan> {
        self.pci.device().fault_plan()
    }

    /// The device was removed.
    pub(super) fn is_removed(&self) -> bool {
        self.fault_plan().is_some_and(|plan| plan.injected.removed_at.is_some())
    }

    /// What is due by `now` happens.
    #[cold]
    pub(super) fn strike(&mut self, now: Time) {
        if self.pci.inject_due(now) {
            // Surprise removal ends all outstanding commands at once. Waiting for their timeouts
            // would keep the application blocked for seconds although the outcome is known.
            self.driver.removed(&mut self.pci, &mut self.answers);
            self.hand_out(now);
        }
    }

    /// The driver does not take `request` now, or never will. It completes all the same.
    #[cold]
    pub(super) fn not_taken(
        &mut self,
        now: Time,
        queue: u16,
        request: Request,
        token: Token,
        error: IoError,
    ) {
        self.outstanding += 1;
        self.recovery.alert = true;
        match error {
            // During a reset the driver takes no commands. They are parked as a kernel does with a
            // frozen queue; an error would reach applications for a fault that is being repaired.
            IoError::NotReady => {
                self.recovery.parked.push_back(Sent { queue, request, token, tries: 0 });
            }
            IoError::Gone | IoError::NoSuchQueue { .. } => self.refuse(queue, token),
            error => unreachable!("the driver refuses {request:?}: {error}"),
        }
        self.note_deadline();
        self.note_trouble(now);
    }

    fn refuse(&mut self, queue: u16, token: Token) {
        self.answers.push(IoCompletion { token, queue, entry: 0, result: IoResult::Abandoned });
    }

    /// Gives the driver what waits, as far as it takes it.
    #[cold]
    pub(super) fn hand_out(&mut self, now: Time) {
        // Whatever makes the driver abort or reset comes through here at once.
        let counters = self.driver.counters();
        let since = now.saturating_sub(self.epoch);
        self.recovery.actions.note(since, counters.aborts, counters.resets);
        while let Some(sent) = self.recovery.parked.pop_front() {
            match self.give(now, sent.queue, sent.request, sent.token, false) {
                Ok(()) => {}
                Err(IoError::Gone | IoError::NoSuchQueue { .. }) => {
                    self.refuse(sent.queue, sent.token);
                }
                Err(_) => {
                    // The command returns to the front, so that the order of the host is kept. A
                    // command at the back could be overtaken for ever under load.
                    self.recovery.parked.push_front(sent);
                    break;
                }
            }
        }
        self.note_deadline();
        self.note_trouble(now);
        let ErrorRecovery { asked, parked, .. } = &*self.recovery;
        let ready = self.driver.state() == DriverState::Ready;
        self.recovery.alert = *asked || !ready || !parked.is_empty() || !self.answers.is_empty();
    }

    /// The driver's deadline has come: it looks for what is lost. What it finds without an interrupt
    /// waits for the next handler; true if that must be called.
    #[cold]
    pub(super) fn look_for_lost(&mut self, now: Time) -> bool {
        self.pci.set_now(now);
        if self.recovery.asked && self.outstanding > 0 {
            self.strike(now);
        }
        let before = self.answers.len();
        self.driver.poll(&mut self.pci, now, &mut self.answers);
        for answer in &self.answers[before..] {
            let found = matches!(answer.result, IoResult::Completed(_));
            // Who polls needs no interrupt.
            // A completion whose interrupt is still under way is not lost; the timeout was merely
            // shorter than the interrupt. Only a completion without any interrupt counts as a
            // defect.
            if found && !self.polled && !self.is_signalled(answer.queue) {
                self.recovery.silent += 1;
            }
        }
        self.driver.take_events(&mut self.recovery.events);
        for event in self.recovery.events.drain(..) {
            let odd =
                // A reset after a timeout can be due to a short timeout in the configuration. Only
                // a reset that no timeout asked for shows a defect of the model.
                matches!(event, DriverEvent::Reset(ResetCause::Fatal | ResetCause::Requested));
            self.recovery.odd_resets += u64::from(odd);
        }
        self.hand_out(now);
        if self.answers.is_empty() {
            return false;
        }
        self.recovery.called = true;
        self.note_deadline();
        self.note_trouble(now);
        true
    }

    /// True if the host is about to hear of the completions of `queue`: its interrupt waits in the
    /// controller, is under way, or has reached a core.
    fn is_signalled(&self, queue: u16) -> bool {
        let vector = self.driver.vector(queue).unwrap_or(queue);
        self.raised.get(usize::from(vector)).is_some_and(|raised| *raised)
            || self.pci.interrupt_is_coming(vector)
            || self.pci.device().interrupt_is_due(vector)
    }

    /// Besides the driver's deadlines: those of coming faults, of a reset in progress, and of completions that have
    /// arrived.
    pub(super) fn note_trouble(&mut self, now: Time) {
        let settled = matches!(self.driver.state(), DriverState::Ready | DriverState::Failed(_));
        // A reset has deadlines even if no command is outstanding. Without this alarm, the clock
        // would stop in the middle of a reset, because nothing else is due.
        self.alarm = if settled { Time::MAX } else { self.deadline };
        self.deadline = self.deadline.min(self.pci.next_injection());
        if !self.answers.is_empty() && !self.recovery.called {
            self.deadline = now;
        }
    }

    /// Why the driver gave up, if it did.
    pub(super) fn given_up(&self) -> Option<NvmeError> {
        match self.driver.state() {
            DriverState::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// The faults and the recovery actions; none if no faults are configured and none occurred.
    pub(super) fn recovered(&self) -> Option<FaultsResult> {
        let recovery = &self.recovery;
        let counters = self.driver.counters();
        let driver = DriverRecovery {
            interrupts_missed: counters.lost_interrupts,
            aborts: counters.aborts,
            resets: counters.resets,
            abandoned: recovery.abandoned,
            retries: recovery.retries,
        };
        if !recovery.asked && driver == DriverRecovery::default() {
            return None;
        }
        Some(FaultsResult {
            device: faults::of_device(self.fault_plan().map(|plan| plan.injected), self.epoch),
            driver,
            driver_actions: recovery.actions.result(),
            sense: self.scsi.as_ref().map(|scsi| scsi.sense().clone()).unwrap_or_default(),
            ..FaultsResult::default()
        })
    }

    /// The invariants without configured faults. That the timeout expires is not a defect; that an interrupt never
    /// comes, or that the controller fails, is one.
    pub(super) fn unasked_invariants(&self, invariants: &mut Vec<Invariant>) {
        if self.recovery.asked {
            return;
        }
        invariants.push(none_invariant(
            "interrupts",
            self.recovery.silent,
            "completions were found by the watchdog, without an interrupt",
        ));
        invariants.push(none_invariant(
            "resets",
            self.recovery.odd_resets,
            "resets of the controller without a timeout",
        ));
    }
}
