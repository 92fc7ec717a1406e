//! What every SCSI target does, whatever its units are made of: nexuses, tasks, unit attentions, and the
//! way of a command from its CDB to its status.

use alloc::vec::Vec;

use ssdyno_spec::nvme::NvmeStatus;
use ssdyno_spec::scsi::{AdditionalSense, SenseKey, status};

use crate::Nexus;
use crate::commands::{self, Access, Command, Found, Operation};
use crate::facts::{CommandSet, ControllerFacts, TranslatorConfig};
use crate::initiator::Indirections;
use crate::job::{After, Holds, ScsiJob, Work};
use crate::pending::Condition;
use crate::request::{Call, ScsiRequest, lun_number};
use crate::sense::{Checked, Refusal, Sense};
use crate::server::Disk;
use crate::status::translate;
use crate::unit::Unit;

/// TransportID of [`Nexus::LOCAL`]: no protocol (SPC-4, table 530).
const LOCAL_TRANSPORT_ID: [u8; 24] =
    [0x0f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// How far a command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum JobProgress {
    /// Submit all that [`ScsiJob::next_command`] has, and report each completion.
    Pending,
    /// The job holds status, sense data and data-in.
    Done,
    /// Another command must end first (an ORWRITE, or a COMPARE AND WRITE without fused commands,
    /// conflicts with all writes): begin again after the next command of the unit has ended.
    Blocked,
    /// The command was aborted by a task management function or another nexus: no answer is sent.
    Aborted,
}

/// A SCSI target with its logical units: what [`Translator`](crate::Translator) and
/// [`DeviceServer`](crate::DeviceServer) have in common.
///
/// Passive: it holds no clock, submits nothing and waits for nothing. The caller owes: one [`ScsiJob`]
/// for each command, driven from [`begin`](ScsiTarget::begin) until `Done` or `Aborted`; every command
/// of the job submitted and its completion reported; no command of the job left out.
#[derive(Debug)]
pub struct ScsiTarget {
    pub(crate) controller: ControllerFacts,
    pub(crate) config: TranslatorConfig,
    /// The properties of a unit that is not a namespace; `None`: all are namespaces.
    pub(crate) disk: Option<Disk>,
    /// By LUN.
    pub(crate) units: Vec<Unit>,
    /// TransportIDs, by nexus.
    pub(crate) nexuses: Vec<Vec<u8>>,
    /// The effect of START STOP UNIT.
    pub(crate) condition: Condition,
    /// A sanitize operation was in progress, or had failed, when the controller was last asked.
    pub(crate) sanitizing: bool,
    pub(crate) counts: Indirections,
}

impl ScsiTarget {
    /// One with these units, which are in order of their LUNs; [`Nexus::LOCAL`] is there.
    pub(crate) fn new(
        controller: ControllerFacts,
        disk: Option<Disk>,
        units: Vec<Unit>,
        config: TranslatorConfig,
    ) -> ScsiTarget {
        let mut target = ScsiTarget {
            controller,
            config,
            disk,
            units,
            nexuses: Vec::new(),
            condition: Condition::Active,
            sanitizing: false,
            counts: Indirections::default(),
        };
        target.attach(&LOCAL_TRANSPORT_ID);
        target
    }

    /// The nexus of an initiator port that logs in, named by its TransportID (SPC-4, 7.6.4). The
    /// same TransportID gives the same nexus, with its registrations. `None` when all 65536 are in
    /// use.
    pub fn attach(&mut self, transport_id: &[u8]) -> Option<Nexus> {
        // SPC-4 ties registrations to the initiator port, not to a connection. An initiator that
        // logs in again must find its persistent reservation, otherwise a cluster loses its fence
        // after a network failure.
        if let Some(known) = self.nexuses.iter().position(|id| id == transport_id) {
            return Some(Nexus(known as u16));
        }
        let nexus = Nexus(u16::try_from(self.nexuses.len()).ok()?);
        self.nexuses.push(transport_id.to_vec());
        for unit in &mut self.units {
            unit.add_nexus(self.config.power_on_attention);
        }
        Some(nexus)
    }

    /// The nexus is gone: logged out, or the connection is lost (SAM-5, 6.3.4). Its commands end as
    /// [`JobProgress::Aborted`].
    pub fn nexus_lost(&mut self, nexus: Nexus) {
        for unit in self.units.iter_mut().filter(|_| nexus.index() < self.nexuses.len()) {
            unit.nexus_lost(nexus);
        }
    }

    /// ABORT TASK SET (SAM-5, 7.3). `false`: there is no such logical unit.
    pub fn abort_task_set(&mut self, nexus: Nexus, lun: u64) -> bool {
        let unit = self.unit_index(lun).filter(|_| nexus.index() < self.nexuses.len());
        if let Some(unit) = unit {
            self.units[unit].abort(nexus);
        }
        unit.is_some()
    }

    /// LOGICAL UNIT RESET (SAM-5, 7.7). `false`: there is no such logical unit.
    pub fn logical_unit_reset(&mut self, lun: u64) -> bool {
        let unit = self.unit_index(lun);
        if let Some(unit) = unit {
            self.units[unit].reset();
        }
        unit.is_some()
    }

    /// Target reset: every logical unit is reset.
    pub fn target_reset(&mut self) {
        self.units.iter_mut().for_each(Unit::reset);
    }

    /// Counters of what the indirection does (S1-51).
    pub fn counts(&self) -> Indirections {
        self.counts
    }

    /// Begins a command. The job may be one that is done; what it held is forgotten.
    ///
    /// If the initiator sends less data than the CDB of a WRITE requires, the whole blocks that
    /// arrived are written; a part of a block is refused with INVALID FIELD IN COMMAND INFORMATION
    /// UNIT.
    pub fn begin(&mut self, job: &mut ScsiJob, request: &ScsiRequest<'_>) -> JobProgress {
        debug_assert_eq!(job.outstanding, 0, "the job's last command has not ended");
        job.reset(request.nexus);
        if request.deleted {
            self.counts.cdbs += 1;
            return JobProgress::Done;
        }
        // The state per nexus is a vector, so an index that was never attached would panic. NEXUS
        // LOSS tells the transport that this target does not know the nexus, and other nexuses
        // continue.
        if request.nexus.index() >= self.nexuses.len() {
            let refusal = Sense::new(SenseKey::AbortedCommand, AdditionalSense::NEXUS_LOSS);
            return self.refuse(job, refusal.into());
        }
        match self.dispatch(job, request) {
            Ok(true) => {}
            // The caller begins a blocked command again. Counting it here would count one CDB
            // several times, and S1-51 multiplies this count with the cost of a CDB.
            Ok(false) => return JobProgress::Blocked,
            Err(refusal) => {
                self.counts.cdbs += 1;
                return self.refuse(job, refusal);
            }
        }
        self.counts.cdbs += 1;
        if let Some(unit) = job.unit {
            // An abort of a whole task set only increments one number per nexus. The target needs
            // no list of its jobs, which the caller owns; each job compares its copy with the
            // number.
            job.generation = self.units[unit].generation(job.nexus);
        }
        self.settle(job)
    }

    /// One of the job's commands has completed with `status` and dword 0 of its completion.
    pub(crate) fn complete_command(
        &mut self,
        job: &mut ScsiJob,
        status: NvmeStatus,
        dword0: u32,
    ) -> JobProgress {
        debug_assert!(job.outstanding > 0, "a completion without a command");
        job.outstanding = job.outstanding.saturating_sub(1);
        self.counts.nvme_commands += 1;
        job.dword0 = dword0;
        if !status.is_success() {
            // Of a fused pair, the half that did not merely follow the other says why.
            // NVMe aborts one half of a fused pair if the other half fails (codes 09h and 0Ah). The
            // two completions come in any order, so a status with these codes never replaces a real
            // cause.
            let follows = |s: &NvmeStatus| s.code_type() == 0 && matches!(s.code(), 0x09 | 0x0a);
            if job.failed.as_ref().is_none_or(follows) {
                job.failed = Some(status);
            }
            // The second half of a fused pair is submitted even after a failure: NVMe requires it
            // directly after the first half in the same queue, otherwise the controller aborts the
            // first half.
            if !matches!(job.work, Work::Second(_)) {
                job.work = Work::Nothing;
            }
        }
        self.settle(job)
    }

    /// A task management function, the loss of its nexus or another nexus has aborted the command of `job`, which was
    /// begun and has not ended: it ends with its last completion, and its remaining parts need not be submitted.
    pub fn is_aborted(&self, job: &ScsiJob) -> bool {
        let changed = |unit: usize| self.units[unit].generation(job.nexus) != job.generation;
        job.aborted || job.unit.is_some_and(changed)
    }

    /// Goes on with a job as far as possible without another completion.
    fn settle(&mut self, job: &mut ScsiJob) -> JobProgress {
        let aborted = self.is_aborted(job);
        if aborted && !matches!(job.work, Work::Second(_)) {
            job.work = Work::Nothing;
        }
        loop {
            // A job never ends while the device can still move data for it. An abort that answered
            // earlier would let the initiator reuse a buffer that a late DMA transfer overwrites.
            if job.has_work() || job.outstanding > 0 {
                return JobProgress::Pending;
            }
            if aborted {
                self.release(job);
                return JobProgress::Aborted;
            }
            if let Some(status) = job.failed
                && self.refused_for_sanitize(job, status)
            {
                continue;
            }
            if let Some(status) = job.failed
                && !matches!(job.after, After::RequestSense(_) | After::Locate)
            {
                // NVMe Compare reports only that data differ. SBC-3 requires the offset of the
                // first difference in the INFORMATION field, so the blocks are read again and
                // compared here. `take` limits this to one attempt.
                let Some(run) = job.locate.take().filter(|_| differs(status)) else {
                    return self.fail(job, status);
                };
                job.failed = None;
                job.compare_bytes = job.held.len();
                job.need_scratch(job.held.len());
                job.work = Work::Run(run);
                job.after = After::Locate;
                continue;
            }
            let after = core::mem::take(&mut job.after);
            if matches!(after, After::Finish) {
                self.release(job);
                return JobProgress::Done;
            }
            self.counts.steps += 1;
            if let Err(refusal) = self.go_on(job, after) {
                return self.refuse(job, refusal);
            }
        }
    }

    /// The next step after the commands so far.
    fn go_on(&mut self, job: &mut ScsiJob, after: After) -> Checked {
        match after {
            After::Finish => {}
            After::Then(run) => job.work = Work::Run(run),
            After::ThenCompare(run) => {
                job.work = Work::Run(run);
                job.after = After::Compare;
            }
            After::Compare => self.compare(job)?,
            After::Locate => {
                // Blocks that cannot be read, or are by now what was expected, have no such place.
                if job.failed.take().is_none() {
                    self.compare(job)?;
                }
                let nowhere = Sense::new(SenseKey::Miscompare, AdditionalSense::MISCOMPARE);
                return Err(nowhere.into());
            }
            After::CompareThen(run) => {
                self.compare(job)?;
                job.work = Work::Run(run);
            }
            After::OrThen(run) => {
                for (byte, held) in job.scratch.iter_mut().zip(&job.held) {
                    *byte |= held;
                }
                self.counts.bytes_copied += job.held.len() as u64;
                job.work = Work::Run(run);
            }
            After::ModeSense(request) => self.mode_pages(job, &request),
            After::SelectCache { on, save } => ScsiTarget::select_cache(job, on, save),
            After::CacheSelected => self.cache_selected(job),
            After::Log(request) => self.log_page(job, &request),
            After::RequestSense(request) => ScsiTarget::tell_health(job, request),
            After::Power { command: Some(command), condition } => {
                job.work = Work::Single(command);
                job.after = After::Power { command: None, condition };
            }
            After::Power { command: None, condition } => self.condition = condition,
            After::FlushUnits { next, power, condition } => {
                self.flush_units(job, next, power, condition);
            }
            After::ZeroRanges(index) => self.zero_range(job, index),
            After::Sanitize(step) => self.sanitize_step(job, step)?,
        }
        Ok(())
    }

    /// Compares the scratch with what is held.
    fn compare(&mut self, job: &ScsiJob) -> Checked {
        let bytes = job.compare_bytes;
        self.counts.bytes_copied += bytes as u64;
        match job.first_mismatch(bytes) {
            None => Ok(()),
            Some(offset) => {
                let sense = Sense::new(SenseKey::Miscompare, AdditionalSense::MISCOMPARE);
                Err(sense.with_information(offset as u64).into())
            }
        }
    }

    /// Ends with the status of a failed NVMe command.
    fn fail(&mut self, job: &mut ScsiJob, nvme: NvmeStatus) -> JobProgress {
        if let Some(sense) = ScsiTarget::sanitize_refusal(job, nvme) {
            return self.refuse(job, sense.into());
        }
        let translated = translate(nvme);
        let descriptors = job.unit.is_some_and(|unit| self.units[unit].descriptor_sense);
        job.status = translated.status;
        job.sense = translated.sense.map(|sense| sense.encode(descriptors));
        job.data_in.clear();
        if translated.status != status::GOOD {
            job.buffer_in_bytes = 0;
        }
        self.release(job);
        JobProgress::Done
    }

    fn refuse(&mut self, job: &mut ScsiJob, refusal: Refusal) -> JobProgress {
        let descriptors = job.unit.is_some_and(|unit| self.units[unit].descriptor_sense);
        job.refuse(refusal, descriptors);
        self.release(job);
        JobProgress::Done
    }

    /// Gives back what the job holds of its unit.
    fn release(&mut self, job: &mut ScsiJob) {
        let Some(unit) = job.unit.map(|unit| &mut self.units[unit]) else { return };
        match core::mem::take(&mut job.holds) {
            Holds::Nothing => {}
            Holds::Writer => unit.writers -= 1,
            Holds::Exclusive => unit.exclusive = false,
        }
    }

    pub(crate) fn thesis(&self) -> bool {
        self.config.commands == CommandSet::Thesis
    }

    /// Whether a command is there, with this configuration and controller.
    pub(crate) fn supports(&self, command: &Command) -> bool {
        match command.operation {
            _ if self.thesis() => command.thesis,
            Operation::Unmap => self.unmaps(),
            Operation::FormatUnit => self.controller.optional.format,
            Operation::Sanitize => self.sanitizes(command.service_action.unwrap_or(0)),
            _ => true,
        }
    }

    pub(crate) fn find(&self, cdb: &[u8]) -> Found {
        commands::find(cdb, |command| self.supports(command))
    }

    /// Index of the unit of a LUN field.
    pub(crate) fn unit_index(&self, lun: u64) -> Option<usize> {
        let number = lun_number(lun)?;
        // LUNs can have gaps after a namespace was deleted, so the LUN is not an index. The search
        // needs the order by LUN that the constructors establish.
        self.units.binary_search_by_key(&number, Unit::number).ok()
    }

    /// Checks what all commands share (SAM-5, 5.3.3 for the order), then does the command's own
    /// part. `false`: blocked.
    fn dispatch(&mut self, job: &mut ScsiJob, request: &ScsiRequest<'_>) -> Checked<bool> {
        let found = self.find(request.cdb);
        let Some(unit) = self.unit_index(request.lun) else {
            return self.without_unit(job, request, &found).map(|()| true);
        };
        job.unit = Some(unit);
        let quiet = matches!(
            &found,
            Found::Command(Command {
                operation: Operation::Inquiry | Operation::ReportLuns | Operation::RequestSense,
                ..
            })
        );
        // A reset or the loss of a nexus, a reservation conflict, any other attention.
        // SAM-5 requires INQUIRY, REPORT LUNS and REQUEST SENSE to succeed while a unit attention
        // is pending: an initiator must be able to identify a unit without losing the reason for
        // the attention.
        if !quiet && let Some(first) = self.units[unit].take_first_attention(request.nexus) {
            return Err(first.sense().into());
        }
        if let Found::Command(command) = found {
            self.check_reservation(unit, request, command)?;
        }
        if !quiet && let Some(attention) = self.units[unit].take_attention(request.nexus) {
            return Err(attention.sense().into());
        }
        let command = match found {
            Found::Command(command) => command,
            Found::NoSuchAction => return Err(Sense::cdb(1, 4).into()),
            Found::NoSuchOpcode => {
                self.counts.unknown_opcodes += 1;
                return Err(Sense::illegal(AdditionalSense::INVALID_OPERATION_CODE).into());
            }
        };
        command.check(request.cdb)?;
        let cdb = &request.cdb[..command.usage.len()];
        self.perform(job, command.operation, Call { unit, request, cdb })
    }

    fn check_reservation(
        &self,
        unit: usize,
        request: &ScsiRequest<'_>,
        command: &Command,
    ) -> Checked {
        let mut access = command.access;
        // START STOP UNIT that starts, without a power condition.
        // Starting a unit harms no other initiator, so a reservation does not prevent it. The mask
        // keeps START and POWER CONDITION: any power condition affects all initiators.
        if access == Access::Start && request.cdb.get(4).is_some_and(|byte| byte & 0xf1 == 1) {
            access = Access::Status;
        }
        let allowed = self.units[unit].reservations.allow(request.nexus, access);
        if allowed { Ok(()) } else { Err(Refusal::Conflict) }
    }

    /// A LUN without unit answers INQUIRY, REPORT LUNS and REQUEST SENSE (SPC-4, 6.6.1, 6.33,
    /// 6.39).
    fn without_unit(
        &mut self,
        job: &mut ScsiJob,
        request: &ScsiRequest<'_>,
        found: &Found,
    ) -> Checked {
        let absent = Sense::illegal(AdditionalSense::LOGICAL_UNIT_NOT_SUPPORTED);
        let Found::Command(command) = found else { return Err(absent.into()) };
        if !matches!(
            command.operation,
            Operation::Inquiry | Operation::ReportLuns | Operation::RequestSense
        ) {
            return Err(absent.into());
        }
        command.check(request.cdb)?;
        let cdb = &request.cdb[..command.usage.len()];
        match command.operation {
            Operation::Inquiry => self.inquiry_absent(job, cdb)?,
            Operation::ReportLuns => self.report_luns(job, cdb)?,
            _ => job.answer(absent.encode(cdb[1] & 1 == 1).as_bytes(), usize::from(cdb[4])),
        }
        Ok(())
    }
}

/// Compare Failure, whatever the other bits say (NVM 1.0c, figure 10).
fn differs(status: NvmeStatus) -> bool {
    let failure = NvmeStatus::COMPARE_FAILURE;
    (status.code_type(), status.code()) == (failure.code_type(), failure.code())
}
