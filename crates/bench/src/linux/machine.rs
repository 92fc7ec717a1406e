//! The machine beside the run: when it is probed, and what becomes of the samples.

use ssdyno_block::Op;
use ssdyno_figures::probe::{DeviceCheck, MachineActivity, Moved};
use ssdyno_record::Recording;

use crate::options::Probing;
use crate::probe::{Probed, RunProbe};
use crate::target::{Kind, RealTarget};
use crate::worker::JobReport;

/// Begins to probe, right before the load begins; and what is to be said if that failed.
pub(crate) fn start(probing: Probing, target: &RealTarget) -> (Option<RunProbe>, Vec<String>) {
    let interval = match probing {
        Probing::Off => return (None, Vec::new()),
        Probing::Auto => None,
        Probing::Every(interval) => Some(interval),
    };
    // The load is what the run is for. A machine that cannot be probed costs the samples, and a
    // note says so.
    match RunProbe::start(interval, target.disk_name()) {
        Ok(prober) => (Some(prober), Vec::new()),
        Err(error) => (None, vec![format!("the machine was not probed: {error}")]),
    }
}

/// What jobs with `reports` moved that recorded `recording`, with their ramp-up.
pub(crate) fn moved<'a>(
    recording: &Recording,
    reports: impl IntoIterator<Item = &'a JobReport>,
) -> Moved {
    let mut all = Moved {
        reads: recording.count(Op::Read),
        writes: recording.count(Op::Write),
        read_bytes: recording.bytes(Op::Read),
        write_bytes: recording.bytes(Op::Write),
    };
    reports.into_iter().for_each(|report| all.merge(&report.ended.unrecorded));
    all
}

/// The part for the result. `reports` are those of all jobs; `None` where some never came back.
pub(crate) fn result(
    probed: Probed,
    target: &RealTarget,
    recording: &Recording,
    reports: Option<&Vec<JobReport>>,
) -> MachineActivity {
    // Both count from here: samples lie beside the points of the series.
    let shift = recording.start().as_s_f64();
    let mut samples = probed.samples;
    samples.iter_mut().for_each(|sample| sample.start_seconds -= shift);
    let device = target.disk_name();
    let check = || {
        // The device counts the ramp-up as well. Without the amounts that are in no figure the
        // check would find the device ahead of us.
        let run = moved(recording, reports?);
        let whole = matches!(target.kind, Kind::Device(_));
        let (kind, failed) = ((whole, target.direct), recording.errors());
        Some(DeviceCheck::new(device.as_ref()?, kind, failed, run, probed.moved?))
    };
    let device_check = check();
    MachineActivity { device, samples, device_check }
}
