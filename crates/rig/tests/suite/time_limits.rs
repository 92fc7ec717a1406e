//! The driver's timeout expires without configured faults: the load, the requests or the flash are slower than it. That
//! is not a defect, and the run goes on.

use proptest::prelude::*;
use ssdyno_block::Time;
use ssdyno_controller_ring::RingConfig;
use ssdyno_driver_nvme::{InterruptChoice, NvmeConfig, NvmeError, QueuePolicy};
use ssdyno_driver_ring::RingDriverOptions as RingOptions;
use ssdyno_figures::RunResult;
use ssdyno_host::{CompletionWait, ThreadMode};
use ssdyno_pci::InterruptMode;
use ssdyno_rig::{
    Attach, DevicePath, HostOptions, KeepGoing, RunError, RunLimits, SimMeasured, SimRun, Stack,
};
use ssdyno_ssd::{Config, presets};

use crate::common;

/// A driver with `limit`, and twice as much for admin commands, as `--time-limit` sets it.
fn limited(limit: Time) -> NvmeConfig {
    NvmeConfig { io_timeout: limit, admin_timeout: limit * 2, ..NvmeConfig::default() }
}

fn load(depth: u32, size: &str, write_percent: u32, requests: u64) -> String {
    let threads = depth.min(4);
    format!(
        "write_percent = {write_percent}\nblock_size = \"{size}\"\ndepth = {depth}\nthreads = {threads}\nrequests = {requests}"
    )
}

/// What `run` gave. Whatever the timeout did: every invariant held, and every request completed once.
fn whole(run: &SimRun, requests: u64) -> SimMeasured {
    let measured = run.execute(&mut |_| KeepGoing::Continue).unwrap();
    let result = &measured.result;
    for invariant in &result.invariants {
        assert!(invariant.holds, "{invariant:?}");
    }
    let answered = result.requests + result.errors;
    match &measured.failure {
        None => assert_eq!((answered, result.partial), (requests, false)),
        Some(RunError::GivenUp { error: NvmeError::Unresponsive { .. }, .. }) => {
            assert!(answered <= requests && result.partial, "{answered} of {requests}");
        }
        Some(other) => panic!("{other}"),
    }
    assert_eq!(result.errors, result.faults.as_ref().map_or(0, |faults| faults.requests_failed));
    measured
}

fn drive(name: &str) -> Config {
    Config::parse(presets::find(name).unwrap().text).unwrap()
}

fn told(result: &RunResult) -> String {
    result.notes.join("\n")
}

/// Writes at depth 256 take 6 ms, the driver waits for 2 ms: it aborts, resets and goes on, and says so.
#[test]
fn a_load_slower_than_the_time_limit_is_aborted_and_goes_on() {
    let options = HostOptions::default();
    let load = load(256, "4KiB", 100, 6_000);
    let limit = limited(Time::from_ms(2));
    let run = common::run(drive("nvme-tlc"), limit, ("server", &options), &load, 1);
    let SimMeasured { result, .. } = whole(&run, 6_000);
    let faults = result.faults.as_ref().unwrap();
    assert!(faults.driver.aborts > 0 && result.errors > 0, "{faults:?}");
    assert!(faults.device.is_none() && faults.network.is_none());
    let notes = told(&result);
    assert!(notes.contains("timeout of 2 ms expired"), "{notes}");
    assert!(notes.contains("raise `host.time_limit`"), "{notes}");
    // With enough time there is no report.
    let calm =
        common::run(drive("nvme-tlc"), NvmeConfig::default(), ("server", &options), &load, 1);
    let SimMeasured { result, .. } = whole(&calm, 6_000);
    assert_eq!((result.errors, result.faults.is_some()), (0, false));
    assert!(!told(&result).contains("'s timeout of"), "{}", told(&result));
}

/// The watchdog looks into the queues while completions are there whose interrupts are under way: that is
/// no lost interrupt.
#[test]
fn completions_before_their_interrupts_are_not_lost() {
    let mut found = 0;
    for seed in 1..=3 {
        let options = HostOptions::default();
        let load = load(32, "4KiB", 30, 20_000);
        let limit = limited(Time::from_ms(1));
        let run = common::run(drive("nvme-tlc"), limit, ("server", &options), &load, seed);
        let SimMeasured { result, .. } = whole(&run, 20_000);
        found += result.faults.map_or(0, |faults| faults.driver.interrupts_missed);
    }
    assert!(found > 0, "the case did not happen");
}

/// Programs of 20 ms, requests of 1 MiB, 1024 outstanding: slower than the usual limit of 30 s.
#[test]
fn the_usual_limit_expires_too() {
    let mut device = common::device();
    device.flash.program_time = toml::Value::from("20ms").try_into().unwrap();
    device.nvme.get_or_insert_default().queue_entries = 4096;
    let options = HostOptions::default();
    let load = load(1024, "1MiB", 100, 3_000);
    let driver = NvmeConfig { transfer_bytes_max: 1 << 20, ..NvmeConfig::default() };
    let run = common::run(device, driver, ("server", &options), &load, 1);
    whole(&run, 3_000);
}

/// Every NVMe preset under a limit that its slower writes break.
#[test]
fn every_drive_stands_a_short_limit() {
    for preset in presets::SSDS {
        let Ok(device) = Config::parse(preset.text) else { continue };
        if device.nvme.is_none() {
            continue;
        }
        for (stack, depth) in [(None, 512), (Some(Stack::Scsi), 200)] {
            let options = HostOptions { stack, ..HostOptions::default() };
            let load = load(depth, "16KiB", 80, 3_000);
            let limit = limited(Time::from_ms(1));
            let run = common::run(device.clone(), limit, ("server", &options), &load, 1);
            let SimMeasured { result, .. } = whole(&run, 3_000);
            assert!(result.requests > 0, "{}: nothing was answered", preset.name);
        }
    }
}

/// A drive that never answers within the limit is given up after some resets, and the error says that.
#[test]
fn a_drive_that_never_answers_in_time_is_given_up() {
    let mut device = common::device();
    device.flash.read_time = toml::Value::from("500ms").try_into().unwrap();
    let options = HostOptions::default();
    let load = load(8, "4KiB", 0, 1_000);
    let run = common::run(device, limited(Time::from_ms(1)), ("server", &options), &load, 1);
    let SimMeasured { result, failure, .. } = whole(&run, 1_000);
    let Some(RunError::GivenUp { error, .. }) = failure else { panic!("{failure:?}") };
    assert!(error.to_string().contains("resets in a row"), "{error}");
    assert!(result.partial && result.errors > 0);
    assert!(told(&result).contains("the NVMe driver gave up on the device"), "{}", told(&result));
}

/// The ring card, too.
#[test]
fn a_ring_card_slower_than_its_limit_breaks_no_invariant() {
    let card = RingConfig::parse(ssdyno_controller_ring::presets::CARDS[0].text).unwrap();
    for (limit_us, requests) in [(10, 2_000), (200, 2_000), (1_000_000, 2_000)] {
        let options = HostOptions::default();
        let mut run = common::run(
            common::device(),
            NvmeConfig::default(),
            ("server", &options),
            &load(32, "4KiB", 100, requests),
            1,
        );
        let driver = RingOptions { timeout: Time::from_us(limit_us), ..RingOptions::default() };
        let host = run.device.host().unwrap().clone();
        run.device = Attach::behind(card.clone(), host, DevicePath::Ring(Box::new(driver)));
        let SimMeasured { result, .. } = whole(&run, requests);
        let expired = told(&result).contains("ring driver's timeout");
        assert_eq!(expired, result.faults.is_some(), "{limit_us} us");
        assert_eq!(limit_us < 1_000_000, expired, "{limit_us} us: {:?}", result.faults);
    }
}

/// A stopped run is partial, and its invariants hold all the same.
#[test]
fn a_limit_of_the_run_may_fall_into_a_reset() {
    for us in [2_100, 4_050, 6_100, 6_500, 9_000] {
        let options = HostOptions::default();
        let load = load(256, "4KiB", 100, 50_000);
        let limit = limited(Time::from_ms(2));
        let mut run = common::run(drive("nvme-tlc"), limit, ("server", &options), &load, 1);
        run.limits = RunLimits { duration: Some(Time::from_us(us)), ..RunLimits::default() };
        let measured = run.execute(&mut |_| KeepGoing::Continue).unwrap();
        for invariant in &measured.result.invariants {
            assert!(invariant.holds, "{us} us: {invariant:?}");
        }
    }
}

const POLICIES: [QueuePolicy; 6] = [
    QueuePolicy::RoundRobin { as_printed: false },
    QueuePolicy::RoundRobin { as_printed: true },
    QueuePolicy::PerCore,
    QueuePolicy::PerCorePool,
    QueuePolicy::Single,
    QueuePolicy::MoreQueues { queues: [1, 2, 3, 1] },
];

/// A drive, a driver with a timeout, a host and a load, all drawn.
#[derive(Clone, Debug)]
struct Drawn {
    preset: usize,
    program_us: u64,
    read_us: u64,
    dies: u32,
    buffer: bool,
    queue_depth: u32,
    entries: u32,
    io_queues: u16,
    limit_us: u64,
    admin: u64,
    owner_us: u64,
    policy: usize,
    interrupts: usize,
    scsi: bool,
    waiting: usize,
    mode: usize,
    cores: u16,
    doorbells: bool,
    retries: u32,
    depth: u32,
    size_kib: u32,
    write_percent: u32,
    seed: u64,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let device = (0usize..8, 20u64..30_000, 5u64..3_000, 1u32..5, any::<bool>(), 1u32..400);
    // No controller completes Identify in 1 us, so the driver does not start then; this test does not cover that. Users
    // cannot ask for less than 1 ms.
    let driver = (2u32..600, 1u16..32, 100u64..20_000, 1u64..4, 1u64..2_000, 0usize..6, 0usize..5);
    let host = (any::<bool>(), 0usize..3, 0usize..3, 1u16..9, any::<bool>(), 0u32..3);
    let load = (1u32..300, prop_oneof![Just(4u32), Just(16), Just(128), Just(1024)], 0u32..101);
    (device, driver, host, load, any::<u64>()).prop_map(|(device, driver, host, load, seed)| {
        let (preset, program_us, read_us, dies, buffer, queue_depth) = device;
        let (entries, io_queues, limit_us, admin, owner_us, policy, interrupts) = driver;
        let (scsi, waiting, mode, cores, doorbells, retries) = host;
        let (depth, size_kib, write_percent) = load;
        Drawn {
            preset,
            program_us,
            read_us,
            dies,
            buffer,
            queue_depth,
            entries,
            io_queues,
            limit_us,
            admin,
            owner_us,
            policy,
            interrupts,
            scsi,
            waiting,
            mode,
            cores,
            doorbells,
            retries,
            depth,
            size_kib,
            write_percent,
            seed,
        }
    })
}

impl Drawn {
    fn device(&self) -> Config {
        let drives: Vec<Config> = (presets::SSDS.iter())
            .filter_map(|preset| Config::parse(preset.text).ok())
            .filter(|config| config.nvme.is_some())
            .collect();
        let mut device = drives[self.preset % drives.len()].clone();
        // Quickly built.
        device.flash.blocks_per_plane = 64;
        device.ftl.over_provisioning = 0.25;
        device.flash.program_time =
            toml::Value::from(format!("{}us", self.program_us)).try_into().unwrap();
        device.flash.read_time =
            toml::Value::from(format!("{}us", self.read_us)).try_into().unwrap();
        device.flash.dies_per_chip = self.dies;
        if !self.buffer {
            device.buffer = Default::default();
        }
        device.queue.depth = self.queue_depth;
        let nvme = device.nvme.get_or_insert_default();
        nvme.io_queues = self.io_queues;
        nvme.queue_entries = self.entries.max(2);
        device
    }

    fn run(&self, requests: u64) -> SimRun {
        let limit = Time::from_us(self.limit_us);
        let waiting =
            [CompletionWait::Interrupt, CompletionWait::Poll, CompletionWait::Hybrid][self.waiting];
        let driver = NvmeConfig {
            admin_timeout: limit * self.admin,
            owner_timeout: Time::from_us(self.owner_us),
            policy: POLICIES[self.policy],
            interrupts: [
                InterruptChoice::Best,
                InterruptChoice::Best,
                InterruptChoice::Only(InterruptMode::MsiX),
                InterruptChoice::Only(InterruptMode::Msi),
                InterruptChoice::Only(InterruptMode::Pin),
            ][self.interrupts],
            ..limited(limit)
        };
        let options = HostOptions {
            cores: Some(self.cores),
            mode: Some([ThreadMode::Sync, ThreadMode::Async, ThreadMode::Batch][self.mode]),
            waiting,
            stack: self.scsi.then_some(Stack::Scsi),
            doorbell_per_batch: self.doorbells,
            retries: self.retries,
            ..HostOptions::default()
        };
        let size = format!("{}KiB", self.size_kib);
        let load = load(self.depth, &size, self.write_percent, requests);
        common::run(self.device(), driver, ("server", &options), &load, self.seed)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No panic, no hang; every request is accounted for once; every invariant holds.
    #[test]
    fn any_time_limit_is_stood(drawn in drawn()) {
        whole(&drawn.run(600), 600);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    #[ignore = "soak: two minutes"]
    fn soak_any_time_limit_is_stood(drawn in drawn()) {
        whole(&drawn.run(1_500), 1_500);
    }
}
