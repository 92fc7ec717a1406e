//! SANITIZE (SBC-4, 4.11 and 5.30), to NVMe Sanitize, and what its operation means for other commands.
//!
//! NVMe sanitizes the whole subsystem, SCSI one logical unit: SANITIZE is there only where there is one unit.
//!
//! | service action | NVMe (base 2.0c, 5.24) |
//! |---|---|
//! | OVERWRITE | Overwrite without deallocation: blocks read as the pattern afterwards |
//! | BLOCK ERASE, CRYPTOGRAPHIC ERASE | the same, with deallocation: blocks are unmapped, and can be read |
//! | EXIT FAILURE MODE | Exit Failure Mode |
//!
//! The pattern of NVMe has 32 bits: one that does not repeat every four bytes is refused, and so are more than 16
//! passes. The progress of the operation is in the sanitize log page. The translator reads it while it waits for the
//! end (IMMED = 0), for REQUEST SENSE, and before commands that do nothing on the medium and would otherwise succeed.
//! The controller itself refuses those that do.

use ssdyno_spec::nvme::{NvmeStatus, SanitizeLog, admin, page, sanitize};
use ssdyno_spec::scsi::{AdditionalSense, BlockStatusDescriptor, SenseKey, sanitize_action};
use zerocopy::{FromBytes, IntoBytes};

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::commands::{Found, Operation};
use crate::job::{After, NvmeCommand, ScsiJob, Work};
use crate::pending::{SenseRequest, Step};
use crate::perform::check_protection;
use crate::request::{Call, ScsiRequest, lun_field};
use crate::sense::{Checked, Sense};
use crate::target::ScsiTarget;

/// Size of the sanitize log page.
const LOG_BYTES: usize = size_of::<SanitizeLog>();
/// The least and the most time between two looks at it, in milliseconds.
const WAIT_MS: core::ops::RangeInclusive<u32> = 10..=60_000;
/// In byte 1 of the CDB.
const IMMEDIATE: u8 = 0x80;
const UNRESTRICTED_EXIT: u8 = 0x20;
/// Bytes of the parameter list of OVERWRITE before the pattern.
const HEADER: usize = 4;

/// Asks for the log page `wait_ms` later, then goes on with `step`.
fn ask(job: &mut ScsiJob, step: Step, wait_ms: u32) {
    let command = job.get_log_page(page::SANITIZE, LOG_BYTES);
    job.work = Work::Single(NvmeCommand { wait_ms, ..command });
    job.after = After::Sanitize(step);
}

/// Whether the medium is being, or could not be, sanitized.
fn trouble(log: &SanitizeLog) -> Result<(), Sense> {
    match log.status.get() & SanitizeLog::STATUS {
        SanitizeLog::IN_PROGRESS => {
            let busy = Sense::new(SenseKey::NotReady, AdditionalSense::SANITIZE_IN_PROGRESS);
            Err(busy.with_progress(log.progress.get()))
        }
        SanitizeLog::FAILED => {
            Err(Sense::new(SenseKey::MediumError, AdditionalSense::SANITIZE_FAILED))
        }
        _ => Ok(()),
    }
}

/// How long to wait before the next look at the log, `waited_ms` after the beginning.
fn next_wait(waited_ms: u32, progress: u16) -> u32 {
    let (waited, done) = (u64::from(waited_ms), u64::from(progress));
    // The wait is the linear estimate of the remaining time: waited x (1 - progress) / progress.
    // Without progress the wait doubles. A fixed short interval would load the admin queue for
    // hours.
    let left = (waited * (0x1_0000 - done)).checked_div(done).unwrap_or(waited);
    let (least, most) = (*WAIT_MS.start(), *WAIT_MS.end());
    left.clamp(least.into(), most.into()) as u32
}

/// SANITIZE sent with parameters: count and pattern of the overwrite, as NVMe has them.
fn overwrite(list: &[u8], block_bytes: u32) -> Checked<(u32, u32)> {
    let length = u16_at(list, 2);
    let pattern = &list[HEADER..];
    if length == 0 || u32::from(length) > block_bytes || usize::from(length) > pattern.len() {
        return Err(Sense::parameter(2).into());
    }
    let pattern = &pattern[..usize::from(length)];
    // TEST: vendor specific but for 0.
    let (invert, test, count) = (list[0] & 0x80 != 0, list[0] & 0x60, u32::from(list[0] & 0x1f));
    if test != 0 || !(1..=16).contains(&count) {
        return Err(Sense::parameter(0).into());
    }
    // Over and over in each block: the first four bytes are the pattern of NVMe if they repeat so.
    let at = |byte: usize| pattern[byte % pattern.len()];
    let word = [at(0), at(1), at(2), at(3)];
    if (0..block_bytes as usize).any(|byte| at(byte) != word[byte % 4]) {
        return Err(Sense::parameter(HEADER).into());
    }
    let mut word = u32::from_le_bytes(word);
    // OWPASS has four bits, and 0 means 16 passes. The mask therefore maps 16 to 0, and the check
    // above excludes a count of 0.
    let mut passes = (count & 0xf) << sanitize::PASSES_SHIFT;
    if invert {
        passes |= sanitize::INVERT;
        // In SCSI the first pass has the pattern as it is; in NVMe the last pass has it.
        if count % 2 == 0 {
            word = !word;
        }
    }
    Ok((passes | sanitize::OVERWRITE | sanitize::NO_DEALLOCATION, word))
}

impl ScsiTarget {
    /// Whether service action `action` of SANITIZE is there.
    pub(crate) fn sanitizes(&self, action: u8) -> bool {
        let optional = &self.controller.optional;
        let there = match action {
            sanitize_action::OVERWRITE => optional.sanitize_overwrite,
            sanitize_action::BLOCK_ERASE => optional.sanitize_block_erase,
            sanitize_action::CRYPTOGRAPHIC_ERASE => optional.sanitize_crypto_erase,
            _ => optional.sanitizes(),
        };
        // NVMe Sanitize erases all namespaces of the subsystem. With two units, one initiator could
        // destroy the data of a unit to which it has no access.
        there && self.units.len() == 1 && !self.thesis()
    }

    /// SANITIZE.
    pub(crate) fn sanitize(&mut self, job: &mut ScsiJob, call: Call<'_>) -> Checked {
        let Call { unit, request, cdb } = call;
        let (action, length) = (cdb[1] & 0x1f, usize::from(u16_at(cdb, 7)));
        let block_bytes = self.units[unit].facts.block_bytes;
        let lengths = match action {
            sanitize_action::OVERWRITE => HEADER + 1..=HEADER + block_bytes as usize,
            _ => 0..=0,
        };
        if !lengths.contains(&length) {
            return Err(Sense::cdb(7, 7).into());
        }
        if action == sanitize_action::EXIT_FAILURE_MODE {
            self.send_sanitize(job, sanitize::EXIT_FAILURE_MODE, 0, Step::Left);
            return Ok(());
        }
        // EXIT FAILURE MODE is excluded above: it changes no data, and a failed sanitize on a
        // write-protected unit could otherwise never be left.
        check_protection(&self.units[unit])?;
        let (mut dword10, pattern) = match action {
            sanitize_action::OVERWRITE => {
                let short = Sense::illegal(AdditionalSense::PARAMETER_LIST_LENGTH);
                overwrite(request.data_out.get(..length).ok_or(short)?, block_bytes)?
            }
            sanitize_action::BLOCK_ERASE => (sanitize::BLOCK_ERASE, 0),
            _ => (sanitize::CRYPTO_ERASE, 0),
        };
        if cdb[1] & UNRESTRICTED_EXIT != 0 {
            dword10 |= sanitize::UNRESTRICTED_EXIT;
        }
        let immediate = cdb[1] & IMMEDIATE != 0;
        self.send_sanitize(job, dword10, pattern, Step::Begun { immediate });
        Ok(())
    }

    fn send_sanitize(&self, job: &mut ScsiJob, dword10: u32, pattern: u32, step: Step) {
        job.work = Work::Single(NvmeCommand::admin(admin::SANITIZE, 0, dword10, pattern));
        job.after = After::Sanitize(step);
    }

    /// True if `request` must wait until the sanitize state of the medium is known: a sanitize operation may be active
    /// as far as this translator knows, and the controller would not refuse the command.
    pub(crate) fn asks_first(
        &mut self,
        job: &mut ScsiJob,
        request: &ScsiRequest<'_>,
        operation: Operation,
    ) -> bool {
        use Operation as O;
        let refused = matches!(
            operation,
            O::TestUnitReady
                | O::ReadCapacity10
                | O::ReadCapacity16
                | O::StartStopUnit
                | O::SendDiagnostic
                | O::ModeSelect
                | O::PreFetch
                | O::SynchronizeCache
                | O::ReadDefectData
                | O::Reserve
                | O::Release
                | O::PersistentReserveIn
                | O::PersistentReserveOut
        );
        if !self.sanitizing || !refused {
            return false;
        }
        // The data of the transport are valid only during `begin`. The command continues after the
        // log page has arrived, so it needs its own copy of CDB and parameters.
        job.kept_cdb.clear();
        job.kept_cdb.extend_from_slice(request.cdb);
        job.kept_data.clear();
        job.kept_data.extend_from_slice(request.data_out);
        ask(job, Step::Perform, 0);
        true
    }

    /// Has the log page fetched for REQUEST SENSE; false where there is no reason to.
    pub(crate) fn senses_sanitize(&self, job: &mut ScsiJob, request: SenseRequest) -> bool {
        if self.sanitizing {
            ask(job, Step::Sense(request), 0);
        }
        self.sanitizing
    }

    /// GET LBA STATUS (SBC-3, 5.4). NVMe reports the state of all blocks only: they are unmapped if a sanitize
    /// operation has deallocated them and nothing was written since.
    pub(crate) fn lba_status(&self, job: &mut ScsiJob, unit: usize, cdb: &[u8]) -> Checked {
        let (lba, allocation) = (u64_at(cdb, 2), u32_at(cdb, 10));
        if lba >= self.units[unit].facts.blocks {
            return Err(Sense::out_of_range().into());
        }
        if self.controller.optional.sanitizes() && self.unmaps() {
            ask(job, Step::Blocks { lba, allocation }, 0);
        } else {
            self.tell_blocks(job, unit, (lba, allocation), false);
        }
        Ok(())
    }

    fn tell_blocks(&self, job: &mut ScsiJob, unit: usize, (lba, most): (u64, u32), unmapped: bool) {
        let left = self.units[unit].facts.blocks.saturating_sub(lba);
        let descriptor = BlockStatusDescriptor {
            lba: lba.into(),
            blocks: u32::try_from(left).unwrap_or(u32::MAX).into(),
            // Otherwise mapped, or unknown.
            provisioning: u8::from(unmapped),
            reserved: [0; 3],
        };
        let mut data = [0; 24];
        // PARAMETER DATA LENGTH counts what follows it.
        data[3] = 20;
        data[8..].copy_from_slice(descriptor.as_bytes());
        job.answer(&data, most as usize);
    }

    /// The controller has refused the NVMe command of `job` because of a sanitize operation: the refusal
    /// tells how far that is. True where that is still to be asked.
    pub(crate) fn refused_for_sanitize(&mut self, job: &mut ScsiJob, status: NvmeStatus) -> bool {
        let busy = status.kind() == NvmeStatus::SANITIZE_IN_PROGRESS;
        // The check of `Step::Refuse` prevents an endless loop: a controller that also refuses Get
        // Log Page while it sanitizes would make this job ask for the log page again and again.
        if busy && !matches!(job.after, After::Sanitize(Step::Refuse)) {
            self.sanitizing = true;
            job.failed = None;
            job.buffer_in_bytes = 0;
            ask(job, Step::Refuse, 0);
            return true;
        }
        false
    }

    /// What a failure of NVMe Sanitize itself means, where it is not what its status says: a failure in
    /// restricted mode can neither be left nor be mended in unrestricted mode (SBC-4, 4.11.4).
    pub(crate) fn sanitize_refusal(job: &ScsiJob, status: NvmeStatus) -> Option<Sense> {
        let locked = status.kind() == NvmeStatus::SANITIZE_FAILED;
        match job.after {
            After::Sanitize(Step::Left) if locked => Some(Sense::cdb(1, 4)),
            After::Sanitize(Step::Begun { .. }) if locked => Some(Sense::cdb(1, 5)),
            _ => None,
        }
    }

    /// The log page in the scratch; what it says of the operation is known from now on.
    fn look(&mut self, job: &ScsiJob) -> Result<SanitizeLog, Sense> {
        let nothing = Sense::new(SenseKey::HardwareError, AdditionalSense::INTERNAL_TARGET_FAILURE);
        let log = SanitizeLog::read_from_prefix(&job.scratch).map_err(|_| nothing)?.0;
        self.counts.bytes_copied += LOG_BYTES as u64;
        self.sanitizing = trouble(&log).is_err();
        Ok(log)
    }

    /// Goes on after the command before.
    pub(crate) fn sanitize_step(&mut self, job: &mut ScsiJob, step: Step) -> Checked {
        match step {
            Step::Begun { immediate } => {
                self.sanitizing = true;
                if !immediate {
                    let waited_ms = *WAIT_MS.start();
                    ask(job, Step::Wait { waited_ms }, waited_ms);
                }
                return Ok(());
            }
            Step::Left => {
                self.sanitizing = false;
                return Ok(());
            }
            _ => {}
        }
        let log = self.look(job)?;
        match (step, trouble(&log)) {
            (Step::Wait { waited_ms }, Err(busy)) if busy.key == SenseKey::NotReady => {
                let wait_ms = next_wait(waited_ms, log.progress.get());
                let waited_ms = waited_ms.saturating_add(wait_ms);
                ask(job, Step::Wait { waited_ms }, wait_ms);
            }
            (Step::Sense(request), trouble) => match trouble.err() {
                Some(sense) => request.answer(job, sense),
                None => request.ask_for_health(job),
            },
            (_, Err(trouble)) => return Err(trouble.into()),
            (Step::Perform, Ok(())) => self.perform_kept(job)?,
            (Step::Blocks { lba, allocation }, Ok(())) => {
                let Some(unit) = job.unit else { return Ok(()) };
                self.tell_blocks(job, unit, (lba, allocation), is_unmapped(&log));
            }
            // It has ended meanwhile: the initiator may try again.
            (Step::Refuse, Ok(())) => {
                return Err(Sense::new(SenseKey::AbortedCommand, AdditionalSense::NONE).into());
            }
            _ => {}
        }
        Ok(())
    }

    /// Does the command that had to wait.
    fn perform_kept(&mut self, job: &mut ScsiJob) -> Checked {
        let (cdb, data) = (core::mem::take(&mut job.kept_cdb), core::mem::take(&mut job.kept_data));
        let (Some(unit), Found::Command(command)) = (job.unit, self.find(&cdb)) else {
            return Ok(());
        };
        let request = ScsiRequest {
            nexus: job.nexus,
            lun: lun_field(self.units[unit].number()),
            cdb: &cdb,
            data_out_bytes: data.len() as u64,
            data_out: &data,
            deleted: false,
        };
        // The stored requests do not wait for one another.
        let call = Call { unit, request: &request, cdb: &cdb[..command.usage.len()] };
        self.perform(job, command.operation, call).map(|_| ())
    }
}

/// Whether all blocks are deallocated since the last sanitize operation.
fn is_unmapped(log: &SanitizeLog) -> bool {
    let status = log.status.get();
    let deallocated = match status & SanitizeLog::STATUS {
        SanitizeLog::SANITIZED => log.dword10.get() & sanitize::NO_DEALLOCATION == 0,
        SanitizeLog::DEALLOCATED => true,
        _ => false,
    };
    deallocated && status & SanitizeLog::ERASED != 0
}
