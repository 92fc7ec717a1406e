//! Operational power states (S1-45), set by the driver as it starts: the device keeps to what a state
//! allows. Reads then fall in proportion to what is left above its idle power, writes by more.

use common::measure;
use ssdyno_block::Time;
use ssdyno_block::units::{Span, Watts};
use ssdyno_device::nvme::OperationalState;
use ssdyno_driver_nvme::{Feature, NvmeConfig};
use ssdyno_figures::RunResult;
use ssdyno_rig::{HostOptions, KeepGoing, RunError, SimRun};
use ssdyno_ssd::Config;

use crate::common;

const READS: &str = "write_percent = 0\nblock_size = \"4KiB\"\ndepth = 64\nrequests = 30_000";
const WRITES: &str = "write_percent = 100\nblock_size = \"16KiB\"\ndepth = 64\nrequests = 12_000";
const MIX: &str = "write_percent = 30\nblock_size = \"64KiB\"\ndepth = 32\nrequests = 8_000";

/// A small SSD whose states allow these powers; no savings by slow mode, which would allow more.
fn device(watts: &[f64]) -> Config {
    let mut device = common::device();
    device.energy.cpu.slow_when_idle_after = None;
    let state = |power: &f64| OperationalState {
        power: Watts(*power),
        entry_latency: Span::default(),
        exit_latency: Span(Time::from_us(200)),
    };
    let nvme = device.nvme.get_or_insert_default();
    nvme.operational_states = watts.iter().map(state).collect();
    device
}

fn run(watts: &[f64], state: Option<u8>, workload: &str) -> SimRun {
    let features = state.map(Feature::PowerState).into_iter().collect();
    let driver = NvmeConfig { features, ..NvmeConfig::default() };
    common::run(device(watts), driver, ("server", &HostOptions::default()), workload, 7)
}

fn watts(result: &RunResult) -> f64 {
    result.energy_joules.unwrap().total / result.energy_seconds.unwrap()
}

fn base_watts() -> f64 {
    run(&[9.0], None, READS).execute(&mut |_| KeepGoing::Continue).unwrap().energy.idle_watts
}

/// What does not depend on the states' table, the machine's own speed, or notes.
fn figures(mut result: RunResult) -> String {
    // The baseline of it knows how long the device was idle before the run: by a command more.
    result.energy_joules.as_mut().unwrap().above_idle = 0.0;
    result.notes.clear();
    result.configuration = None;
    result.wall_seconds = 0.0;
    result.simulated_requests_per_wall_second = None;
    result.own_cost = None;
    serde_json::to_string(&result).unwrap()
}

#[test]
fn a_state_keeps_its_power_and_throughput_falls_with_it() {
    let base = base_watts();
    for workload in [READS, WRITES, MIX] {
        let free = measure(&run(&[9.0], None, workload));
        let above = watts(&free) - base;
        for share in [0.7, 0.4, 0.15] {
            let limit = base + above * share;
            let slow = measure(&run(&[9.0, limit], Some(1), workload));
            let what = format!("{workload}, {share}: {:.4} W of {limit:.4}", watts(&slow));
            // What was saved up while the driver started comes on top.
            let saved = above * share * 31e-3 / slow.energy_seconds.unwrap();
            assert!(watts(&slow) <= limit * 1.002 + saved, "more than allowed: {what}");
            assert!(watts(&slow) >= base + above * share * 0.95, "less than it could: {what}");
            // Throughput is power over energy each; planes that work together less often take more.
            let ratio = slow.iops / free.iops;
            let least = if workload == READS { 0.9 } else { 0.3 };
            let range = share * least..share * 1.02 + saved / above;
            assert!(range.contains(&ratio), "throughput {ratio:.3}: {what}");
            assert!(slow.notes.iter().any(|note| note.contains("Power state 1")), "{what}");
        }
    }
}

#[test]
fn the_first_state_and_one_that_is_wide_enough_change_nothing() {
    for workload in [READS, WRITES] {
        let none = figures(measure(&run(&[9.0], None, workload)));
        // Setting the state is one more command before the run begins, on another clock.
        assert!(none == figures(measure(&run(&[9.0], Some(0), workload))), "state 0");
        assert!(none == figures(measure(&run(&[9.0, 8.5], Some(1), workload))), "8.5 W");
        assert!(none == figures(measure(&run(&[9.0, 0.0], Some(1), workload))), "0 W: not said");
    }
}

#[test]
fn impossible_states_are_told() {
    let message = |watts: &[f64], state| {
        let error =
            run(watts, Some(state), READS).execute(&mut |_| KeepGoing::Continue).unwrap_err();
        assert!(matches!(error, RunError::Device(_)), "{error}");
        error.to_string()
    };
    let missing = message(&[9.0, 4.0], 20);
    assert!(missing.contains("no power state 20"), "{missing}");
    let low = message(&[9.0, 0.2], 1);
    assert!(low.contains("0.20 W") && low.contains("without any work"), "{low}");
}

/// The host may also put the device to sleep: the first request wakes it.
#[test]
fn a_state_that_processes_nothing_ends_with_the_first_request() {
    let first = measure(&run(&[9.0], Some(1), READS));
    assert!(first.notes.iter().any(|note| note.contains("processes no commands")));
    let awake = measure(&run(&[9.0], None, READS));
    let late = |result: &RunResult| result.latency_ns.as_ref().unwrap().all.max;
    assert!(late(&first) > late(&awake), "the exit latency: {} {}", late(&first), late(&awake));
}
