//! What a runner needs of a simulated device.

use ssdyno_block::{BlockTarget, Completion, Request, Time};
use ssdyno_engine::events::EventLog;
use ssdyno_ftl::{Health, PlaneUse, Pool, PrepareError};

use crate::faults::Injected;

/// Numbers about a device for reports.
#[derive(Clone, PartialEq, Debug)]
pub struct DeviceFacts {
    /// Flash channels.
    pub channels: u32,
    /// Flash dies.
    pub dies: u32,
    /// Dies in a package.
    pub dies_per_package: u32,
    /// Firmware cores.
    pub cores: u32,
    /// Directions of the host link that work independently.
    pub link_ways: u32,
    /// Bytes of a flash page.
    pub page_bytes: u32,
    /// Pages of a block that hold data.
    pub pages_per_block: u32,
    /// Utilisation for the closed forms of write amplification, where they apply.
    pub effective_utilisation: Option<f64>,
    /// The pools of an FTL that has one for each class of logical pages.
    pub pools: Vec<Pool>,
    /// What was written to each plane so far, and what it holds now; empty where that is not known.
    pub planes: Vec<PlaneUse>,
    /// RAM for the mapping tables in a real controller.
    pub map_ram_bytes: u64,
    /// Requests inside the device at most.
    pub queue_depth: u32,
    /// What the device takes before writes are as slow as its flash; 0 without a write buffer.
    pub write_buffer_bytes: u64,
}

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

/// The calls beside those of a target.
pub trait Device: BlockTarget {
    /// Device events since they were last taken.
    fn events(&mut self) -> &mut EventLog;
    /// Numbers for reports.
    fn facts(&self) -> DeviceFacts;
    /// How worn the flash is.
    fn health(&self) -> Health;
    /// Puts the device, fresh as it was built, into the used state that its file asks for: once,
    /// before the first request. Large devices take seconds: `watcher` hears every few milliseconds
    /// which share is done, 0 to 1, and may end it with false; an interrupted device can only be
    /// thrown away. The device does not depend on being watched.
    ///
    /// # Errors
    /// The device file asks for a state that cannot be; [`PrepareError::Interrupted`].
    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        let _ = watcher;
        Ok(())
    }
    /// From `now` on the device sleeps as `policy` says: numbers of low-power states of its table,
    /// each with the idleness after which it is entered, in rising order. Devices that never sleep
    /// ignore it.
    fn set_sleep(&mut self, now: Time, policy: &[(u8, Time)]) {
        let _ = (now, policy);
    }
    /// Low-power states that the device enters, and when, in order, if nothing more is asked of it. Asked
    /// before a load: what its energy above idle is counted from.
    fn idle_states(&self) -> Vec<(u8, Time)> {
        Vec::new()
    }
    /// From `from` on the device draws `watts` at most on average; none: as much as it likes. False
    /// where it cannot work so: nothing changes then (S1-45).
    fn limit_power(&mut self, from: Time, watts: Option<f64>) -> bool {
        let _ = from;
        watts.is_none()
    }
    /// The lowest limit that the device can keep to, in watts: a little above what it draws while it is
    /// awake and does nothing.
    fn least_watts(&self) -> f64 {
        0.0
    }
    /// These requests will probably be submitted, the nearest first, of which the second half are
    /// new: the device may fetch ahead into the processor's caches what they need. A hint: nothing
    /// that can be observed changes.
    fn expect(&self, upcoming: &[Request]) {
        let _ = upcoming;
    }
    /// Destroys all data, from `now` on; `None` where the device cannot. What was submitted before is
    /// done first, and answered as ever. Nothing is submitted until it has ended.
    fn sanitize(&mut self, now: Time, order: Sanitize) -> Option<Sanitized> {
        let _ = (now, order);
        None
    }
    /// How long `order` takes where nothing else is under way; `None` where the device cannot do it.
    fn sanitize_time(&self, order: Sanitize) -> Option<Time> {
        let _ = order;
        None
    }
    /// The window that figures are of begins at `at`, where a ramp-up ends or a delayed load begins: what is
    /// counted by second is counted from then.
    fn begin_window(&mut self, at: Time) {
        let _ = at;
    }
    /// True once it was pulled or given up: whatever is asked of it ends with an error at once.
    fn is_gone(&self) -> bool {
        false
    }
    /// What of its table `[faults]` it has done; `None` where that asks for nothing.
    fn injected(&self) -> Option<Injected> {
        None
    }
    /// Brings the device towards its next answer: to the next time at which something happens, or
    /// through several of them up to the first with an answer, but not beyond `limit`. Appends what
    /// has completed and gives the time reached; `None` if nothing will happen and there is no limit.
    fn towards_answer(&mut self, limit: Option<Time>, out: &mut Vec<Completion>) -> Option<Time> {
        let next = match (limit, self.next_event()) {
            (Some(limit), Some(event)) => limit.min(event),
            (limit, event) => limit.or(event)?,
        };
        self.reap(next, out);
        Some(next)
    }
}
