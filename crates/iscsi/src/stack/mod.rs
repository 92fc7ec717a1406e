//! Logical units that are the namespaces of an NVMe controller: SCSI translation, NVMe driver, and
//! the controller at its connector.

mod device;
mod order;
mod running;

use std::collections::{BTreeSet, VecDeque};

use ssdyno_block::{FaultPlan, Time};
use ssdyno_driver_nvme::NvmeError;
use ssdyno_pci::{FaultyDevice, FunctionError, SimulatedPci};
use ssdyno_scsi::{
    ControllerFacts, FactsError, NamespaceFacts, Nexus, NvmeCommand, ScsiJob, Translator,
    TranslatorConfig,
};
use ssdyno_spec::nvme::{NvmeStatus, cns};

use crate::units::{LogicalUnits, ScsiTask, TaskEnd, TaskId};
use device::{COMMAND_BYTES_MAX, Device};

/// Most data of one SCSI command, which a connection may have to keep.
const TRANSFER_BYTES_MAX: u32 = 8 << 20;
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
    #[error("the connector gives no memory for data: {0}")]
    Memory(#[from] FunctionError),
    /// A namespace cannot be shown as a logical unit.
    #[error("a namespace cannot be served: {0}")]
    Namespace(#[from] FactsError),
    /// A physical block of an odd size.
    #[error("a physical block of {bytes} bytes: it must be a power of two, such as 4096")]
    PhysicalBlock {
        /// What was asked for.
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

/// The namespaces of a simulated controller as logical units: LUN n is namespace n + 1.
///
/// The controller must keep data (`nvme.contents = true`) if anybody is to find what he wrote. The
/// controller's time begins when [`start`](NvmeUnits::start) has brought it up.
#[derive(Debug)]
pub struct NvmeUnits<D> {
    device: Device<D>,
    translator: Translator,
    options: UnitOptions,
    /// What our callers' time is 0 at.
    origin: Time,
    /// Commands that have not ended, each in its place.
    running: Vec<Option<Running>>,
    /// Places with NVMe commands to submit.
    ready: VecDeque<usize>,
    /// Commands that must not begin yet.
    waiting: VecDeque<usize>,
    /// When a command goes on that asks how far the controller is from time to time.
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
struct Running {
    task: ScsiTask,
    /// Which arrived first.
    arrival: u64,
    stage: Stage,
    job: ScsiJob,
    data_in: Vec<u8>,
    /// Its next NVMe command, for which there was no room or not the time.
    unsent: Option<NvmeCommand>,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It waits for others to end.
    Waiting,
    /// The translator does it.
    Begun,
    /// It has formatted this namespace, which is to be looked at again.
    Formatted(u32),
    /// That is being done.
    Looking(u32),
}

impl<D: FaultyDevice> NvmeUnits<D> {
    /// Brings the controller in its slot up, and shows all its namespaces.
    ///
    /// # Errors
    /// [`StackError`].
    pub fn start(pci: SimulatedPci<D>) -> Result<NvmeUnits<D>, StackError> {
        NvmeUnits::start_with(pci, UnitOptions::default())
    }

    /// The same, with other units.
    ///
    /// # Errors
    /// The same; [`StackError::PhysicalBlock`].
    pub fn start_with(
        pci: SimulatedPci<D>,
        options: UnitOptions,
    ) -> Result<NvmeUnits<D>, StackError> {
        let bytes = options.physical_block_bytes;
        if bytes != 0 && !bytes.is_power_of_two() {
            return Err(StackError::PhysicalBlock { bytes });
        }
        let mut device = Device::start(pci)?;
        let mut facts = ControllerFacts::from_identify(&device.identify(cns::CONTROLLER, 0)?);
        // The driver sends no fused commands, and buffers have an end.
        facts.optional.fused_compare_write = false;
        facts.optional.saveable_cache = device.saves_cache(&facts);
        facts.transfer_bytes_max = match facts.transfer_bytes_max {
            0 => COMMAND_BYTES_MAX,
            most => most.min(COMMAND_BYTES_MAX),
        };
        let ids: Vec<u32> = device.nvme.driver.namespaces().iter().map(|n| n.id).collect();
        let mut namespaces = Vec::with_capacity(ids.len());
        for id in ids {
            let mut facts =
                NamespaceFacts::from_identify(id, &device.identify(cns::NAMESPACE, id)?);
            facts.write_protected |= options.read_only;
            namespaces.push(facts);
        }
        let largest = namespaces.iter().map(|n| n.block_bytes).max().unwrap_or(512).max(512);
        let mut config = TranslatorConfig {
            transfer_blocks_max: TRANSFER_BYTES_MAX / largest,
            transport_version: ISCSI,
            physical_block_bytes: options.physical_block_bytes,
            ..TranslatorConfig::default()
        };
        if options.write_same_to_end {
            config.write_same_blocks_max = 0;
        }
        let translator = Translator::new(facts, &namespaces, config)?;
        Ok(NvmeUnits {
            origin: device.nvme.now,
            device,
            translator,
            options,
            running: Vec::new(),
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            alarms: BTreeSet::new(),
            ordered: 0,
            formats: 0,
            arrivals: 0,
            ended: Vec::new(),
            freed: false,
        })
    }

    /// With injected faults; `plan` gets the controller's time at which the callers' begins.
    #[must_use]
    pub fn with_faults(mut self, plan: impl FnOnce(Time) -> FaultPlan) -> NvmeUnits<D> {
        self.device.nvme.pci.device_mut().arm(plan(self.origin));
        self
    }

    /// The device in its slot, with its counters, faults and hooks.
    pub fn pci(&self) -> &SimulatedPci<D> {
        &self.device.nvme.pci
    }

    /// How far time has gone since the start.
    pub fn now(&self) -> Time {
        self.device.nvme.now - self.origin
    }

    /// When something happens next, by the device's clock.
    fn next(&self) -> Option<Time> {
        let alarm = self.alarms.first().map(|(at, _)| *at);
        let fault = Some(self.pci().next_injection()).filter(|at| *at < Time::MAX);
        [self.device.nvme.next_event(), alarm, fault].into_iter().flatten().min()
    }
}

impl<D: FaultyDevice + Send> LogicalUnits for NvmeUnits<D> {
    fn attach(&mut self, transport_id: &[u8]) -> Option<Nexus> {
        self.translator.attach(transport_id)
    }

    fn nexus_lost(&mut self, nexus: Nexus) {
        self.translator.nexus_lost(nexus);
        self.abort(|task| task.nexus == nexus);
    }

    fn data_out_bytes(&self, lun: u64, cdb: &[u8]) -> u64 {
        let owed = self.translator.data_out_bytes(lun, cdb);
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
                return self.device.go_to(now);
            };
            self.device.go_to(at);
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
        let there = self.translator.abort_task_set(nexus, lun);
        if there {
            self.abort(|task| task.nexus == nexus && task.lun == lun);
        }
        there
    }

    fn logical_unit_reset(&mut self, lun: u64) -> bool {
        let there = self.translator.logical_unit_reset(lun);
        if there {
            self.abort(|task| task.lun == lun);
        }
        there
    }

    fn target_reset(&mut self) {
        self.translator.target_reset();
        self.abort(|_| true);
    }
}
