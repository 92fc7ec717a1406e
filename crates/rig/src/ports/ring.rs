//! The ring driver over a simulated function with the ring card behind it.

use ssdyno_block::{Completion, Request, SECTOR_BYTES, SubmitError, Time, Token};
use ssdyno_device::ring::{RingCard, RingConfig};
use ssdyno_device::{DeviceFacts, PrepareError};
use ssdyno_driver_ring::{Options, RingDriver, Submission};
use ssdyno_engine::events::EventLog;
use ssdyno_ftl::Health;
use ssdyno_host::{Choice, Port, Registers};
use ssdyno_pci::SimulatedPci;
use ssdyno_pci::driver::DriverFlags;
use ssdyno_result::Invariant;

use super::{Behind, accesses, dma_law, none_law, reported, timing};
use crate::attach::{HostPlan, Stack};
use crate::run::RunError;

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
    /// A poll is on its way to a core.
    asked: bool,
}

impl RingPort {
    /// Builds the card as it leaves the factory, and lets the driver start it.
    pub(crate) fn start(
        card: &RingConfig,
        driver: &Options,
        host: &HostPlan,
        seed: u64,
    ) -> Result<RingPort, RunError> {
        // It is no block driver of this system, but the module of one card: it reports no SCSI.
        reported("ring", DriverFlags::BUS_MASTER, host.stack)?;
        let card = RingCard::fresh(card, seed)?;
        let pci = SimulatedPci::new(card, timing(&host.config));
        let mut driver = RingDriver::new(pci, *driver)?;
        // The start waited for register reads.
        let pci = driver.function_mut();
        let mut epoch = pci.take_stall();
        pci.take_accesses();
        while let Some(at) = pci.next_event() {
            epoch = epoch.max(at);
            pci.advance(at);
        }
        pci.set_now(epoch);
        pci.device_mut().events().begin_at(epoch);
        Ok(RingPort { driver, epoch, again: false, last: Time::ZERO, asked: false })
    }

    fn pci(&self) -> &SimulatedPci<RingCard> {
        self.driver.function()
    }

    /// When the driver looks for what is lost, or sends a block that does not become full.
    fn deadline(&self) -> Option<Time> {
        if self.driver.in_flight() > 0 && !self.asked { self.driver.next_deadline() } else { None }
    }
}

impl Port for RingPort {
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
        self.driver.function_mut().set_now(now);
        self.driver.submit(now, Submission { request, token, address: None, urgent: false })?;
        Ok(accesses(self.driver.function_mut()))
    }

    fn ring(&mut self, _now: Time, _queue: u16) -> Registers {
        Registers::default()
    }

    fn next_event(&self) -> Option<Time> {
        if self.again {
            return Some(self.last);
        }
        let at = [self.pci().next_event(), self.deadline()].into_iter().flatten().min();
        at.map(|at| at.saturating_sub(self.epoch))
    }

    fn advance(&mut self, until: Time, vectors: &mut Vec<u16>) -> Time {
        let deadline = self.deadline().unwrap_or(Time::MAX);
        let again = if self.again { self.last + self.epoch } else { Time::MAX };
        let own = deadline.min(again);
        let pci = self.driver.function_mut();
        let at = match pci.next_event() {
            Some(next) if next <= own => pci.run(own.min(until.saturating_add(self.epoch))),
            _ => own,
        };
        pci.take_interrupts(at, vectors);
        vectors.iter_mut().for_each(|vector| *vector = VECTOR);
        if at >= own {
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
            let first = done.len();
            let polled = self.driver.poll(at, done);
            self.again = polled.again;
            self.last = now;
            for completion in &mut done[first..] {
                completion.accepted = completion.accepted.saturating_sub(self.epoch);
                completion.completed = now;
            }
        }
        accesses(self.driver.function_mut())
    }
}

impl Behind for RingPort {
    fn events(&mut self) -> &mut EventLog {
        self.driver.function_mut().device_mut().events()
    }

    fn facts(&self) -> DeviceFacts {
        self.pci().device().facts()
    }

    fn stack(&self) -> Stack {
        Stack::Block
    }

    fn health(&self) -> Health {
        self.pci().device().health()
    }

    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        self.driver.function_mut().device_mut().precondition(watcher)
    }

    fn laws(&self, laws: &mut Vec<Invariant>) {
        laws.push(dma_law(self.pci().faults()));
        let fault = self.pci().device().fault();
        laws.push(Invariant {
            name: "ring_ownership".into(),
            holds: fault.is_none(),
            detail: match fault {
                None => "nobody touched a block that the other side owned".into(),
                Some(fault) => format!("{fault:?}"),
            },
        });
        let stalled = self.driver.stalled();
        laws.push(Invariant {
            name: "ring_goes_on".into(),
            holds: !stalled,
            detail: match stalled {
                false => "no request waits for others that never come".into(),
                true => format!(
                    "the last {} requests are fewer than a static block holds, so it is never sent \
                     (S0-36)",
                    self.driver.in_flight()
                ),
            },
        });
        let counters = self.driver.counters();
        laws.push(none_law("interrupts", counters.lost_interrupts, "interrupts were lost"));
        laws.push(none_law("resets", counters.resets, "resets of the card"));
        laws.push(Invariant {
            name: "commands".into(),
            holds: self.driver.in_flight() == 0,
            detail: format!("{} bios answered, none left", counters.bios),
        });
    }
}
