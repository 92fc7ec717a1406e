//! One SCSI command on its way: the NVMe commands it becomes, and its answer.

use alloc::vec::Vec;

use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry, admin, nvm};
use ssdyno_spec::scsi::status;

use crate::Nexus;
use crate::pending::{Condition, LogRequest, ModeRequest, SenseRequest, Step};
use crate::sense::{Refusal, SenseBytes};

/// Whose memory an NVMe command moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DataPlace {
    /// No data.
    #[default]
    Nothing,
    /// The data buffer of the SCSI command: data-out or data-in.
    Buffer,
    /// [`ScsiJob::scratch`].
    Scratch,
}

/// The data of an NVMe command. The direction is in bits 1:0 of the opcode (base 2.0c, figure 88).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScsiData {
    /// Whose memory.
    pub place: DataPlace,
    /// Where it begins there, in bytes.
    pub offset: u32,
    /// How much, in bytes.
    pub bytes: u32,
}

/// Half of a fused operation (base 2.0c, figure 87): the next command of the job is the other half
/// and must follow in the same queue, with nothing between.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fused {
    /// A command of its own.
    #[default]
    No,
    /// The first.
    First,
    /// The second.
    Second,
}

/// An NVMe command without what only the driver knows: identifier, data pointers, queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NvmeCommand {
    /// It goes to the admin queue.
    pub admin: bool,
    /// Opcode: [`ssdyno_spec::nvme::admin`] or [`nvm`].
    pub opcode: u8,
    /// Fused operation.
    pub fused: Fused,
    /// Namespace.
    pub nsid: u32,
    /// Command dwords 10 to 15.
    pub dwords: [u32; 6],
    /// Data.
    pub data: ScsiData,
    /// It is to be submitted this number of milliseconds later, not at once.
    pub wait_ms: u32,
}

impl NvmeCommand {
    /// An admin command with dwords 10 and 11, and without data.
    pub fn admin(opcode: u8, nsid: u32, dword10: u32, dword11: u32) -> NvmeCommand {
        let dwords = [dword10, dword11, 0, 0, 0, 0];
        NvmeCommand { admin: true, opcode, nsid, dwords, ..NvmeCommand::default() }
    }
    /// As a queue entry; the driver adds the identifier and the data pointers.
    pub fn entry(&self) -> SubmissionEntry {
        let [d10, d11, d12, d13, d14, d15] = self.dwords;
        let mut entry = SubmissionEntry { opcode: self.opcode, ..SubmissionEntry::default() };
        entry.flags = self.fused as u8;
        entry.namespace_id.set(self.nsid);
        entry.dword10.set(d10);
        entry.dword11.set(d11);
        entry.dword12.set(d12);
        entry.dword13.set(d13);
        entry.dword14.set(d14);
        entry.dword15.set(d15);
        entry
    }
    /// First block of an I/O command with a range.
    pub fn lba(&self) -> u64 {
        u64::from(self.dwords[1]) << 32 | u64::from(self.dwords[0])
    }
    /// Blocks of an I/O command with a range.
    pub fn blocks(&self) -> u32 {
        (self.dwords[2] & 0xffff) + 1
    }
}

/// Where the data of a run of blocks are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placing {
    Nothing,
    Buffer,
    Scratch,
    /// Every command uses the scratch from its beginning.
    Overlaid,
}

/// A range of blocks that one or more commands of the same opcode cover.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) opcode: u8,
    pub(crate) nsid: u32,
    pub(crate) lba: u64,
    pub(crate) blocks: u64,
    /// Most blocks of a command, at most 65536.
    pub(crate) blocks_max: u32,
    pub(crate) block_shift: u8,
    pub(crate) placing: Placing,
    /// Where the data of the next command begin.
    pub(crate) offset: u64,
    /// Bits 31:16 of dword 12.
    pub(crate) flags: u32,
}

impl Run {
    fn next(&mut self) -> Option<NvmeCommand> {
        let blocks = self.blocks.min(u64::from(self.blocks_max)) as u32;
        if blocks == 0 {
            return None;
        }
        let bytes = u64::from(blocks) << self.block_shift;
        let place = match self.placing {
            Placing::Nothing => DataPlace::Nothing,
            Placing::Buffer => DataPlace::Buffer,
            Placing::Scratch | Placing::Overlaid => DataPlace::Scratch,
        };
        let mut data = ScsiData::default();
        if place != DataPlace::Nothing {
            data = ScsiData { place, offset: self.offset as u32, bytes: bytes as u32 };
        }
        let range = [self.lba as u32, (self.lba >> 32) as u32, (blocks - 1) | self.flags];
        let command = NvmeCommand {
            opcode: self.opcode,
            nsid: self.nsid,
            dwords: [range[0], range[1], range[2], 0, 0, 0],
            data,
            ..NvmeCommand::default()
        };
        self.lba += u64::from(blocks);
        self.blocks -= u64::from(blocks);
        if matches!(self.placing, Placing::Buffer | Placing::Scratch) {
            self.offset += bytes;
        }
        Some(command)
    }
}

/// The commands that are still to be submitted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Work {
    #[default]
    Nothing,
    /// One command.
    Single(NvmeCommand),
    /// Blocks.
    Run(Run),
    /// Compare, then write of the same blocks; the data to write follow those to compare.
    Pair(Run),
    /// The second half of the pair.
    Second(NvmeCommand),
}

/// The step after all commands have completed successfully.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum After {
    /// GOOD.
    #[default]
    Finish,
    /// Submit this, then finish.
    Then(Run),
    /// Compare the scratch with what is held, then finish.
    Compare,
    /// The controller has found a difference: report where the scratch differs from the stored
    /// data.
    Locate,
    /// Compare the scratch with what is held, then submit this.
    CompareThen(Run),
    /// Compare after reading back with this.
    ThenCompare(Run),
    /// Add what is held to the scratch, bit by bit, then submit this.
    OrThen(Run),
    /// Answer with mode pages; dword 0 says whether the cache is on.
    ModeSense(ModeRequest),
    /// Switch the cache, where dword 0 says that it is otherwise; `save` it in any case.
    SelectCache { on: bool, save: bool },
    /// The cache is switched: the other initiators are informed.
    CacheSelected,
    /// Answer with a log page from what is in the scratch.
    Log(LogRequest),
    /// Answer with sense data from the health log in the scratch.
    RequestSense(SenseRequest),
    /// Submit this, where there is one; then the power condition has been entered.
    Power { command: Option<NvmeCommand>, condition: Condition },
    /// Flush the units from this one on, each by itself, then submit this.
    FlushUnits { next: usize, power: NvmeCommand, condition: Condition },
    /// Write zeroes to the ranges that are held, from this one on.
    ZeroRanges(usize),
    /// A sanitize operation goes on.
    Sanitize(Step),
}

/// The part of its logical unit that a command holds while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Holds {
    #[default]
    Nothing,
    /// It writes.
    Writer,
    /// It reads and writes as one: no other command may write.
    Exclusive,
}

/// One SCSI command: kept by the caller, one for each that can be outstanding, and used again.
///
/// It owns memory only after a command that needed some (parameter data, WRITE SAME, ORWRITE …);
/// READ and WRITE never allocate.
#[derive(Debug, Default)]
pub struct ScsiJob {
    pub(crate) nexus: Nexus,
    /// Index of the logical unit; `None` while the job is idle or answers for no unit.
    pub(crate) unit: Option<usize>,
    pub(crate) generation: u32,
    pub(crate) aborted: bool,
    pub(crate) work: Work,
    pub(crate) after: After,
    /// The blocks to read again when the controller finds that they differ from the stored data.
    pub(crate) locate: Option<Run>,
    pub(crate) holds: Holds,
    pub(crate) outstanding: u32,
    pub(crate) failed: Option<NvmeStatus>,
    pub(crate) dword0: u32,
    /// How much of the scratch is compared.
    pub(crate) compare_bytes: usize,
    pub(crate) status: u8,
    pub(crate) sense: Option<SenseBytes>,
    /// Bytes that a READ puts into the buffer.
    pub(crate) buffer_in_bytes: u64,
    /// The answer of commands that the translator makes itself.
    pub(crate) data_in: Vec<u8>,
    pub(crate) scratch: Vec<u8>,
    pub(crate) held: Vec<u8>,
    /// A command that is done later: its CDB, and the parameters that came with it.
    pub(crate) kept_cdb: Vec<u8>,
    pub(crate) kept_data: Vec<u8>,
}

impl ScsiJob {
    /// An idle one.
    pub fn new() -> ScsiJob {
        ScsiJob::default()
    }

    /// The next NVMe command to submit; `None` when there is none for now. The caller submits all
    /// of them, in order, in one queue, and may keep several outstanding.
    pub fn next_command(&mut self) -> Option<NvmeCommand> {
        let command = match &mut self.work {
            Work::Nothing => None,
            Work::Single(command) | Work::Second(command) => {
                let command = *command;
                self.work = Work::Nothing;
                Some(command)
            }
            Work::Run(run) => run.next(),
            Work::Pair(run) => {
                let mut run = *run;
                // COMPARE AND WRITE sends both halves in one buffer: first the data to compare,
                // then the data to write. No copy is necessary, because the second command gets an
                // offset into the same buffer.
                let half = u64::from(run.blocks as u32) << run.block_shift;
                let mut second = run;
                second.opcode = nvm::WRITE;
                second.offset += half;
                run.opcode = nvm::COMPARE;
                // Flags such as FUA belong to the write.
                run.flags = 0;
                let write = second.next().map(|c| NvmeCommand { fused: Fused::Second, ..c });
                self.work = write.map_or(Work::Nothing, Work::Second);
                run.next().map(|command| NvmeCommand { fused: Fused::First, ..command })
            }
        };
        // The job counts a command when it hands the command out, not when the caller submits it.
        // Otherwise an abort between both moments would see zero and end the job too early.
        self.outstanding += u32::from(command.is_some());
        command
    }

    /// True when [`next_command`](ScsiJob::next_command) has something.
    pub(crate) fn has_work(&self) -> bool {
        match &self.work {
            Work::Nothing => false,
            Work::Run(run) => run.blocks > 0,
            _ => true,
        }
    }

    /// ABORT TASK (SAM-5, 7.2): nothing more is submitted; the command ends as
    /// [`Progress::Aborted`](crate::JobProgress::Aborted) with its last completion.
    pub fn abort(&mut self) {
        self.aborted = true;
    }

    /// NVMe commands that are submitted and not completed.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Status of the SCSI command (SAM-5, table 30): valid when it is done.
    pub fn status(&self) -> u8 {
        self.status
    }
    /// Sense data, where there are some.
    pub fn sense(&self) -> &[u8] {
        self.sense.as_ref().map_or(&[], |sense| sense.as_bytes())
    }
    /// The same, to keep.
    pub fn sense_bytes(&self) -> SenseBytes {
        self.sense.unwrap_or(SenseBytes::NONE)
    }
    /// The answer that the translator made, already cut to the allocation length. The data of a
    /// READ are in the caller's buffer instead.
    pub fn data_in(&self) -> &[u8] {
        &self.data_in
    }
    /// How much data-in the command returns: the length of [`data_in`](ScsiJob::data_in), or what
    /// READ puts into the caller's buffer (known from [`Progress::Submit`](crate::JobProgress) on).
    pub fn data_in_bytes(&self) -> u64 {
        self.buffer_in_bytes.max(self.data_in.len() as u64)
    }
    /// Memory of the job that NVMe commands with [`DataPlace::Scratch`] move: the caller writes here
    /// what the device sent, before it tells the completion.
    pub fn scratch_mut(&mut self) -> &mut [u8] {
        &mut self.scratch
    }
    /// The same, for what goes to the device.
    pub fn scratch(&self) -> &[u8] {
        &self.scratch
    }

    /// Forgets the last command.
    pub(crate) fn reset(&mut self, nexus: Nexus) {
        // The memory of the buffers is kept, see `need_scratch`.
        let ScsiJob { mut data_in, scratch, mut held, kept_cdb, kept_data, .. } =
            core::mem::take(self);
        data_in.clear();
        held.clear();
        let fresh = ScsiJob { nexus, status: status::GOOD, ..ScsiJob::default() };
        *self = ScsiJob { data_in, scratch, held, kept_cdb, kept_data, ..fresh };
    }

    // The scratch only grows. A caller reuses jobs, so after the first long command no further
    // command allocates memory (S1-30: no allocation in the I/O path).
    /// Makes the scratch at least `bytes` long.
    pub(crate) fn need_scratch(&mut self, bytes: usize) {
        if self.scratch.len() < bytes {
            self.scratch.resize(bytes, 0);
        }
    }

    /// Get Log Page of the controller, into the scratch.
    pub(crate) fn get_log_page(&mut self, page: u8, bytes: usize) -> NvmeCommand {
        self.need_scratch(bytes);
        // The scratch can hold data of an earlier command. A driver that transfers fewer bytes than
        // requested must not make those bytes look like a part of the log.
        self.scratch[..bytes].fill(0);
        let dword10 = u32::from(page) | (bytes as u32 / 4 - 1) << 16;
        let data = ScsiData { place: DataPlace::Scratch, offset: 0, bytes: bytes as u32 };
        // The log of the controller, not of a namespace.
        NvmeCommand { data, ..NvmeCommand::admin(admin::GET_LOG_PAGE, u32::MAX, dword10, 0) }
    }

    /// Keeps a copy of data-out.
    pub(crate) fn hold(&mut self, data: &[u8]) {
        self.held.clear();
        self.held.extend_from_slice(data);
    }

    /// Sets the answer, cut to the allocation length.
    pub(crate) fn answer(&mut self, data: &[u8], allocation: usize) {
        self.data_in.clear();
        // SPC-4 truncates an answer to the allocation length without an error. The length fields
        // inside of the answer keep the full value, so that the initiator can ask again with enough
        // room.
        self.data_in.extend_from_slice(&data[..data.len().min(allocation)]);
    }

    /// Ends with a refusal.
    pub(crate) fn refuse(&mut self, refusal: Refusal, descriptors: bool) {
        self.work = Work::Nothing;
        self.data_in.clear();
        self.buffer_in_bytes = 0;
        match refusal {
            Refusal::Conflict => self.status = status::RESERVATION_CONFLICT,
            Refusal::Sense(sense) => {
                self.status = status::CHECK_CONDITION;
                self.sense = Some(sense.encode(descriptors));
            }
        }
    }

    /// First byte of the scratch that is not what is held, taken as often as it takes.
    pub(crate) fn first_mismatch(&self, bytes: usize) -> Option<usize> {
        let scratch = &self.scratch[..bytes.min(self.scratch.len())];
        // Of an empty one, the cycle is empty too.
        scratch.iter().zip(self.held.iter().cycle()).position(|(a, b)| a != b)
    }
}
