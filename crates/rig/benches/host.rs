//! How fast the whole path is simulated: host, driver, PCI Express, NVMe controller, flash, interrupt.
//!
//! 4 KiB random reads and writes, everything recorded, on the device of configuration A with a
//! controller of 31 queues and on presets. Figures are million requests per CPU-second of one thread:
//! the median of several runs, with the lowest and the highest. The first rows are the device alone.
//!
//! `cargo bench -p ssdyno-rig --bench host [-- [--runs N] [--requests N] [TEXT]]`: the rows that contain
//! TEXT.

mod common;

use common::{speed, spread, workload};
use ssdyno_device::LinkConfig;
use ssdyno_driver_nvme::{NvmeConfig, QueuePolicy};
use ssdyno_figures::Keep;
use ssdyno_host::CompletionWait;
use ssdyno_rig::{Attach, DevicePath, HostOptions, HostPlan, RunLimits, SimRun, Source};
use ssdyno_ssd::{Config, presets};

/// One row: the device, and the host before it.
struct Case {
    device: &'static str,
    host: Option<(QueuePolicy, u16, CompletionWait)>,
    workload: &'static str,
}

impl Case {
    fn name(&self) -> String {
        let host = match self.host {
            None => "device alone".to_owned(),
            Some((policy, cores, waiting)) => {
                let policy = match policy {
                    QueuePolicy::PerCore => "per core",
                    QueuePolicy::Single => "one queue",
                    _ => "round robin",
                };
                let polled = if waiting == CompletionWait::Poll { ", polled" } else { "" };
                format!("{policy}, {cores} cores{polled}")
            }
        };
        format!("{:9} {:15} {host}", self.workload, self.device)
    }
}

fn cases() -> Vec<Case> {
    let per_core = |cores| Some((QueuePolicy::PerCore, cores, CompletionWait::Interrupt));
    let shared = |policy| Some((policy, 8, CompletionWait::Interrupt));
    let mut all = Vec::new();
    for workload in ["randread", "randwrite"] {
        let hosts = [
            None,
            per_core(1),
            per_core(8),
            shared(QueuePolicy::RoundRobin { as_printed: false }),
            shared(QueuePolicy::Single),
            Some((QueuePolicy::PerCore, 8, CompletionWait::Poll)),
        ];
        all.extend(hosts.map(|host| Case { device: "config-a", host, workload }));
        for device in ["p3600", "nvme-tlc", "gen4-consumer", "gen5-datacenter"] {
            all.extend([1, 8].map(|cores| Case { device, host: per_core(cores), workload }));
        }
    }
    all
}

fn device(name: &str) -> Config {
    let text = presets::find(name).map_or("", |preset| preset.text);
    let mut config = match Config::parse(text) {
        Ok(config) => config,
        Err(error) => panic!("{name}: {error}"),
    };
    if name == "config-a" {
        if let LinkConfig::Pcie { latency, .. } = &mut config.host_link {
            *latency = Default::default();
        }
        config.nvme.get_or_insert_with(Default::default).io_queues = 31;
    }
    config
}

fn run(case: &Case, requests: u64, seed: u64) -> SimRun {
    let mut load = workload(case.workload);
    load.requests = Some(requests);
    let attach = match case.host {
        None => device(case.device).into(),
        Some((policy, cores, waiting)) => {
            let options = HostOptions { cores: Some(cores), waiting, ..HostOptions::default() };
            let text = ssdyno_host::presets::ALL[0].text;
            let host = match ssdyno_host::HostConfig::parse(text) {
                Ok(config) => HostPlan::new("server", config, &options, Some(&load)),
                Err(error) => panic!("host: {error}"),
            };
            let driver = NvmeConfig { policy, ..NvmeConfig::default() };
            Attach::behind(device(case.device), host, DevicePath::Nvme(Box::new(driver)))
        }
    };
    SimRun {
        target: format!("sim:{}", case.device),
        device: attach,
        workload: case.workload.into(),
        source: Source::Generator(load),
        seed,
        limits: RunLimits::default(),
        keep: Keep::None,
        interval: None,
        why: false,
    }
}

fn main() {
    let (mut runs, mut requests, mut text) = (5u64, 1_000_000u64, String::new());
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0);
        match argument.as_str() {
            "--runs" => runs = number().unwrap_or(runs),
            "--requests" => requests = number().unwrap_or(requests),
            _ => text = argument,
        }
    }
    println!("million requests per CPU-second, median (lowest to highest) of {runs} runs");
    for case in cases().iter().filter(|case| case.name().contains(&text)) {
        let name = case.name();
        let speeds = (0..runs).map(|seed| speed(&name, &run(case, requests, seed)));
        println!("{name:52} {}", spread(speeds.collect()));
    }
}
