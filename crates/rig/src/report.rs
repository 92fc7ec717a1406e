//! From what happened to a result.

mod remarks;

use std::time::Duration;

use ssdyno_block::{ConfigError, Op, Time};
use ssdyno_device::{Device, DeviceReport};
use ssdyno_energy::{Breakdown, BusyPart, DeviceEnergy, DeviceMeter, FlashOperationCounts};
use ssdyno_engine::events::{Activity, Busy, EventReader, FlashCause, PartEvent, PartKind};
use ssdyno_figures::{
    BusyShare, Configuration, Ending, Energy, EnergyRow, FaultsResult, FlashOperations, GcVictims,
    HostResult, Invariant, JobResult, NamespaceResult, OwnCost, PackageEnergy, PartBusy, Power,
    RunResult, StopReason, Warning, WarningKind,
};
use ssdyno_record::{Recording, RequestLoop};
use ssdyno_workload::FioFiles;

use crate::course::energy_per_request;
use crate::drive::DriveEnd;
use crate::error::RunError;
use crate::medium::Written;
use crate::ports::PathFigures;
use crate::run::SimRun;
use crate::sim_target::SimTarget;
use crate::{bounds, expected, faults, host_report, medium, spread};

/// A meter for the device that has said `report` of itself.
///
/// # Errors
/// Its currents and powers do not fit together.
pub(crate) fn meter(report: &DeviceReport) -> Result<DeviceMeter, ConfigError> {
    let units = report.units().iter();
    let mut meter = DeviceMeter::new(units.map(|u| (u.path.as_str(), u.key.as_str(), &u.power)))?;
    for (number, unit) in report.units().iter().enumerate() {
        meter.would_sleep(number, &unit.idle_states, unit.idle_part);
    }
    Ok(meter)
}

/// The energy of `device` in a window, with the sleep after its last request.
pub(crate) fn finished(
    mut meter: DeviceMeter,
    device: &dyn Device,
    (start, end): (Time, Time),
) -> DeviceEnergy {
    meter.read(&asleep(&DeviceReport::of(device), start, end));
    meter.finish(end)
}

/// The low-power states that a device which said `report` enters after its last request, until `end` of a window that began
/// at `start`. A device shows them as the next request wakes it, and no such request comes.
fn asleep(report: &DeviceReport, start: Time, end: Time) -> Vec<Busy> {
    let mut events = Vec::new();
    for (unit, number) in report.units().iter().zip(0..=u8::MAX) {
        let states = &unit.idle_states;
        for (at, (state, entered)) in states.iter().enumerate() {
            let left = states.get(at + 1).map_or(end, |(_, deeper)| (*deeper).min(end));
            let from = (*entered).max(start);
            if from < left {
                let (part, activity) = match unit.idle_part {
                    Some((part, activity)) => {
                        let part = PartEvent::new(PartKind::Declared, part);
                        (part, Activity::Declared(activity))
                    }
                    None => (PartEvent::new(PartKind::Controller, 0), Activity::LowPower(*state)),
                };
                events.push(Busy {
                    part: PartEvent { unit: number, ..part },
                    activity,
                    cause: FlashCause::None,
                    operations: 1,
                    from,
                    to: left,
                });
            }
        }
    }
    events
}

/// The account of a package as it is reported.
fn package(energy: &ssdyno_energy::PackageBreakdown) -> PackageEnergy {
    let operations = |activity| energy.operations(activity);
    let seconds = |activity| energy.seconds(activity);
    PackageEnergy {
        joules: energy.joules,
        idle_joules: energy.idle_joules,
        reads: operations(Activity::Read),
        programs: operations(Activity::Program),
        erases: operations(Activity::Erase),
        read_seconds: seconds(Activity::Read),
        program_seconds: seconds(Activity::Program),
        erase_seconds: seconds(Activity::Erase),
        transfer_seconds: seconds(Activity::Transfer),
    }
}

/// Everything a result is made from.
pub(crate) struct Parts<'a> {
    pub(crate) run: &'a SimRun,
    pub(crate) target: &'a dyn SimTarget,
    /// Figures of namespaces, where those were chosen.
    pub(crate) namespaces: Vec<NamespaceResult>,
    /// What the device said before the load.
    pub(crate) before: &'a DeviceReport,
    pub(crate) ended: &'a DriveEnd,
    /// Of the whole device.
    pub(crate) energy: &'a Breakdown,
    /// The same by unit.
    pub(crate) by_unit: &'a DeviceEnergy,
    pub(crate) window_known: bool,
    pub(crate) cpu: Duration,
    pub(crate) notes: Vec<String>,
    pub(crate) jobs: Vec<JobResult>,
    /// The warnings about overloaded jobs.
    pub(crate) overloads: Vec<Warning>,
    pub(crate) failure: Option<&'a RunError>,
}

/// What device and path say after the load.
struct After {
    device: DeviceReport,
    path: PathFigures,
}

impl Parts<'_> {
    /// All figures.
    pub(crate) fn result(self, recording: &mut Recording) -> RunResult {
        let end = self.ended.settled;
        let mut after =
            After { device: DeviceReport::of(self.target.device()), path: PathFigures::default() };
        self.target.path(end, &mut after.path);
        let mut result = RunResult {
            target: self.run.target.clone(),
            workload: self.run.workload.clone(),
            seed: Some(self.run.seed),
            partial: self.failure.is_some(),
            notes: self.notes.clone(),
            jobs: self.jobs.clone(),
            warnings: self.overloads.clone(),
            configuration: Some(self.configuration()),
            ..RunResult::default()
        };
        let source = &self.run.source;
        let request_loop = RequestLoop::new(source.is_closed_loop(), source.outstanding_limit());
        recording.set_request_loop(request_loop);
        recording.fill(&mut result);
        result.notes.extend(source.note_on_flushes(result.requests_by_op.flush));
        result.until = self.ended.precision;
        result.stopped_because = Some(self.stop_reason());
        self.fill_flash(&mut result, recording);
        self.fill_energy(&mut result, recording.left_out().requests);
        self.fill_cost(&mut result);
        result.busy_share = self.busy_share();
        result.busy_by_part = self.busy_by_part();
        // A run that ended in its ramp-up has no window, so the host has no figures either.
        let ends = (recording.end(), end);
        result.host = self.target.account().filter(|_| self.window_known).and_then(|account| {
            let PathFigures { network, stack, .. } = &after.path;
            let host =
                host_report::result(&self.run.device, account, network.clone(), *stack, ends)?;
            Some(HostResult { namespaces: self.namespaces.clone(), ..host })
        });
        self.fill_faults(&mut result, &after, recording.skipped());
        self.invariants(&mut result, &after);
        remarks::describe_health(&mut result, after.device.health());
        self.describe_power_state(&mut result);
        self.describe_drift(&mut result, &after);
        self.describe_thrashing(&mut result, &after);
        let written = self.written(recording);
        let share = self.run.device.reachable_share(self.before);
        result.warnings.extend(medium::warnings(self.before, &after.device, written, share));
        let window = &self.ended.window;
        let window_seconds = recording.window().as_s_f64();
        let ramp_up = self.run.source.ramp_up_key();
        let credits = medium::credits(window, &after.device, window_seconds, ramp_up.is_some());
        result.warnings.extend(credits);
        host_report::describe_cache(&mut result, recording.outside_device());
        self.fill_intervals(&mut result);
        self.describe_unreachable(&mut result);
        self.describe_time_limit(&mut result);
        faults::blame(&mut result);
        result.warnings.iter_mut().for_each(|warning| warning.fit_to(ramp_up));
        if self.window_known {
            let said = (self.before, &after.device);
            let run = (&self.run.device, &self.run.source);
            expected::fill(&mut result, run, said, self.target.device().capacity_bytes());
        }
        if let Some(failure) = self.failure {
            result.notes.push(format!("The run ended early: {failure}"));
        }
        result
    }

    /// The faults that were injected, of a run whose ramp-up had `skipped` requests.
    fn fill_faults(&self, result: &mut RunResult, after: &After, skipped: u64) {
        let injected = self.run.device.device.faults();
        let counted = after.path.faults.clone();
        result.faults =
            counted.map(|faults| FaultsResult { requests_failed: self.ended.failed, ..faults });
        faults::add_slowness(result, injected, self.run.seed, self.ended.settled);
        faults::note_unreached(result, injected);
        faults::note_hung_energy(result);
        faults::note_ramp_up(result, skipped);
    }

    fn stop_reason(&self) -> StopReason {
        let (issued_max, end_max) = self.run.limits.with(self.run.source.bounds());
        let ending = Ending {
            interrupted: self.ended.stopped,
            out_of_memory: self.ended.out_of_memory,
            failed: self.failure.is_some(),
            precise: self.ended.precision.is_some_and(|precision| precision.reached),
            issued: self.ended.issued,
            issued_max,
            end: self.ended.last_completion,
            end_max,
        };
        ending.reason()
    }

    fn configuration(&self) -> Configuration {
        let files = FioFiles::one(self.target.device().capacity_bytes());
        let workload_toml = self.run.source.to_toml(&files, self.run.seed);
        Configuration { device_toml: self.run.device.device.to_toml(), workload_toml }
    }

    fn fill_flash(&self, result: &mut RunResult, recording: &Recording) {
        let counts = &self.energy.flash_operations;
        let programs = counts.total(Activity::Program);
        let relocations = counts.get(Activity::Program, FlashCause::Cleaning);
        let has_flash = self.before.units().iter().any(|unit| unit.flash.is_some());
        result.flash_operations = has_flash.then(|| FlashOperations {
            reads: counts.total(Activity::Read),
            programs,
            erases: counts.total(Activity::Erase),
            relocations,
            mapping_programs: counts.get(Activity::Program, FlashCause::Mapping)
                + counts.get(Activity::Program, FlashCause::MappingUpdate),
        });
        result.gc_victims = self.ended.victims.and_then(|victims| {
            let mean = victims.valid_pages as f64 / victims.pages.max(1) as f64;
            GcVictims::new(victims.by_valid_share.to_vec(), mean)
        });
        // Without flash nothing can be amplified. And of data that stays in the write buffer, nobody knows yet by how much.
        let written = self.written(recording);
        let all = self.flash_bytes(|counts| counts.total(Activity::Program));
        result.write_amplification =
            all.zip(written.reached_flash_bytes()).map(|(all, host)| all / host);
    }

    /// The writes of the host, and what became of them since recording began.
    fn written(&self, recording: &Recording) -> Written {
        Written {
            all_bytes: self.ended.written_bytes,
            recorded_bytes: recording.bytes(Op::Write) + recording.left_out().written_bytes,
            programmed_bytes: self
                .flash_bytes(|counts| counts.get(Activity::Program, FlashCause::Host))
                .unwrap_or_default(),
            buffered_bytes: self.ended.buffered_bytes,
            waiting_bytes: self.ended.waiting_bytes,
            flushes: recording.count(Op::Flush),
            trims: recording.count(Op::Trim),
        }
    }

    /// Bytes of the pages that `count` counts in all flash; `None` without flash.
    fn flash_bytes(&self, count: impl Fn(&FlashOperationCounts) -> u64) -> Option<f64> {
        if let Some(flash) = self.before.flash() {
            let pages = count(&self.energy.flash_operations);
            return Some(pages as f64 * f64::from(flash.page_bytes));
        }
        let units = self.before.units().iter().zip(&self.by_unit.units);
        let bytes = units.filter_map(|(unit, (_, energy))| {
            let pages = count(&energy.flash_operations);
            Some(pages as f64 * f64::from(unit.flash.as_ref()?.page_bytes))
        });
        bytes.reduce(|sum, bytes| sum + bytes)
    }

    /// Bytes of a page of all flash of the device; `None` without flash, and where members differ.
    fn page_bytes(&self) -> Option<f64> {
        let mut sizes =
            self.before.units().iter().filter_map(|unit| Some(unit.flash.as_ref()?.page_bytes));
        let first = sizes.next()?;
        sizes.all(|size| size == first).then(|| f64::from(first))
    }

    fn fill_energy(&self, result: &mut RunResult, left_out: u64) {
        let energy = self.energy;
        // A device that takes no energy in any time has no energy model. Zero joules would look like a figure.
        if energy.total_joules <= 0.0 && energy.seconds > 0.0 {
            return;
        }
        // Energy goes to all requests of the window, also those of a ramp-up inside it.
        let requests = (result.requests + left_out) as f64;
        result.energy_seconds = Some(energy.seconds);
        let [flash, cpu, dram, bus, parts] = energy.component_joules;
        result.energy_joules = Some(Energy {
            total: energy.total_joules,
            flash,
            cpu,
            dram,
            bus,
            parts,
            per_request: (requests > 0.0).then(|| energy.total_joules / requests),
            above_idle: energy.above_idle_joules,
        });
        let delay = result.latency_ns.as_ref().map(|latency| latency.all.mean / 1e9);
        let each = result.energy_joules.and_then(|joules| joules.per_request);
        result.energy_delay_joule_seconds = delay.zip(each).map(|(delay, each)| delay * each);
        result.energy_by_part = energy
            .rows
            .iter()
            .map(|row| EnergyRow {
                part: row.name.to_string(),
                activity: match row.cause {
                    FlashCause::None => row.activity.to_string(),
                    FlashCause::Host => format!("{} for the host", row.activity),
                    FlashCause::Mapping => format!("{} for the mapping", row.activity),
                    FlashCause::Cleaning => format!("{} for cleaning", row.activity),
                    FlashCause::MappingUpdate => format!("{} for mapping updates", row.activity),
                },
                joules: row.joules,
                seconds: row.seconds,
            })
            .collect();
        result.energy_by_package = energy.packages.iter().map(package).collect();
        for (what, joules) in [
            ("Slowing the idle CPU", energy.slow_saved_joules),
            ("Low-power states", energy.low_power_saved_joules),
        ] {
            result.notes.extend(saved(what, joules, energy.total_joules));
        }
        self.fill_power(result);
    }

    /// Mean power of each point of the series.
    fn fill_power(&self, result: &mut RunResult) {
        let series = &self.energy.power_series;
        // Both series start with the recorded window: the meter starts anew where the ramp-up ends, and the
        // points of the result count from there.
        let mut points = series.points.iter().scan(0.0, |from, point| {
            let start = *from;
            *from += point.length.as_s_f64();
            Some((start, *from, point))
        });
        let mut current = points.next();
        for target in &mut result.series {
            // What the device does after the last completion belongs to no point.
            let (from, to) = (target.start_seconds, target.start_seconds + target.length_seconds);
            let mut joules = [0.0; 5];
            while let Some((start, end, point)) = current {
                let share = (end.min(to) - start.max(from)).max(0.0);
                joules.iter_mut().zip(point.watts).for_each(|(sum, w)| *sum += w * share);
                if end > to {
                    break;
                }
                current = points.next();
            }
            if target.length_seconds > 0.0 {
                let [flash, cpu, dram, bus, parts] = joules.map(|j| j / target.length_seconds);
                let total = flash + cpu + dram + bus + parts;
                target.power_watts = Some(Power { total, flash, cpu, dram, bus, parts });
            }
        }
    }

    /// Intervals of the figures that are counts of the whole device.
    fn fill_intervals(&self, result: &mut RunResult) {
        let Some(mut confidence) = result.confidence.take() else { return };
        let course = &self.ended.course;
        let cpu = result.host.as_ref().map(|host| host.cpu_ns_per_request);
        confidence.host_cpu_ns_per_request = cpu.and_then(|cpu| course.host_cpu(cpu));
        // The spread of a run that cleaned no block says nothing of the figures once blocks are cleaned.
        if !result.warns_of(WarningKind::NotExhausted) {
            let amplification = result.write_amplification.zip(self.page_bytes());
            confidence.write_amplification =
                amplification.and_then(|(value, page)| course.write_amplification(value, page));
            let each = result.energy_joules.and_then(|joules| joules.per_request);
            confidence.energy_joules_per_request =
                each.and_then(|each| energy_per_request(each, &result.series));
        }
        result.confidence = Some(confidence);
    }

    fn fill_cost(&self, result: &mut RunResult) {
        let wall = self.ended.wall.as_secs_f64();
        let issued = self.ended.issued as f64;
        result.wall_seconds = wall;
        if wall > 0.0 {
            result.simulated_requests_per_wall_second = Some(issued / wall);
        }
        if issued > 0.0 {
            result.own_cost = Some(OwnCost {
                cpu_ns_per_request: self.cpu.as_nanos() as f64 / issued,
                ..OwnCost::default()
            });
        }
    }

    /// By path, where the device is not a controller alone.
    fn busy_by_part(&self) -> Vec<PartBusy> {
        let seconds = self.energy.seconds;
        if seconds <= 0.0 {
            return Vec::new();
        }
        let share = |part: BusyPart| PartBusy { part: part.name, share: part.seconds / seconds };
        self.by_unit.busy_parts().into_iter().map(share).collect()
    }

    /// Of a device that is a controller, with what that has.
    fn busy_share(&self) -> Option<BusyShare> {
        let seconds = self.energy.seconds;
        let alone = self.by_unit.units.is_empty() && self.energy.busy_parts.is_empty();
        if seconds <= 0.0 || !alone {
            return None;
        }
        let busy = &self.energy.busy;
        let share = |all: &[f64]| all.iter().map(|s| s / seconds).collect::<Vec<f64>>();
        let ways = self.before.whole().map_or(1, |unit| unit.facts.link_ways);
        let ways = ways.clamp(1, 2) as usize;
        // A link that is full in one direction is the bottleneck, whatever the other one does.
        let link = busy.host_links[..ways].iter().copied().fold(0.0, f64::max);
        Some(BusyShare {
            channels: share(&busy.channels),
            dies: share(&busy.dies),
            cores: share(&busy.cores),
            dram: Some(busy.dram / seconds),
            host_link: Some(link / seconds),
            in_service: Some(busy.in_service / seconds),
        })
    }

    /// Invariants that hold whatever the device and the workload.
    fn invariants(&self, result: &mut RunResult, after: &After) {
        let account = self.energy.check();
        result.invariants.push(Invariant {
            name: "energy".into(),
            holds: account.is_ok(),
            detail: match account {
                Ok(()) => "parts sum to the total; the integral of power equals it".into(),
                Err(imbalance) => imbalance.to_string(),
            },
        });
        result.invariants.extend(after.path.invariants.iter().cloned());
        let end = self.ended.settled;
        let cores: Vec<f64> = self.target.account().map_or_else(Vec::new, |account| {
            (0..account.cpu.cores()).map(|core| account.cpu.of_core(core).as_s_f64()).collect()
        });
        let host = (&cores[..], end.as_s_f64());
        bounds::add(&mut result.invariants, self.by_unit, host, after.path.network.as_ref());
        let flash = self.before.flash().zip(after.device.flash());
        if let (Some(device), Some((before, now))) = (self.run.device.ssd(), flash) {
            let load = spread::Load::of(&self.run.source);
            spread::add(&mut result.invariants, &device.ftl, load, before, now);
        }
    }
}

/// A smaller share of the energy decides nothing, and its note would stand in nearly every run.
const SAVED_LEAST: f64 = 0.01;

/// The note that `what` saved `joules` in a run that used `total`.
fn saved(what: &str, joules: f64, total: f64) -> Option<String> {
    let share = joules / (total + joules);
    (share >= SAVED_LEAST).then(|| {
        let text = ssdyno_figures::joules(joules);
        let percent = 100.0 * share;
        format!("{what} saved {text} ({percent:.1} % of the energy that the run would have used without it).")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn savings_below_one_percent_have_no_note() {
        assert_eq!(saved("x", 5e-6, 0.1), None);
        assert_eq!(saved("x", 0.0, 0.0), None);
        assert!(saved("x", 0.1, 0.9).unwrap().contains("(10.0 % of the energy"));
    }
}
