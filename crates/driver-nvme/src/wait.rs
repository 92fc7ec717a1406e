//! The same machine, driven to its end at once: for users with a clock and nothing else to do.

use alloc::vec::Vec;

use ssdyno_block::{MonotonicTime, Token};
use ssdyno_pci::PciFunction;

use crate::{
    AdminCommand, AdminCompletion, AdminError, Controller, DriverState, IoCompletion, NvmeDriver,
    NvmeError,
};

/// The token of a synchronous admin command.
// The command must be found among those of the caller. The documentation of `admin_and_wait`
// keeps this number free.
const SYNCHRONOUS: Token = Token(u32::MAX);

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

    /// The synchronous admin command has ended.
    fn take_synchronous(&mut self) -> Option<Result<AdminCompletion, AdminError>> {
        let at = self.admin_done.iter().position(|done| done.token == SYNCHRONOUS)?;
        let done = self.admin_done.remove(at);
        Some(match done.status {
            Some(status) if status.is_success() => Ok(done),
            Some(status) => Err(AdminError::Status(status)),
            None => Err(AdminError::Abandoned),
        })
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

    /// Sends an admin command and polls until it completes. Completions of I/O that come to light
    /// meanwhile are appended to `out`. The token `u32::MAX` must not be in use.
    ///
    /// # Errors
    /// The command was not taken, ended with an error, or was given up in a reset.
    pub fn admin_and_wait<F: PciFunction, T: Into<MonotonicTime>>(
        &mut self,
        function: &mut F,
        mut clock: impl FnMut(&mut F) -> T,
        command: &AdminCommand<'_>,
        out: &mut Vec<IoCompletion>,
    ) -> Result<AdminCompletion, AdminError> {
        let now = clock(function);
        self.submit_admin(function, now, command, SYNCHRONOUS)?;
        loop {
            let now = clock(function);
            self.poll(function, now, out);
            if let Some(done) = self.controller.take_synchronous() {
                return done;
            }
        }
    }

    /// Stops, and polls until the driver has stopped.
    ///
    /// # Errors
    /// Why it could not stop in good order; it has given up everything then.
    pub fn shutdown_and_wait<F: PciFunction, T: Into<MonotonicTime>>(
        &mut self,
        function: &mut F,
        mut clock: impl FnMut(&mut F) -> T,
        out: &mut Vec<IoCompletion>,
    ) -> Result<(), NvmeError> {
        let now = clock(function);
        self.shutdown(function, now)?;
        loop {
            match self.state() {
                DriverState::Stopped => return Ok(()),
                DriverState::Failed(error) => return Err(error),
                _ => {}
            }
            let now = clock(function);
            self.poll(function, now, out);
        }
    }
}
