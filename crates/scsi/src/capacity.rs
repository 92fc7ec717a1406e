//! READ CAPACITY and REPORT LUNS.

use alloc::vec::Vec;

use ssdyno_spec::scsi::{ReadCapacity10Data, ReadCapacity16Data};
use zerocopy::IntoBytes;

use crate::bytes::{u32_at, u64_at};
use crate::job::ScsiJob;
use crate::request::lun_field;
use crate::sense::{Checked, Sense};
use crate::target::ScsiTarget;

impl ScsiTarget {
    /// READ CAPACITY (10) (SBC-3, 5.15; SBC-2 for PMI, which is obsolete).
    pub(crate) fn read_capacity_10(&self, job: &mut ScsiJob, unit: usize, cdb: &[u8]) -> Checked {
        let facts = &self.units[unit].facts;
        if cdb[8] & 1 == 0 && u32_at(cdb, 2) != 0 {
            return Err(Sense::cdb(2, 7).into());
        }
        let data = ReadCapacity10Data {
            // A last LBA of FFFFFFFFh tells the initiator to use READ CAPACITY (16) (SBC-3). A
            // truncated value would show a 3 TB drive as one of 0.8 TB.
            last_lba: u32::try_from(facts.blocks - 1).unwrap_or(u32::MAX).into(),
            block_bytes: facts.block_bytes.into(),
        };
        job.answer(data.as_bytes(), usize::MAX);
        Ok(())
    }

    /// READ CAPACITY (16) (SBC-3, 5.16; translation reference, 6.4).
    pub(crate) fn read_capacity_16(&self, job: &mut ScsiJob, unit: usize, cdb: &[u8]) {
        let facts = &self.units[unit].facts;
        let managed = u16::from(self.unmaps()) << 15;
        let zeroes = u16::from(self.unmapped_reads_zero(unit)) << 14;
        // The exponent cannot be negative. A configured physical block below the logical block
        // would otherwise give a quotient of 0, and `ilog2` of 0 panics.
        let physical = self.config.physical_block_bytes.max(facts.block_bytes);
        // LOGICAL BLOCKS PER PHYSICAL BLOCK EXPONENT: of four bits.
        let exponent = (physical / facts.block_bytes).ilog2().min(15) as u8;
        let data = ReadCapacity16Data {
            last_lba: (facts.blocks - 1).into(),
            block_bytes: facts.block_bytes.into(),
            protection: 0,
            exponents: exponent,
            provisioning: (managed | zeroes).into(),
            reserved: [0; 16],
        };
        job.answer(data.as_bytes(), u32_at(cdb, 10) as usize);
    }

    /// REPORT LUNS (SPC-4, 6.33).
    pub(crate) fn report_luns(&self, job: &mut ScsiJob, cdb: &[u8]) -> Checked {
        let units = match cdb[2] {
            0x00 | 0x02 => self.units.as_slice(),
            // Only well known units: this target has none.
            0x01 => &[],
            // Administrative units and their subsidiaries (0x10 to 0x12) and the reserved values.
            _ => return Err(Sense::cdb(2, 7).into()),
        };
        let mut data = Vec::with_capacity(8 + 8 * units.len());
        data.extend_from_slice(&(8 * units.len() as u32).to_be_bytes());
        data.extend_from_slice(&[0; 4]);
        for unit in units {
            data.extend_from_slice(&lun_field(unit.number()).to_be_bytes());
        }
        job.answer(&data, u32_at(cdb, 6) as usize);
        debug_assert!(data.len() < 16 || self.unit_index(u64_at(&data, 8)).is_some());
        Ok(())
    }
}
