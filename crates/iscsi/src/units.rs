//! What is served.

use ssdyno_scsi::{Nexus, SenseBytes};

/// One SCSI command with all its data.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// Who sent it.
    pub nexus: Nexus,
    /// The LUN field, eight bytes (SAM-5, 4.7).
    pub lun: u64,
    /// Command descriptor block.
    pub cdb: &'a [u8],
    /// What the initiator has for a command that writes, in bytes.
    pub expected_out_bytes: u64,
    /// The beginning of that: as much as [`LogicalUnits::data_out_bytes`] says, where it has as much.
    pub data_out: &'a [u8],
}

/// How a command ended. Data for the initiator are beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Status (SAM-5, table 30).
    pub status: u8,
    /// Sense data.
    pub sense: SenseBytes,
}

/// The logical units of a target: they do commands one at a time.
///
/// The caller owes: a nexus that came from [`attach`](LogicalUnits::attach). The implementation owes:
/// an answer to every command, whatever is in it.
pub trait LogicalUnits: Send {
    /// The nexus of an initiator port, by its TransportID (SPC-4, 7.6.4); `None` when there is no
    /// room for another.
    fn attach(&mut self, transport_id: &[u8]) -> Option<Nexus>;
    /// The nexus is gone (SAM-5, 6.3.4).
    fn nexus_lost(&mut self, nexus: Nexus);
    /// How much data the initiator owes to a command, by its CDB; 0 where it takes none, or is one
    /// that will be refused whatever comes.
    fn data_out_bytes(&self, lun: u64, cdb: &[u8]) -> u64;
    /// Does a command, and puts what it returns into `data_in`, which is empty.
    fn execute(&mut self, task: &Task<'_>, data_in: &mut Vec<u8>) -> Answer;
    /// ABORT TASK SET. `false`: there is no such logical unit.
    fn abort_task_set(&mut self, nexus: Nexus, lun: u64) -> bool;
    /// LOGICAL UNIT RESET. `false`: there is no such logical unit.
    fn logical_unit_reset(&mut self, lun: u64) -> bool;
    /// Every logical unit is reset.
    fn target_reset(&mut self);
}
