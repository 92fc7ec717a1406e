//! What the host tells of itself: that it is alive (base 2.0c, clauses 3.9, 5.18 and 5.27.1.12), and what
//! it understands (clause 5.27.1.18).

use ssdyno_block::Time;
use ssdyno_pci::BusMaster;
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry};

use super::NvmeController;
use super::timers::Timer;
use ssdyno_device::Device;

/// KAS: times of keep alive are whole seconds.
pub(super) const KEEP_ALIVE_UNITS: u16 = 10;
/// Milliseconds of it.
const KEEP_ALIVE_MS: u32 = KEEP_ALIVE_UNITS as u32 * 100;
/// Size of the host behaviour support structure.
const BEHAVIOR_BYTES: usize = 512;

/// What the host has said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Host {
    /// Longest time without a Keep Alive command; 0: it sends none.
    pub(super) keep_alive_ms: u32,
    /// ACRE: it knows delays of a retry, which no status here asks for.
    retries_later: bool,
}

impl<D: Device> NvmeController<D> {
    /// Set Features, keep alive timer: rounded up to what KAS says.
    pub(super) fn set_keep_alive(&mut self, at: Time, ms: u32) {
        let most = u32::MAX - u32::MAX % KEEP_ALIVE_MS;
        self.features.host.keep_alive_ms = ms.min(most).next_multiple_of(KEEP_ALIVE_MS);
        self.keep_alive(at);
    }

    /// The host is alive: its time begins anew.
    pub(super) fn keep_alive(&mut self, at: Time) {
        self.timers.cancel(Timer::KeepAlive);
        let ms = self.features.host.keep_alive_ms;
        if ms > 0 {
            self.timers.set(at + Time::from_ms(ms.into()), Timer::KeepAlive);
        }
    }

    /// It was not for too long: nothing is processed any more until a reset (base 2.0c, clause 3.9.3).
    pub(super) fn keep_alive_expired(&mut self) {
        self.logs.controller_error(NvmeStatus::KEEP_ALIVE_EXPIRED);
        self.registers.set_fatal();
    }

    /// Set Features, host behaviour support.
    ///
    /// # Errors
    /// Something is switched on that is not offered.
    pub(super) fn set_host_behavior(
        &mut self,
        entry: &SubmissionEntry,
        bus: &mut dyn BusMaster,
    ) -> Result<(), NvmeStatus> {
        let mut said = [0; BEHAVIOR_BYTES];
        self.copy_from_host(entry, &mut said, bus)?;
        if said[0] > 1 || said[1..].iter().any(|byte| *byte != 0) {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        self.features.host.retries_later = said[0] == 1;
        Ok(())
    }

    /// Get Features, host behaviour support.
    pub(super) fn get_host_behavior(
        &mut self,
        entry: &SubmissionEntry,
        current: bool,
        bus: &mut dyn BusMaster,
    ) -> Result<(), NvmeStatus> {
        let mut says = [0; BEHAVIOR_BYTES];
        says[0] = u8::from(current && self.features.host.retries_later);
        self.copy_to_host(entry, &says, bus)
    }
}
