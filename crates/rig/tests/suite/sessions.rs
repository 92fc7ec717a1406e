//! Loads one after the other on one drive, with everything between it and them.

use crate::common;

use ssdyno_driver_nvme::NvmeConfig;
use ssdyno_rig::{HostOptions, KeepGoing, RunLimits, Session};

/// After the last answer the drive empties its write buffer: the next load comes after that. A load
/// that began with the last completion would meet events of a time that it has not reached.
#[test]
fn a_load_begins_where_the_drive_has_settled() {
    let (driver, options) = (NvmeConfig::default(), HostOptions::default());
    let run = common::run(common::device(), driver, ("server", &options), "", 1);
    let mut session = Session::new(&run.device, 1).unwrap();
    for seed in 0..8 {
        for (read_percent, depth) in [(0, 32), (100, 1), (35, 4), (0, 1)] {
            let load = format!("read_percent = {read_percent}\ndepth = {depth}\nrequests = 700");
            let load = ssdyno_workload::WorkloadConfig::from_toml(&load).unwrap();
            let loaded = session
                .load(&load, seed, RunLimits::default(), &mut |_| KeepGoing::Continue)
                .unwrap();
            assert_eq!((loaded.result.requests, loaded.result.errors), (700, 0));
        }
    }
}

/// A profile finds the time of the last requests of a load from its series. Buckets of a millisecond would put ten requests of
/// 65 us in one.
#[test]
fn the_series_of_a_short_load_tells_its_requests_apart() {
    let (driver, options) = (NvmeConfig::default(), HostOptions::default());
    let run = common::run(common::device(), driver, ("server", &options), "", 1);
    let mut session = Session::new(&run.device, 1).unwrap();
    let load = "read_percent = 100\nblock_size = \"4KiB\"\ndepth = 1\nrequests = 24";
    let load = ssdyno_workload::WorkloadConfig::from_toml(load).unwrap();
    let go_on = &mut |_: &ssdyno_rig::RunProgress| KeepGoing::Continue;
    let result = session.load(&load, 1, RunLimits::default(), go_on).unwrap().result;
    assert!(result.series.iter().all(|point| point.reads <= 1), "{:?}", result.series);
    assert_eq!(result.series.iter().map(|point| point.reads).sum::<u64>(), 24);
}
