//! UNMAP and WRITE SAME (SBC-3, 4.7 and clause 5).

use alloc::vec::Vec;

use ssdyno_spec::nvme::{DatasetRange, dataset, nvm};
use ssdyno_spec::scsi::{AdditionalSense, UnmapDescriptor, UnmapHeader};
use zerocopy::{FromBytes, IntoBytes};

use crate::blocks::{Extent, length_field};
use crate::bytes::{u16_at, u32_at, u64_at};
use crate::facts::{DeallocatedReads, UnmapBy};
use crate::job::{After, DataPlace, NvmeCommand, Placing, ScsiData, ScsiJob, Work};
use crate::request::Call;
use crate::sense::{Checked, Sense};
use crate::target::ScsiTarget;

/// Most descriptors of one UNMAP: what one Dataset Management command takes.
pub(crate) const UNMAP_DESCRIPTORS_MAX: usize = 256;

/// Write Zeroes may deallocate: bit 25 of dword 12 (NVM 1.0c, figure 86).
pub(crate) const DEALLOCATE: u32 = 1 << 25;

impl ScsiTarget {
    /// Logical block provisioning is managed: LBPME and LBPU.
    pub(crate) fn unmaps(&self) -> bool {
        match self.config.unmap_by {
            UnmapBy::DatasetManagement => self.controller.optional.dataset_management,
            UnmapBy::WriteZeroes => self.controller.optional.write_zeroes,
        }
    }

    /// WRITE SAME can unmap: LBPWS and LBPWS10. Write Zeroes, because what Dataset Management
    /// deallocates may keep its data.
    pub(crate) fn write_same_unmaps(&self) -> bool {
        self.unmaps() && self.controller.optional.write_zeroes
    }

    /// Unmapped blocks read as zeroes: LBPRZ.
    pub(crate) fn unmapped_reads_zero(&self, unit: usize) -> bool {
        self.unmaps()
            && (self.units[unit].facts.deallocated_reads == DeallocatedReads::Zeroes
                || self.config.unmap_by == UnmapBy::WriteZeroes)
    }

    /// UNMAP (SBC-3, 5.28).
    pub(crate) fn unmap(&self, job: &mut ScsiJob, call: Call<'_>) -> Checked {
        let Call { unit, request, cdb } = call;
        let length = usize::from(u16_at(cdb, 7));
        if length == 0 {
            return Ok(());
        }
        let wrong_length = Sense::illegal(AdditionalSense::PARAMETER_LIST_LENGTH);
        let list = request.data_out.get(..length).ok_or(wrong_length)?;
        let (header, rest) = UnmapHeader::read_from_prefix(list).map_err(|_| wrong_length)?;
        // The shortest length counts; a descriptor that it cuts off is ignored (SBC-3, 5.28.2).
        let behind_header = usize::from(header.data_length.get()).saturating_sub(6);
        let bytes = rest.len().min(behind_header).min(usize::from(header.descriptors_length.get()));
        let descriptors = &rest[..bytes];
        // All descriptors are checked before the first one is carried out. A list that fails in the
        // middle would leave an unknown part of its ranges unmapped.
        if bytes / size_of::<UnmapDescriptor>() > UNMAP_DESCRIPTORS_MAX {
            return Err(Sense::parameter(2).into());
        }
        let mut extents = Vec::new();
        for chunk in descriptors.chunks_exact(size_of::<UnmapDescriptor>()) {
            let (lba, blocks) = (u64_at(chunk, 0), u64::from(u32_at(chunk, 8)));
            let extent = Extent { lba, blocks };
            self.check_range(unit, extent)?;
            // SBC-3 gives a descriptor of zero blocks no effect. Left out here, it neither uses one
            // of the 256 ranges nor becomes a Write Zeroes, whose zero-based length cannot express
            // it.
            if blocks > 0 {
                extents.push(extent);
            }
        }
        self.deallocate(job, unit, &extents);
        Ok(())
    }

    fn deallocate(&self, job: &mut ScsiJob, unit: usize, extents: &[Extent]) {
        if extents.is_empty() {
            return;
        }
        if self.config.unmap_by == UnmapBy::WriteZeroes {
            for extent in extents {
                job.held.extend_from_slice(&extent.lba.to_be_bytes());
                job.held.extend_from_slice(&extent.blocks.to_be_bytes());
            }
            // Write Zeroes takes one range per command, Dataset Management 256. The ranges run one
            // after the other, so that the job needs no memory for parallel commands.
            self.zero_range(job, 0);
            return;
        }
        job.need_scratch(size_of_val(extents).max(extents.len() * size_of::<DatasetRange>()));
        for (slot, extent) in job.scratch.chunks_exact_mut(size_of::<DatasetRange>()).zip(extents) {
            let (blocks, first) = ((extent.blocks as u32).into(), extent.lba.into());
            let range = DatasetRange { attributes: 0.into(), blocks, first };
            slot.copy_from_slice(range.as_bytes());
        }
        let bytes = (extents.len() * size_of::<DatasetRange>()) as u32;
        job.work = Work::Single(NvmeCommand {
            opcode: nvm::DATASET_MANAGEMENT,
            nsid: self.units[unit].facts.nsid,
            dwords: [extents.len() as u32 - 1, dataset::DEALLOCATE, 0, 0, 0, 0],
            data: ScsiData { place: DataPlace::Scratch, offset: 0, bytes },
            ..NvmeCommand::default()
        });
    }

    /// Write zeroes to the range `index` of those that are held.
    pub(crate) fn zero_range(&self, job: &mut ScsiJob, index: usize) {
        let Some(unit) = job.unit else { return };
        // No range left: `after` keeps its default, and the job ends as GOOD. The caller has taken
        // `after` out of the job before this call.
        let Some(range) = job.held.chunks_exact(16).nth(index) else { return };
        let extent = Extent { lba: u64_at(range, 0), blocks: u64_at(range, 8) };
        let mut run = self.run(unit, nvm::WRITE_ZEROES, extent, Placing::Nothing);
        run.flags = self.deallocate_bit(unit);
        job.work = Work::Run(run);
        job.after = After::ZeroRanges(index + 1);
    }

    fn deallocate_bit(&self, unit: usize) -> u32 {
        if self.units[unit].facts.write_zeroes_deallocates { DEALLOCATE } else { 0 }
    }

    /// WRITE SAME (10), (16) (SBC-3, 5.45 and 5.46).
    pub(crate) fn write_same(&self, job: &mut ScsiJob, call: Call<'_>) -> Checked {
        let Call { unit, request, cdb } = call;
        let unmap = cdb[1] & 8 != 0;
        let no_data = cdb.len() == 16 && cdb[1] & 1 != 0;
        if unmap && !self.write_same_unmaps() {
            return Err(Sense::cdb(1, 3).into());
        }
        let mut extent = self.extent(unit, cdb)?;
        match u64::from(self.config.write_same_blocks_max) {
            // To the end.
            0 if extent.blocks == 0 => extent.blocks = self.units[unit].facts.blocks - extent.lba,
            0 => {}
            // WSNZ: a length of zero is refused.
            most if !(1..=most).contains(&extent.blocks) => {
                return Err(Sense::cdb(length_field(cdb), 7).into());
            }
            _ => {}
        }
        let block_bytes = self.units[unit].facts.block_bytes as usize;
        let block = if no_data { &[][..] } else { request.data_out };
        if !no_data && (block.len() != block_bytes || request.data_out_bytes != block.len() as u64)
        {
            return Err(Sense::information_unit().into());
        }
        if self.controller.optional.write_zeroes && block.iter().all(|&byte| byte == 0) {
            let mut run = self.run(unit, nvm::WRITE_ZEROES, extent, Placing::Nothing);
            // Without UNMAP the initiator expects mapped blocks, for example to reserve space on a
            // thin namespace. The deallocate bit would return this space to the pool.
            run.flags = if unmap { self.deallocate_bit(unit) } else { 0 };
            job.work = Work::Run(run);
            return Ok(());
        }
        let mut run = self.run(unit, nvm::WRITE, extent, Placing::Overlaid);
        run.blocks_max = run.blocks_max.min(self.overlay_blocks(unit));
        let blocks = extent.blocks.min(u64::from(run.blocks_max)) as usize;
        job.need_scratch(blocks * block_bytes);
        for slot in job.scratch.chunks_exact_mut(block_bytes).take(blocks) {
            if no_data {
                slot.fill(0);
            } else {
                slot.copy_from_slice(block);
            }
        }
        job.work = Work::Run(run);
        Ok(())
    }
}
