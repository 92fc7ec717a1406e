//! Commands that read, write and verify blocks (SBC-3, clause 5).

use ssdyno_spec::nvme::nvm;
use ssdyno_spec::scsi::opcode;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::job::{After, Placing, Run, ScsiJob, Work};
use crate::request::{Call, ScsiRequest};
use crate::sense::{Checked, Sense};
use crate::target::ScsiTarget;

/// Most blocks of one NVMe command: NLB has 16 bits and is zero based.
const COMMAND_BLOCKS_MAX: u32 = 1 << 16;

/// Force unit access: bit 30 of dword 12 (NVM 1.0c, figure 60).
const FUA: u32 = 1 << 30;

/// A range of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) lba: u64,
    pub(crate) blocks: u64,
}

impl Extent {
    /// The values of the CDB, by its length; without a check against the capacity.
    pub(crate) fn parse(cdb: &[u8]) -> Extent {
        let (lba, blocks) = match cdb.len() {
            6 => {
                // Only the 6-byte CDBs use length 0 for 256 blocks; in all longer CDBs, 0 means no
                // block. A common rule for all lengths would write 256 blocks for an empty WRITE
                // (10).
                let blocks = if cdb[4] == 0 { 256 } else { u64::from(cdb[4]) };
                // The LBA of a 6-byte CDB has 21 bits. The mask removes the operation code and the
                // three upper bits of byte 1, which were the LUN in SCSI-2.
                (u64::from(u32_at(cdb, 0) & 0x1f_ffff), blocks)
            }
            10 => (u64::from(u32_at(cdb, 2)), u64::from(u16_at(cdb, 7))),
            12 => (u64::from(u32_at(cdb, 2)), u64::from(u32_at(cdb, 6))),
            _ if cdb[0] == opcode::COMPARE_AND_WRITE => (u64_at(cdb, 2), u64::from(cdb[13])),
            _ => (u64_at(cdb, 2), u64::from(u32_at(cdb, 10))),
        };
        Extent { lba, blocks }
    }
}

/// First byte of the length field of a CDB with blocks.
pub(crate) fn length_field(cdb: &[u8]) -> u16 {
    match cdb.len() {
        6 => 4,
        10 => 7,
        12 => 6,
        _ if cdb[0] == opcode::COMPARE_AND_WRITE => 13,
        _ => 10,
    }
}

impl Run {
    /// The same with the medium, not a cache, at its other end.
    fn forced(mut self) -> Run {
        self.flags |= FUA;
        self
    }
}

/// FUA of a CDB; 6-byte CDBs have none.
fn force_unit_access(cdb: &[u8]) -> u32 {
    if cdb.len() > 6 && cdb[1] & 8 != 0 { FUA } else { 0 }
}

/// BYTCHK (SBC-3, 5.31): whether data are compared; 3 compares one block with all.
fn byte_check(cdb: &[u8]) -> u8 {
    cdb[1] >> 1 & 3
}

/// The data-out that a command needs and the translator sees.
fn seen<'a>(request: &ScsiRequest<'a>, bytes: u64) -> Checked<&'a [u8]> {
    let data = usize::try_from(bytes).ok().and_then(|bytes| request.data_out.get(..bytes));
    data.ok_or(Sense::information_unit().into())
}

impl ScsiTarget {
    /// Most blocks of one NVMe command that moves data.
    pub(crate) fn command_blocks_max(&self, unit: usize) -> u32 {
        let bytes = self.controller.transfer_bytes_max;
        if bytes == 0 {
            return COMMAND_BLOCKS_MAX;
        }
        (bytes >> self.units[unit].block_shift()).clamp(1, COMMAND_BLOCKS_MAX)
    }

    /// Most blocks of one SCSI command that moves data (block limits: MAXIMUM TRANSFER LENGTH).
    pub(crate) fn transfer_blocks_max(&self, unit: usize) -> u32 {
        match self.config.transfer_blocks_max {
            0 => self.command_blocks_max(unit),
            // Offsets in the buffer have 32 bits.
            most => most.min(u32::MAX >> self.units[unit].block_shift()),
        }
    }

    /// Most blocks of COMPARE AND WRITE.
    pub(crate) fn compare_and_write_blocks_max(&self, unit: usize) -> u8 {
        let most = if self.controller.optional.fused_compare_write {
            self.command_blocks_max(unit).min(self.controller.compare_write_blocks_max)
        } else {
            self.transfer_blocks_max(unit)
        };
        most.min(255) as u8
    }

    /// The extent of a CDB, inside the capacity.
    pub(crate) fn extent(&self, unit: usize, cdb: &[u8]) -> Checked<Extent> {
        let extent = Extent::parse(cdb);
        self.check_range(unit, extent)?;
        Ok(extent)
    }

    pub(crate) fn check_range(&self, unit: usize, extent: Extent) -> Checked {
        let capacity = self.units[unit].facts.blocks;
        // An LBA near 2^64 plus a length would wrap to a small number and pass the comparison with
        // the capacity. The checked addition makes such a CDB fail as out of range.
        match extent.lba.checked_add(extent.blocks) {
            Some(end) if end <= capacity => Ok(()),
            _ => Err(Sense::out_of_range().into()),
        }
    }

    /// The same, not longer than one transfer may be.
    fn transfer(&self, unit: usize, cdb: &[u8]) -> Checked<Extent> {
        let extent = self.extent(unit, cdb)?;
        // SBC-3 requires INVALID FIELD IN CDB for a transfer above MAXIMUM TRANSFER LENGTH, and a
        // pointer to the length field. Initiators read the limit again after this sense code.
        if extent.blocks > u64::from(self.transfer_blocks_max(unit)) {
            return Err(Sense::cdb(length_field(cdb), 7).into());
        }
        Ok(extent)
    }

    pub(crate) fn run(&self, unit: usize, opcode: u8, extent: Extent, placing: Placing) -> Run {
        Run {
            opcode,
            nsid: self.units[unit].facts.nsid,
            lba: extent.lba,
            blocks: extent.blocks,
            // MDTS limits data transfers only, so NVMe commands without data can use all 16 bits of
            // NLB. A block device counts bytes in 32 bits, so its limit applies to all commands.
            blocks_max: if placing == Placing::Nothing && self.disk.is_none() {
                COMMAND_BLOCKS_MAX
            } else {
                self.command_blocks_max(unit)
            },
            block_shift: self.units[unit].block_shift(),
            placing,
            offset: 0,
            flags: 0,
        }
    }

    fn bytes(&self, unit: usize, blocks: u64) -> u64 {
        blocks << self.units[unit].block_shift()
    }

    /// The part of a write for which data arrives: whole blocks, or none of it.
    fn arriving(&self, unit: usize, request: &ScsiRequest<'_>, extent: Extent) -> Checked<Extent> {
        let came = request.data_out_bytes;
        if came >= self.bytes(unit, extent.blocks) {
            return Ok(extent);
        }
        let shift = self.units[unit].block_shift();
        // A partial block would need a read-modify-write with the old content of the medium. The
        // target refuses it: the initiator has announced a length that its own data contradict.
        if came & ((1 << shift) - 1) != 0 {
            return Err(Sense::information_unit().into());
        }
        Ok(Extent { blocks: came >> shift, ..extent })
    }

    /// READ (6), (10), (12), (16).
    pub(crate) fn read(&self, job: &mut ScsiJob, unit: usize, cdb: &[u8]) -> Checked {
        let extent = self.transfer(unit, cdb)?;
        job.buffer_in_bytes = self.bytes(unit, extent.blocks);
        let mut run = self.run(unit, nvm::READ, extent, Placing::Buffer);
        run.flags = force_unit_access(cdb);
        job.work = Work::Run(run);
        Ok(())
    }

    /// WRITE (6), (10), (12), (16).
    pub(crate) fn write(&self, job: &mut ScsiJob, call: Call<'_>) -> Checked {
        let Call { unit, request, cdb } = call;
        let extent = self.arriving(unit, request, self.transfer(unit, cdb)?)?;
        let mut run = self.run(unit, nvm::WRITE, extent, Placing::Buffer);
        run.flags = force_unit_access(cdb);
        job.work = Work::Run(run);
        Ok(())
    }

    /// WRITE AND VERIFY (10), (12), (16): the command verifies the medium (SBC-3, 5.39), so none of its data may stay
    /// in a volatile cache.
    pub(crate) fn write_and_verify(&self, job: &mut ScsiJob, call: Call<'_>) -> Checked {
        let Call { unit, request, cdb } = call;
        let check = byte_check(cdb);
        if check > 1 {
            return Err(Sense::cdb(1, 2).into());
        }
        let extent = self.arriving(unit, request, self.transfer(unit, cdb)?)?;
        job.work = Work::Run(self.run(unit, nvm::WRITE, extent, Placing::Buffer).forced());
        job.after = if check == 0 {
            // The verification starts only after all writes have completed. NVMe gives no order
            // between commands in a queue, so a parallel verification could read the blocks before
            // the write.
            After::Then(self.plain_verify(job, unit, extent))
        } else if self.controller.optional.compare {
            self.may_locate(job, unit, request, extent);
            After::Then(self.run(unit, nvm::COMPARE, extent, Placing::Buffer).forced())
        } else {
            let data = seen(request, self.bytes(unit, extent.blocks))?;
            After::ThenCompare(self.read_back(job, unit, extent, data).forced())
        };
        Ok(())
    }

    /// VERIFY (10), (12), (16).
    pub(crate) fn verify(&self, job: &mut ScsiJob, call: Call<'_>) -> Checked {
        let Call { unit, request, cdb } = call;
        match byte_check(cdb) {
            0 => {
                let extent = self.extent(unit, cdb)?;
                job.work = Work::Run(self.plain_verify(job, unit, extent));
            }
            2 => return Err(Sense::cdb(1, 2).into()),
            check => {
                let extent = self.transfer(unit, cdb)?;
                if extent.blocks == 0 {
                    return Ok(());
                }
                let needed = self.bytes(unit, if check == 3 { 1 } else { extent.blocks });
                if request.data_out_bytes < needed {
                    return Err(Sense::information_unit().into());
                }
                if check == 1 && self.controller.optional.compare {
                    self.may_locate(job, unit, request, extent);
                    let run = self.run(unit, nvm::COMPARE, extent, Placing::Buffer);
                    job.work = Work::Run(run.forced());
                } else {
                    let run = self.read_back(job, unit, extent, seen(request, needed)?);
                    job.work = Work::Run(run.forced());
                    job.after = After::Compare;
                }
            }
        }
        Ok(())
    }

    /// Checks that blocks can be read: Verify, or a read whose data is not used.
    fn plain_verify(&self, job: &mut ScsiJob, unit: usize, extent: Extent) -> Run {
        if self.controller.optional.verify {
            return self.run(unit, nvm::VERIFY, extent, Placing::Nothing).forced();
        }
        let mut run = self.run(unit, nvm::READ, extent, Placing::Overlaid).forced();
        run.blocks_max = run.blocks_max.min(self.overlay_blocks(unit));
        let blocks = extent.blocks.min(u64::from(run.blocks_max));
        job.need_scratch(self.bytes(unit, blocks) as usize);
        run
    }

    /// Blocks of commands that all use the same scratch: 128 KiB, or one block.
    pub(crate) fn overlay_blocks(&self, unit: usize) -> u32 {
        ((128 << 10) >> self.units[unit].block_shift()).max(1)
    }

    /// Keeps what `extent` is compared with: a controller that finds a difference does not say where,
    /// which the sense data must.
    fn may_locate(
        &self,
        job: &mut ScsiJob,
        unit: usize,
        request: &ScsiRequest<'_>,
        extent: Extent,
    ) {
        let bytes = self.bytes(unit, extent.blocks);
        if let Ok(expected) = seen(request, bytes) {
            job.hold(expected);
            job.locate = Some(self.run(unit, nvm::READ, extent, Placing::Scratch));
        }
    }

    /// Reads `extent` into the scratch, to be compared with `data`.
    fn read_back(&self, job: &mut ScsiJob, unit: usize, extent: Extent, data: &[u8]) -> Run {
        let bytes = self.bytes(unit, extent.blocks) as usize;
        job.need_scratch(bytes);
        job.hold(data);
        job.compare_bytes = bytes;
        self.run(unit, nvm::READ, extent, Placing::Scratch)
    }

    /// PRE-FETCH (10), (16): there is no cache to fetch into; GOOD says that not all blocks are in
    /// it (SBC-3, 5.8).
    pub(crate) fn prefetch(&self, unit: usize, cdb: &[u8]) -> Checked {
        self.extent(unit, cdb).map(|_| ())
    }

    /// COMPARE AND WRITE (SBC-3, 5.2): fused commands, or read, compare here, and write while
    /// nobody else may.
    pub(crate) fn compare_and_write(&self, job: &mut ScsiJob, call: Call<'_>) -> Checked {
        let Call { unit, request, cdb } = call;
        let extent = self.extent(unit, cdb)?;
        // The limit guarantees atomicity: a fused pair covers at most ACWU + 1 blocks, and a
        // request that is split into several pairs could be half written after a difference.
        if extent.blocks > u64::from(self.compare_and_write_blocks_max(unit)) {
            return Err(Sense::cdb(length_field(cdb), 7).into());
        }
        if extent.blocks == 0 {
            return Ok(());
        }
        let half = self.bytes(unit, extent.blocks);
        if request.data_out_bytes != 2 * half {
            return Err(Sense::information_unit().into());
        }
        let mut write = self.run(unit, nvm::WRITE, extent, Placing::Buffer);
        write.flags = force_unit_access(cdb);
        if self.controller.optional.fused_compare_write {
            self.may_locate(job, unit, request, extent);
            job.work = Work::Pair(write);
            return Ok(());
        }
        // Without fused commands, the read, the comparison and the write are separate steps.
        // `Holds::Exclusive` keeps other writers of this unit out between them; otherwise two
        // initiators could both succeed.
        write.offset = half;
        let expected = seen(request, half)?;
        job.work = Work::Run(self.read_back(job, unit, extent, expected));
        job.after = After::CompareThen(write);
        Ok(())
    }

    /// ORWRITE (16) (SBC-3, 5.6).
    pub(crate) fn or_write(&self, job: &mut ScsiJob, call: Call<'_>) -> Checked {
        let Call { unit, request, cdb } = call;
        let extent = self.transfer(unit, cdb)?;
        if extent.blocks == 0 {
            return Ok(());
        }
        let data = seen(request, self.bytes(unit, extent.blocks))?;
        job.work = Work::Run(self.read_back(job, unit, extent, data));
        let mut write = self.run(unit, nvm::WRITE, extent, Placing::Scratch);
        write.flags = force_unit_access(cdb);
        job.after = After::OrThen(write);
        Ok(())
    }
}
