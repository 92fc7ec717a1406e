//! One target under many loads.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_figures::{KeepGoing, RunProgress, RunResult};
use ssdyno_session::{FailureKind, KeptTarget, RunSpec, Unattended, WriteSpec, resolve};
use ssdyno_workload::WorkloadConfig;

fn kept(spec: &RunSpec) -> KeptTarget {
    resolve(spec, &mut Unattended).unwrap().keep().unwrap()
}

/// A small simulated SSD, with little that is spare.
fn small() -> KeptTarget {
    let set = ["flash.blocks_per_plane=32", "flash.channels=2", "ftl.over_provisioning=0.15"];
    let spec = RunSpec {
        target: Some("sim:config-a".to_owned()),
        set: set.map(str::to_owned).into(),
        ..RunSpec::default()
    };
    kept(&spec)
}

/// Random requests of 4 KiB; all are reads or all are writes.
fn load(target: &mut KeptTarget, reads: bool, requests: u64) -> RunResult {
    let config = WorkloadConfig {
        depth: Some(4),
        read_percent: Some(if reads { 100.0 } else { 0.0 }),
        write_percent: Some(if reads { 0.0 } else { 100.0 }),
        block_size: Some(Bytes(4096)),
        requests: Some(requests),
        ..WorkloadConfig::default()
    };
    target.load(&config, 7, None, &mut |_| KeepGoing::Continue).unwrap()
}

#[test]
fn what_was_written_stays_until_it_is_formatted() {
    let mut target = small();
    assert!(!target.is_real() && target.format().unwrap());
    let pages = target.facts().capacity_bytes / 4096;
    let fresh = load(&mut target, false, pages);
    assert!(!fresh.partial && fresh.requests == pages);
    // A full device has to clean before it can write.
    let worn = load(&mut target, false, pages);
    assert!(worn.iops < 0.9 * fresh.iops, "{} and {}", worn.iops, fresh.iops);
    assert!(target.format().unwrap());
    assert_eq!(load(&mut target, false, pages).iops, fresh.iops);
}

#[test]
fn a_load_is_stopped_in_order_and_one_that_did_not_begin_is_interrupted() {
    let mut target = small();
    let endless = WorkloadConfig { requests: Some(u64::MAX / 2), ..WorkloadConfig::default() };
    let begun = &mut |progress: &RunProgress| match progress.completed {
        0 => KeepGoing::Continue,
        _ => KeepGoing::Stop,
    };
    let stopped = target.load(&endless, 1, None, begun).unwrap();
    assert!(stopped.partial && stopped.requests > 0);
    let length = Some(Time::from_ms(3));
    let whole = target.load(&endless, 1, length, &mut |_| KeepGoing::Continue).unwrap();
    assert!(!whole.partial && (whole.simulated_seconds / 3e-3 - 1.0).abs() < 0.1);
    // One that is stopped while the device is prepared.
    let never = small().load(&endless, 1, length, &mut |_| KeepGoing::Stop).unwrap_err();
    assert_eq!(never.kind, FailureKind::Interrupted);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_is_loaded_again_and_again() {
    let place = tempfile::tempdir().unwrap();
    let spec = RunSpec {
        target: Some(place.path().join("file").to_str().unwrap().to_owned()),
        write: WriteSpec { allowed: true, size: "1MiB".parse().ok(), ..WriteSpec::default() },
        ..RunSpec::default()
    };
    let mut target = kept(&spec);
    assert!(target.is_real() && !target.format().unwrap());
    assert_eq!(target.facts().capacity_bytes, 1 << 20);
    for reads in [false, true] {
        let result = load(&mut target, reads, 100);
        assert!(!result.partial && result.errors == 0 && result.requests == 100);
    }
}
