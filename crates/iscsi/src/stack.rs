//! Logical units that are the namespaces of an NVMe controller: SCSI translation, NVMe driver, and
//! the controller at its connector.

use std::time::Instant;

use ssdyno_block::{MonotonicTime, Time, Token};
use ssdyno_driver_nvme::{
    AdminCommand, AdminCompletion, DataBuffer, DriverState, IoCommand, IoCompletion, IoError,
    IoResult, NvmeConfig, NvmeDriver, NvmeError,
};
use ssdyno_pci::{DmaRegion, FunctionError, PciDevice, PciFunction, SimulatedPci};
use ssdyno_scsi::{
    Config, ControllerFacts, FactsError, Job, NamespaceFacts, Nexus, NvmeCommand, Place, Progress,
    Request, SenseBytes, Translator,
};
use ssdyno_spec::nvme::{DatasetRange, PAGE_BYTES, Status, admin, cns, feature, nvm, select};
use ssdyno_spec::scsi::status;
use zerocopy::FromBytes;

use crate::units::{Answer, LogicalUnits, Task};

/// Most data of one SCSI command, which a connection may have to keep.
const TRANSFER_BYTES_MAX: u32 = 8 << 20;
/// Most data of one NVMe command, where the controller allows as much.
const COMMAND_BYTES_MAX: u32 = 1 << 20;
/// Version descriptor of iSCSI (SPC-4, annex E.8).
const ISCSI: u16 = 0x0960;
/// All namespaces.
const EVERY_NAMESPACE: u32 = 0xffff_ffff;

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
    /// An admin command was answered with an error.
    #[error("the controller answers Identify with status {:#05x}", .0.bits())]
    Identify(Status),
}

/// The namespaces of a simulated controller as logical units: LUN n is namespace n + 1.
///
/// The controller must keep data (`nvme.contents = true`) if anybody is to find what he wrote.
/// Virtual time goes on only while a command is done; and as on the wall between commands while a sanitize
/// operation is in progress, so that who asks for its end from time to time sees it.
#[derive(Debug)]
pub struct NvmeUnits<D> {
    device: Device<D>,
    translator: Translator,
    job: Job,
    /// When the last command ended.
    ended: Instant,
}

/// Driver and controller on one clock.
#[derive(Debug)]
struct Device<D> {
    pci: SimulatedPci<D>,
    driver: NvmeDriver,
    now: Time,
    /// For the data of one NVMe command.
    region: DmaRegion,
    vectors: Vec<u16>,
    done: Vec<IoCompletion>,
    admin_done: Vec<AdminCompletion>,
}

impl<D: PciDevice> NvmeUnits<D> {
    /// Brings the controller in its slot up, and shows all its namespaces.
    ///
    /// # Errors
    /// [`StackError`].
    pub fn start(mut pci: SimulatedPci<D>) -> Result<NvmeUnits<D>, StackError> {
        let region = pci.dma_allocate(COMMAND_BYTES_MAX)?;
        let mut device = Device {
            pci,
            driver: NvmeDriver::new(NvmeConfig::default()),
            now: Time::ZERO,
            region,
            vectors: Vec::new(),
            done: Vec::new(),
            admin_done: Vec::new(),
        };
        device.bring_up()?;
        let mut facts = ControllerFacts::from_identify(&device.identify(cns::CONTROLLER, 0)?);
        // The driver sends no fused commands, and the region has an end.
        facts.optional.fused_compare_write = false;
        facts.optional.saveable_cache = device.saves_cache(&facts);
        facts.transfer_bytes_max = match facts.transfer_bytes_max {
            0 => COMMAND_BYTES_MAX,
            most => most.min(COMMAND_BYTES_MAX),
        };
        let ids: Vec<u32> = device.driver.namespaces().iter().map(|n| n.id).collect();
        let mut namespaces = Vec::with_capacity(ids.len());
        for id in ids {
            namespaces
                .push(NamespaceFacts::from_identify(id, &device.identify(cns::NAMESPACE, id)?));
        }
        let largest = namespaces.iter().map(|n| n.block_bytes).max().unwrap_or(512).max(512);
        let config = Config {
            transfer_blocks_max: TRANSFER_BYTES_MAX / largest,
            transport_version: ISCSI,
            ..Config::default()
        };
        let translator = Translator::new(facts, &namespaces, config)?;
        Ok(NvmeUnits { device, translator, job: Job::new(), ended: Instant::now() })
    }

    /// The device in its slot, with its counters, faults and hooks.
    pub fn pci(&self) -> &SimulatedPci<D> {
        &self.device.pci
    }

    /// Virtual time: what all commands so far have taken, one after another.
    pub fn now(&self) -> Time {
        self.device.now
    }

    /// After FORMAT UNIT of `nexus`: the namespace may have other blocks now.
    fn look_again(&mut self, nsid: u32, nexus: Nexus) {
        let device = &mut self.device;
        let at = device.now;
        if device.driver.rescan(&mut device.pci, at).is_err() {
            return;
        }
        // Behind the commands of the scan in the admin queue.
        if let Ok(data) = device.identify(cns::NAMESPACE, nsid) {
            device.settle();
            // One that can no longer be shown stays as it was: its commands will fail.
            let facts = NamespaceFacts::from_identify(nsid, &data);
            let _shown = self.translator.replace_namespace(facts, Some(nexus));
        }
    }
}

impl<D: PciDevice + Send> LogicalUnits for NvmeUnits<D> {
    fn attach(&mut self, transport_id: &[u8]) -> Option<Nexus> {
        self.translator.attach(transport_id)
    }

    fn nexus_lost(&mut self, nexus: Nexus) {
        self.translator.nexus_lost(nexus);
    }

    fn data_out_bytes(&self, lun: u64, cdb: &[u8]) -> u64 {
        let owed = self.translator.data_out_bytes(lun, cdb);
        // More is refused without a look at the data.
        if owed <= u64::from(TRANSFER_BYTES_MAX) { owed } else { 0 }
    }

    fn execute(&mut self, task: &Task<'_>, data_in: &mut Vec<u8>) -> Answer {
        let request = Request {
            nexus: task.nexus,
            lun: task.lun,
            cdb: task.cdb,
            data_out_bytes: task.expected_out_bytes,
            data_out: task.data_out,
            deleted: false,
        };
        if self.translator.is_sanitizing() {
            let since = self.ended.elapsed().as_nanos();
            self.device.wait(Time::from_ns(u64::try_from(since).unwrap_or(u64::MAX)));
        }
        let mut progress = self.translator.begin(&mut self.job, &request);
        if progress == Progress::Pending {
            data_in.resize(self.job.data_in_bytes() as usize, 0);
        }
        let mut formatted = None;
        while progress == Progress::Pending {
            let Some(command) = self.job.next_command() else { break };
            self.device.wait(Time::from_ms(command.wait_ms.into()));
            let (nvme, dword0) = self.device.run(&command, task.data_out, data_in, &mut self.job);
            if command.admin && command.opcode == admin::FORMAT_NVM && nvme.is_success() {
                formatted = Some(command.nsid);
            }
            progress = self.translator.complete(&mut self.job, nvme, dword0);
        }
        self.ended = Instant::now();
        if let Some(nsid) = formatted {
            self.look_again(nsid, task.nexus);
        }
        match progress {
            Progress::Done => {
                if !self.job.data_in().is_empty() {
                    data_in.clear();
                    data_in.extend_from_slice(self.job.data_in());
                }
                data_in.truncate(self.job.data_in_bytes() as usize);
                Answer { status: self.job.status(), sense: self.job.sense_bytes() }
            }
            // Commands come one at a time, so neither can be; the initiator may try again.
            Progress::Pending | Progress::Blocked | Progress::Aborted => {
                Answer { status: status::BUSY, sense: SenseBytes::NONE }
            }
        }
    }

    fn abort_task_set(&mut self, nexus: Nexus, lun: u64) -> bool {
        self.translator.abort_task_set(nexus, lun)
    }

    fn logical_unit_reset(&mut self, lun: u64) -> bool {
        self.translator.logical_unit_reset(lun)
    }

    fn target_reset(&mut self) {
        self.translator.target_reset();
    }
}

impl<D: PciDevice> Device<D> {
    fn bring_up(&mut self) -> Result<(), StackError> {
        self.pci.set_now(self.now);
        self.driver.start(&mut self.pci, self.now)?;
        loop {
            match self.driver.state() {
                DriverState::Ready => return Ok(()),
                DriverState::Failed(error) => return Err(error.into()),
                _ if self.step() => {}
                _ => return Err(NvmeError::WrongState { state: "waiting for nothing" }.into()),
            }
        }
    }

    /// Goes to the next thing that happens; false where that is nothing.
    fn step(&mut self) -> bool {
        let deadline = self.driver.next_deadline().map(MonotonicTime::time);
        let Some(at) = self.pci.next_event().into_iter().chain(deadline).min() else {
            return false;
        };
        self.now = self.now.max(at);
        self.pci.advance(self.now);
        self.pci.set_now(self.now);
        self.pci.take_interrupts(self.now, &mut self.vectors);
        for vector in self.vectors.drain(..) {
            self.driver.on_interrupt(&mut self.pci, self.now, vector, &mut self.done);
        }
        if deadline.is_some_and(|at| at <= self.now) {
            self.driver.poll(&mut self.pci, self.now, &mut self.done);
        }
        self.pci.take_stall();
        true
    }

    /// Lets the scan of the driver end: its time limits bound it.
    fn settle(&mut self) {
        let until = self.now + Time::from_s(1);
        while self.pci.next_event().is_some_and(|at| at <= until) && self.step() {}
    }

    /// Nothing is done for `time`.
    fn wait(&mut self, time: Time) {
        let until = self.now + time;
        loop {
            let deadline = self.driver.next_deadline().map(MonotonicTime::time);
            let next = self.pci.next_event().into_iter().chain(deadline).min();
            if next.is_none_or(|at| at > until) || !self.step() {
                break;
            }
        }
        self.now = self.now.max(until);
    }

    /// One NVMe command to its end: status and dword 0.
    fn run(
        &mut self,
        command: &NvmeCommand,
        data_out: &[u8],
        data_in: &mut [u8],
        job: &mut Job,
    ) -> (Status, u32) {
        let (offset, bytes) = (command.data.offset as usize, command.data.bytes as usize);
        let to_host = command.opcode & 3 == 2;
        let range = offset..offset + bytes;
        let outgoing = match command.data.place {
            Place::Buffer if !to_host => data_out.get(range.clone()),
            Place::Scratch if !to_host => job.scratch().get(range.clone()),
            _ => Some(&[][..]),
        };
        let Some(outgoing) = outgoing.filter(|_| bytes <= COMMAND_BYTES_MAX as usize) else {
            return (Status::DATA_TRANSFER_ERROR, 0);
        };
        if command.admin {
            let (status, dword0, data) = self.run_admin(command, outgoing, bytes);
            if to_host && let Some(place) = job.scratch_mut().get_mut(range) {
                let length = place.len().min(data.len());
                place[..length].copy_from_slice(&data[..length]);
            }
            return (status, dword0);
        }
        self.pci.dma_write(&self.region, 0, outgoing);
        let status = self.run_io(command, outgoing);
        let incoming = match command.data.place {
            Place::Buffer if to_host => data_in.get_mut(range),
            Place::Scratch if to_host => job.scratch_mut().get_mut(range),
            _ => None,
        };
        if let Some(incoming) = incoming {
            self.pci.dma_read(&self.region, 0, incoming);
        }
        (status, 0)
    }

    fn run_io(&mut self, command: &NvmeCommand, data: &[u8]) -> Status {
        let (nsid, lba, blocks) = (command.nsid, command.lba(), command.blocks());
        let buffer = DataBuffer::Contiguous(self.region.address);
        let ranges: Vec<DatasetRange> = data
            .chunks_exact(size_of::<DatasetRange>())
            .filter(|_| command.opcode == nvm::DATASET_MANAGEMENT)
            .filter_map(|range| DatasetRange::read_from_bytes(range).ok())
            .collect();
        let mut io = match command.opcode {
            nvm::READ => IoCommand::read(nsid, lba, blocks, buffer),
            nvm::WRITE => IoCommand::write(nsid, lba, blocks, buffer),
            nvm::COMPARE => IoCommand::compare(nsid, lba, blocks, buffer),
            nvm::WRITE_ZEROES => IoCommand::write_zeroes(nsid, lba, blocks),
            nvm::VERIFY => IoCommand::verify(nsid, lba, blocks),
            nvm::DATASET_MANAGEMENT => IoCommand::dataset(nsid, &ranges, command.dwords[1]),
            nvm::FLUSH if nsid == EVERY_NAMESPACE => return self.flush_all(),
            nvm::FLUSH => IoCommand::flush(nsid),
            _ => return Status::INVALID_OPCODE,
        };
        io.force_unit_access = command.dwords[2] >> 30 & 1 == 1;
        self.submit(&io)
    }

    /// The driver flushes one namespace at a time.
    fn flush_all(&mut self) -> Status {
        let ids: Vec<u32> = self.driver.namespaces().iter().map(|n| n.id).collect();
        let statuses = ids.into_iter().map(|id| self.submit(&IoCommand::flush(id)));
        statuses.reduce(|a, b| if a.is_success() { b } else { a }).unwrap_or(Status::SUCCESS)
    }

    fn submit(&mut self, io: &IoCommand<'_>) -> Status {
        self.done.clear();
        self.pci.set_now(self.now);
        match self.driver.submit(&mut self.pci, self.now, 1, io, Token(0)) {
            Ok(()) => {}
            Err(IoError::OutOfRange { .. }) => return Status::LBA_OUT_OF_RANGE,
            Err(IoError::Unsupported { .. }) => return Status::INVALID_OPCODE,
            Err(_) => return Status::INTERNAL_ERROR,
        }
        while self.done.is_empty() && self.step() {}
        match self.done.pop().map(|done| done.result) {
            Some(IoResult::Answered(status)) => status,
            Some(IoResult::Abandoned) | None => Status::INTERNAL_ERROR,
        }
    }

    fn run_admin(
        &mut self,
        command: &NvmeCommand,
        send: &[u8],
        bytes: usize,
    ) -> (Status, u32, Vec<u8>) {
        let receive = if command.opcode & 3 == 2 { bytes as u32 } else { 0 };
        let admin = AdminCommand::raw(command.entry(), send, receive);
        self.admin_done.clear();
        self.pci.set_now(self.now);
        if self.driver.submit_admin(&mut self.pci, self.now, &admin, Token(0)).is_err() {
            return (Status::INTERNAL_ERROR, 0, Vec::new());
        }
        while self.admin_done.is_empty() {
            let moved = self.step();
            self.driver.take_admin(&mut self.admin_done);
            if !moved {
                break;
            }
        }
        match self.admin_done.pop() {
            Some(AdminCompletion { status: Some(status), dword0, data, .. }) => {
                (status, dword0, data)
            }
            _ => (Status::INTERNAL_ERROR, 0, Vec::new()),
        }
    }

    /// Whether the volatile write cache can be switched for good (base 2.0c, clause 5.15).
    fn saves_cache(&mut self, facts: &ControllerFacts) -> bool {
        if !facts.volatile_write_cache || !facts.optional.feature_select {
            return false;
        }
        let what = u32::from(feature::VOLATILE_WRITE_CACHE);
        let command = NvmeCommand {
            admin: true,
            opcode: admin::GET_FEATURES,
            dwords: [what | u32::from(select::CAPABILITIES) << 8, 0, 0, 0, 0, 0],
            ..NvmeCommand::default()
        };
        let (status, dword0, _) = self.run_admin(&command, &[], 0);
        status.is_success() && dword0 & 1 == 1
    }

    fn identify(&mut self, what: u8, nsid: u32) -> Result<[u8; PAGE_BYTES as usize], StackError> {
        let command = NvmeCommand {
            admin: true,
            opcode: admin::IDENTIFY,
            nsid,
            dwords: [u32::from(what), 0, 0, 0, 0, 0],
            ..NvmeCommand::default()
        };
        let (status, _, data) = self.run_admin(&command, &[], PAGE_BYTES as usize);
        match data.try_into() {
            Ok(data) if status.is_success() => Ok(data),
            _ => Err(StackError::Identify(status)),
        }
    }
}
