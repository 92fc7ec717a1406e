//! How fast the whole path is simulated: host, driver, PCI Express, NVMe controller, flash, interrupt.
//!
//! 4 KiB random reads and writes on the device of configuration A with a controller of 31 queues,
//! everything recorded. Figures are million requests per CPU-second of one thread: the median of
//! several runs, with the lowest and the highest. The first rows are the device alone.
//!
//! `cargo bench -p ssdyno-rig --bench host [-- --runs N]`

use ssdyno_device::{Config, LinkConfig, presets};
use ssdyno_driver_nvme::{NvmeConfig, QueuePolicy};
use ssdyno_host::Waiting;
use ssdyno_result::Keep;
use ssdyno_rig::{Attach, Flow, HostOptions, HostPlan, Limits, Run, Source};

fn device() -> Config {
    let text = presets::find("config-a").map_or("", |preset| preset.text);
    let mut config = match Config::parse(text) {
        Ok(config) => config,
        Err(error) => panic!("configuration A: {error}"),
    };
    if let LinkConfig::Pcie { latency, .. } = &mut config.host_link {
        *latency = Default::default();
    }
    config.nvme.get_or_insert_with(Default::default).io_queues = 31;
    config
}

fn run(workload: &str, host: Option<(QueuePolicy, u16, Waiting)>, seed: u64) -> Run {
    let text = ssdyno_workload::presets::text(workload).unwrap_or("");
    let mut load = match ssdyno_workload::Config::from_toml(text) {
        Ok(load) => load,
        Err(error) => panic!("{workload}: {error}"),
    };
    load.requests = Some(1_000_000);
    let attach = match host {
        None => device().into(),
        Some((policy, cores, waiting)) => {
            let options = HostOptions { cores: Some(cores), waiting, ..HostOptions::default() };
            let text = ssdyno_host::presets::ALL[0].text;
            let host = match ssdyno_host::Config::parse(text) {
                Ok(config) => HostPlan::new("server", config, &options, Some(&load)),
                Err(error) => panic!("host: {error}"),
            };
            Attach::Nvme {
                device: Box::new(device()),
                driver: Box::new(NvmeConfig { policy, ..NvmeConfig::default() }),
                host: Box::new(host),
            }
        }
    };
    Run {
        target: "sim:config-a".into(),
        device: attach,
        workload: workload.into(),
        source: Source::Generator(load),
        seed,
        limits: Limits::default(),
        keep: Keep::None,
        interval: None,
    }
}

fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let median = values[values.len() / 2];
    format!("{median:7.3} ({:.3} to {:.3})", values[0], values[values.len() - 1])
}

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--runs").skip(1);
    let runs: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(5);
    println!("million requests per CPU-second, median (lowest to highest) of {runs} runs");
    let single = QueuePolicy::Single;
    let cases = [
        ("device alone", None),
        ("per core, 1 core", Some((QueuePolicy::PerCore, 1, Waiting::Interrupt))),
        ("per core, 8 cores", Some((QueuePolicy::PerCore, 8, Waiting::Interrupt))),
        (
            "round robin, 8 cores",
            Some((QueuePolicy::RoundRobin { as_printed: false }, 8, Waiting::Interrupt)),
        ),
        ("one queue, 8 cores", Some((single, 8, Waiting::Interrupt))),
        ("per core, 8 cores, polled", Some((QueuePolicy::PerCore, 8, Waiting::Poll))),
    ];
    for workload in ["randread", "randwrite"] {
        for (name, host) in cases {
            let speeds = (0..runs).map(|seed| {
                match run(workload, host, seed).execute(&mut |_| Flow::Continue) {
                    Ok(measured) => {
                        let cost =
                            measured.result.own_cost.map_or(f64::NAN, |c| c.cpu_ns_per_request);
                        1e3 / cost
                    }
                    Err(error) => panic!("{name}: {error}"),
                }
            });
            println!("{workload:10} {name:30} {}", spread(speeds.collect()));
        }
    }
}
