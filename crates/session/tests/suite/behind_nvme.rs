//! Every device except cards works behind the NVMe driver: disks, arrays, volumes and delays, like SSDs.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use ssdyno_figures::RunResult;
use ssdyno_session::{DEVICE_KINDS, DriverSpec, HostSpec, RunSpec, Runner, Unattended, resolve};

fn run(device: &str, driver: DriverSpec, workload: &str, set: &[&str]) -> RunResult {
    let spec = RunSpec {
        target: Some(format!("sim:{device}")),
        workload: Some(workload.to_owned()),
        requests: Some(1_000),
        host: HostSpec { driver: Some(driver), ..HostSpec::default() },
        set: set.iter().map(|set| (*set).to_owned()).collect(),
        ..RunSpec::default()
    };
    let prepared = resolve(&spec, &mut Unattended).unwrap_or_else(|failure| panic!("{failure}"));
    let runner: Runner = prepared.start().unwrap();
    runner.result().unwrap().result
}

/// The host answers for each of its commands, and the devices take at least as long as they do alone.
#[test]
fn every_kind_of_device_answers_the_nvme_driver() {
    let kinds = DEVICE_KINDS.all().iter().filter(|kind| kind.name != "ssd");
    for preset in kinds.flat_map(|kind| kind.presets) {
        if DEVICE_KINDS.parse(preset.text).unwrap().own_driver() {
            continue;
        }
        let result = run(preset.name, DriverSpec::Nvme, "mixed", &[]);
        assert_eq!((result.requests, result.errors), (1_000, 0), "{}", preset.name);
        let broken: Vec<_> = result.invariants.iter().filter(|one| !one.holds).collect();
        assert!(broken.is_empty(), "{}: {broken:?}", preset.name);
        let mean = |result: &RunResult| result.latency_ns.as_ref().unwrap().all.mean;
        let alone = run(preset.name, DriverSpec::Direct, "mixed", &[]);
        // The order in which commands come is another, so a seek may be shorter for once.
        assert!(mean(&result) > mean(&alone) * 0.9, "{}", preset.name);
    }
}

/// A drive that drops commands is reset by the driver as an SSD is, and a device that is slow for a while stays one.
#[test]
fn faults_are_met_behind_the_controller() {
    let dropped = run("st39102lw", DriverSpec::Nvme, "randread", &["faults.drop=0.01"]);
    let faults = dropped.faults.unwrap();
    let drops = faults.device.unwrap().drops;
    assert!(drops > 0 && dropped.errors == drops, "{drops} and {}", dropped.errors);
    // One at a time: nobody else makes use of the time that the device is slow.
    let slow = &["faults.slow_by=2", "faults.slow_for=24h", "workload.depth=1"];
    for device in ["st39102lw", "p3600"] {
        let usual = run(device, DriverSpec::Nvme, "randread", &["workload.depth=1"]);
        let slow = run(device, DriverSpec::Nvme, "randread", slow);
        assert!(slow.iops < usual.iops * 0.95, "{device}: {} and {}", slow.iops, usual.iops);
    }
}
