//! What a runner needs of a simulated device.

use std::fmt;

use ssdyno_block::{BlockTarget, Completion, Request, Time};
use ssdyno_engine::PrepareError;
use ssdyno_engine::events::EventLog;

use crate::{DeviceReport, ExplainedRequest};

/// How user data are destroyed (NVM Express base 2.0c, clause 8.21).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SanitizeMethod {
    /// All flash is erased.
    BlockErase,
    /// All flash is overwritten.
    Overwrite {
        /// How often: 1 to 16.
        passes: u8,
    },
    /// The key of the data is thrown away.
    CryptoErase,
}

/// A sanitize operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sanitize {
    /// How.
    pub method: SanitizeMethod,
    /// The logical blocks are not deallocated afterwards: they are written once more, so that they can
    /// be read.
    pub stays_allocated: bool,
}

/// What becomes of a sanitize operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sanitized {
    /// When it ends.
    pub ends: Time,
    /// It fails: too many blocks are bad.
    pub failed: bool,
}

/// What the medium of a device is like, for who tells its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Medium {
    /// It turns so often a minute; 0: nothing turns, or it is not known.
    pub rotation_rpm: u32,
    /// Nothing turns.
    pub solid_state: bool,
    /// The device makes use of what it is told by a trim.
    pub trims: bool,
    /// What one member of an array has in a row, in bytes; 0: there are no members.
    pub chunk_bytes: u64,
    /// What all members of an array have side by side, in bytes; 0: there are no members.
    pub stripe_bytes: u64,
}

/// Whoever sets how much power a device may draw: a controller, at the wish of its host.
pub trait PowerControl {
    /// From `now` on the device sleeps as `policy` says: numbers of low-power states of its table,
    /// each with the idleness after which it is entered, in rising order.
    fn set_sleep(&mut self, now: Time, policy: &[(u8, Time)]);
    /// From `from` on the device draws `watts` at most on average; none: as much as it likes. False
    /// where it cannot work so: nothing changes then (S1-45).
    fn limit_power(&mut self, from: Time, watts: Option<f64>) -> bool;
    /// The lowest limit that the device can keep to, in watts: a little above what it draws while it is
    /// awake and does nothing.
    fn least_watts(&self) -> f64;
}

/// What a runner needs of a simulated device beside the calls of a target. Three contracts in all: the
/// [target](BlockTarget) takes requests, [`PowerControl`] says what it may draw, and
/// [`report`](Device::report) says what it is and did.
pub trait Device: BlockTarget + Send {
    /// The device inside, to which every call goes that has a default below, but for
    /// [`run_until_completion`](Device::run_until_completion); `None`: there is none.
    fn inner(&self) -> Option<&dyn Device> {
        None
    }
    /// The same, to be changed.
    fn inner_mut(&mut self) -> Option<&mut dyn Device> {
        None
    }
    /// Device events since they were last taken.
    fn events(&mut self) -> &mut EventLog;
    /// Says of itself, and of the devices that it is made of, what reports want to know.
    fn report(&self, report: &mut DeviceReport);
    /// How its power is controlled; `None`: it cannot be.
    fn power(&mut self) -> Option<&mut dyn PowerControl> {
        self.inner_mut()?.power()
    }
    /// From now on, before the first request, the device works out what each request spends its time on. False where it
    /// cannot: a device that is not an SSD, or is made of several.
    fn explain(&mut self) -> bool {
        self.inner_mut().is_some_and(|inner| inner.explain())
    }
    /// Appends to `out` the requests that have completed since the last call, in order of completion; none before
    /// [`explain`](Device::explain).
    fn explained(&mut self, out: &mut Vec<ExplainedRequest>) {
        if let Some(inner) = self.inner_mut() {
            inner.explained(out);
        }
    }
    /// Puts the device, fresh as it was built, into the used state that its file asks for: once,
    /// before the first request. Large devices take seconds: `watcher` hears every few milliseconds
    /// which share is done, 0 to 1, and may end it with false; an interrupted device can only be
    /// thrown away. The device does not depend on being watched.
    ///
    /// # Errors
    /// The device file asks for a state that cannot be; [`PrepareError::Interrupted`].
    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        self.inner_mut().map_or(Ok(()), |inner| inner.precondition(watcher))
    }
    /// These requests will probably be submitted, the nearest first, of which the second half are
    /// new: the device may fetch ahead into the processor's caches what they need. A hint: nothing
    /// that can be observed changes.
    fn expect(&self, upcoming: &[Request]) {
        if let Some(inner) = self.inner() {
            inner.expect(upcoming);
        }
    }
    /// Destroys all data, from `now` on; `None` where the device cannot. What was submitted before is
    /// done first, and answered as ever. Nothing is submitted until it has ended.
    fn sanitize(&mut self, now: Time, order: Sanitize) -> Option<Sanitized> {
        self.inner_mut()?.sanitize(now, order)
    }
    /// How long `order` takes where nothing else is under way; `None` where the device cannot do it.
    fn sanitize_time(&self, order: Sanitize) -> Option<Time> {
        self.inner()?.sanitize_time(order)
    }
    /// The window that figures are of begins at `at`, where a ramp-up ends or a delayed load begins: what is
    /// counted by second is counted from then.
    fn begin_window(&mut self, at: Time) {
        if let Some(inner) = self.inner_mut() {
            inner.begin_window(at);
        }
    }
    /// CPU time that the simulated host in front of the device has spent since the start; zero without a host.
    fn host_cpu(&self) -> Time {
        Time::ZERO
    }
    /// What it has answered as written can be lost with the power until a flush.
    fn volatile_cache(&self) -> bool {
        self.inner().is_some_and(|inner| inner.volatile_cache())
    }
    /// What its medium is like; by default nothing of it is known.
    fn medium(&self) -> Medium {
        self.inner().map_or_else(Medium::default, |inner| inner.medium())
    }
    /// True once it was removed or given up: whatever is asked of it ends with an error at once.
    fn is_gone(&self) -> bool {
        self.inner().is_some_and(|inner| inner.is_gone())
    }
    /// Brings the device towards its next answer: to the next time at which something happens, or
    /// through several of them up to the first with an answer, but not beyond `limit`. Appends what
    /// has completed and gives the time reached; `None` if nothing will happen and there is no limit.
    fn run_until_completion(
        &mut self,
        limit: Option<Time>,
        out: &mut Vec<Completion>,
    ) -> Option<Time> {
        let next = limit.into_iter().chain(self.next_event()).min()?;
        self.reap(next, out);
        Some(next)
    }
}

/// What is inside a device is its own.
impl fmt::Debug for dyn Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Device")
    }
}

/// One behind a pointer: what a registry of kinds builds.
impl Device for Box<dyn Device> {
    fn inner(&self) -> Option<&dyn Device> {
        Some(&**self)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Device> {
        Some(&mut **self)
    }

    fn events(&mut self) -> &mut EventLog {
        (**self).events()
    }

    fn report(&self, report: &mut DeviceReport) {
        (**self).report(report);
    }

    fn run_until_completion(
        &mut self,
        limit: Option<Time>,
        out: &mut Vec<Completion>,
    ) -> Option<Time> {
        (**self).run_until_completion(limit, out)
    }
}
