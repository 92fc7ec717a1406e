//! A driver and a simulated card on one clock: the loop *advance, interrupt, poll*, once.

use alloc::vec::Vec;

use ssdyno_block::{Completion, MonotonicTime, SubmitError, Time};
use ssdyno_pci::{PciDevice, SimulatedPci};

use crate::{RingDriver, Submission};

/// A [`RingDriver`], the card that it drives, and the clock of both.
///
/// It is passive, as all targets are: its owner brings it to the times that [`next_event`](SimulatedRing::next_event)
/// names. The host is not modelled here: an interrupt is handled at the moment of its arrival, and polls cost nothing.
/// A runner that charges cores for these takes [the driver](SimulatedRing::driver) once the card is
/// [ready](SimulatedRing::settle).
#[derive(Debug)]
pub struct SimulatedRing<D> {
    /// The driver, with the card in its slot.
    pub driver: RingDriver<SimulatedPci<D>>,
    /// How far both were brought.
    now: Time,
    /// The time of the driver's clock when the simulated clock begins.
    origin: MonotonicTime,
    vectors: Vec<u16>,
}

impl<D: PciDevice> SimulatedRing<D> {
    /// At time 0, with a driver that has started.
    pub fn new(driver: RingDriver<SimulatedPci<D>>) -> SimulatedRing<D> {
        let (now, origin) = (Time::ZERO, MonotonicTime::ZERO);
        SimulatedRing { driver, now, origin, vectors: Vec::new() }
    }

    /// The same with a driver whose clock says `origin` at time 0.
    #[must_use]
    pub fn with_driver_clock(self, origin: MonotonicTime) -> SimulatedRing<D> {
        SimulatedRing { origin, ..self }
    }

    /// Goes on until the start of the driver has waited for its register reads, and the card has done
    /// what it was told; the time then.
    pub fn settle(&mut self) -> Time {
        let pci = self.driver.function_mut();
        self.now += pci.take_stall();
        pci.take_accesses();
        while let Some(at) = pci.next_event() {
            self.now = self.now.max(at);
            pci.advance(at);
        }
        pci.set_now(self.now);
        self.now
    }

    /// How far both were brought.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The present time of the driver's clock.
    pub fn driver_now(&self) -> MonotonicTime {
        self.origin.after(self.now)
    }

    /// When the driver wants to be called, by the simulated clock.
    pub fn deadline(&self) -> Option<Time> {
        self.driver.next_deadline().map(|at| at.since(self.origin))
    }

    /// When something happens next.
    pub fn next_event(&self) -> Option<Time> {
        let next = self.driver.function().next_event().into_iter().chain(self.deadline()).min();
        next.map(|at| at.max(self.now))
    }

    /// Goes to the next thing that happens, and appends what completed to `out`, by the driver's clock.
    /// False where nothing will happen.
    pub fn step(&mut self, out: &mut Vec<Completion<MonotonicTime>>) -> bool {
        let next = self.next_event();
        if let Some(at) = next {
            self.run_to(at, out);
        }
        next.is_some()
    }

    /// Brings both to `at`, before which nothing else happens, and appends what completed to `out`, by the
    /// driver's clock. A time in the past is the present.
    pub fn run_to(&mut self, at: Time, out: &mut Vec<Completion<MonotonicTime>>) {
        self.now = self.now.max(at);
        let driver_now = self.driver_now();
        let pci = self.driver.function_mut();
        pci.set_now(self.now);
        pci.advance(self.now);
        pci.take_interrupts(self.now, &mut self.vectors);
        // Interrupts come before the deadline. The deadline may be the one of a block that this
        // interrupt brings back, and the driver would look for it in vain.
        for _ in self.vectors.drain(..) {
            if self.driver.on_interrupt(driver_now) {
                while self.driver.poll(driver_now, out).again {}
            }
        }
        if self.deadline().is_some_and(|deadline| deadline <= self.now) {
            while self.driver.poll(driver_now, out).again {}
        }
    }

    /// Submits a request at `now`; a time in the past is the present.
    ///
    /// # Errors
    /// The driver does not take it, and why.
    pub fn submit(&mut self, now: Time, submission: Submission) -> Result<(), SubmitError> {
        self.now = self.now.max(now);
        self.driver.function_mut().set_now(self.now);
        self.driver.submit(self.driver_now(), submission)
    }
}
