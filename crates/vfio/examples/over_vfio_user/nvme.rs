//! The NVMe driver in wall time.

use std::time::{Duration, Instant};

use ssdyno_block::{MonotonicTime, Token};
use ssdyno_driver_nvme::{
    DriverState, IoCommand, IoCompletion, IoError, NvmeConfig, NvmeDriver, NvmeError,
};
use ssdyno_vfio::{VfioUserFunction, Waited};

/// An NVMe driver, its function and its clock.
pub(crate) struct Nvme {
    pub(crate) function: VfioUserFunction,
    pub(crate) driver: NvmeDriver,
    /// Commands that were answered, for who takes them.
    pub(crate) done: Vec<IoCompletion>,
    start: Instant,
    vectors: Vec<u16>,
}

impl Nvme {
    /// Brings the controller up.
    pub(crate) fn start(function: VfioUserFunction, config: NvmeConfig) -> Result<Nvme, NvmeError> {
        let driver = NvmeDriver::new(config);
        let (start, done) = (Instant::now(), Vec::new());
        let mut nvme = Nvme { function, driver, done, start, vectors: Vec::new() };
        nvme.driver.start(&mut nvme.function, MonotonicTime::ZERO)?;
        loop {
            match nvme.driver.state() {
                DriverState::Ready => return Ok(nvme),
                DriverState::Failed(error) => return Err(error),
                // Its own timeouts bound it.
                _ => nvme.step(Duration::from_millis(10)),
            }
        }
    }

    pub(crate) fn now(&self) -> MonotonicTime {
        self.start.elapsed().into()
    }

    pub(crate) fn submit(
        &mut self,
        queue: u16,
        command: &IoCommand<'_>,
        token: u32,
    ) -> Result<(), IoError> {
        let now = self.now();
        self.driver.submit(&mut self.function, now, queue, command, Token(token))
    }

    /// Waits for what happens next, for `limit` at most, and lets the driver do what is due.
    pub(crate) fn step(&mut self, limit: Duration) {
        let deadline = self.driver.next_deadline();
        let left = deadline.map(|at| at.since(self.now()).as_ps().div_ceil(1000));
        let wait = left.map_or(limit, |ns| limit.min(Duration::from_nanos(ns)));
        if self.function.wait(wait, &mut self.vectors) == Waited::Gone {
            self.driver.removed(&mut self.function, &mut self.done);
            return;
        }
        let now = self.now();
        for vector in self.vectors.drain(..) {
            self.driver.on_interrupt(&mut self.function, now, vector, &mut self.done);
        }
        if deadline.is_some_and(|at| at <= now) {
            self.driver.poll(&mut self.function, now, &mut self.done);
        }
    }
}
