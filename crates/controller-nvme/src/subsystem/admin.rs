//! Admin commands that are the same over every transport (base 2.0c, clause 5).

use std::ops::Range;

use ssdyno_block::Time;
use ssdyno_spec::nvme::{AsynchronousEvent, NvmeStatus, SubmissionEntry, admin};

use super::sanitizing::SanitizeOrder;
use super::versions::Part;
use super::{HostData, NvmeSubsystem};
use ssdyno_device::Device;

/// The transport's task for an accepted admin command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdminOutcome {
    /// It ends successfully after the time of an admin command, with this dword 0.
    Done(u32),
    /// Set Features of a feature that is the transport's: it carries it out, and may refuse its value.
    TransportFeature,
    /// These bytes of the device are deallocated before it ends. An empty range ends at once.
    Deallocate(Range<u64>),
    /// A sanitize operation may begin: the transport ends the commands that are not allowed any more, calls
    /// [`begin_sanitize`](NvmeSubsystem::begin_sanitize), and the command ends as with `Done(0)`.
    Sanitize(SanitizeOrder),
}

impl<D: Device> NvmeSubsystem<D> {
    /// Whether an admin command may be executed now: the version has it, and no sanitize operation forbids it.
    ///
    /// # Errors
    /// The status with which the command ends.
    pub fn check_admin(&self, entry: &SubmissionEntry) -> Result<(), NvmeStatus> {
        if !self.has(Part::Admin(entry.opcode)) {
            return Err(NvmeStatus::INVALID_OPCODE.with_do_not_retry());
        }
        self.check_sanitizing(entry)
    }

    /// Executes an admin command that [`check_admin`](NvmeSubsystem::check_admin) allows. Events that it causes are
    /// due afterwards, also where it fails. The timer of Keep Alive is the transport's.
    ///
    /// # Errors
    /// The status with which the command ends. [`NvmeStatus::INVALID_OPCODE`]: a command that is the transport's,
    /// or none.
    pub fn execute(
        &mut self,
        at: Time,
        entry: &SubmissionEntry,
        data: &mut dyn HostData,
    ) -> Result<AdminOutcome, NvmeStatus> {
        match entry.opcode {
            admin::GET_LOG_PAGE => self.get_log_page(at, entry, data)?,
            admin::IDENTIFY => data.send(&self.identify(entry)?)?,
            admin::SET_FEATURES => return self.set_features(at, entry, data),
            admin::GET_FEATURES => {
                return self.get_features(entry, None, data).map(AdminOutcome::Done);
            }
            admin::NAMESPACE_MANAGEMENT => return self.manage_namespace(entry, data),
            admin::NAMESPACE_ATTACHMENT => self.attach_namespace(entry, data)?,
            admin::KEEP_ALIVE => {}
            admin::FORMAT_NVM => return self.format(entry),
            admin::SANITIZE => return self.accept_sanitize(entry),
            _ => return Err(NvmeStatus::INVALID_OPCODE.with_do_not_retry()),
        }
        Ok(AdminOutcome::Done(0))
    }

    /// The host receives `event` with its next request (base 2.0c, clause 5.2).
    pub fn raise(&mut self, event: AsynchronousEvent) {
        self.events.push(event);
    }

    /// An Asynchronous Event Request (base 2.0c, clause 5.2) waits under the transport's name `tag`.
    ///
    /// # Errors
    /// Too many wait already.
    pub fn request_event(&mut self, tag: u32) -> Result<(), NvmeStatus> {
        let limit = NvmeStatus::ASYNCHRONOUS_EVENT_LIMIT_EXCEEDED.with_do_not_retry();
        if self.events.request(tag) { Ok(()) } else { Err(limit) }
    }

    /// The request `tag` waits no longer.
    pub fn withdraw_event_request(&mut self, tag: u32) {
        self.events.withdraw(tag);
    }

    /// An event that is due, and the request that it ends.
    pub fn next_event_due(&mut self) -> Option<(u32, AsynchronousEvent)> {
        self.events.next()
    }
}
