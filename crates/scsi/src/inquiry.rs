//! INQUIRY: standard data and vital product data (SPC-4, 6.6 and 7.8; SBC-3, 6.6; translation
//! reference, clause 6.1).

use alloc::vec::Vec;

use ssdyno_spec::scsi::{
    BlockLimitsPage, CharacteristicsPage, LogicalBlockProvisioningPage, StandardInquiry,
    sanitize_action, vpd,
};
use zerocopy::IntoBytes;

use crate::bytes::u16_at;
use crate::facts::{NamespaceFacts, array};
use crate::job::ScsiJob;
use crate::provisioning::UNMAP_DESCRIPTORS_MAX;
use crate::sense::{Checked, Sense};
use crate::target::ScsiTarget;

/// T10 vendor identification that the translation reference prescribes (clause 6.1.1).
const VENDOR: [u8; 8] = *b"NVMe    ";

/// Peripheral qualifier 011b, device type 1Fh: there cannot be a unit at this LUN.
const NO_UNIT: u8 = 0x7f;

/// Version descriptors (SPC-4, annex E.8): SAM-5, SPC-4, SBC-3.
const SAM_5: u16 = 0x00a0;
const SPC_4: u16 = 0x0460;
const SBC_3: u16 = 0x04c0;

impl ScsiTarget {
    /// INQUIRY to a LUN without unit.
    pub(crate) fn inquiry_absent(&self, job: &mut ScsiJob, cdb: &[u8]) -> Checked {
        // A LUN without unit has no VPD pages. An empty page 00h would claim that a unit exists, so
        // the request fails and the standard data say that there is none.
        if cdb[1] & 1 != 0 {
            return Err(Sense::cdb(1, 0).into());
        }
        if cdb[2] != 0 {
            return Err(Sense::cdb(2, 7).into());
        }
        let data = self.standard(NO_UNIT);
        job.answer(data.as_bytes(), usize::from(u16_at(cdb, 3)));
        Ok(())
    }

    /// INQUIRY.
    pub(crate) fn inquiry(&self, job: &mut ScsiJob, unit: usize, cdb: &[u8]) -> Checked {
        let (page, allocation) = (cdb[2], usize::from(u16_at(cdb, 3)));
        if cdb[1] & 1 == 0 {
            if page != 0 {
                return Err(Sense::cdb(2, 7).into());
            }
            job.answer(self.standard(0).as_bytes(), allocation);
            return Ok(());
        }
        if !self.pages().contains(&page) {
            return Err(Sense::cdb(2, 7).into());
        }
        let facts = &self.units[unit].facts;
        match page {
            vpd::SUPPORTED => job.answer(&paged(page, self.pages()), allocation),
            vpd::SERIAL_NUMBER => job.answer(&paged(page, &self.serial(facts)), allocation),
            vpd::IDENTIFICATION => {
                job.answer(&paged(page, &self.identification(facts)), allocation);
            }
            vpd::EXTENDED_INQUIRY => {
                let mut data = [0; 60];
                // SIMPSUP: simple tasks; ORDSUP and HEADSUP; V_SUP: there may be a volatile cache.
                let ordered = self.disk.is_some() && self.config.ordered_tasks;
                data[1] = if ordered { 0x07 } else { 0x01 };
                data[2] = u8::from(self.controller.volatile_write_cache);
                job.answer(&paged(page, &data), allocation);
            }
            vpd::BLOCK_LIMITS => job.answer(self.block_limits(unit).as_bytes(), allocation),
            vpd::CHARACTERISTICS => {
                let data = CharacteristicsPage {
                    peripheral: 0,
                    page_code: page,
                    page_length: 60.into(),
                    rotation_rate: self.rotation_rate().into(),
                    product_type: 0,
                    form_factor: self.reads_after_sanitize(),
                    flags: 0,
                    reserved: [0; 55],
                };
                job.answer(data.as_bytes(), allocation);
            }
            _ => job.answer(self.provisioning(unit).as_bytes(), allocation),
        }
        Ok(())
    }

    /// MEDIUM ROTATION RATE (SBC-3, table 203): 0 where it is not known, 1 where nothing turns; numbers
    /// below 401h are reserved.
    fn rotation_rate(&self) -> u16 {
        match &self.disk {
            None => 1,
            Some(disk) if disk.facts.solid_state => 1,
            Some(disk) if (0x401..=0xfffe).contains(&disk.facts.rotation_rpm) => {
                disk.facts.rotation_rpm
            }
            Some(_) => 0,
        }
    }

    fn vendor(&self) -> [u8; 8] {
        self.disk.as_ref().map_or(VENDOR, |disk| printable(disk.facts.vendor))
    }

    /// WABEREQ and WACEREQ, above the form factor: after BLOCK ERASE and CRYPTOGRAPHIC ERASE blocks can be
    /// read without having been written (SBC-4, 6.6.2).
    fn reads_after_sanitize(&self) -> u8 {
        let there = |action| u8::from(self.sanitizes(action));
        there(sanitize_action::BLOCK_ERASE) << 6 | there(sanitize_action::CRYPTOGRAPHIC_ERASE) << 4
    }

    /// The pages that there are, in ascending order (SPC-4, 7.8.20).
    fn pages(&self) -> &'static [u8] {
        if self.thesis() {
            // S1-48.
            return &[
                vpd::SUPPORTED,
                vpd::SERIAL_NUMBER,
                vpd::IDENTIFICATION,
                vpd::BLOCK_LIMITS,
                vpd::CHARACTERISTICS,
            ];
        }
        &[
            vpd::SUPPORTED,
            vpd::SERIAL_NUMBER,
            vpd::IDENTIFICATION,
            vpd::EXTENDED_INQUIRY,
            vpd::BLOCK_LIMITS,
            vpd::CHARACTERISTICS,
            vpd::PROVISIONING,
        ]
    }

    fn standard(&self, peripheral: u8) -> StandardInquiry {
        let mut data = StandardInquiry {
            peripheral,
            removable: 0,
            version: 6,
            response_format: 2,
            additional_length: (size_of::<StandardInquiry>() - 5) as u8,
            flags_5: 0,
            flags_6: 0,
            flags_7: 0x02,
            vendor: self.vendor(),
            product: printable(array(&self.controller.model)),
            revision: printable(self.revision()),
            vendor_specific: [0; 22],
            versions: [0.into(); 8],
            reserved: [0; 22],
        };
        let claims = [SAM_5, SPC_4, SBC_3, self.config.transport_version];
        for (slot, claim) in data.versions.iter_mut().zip(claims) {
            slot.set(claim);
        }
        data
    }

    /// The last four characters of the firmware revision that are not blank.
    fn revision(&self) -> [u8; 4] {
        let firmware = trimmed(&self.controller.firmware);
        let mut revision = [b' '; 4];
        // SCSI has four characters, NVMe eight. The translation reference takes the last ones,
        // because revisions of one drive usually differ at the end.
        let tail = &firmware[firmware.len().saturating_sub(4)..];
        revision[..tail.len()].copy_from_slice(tail);
        revision
    }

    /// Unit serial number (translation reference, 6.1.3): the identifier of the namespace in groups
    /// of four digits, or serial number and namespace.
    fn serial(&self, facts: &NamespaceFacts) -> Vec<u8> {
        let mut text = Vec::new();
        if self.disk.is_some() {
            text.extend_from_slice(trimmed(&self.controller.serial));
            return printable_text(text);
        }
        let identifier: &[u8] = if facts.nguid != [0; 16] {
            &facts.nguid
        // NGUID comes first because it is globally unique, whereas a serial number is unique only
        // for one manufacturer. The namespace number separates two namespaces of one controller.
        } else if facts.eui64 != [0; 8] {
            &facts.eui64
        } else {
            text.extend_from_slice(trimmed(&self.controller.serial));
            text.push(b'_');
            hexadecimal(&mut text, &facts.nsid.to_be_bytes());
            text.push(b'.');
            return printable_text(text);
        };
        for (index, pair) in identifier.chunks(2).enumerate() {
            if index > 0 {
                text.push(b'_');
            }
            hexadecimal(&mut text, pair);
        }
        text.push(b'.');
        text
    }

    /// Designation descriptors (SPC-4, 7.8.6; translation reference, 6.1.4).
    fn identification(&self, facts: &NamespaceFacts) -> Vec<u8> {
        /// Code sets.
        const BINARY: u8 = 1;
        const ASCII: u8 = 2;
        const UTF_8: u8 = 3;
        /// Types of designators, associated with the logical unit.
        const T10_VENDOR: u8 = 1;
        const EUI_64: u8 = 2;
        const NAA: u8 = 3;
        const NAME: u8 = 8;
        let mut data = Vec::new();
        let mut name = Vec::new();
        if facts.nguid != [0; 16] {
            designator(&mut data, BINARY, EUI_64, &facts.nguid);
            name.extend_from_slice(b"eui.");
            hexadecimal(&mut name, &facts.nguid);
        }
        if facts.eui64 != [0; 8] {
            designator(&mut data, BINARY, EUI_64, &facts.eui64);
            if name.is_empty() {
                name.extend_from_slice(b"eui.");
                hexadecimal(&mut name, &facts.eui64);
            }
        }
        let naa = self.disk.as_ref().map_or([0; 8], |disk| disk.facts.naa);
        if naa != [0; 8] {
            designator(&mut data, BINARY, NAA, &naa);
            name.extend_from_slice(b"naa.");
            hexadecimal(&mut name, &naa);
        }
        if name.is_empty() && self.disk.is_none() {
            // PCI vendor, model, namespace, serial number (reference, 6.1.4.4).
            hexadecimal(&mut name, &self.controller.vendor_id.to_be_bytes());
            name.extend_from_slice(&printable(self.controller.model));
            hexadecimal(&mut name, &facts.nsid.to_be_bytes());
            name.extend_from_slice(&printable(self.controller.serial));
        }
        let mut vendor = self.vendor().to_vec();
        vendor.extend_from_slice(trimmed(&printable(self.controller.model)));
        vendor.push(b'_');
        vendor.extend_from_slice(&self.serial(facts));
        designator(&mut data, ASCII, T10_VENDOR, &vendor);
        if name.is_empty() {
            return data;
        }
        // A SCSI name string ends with a zero and is a multiple of four long (SPC-4, 7.8.6.11).
        name.push(0);
        name.resize(name.len().next_multiple_of(4), 0);
        designator(&mut data, UTF_8, NAME, &name);
        data
    }

    /// OPTIMAL TRANSFER LENGTH GRANULARITY, and OPTIMAL TRANSFER LENGTH: whole granules in one NVMe
    /// command, as longer transfers are split. Hosts want both or neither (Linux: a stripe unit
    /// without a width is invalid), except for a granule of one block, which carries no
    /// information.
    fn transfer_blocks_preferred(&self, unit: usize) -> (u16, u32) {
        let most = self.transfer_blocks_max(unit).min(self.command_blocks_max(unit));
        if let Some(disk) = &self.disk {
            let (granularity, optimal) = (disk.facts.granularity_blocks, disk.facts.optimal_blocks);
            return if optimal <= most { (granularity, optimal) } else { (0, 0) };
        }
        match u16::try_from(self.units[unit].facts.write_granularity_blocks) {
            Ok(granularity @ 0..=1) => (granularity, 0),
            Ok(granularity) if u32::from(granularity) <= most => {
                (granularity, most - most % u32::from(granularity))
            }
            _ => (0, 0),
        }
    }

    fn block_limits(&self, unit: usize) -> BlockLimitsPage {
        let facts = &self.units[unit].facts;
        let unmaps = self.unmaps();
        let (transfer_granularity, transfer_optimal) = self.transfer_blocks_preferred(unit);
        let mut page = BlockLimitsPage {
            page_code: vpd::BLOCK_LIMITS,
            page_length: 60.into(),
            transfer_blocks_max: self.transfer_blocks_max(unit).into(),
            transfer_granularity_blocks: transfer_granularity.into(),
            transfer_blocks_optimal: transfer_optimal.into(),
            ..BlockLimitsPage::default()
        };
        if self.thesis() {
            return page;
        }
        // WSNZ.
        page.flags = u8::from(self.config.write_same_blocks_max > 0);
        page.compare_and_write_blocks_max = self.compare_and_write_blocks_max(unit);
        page.write_same_blocks_max = u64::from(self.config.write_same_blocks_max).into();
        if unmaps {
            page.unmap_blocks_max = u32::MAX.into();
            page.unmap_descriptors_max = (UNMAP_DESCRIPTORS_MAX as u32).into();
            page.unmap_granularity_blocks = facts.deallocate_granularity_blocks.into();
        }
        page
    }

    fn provisioning(&self, unit: usize) -> LogicalBlockProvisioningPage {
        let bit = |set: bool, bit: u8| u8::from(set) << bit;
        let write_same = self.write_same_unmaps();
        let thin = self.units[unit].facts.thin;
        LogicalBlockProvisioningPage {
            peripheral: 0,
            page_code: vpd::PROVISIONING,
            page_length: 4.into(),
            threshold_exponent: 0,
            flags: bit(self.unmaps(), 7)
                | bit(write_same, 6)
                | bit(write_same, 5)
                | bit(self.unmapped_reads_zero(unit), 2),
            // A namespace that is not thin has room for all of its blocks: resource provisioned.
            provisioning_type: if !self.unmaps() {
                0
            } else if thin {
                2
            } else {
                1
            },
            reserved: 0,
        }
    }
}

/// A VPD page: peripheral, code, length, data.
fn paged(page: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + data.len());
    bytes.push(0);
    bytes.push(page);
    bytes.extend_from_slice(&(data.len() as u16).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// One designation descriptor (SPC-4, table 620), associated with the logical unit.
fn designator(data: &mut Vec<u8>, code_set: u8, kind: u8, designator: &[u8]) {
    data.extend_from_slice(&[code_set, kind, 0, designator.len() as u8]);
    data.extend_from_slice(designator);
}

/// Appends `bytes` as hexadecimal digits.
fn hexadecimal(text: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)]);
        text.push(DIGITS[usize::from(byte & 0xf)]);
    }
}

/// What a T10 ASCII field may hold (SPC-4, 4.3.1): anything else becomes a blank.
fn printable<const N: usize>(text: [u8; N]) -> [u8; N] {
    text.map(|byte| if (0x20..0x7f).contains(&byte) { byte } else { b' ' })
}

fn printable_text(mut text: Vec<u8>) -> Vec<u8> {
    for byte in &mut text {
        [*byte] = printable([*byte]);
    }
    text
}

/// Without blanks and zeroes at the end.
fn trimmed(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte != b' ' && byte != 0).map_or(0, |last| last + 1);
    &text[..end]
}
