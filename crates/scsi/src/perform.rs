//! Which part of the translator does which command.

use ssdyno_spec::nvme::nvm;
use ssdyno_spec::scsi::{AdditionalSense, SenseKey};

use crate::bytes::{u16_at, u32_at};
use crate::commands::Operation;
use crate::job::{After, Holds, Job, NvmeCommand, Work};
use crate::request::Request;
use crate::sense::{Refusal, Sense};
use crate::translator::Translator;
use crate::unit::Unit;

impl Translator {
    /// Does the command's own part; `false` when it must wait.
    pub(crate) fn perform(
        &mut self,
        job: &mut Job,
        unit: usize,
        request: &Request<'_>,
        operation: Operation,
        cdb: &[u8],
    ) -> Result<bool, Refusal> {
        use Operation as O;
        self.check_ready(operation)?;
        if let Some(holds) = self.write_kind(operation) {
            check_protection(&self.units[unit])?;
            let unit = &mut self.units[unit];
            if unit.exclusive || holds == Holds::Exclusive && unit.writers > 0 {
                return Ok(false);
            }
            match holds {
                Holds::Exclusive => unit.exclusive = true,
                _ => unit.writers += 1,
            }
            job.holds = holds;
        }
        match operation {
            O::Read => self.read(job, unit, cdb)?,
            O::Write => self.write(job, unit, request, cdb)?,
            O::WriteAndVerify => self.write_and_verify(job, unit, request, cdb)?,
            O::Verify => self.verify(job, unit, request, cdb)?,
            O::PreFetch => self.prefetch(unit, cdb)?,
            O::SynchronizeCache => self.synchronize(job, unit, cdb)?,
            O::CompareAndWrite => self.compare_and_write(job, unit, request, cdb)?,
            O::OrWrite => self.or_write(job, unit, request, cdb)?,
            O::WriteSame => self.write_same(job, unit, request, cdb)?,
            O::Unmap => self.unmap(job, unit, request, cdb)?,
            O::GetLbaStatus => self.lba_status(job, unit, cdb)?,
            O::TestUnitReady | O::SendDiagnostic => {}
            O::RequestSense => self.request_sense(job, unit, cdb),
            O::Inquiry => self.inquiry(job, unit, cdb)?,
            O::ReportLuns => self.report_luns(job, cdb)?,
            O::ReadCapacity10 => self.read_capacity_10(job, unit, cdb)?,
            O::ReadCapacity16 => self.read_capacity_16(job, unit, cdb),
            O::ReadDefectData => defects(job, cdb),
            O::ModeSense => self.mode_sense(job, unit, cdb)?,
            O::ModeSelect => self.mode_select(job, unit, request, cdb)?,
            O::LogSense => self.log_sense(job, unit, cdb)?,
            O::StartStopUnit => self.start_stop(job, cdb)?,
            O::FormatUnit => self.format_unit(job, unit, request, cdb)?,
            O::Reserve => self.reserve(unit, request)?,
            O::Release => self.units[unit].reservations.release_legacy(Some(request.nexus)),
            O::PersistentReserveIn => self.persistent_in(job, unit, cdb),
            O::PersistentReserveOut => self.persistent_out(unit, request, cdb)?,
            O::ReportOperationCodes => self.report_operation_codes(job, cdb)?,
            O::ReportTaskManagement => report_task_management(job, cdb),
        }
        Ok(true)
    }

    /// A stopped unit does nothing that needs the medium (SBC-3, 4.20).
    fn check_ready(&self, operation: Operation) -> Result<(), Refusal> {
        use Operation as O;
        let needs_medium = !matches!(
            operation,
            O::RequestSense
                | O::Inquiry
                | O::ReportLuns
                | O::ModeSense
                | O::ModeSelect
                | O::LogSense
                | O::StartStopUnit
                | O::SendDiagnostic
                | O::Reserve
                | O::Release
                | O::PersistentReserveIn
                | O::PersistentReserveOut
                | O::ReportOperationCodes
                | O::ReportTaskManagement
        );
        if self.stopped && needs_medium {
            return Err(not_started().into());
        }
        Ok(())
    }

    /// What a command that changes the medium holds while it runs.
    fn write_kind(&self, operation: Operation) -> Option<Holds> {
        use Operation as O;
        match operation {
            O::Write | O::WriteAndVerify | O::WriteSame | O::Unmap | O::FormatUnit => {
                Some(Holds::Writer)
            }
            O::CompareAndWrite if self.controller.optional.fused_compare_write => {
                Some(Holds::Writer)
            }
            O::CompareAndWrite | O::OrWrite => Some(Holds::Exclusive),
            _ => None,
        }
    }

    /// REQUEST SENSE (SPC-4, 6.39): a pending unit attention, or what the unit is up to.
    fn request_sense(&mut self, job: &mut Job, unit: usize, cdb: &[u8]) {
        let sense = match self.units[unit].take_attention(job.nexus) {
            Some(attention) => attention.sense(),
            None if self.stopped => not_started(),
            None => Sense::new(SenseKey::NoSense, AdditionalSense::NONE),
        };
        job.answer(sense.encode(cdb[1] & 1 == 1).as_bytes(), usize::from(cdb[4]));
    }

    /// START STOP UNIT (SBC-3, 5.25): power conditions to NVMe power states (translation reference,
    /// clause 6.11). The controller has one power state for all of its namespaces.
    fn start_stop(&mut self, job: &mut Job, cdb: &[u8]) -> Result<(), Refusal> {
        let (modifier, start) = (cdb[3] & 0xf, cdb[4] & 1 == 1);
        let deepest = self.controller.power_state_max;
        // (power state, stopped)
        let (state, stopped) = match (cdb[4] >> 4, modifier) {
            (0, 0) if start => (0, false),
            (0, 0) => (deepest, true),
            (0x1, 0) => (0, false),
            (0x2, 0..=2) => ((1 + modifier).min(deepest), false),
            (0x3, 0) => (deepest.saturating_sub(1), false),
            (0x3, 1) => (deepest, false),
            // LU_CONTROL: back to the device's own timers; it has none, so it is active.
            (0x7, 0) => (0, false),
            (0x0 | 0x1 | 0x2 | 0x3 | 0x7, _) => return Err(Sense::cdb(3, 3).into()),
            _ => return Err(Sense::cdb(4, 7).into()),
        };
        let power = NvmeCommand {
            admin: true,
            opcode: ssdyno_spec::nvme::admin::SET_FEATURES,
            dwords: [POWER_MANAGEMENT, u32::from(state), 0, 0, 0, 0],
            ..NvmeCommand::default()
        };
        let flush_first = cdb[4] & 4 == 0 && state != 0 && self.controller.volatile_write_cache;
        // One flush for all namespaces: the power state is the controller's.
        let (first, command) =
            if flush_first { (flush(u32::MAX), Some(power)) } else { (power, None) };
        job.work = Work::Single(first);
        job.after = After::Power { command, stopped };
        Ok(())
    }

    /// SYNCHRONIZE CACHE (SBC-3, 5.26): the whole namespace is flushed. IMMED is allowed to end the
    /// command early; it ends when the flush has.
    fn synchronize(&mut self, job: &mut Job, unit: usize, cdb: &[u8]) -> Result<(), Refusal> {
        self.extent(unit, cdb)?;
        if self.controller.volatile_write_cache {
            job.work = Work::Single(flush(self.units[unit].facts.nsid));
        }
        Ok(())
    }
}

/// Feature identifier of power management (base 2.0c, clause 5.27.1.2).
const POWER_MANAGEMENT: u32 = 0x02;

fn not_started() -> Sense {
    Sense::new(SenseKey::NotReady, AdditionalSense::INITIALIZING_COMMAND_REQUIRED)
}

fn check_protection(unit: &Unit) -> Result<(), Refusal> {
    let additional = if unit.facts.write_protected {
        AdditionalSense::WRITE_PROTECTED
    } else if unit.software_write_protect {
        AdditionalSense::SOFTWARE_WRITE_PROTECTED
    } else {
        return Ok(());
    };
    Err(Sense::new(SenseKey::DataProtect, additional).into())
}

/// Flush of a namespace.
pub(crate) fn flush(nsid: u32) -> NvmeCommand {
    NvmeCommand { opcode: nvm::FLUSH, nsid, ..NvmeCommand::default() }
}

/// READ DEFECT DATA (SBC-3, 5.17): the controller keeps its defects to itself; the lists are empty.
fn defects(job: &mut Job, cdb: &[u8]) {
    if cdb[0] == ssdyno_spec::scsi::opcode::READ_DEFECT_DATA_10 {
        job.answer(&[0, cdb[2] & 0x1f, 0, 0], usize::from(u16_at(cdb, 7)));
    } else {
        job.answer(&[0, cdb[1] & 0x1f, 0, 0, 0, 0, 0, 0], u32_at(cdb, 6) as usize);
    }
}

/// REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS (SPC-4, 6.36): ABORT TASK and ABORT TASK SET, LOGICAL
/// UNIT RESET, TARGET RESET; the extended form says that no timeouts are reported.
fn report_task_management(job: &mut Job, cdb: &[u8]) {
    let extended = cdb[2] & 0x80 != 0;
    let mut data = [0; 16];
    data[0] = 0xca;
    data[3] = 12;
    let length = if extended { 16 } else { 4 };
    if !extended {
        data[3] = 0;
    }
    job.answer(&data[..length], u32_at(cdb, 6) as usize);
}
