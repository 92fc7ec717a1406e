//! The parts of latencies: closed forms and sums, and everything else stays unchanged.

use ssdyno_driver_nvme::NvmeConfig;
use ssdyno_figures::{KeepGoing, MeanParts, RunResult};
use ssdyno_rig::{Attach, HostOptions, SimRun};
use ssdyno_ssd::{Config, presets};

use crate::common;

fn device(name: &str) -> Config {
    Config::parse(presets::find(name).unwrap().text).unwrap()
}

fn direct(device: &str, load: &str) -> SimRun {
    SimRun { why: true, ..common::direct(self::device(device), load) }
}

/// Every invariant holds, among them that the parts sum to the mean.
fn measure(run: &SimRun) -> RunResult {
    let result = run.execute(&mut |_| KeepGoing::Continue).unwrap().result;
    assert!(result.invariants.iter().all(|invariant| invariant.holds), "{:?}", result.invariants);
    assert!(result.invariants.iter().any(|invariant| invariant.name == "latency_parts"));
    result
}

/// The parts that are not zero, in nanoseconds.
fn occurring(parts: &MeanParts) -> Vec<(&'static str, f64)> {
    let all = parts.list().into_iter().map(|(key, _, time)| (key, time));
    all.filter(|(_, time)| *time > 0.0).collect()
}

#[test]
fn a_read_at_depth_one_takes_the_times_of_the_preset() {
    let load = "block_size = \"4KiB\"\nread_percent = 100\nrequests = 2000\ndepth = 1";
    let result = measure(&direct("config-a", load));
    let parts = result.latency_parts_ns.unwrap();
    let read = parts.read.unwrap();
    // tR 50 us, and 4 KiB at 333 MB/s.
    assert_eq!(occurring(&read.mean), [("channel", 12_300.301), ("flash", 50_000.0)]);
    assert_eq!(read.slowest_1_percent.unwrap().flash, 50_000.0);
    assert_eq!((read.requests, parts.write), (2000, None));
}

/// A delay of every request by 100 us is in none of the device's own parts. A note says where it is.
#[test]
fn the_time_of_injected_faults_is_told() {
    let load = "block_size = \"4KiB\"\nread_percent = 100\nrequests = 2000\ndepth = 1";
    let mut config = device("config-a");
    let told = |config: &Config| {
        let run = SimRun { device: Attach::from(config.clone()), ..direct("config-a", load) };
        let result = measure(&run);
        let notes = result.notes.iter().filter(|note| note.contains("injected faults add"));
        (
            notes.cloned().collect::<Vec<_>>(),
            result.latency_parts_ns.unwrap().read.unwrap().mean.queue,
        )
    };
    assert_eq!(told(&config), (Vec::new(), 0.0));
    config.faults.delay = 1.0;
    config.faults.delay_by = Some(ssdyno_block::units::Span(ssdyno_block::Time::from_us(100)));
    let (notes, queue_ns) = told(&config);
    assert!(notes[0].contains("`queue` contains"), "{notes:?}");
    assert_eq!(queue_ns, 100_000.0);
}

/// The work of a mapping table in flash counts as such, also where cleaning makes it necessary: victims hold
/// fewer valid pages than are programmed in addition, and the difference is the table. Seed 1.
#[test]
fn a_mapping_table_in_flash_is_not_taken_for_garbage_collection() {
    let load = "block_size = \"4KiB\"\nwrite_percent = 100\nrequests = 20000\ndepth = 32";
    let mut run = direct("config-a", load);
    let mut device = device("config-a");
    device.ftl.name = "dftl".into();
    run.device = Attach::from(device);
    let result = measure(&run);
    let operations = result.flash_operations.unwrap();
    let victims = result.gc_victims.clone().unwrap();
    // 64 pages a block; a block may be half cleaned where the window ends.
    let moved = victims.valid_mean * (operations.erases * 64) as f64;
    let off = operations.relocations as f64 / moved - 1.0;
    assert!(off.abs() < 0.05, "{operations:?}, {moved} valid pages in victims");
    let host = operations.programs - operations.relocations - operations.mapping_programs;
    assert!(host.abs_diff(20_000) <= 32, "{operations:?}");
    let parts = result.latency_parts_ns.unwrap().write.unwrap().mean;
    assert!(parts.mapping > 0.05 * parts.cleaning, "{parts:?}");
}

#[test]
fn writes_wait_for_garbage_collection_where_there_is_some() {
    let load = |ops: &str, requests| {
        format!("block_size = \"4KiB\"\n{ops}\nrequests = {requests}\ndepth = 32")
    };
    let cleaned = measure(&direct("config-a", &load("write_percent = 100", 100_000)));
    let write = cleaned.latency_parts_ns.unwrap().write.unwrap();
    assert!(write.mean.cleaning > 0.0 && write.mean.erases > 0.0, "{:?}", write.mean);
    // The slowest are those that waited for it.
    let slowest = write.slowest_1_percent.unwrap();
    assert!(slowest.cleaning + slowest.erases > 0.5 * slowest.total, "{slowest:?}");
    let mean = cleaned.latency_ns.unwrap();
    assert!((write.mean.total - mean.all.mean).abs() < 1e-6 * mean.all.mean);
    assert!(slowest.total >= 0.97 * mean.all.p99, "{slowest:?}, p99 {}", mean.all.p99);
    let read = measure(&direct("config-a", &load("read_percent = 100", 20_000)));
    let read = read.latency_parts_ns.unwrap().read.unwrap().mean;
    assert_eq!((read.cleaning, read.erases, read.programs), (0.0, 0.0, 0.0));
    assert!(read.reads > 0.0);
}

#[test]
fn the_host_is_what_is_left_and_figures_stay_the_same() {
    let load = "block_size = \"16KiB\"\nread_percent = 70\nwrite_percent = 30\nrequests = 20000\ndepth = 8";
    let options = HostOptions::default();
    let run = common::run(device("nvme-tlc"), NvmeConfig::default(), ("server", &options), load, 1);
    let plain = run.execute(&mut |_| KeepGoing::Continue).unwrap().result;
    let asked = measure(&SimRun { why: true, ..run });
    assert_eq!((plain.latency_ns, plain.iops), (asked.latency_ns.clone(), asked.iops));
    assert_eq!(plain.latency_parts_ns, None);
    let parts = asked.latency_parts_ns.unwrap();
    for (name, op) in parts.iter() {
        assert!(op.mean.host > 1_000.0 && op.mean.host < 50_000.0, "{name}: {:?}", op.mean);
        assert!(op.mean.link > 0.0 && op.mean.firmware >= 1_000.0, "{name}: {:?}", op.mean);
    }
    let inside = asked.device_latency_ns.unwrap().mean;
    let read = parts.read.unwrap();
    assert!(read.mean.flash > 45_000.0 && inside > 0.0, "{:?}", read.mean);
}

/// The request that ends the ramp-up is in no figure, and in no part either: the invariant of `measure` holds.
#[test]
fn parts_begin_with_the_window() {
    for (ramp_up, depth) in [(1, 1), (500, 32), (999, 7)] {
        let load = format!(
            "block_size = \"4KiB\"\nread_percent = 70\nwrite_percent = 30\nrequests = 2000\n\
             depth = {depth}\nramp_up = {ramp_up}"
        );
        let result = measure(&direct("nvme-tlc", &load));
        let parts = result.latency_parts_ns.unwrap();
        let requests: u64 = parts.iter().map(|(_, op)| op.requests).sum();
        assert_eq!(requests, result.requests, "{ramp_up}");
    }
}

/// More requests arrive than four at a time can carry: nearly all of the latency is the wait for one of
/// the four, and the processor has little to do with it.
#[test]
fn the_wait_for_the_depth_is_not_work_of_the_host() {
    let load = "block_size = \"4KiB\"\nread_percent = 100\nrequests = 5000\ndepth = 4\n\
                arrivals = { kind = \"fixed\", rate = 100000.0 }";
    let options = HostOptions::default();
    let run = common::run(device("p3600"), NvmeConfig::default(), ("server", &options), load, 1);
    let parts = measure(&SimRun { why: true, ..run }).latency_parts_ns.unwrap().read.unwrap().mean;
    assert!(parts.total > 5e6 && parts.queue > 0.95 * parts.total, "{parts:?}");
    assert!(parts.host < 20_000.0, "{parts:?}");
}

#[test]
fn what_cannot_say_so_has_a_note() {
    let load = "block_size = \"4KiB\"\nread_percent = 100\nrequests = 100\ndepth = 1";
    let text = "[delay]\ncapacity = \"1GiB\"\nread = \"100us\"\nwrite = \"30us\"";
    let delay = ssdyno_device::delay::DelayConfig::parse(text).unwrap();
    let device = Attach::from(ssdyno_device::DeviceSpec::from(delay));
    let run = SimRun { device, ..direct("config-a", load) };
    let result = run.execute(&mut |_| KeepGoing::Continue).unwrap().result;
    assert_eq!(result.latency_parts_ns, None);
    assert!(result.notes.iter().any(|note| note.contains("are unknown")), "{:?}", result.notes);
}
