//! A driver and a simulated controller on one clock: the loop *start, advance, interrupt, poll*, once.

use alloc::vec::Vec;

use ssdyno_block::{MonotonicTime, Time, Token};
use ssdyno_pci::{PciDevice, SimulatedPci};

use crate::{DriverState, IoCommand, IoCompletion, IoError, NvmeConfig, NvmeDriver, NvmeError};

/// An [`NvmeDriver`], the controller that it drives, and the clock of both.
///
/// It is passive, as all targets are: its owner brings it to the times that [`next_event`](SimulatedNvme::next_event)
/// names. The host is not modelled here: an interrupt is handled at the moment of its arrival, and a register read
/// costs no CPU time. A runner that charges cores for these takes [both parts](SimulatedNvme::into_parts) once the
/// driver is ready.
#[derive(Debug)]
pub struct SimulatedNvme<D> {
    /// The controller in its slot, with its counters, faults and hooks.
    pub pci: SimulatedPci<D>,
    /// The driver.
    pub driver: NvmeDriver,
    /// How far both were brought. Put forward by somebody else, the host has slept meanwhile.
    pub now: Time,
    /// The time of the driver's clock when the simulated clock begins.
    origin: MonotonicTime,
    vectors: Vec<u16>,
}

impl<D: PciDevice> SimulatedNvme<D> {
    /// At time 0, before the driver has started.
    pub fn new(pci: SimulatedPci<D>, config: NvmeConfig) -> SimulatedNvme<D> {
        SimulatedNvme {
            pci,
            driver: NvmeDriver::new(config),
            now: Time::ZERO,
            origin: MonotonicTime::ZERO,
            vectors: Vec::new(),
        }
    }

    /// The same with a driver whose clock says `origin` at time 0: an operating system has been up for a
    /// while when it finds a device.
    #[must_use]
    pub fn with_driver_clock(self, origin: MonotonicTime) -> SimulatedNvme<D> {
        SimulatedNvme { origin, ..self }
    }

    /// Starts the driver and goes on until it is ready.
    ///
    /// # Errors
    /// The driver failed, or it waits for something that will never happen.
    pub fn start(&mut self) -> Result<(), NvmeError> {
        self.pci.set_now(self.now);
        let at = self.driver_now();
        self.driver.start(&mut self.pci, at)?;
        // Nothing was submitted, so nothing completes.
        let mut none = Vec::new();
        loop {
            match self.driver.state() {
                DriverState::Ready => return Ok(()),
                DriverState::Failed(error) => return Err(error),
                _ if self.step(&mut none) => {}
                _ => return Err(NvmeError::WrongState { state: "waiting for nothing" }),
            }
        }
    }

    /// The present time of the driver's clock.
    pub fn driver_now(&self) -> MonotonicTime {
        self.origin.after(self.now)
    }

    /// When the driver wants to be called, by the simulated clock.
    fn deadline(&self) -> Option<Time> {
        self.driver.next_deadline().map(|at| at.since(self.origin))
    }

    /// When something happens next.
    pub fn next_event(&self) -> Option<Time> {
        let next = self.pci.next_event().into_iter().chain(self.deadline()).min();
        next.map(|at| at.max(self.now))
    }

    /// Goes to the next thing that happens, and appends what completed to `out`. False where nothing will
    /// happen.
    pub fn step(&mut self, out: &mut Vec<IoCompletion>) -> bool {
        let next = self.next_event();
        if let Some(at) = next {
            self.run_to(at, out);
        }
        next.is_some()
    }

    /// Brings both to `at`, before which nothing else happens, and appends what completed to `out`. A time
    /// in the past is the present.
    pub fn run_to(&mut self, at: Time, out: &mut Vec<IoCompletion>) {
        self.now = self.now.max(at);
        let (now, driver_now) = (self.now, self.driver_now());
        // The controller comes first, so that interrupts of this moment are there when the
        // driver looks. The driver's register writes reach the controller at their own time.
        self.pci.advance(now);
        self.pci.set_now(now);
        self.pci.take_interrupts(now, &mut self.vectors);
        for vector in self.vectors.drain(..) {
            self.driver.on_interrupt(&mut self.pci, driver_now, vector, out);
        }
        if self.driver.interrupt_mode().is_none() {
            for queue in 1..=self.driver.queues() {
                self.driver.poll_queue(&mut self.pci, queue, out);
            }
        }
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.driver.poll(&mut self.pci, driver_now, out);
        }
        // The core that waits for a register is not modelled.
        self.pci.take_stall();
        self.pci.set_now(now);
    }

    /// Submits a command now.
    ///
    /// # Errors
    /// The driver does not take it, and why.
    pub fn submit(
        &mut self,
        queue: u16,
        command: &IoCommand<'_>,
        token: Token,
    ) -> Result<(), IoError> {
        self.pci.set_now(self.now);
        let at = self.driver_now();
        self.driver.submit(&mut self.pci, at, queue, command, token)
    }

    /// The controller in its slot, and the driver.
    pub fn into_parts(self) -> (SimulatedPci<D>, NvmeDriver) {
        (self.pci, self.driver)
    }
}
