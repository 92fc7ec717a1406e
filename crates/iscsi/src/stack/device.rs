//! Driver and controller on one clock, and the NVMe commands between them.

use ssdyno_block::{Time, Token};
use ssdyno_driver_nvme::{
    AdminCommand, AdminCompletion, AdminError, DataBuffer, DriverState, IoCommand, IoCompletion,
    IoError, IoResult, NvmeConfig, SimulatedNvme,
};
use ssdyno_pci::{DmaRegion, FaultyDevice, PciFunction, SimulatedPci};
use ssdyno_scsi::{ControllerFacts, DataPlace, NvmeCommand};
use ssdyno_spec::nvme::{DatasetRange, NvmeStatus, PAGE_BYTES, admin, feature, nvm, select};
use zerocopy::FromBytes;

use super::{COMMAND_BYTES_MAX, StackError, backend};

/// NVMe commands at the controller at a time, each with a buffer of that size.
const COMMANDS_MAX: usize = 32;
/// All namespaces.
const EVERY_NAMESPACE: u32 = 0xffff_ffff;

/// For whom an NVMe command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// The SCSI command in this place.
    Command(usize),
    /// It identifies a namespace, for the SCSI command in this place that has formatted it.
    LookAgain(usize),
}

/// An NVMe command at the controller.
#[derive(Debug)]
struct Flight {
    purpose: Purpose,
    command: NvmeCommand,
    region: Option<DmaRegion>,
    /// Namespaces that are still to be flushed, and the first error so far.
    flushes: Vec<u32>,
    failed: Option<NvmeStatus>,
}

/// An NVMe command that has completed.
#[derive(Debug)]
pub(super) struct Landed {
    pub(super) purpose: Purpose,
    pub(super) command: NvmeCommand,
    pub(super) status: NvmeStatus,
    pub(super) dword0: u32,
    /// What it brought.
    pub(super) data: Vec<u8>,
}

/// Why an NVMe command was not taken; where it ends, with which status and dword 0.
type Refused = backend::Refused<(NvmeStatus, u32)>;

fn ended(status: NvmeStatus) -> Refused {
    Refused::Ended((status, 0))
}

/// Driver and controller on one clock.
#[derive(Debug)]
pub(super) struct Device<D> {
    pub(super) nvme: SimulatedNvme<D>,
    /// By token.
    flights: Vec<Option<Flight>>,
    /// Buffers that no command uses, of all that there are.
    free: Vec<DmaRegion>,
    done: Vec<IoCompletion>,
    admin_done: Vec<AdminCompletion>,
}

impl<D: FaultyDevice> Device<D> {
    /// Brings the controller in its slot up.
    pub(super) fn start(pci: SimulatedPci<D>) -> Result<Device<D>, StackError> {
        let mut nvme = SimulatedNvme::new(pci, NvmeConfig::default());
        // One at least; more where they are needed.
        let region = nvme.pci.dma_allocate(COMMAND_BYTES_MAX)?;
        nvme.start()?;
        let mut device = Device {
            nvme,
            flights: Vec::new(),
            free: vec![region],
            done: Vec::new(),
            admin_done: Vec::new(),
        };
        let most = COMMANDS_MAX.min(device.nvme.driver.outstanding_limit() as usize).max(1);
        device.flights.resize_with(most, || None);
        Ok(device)
    }

    /// Goes to the next thing that happens; false where that is nothing.
    fn step(&mut self) -> bool {
        let more = self.nvme.step(&mut self.done);
        self.nvme.driver.take_admin(&mut self.admin_done);
        more
    }

    /// Brings everything to `now`, before which nothing else happens.
    pub(super) fn go_to(&mut self, now: Time) {
        self.nvme.run_to(now, &mut self.done);
        let SimulatedNvme { driver, pci, now, .. } = &mut self.nvme;
        if pci.inject_due(*now) {
            driver.removed(pci, &mut self.done);
        }
        driver.take_admin(&mut self.admin_done);
    }

    /// Hands an NVMe command with its data to the driver.
    pub(super) fn send(
        &mut self,
        purpose: Purpose,
        command: NvmeCommand,
        outgoing: &[u8],
    ) -> Result<(), Refused> {
        let Some(token) = self.flights.iter().position(Option::is_none) else {
            return Err(Refused::Later);
        };
        let mut flight =
            Flight { purpose, command, region: None, flushes: Vec::new(), failed: None };
        let sent = if command.admin {
            self.send_admin(&flight, token, outgoing)
        } else {
            self.send_io(&mut flight, token, outgoing)
        };
        match sent {
            Ok(()) => self.flights[token] = Some(flight),
            Err(_) => self.free.extend(flight.region),
        }
        sent
    }

    fn send_admin(&mut self, flight: &Flight, token: usize, send: &[u8]) -> Result<(), Refused> {
        let command = &flight.command;
        let to_host = command.opcode & 3 == 2;
        let receive = if to_host { command.data.bytes } else { 0 };
        let admin = AdminCommand::raw(command.entry(), send, receive);
        let token = Token(token as u32);
        let now = self.nvme.now;
        let SimulatedNvme { driver, pci, .. } = &mut self.nvme;
        pci.set_now(now);
        match driver.submit_admin(pci, now, &admin, token) {
            Ok(()) => Ok(()),
            Err(AdminError::Full) => Err(Refused::Later),
            Err(AdminError::NotReady) if self.recovers() => Err(Refused::Later),
            Err(_) => Err(ended(NvmeStatus::INTERNAL_ERROR)),
        }
    }

    /// The driver brings the controller up again, and will take commands then.
    fn recovers(&self) -> bool {
        matches!(self.nvme.driver.state(), DriverState::Starting | DriverState::Recovering)
    }

    fn send_io(
        &mut self,
        flight: &mut Flight,
        token: usize,
        outgoing: &[u8],
    ) -> Result<(), Refused> {
        let command = &flight.command;
        let (nsid, lba, blocks) = (command.nsid, command.lba(), command.blocks());
        let mut buffer = DataBuffer::None;
        if matches!(command.opcode, nvm::READ | nvm::WRITE | nvm::COMPARE) {
            let region = self.buffer()?;
            self.nvme.pci.dma_write(&region, 0, outgoing);
            buffer = DataBuffer::Contiguous(region.address);
            flight.region = Some(region);
        }
        let ranges: Vec<DatasetRange> = outgoing
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
            nvm::FLUSH if nsid == EVERY_NAMESPACE => {
                // The driver flushes one namespace at a time.
                flight.flushes = self.nvme.driver.namespaces().iter().map(|n| n.id).collect();
                let Some(first) = flight.flushes.pop() else {
                    return Err(ended(NvmeStatus::SUCCESS));
                };
                IoCommand::flush(first)
            }
            nvm::FLUSH => IoCommand::flush(nsid),
            _ => return Err(ended(NvmeStatus::INVALID_OPCODE)),
        };
        io.force_unit_access = command.dwords[2] >> 30 & 1 == 1;
        self.submit(&io, token)
    }

    /// A buffer that no other command uses.
    fn buffer(&mut self) -> Result<DmaRegion, Refused> {
        if let Some(region) = self.free.pop() {
            return Ok(region);
        }
        let others = self.flights.iter().flatten().any(|flight| flight.region.is_some());
        let status = ended(NvmeStatus::INTERNAL_ERROR);
        let none = if others { Refused::Later } else { status };
        self.nvme.pci.dma_allocate(COMMAND_BYTES_MAX).map_err(|_| none)
    }

    fn submit(&mut self, io: &IoCommand<'_>, token: usize) -> Result<(), Refused> {
        let token = Token(token as u32);
        match self.nvme.submit(1, io, token) {
            Ok(()) => Ok(()),
            Err(IoError::Full) => Err(Refused::Later),
            Err(IoError::NotReady) if self.recovers() => Err(Refused::Later),
            Err(IoError::OutOfRange { .. }) => Err(ended(NvmeStatus::LBA_OUT_OF_RANGE)),
            Err(IoError::Unsupported { .. }) => Err(ended(NvmeStatus::INVALID_OPCODE)),
            Err(_) => Err(ended(NvmeStatus::INTERNAL_ERROR)),
        }
    }

    /// An NVMe command that has completed.
    pub(super) fn landed(&mut self) -> Option<Landed> {
        while let Some(done) = self.done.pop() {
            let token = done.token.0 as usize;
            let Some(mut flight) = self.flights.get_mut(token).and_then(Option::take) else {
                continue;
            };
            let mut status = match done.result {
                IoResult::Completed(status) => status,
                IoResult::Abandoned => NvmeStatus::INTERNAL_ERROR,
            };
            if let Some(next) = flight.flushes.pop() {
                let failed = (!status.is_success()).then_some(status);
                flight.failed = flight.failed.or(failed);
                match self.submit(&IoCommand::flush(next), token) {
                    Ok(()) => {
                        self.flights[token] = Some(flight);
                        continue;
                    }
                    // The command before has left room: it is the device that has none.
                    Err(_) => status = NvmeStatus::INTERNAL_ERROR,
                }
            }
            return Some(self.land(flight, status));
        }
        let done = self.admin_done.pop()?;
        let flight = self.flights.get_mut(done.token.0 as usize)?.take()?;
        let Flight { purpose, command, .. } = flight;
        let AdminCompletion { status, dword0, data, .. } = done;
        let status = status.unwrap_or(NvmeStatus::INTERNAL_ERROR);
        Some(Landed { purpose, command, status, dword0, data })
    }

    fn land(&mut self, flight: Flight, status: NvmeStatus) -> Landed {
        let Flight { purpose, command, region, failed, .. } = flight;
        let mut data = Vec::new();
        if let Some(region) = region {
            let place = command.data;
            if command.opcode & 3 == 2 && place.place != DataPlace::Nothing {
                data.resize((place.bytes as usize).min(region.bytes as usize), 0);
                self.nvme.pci.dma_read(&region, 0, &mut data);
            }
            self.free.push(region);
        }
        Landed { purpose, command, status: failed.unwrap_or(status), dword0: 0, data }
    }

    /// An admin command to its end, where nothing else is pending.
    fn ask(&mut self, command: NvmeCommand) -> Option<Landed> {
        self.send(Purpose::Command(0), command, &[]).ok()?;
        loop {
            if let Some(landed) = self.landed() {
                return Some(landed);
            }
            if !self.step() {
                return None;
            }
        }
    }

    /// Whether the volatile write cache can be switched for good (base 2.0c, clause 5.15).
    pub(super) fn saves_cache(&mut self, facts: &ControllerFacts) -> bool {
        if !facts.volatile_write_cache || !facts.optional.feature_select {
            return false;
        }
        let what = u32::from(feature::VOLATILE_WRITE_CACHE);
        let dword10 = what | u32::from(select::CAPABILITIES) << 8;
        let capabilities = self.ask(NvmeCommand::admin(admin::GET_FEATURES, 0, dword10, 0));
        capabilities.is_some_and(|said| said.status.is_success() && said.dword0 & 1 == 1)
    }

    /// An Identify data structure.
    pub(super) fn identify(
        &mut self,
        what: u8,
        nsid: u32,
    ) -> Result<[u8; PAGE_BYTES as usize], StackError> {
        let Some(said) = self.ask(identify(what, nsid)) else {
            return Err(StackError::Identify(NvmeStatus::INTERNAL_ERROR));
        };
        match said.data.try_into() {
            Ok(data) if said.status.is_success() => Ok(data),
            _ => Err(StackError::Identify(said.status)),
        }
    }
}

/// Identify: structure `what` of `nsid`.
pub(super) fn identify(what: u8, nsid: u32) -> NvmeCommand {
    let mut command = NvmeCommand::admin(admin::IDENTIFY, nsid, what.into(), 0);
    command.data.bytes = PAGE_BYTES;
    command
}
