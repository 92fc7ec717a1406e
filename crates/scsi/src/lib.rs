//! SCSI commands to NVMe commands or to block commands, and their completions to SCSI status and sense data.
//!
//! After the NVM Express SCSI Translation Reference 1.5; the SCSI side after SAM-5, SPC-4 and
//! SBC-3. A namespace is a logical unit; so is a disk, an array or a volume that has no NVMe controller
//! ([`DeviceServer`]). Pure and passive: no clock, no device, no waiting; READ and WRITE never allocate. `no_std` with `alloc`.
//!
//! Key types: [`ScsiTarget`] holds the state of all logical units, those of a [`Translator`] or a
//! [`DeviceServer`]; a [`ScsiRequest`] is a CDB with its initiator; a [`ScsiJob`] is one command on its way; [`NvmeCommand`] is what the driver submits for
//! it, [`BlockCommand`] what a device does; [`JobProgress`] says what the caller owes next. [`cdb`] is
//! the other direction: what a block stack sends. [`Indirections`] counts what passing through costs (S1-51).
//!
//! ```
//! use ssdyno_scsi::*;
//! # fn main() -> Result<(), FactsError> {
//! let controller = ControllerFacts::named("Model", "Serial", "1.0");
//! let config = TranslatorConfig { power_on_attention: false, ..TranslatorConfig::default() };
//! let mut translator =
//!     Translator::new(controller, &[NamespaceFacts::plain(1, 1 << 20, 4096)], config)?;
//! let mut job = ScsiJob::new();
//! let read = cdb::read16(8, 2);
//! let mut progress = translator.begin(&mut job, &ScsiRequest::local(0, read.as_bytes()));
//! while progress == JobProgress::Pending {
//!     while let Some(command) = job.next_command() {
//!         assert_eq!((command.lba(), command.blocks(), command.data.bytes), (8, 2, 8192));
//!     }
//!     // The driver reports each completion:
//!     let status = ssdyno_spec::nvme::NvmeStatus::SUCCESS;
//!     progress = translator.complete(&mut job, status, 0);
//! }
//! assert_eq!((progress, job.status()), (JobProgress::Done, 0));
//! # Ok(())
//! # }
//! ```
//!
//! Errors: [`FactsError`] names a namespace that cannot be shown, [`DiskFactsError`] a device.
//! Whatever an initiator sends ends as a SCSI status, never as a panic; a caller that breaks the protocol of [`ScsiJob`] meets a debug
//! assertion.
//!
//! # What a transport must supply
//!
//! The independent conformance suite for iSCSI targets looks at more than commands. From here come
//! status, sense data, data-in and its length; a transport adds:
//!
//! - **Residuals.** Underflow: the expected length less [`ScsiJob::data_in_bytes`], or less
//!   [`ScsiTarget::data_out_bytes`]. Overflow: the CDB asks for more than the initiator expects. A READ still succeeds:
//!   give the job a buffer of [`ScsiJob::data_in_bytes`] and send the first part. A short WRITE writes
//!   the whole blocks that came; the residual is the rest.
//! - **Direction.** What an initiator sends with a command that takes no data is thrown away.
//! - **Data-out for the translator** where [`ScsiTarget::needs_data_out`] says so, all of it in one
//!   slice; and [`JobProgress::Blocked`] commands kept and begun again.
//! - **I_T nexuses.** [`ScsiTarget::attach`] with the TransportID at login, so that registrations
//!   survive a reconnection; [`ScsiTarget::nexus_lost`] at logout or when the connection drops,
//!   which ends a RESERVE. Two sessions with different ISIDs are two nexuses.
//! - **Task management.** ABORT TASK: [`ScsiJob::abort`]; ABORT TASK SET, LOGICAL UNIT RESET and target
//!   resets: the methods of [`ScsiTarget`]. Commands that end as [`JobProgress::Aborted`] are not
//!   answered; the function is answered when they have ended. Refuse cold reset, or drop all
//!   connections after it.
//! - **Sequence numbers, data digests, text negotiation**: its own.
//! - `TranslatorConfig::transport_version` 0x0960, so that INQUIRY claims iSCSI.
//! - [`NvmeCommand::wait_ms`]: a SANITIZE that ends with its operation asks how far it is from time to time.
//! - After FORMAT UNIT: identify the namespace again, [`Translator::replace_namespace`] with the nexus.
//!
//! Tests that do not apply and are skipped by that suite: removable media, EXTENDED COPY and
//! RECEIVE COPY RESULTS, WRITE ATOMIC.
//!
//! # Not modelled
//!
//! Protection information and metadata (refused by name, S1-46); SECURITY PROTOCOL,
//! third-party copy, WRITE ATOMIC, WRITE LONG and asymmetric access (INVALID COMMAND OPERATION
//! CODE); auto contingent allegiance (NACA is refused); registrations that outlast a power loss
//! (APTPL is refused); REGISTER AND MOVE; task ordering: ordered and head-of-queue tasks are the
//! transport's. Reservations bind those who come through this translator, not other hosts of the
//! controller.

#![no_std]

extern crate alloc;

mod blocks;
mod bytes;
mod capacity;
mod commands;
mod direction;
mod facts;
mod fields;
mod format;
mod initiator;
mod inquiry;
mod job;
mod log;
mod mode;
mod pending;
mod perform;
mod persistent;
mod power;
mod provisioning;
mod report;
mod request;
mod reservation;
mod sanitize;
mod sense;
mod server;
mod status;
mod target;
mod translator;
mod unit;

pub use facts::{
    CommandSet, ControllerFacts, DeallocatedReads, FactsError, NamespaceFacts, Optional,
    TranslatorConfig, UnmapBy,
};
pub use initiator::{Cdb, Indirections, cdb, unmap_list};
pub use job::{DataPlace, Fused, NvmeCommand, ScsiData, ScsiJob};
pub use request::{ScsiRequest, lun_field};
pub use sense::{FieldPointer, Sense, SenseBytes};
pub use server::{BlockAction, BlockCommand, BlockEnd, DeviceServer, DiskFacts, DiskFactsError};
pub use status::{Translated, translate};
pub use target::{JobProgress, ScsiTarget};
pub use translator::Translator;

/// An initiator port that is connected to the target (SAM-5, 4.8: I_T nexus).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nexus(pub(crate) u16);

impl Nexus {
    /// The host itself: the block stack above the translator.
    pub const LOCAL: Nexus = Nexus(0);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}
