//! Tests every admin and I/O command, every value of CNS, every feature and log page against NVM Express base 2.0c and
//! NVM command set 1.0c (*NVM*): the command, its result, and the clause.
//!
//! Each row meets a controller of its own with these namespaces: 1 of 512-byte blocks and 2 of 4 KiB
//! blocks are attached, 3 is allocated and not attached, 4 to 8 are free, 9 and above cannot be.

mod commands;
mod features;
mod identify;
mod io;
mod logs;
mod versions;

use ssdyno_spec::nvme::{
    AutonomousTransition, IdentifyNamespace, NvmeStatus, SubmissionEntry, admin,
};
use zerocopy::{FromZeros, IntoBytes};

use crate::support::{DATA, FixedTime, Host, entry, host};

/// All namespaces.
pub(super) const EVERY: u32 = u32::MAX;

pub(super) const OK: NvmeStatus = NvmeStatus::SUCCESS;
pub(super) const FIELD: NvmeStatus = NvmeStatus::INVALID_FIELD;
pub(super) const NAMESPACE: NvmeStatus = NvmeStatus::INVALID_NAMESPACE;
pub(super) const OPCODE: NvmeStatus = NvmeStatus::INVALID_OPCODE;

/// What is in the data buffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Data {
    Zeroes,
    /// Namespace Management: NSZE, NCAP, FLBAS.
    Create(u64, u64, u8),
    /// A list of 16-bit words.
    Words(&'static [u16]),
    /// Dataset Management: first block and number of blocks of each range.
    Ranges(&'static [(u64, u32)]),
    /// LBA Range Type: first block and number of blocks of each range.
    RangeTypes(&'static [(u64, u64)]),
    /// Autonomous Power State Transition: state, target and idle time in ms of some entries.
    Transitions(&'static [(usize, u8, u32)]),
    /// This byte has this value.
    Byte(usize, u8),
}

/// One command and how it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    opcode: u8,
    /// To I/O queue 1, not to the admin queue.
    io: bool,
    nsid: u32,
    /// Command dwords 10 to 15.
    dwords: [u32; 6],
    flags: u8,
    /// Added to PRP1.
    offset: u64,
    data: Data,
    /// Commands before it, which succeed.
    before: &'static [Row],
    expected: NvmeStatus,
    clause: &'static str,
}

impl Row {
    const fn new(
        opcode: u8,
        io: bool,
        nsid: u32,
        expected: NvmeStatus,
        clause: &'static str,
    ) -> Row {
        Row {
            opcode,
            io,
            nsid,
            dwords: [0; 6],
            flags: 0,
            offset: 0,
            data: Data::Zeroes,
            before: &[],
            expected,
            clause,
        }
    }
    pub(super) const fn admin(
        opcode: u8,
        nsid: u32,
        ends: NvmeStatus,
        clause: &'static str,
    ) -> Row {
        Row::new(opcode, false, nsid, ends, clause)
    }
    pub(super) const fn io(opcode: u8, nsid: u32, ends: NvmeStatus, clause: &'static str) -> Row {
        Row::new(opcode, true, nsid, ends, clause)
    }
    /// With command dword 10, 11 … or 15.
    pub(super) const fn dword(mut self, number: usize, value: u32) -> Row {
        self.dwords[number - 10] = value;
        self
    }
    pub(super) const fn with(self, data: Data) -> Row {
        Row { data, ..self }
    }
    pub(super) const fn flags(self, flags: u8) -> Row {
        Row { flags, ..self }
    }
    pub(super) const fn offset(self, offset: u64) -> Row {
        Row { offset, ..self }
    }
    pub(super) const fn after(self, before: &'static [Row]) -> Row {
        Row { before, ..self }
    }

    fn send(&self, host: &mut Host<FixedTime>) -> NvmeStatus {
        fill(host, self.data);
        let [d10, d11, d12, d13, d14, d15] = self.dwords;
        let command = SubmissionEntry {
            flags: self.flags,
            prp1: (DATA + self.offset).into(),
            prp2: (DATA + 4096).into(),
            dword13: d13.into(),
            dword14: d14.into(),
            dword15: d15.into(),
            ..entry(self.opcode, self.nsid, [d10, d11, d12])
        };
        host.command(u16::from(self.io), command).status().kind()
    }

    /// The status that the command ends with, after those before it.
    fn end(&self, host: &mut Host<FixedTime>) -> NvmeStatus {
        for before in self.before {
            assert_eq!(before.send(host), before.expected, "{before:x?} before {self:x?}");
        }
        self.send(host)
    }
}

fn fill(host: &mut Host<FixedTime>, data: Data) {
    let place = host.data(DATA, 8192);
    place.fill(0);
    match data {
        Data::Zeroes => {}
        Data::Create(size, capacity, format) => {
            let mut wanted = IdentifyNamespace::new_zeroed();
            (wanted.size, wanted.capacity, wanted.format) = (size.into(), capacity.into(), format);
            place[..4096].copy_from_slice(wanted.as_bytes());
        }
        Data::Words(words) => {
            for (place, word) in place.chunks_exact_mut(2).zip(words) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        }
        Data::Ranges(ranges) => {
            for (place, (first, blocks)) in place.chunks_exact_mut(16).zip(ranges) {
                place[4..8].copy_from_slice(&blocks.to_le_bytes());
                place[8..].copy_from_slice(&first.to_le_bytes());
            }
        }
        Data::RangeTypes(ranges) => {
            for (place, (first, blocks)) in place.chunks_exact_mut(64).zip(ranges) {
                place[16..24].copy_from_slice(&first.to_le_bytes());
                place[24..32].copy_from_slice(&(blocks - 1).to_le_bytes());
            }
        }
        Data::Transitions(entries) => {
            for (state, target, idle_ms) in entries {
                let entry = AutonomousTransition::new(*target, *idle_ms);
                place[state * 8..][..8].copy_from_slice(entry.as_bytes());
            }
        }
        Data::Byte(at, value) => place[at] = value,
    }
}

/// Keys of the controller that rows meet: four power states, of which two process no commands.
const KEYS: &str = "contents = true\nnamespaces_max = 8\nmax_transfer = \"64KiB\"\nio_queues = 4\n\
    namespaces = [{ size = \"16MiB\" }, { size = \"16MiB\", block_size = \"4KiB\" }]\n\
    [[nvme.operational_states]]\npower = \"8W\"\n[[nvme.operational_states]]\npower = \"4W\"\n\
    [[power.states]]\npower = \"40mW\"\nidle_after = \"100ms\"\nentry_latency = \"2ms\"\n\
    exit_latency = \"1ms\"\n[[power.states]]\npower = \"5mW\"\nidle_after = \"2s\"\n\
    entry_latency = \"2ms\"\nexit_latency = \"9ms\"\n";

/// A namespace of 8 blocks that is not attached.
const THIRD: Row =
    Row::admin(admin::NAMESPACE_MANAGEMENT, 0, OK, "5.23").with(Data::Create(8, 8, 0));

/// What a row meets, with a controller of `version`.
pub(super) fn controller(version: &str) -> Host<FixedTime> {
    let mut host = host(&format!("version = \"{version}\"\n{KEYS}"));
    host.create_pair(1, 8);
    host
}

/// Sends each row to a controller of version 2.0; fails with all that end otherwise than they should.
#[track_caller]
pub(super) fn check(rows: &[Row], least: usize) {
    assert!(rows.len() >= least, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for row in rows {
        let mut host = controller("2.0");
        assert_eq!(THIRD.send(&mut host), OK);
        let status = row.end(&mut host);
        if status != row.expected {
            let (got, wanted) = (status.bits(), row.expected.bits());
            wrong.push(format!("{got:#05x}, not {wanted:#05x} (clause {}): {row:x?}", row.clause));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}
