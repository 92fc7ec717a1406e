//! The ring driver over a simulated function with the ring card behind it.

use ssdyno_block::{
    Completion, FaultPlan, MonotonicTime, Request, SECTOR_BYTES, SubmitError, Time, Token, counted,
};
use ssdyno_controller_ring::{RingCard, RingConfig};
use ssdyno_device::DeviceReport;
use ssdyno_driver_ring::{RingDriver, RingDriverOptions, SimulatedRing, Submission};
use ssdyno_engine::PrepareError;
use ssdyno_engine::events::EventLog;
use ssdyno_figures::{DriverRecovery, FaultsResult, Invariant};
use ssdyno_host::{Choice, HostPort, Registers};
use ssdyno_pci::driver::DriverFlags;
use ssdyno_pci::{FaultyDevice, SimulatedPci};

use super::{PathFigures, PathReport, accesses, dma_invariant, none_invariant, reported, timing};
use crate::attach::HostPlan;
use crate::error::RunError;
use crate::faults::{self, DriverActions};

/// The driver's only vector.
const VECTOR: u16 = 0;
/// Stands for a poll that no interrupt asked for.
const POLL: u16 = 1;

/// See the module. Time zero is when the driver was ready.
#[derive(Debug)]
pub(crate) struct RingPort {
    driver: RingDriver<SimulatedPci<RingCard>>,
    epoch: Time,
    /// The driver asked to be polled again at once.
    again: bool,
    last: Time,
    /// When the card last did something.
    worked: Time,
    /// A poll is on its way to a core.
    asked: bool,
    /// What the driver completed, on its way to the host.
    answers: Vec<Completion<MonotonicTime>>,
    /// The number of times that the driver's timeout found a request while the card had no more work: the lost event
    /// would never have come.
    silent: u64,
    actions: DriverActions,
}

impl RingPort {
    /// Builds the card as it leaves the factory, and lets the driver start it.
    pub(crate) fn start(
        card: &RingConfig,
        driver: &RingDriverOptions,
        host: &HostPlan,
        seed: u64,
    ) -> Result<RingPort, RunError> {
        // It is not a block driver of this system, but the module of one card: it reports no SCSI.
        reported("ring", DriverFlags::BUS_MASTER, host.stack)?;
        let faults = card.faults;
        let card = RingCard::fresh(card, seed)?;
        let pci = SimulatedPci::new(card, timing(&host.config));
        let mut ring = SimulatedRing::new(RingDriver::new(pci, *driver)?);
        let epoch = ring.settle();
        let mut driver = ring.driver;
        let pci = driver.function_mut();
        pci.device_mut().events().begin_at(epoch);
        if !faults.is_none() {
            pci.device_mut().arm(faults.plan(seed, epoch));
        }
        let answers = Vec::with_capacity(256);
        let (again, last, asked) = (false, Time::ZERO, false);
        let actions = DriverActions::default();
        Ok(RingPort {
            driver,
            epoch,
            again,
            last,
            worked: epoch,
            asked,
            answers,
            silent: 0,
            actions,
        })
    }

    fn pci(&self) -> &SimulatedPci<RingCard> {
        self.driver.function()
    }

    fn fault_plan(&self) -> Option<&FaultPlan> {
        self.pci().device().fault_plan()
    }

    /// The time of the card's next event; while it has no work, the event affects nothing.
    fn fault_at(&self) -> Time {
        // A fault of an idle card has no effect, so it is no event. It would otherwise extend the
        // run until the time of the fault.
        if self.driver.in_flight() > 0 { self.pci().next_injection() } else { Time::MAX }
    }

    /// What is due by `now` happens.
    fn strike(&mut self, now: Time) {
        if self.driver.function_mut().inject_due(now) {
            self.driver.removed(now);
        }
    }

    /// The driver's action without a completion.
    fn recovery(&self) -> DriverRecovery {
        let counters = self.driver.counters();
        DriverRecovery {
            interrupts_missed: counters.lost_interrupts,
            resets: counters.resets,
            ..DriverRecovery::default()
        }
    }

    /// When the driver looks for what is lost, or sends a block that does not become full.
    fn deadline(&self) -> Option<Time> {
        // A poll on its way to a core will look anyway. A second one for the same deadline would be
        // scheduled at the same time again and again, and the clock would stop.
        let awaited = self.driver.in_flight() > 0 && !self.asked;
        self.driver.next_deadline().filter(|_| awaited).map(MonotonicTime::time)
    }
}

impl HostPort for RingPort {
    fn capacity_bytes(&self) -> u64 {
        self.driver.capacity_bytes()
    }

    fn sector_bytes(&self) -> u32 {
        SECTOR_BYTES
    }

    fn transfer_bytes_max(&self) -> u32 {
        1 << 20
    }

    fn locks(&self) -> u16 {
        1
    }

    // S0-8: one ring for submissions and completions of all threads. Every core takes the same lock
    // before it writes a descriptor.
    fn shared(&self) -> bool {
        true
    }

    fn choose(&mut self, _core: u16, _class: u8) -> Choice {
        Choice { queue: 0, lock: Some(0) }
    }

    fn core_of(&self, _vector: u16) -> u16 {
        0
    }

    fn submit(
        &mut self,
        now: Time,
        _queue: u16,
        request: Request,
        token: Token,
        _more: bool,
    ) -> Result<Registers, SubmitError> {
        let now = now + self.epoch;
        self.strike(now);
        self.driver.function_mut().set_now(now);
        self.driver.submit(now, Submission { request, token, address: None, urgent: false })?;
        Ok(accesses(self.driver.function_mut()))
    }

    fn ring(&mut self, _now: Time, _queue: u16) -> Registers {
        Registers::default()
    }

    fn next_event(&self) -> Option<Time> {
        // The driver wants to continue at once, as the responses generator does while descriptors
        // are left (S0-29). The time is the one of its last poll, not of the next event of the
        // card.
        if self.again {
            return Some(self.last);
        }
        let fault = Some(self.fault_at()).filter(|at| *at < Time::MAX);
        let at = [self.pci().next_event(), self.deadline(), fault].into_iter().flatten().min();
        at.map(|at| at.saturating_sub(self.epoch))
    }

    fn advance(&mut self, until: Time, vectors: &mut Vec<u16>) -> Time {
        let deadline = self.deadline().unwrap_or(Time::MAX);
        let again = if self.again { self.last + self.epoch } else { Time::MAX };
        let fault = self.fault_at();
        let own = deadline.min(again).min(fault);
        let pci = self.driver.function_mut();
        let at = match pci.next_event() {
            Some(next) if next <= own => {
                self.worked = pci.run(own.min(until.saturating_add(self.epoch)));
                self.worked
            }
            _ => own,
        };
        pci.take_interrupts(at, vectors);
        // The card has one interrupt for a block, whatever its message number. All go to the only
        // vector of the driver.
        vectors.iter_mut().for_each(|vector| *vector = VECTOR);
        if fault <= at {
            self.strike(at);
        }
        if at >= own && own < fault {
            self.again = false;
            self.asked = true;
            vectors.push(POLL);
        }
        at.saturating_sub(self.epoch)
    }

    fn complete(&mut self, now: Time, vector: u16, done: &mut Vec<Completion>) -> Registers {
        let at = now + self.epoch;
        self.driver.function_mut().set_now(at);
        self.asked &= vector != POLL;
        if vector == POLL || self.driver.on_interrupt(at) {
            // If the card still has work, the timeout was only too short. If it has none, the
            // answer would never have come, which is a defect of the card or the driver.
            let idle = self.pci().next_event().is_none();
            let before = self.recovery();
            let polled = self.driver.poll(at, &mut self.answers);
            let after = self.recovery();
            self.silent += u64::from(idle && after != before);
            self.actions.note(now, after.aborts, after.resets);
            self.again = polled.again;
            self.last = now;
            let epoch = self.epoch.into();
            done.extend(self.answers.drain(..).map(|answer| Completion {
                token: answer.token,
                status: answer.status,
                accepted: answer.accepted.since(epoch),
                // The card's last work and not the handler's time, which would make the interrupt
                // and the wait for the core a part of the card. The card writes no times, so a
                // completion that a later one overtakes has the time of the later one.
                completed: now.min(self.worked.saturating_sub(self.epoch)),
            }));
        }
        accesses(self.driver.function_mut())
    }
}

impl RingPort {
    /// The faults, and the driver's reactions.
    fn faults(&self) -> Option<FaultsResult> {
        let driver = self.recovery();
        let plan = self.fault_plan();
        if plan.is_none() && driver == DriverRecovery::default() {
            return None;
        }
        Some(FaultsResult {
            device: faults::of_device(plan.map(|plan| plan.injected), self.epoch),
            driver,
            driver_actions: self.actions.result(),
            ..FaultsResult::default()
        })
    }
}

impl PathReport for RingPort {
    fn events(&mut self) -> &mut EventLog {
        self.driver.function_mut().device_mut().events()
    }

    fn report(&self, report: &mut DeviceReport) {
        self.pci().device().report(report);
    }

    fn is_gone(&self) -> bool {
        self.driver.is_gone()
    }

    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        self.driver.function_mut().device_mut().precondition(watcher)
    }

    fn path(&self, _end: Time, report: &mut PathFigures) {
        report.faults = self.faults();
        let invariants = &mut report.invariants;
        invariants.push(dma_invariant(self.pci().faults()));
        let fault = self.pci().device().fault();
        invariants.push(Invariant {
            name: "ring_ownership".into(),
            holds: fault.is_none(),
            detail: match fault {
                None => "neither side touched a block that the other owned".into(),
                Some(fault) => format!("{fault:?}"),
            },
        });
        let stalled = self.driver.stalled();
        invariants.push(Invariant {
            name: "ring_goes_on".into(),
            holds: !stalled,
            detail: match stalled {
                false => "no request waits in a block that never fills".into(),
                true => format!(
                    "the last {} fewer than a static block holds, so it is never sent (S0-36)",
                    counted(self.driver.in_flight().into(), "request is", "requests are")
                ),
            },
        });
        let counters = self.driver.counters();
        if self.fault_plan().is_none() {
            // That the timeout expires while the card is at work is not a defect.
            let what = "blocks that the timeout found although the card had nothing more to do";
            invariants.push(none_invariant("answers", self.silent, what));
        }
        invariants.push(Invariant {
            name: "commands".into(),
            holds: self.driver.in_flight() == 0,
            detail: format!(
                "{} bios completed, {} requests outstanding",
                counters.bios,
                self.driver.in_flight()
            ),
        });
    }
}
