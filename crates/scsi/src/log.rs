//! LOG SENSE (SPC-4, 6.8 and 7.3; translation reference, 6.2): pages made of the SMART log.

use alloc::vec::Vec;

use ssdyno_spec::nvme::page;
use ssdyno_spec::scsi::{AdditionalSense, mode::log};

use crate::bytes::u16_at;
use crate::job::{After, NvmeCommand, ScsiJob, Work};
use crate::pending::LogRequest;
use crate::sense::{Checked, Sense};
use crate::target::ScsiTarget;

/// The pages of a controller, in ascending order.
const PAGES: [u8; 5] = [
    log::SUPPORTED,
    log::TEMPERATURE,
    log::START_STOP,
    log::SOLID_STATE_MEDIA,
    log::INFORMATIONAL_EXCEPTIONS,
];

/// Bytes of the log of SMART and health information (base 2.0c, clause 5.16.1.3).
const SMART_BYTES: usize = 512;

/// A temperature that is not known (SPC-4, 7.3.21).
const UNKNOWN_CELSIUS: u8 = 0xff;

impl ScsiTarget {
    /// LOG SENSE.
    pub(crate) fn log_sense(&mut self, job: &mut ScsiJob, unit: usize, cdb: &[u8]) -> Checked {
        let (page, subpage) = (cdb[2] & 0x3f, cdb[3]);
        // PC: only current cumulative values.
        if cdb[2] >> 6 != 1 {
            return Err(Sense::cdb(2, 7).into());
        }
        if !self.log_pages().contains(&page) {
            return Err(Sense::cdb(2, 5).into());
        }
        let allocation = usize::from(u16_at(cdb, 7));
        if page == log::SUPPORTED {
            return self.supported_logs(job, subpage, allocation);
        }
        if subpage != 0 {
            return Err(Sense::cdb(3, 7).into());
        }
        let first_parameter = u16_at(cdb, 5);
        if first_parameter > last_parameter(page) {
            return Err(Sense::cdb(5, 7).into());
        }
        job.unit = Some(unit);
        let request = LogRequest { page, first_parameter, allocation };
        let health_log = ScsiTarget::health_log(job);
        if self.disk.is_some() {
            // A block device does not report its health: the log is empty.
            self.log_page(job, &request);
            return Ok(());
        }
        job.work = Work::Single(health_log);
        job.after = After::Log(request);
        Ok(())
    }

    /// The pages that there are, in ascending order.
    fn log_pages(&self) -> &'static [u8] {
        match self.disk {
            Some(_) => &[log::SUPPORTED, log::TEMPERATURE, log::INFORMATIONAL_EXCEPTIONS],
            None => &PAGES,
        }
    }

    /// Get Log Page of the health log into the scratch of `job`.
    pub(crate) fn health_log(job: &mut ScsiJob) -> NvmeCommand {
        job.get_log_page(page::SMART, SMART_BYTES)
    }

    fn supported_logs(&self, job: &mut ScsiJob, subpage: u8, allocation: usize) -> Checked {
        let mut data = Vec::new();
        let pages = self.log_pages();
        match subpage {
            0 => {
                data.extend_from_slice(&[0, 0, 0, pages.len() as u8]);
                data.extend_from_slice(pages);
            }
            0xff => {
                // SPF; page and subpage pairs.
                data.extend_from_slice(&[0x40, 0xff, 0, 2 * (pages.len() as u8 + 1)]);
                data.extend_from_slice(&[0, 0, 0, 0xff]);
                for page in &pages[1..] {
                    data.extend_from_slice(&[*page, 0]);
                }
            }
            _ => return Err(Sense::cdb(3, 7).into()),
        }
        job.answer(&data, allocation);
        Ok(())
    }

    /// Makes the page from the SMART log in the scratch (base 2.0c, figure 208).
    pub(crate) fn log_page(&mut self, job: &mut ScsiJob, request: &LogRequest) {
        self.counts.bytes_copied += SMART_BYTES as u64;
        let smart = &job.scratch[..SMART_BYTES];
        let predicted = predicts_failure(smart);
        let celsius = celsius(u16::from_le_bytes([smart[1], smart[2]]));
        let used_percent = smart[5];
        let cycles = u128::from_le_bytes(crate::facts::array(&smart[112..128]));
        let cycles = u32::try_from(cycles).unwrap_or(u32::MAX);
        let mut data = alloc::vec![request.page, 0, 0, 0];
        let mut parameter = |code: u16, value: &[u8]| {
            if code >= request.first_parameter {
                data.extend_from_slice(&code.to_be_bytes());
                // Format and linking: 01b an ASCII list, as the dates are; 11b a binary one (SPC-4,
                // 7.3.2.2.2).
                let text = request.page == log::START_STOP && code <= 2;
                data.extend_from_slice(&[if text { 0x01 } else { 0x03 }, value.len() as u8]);
                data.extend_from_slice(value);
            }
        };
        match request.page {
            log::TEMPERATURE => {
                parameter(0, &[0, celsius]);
                // The reference temperature is not known.
                parameter(1, &[0, UNKNOWN_CELSIUS]);
            }
            log::START_STOP => {
                // Dates of manufacture and accounting are not known: blanks.
                parameter(1, b"      ");
                parameter(2, b"      ");
                parameter(3, &u32::MAX.to_be_bytes());
                parameter(4, &cycles.to_be_bytes());
            }
            log::SOLID_STATE_MEDIA => parameter(1, &[0, 0, 0, used_percent]),
            _ => {
                let additional = if predicted {
                    AdditionalSense::FAILURE_PREDICTION
                } else {
                    AdditionalSense::NONE
                };
                parameter(0, &[additional.code(), additional.qualifier(), celsius, 0]);
            }
        }
        let length = (data.len() - 4) as u16;
        data[2..4].copy_from_slice(&length.to_be_bytes());
        job.answer(&data, request.allocation);
    }
}

/// The largest parameter code of a page: none may be asked for behind it (SPC-4, 6.8).
fn last_parameter(page: u8) -> u16 {
    match page {
        log::TEMPERATURE | log::SOLID_STATE_MEDIA => 1,
        log::START_STOP => 4,
        _ => 0,
    }
}

/// Whether the health log (base 2.0c, figure 208) predicts a failure: spare low, degraded, read only, or
/// the backup of the volatile memory failed. Heat does not.
pub(crate) fn predicts_failure(smart: &[u8]) -> bool {
    smart.first().is_some_and(|warning| warning & 0b1_1101 != 0)
}

/// From kelvin, as far as a byte goes; SMART reports 0 for an unknown value.
fn celsius(kelvin: u16) -> u8 {
    if kelvin == 0 { UNKNOWN_CELSIUS } else { kelvin.saturating_sub(273).min(0xfe) as u8 }
}
