//! Which part of the translator does which command.

use ssdyno_spec::nvme::nvm;
use ssdyno_spec::scsi::{AdditionalSense, SenseKey};

use crate::bytes::{u16_at, u32_at};
use crate::commands::Operation;
use crate::job::{Holds, NvmeCommand, ScsiJob, Work};
use crate::request::Call;
use crate::sense::{Checked, Sense};
use crate::target::ScsiTarget;
use crate::unit::Unit;

impl ScsiTarget {
    /// Does the command's own part; `false` when it must wait.
    pub(crate) fn perform(
        &mut self,
        job: &mut ScsiJob,
        operation: Operation,
        call: Call<'_>,
    ) -> Checked<bool> {
        let Call { unit, request, cdb } = call;
        use Operation as O;
        self.check_ready(operation)?;
        if self.asks_first(job, request, operation) {
            return Ok(true);
        }
        if let Some(holds) = self.write_kind(operation) {
            check_protection(&self.units[unit])?;
            let unit = &mut self.units[unit];
            // This prevents a lost update: a WRITE between the read and the write of an ORWRITE
            // would disappear. Plain writes run in parallel; NVMe permits overlapping writes in any
            // order.
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
            O::Write => self.write(job, call)?,
            O::WriteAndVerify => self.write_and_verify(job, call)?,
            O::Verify => self.verify(job, call)?,
            O::PreFetch => self.prefetch(unit, cdb)?,
            O::SynchronizeCache => self.synchronize(job, unit, cdb)?,
            O::CompareAndWrite => self.compare_and_write(job, call)?,
            O::OrWrite => self.or_write(job, call)?,
            O::WriteSame => self.write_same(job, call)?,
            O::Unmap => self.unmap(job, call)?,
            O::Sanitize => self.sanitize(job, call)?,
            O::GetLbaStatus => self.lba_status(job, unit, cdb)?,
            O::TestUnitReady | O::SendDiagnostic => {}
            O::RequestSense => self.request_sense(job, unit, cdb),
            O::Inquiry => self.inquiry(job, unit, cdb)?,
            O::ReportLuns => self.report_luns(job, cdb)?,
            O::ReadCapacity10 => self.read_capacity_10(job, unit, cdb)?,
            O::ReadCapacity16 => self.read_capacity_16(job, unit, cdb),
            O::ReadDefectData => defects(job, cdb)?,
            O::ModeSense => self.mode_sense(job, unit, cdb)?,
            O::ModeSelect => self.mode_select(job, call)?,
            O::LogSense => self.log_sense(job, unit, cdb)?,
            O::StartStopUnit => self.start_stop(job, cdb)?,
            O::FormatUnit => self.format_unit(job, call)?,
            O::Reserve => self.reserve(unit, request)?,
            O::Release => self.units[unit].reservations.release_legacy(Some(request.nexus)),
            O::PersistentReserveIn => self.persistent_in(job, unit, cdb),
            O::PersistentReserveOut => self.persistent_out(call)?,
            O::ReportOperationCodes => self.report_operation_codes(job, cdb)?,
            O::ReportTaskManagement => report_task_management(job, cdb),
        }
        Ok(true)
    }

    /// The part that a command that changes the medium holds while it runs.
    fn write_kind(&self, operation: Operation) -> Option<Holds> {
        use Operation as O;
        match operation {
            O::Write | O::WriteAndVerify | O::WriteSame | O::Unmap | O::FormatUnit => {
                Some(Holds::Writer)
            }
            // A controller with fused commands keeps the pair atomic itself. The exclusive lock
            // would serialise all COMPARE AND WRITE commands of a unit, although they usually
            // address different blocks.
            O::CompareAndWrite if self.controller.optional.fused_compare_write => {
                Some(Holds::Writer)
            }
            O::CompareAndWrite | O::OrWrite => Some(Holds::Exclusive),
            _ => None,
        }
    }

    /// SYNCHRONIZE CACHE (SBC-3, 5.26): the whole namespace is flushed. IMMED is allowed to end the
    /// command early; it ends when the flush has.
    fn synchronize(&mut self, job: &mut ScsiJob, unit: usize, cdb: &[u8]) -> Checked {
        // The range is checked but not used: NVMe Flush has no range. A flush of more than the
        // initiator requested is permitted, and an invalid range must fail all the same.
        self.extent(unit, cdb)?;
        if self.controller.volatile_write_cache {
            job.work = Work::Single(flush(self.units[unit].facts.nsid));
        }
        Ok(())
    }
}

/// Refuses to change a medium that is write protected.
pub(crate) fn check_protection(unit: &Unit) -> Checked {
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

/// READ DEFECT DATA (SBC-3, 5.17): the controller keeps its defects to itself; the lists are empty, in
/// whatever format but the reserved one.
fn defects(job: &mut ScsiJob, cdb: &[u8]) -> Checked {
    let ten = cdb[0] == ssdyno_spec::scsi::opcode::READ_DEFECT_DATA_10;
    let byte = if ten { 2 } else { 1 };
    let flags = cdb[usize::from(byte)] & 0x1f;
    if flags & 7 == 7 {
        return Err(Sense::cdb(byte, 2).into());
    }
    if ten {
        job.answer(&[0, flags, 0, 0], usize::from(u16_at(cdb, 7)));
    } else {
        job.answer(&[0, flags, 0, 0, 0, 0, 0, 0], u32_at(cdb, 6) as usize);
    }
    Ok(())
}

/// REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS (SPC-4, 6.36): ABORT TASK and ABORT TASK SET, LOGICAL
/// UNIT RESET, TARGET RESET; the extended form says that no timeouts are reported.
fn report_task_management(job: &mut ScsiJob, cdb: &[u8]) {
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
