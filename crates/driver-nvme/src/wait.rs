//! The same machine, driven to its end at once: for users with a clock and nothing else to do.

use alloc::vec::Vec;

use ssdyno_block::MonotonicTime;
use ssdyno_pci::PciFunction;

use crate::{Controller, DriverState, NvmeDriver, NvmeError};

impl Controller {
    /// Starts, and polls until the driver is ready. `clock` says what time it is, and may idle for a
    /// moment before it does.
    ///
    /// # Errors
    /// Why the driver could not start.
    pub fn start_and_wait<F: PciFunction, T: Into<MonotonicTime>>(
        &mut self,
        function: &mut F,
        mut clock: impl FnMut(&mut F) -> T,
    ) -> Result<(), NvmeError> {
        let now = clock(function);
        self.start(function, now)?;
        loop {
            match self.state() {
                DriverState::Ready => return Ok(()),
                DriverState::Failed(error) => return Err(error),
                _ => {}
            }
            let now = clock(function);
            self.poll(function, now);
        }
    }
}

impl NvmeDriver {
    /// See [`Controller::start_and_wait`].
    ///
    /// # Errors
    /// The same.
    pub fn start_and_wait<F: PciFunction, T: Into<MonotonicTime>>(
        &mut self,
        function: &mut F,
        clock: impl FnMut(&mut F) -> T,
    ) -> Result<(), NvmeError> {
        let started = self.controller.start_and_wait(function, clock);
        // Nothing is outstanding: the pairs are adopted, or their end is seen.
        self.obey(function, &mut Vec::new());
        started
    }
}
