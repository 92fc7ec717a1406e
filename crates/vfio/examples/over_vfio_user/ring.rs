//! The ring driver in wall time: submits, waits for an interrupt or a deadline, polls.

use std::time::{Duration, Instant};

use ssdyno_block::{Completion, MonotonicTime, Request, SubmitError, Token};
use ssdyno_driver_ring::{RingDriver, RingDriverOptions, RingError, Submission};
use ssdyno_vfio::{VfioUserFunction, Waited};

/// A ring driver and its clock.
pub(crate) struct Ring {
    pub(crate) driver: RingDriver<VfioUserFunction>,
    /// Requests that were answered, for who takes them.
    pub(crate) done: Vec<Completion<MonotonicTime>>,
    start: Instant,
    vectors: Vec<u16>,
}

impl Ring {
    pub(crate) fn new(
        function: VfioUserFunction,
        options: RingDriverOptions,
    ) -> Result<Ring, RingError> {
        let driver = RingDriver::new(function, options)?;
        Ok(Ring { driver, done: Vec::new(), start: Instant::now(), vectors: Vec::new() })
    }

    pub(crate) fn now(&self) -> MonotonicTime {
        self.start.elapsed().into()
    }

    /// Submits; the data is at `address` for the device.
    pub(crate) fn submit(
        &mut self,
        request: Request,
        token: u32,
        address: u64,
    ) -> Result<(), SubmitError> {
        let (token, address) = (Token(token), Some(address));
        self.driver.submit(self.now(), Submission { request, token, address, urgent: false })
    }

    /// Waits for what happens next, for `limit` at most, and lets the driver do what is due.
    pub(crate) fn step(&mut self, limit: Duration) {
        if self.driver.stalled() {
            self.driver.send_pending(self.now());
        }
        let deadline = self.driver.next_deadline();
        let left = deadline.map(|at| at.since(self.now()).as_ps().div_ceil(1000));
        let wait = left.map_or(limit, |ns| limit.min(Duration::from_nanos(ns)));
        if self.driver.function_mut().wait(wait, &mut self.vectors) == Waited::Gone {
            std::thread::sleep(wait);
        }
        let now = self.now();
        for _ in self.vectors.drain(..) {
            if self.driver.on_interrupt(now) {
                while self.driver.poll(now, &mut self.done).again {}
            }
        }
        if deadline.is_some_and(|at| at <= now) {
            while self.driver.poll(now, &mut self.done).again {}
        }
    }
}
