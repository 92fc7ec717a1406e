//! The host's reports: that it is alive (base 2.0c, clauses 3.9, 5.18 and 5.27.1.12), and the features that it supports
//! (clause 5.27.1.18).

use ssdyno_block::Time;
use ssdyno_spec::nvme::NvmeStatus;

use super::{HostData, NvmeSubsystem};
use crate::answer::Answer;
use ssdyno_device::Device;

/// KAS: times of keep alive are whole seconds.
pub(crate) const KEEP_ALIVE_UNITS: u16 = 10;
/// Milliseconds of it.
const KEEP_ALIVE_MS: u32 = KEEP_ALIVE_UNITS as u32 * 100;
/// Size of the host behaviour support structure.
const BEHAVIOR_BYTES: usize = 512;

impl<D: Device> NvmeSubsystem<D> {
    /// Set Features, keep alive timer: rounded up to what KAS says.
    pub(crate) fn set_keep_alive(&mut self, ms: u32) {
        let most = u32::MAX - u32::MAX % KEEP_ALIVE_MS;
        self.features.host.keep_alive_ms = ms.min(most).next_multiple_of(KEEP_ALIVE_MS);
    }

    /// The longest time that the host may be without a sign of life; `None`: it sends none. The transport runs the
    /// timer, and begins it anew at Keep Alive and at Set Features of this feature.
    pub fn keep_alive_time(&self) -> Option<Time> {
        let ms = self.features.host.keep_alive_ms;
        (ms > 0).then(|| Time::from_ms(ms.into()))
    }

    /// The host gave no sign of life for too long (base 2.0c, clause 3.9.3): the transport ends the connection.
    pub fn keep_alive_expired(&mut self) {
        self.logs.controller_error(NvmeStatus::KEEP_ALIVE_EXPIRED);
    }

    /// Set Features, host behaviour support.
    ///
    /// # Errors
    /// Something is switched on that is not offered.
    pub(crate) fn set_host_behavior(&mut self, data: &mut dyn HostData) -> Answer {
        let mut said = [0; BEHAVIOR_BYTES];
        data.receive(&mut said)?;
        if said[0] > 1 || said[1..].iter().any(|byte| *byte != 0) {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        self.features.host.retries_later = said[0] == 1;
        Ok(())
    }

    /// Get Features, host behaviour support.
    pub(crate) fn get_host_behavior(&self, current: bool, data: &mut dyn HostData) -> Answer {
        let mut says = [0; BEHAVIOR_BYTES];
        says[0] = u8::from(current && self.features.host.retries_later);
        data.send(&says)
    }
}
