//! SCSI commands of logical units on one clock: their order, and the way of each through what carries it out.
//!
//! What that is, a [`Backend`](backend::Backend) says: [`nvme`] is a driver at a controller, [`block`] is a
//! block device itself.

mod backend;
mod block;
mod device;
mod nvme;
mod order;
mod running;

use std::collections::{BTreeSet, VecDeque};

use ssdyno_block::Time;
use ssdyno_driver_nvme::NvmeError;
use ssdyno_pci::FunctionError;
use ssdyno_scsi::{DiskFactsError, FactsError, Nexus, ScsiJob, TranslatorConfig};
use ssdyno_spec::nvme::NvmeStatus;

use crate::units::{LogicalUnits, ScsiTask, TaskEnd, TaskId};
use backend::Backend;
pub use block::{BlockBackend, BlockUnits, DiskOptions};
pub use nvme::{NvmeBackend, NvmeUnits};

/// Most data of one SCSI command, which a connection may have to keep.
const TRANSFER_BYTES_MAX: u32 = 8 << 20;
/// Most data of one command of a SCSI command, where what carries it out allows as much.
const COMMAND_BYTES_MAX: u32 = 1 << 20;
/// Version descriptor of iSCSI (SPC-4, annex E.8).
const ISCSI: u16 = 0x0960;
/// Things that happen in a row before somebody else has a turn.
const STEPS: u32 = 1024;

/// Why a device cannot be served.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StackError {
    /// The driver does not bring it up.
    #[error("the controller does not come up: {0}")]
    Driver(#[from] NvmeError),
    /// There is no memory for data.
    #[error("the connector provides no memory for data: {0}")]
    Memory(#[from] FunctionError),
    /// A namespace cannot be shown as a logical unit.
    #[error("a namespace cannot be served: {0}")]
    Namespace(#[from] FactsError),
    /// A block device cannot be shown as a logical unit.
    #[error("the device cannot be served: {0}")]
    Disk(#[from] DiskFactsError),
    /// A physical block of an odd size.
    #[error("a physical block of {bytes} bytes: it must be a power of two, such as 4096")]
    PhysicalBlock {
        /// The requested value.
        bytes: u32,
    },
    /// An admin command was answered with an error.
    #[error("the controller answers Identify with status {:#05x}", .0.bits())]
    Identify(NvmeStatus),
}

/// How units are shown, where that is not the controller's to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnitOptions {
    /// Size of a physical block, a power of two in bytes, as a drive of 512-byte emulation tells it; 0: that
    /// of a logical block.
    pub physical_block_bytes: u32,
    /// Nothing can be written.
    pub read_only: bool,
    /// WRITE SAME has no limit, and one of no blocks goes to the end of the medium (WSNZ is clear).
    pub write_same_to_end: bool,
}

impl UnitOptions {
    /// The choices of the SCSI side for units with blocks of up to `block_bytes`.
    fn config(&self, block_bytes: u32) -> TranslatorConfig {
        let mut config = TranslatorConfig {
            transfer_blocks_max: TRANSFER_BYTES_MAX / block_bytes.max(512),
            transport_version: ISCSI,
            physical_block_bytes: self.physical_block_bytes,
            ordered_tasks: true,
            ..TranslatorConfig::default()
        };
        if self.write_same_to_end {
            config.write_same_blocks_max = 0;
        }
        config
    }
}

/// Logical units over a `B`, with the SCSI commands that have not ended.
#[derive(Debug)]
pub struct Units<B: Backend> {
    backend: B,
    /// What our callers' time is 0 at.
    origin: Time,
    /// Commands that have not ended, each in its place.
    running: Vec<Option<Running<B::Command>>>,
    /// Places with commands to submit.
    ready: VecDeque<usize>,
    /// Commands that must not begin yet.
    waiting: VecDeque<usize>,
    /// When a command goes on that asks how far the device is from time to time.
    alarms: BTreeSet<(Time, usize)>,
    /// Ordered tasks that have not ended.
    ordered: usize,
    /// Commands that have formatted, and look again.
    formats: usize,
    arrivals: u64,
    ended: Vec<TaskEnd>,
    /// A command has ended: others may begin.
    freed: bool,
}

/// A SCSI command that has not ended.
#[derive(Debug)]
struct Running<C> {
    task: ScsiTask,
    /// Which arrived first.
    arrival: u64,
    stage: Stage,
    job: ScsiJob,
    data_in: Vec<u8>,
    /// Its next command, for which there was no room or not the time.
    unsent: Option<C>,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It waits for others to end.
    Waiting,
    /// It is being done.
    Begun,
    /// It has formatted this namespace, which is to be looked at again.
    Formatted(u32),
    /// That is being done.
    Looking(u32),
}

impl<B: Backend> Units<B> {
    fn new(backend: B) -> Units<B> {
        Units {
            origin: backend.now(),
            backend,
            running: Vec::new(),
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            alarms: BTreeSet::new(),
            ordered: 0,
            formats: 0,
            arrivals: 0,
            ended: Vec::new(),
            freed: false,
        }
    }

    /// How far time has gone since the start.
    pub fn now(&self) -> Time {
        self.backend.now() - self.origin
    }

    /// When something happens next, by the device's clock.
    fn next(&self) -> Option<Time> {
        let alarm = self.alarms.first().map(|(at, _)| *at);
        [self.backend.next_event(), alarm].into_iter().flatten().min()
    }
}

impl<B: Backend + Send> LogicalUnits for Units<B> {
    fn attach(&mut self, transport_id: &[u8]) -> Option<Nexus> {
        self.backend.target_mut().attach(transport_id)
    }

    fn nexus_lost(&mut self, nexus: Nexus) {
        self.backend.target_mut().nexus_lost(nexus);
        self.abort(|task| task.nexus == nexus);
    }

    fn data_out_bytes(&self, lun: u64, cdb: &[u8]) -> u64 {
        let owed = self.backend.target().data_out_bytes(lun, cdb);
        // More is refused without a look at the data.
        if owed <= u64::from(TRANSFER_BYTES_MAX) { owed } else { 0 }
    }

    fn submit(&mut self, now: Time, task: ScsiTask) {
        self.advance(now);
        self.arrive(task);
        self.go_on();
    }

    fn advance(&mut self, now: Time) {
        let now = self.origin.saturating_add(now);
        for _ in 0..STEPS {
            let Some(at) = self.next().filter(|at| *at <= now) else {
                return self.backend.go_to(now);
            };
            self.backend.go_to(at);
            self.go_on();
        }
    }

    fn next_event(&self) -> Option<Time> {
        self.next().map(|at| at.saturating_sub(self.origin))
    }

    fn take_ended(&mut self, out: &mut Vec<TaskEnd>) {
        out.append(&mut self.ended);
    }

    fn abort_task(&mut self, id: TaskId) {
        self.abort(|task| task.id == id);
    }

    fn abort_task_set(&mut self, nexus: Nexus, lun: u64) -> bool {
        let there = self.backend.target_mut().abort_task_set(nexus, lun);
        if there {
            self.abort(|task| task.nexus == nexus && task.lun == lun);
        }
        there
    }

    fn logical_unit_reset(&mut self, lun: u64) -> bool {
        let there = self.backend.target_mut().logical_unit_reset(lun);
        if there {
            self.abort(|task| task.lun == lun);
        }
        there
    }

    fn target_reset(&mut self) {
        self.backend.target_mut().target_reset();
        self.abort(|_| true);
    }
}
