//! A device server over a block device: SCSI commands to reads, writes, flushes and unmaps of bytes.
//!
//! A hard disk, an array or a volume is shown as what it is (SBC-3: direct access block device) and needs no
//! NVMe controller. What it shares with the translation - tasks, reservations, mode pages, the rules of
//! CDBs - is [`ScsiTarget`].

mod block;
mod disk;
mod facts;

use alloc::vec;
use core::ops::{Deref, DerefMut};

pub use block::{BlockAction, BlockCommand, BlockEnd};
pub(crate) use disk::Disk;
pub use facts::{DiskFacts, DiskFactsError};

use crate::facts::{CommandSet, TranslatorConfig, UnmapBy};
use crate::job::ScsiJob;
use crate::target::{JobProgress, ScsiTarget};
use crate::unit::Unit;

/// Carries out the SCSI commands for one block device, which is LUN 0.
///
/// What it shares with every target, such as [`begin`](ScsiTarget::begin), is in [`ScsiTarget`]. The
/// caller carries out the block commands of each job ([`next_command`](DeviceServer::next_command)) in
/// any order, and reports the end of each.
#[derive(Debug)]
pub struct DeviceServer(ScsiTarget);

impl DeviceServer {
    /// A server for the device that `facts` describe. Its write cache, where there is one, is on. The
    /// command set, the physical block and the kind of UNMAP in `config` are for translators only.
    ///
    /// # Errors
    /// [`DiskFactsError`]: it cannot be shown.
    pub fn new(facts: DiskFacts, config: TranslatorConfig) -> Result<DeviceServer, DiskFactsError> {
        facts.check()?;
        let (controller, unit) = (facts.controller(), Unit::new(facts.unit()));
        let config = TranslatorConfig {
            commands: CommandSet::Full,
            physical_block_bytes: facts.physical_block_bytes,
            // Range by range, each of which the device confirms.
            unmap_by: UnmapBy::WriteZeroes,
            ..config
        };
        let disk = Disk { cache_on: facts.volatile_write_cache, facts };
        Ok(DeviceServer(ScsiTarget::new(controller, Some(disk), vec![unit], config)))
    }

    /// The next block command of the job; `None` when there is none for now. The caller carries out all
    /// of them, and may keep several outstanding.
    pub fn next_command(&self, job: &mut ScsiJob) -> Option<BlockCommand> {
        let shift = job.unit.map_or(0, |unit| self.0.units[unit].block_shift());
        let writes_through = self.0.disk.as_ref().is_some_and(|disk| !disk.cache_on);
        job.next_command().map(|command| block::command(&command, shift, writes_through))
    }

    /// One of the job's block commands has ended.
    pub fn complete(
        &mut self,
        job: &mut ScsiJob,
        action: BlockAction,
        end: BlockEnd,
    ) -> JobProgress {
        self.0.complete_command(job, block::status(action, end), 0)
    }
}

impl Deref for DeviceServer {
    type Target = ScsiTarget;

    fn deref(&self) -> &ScsiTarget {
        &self.0
    }
}

impl DerefMut for DeviceServer {
    fn deref_mut(&mut self) -> &mut ScsiTarget {
        &mut self.0
    }
}
