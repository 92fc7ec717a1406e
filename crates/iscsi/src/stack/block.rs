//! A logical unit that is a block device itself, such as a hard disk: the device server over a [`Device`].

use ssdyno_block::{Completion, Request, Status, SubmitError, Time, Token};
use ssdyno_device::{Contents, Device};
use ssdyno_scsi::{
    BlockAction, BlockCommand, BlockEnd, DataPlace, DeviceServer, DiskFacts, JobProgress, ScsiData,
    ScsiJob, ScsiTarget,
};

use super::backend::{Backend, Ended, Refused};
use super::{COMMAND_BYTES_MAX, StackError, UnitOptions, Units};

/// A simulated device as LUN 0: the device provides the time, and this module keeps the written
/// data.
///
/// The device has no NVMe controller in front of it. Its time begins with the callers'.
pub type BlockUnits<D> = Units<BlockBackend<D>>;

/// Facts that a device does not report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DiskOptions {
    /// Product identification; 16 characters are shown.
    pub product: String,
    /// Unit serial number; 20 characters are shown.
    pub serial: String,
    /// As with the units of a controller.
    pub unit: UnitOptions,
}

/// A block device, its data, and the device server over it.
#[derive(Debug)]
pub struct BlockBackend<D> {
    device: D,
    server: DeviceServer,
    contents: Contents,
    now: Time,
    /// By token.
    flights: Vec<Option<Flight>>,
    /// Commands whose next request did not fit into the device's queue.
    held: Vec<Token>,
    done: Vec<Completion>,
}

/// A block command at the device.
#[derive(Debug)]
struct Flight {
    place: usize,
    command: BlockCommand,
    outgoing: Vec<u8>,
    /// What the device is to do for it besides, in order.
    next: Option<Request>,
}

impl<D: Device> Units<BlockBackend<D>> {
    /// Shows `device` as a logical unit.
    ///
    /// # Errors
    /// [`StackError::Disk`].
    pub fn over(device: D, options: &DiskOptions) -> Result<BlockUnits<D>, StackError> {
        let facts = facts(&device, options);
        let config = options.unit.config(facts.block_bytes);
        let server = DeviceServer::new(facts, config)?;
        Ok(Units::new(BlockBackend {
            device,
            server,
            contents: Contents::default(),
            now: Time::ZERO,
            flights: Vec::new(),
            held: Vec::new(),
            done: Vec::new(),
        }))
    }

    /// Puts `bytes` there, without a request and in no time: what is on the device before it is served.
    pub fn put(&mut self, offset_bytes: u64, bytes: &[u8]) {
        self.backend.contents.write(offset_bytes, bytes);
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.backend.device
    }
}

/// The description of `device` for initiators.
fn facts(device: &impl Device, options: &DiskOptions) -> DiskFacts {
    let block_bytes = device.sector_bytes();
    let blocks = device.capacity_bytes() / u64::from(block_bytes.max(1));
    let medium = device.medium();
    let in_blocks = |bytes: u64| bytes / u64::from(block_bytes.max(1));
    DiskFacts {
        naa: naa(&options.serial),
        physical_block_bytes: options.unit.physical_block_bytes,
        rotation_rpm: u16::try_from(medium.rotation_rpm).unwrap_or(0),
        solid_state: medium.solid_state,
        volatile_write_cache: device.volatile_cache(),
        unmaps: medium.trims,
        write_protected: options.unit.read_only,
        transfer_bytes_max: COMMAND_BYTES_MAX,
        granularity_blocks: u16::try_from(in_blocks(medium.chunk_bytes)).unwrap_or(0),
        optimal_blocks: u32::try_from(in_blocks(medium.stripe_bytes)).unwrap_or(0),
        ..DiskFacts::plain(&options.product, &options.serial, blocks, block_bytes)
    }
}

/// A locally assigned NAA identifier (SPC-4, 7.8.6.6.4: 3h and 60 bits) that follows from the serial number.
fn naa(serial: &str) -> [u8; 8] {
    // FNV-1a.
    let hash = serial.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (0x3 << 60 | hash >> 4).to_be_bytes()
}

impl<D: Device> BlockBackend<D> {
    /// The requests that a command becomes: the first, and the following ones.
    fn requests(&self, command: &BlockCommand) -> (Request, Option<Request>) {
        let (offset, length) = (command.offset_bytes, command.length_bytes);
        // A device has no force unit access: what is forced out of its cache is everything.
        let flush =
            (command.force_unit_access && self.device.volatile_cache()).then_some(Request::flush());
        match command.action {
            BlockAction::Flush => (Request::flush(), None),
            BlockAction::Unmap => (Request::trim(offset, length), None),
            BlockAction::Write | BlockAction::WriteZeroes => {
                (Request::write(offset, length), flush)
            }
            BlockAction::Read | BlockAction::Verify => match flush {
                Some(flush) => (flush, Some(Request::read(offset, length))),
                None => (Request::read(offset, length), None),
            },
        }
    }

    /// Sends the requests that did not fit before.
    fn send_held(&mut self) {
        let held = std::mem::take(&mut self.held);
        for token in held {
            self.send_next(token);
        }
    }

    fn send_next(&mut self, token: Token) {
        let flight = self.flights.get_mut(token.0 as usize).and_then(Option::as_mut);
        let Some(request) = flight.as_ref().and_then(|flight| flight.next) else { return };
        match self.device.submit(self.now, request, token) {
            Ok(()) => {
                if let Some(flight) = flight {
                    flight.next = None;
                }
            }
            Err(SubmitError::Full) => self.held.push(token),
            Err(_) => {
                if let Some(flight) = flight {
                    flight.next = None;
                }
                let (accepted, completed) = (self.now, self.now);
                let refused = Completion { token, status: Status::Error, accepted, completed };
                self.done.push(refused);
            }
        }
    }

    /// The data of a command that has gone well.
    fn moved(&mut self, flight: &Flight) -> Vec<u8> {
        let BlockCommand { action, offset_bytes, length_bytes, .. } = flight.command;
        let mut data = Vec::new();
        match action {
            BlockAction::Read if flight.command.data.place != DataPlace::Nothing => {
                data.resize(length_bytes as usize, 0);
                self.contents.read(offset_bytes, &mut data);
            }
            BlockAction::Write => self.contents.write(offset_bytes, &flight.outgoing),
            BlockAction::WriteZeroes | BlockAction::Unmap => {
                self.contents.clear(offset_bytes, length_bytes.into());
            }
            BlockAction::Read | BlockAction::Verify | BlockAction::Flush => {}
        }
        data
    }

    fn end_of(&self, status: Status) -> BlockEnd {
        match status {
            Status::Ok => BlockEnd::Done,
            Status::ReadOnly => BlockEnd::ReadOnly,
            Status::Error if !self.device.is_gone() => BlockEnd::MediumError,
            Status::Error | Status::Abandoned => BlockEnd::DeviceError,
        }
    }
}

impl<D: Device> Backend for BlockBackend<D> {
    type Command = BlockCommand;
    type End = BlockEnd;
    const NO_DATA: BlockEnd = BlockEnd::NoData;
    const ABORTED: BlockEnd = BlockEnd::Aborted;

    fn target(&self) -> &ScsiTarget {
        &self.server
    }

    fn target_mut(&mut self) -> &mut ScsiTarget {
        &mut self.server
    }

    fn next_command(&self, job: &mut ScsiJob) -> Option<BlockCommand> {
        self.server.next_command(job)
    }

    fn complete(
        &mut self,
        job: &mut ScsiJob,
        command: &BlockCommand,
        end: BlockEnd,
    ) -> JobProgress {
        self.server.complete(job, command.action, end)
    }

    fn data(command: &BlockCommand) -> ScsiData {
        command.data
    }

    fn is_to_host(command: &BlockCommand) -> bool {
        command.action == BlockAction::Read
    }

    fn send(
        &mut self,
        place: usize,
        command: BlockCommand,
        outgoing: &[u8],
    ) -> Result<(), Refused<BlockEnd>> {
        let free = self.flights.iter().position(Option::is_none);
        let place_of_flight = free.unwrap_or(self.flights.len());
        let token = Token(place_of_flight as u32);
        let (first, next) = self.requests(&command);
        match self.device.submit(self.now, first, token) {
            Ok(()) => {}
            Err(SubmitError::Full) => return Err(Refused::Later),
            Err(_) => return Err(Refused::Ended(self.end_of(Status::Abandoned))),
        }
        if free.is_none() {
            self.flights.push(None);
        }
        let outgoing = outgoing.to_vec();
        self.flights[place_of_flight] = Some(Flight { place, command, outgoing, next });
        Ok(())
    }

    fn ended(&mut self) -> Option<Ended<Self>> {
        while !self.done.is_empty() {
            let done = self.done.remove(0);
            let slot = self.flights.get_mut(done.token.0 as usize);
            let Some(flight) = slot.and_then(Option::take) else { continue };
            if done.status == Status::Ok && flight.next.is_some() {
                self.flights[done.token.0 as usize] = Some(flight);
                self.send_next(done.token);
                continue;
            }
            let end = self.end_of(done.status);
            let data = if end == BlockEnd::Done { self.moved(&flight) } else { Vec::new() };
            return Some(Ended { place: flight.place, command: flight.command, end, data });
        }
        None
    }

    fn now(&self) -> Time {
        self.now
    }

    fn next_event(&self) -> Option<Time> {
        self.device.next_event()
    }

    fn go_to(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.device.reap(self.now, &mut self.done);
        // They are not read here, and a target may serve for days.
        self.device.events().clear();
        self.send_held();
    }
}
