//! What the host does when the NVMe controller is not there: commands wait for the end of a reset, those
//! that failed are given again, and those of a device that is gone end.

use std::collections::VecDeque;

use ssdyno_block::{Request, Status, Time, Token};
use ssdyno_device::faults::{FaultConfig, Injected};
use ssdyno_device::nvme::Stuck;
use ssdyno_driver_nvme::{DriverState, IoCompletion, IoError, IoResult};
use ssdyno_pci::PciFault;
use ssdyno_result::{DriverRecovery, FaultsResult};

use super::NvmePort;
use crate::faults;
use crate::ports::schedule::{Schedule, Strike};

/// A command of the host, as it came.
#[derive(Clone, Copy, Debug)]
struct Sent {
    queue: u16,
    request: Request,
    token: Token,
    tries: u32,
}

/// What an [`NvmePort`] must know where something may go wrong.
#[derive(Debug)]
pub(super) struct Trouble {
    schedule: Schedule,
    retries_max: u32,
    /// By token.
    sent: Vec<Option<Sent>>,
    /// Commands that the driver does not take now; they count as outstanding.
    parked: VecDeque<Sent>,
    /// A handler is on its way to the answers that nobody interrupted for.
    pub(super) called: bool,
    /// Answers that the driver did not give: to commands that it refused for good.
    pub(super) refused: u64,
    /// Commands that the driver gave up.
    pub(super) abandoned: u64,
    retries: u64,
}

impl Trouble {
    /// None where nothing is asked for. The run begins at `epoch`.
    pub(super) fn new(faults: &FaultConfig, retries: u32, epoch: Time) -> Option<Box<Trouble>> {
        (!faults.is_none() || retries > 0).then(|| {
            Box::new(Trouble {
                schedule: Schedule::new(faults, epoch),
                retries_max: retries,
                sent: Vec::new(),
                parked: VecDeque::new(),
                called: false,
                refused: 0,
                abandoned: 0,
                retries: 0,
            })
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

    /// A command failed; true if it is given to the driver again.
    pub(super) fn tries_again(&mut self, token: Token, status: Status) -> bool {
        let Some(Some(sent)) = self.sent.get_mut(token.0 as usize) else { return false };
        if sent.tries >= self.retries_max
            || status == Status::ReadOnly
            || self.schedule.removed.is_some()
        {
            return false;
        }
        sent.tries += 1;
        self.parked.push_back(*sent);
        self.retries += 1;
        true
    }
}

impl NvmePort {
    /// What is due by `now` happens.
    #[cold]
    pub(super) fn strike(&mut self, now: Time) {
        while let Some(strike) = self.trouble.as_mut().and_then(|t| t.schedule.take_due(now)) {
            match strike {
                Strike::Hang => self.pci.device_mut().hang(Stuck::UntilReset),
                Strike::Remove => {
                    self.pci.inject(PciFault::Removal(now));
                    self.pci.advance(now);
                    // The slot says so at once (PCI Express 5.0, clause 6.7: presence detect).
                    self.driver.removed(&mut self.pci, &mut self.answers);
                    self.hand_out(now);
                }
            }
        }
    }

    /// The driver does not take `request` now, or never will. It is answered all the same.
    #[cold]
    pub(super) fn not_taken(
        &mut self,
        now: Time,
        queue: u16,
        request: Request,
        token: Token,
        error: IoError,
    ) {
        let Some(trouble) = &mut self.trouble else {
            unreachable!("the driver refuses {request:?}: {error}")
        };
        self.outstanding += 1;
        match error {
            IoError::NotReady => trouble.parked.push_back(Sent { queue, request, token, tries: 0 }),
            IoError::Gone | IoError::NoSuchQueue { .. } => self.refuse(queue, token),
            error => unreachable!("the driver refuses {request:?}: {error}"),
        }
        self.note_deadline();
        self.note_trouble(now);
    }

    fn refuse(&mut self, queue: u16, token: Token) {
        self.answers.push(IoCompletion { token, queue, result: IoResult::Abandoned });
        if let Some(trouble) = &mut self.trouble {
            trouble.refused += 1;
        }
    }

    /// Gives the driver what waits, as far as it takes it.
    #[cold]
    pub(super) fn hand_out(&mut self, now: Time) {
        while let Some(sent) = self.trouble.as_mut().and_then(|t| t.parked.pop_front()) {
            match self.give(now, sent.queue, sent.request, sent.token, false) {
                Ok(()) => {}
                Err(IoError::Gone | IoError::NoSuchQueue { .. }) => {
                    self.refuse(sent.queue, sent.token);
                }
                Err(_) => {
                    if let Some(trouble) = &mut self.trouble {
                        trouble.parked.push_front(sent);
                    }
                    break;
                }
            }
        }
        self.note_deadline();
        self.note_trouble(now);
    }

    /// Beside the driver's deadlines: those of faults to come, of a reset under way, and of answers that
    /// are there.
    pub(super) fn note_trouble(&mut self, now: Time) {
        let Some(trouble) = &self.trouble else { return };
        let settled = matches!(self.driver.state(), DriverState::Ready | DriverState::Failed(_));
        self.alarm = if settled { Time::MAX } else { self.deadline };
        self.deadline = self.deadline.min(trouble.schedule.next());
        if !self.answers.is_empty() && !trouble.called {
            self.deadline = now;
        }
    }

    /// True if the driver gave up.
    pub(super) fn is_given_up(&self) -> bool {
        matches!(self.driver.state(), DriverState::Failed(_))
    }

    /// What went wrong, and what was done about it.
    pub(super) fn recovered(&self) -> Option<FaultsResult> {
        let trouble = self.trouble.as_ref()?;
        let counters = self.driver.counters();
        let of_run = |at: Time| at.saturating_sub(self.epoch);
        let injected = self.pci.device().injected().map(|injected| Injected {
            hung_at: trouble.schedule.hung.map(of_run),
            removed_at: trouble.schedule.removed.map(of_run),
            ..injected
        });
        Some(FaultsResult {
            device: faults::of_device(injected),
            driver: DriverRecovery {
                interrupts_missed: counters.lost_interrupts,
                aborts: counters.aborts,
                resets: counters.resets,
                abandoned: trouble.abandoned,
                retries: trouble.retries,
            },
            sense: self.scsi.as_ref().map(|scsi| scsi.sense().clone()).unwrap_or_default(),
            ..FaultsResult::default()
        })
    }
}
