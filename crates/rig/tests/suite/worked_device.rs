//! The worked example of `docs/add_a_device.md` stays true.

use ssdyno_device::DeviceSpec;
use ssdyno_device::array::{ArrayConfig, ArrayTable, MemberSpec};
use ssdyno_rig::{KeepGoing, SimRun};

use crate::common;

#[path = "../../examples/drum.rs"]
mod drum;

#[test]
fn the_example_runs() {
    drum::main().unwrap();
}

/// Random reads of a drum, one at a time, wait for half a turn less half a sector on average: each begins where the
/// one before ended, at the end of a sector, so a wait is 0 to 15 of the 16 sectors of a turn. The mean of 2000 waits
/// has a standard deviation of 17 ms / sqrt(12 * 2000) = 0.11 ms; five of them are 0.55 ms.
#[test]
fn random_reads_wait_for_half_a_turn() {
    let result = drum::run(drum::drum("17ms", "")).unwrap().result;
    let mean = result.latency_ns.unwrap().all.mean / 1e6;
    let transfer = 17.0 * 512.0 / 8192.0;
    let wait = 17.0 * 15.0 / 32.0;
    assert!((mean - transfer - wait).abs() < 0.55, "{mean} ms");
}

/// The motor draws its power all the time, the heads draw theirs while data passes: to nine digits.
#[test]
fn energy_and_busy_shares_are_by_declared_part() {
    let measured = drum::run(drum::drum("10ms", "")).unwrap();
    let result = &measured.result;
    let seconds = result.energy_seconds.unwrap();
    let reading = 2000.0 * 0.010 * 512.0 / 8192.0;
    let energy = result.energy_joules.unwrap();
    let expected = 300.0 * seconds + 20.0 * reading;
    assert!((energy.total / expected - 1.0).abs() < 1e-9, "{} {expected}", energy.total);
    assert!((energy.parts - energy.total).abs() < 1e-9 * energy.total);
    assert!((energy.above_idle / (20.0 * reading) - 1.0).abs() < 1e-6);
    let rows: Vec<_> =
        result.energy_by_part.iter().map(|r| (r.part.as_str(), r.activity.as_str())).collect();
    assert_eq!(rows, [("motor", "idle"), ("heads", "read"), ("heads", "idle")]);
    let busy: Vec<_> = result.busy_by_part.iter().map(|p| (p.part.as_str(), p.share)).collect();
    assert_eq!(busy.len(), 2);
    assert_eq!(busy[0], ("motor", 0.0));
    assert!(busy[1].0 == "heads" && (busy[1].1 - reading / seconds).abs() < 1e-9);
    let broken: Vec<_> = result.invariants.iter().filter(|invariant| !invariant.holds).collect();
    assert!(broken.is_empty(), "{broken:?}");
}

/// Two drums and an array of two more: all of them by path, their sum the whole.
#[test]
fn members_of_an_array_are_accounted_by_path() {
    let array = |members: Vec<DeviceSpec>| {
        let members = members.into_iter().map(MemberSpec::Device).collect();
        let array = ArrayTable { stripe: "4KiB".parse().unwrap(), members, controller: None };
        let (description, faults) = (String::new(), Default::default());
        DeviceSpec::new(ArrayConfig { description, array, nvme: None, faults })
    };
    let drum = |turn: &str| DeviceSpec::new(drum::drum(turn, ""));
    let inner = array(vec![drum("10ms"), drum("11ms")]);
    let device = array(vec![drum("17ms"), inner]);
    let load = "read_percent = 50\nblock_size = \"64KiB\"\ndepth = 4\nrequests = 300";
    let run =
        SimRun { target: "array".into(), workload: "mixed".into(), ..common::direct(device, load) };
    let result = run.execute(&mut |_| KeepGoing::Continue).unwrap().result;
    let busy: Vec<_> = result.busy_by_part.iter().map(|part| part.part.as_str()).collect();
    let expected = [
        "array.drum[0].motor",
        "array.drum[0].heads",
        "array.array[1].drum[0].motor",
        "array.array[1].drum[0].heads",
        "array.array[1].drum[1].motor",
        "array.array[1].drum[1].heads",
    ];
    assert_eq!(busy, expected);
    let energy = result.energy_joules.unwrap();
    let rows: f64 = result.energy_by_part.iter().map(|row| row.joules).sum();
    assert!((rows / energy.total - 1.0).abs() < 1e-9);
    let idle = 3.0 * 300.0 * result.energy_seconds.unwrap();
    assert!((energy.total - energy.above_idle) / idle - 1.0 < 1e-9);
    let broken: Vec<_> = result.invariants.iter().filter(|invariant| !invariant.holds).collect();
    assert!(broken.is_empty(), "{broken:?}");
    let html = ssdyno_report::report_html(&result);
    assert!(html.contains("array.array[1].drum[0].heads"));
}
