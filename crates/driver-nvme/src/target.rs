//! A driver and a simulated device as one block target: the driver's path without a host model.

use alloc::vec::Vec;

use ssdyno_block::{BlockTarget, Completion, MonotonicTime, Request, SubmitError, Time, Token};
use ssdyno_pci::{PciDevice, SimulatedPci};

use crate::requests::Requests;
use crate::{DriverState, IoCompletion, NvmeConfig, NvmeDriver, NvmeError};

/// One namespace behind an [`NvmeDriver`] over a [`SimulatedPci`], on one virtual clock.
///
/// Time zero is the moment at which the driver became ready. All requests share one buffer, for
/// nobody looks at their contents; a request longer than the buffer is done piece by piece. Requests
/// that the driver cannot take at once (full queue, reset) wait here; [`SubmitError::Full`] comes when
/// as many wait or are outstanding as the queues hold.
#[derive(Debug)]
pub struct NvmeTarget<D> {
    pci: SimulatedPci<D>,
    driver: NvmeDriver,
    requests: Requests,
    /// The device's time when the target's began, and now.
    epoch: Time,
    at: Time,
    vectors: Vec<u16>,
    answers: Vec<IoCompletion>,
}

impl<D: PciDevice> NvmeTarget<D> {
    /// Starts a driver for `pci` and takes `namespace`. `buffer_bytes` is the size of the buffer that
    /// requests share, at least a page.
    ///
    /// # Errors
    /// The driver could not start, or there is no such namespace that it can use.
    pub fn start(
        mut pci: SimulatedPci<D>,
        config: NvmeConfig,
        namespace: u32,
        buffer_bytes: u32,
    ) -> Result<NvmeTarget<D>, NvmeError> {
        let mut driver = NvmeDriver::new(config);
        let mut at = Time::ZERO;
        pci.set_now(at);
        driver.start(&mut pci, at)?;
        let (mut vectors, mut answers) = (Vec::with_capacity(64), Vec::with_capacity(256));
        loop {
            match driver.state() {
                DriverState::Ready => break,
                DriverState::Failed(error) => return Err(error),
                _ => {}
            }
            at = at.max(next(&pci, &driver).unwrap_or(at));
            bring(&mut pci, &mut driver, at, &mut vectors, &mut answers);
        }
        let found = driver.namespaces().iter().find(|n| n.id == namespace && n.unusable.is_none());
        let namespace = *found.ok_or(NvmeError::NoUsableNamespace { namespace })?;
        let requests = Requests::new(&driver, &mut pci, namespace, buffer_bytes)?;
        Ok(NvmeTarget { pci, driver, requests, epoch: at, at, vectors, answers })
    }

    /// The driver.
    pub fn driver(&self) -> &NvmeDriver {
        &self.driver
    }

    /// The device in its slot, with its counters, faults and hooks.
    pub fn pci(&self) -> &SimulatedPci<D> {
        &self.pci
    }

    /// The device's time at this target's time zero.
    pub fn epoch(&self) -> Time {
        self.epoch
    }

    /// Brings everything to the device's time `at`.
    fn run_to(&mut self, at: Time) {
        self.at = self.at.max(at);
        bring(&mut self.pci, &mut self.driver, self.at, &mut self.vectors, &mut self.answers);
        self.requests.answered(self.at.into(), &mut self.answers);
        self.pci.set_now(self.at);
        self.requests.issue(&mut self.driver, &mut self.pci, self.at.into());
    }
}

/// The next thing that happens, in the device's time.
fn next<D: PciDevice>(pci: &SimulatedPci<D>, driver: &NvmeDriver) -> Option<Time> {
    match (pci.next_event(), driver.next_deadline().map(MonotonicTime::time)) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Brings device and driver to `at`.
fn bring<D: PciDevice>(
    pci: &mut SimulatedPci<D>,
    driver: &mut NvmeDriver,
    at: Time,
    vectors: &mut Vec<u16>,
    answers: &mut Vec<IoCompletion>,
) {
    pci.advance(at);
    pci.set_now(at);
    pci.take_interrupts(at, vectors);
    for vector in vectors.drain(..) {
        driver.on_interrupt(pci, at, vector, answers);
    }
    if driver.interrupt_mode().is_none() {
        for queue in 1..=driver.queues() {
            driver.poll_queue(pci, queue, answers);
        }
    }
    if driver.next_deadline().is_some_and(|deadline| deadline <= at) {
        driver.poll(pci, at, answers);
    }
    // Nobody models the core that waits for a register here.
    pci.take_stall();
}

impl<D: PciDevice> BlockTarget for NvmeTarget<D> {
    fn capacity_bytes(&self) -> u64 {
        self.requests.namespace().capacity_bytes()
    }

    fn sector_bytes(&self) -> u32 {
        self.requests.namespace().block_bytes
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        self.at = self.at.max(now + self.epoch);
        self.pci.set_now(self.at);
        let at = self.at.into();
        self.requests.submit(&mut self.driver, &mut self.pci, at, request, token)
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        let until = now + self.epoch;
        while let Some(at) = next(&self.pci, &self.driver).filter(|&at| at <= until) {
            self.run_to(at);
        }
        self.at = self.at.max(until);
        let epoch = self.epoch.into();
        out.extend(self.requests.take_done().map(|done| Completion {
            token: done.token,
            status: done.status,
            accepted: done.accepted.since(epoch),
            completed: done.completed.since(epoch),
        }));
    }

    fn next_event(&self) -> Option<Time> {
        if self.requests.has_done() {
            return Some(self.at - self.epoch);
        }
        next(&self.pci, &self.driver).map(|at| at.saturating_sub(self.epoch))
    }
}
