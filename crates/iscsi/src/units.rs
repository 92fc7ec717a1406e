//! What is served.

use ssdyno_block::Time;
use ssdyno_scsi::{Nexus, SenseBytes};

/// The number of a task at its target, never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub u64);

/// When a task may begin, as its initiator asks (SAM-5, 8.9).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TaskAttribute {
    /// At any time after the ordered tasks before it.
    #[default]
    Simple,
    /// After all tasks that came before it, and before those behind it.
    Ordered,
    /// At once.
    HeadOfQueue,
}

/// One SCSI command with all its data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScsiTask {
    /// Its number, by which its end is told.
    pub id: TaskId,
    /// Who sent it.
    pub nexus: Nexus,
    /// The LUN field, eight bytes (SAM-5, 4.7).
    pub lun: u64,
    /// When it may begin.
    pub attribute: TaskAttribute,
    /// Command descriptor block; a shorter one is padded.
    pub cdb: [u8; 16],
    /// The initiator's data for a command that writes, in bytes.
    pub expected_out_bytes: u64,
    /// The beginning of that: as much as [`LogicalUnits::data_out_bytes`] says, where it has as much.
    pub data_out: Vec<u8>,
}

/// How a command ended. Data for the initiator are beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskResponse {
    /// Status (SAM-5, table 30).
    pub status: u8,
    /// Sense data.
    pub sense: SenseBytes,
}

/// The end of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskEnd {
    /// Which.
    pub id: TaskId,
    /// How; `None`: it was aborted, and the initiator is told nothing.
    pub answer: Option<TaskResponse>,
    /// What the command returns.
    pub data_in: Vec<u8>,
}

/// The logical units of a target. They are passive: time goes on for them only in
/// [`advance`](LogicalUnits::advance).
///
/// The caller owes: a nexus that came from [`attach`](LogicalUnits::attach), identifiers that are not
/// used twice, and times that do not decrease. The implementation owes: the end of every task, whatever is
/// in it, once; an aborted one ends when nothing of it can happen any more.
pub trait LogicalUnits: Send {
    /// The nexus of an initiator port, by its TransportID (SPC-4, 7.6.4); `None` when there is no
    /// room for another.
    fn attach(&mut self, transport_id: &[u8]) -> Option<Nexus>;
    /// The nexus is gone (SAM-5, 6.3.4): its tasks end as aborted.
    fn nexus_lost(&mut self, nexus: Nexus);
    /// How much data the initiator owes to a command, by its CDB; 0 where it takes none, or is one
    /// that will be refused whatever comes.
    fn data_out_bytes(&self, lun: u64, cdb: &[u8]) -> u64;
    /// Begins a command at `now`.
    fn submit(&mut self, now: Time, task: ScsiTask);
    /// Brings everything to `now`, or a part of the way where that is much: then
    /// [`next_event`](LogicalUnits::next_event) is not after `now`.
    fn advance(&mut self, now: Time);
    /// When something happens next by itself; `None`: never.
    fn next_event(&self) -> Option<Time>;
    /// Appends the tasks that have ended to `out`.
    fn take_ended(&mut self, out: &mut Vec<TaskEnd>);
    /// ABORT TASK: it ends as aborted, unless it has ended.
    fn abort_task(&mut self, id: TaskId);
    /// ABORT TASK SET. `false`: there is no such logical unit.
    fn abort_task_set(&mut self, nexus: Nexus, lun: u64) -> bool;
    /// LOGICAL UNIT RESET. `false`: there is no such logical unit.
    fn logical_unit_reset(&mut self, lun: u64) -> bool;
    /// Every logical unit is reset.
    fn target_reset(&mut self);
}
