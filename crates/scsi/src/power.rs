//! Power conditions (SBC-3, 4.20 and 5.25; SPC-4, 5.12; translation reference, clause 6.11), and REQUEST
//! SENSE, which tells them.

use ssdyno_spec::nvme::admin;
use ssdyno_spec::scsi::{AdditionalSense, SenseKey};

use crate::commands::Operation;
use crate::job::{After, NvmeCommand, ScsiJob, Work};
use crate::pending::{Condition, SenseRequest};
use crate::perform::flush;
use crate::sense::{Checked, Sense};
use crate::target::ScsiTarget;

/// Feature identifier of power management (base 2.0c, clause 5.27.1.2).
const POWER_MANAGEMENT: u32 = 0x02;

impl ScsiTarget {
    /// A stopped unit does nothing that needs the medium (SBC-3, 4.20); one in a low power condition
    /// becomes active for it.
    pub(crate) fn check_ready(&mut self, operation: Operation) -> Checked {
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
        let asks_only =
            matches!(operation, O::TestUnitReady | O::ReadCapacity10 | O::ReadCapacity16);
        match self.condition {
            Condition::Stopped if needs_medium => return Err(not_started().into()),
            // TEST UNIT READY and READ CAPACITY are polled by operating systems. If they woke the
            // unit, a drive in standby would never stay there.
            Condition::Low(_) if needs_medium && !asks_only => self.condition = Condition::Active,
            _ => {}
        }
        Ok(())
    }

    /// REQUEST SENSE (SPC-4, 6.39): a pending unit attention, or what the unit is up to. Where it is
    /// up to nothing, a failure that the health log predicts: that is what MRIE 6 of the informational
    /// exceptions control page promises (SPC-4, 7.5.11).
    pub(crate) fn request_sense(&mut self, job: &mut ScsiJob, unit: usize, cdb: &[u8]) {
        let request =
            SenseRequest { descriptors: cdb[1] & 1 == 1, allocation: usize::from(cdb[4]) };
        let attention = self.units[unit].take_attention(job.nexus);
        let sense = match (attention, self.condition) {
            (Some(attention), _) => attention.sense(),
            (None, Condition::Stopped) => not_started(),
            (None, Condition::Low(how)) => Sense::new(SenseKey::NoSense, how),
            (None, Condition::Active) if self.senses_sanitize(job, request) => return,
            (None, Condition::Active) if self.disk.is_none() => return request.ask_for_health(job),
            (None, Condition::Active) => Sense::new(SenseKey::NoSense, AdditionalSense::NONE),
        };
        request.answer(job, sense);
    }

    /// Ends a REQUEST SENSE with the health log in the scratch; a device that did not tell it is no
    /// reason to refuse.
    pub(crate) fn tell_health(job: &mut ScsiJob, request: SenseRequest) {
        // `take` removes the failure from the job, so that `settle` does not turn it into a CHECK
        // CONDITION. REQUEST SENSE itself must not fail because a log page is missing.
        let told = job.failed.take().is_none();
        let predicted = told && crate::log::predicts_failure(job.scratch());
        let additional =
            if predicted { AdditionalSense::FAILURE_PREDICTION } else { AdditionalSense::NONE };
        request.answer(job, Sense::new(SenseKey::NoSense, additional));
    }

    /// START STOP UNIT: power conditions to NVMe power states. The controller has one power state for
    /// all of its namespaces.
    pub(crate) fn start_stop(&mut self, job: &mut ScsiJob, cdb: &[u8]) -> Checked {
        use AdditionalSense as A;
        let (modifier, start) = (cdb[3] & 0xf, cdb[4] & 1 == 1);
        // LOEJ: nothing can be ejected; with a power condition it is ignored.
        if cdb[4] & 0xf2 == 2 {
            return Err(Sense::cdb(4, 1).into());
        }
        let deepest = self.controller.power_state_max;
        let low = Condition::Low;
        let (state, condition) = match (cdb[4] >> 4, modifier) {
            (0, 0) if start => (0, Condition::Active),
            (0, 0) => (deepest, Condition::Stopped),
            (0x1, 0) => (0, Condition::Active),
            (0x2, 0) => (1.min(deepest), low(A::IDLE_A_BY_COMMAND)),
            (0x2, 1) => (2.min(deepest), low(A::IDLE_B_BY_COMMAND)),
            (0x2, 2) => (3.min(deepest), low(A::IDLE_C_BY_COMMAND)),
            (0x3, 0) => (deepest.saturating_sub(1), low(A::STANDBY_Z_BY_COMMAND)),
            (0x3, 1) => (deepest, low(A::STANDBY_Y_BY_COMMAND)),
            // LU_CONTROL: back to the device's own timers; it has none, so it is active.
            (0x7, 0) => (0, Condition::Active),
            (0x0 | 0x1 | 0x2 | 0x3 | 0x7, _) => return Err(Sense::cdb(3, 3).into()),
            _ => return Err(Sense::cdb(4, 7).into()),
        };
        if self.disk.is_some() {
            // The device's own timers say when it rests; what it shall keep is on its medium before.
            let rests = condition != Condition::Active;
            if cdb[4] & 4 == 0 && rests && self.controller.volatile_write_cache {
                job.work = Work::Single(flush(self.units[0].facts.nsid));
            }
            job.after = After::Power { command: None, condition };
            return Ok(());
        }
        let power = NvmeCommand::admin(admin::SET_FEATURES, 0, POWER_MANAGEMENT, state.into());
        // NO_FLUSH is bit 2. Power state 0 needs no flush, because the cache keeps its content; a
        // deeper state can lose it if the host removes power after the command.
        let flush_first = cdb[4] & 4 == 0 && state != 0 && self.controller.volatile_write_cache;
        // All namespaces are flushed: the power state is the controller's.
        if flush_first && !self.controller.flush_of_all {
            self.flush_units(job, 0, power, condition);
            return Ok(());
        }
        let (first, command) =
            if flush_first { (flush(u32::MAX), Some(power)) } else { (power, None) };
        job.work = Work::Single(first);
        job.after = After::Power { command, condition };
        Ok(())
    }

    /// Flushes the unit at `next` and has those behind it flushed, or sends `power` when there is none left.
    pub(crate) fn flush_units(
        &self,
        job: &mut ScsiJob,
        next: usize,
        power: NvmeCommand,
        condition: Condition,
    ) {
        (job.work, job.after) = match self.units.get(next) {
            Some(unit) => (
                Work::Single(flush(unit.facts.nsid)),
                After::FlushUnits { next: next + 1, power, condition },
            ),
            None => (Work::Single(power), After::Power { command: None, condition }),
        };
    }
}

impl SenseRequest {
    /// Ends it with `sense`.
    pub(crate) fn answer(self, job: &mut ScsiJob, sense: Sense) {
        job.answer(sense.encode(self.descriptors).as_bytes(), self.allocation);
    }

    /// Has the health log fetched for it.
    pub(crate) fn ask_for_health(self, job: &mut ScsiJob) {
        job.work = Work::Single(ScsiTarget::health_log(job));
        job.after = After::RequestSense(self);
    }
}

fn not_started() -> Sense {
    Sense::new(SenseKey::NotReady, AdditionalSense::INITIALIZING_COMMAND_REQUIRED)
}
