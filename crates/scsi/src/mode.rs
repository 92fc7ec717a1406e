//! MODE SENSE and MODE SELECT (SPC-4, 6.11 to 6.14; translation reference, 6.3).

use alloc::vec::Vec;

use ssdyno_spec::nvme::admin;
use ssdyno_spec::scsi::mode::{self, page_bytes};
use ssdyno_spec::scsi::{AdditionalSense, opcode};

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::job::{After, NvmeCommand, ScsiJob, Work};
use crate::pending::{Control, ModeRequest};
use crate::perform::flush;
use crate::request::Call;
use crate::sense::{Checked, Sense};
use crate::target::ScsiTarget;
use crate::unit::Attention;

/// Feature identifier of the volatile write cache (base 2.0c, clause 5.27.1.4).
const VOLATILE_WRITE_CACHE: u32 = 0x06;

/// The pages that there are, in ascending order.
const PAGES: [u8; 5] = [
    mode::READ_WRITE_ERROR_RECOVERY,
    mode::CACHING,
    mode::CONTROL,
    mode::POWER_CONDITION,
    mode::INFORMATIONAL_EXCEPTIONS,
];

impl ScsiTarget {
    /// MODE SENSE (6), (10). Whether the cache is on, the controller is asked first.
    pub(crate) fn mode_sense(&self, job: &mut ScsiJob, unit: usize, cdb: &[u8]) -> Checked {
        let ten = cdb[0] == opcode::MODE_SENSE_10;
        let control = match cdb[2] >> 6 {
            0 => Control::Current,
            1 => Control::Changeable,
            2 => Control::Default,
            _ if self.controller.optional.saveable_cache => Control::Saved,
            _ => return Err(Sense::illegal(AdditionalSense::SAVING_NOT_SUPPORTED).into()),
        };
        let (page, subpage) = (cdb[2] & 0x3f, cdb[3]);
        // Page 0 of the current values is not a page: header and block descriptor alone.
        let none = page == 0 && control == Control::Current;
        // Linux reads the write protection with page 3Fh and tries page 0 if that fails. Page 0
        // must therefore give the header with the WP bit, although it is not one of our pages.
        if page != mode::ALL_PAGES && !none && !PAGES.contains(&page) {
            return Err(Sense::cdb(2, 5).into());
        }
        // Page 0Ah with subpage FFh is the page itself: there are no subpages.
        if subpage != 0 && (subpage != mode::ALL_SUBPAGES || none) {
            return Err(Sense::cdb(3, 7).into());
        }
        let request = ModeRequest {
            unit,
            ten,
            block_descriptor: cdb[1] & 8 == 0,
            long_lba: ten && cdb[1] & 0x10 != 0,
            control,
            page,
            allocation: usize::from(if ten { u16_at(cdb, 7) } else { u16::from(cdb[4]) }),
        };
        let asks_cache = matches!(page, mode::CACHING | mode::ALL_PAGES)
            && control != Control::Changeable
            && self.controller.volatile_write_cache;
        if let Some(disk) = &self.disk {
            // By default the cache is on.
            job.dword0 = u32::from(control == Control::Default || disk.cache_on);
        }
        if !asks_cache || self.disk.is_some() {
            self.mode_pages(job, &request);
            return Ok(());
        }
        // SELECT (base 2.0c, figure 192); without it only current values can be had.
        let select = match control {
            Control::Default if self.controller.optional.feature_select => 1 << 8,
            Control::Saved => 2 << 8,
            _ => 0,
        };
        let dword10 = VOLATILE_WRITE_CACHE | select;
        job.work = Work::Single(NvmeCommand::admin(admin::GET_FEATURES, 0, dword10, 0));
        job.after = After::ModeSense(request);
        Ok(())
    }

    /// Makes the answer of MODE SENSE; bit 0 of the job's dword 0 says whether the cache is on.
    pub(crate) fn mode_pages(&self, job: &mut ScsiJob, request: &ModeRequest) {
        let unit = &self.units[request.unit];
        let protected = unit.facts.write_protected || unit.software_write_protect;
        let parameter =
            mode::DEVICE_SPECIFIC_DPOFUA | if protected { mode::DEVICE_SPECIFIC_WP } else { 0 };
        let mut data = alloc::vec![0; if request.ten { 8 } else { 4 }];
        if request.block_descriptor {
            let (blocks, bytes) = (unit.facts.blocks, unit.facts.block_bytes);
            if request.long_lba {
                data.extend_from_slice(&blocks.to_be_bytes());
                data.extend_from_slice(&[0; 4]);
                data.extend_from_slice(&bytes.to_be_bytes());
            } else {
                let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
                data.extend_from_slice(&blocks.to_be_bytes());
                // One byte reserved, three of block length.
                data.extend_from_slice(&bytes.to_be_bytes());
            }
        }
        let descriptors = data.len() - if request.ten { 8 } else { 4 };
        let cache_on = job.dword0 & 1 == 1;
        for page in PAGES
            .into_iter()
            .filter(|&p| matches!(request.page, mode::ALL_PAGES) || p == request.page)
        {
            self.mode_page(&mut data, (request.unit, request.control), page, cache_on);
        }
        if request.ten {
            let length = (data.len() - 2) as u16;
            data[..2].copy_from_slice(&length.to_be_bytes());
            data[3] = parameter;
            data[4] = u8::from(request.long_lba);
            data[6..8].copy_from_slice(&(descriptors as u16).to_be_bytes());
        } else {
            data[0] = (data.len() - 1) as u8;
            data[2] = parameter;
            data[3] = descriptors as u8;
        }
        job.answer(&data, request.allocation);
    }

    /// Appends one page.
    fn mode_page(
        &self,
        data: &mut Vec<u8>,
        (unit, control): (usize, Control),
        page: u8,
        cache_on: bool,
    ) {
        let start = data.len();
        data.resize(start + page_bytes(page), 0);
        let bytes = &mut data[start..];
        bytes[0] = page;
        bytes[1] = (bytes.len() - 2) as u8;
        let unit = &self.units[unit];
        let cache = self.controller.volatile_write_cache;
        if page == mode::CACHING && self.controller.optional.saveable_cache && cache {
            // PS: it can be saved.
            bytes[0] |= 0x80;
        }
        if control == Control::Changeable {
            match page {
                mode::CACHING if cache => bytes[2] = mode::CACHING_WCE,
                mode::CONTROL => {
                    bytes[2] = mode::CONTROL_D_SENSE;
                    bytes[4] = mode::CONTROL_SWP;
                }
                _ => {}
            }
            return;
        }
        let current = control == Control::Current;
        match page {
            // AWRE: the device moves blocks that fail.
            mode::READ_WRITE_ERROR_RECOVERY => bytes[2] = 0x80,
            mode::CACHING if cache && cache_on => bytes[2] = mode::CACHING_WCE,
            mode::CONTROL => {
                // GLTSD: nothing of the log is saved.
                bytes[2] = 0x02;
                if current && unit.descriptor_sense {
                    bytes[2] |= mode::CONTROL_D_SENSE;
                }
                // Queue algorithm modifier 1: commands may be reordered.
                bytes[3] = 0x10;
                if current && unit.software_write_protect {
                    bytes[4] = mode::CONTROL_SWP;
                }
                // Busy timeout period: not limited.
                bytes[8..10].copy_from_slice(&[0xff, 0xff]);
            }
            // MRIE 6: on request, as REQUEST SENSE and the log page tell.
            mode::INFORMATIONAL_EXCEPTIONS => bytes[3] = 0x06,
            _ => {}
        }
    }

    /// MODE SELECT (6), (10).
    pub(crate) fn mode_select(&mut self, job: &mut ScsiJob, call: Call<'_>) -> Checked {
        let Call { unit, request, cdb } = call;
        let ten = cdb[0] == opcode::MODE_SELECT_10;
        let length = usize::from(if ten { u16_at(cdb, 7) } else { u16::from(cdb[4]) });
        let (page_format, save) = (cdb[1] & 0x10 != 0, cdb[1] & 1 != 0);
        if save && !self.controller.optional.saveable_cache {
            return Err(Sense::cdb(1, 0).into());
        }
        if length == 0 {
            return Ok(());
        }
        if !page_format {
            return Err(Sense::cdb(1, 4).into());
        }
        let wrong_length = Sense::illegal(AdditionalSense::PARAMETER_LIST_LENGTH);
        let list = request.data_out.get(..length).ok_or(wrong_length)?;
        // SPC-4 requires that a MODE SELECT with an error changes nothing. The list is therefore
        // parsed to its end first; a change page by page would leave half of it in effect.
        let selected = self.parse_mode_list(unit, list, ten, wrong_length)?;
        self.apply_mode(job, unit, &selected, save);
        Ok(())
    }

    /// Reads the whole list before anything is changed.
    fn parse_mode_list(
        &self,
        unit: usize,
        list: &[u8],
        ten: bool,
        wrong_length: Sense,
    ) -> Checked<Selected> {
        let header = if ten { 8 } else { 4 };
        if list.len() < header {
            return Err(wrong_length.into());
        }
        // MEDIUM TYPE is zero for direct access block devices (SBC-3, 6.4.1).
        let medium = if ten { 2 } else { 1 };
        if list[medium] != 0 {
            return Err(Sense::parameter(medium).into());
        }
        let descriptor = usize::from(if ten { u16_at(list, 6) } else { u16::from(list[3]) });
        let long_lba = ten && list[4] & 1 != 0;
        let end = header + descriptor;
        let block = list.get(header..end).ok_or(wrong_length)?;
        let mut selected = Selected::default();
        match (descriptor, long_lba) {
            (0, _) => {}
            (8, false) => {
                let blocks = u32_at(block, 0);
                let all = if blocks == u32::MAX { u64::MAX } else { u64::from(blocks) };
                let bytes = u32_at(block, 4) & 0xff_ffff;
                selected.format = self.select_format(unit, all, bytes, [header, header + 5])?;
            }
            (16, true) => {
                let (blocks, bytes) = (u64_at(block, 0), u32_at(block, 12));
                selected.format = self.select_format(unit, blocks, bytes, [header, header + 12])?;
            }
            _ => return Err(Sense::parameter(if ten { 6 } else { 3 }).into()),
        }
        let mut at = end;
        while at < list.len() {
            let page = list[at] & 0x3f;
            let length = page_bytes(page);
            // Bit 6: a subpage; this target has none.
            if length == 0 || list[at] & 0x40 != 0 {
                return Err(Sense::parameter(at).into());
            }
            let bytes = list.get(at..at + length).ok_or(wrong_length)?;
            self.select_page(unit, page, bytes, at, &mut selected)?;
            at += length;
        }
        Ok(selected)
    }

    /// The format of a block descriptor, whose two fields are `at` these bytes of the list: the number
    /// of blocks cannot be chosen.
    fn select_format(
        &self,
        unit: usize,
        blocks: u64,
        block_bytes: u32,
        at: [usize; 2],
    ) -> Checked<Option<u8>> {
        let facts = &self.units[unit].facts;
        let same = block_bytes == facts.block_bytes;
        let reported = facts.blocks.min(u64::from(u32::MAX));
        // Zero and all ones: as it is, or as many as there can be (SBC-3, 6.4.2.2).
        let free = blocks == 0 || blocks == u64::MAX;
        if !free && !(same && (blocks == facts.blocks || blocks == reported)) {
            return Err(Sense::parameter(at[0]).into());
        }
        if same || block_bytes == 0 {
            return Ok(None);
        }
        let format = facts.formats.iter().flatten().find(|(_, bytes)| *bytes == block_bytes);
        let Some(&(number, _)) = format else { return Err(Sense::parameter(at[1]).into()) };
        Ok(Some(number))
    }

    /// Checks one page: bits that cannot be changed must be as MODE SENSE tells them (SPC-4, 6.11).
    fn select_page(
        &self,
        unit: usize,
        page: u8,
        bytes: &[u8],
        at: usize,
        selected: &mut Selected,
    ) -> Checked {
        let (mut current, mut mask) = (Vec::new(), Vec::new());
        self.mode_page(&mut current, (unit, Control::Current), page, false);
        // The mask comes from the function that answers MODE SENSE. A separate table of changeable
        // bits could disagree with the values that the initiator has read.
        self.mode_page(&mut mask, (unit, Control::Changeable), page, false);
        if bytes[1] != current[1] {
            return Err(Sense::parameter(at + 1).into());
        }
        for index in 2..bytes.len() {
            if (bytes[index] ^ current[index]) & !mask[index] != 0 {
                return Err(Sense::parameter(at + index).into());
            }
        }
        match page {
            mode::CACHING if mask[2] != 0 => {
                selected.cache = Some(bytes[2] & mode::CACHING_WCE != 0);
            }
            mode::CONTROL => {
                selected.control = Some((
                    bytes[2] & mode::CONTROL_D_SENSE != 0,
                    bytes[4] & mode::CONTROL_SWP != 0,
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_mode(&mut self, job: &mut ScsiJob, unit: usize, selected: &Selected, save: bool) {
        let target = &mut self.units[unit];
        let mut changed = false;
        if let Some((descriptor_sense, software_write_protect)) = selected.control {
            changed = target.descriptor_sense != descriptor_sense
                || target.software_write_protect != software_write_protect;
            target.descriptor_sense = descriptor_sense;
            target.software_write_protect = software_write_protect;
        }
        if selected.format.is_some() {
            target.next_format = selected.format;
        }
        if changed {
            target.attend_others(Some(job.nexus), Attention::ModeParametersChanged);
        }
        if let (Some(on), Some(disk)) = (selected.cache, &mut self.disk) {
            // SPC-4 informs other initiators only about a change. A host that writes the same value
            // at every boot would otherwise raise attentions on all other hosts.
            if disk.cache_on != on {
                disk.cache_on = on;
                job.after = After::CacheSelected;
                if !on {
                    // The data in the cache would stay there.
                    job.work = Work::Single(flush(1));
                }
            }
            return;
        }
        if let Some(on) = selected.cache {
            // As it was, it is nobody's news: the controller is asked first.
            let ask = NvmeCommand::admin(admin::GET_FEATURES, 0, VOLATILE_WRITE_CACHE, 0);
            job.work = Work::Single(ask);
            job.after = After::SelectCache { on, save };
        }
    }

    /// Switches the cache; bit 0 of the job's dword 0 says whether it is on.
    pub(crate) fn select_cache(job: &mut ScsiJob, on: bool, save: bool) {
        let differs = (job.dword0 & 1 == 1) != on;
        if !differs && !save {
            return;
        }
        // SV: bit 31 (base 2.0c, figure 317).
        let dword10 = VOLATILE_WRITE_CACHE | u32::from(save) << 31;
        job.work = Work::Single(NvmeCommand::admin(admin::SET_FEATURES, 0, dword10, on.into()));
        if differs {
            job.after = After::CacheSelected;
        }
    }

    /// The cache is the controller's: all units have another caching page now.
    pub(crate) fn cache_selected(&mut self, job: &ScsiJob) {
        for unit in &mut self.units {
            unit.attend_others(Some(job.nexus), Attention::ModeParametersChanged);
        }
    }
}

/// The request of a MODE SELECT.
#[derive(Clone, Copy, Debug, Default)]
struct Selected {
    cache: Option<bool>,
    /// Descriptor sense, software write protect.
    control: Option<(bool, bool)>,
    /// Number of the block format.
    format: Option<u8>,
}
