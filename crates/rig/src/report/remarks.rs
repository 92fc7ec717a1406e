//! What a result says of its run in words: notes and warnings.

use ssdyno_engine::Health;
use ssdyno_figures::{FaultsResult, RunResult, Warning, WarningKind};
use ssdyno_ftl::buffer::BufferPolicy;

use super::{After, Parts};
use crate::attach::DevicePath;
use crate::{ports, settling, thrash};

impl Parts<'_> {
    /// Whether write amplification kept its level, and whether it can be that of this load.
    pub(super) fn describe_drift(&self, result: &mut RunResult, after: &After) {
        let capacity_bytes = self.target.device().capacity_bytes();
        let written = self.ended.written_bytes;
        let writes = result.requests_by_op.write as f64;
        // Four writes in a trace of 24 783 requests move no figure but their own.
        let matters = writes >= settling::WRITES_LEAST * result.requests as f64;
        let ssd = self.run.device.ssd().filter(|_| matters);
        let invalid = result.gc_victims.as_ref().map(|victims| 1.0 - victims.valid_mean);
        let unsettled = ssd.zip(after.device.flash()).and_then(|(device, now)| {
            let reaches_all = self.run.device.is_reached_by(capacity_bytes, self.before);
            let (reached, state) = ((capacity_bytes, reaches_all), (now, written, invalid));
            settling::unsettled(device, &self.run.source, reached, state)
        });
        let issued = self.ended.issued;
        if let Some(unsettled) = unsettled {
            // Until garbage collection has settled, a shorter ramp-up or a longer run only moves the warning: one remedy for all.
            let moved = |kind: WarningKind| kind.is_unsteady() || kind == WarningKind::WarmUp;
            for warning in result.warnings.iter_mut().filter(|warning| moved(warning.kind)) {
                warning.help = Some(unsettled.remedy(issued));
            }
        }
        let flash = self.before.flash();
        if let Some(drift) = flash.and_then(|f| self.ended.course.drift(f.page_bytes)) {
            // Where the erases tell how much longer a run must be, a number helps more than `N`.
            let remedy = unsettled.map(|unsettled| unsettled.remedy(issued));
            let remedy = remedy.unwrap_or_else(|| drift.remedy.to_owned());
            let message = drift.message;
            // One warning says that the figures are those of no steady state: a second one with other numbers
            // would only raise the question which of them counts.
            match result.warns_of_unsteadiness() {
                true if self.run.source.ramp_up_key().is_none() => result.notes.push(message),
                true => result.notes.push(format!("{message}: {remedy}")),
                false => {
                    let warning = Warning::new(drift.kind, message);
                    result.warnings.push(warning.with_help(remedy));
                }
            }
            return;
        }
        if let Some(steady) = &mut result.steady_state {
            steady.unsettled_block_erases = unsettled.map(|unsettled| unsettled.turns);
        }
        result.warnings.extend(unsettled.map(|unsettled| unsettled.warning(issued)));
    }

    /// Whether the mapping table takes nearly all of the flash's work.
    pub(super) fn describe_thrashing(&self, result: &mut RunResult, after: &After) {
        let flash = self.before.flash().zip(after.device.flash());
        if let (Some(device), Some((before, now))) = (self.run.device.ssd(), flash) {
            let pages = self.target.device().capacity_bytes() / u64::from(now.page_bytes);
            result.notes.extend(thrash::note(&device.ftl, pages, before, now));
        }
    }

    /// What was asked for and cannot be.
    pub(super) fn describe_unreachable(&self, result: &mut RunResult) {
        if self.ended.issued == 0 && self.failure.is_none() && !self.ended.stopped {
            result.notes.push(
                "No request was issued: the run's limits end before the first one is due.".into(),
            );
        }
        let Some(device) = self.run.device.ssd() else { return };
        if device.buffer.policy == BufferPolicy::None && device.buffer.size.0 > 0 {
            let size = device.buffer.size;
            let note = format!(
                "buffer.size={size} has no effect: buffer.policy is `none`, so there is no buffer"
            );
            result.notes.push(note);
        }
        let ftl = &device.ftl;
        // Of a full device, its data packed into whole blocks.
        let pages = f64::from(device.flash.pages_per_block);
        let packed = pages / (pages - f64::from(ftl.summary_pages)) / (1.0 + ftl.over_provisioning);
        let most = 1.0 - packed;
        if ftl.free_blocks_background > most {
            result.notes.push(format!(
                "ftl.free_blocks_background asks for {:.1} % free blocks, but a full device leaves \
                 {:.1} % at most: when it is idle, the device cleans until it cannot free more blocks.",
                ftl.free_blocks_background * 100.0,
                most * 100.0
            ));
        }
    }

    /// Without faults it is the load that a timeout is too short for.
    pub(super) fn describe_time_limit(&self, result: &mut RunResult) {
        let (driver, limit, key) = match self.run.device.path() {
            Some(DevicePath::Nvme(driver)) => {
                ("NVMe driver", driver.io_timeout, "`host.time_limit`")
            }
            Some(DevicePath::Ring(driver)) => {
                ("ring driver", driver.timeout, "the `timeout` of `host.ring`")
            }
            _ => return,
        };
        if !self.run.device.device.faults().is_none() {
            return;
        }
        let Some(did) = result.faults.as_ref().and_then(FaultsResult::driver_did) else { return };
        result.notes.push(format!(
            "The {driver}'s timeout of {limit} expired before the device completed its requests ({did}): raise {key}, or lower the depth, the request size or the device's times."
        ));
    }

    /// What the power state that the host has set allowed, and what was drawn.
    pub(super) fn describe_power_state(&self, result: &mut RunResult) {
        let Some(DevicePath::Nvme(driver)) = self.run.device.path() else { return };
        let nvme = self.run.device.device.nvme();
        let (Some(state), Some(nvme)) = (ports::nvme::power::wanted(driver), nvme) else {
            return;
        };
        let note = match nvme.operational_states.get(usize::from(state)) {
            _ if self.energy.seconds <= 0.0 => return,
            None => format!(
                "Power state {state} processes no commands: the first command ended \
                             it."
            ),
            Some(limit) => {
                let drawn = self.energy.total_joules / self.energy.seconds;
                let kept = if state == 0 { ", which does not limit it" } else { "" };
                let most = limit.power.0;
                format!(
                    "Power state {state} ({most} W at most{kept}): the device drew {drawn:.2} W."
                )
            }
        };
        result.notes.push(note);
    }
}

/// What of the flash is worn out.
pub(super) fn describe_health(result: &mut RunResult, health: Health) {
    let Health { read_only, bad_blocks, erases_min, erases_max } = health;
    if read_only {
        result.notes.push(format!(
            "The device is worn out and read-only: {bad_blocks} bad blocks, {erases_max} erases of the most worn block, {erases_min} of the least."
        ));
    } else if bad_blocks > 0 {
        result.notes.push(format!("{bad_blocks} blocks are bad."));
    }
}
