//! The code that tests of whole machines share: a small drive with a controller, a run of it, and its figures.

use ssdyno_device::LinkConfig;
use ssdyno_driver_nvme::NvmeConfig;
use ssdyno_figures::{Keep, RunResult};
use ssdyno_rig::{
    Attach, DevicePath, HostOptions, HostPlan, KeepGoing, RunLimits, SimRun, Source, Stack,
};
use ssdyno_ssd::{Config, presets};

/// A small SSD with a controller.
pub(crate) fn device() -> Config {
    let mut device = Config::parse(presets::find("nvme-tlc").unwrap().text).unwrap();
    device.flash.blocks_per_plane = 64;
    device.ftl.over_provisioning = 0.25;
    // The controller has latencies of its own.
    if let LinkConfig::Pcie { latency, .. } = &mut device.host_link {
        *latency = Default::default();
    }
    device
}

/// A run of `device` under the load `source`, seed 1.
pub(crate) fn of(device: impl Into<Attach>, source: Source) -> SimRun {
    SimRun {
        target: "sim:test".into(),
        device: device.into(),
        workload: "test".into(),
        source,
        seed: 1,
        limits: RunLimits::default(),
        keep: Keep::Summary,
        interval: None,
        why: false,
    }
}

/// A run of `device` without a host, seed 1.
pub(crate) fn direct(device: impl Into<Attach>, workload: &str) -> SimRun {
    of(device, Source::Generator(ssdyno_workload::WorkloadConfig::from_toml(workload).unwrap()))
}

/// A run of `device` under `driver`, which has queues of 4096 entries, in the host of that name.
pub(crate) fn run(
    device: Config,
    driver: NvmeConfig,
    (host, options): (&str, &HostOptions),
    workload: &str,
    seed: u64,
) -> SimRun {
    let load = ssdyno_workload::WorkloadConfig::from_toml(workload).unwrap();
    let preset = ssdyno_host::presets::find(host).unwrap();
    let config = ssdyno_host::HostConfig::parse(preset.text).unwrap();
    let host = HostPlan::new(host, config, options, Some(&load));
    let scsi = options.stack == Some(Stack::Scsi);
    let driver = NvmeConfig { entries: 4096, scsi, ..driver };
    let attach = Attach::behind(device, host, DevicePath::Nvme(Box::new(driver)));
    SimRun { seed, ..of(attach, Source::Generator(load)) }
}

/// The figures of `run`, in which nothing failed and every invariant held.
pub(crate) fn measure(run: &SimRun) -> RunResult {
    let measured = run.execute(&mut |_| KeepGoing::Continue).unwrap();
    assert!(measured.failure.is_none(), "{:?}", measured.failure);
    for invariant in &measured.result.invariants {
        assert!(invariant.holds, "{invariant:?}");
    }
    measured.result
}
