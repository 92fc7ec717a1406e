//! Any faults at all: runs end, keep their invariants, and repeat.

use proptest::prelude::*;
use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_controller_ring::RingConfig;
use ssdyno_device::delay::DelayConfig;
use ssdyno_device::faults::FaultConfig;
use ssdyno_driver_nvme::QueuePolicy;
use ssdyno_figures::RunResult;
use ssdyno_host::{CompletionWait, ThreadMode};
use ssdyno_rig::{
    DevicePath, HostOptions, NetworkFaultConfig, RunError, SimMeasured, SimRun, Stack,
};

use super::{load, measure, network, nvme, ring, told};

/// What a table of faults may have.
fn any_faults(driven: bool) -> impl Strategy<Value = FaultConfig> {
    let time =
        |us: std::ops::Range<u64>| prop::option::of(us.prop_map(|us| Span(Time::from_us(us))));
    let shares = (0.0..0.02, 0.0..0.05, 0.0..0.01, 0.0..0.02);
    (shares, 1u64..15_000, time(1..40_000), time(1..60_000)).prop_map(
        move |((error, delay, drop, lost_interrupts), by, hang_at, remove_at)| FaultConfig {
            error,
            delay: delay + 0.001,
            delay_by: Some(Span(Time::from_us(by))),
            drop: if driven { drop } else { 0.0 },
            lost_interrupts: if driven { lost_interrupts } else { 0.0 },
            hang_at: hang_at.filter(|_| driven),
            remove_at,
            ..FaultConfig::default()
        },
    )
}

/// It ends, every request completes once, every invariant holds, and again it is the same to the bit.
fn ends_and_repeats(run: &SimRun, n: u64) -> Result<(), TestCaseError> {
    let first = measure(run);
    let result = &first.result;
    let answered = result.requests + result.errors;
    match &first.failure {
        None => prop_assert_eq!(answered, n),
        Some(RunError::Gone { .. }) => prop_assert!(answered <= n && result.partial),
        Some(other) => return Err(TestCaseError::fail(other.to_string())),
    }
    prop_assert_eq!(result.errors, told(result).requests_failed);
    let text = |measured: SimMeasured| {
        let result = RunResult { wall_seconds: 0.0, own_cost: None, ..measured.result };
        let result = RunResult { simulated_requests_per_wall_second: None, ..result };
        ssdyno_report::to_json(&result).unwrap()
    };
    let again = text(measure(run));
    prop_assert!(text(first) == again, "it differs from run to run");
    Ok(())
}

const POLICIES: [QueuePolicy; 4] = [
    QueuePolicy::RoundRobin { as_printed: false },
    QueuePolicy::PerCore,
    QueuePolicy::PerCorePool,
    QueuePolicy::Single,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]
    #[test]
    fn any_faults_of_an_nvme_drive_end(
        faults in any_faults(true), policy in 0usize..4, scsi in any::<bool>(), way in 0usize..3,
        depth in 1u32..20, cores in 1u16..4, retries in 0u32..3, seed in 0u64..1000,
    ) {
        let waiting = [CompletionWait::Interrupt, CompletionWait::Poll, CompletionWait::Hybrid][way];
        let options = HostOptions {
            cores: Some(cores),
            stack: scsi.then_some(Stack::Scsi),
            mode: Some([ThreadMode::Sync, ThreadMode::Async, ThreadMode::Batch][depth as usize % 3]),
            waiting,
            retries,
            ..HostOptions::default()
        };
        let mut run = nvme("", &options, POLICIES[policy], &load(depth, 40, 1_500), seed);
        if let Some(device) = run.device.ssd_mut() {
            device.faults = faults;
            if waiting != CompletionWait::Interrupt {
                device.faults.lost_interrupts = 0.0;
            }
        }
        ends_and_repeats(&run, 1_500)?;
    }

    #[test]
    fn any_faults_of_a_ring_card_end(
        faults in any_faults(true), depth in 1u32..40, seed in 0u64..1000,
    ) {
        let mut run = ring("", &load(depth, 40, 1_500), seed);
        if let Some(card) = run.device.device.get_mut::<RingConfig>() {
            card.faults = faults;
        }
        ends_and_repeats(&run, 1_500)?;
    }

    #[test]
    fn any_faults_of_a_network_end(
        device in any_faults(false), error in 0.0..0.1, drop in 0.0..0.1, reset in 0.001..0.05,
        tries in 1u32..4, reset_at in 1u64..500, depth in 1u32..20, seed in 0u64..1000,
    ) {
        let mut run = network("", "", &load(depth, 40, 800), seed);
        if let Some(DevicePath::Network(network)) = run.device.path_mut() {
            network.faults = NetworkFaultConfig {
                error,
                drop,
                reset,
                tries,
                delay: 0.01,
                delay_by: Some(Span(Time::from_ms(1))),
                reset_at: Some(Span(Time::from_ms(reset_at))),
                ..NetworkFaultConfig::default()
            };
            if let Some(config) = run.device.device.get_mut::<DelayConfig>() {
                config.faults = device;
            }
        }
        ends_and_repeats(&run, 800)?;
    }
}
