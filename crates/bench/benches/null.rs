//! The cost of a request in the tool itself: `null:` with everything recorded, in ns of CPU time of
//! the whole process (user and system), and of user mode alone, by depth.
//!
//! The target completes at once, so a batch is as large as the depth. Each figure is the median
//! of several runs, with the lowest and the highest. With a path as argument that target is read
//! in the same way, at 4 KiB.
//!
//! `cargo bench -p ssdyno-bench --bench null [-- [TARGET] [--runs N] [--requests N]]`

use ssdyno_bench::{BenchMeasured, BenchOptions, BenchRun};
use ssdyno_figures::{Keep, KeepGoing, OwnCost, RunLimits};
use ssdyno_safety::Access;
use ssdyno_workload::{Source, WorkloadConfig};

fn run(target: &str, depth: u32, requests: u64, keep: Keep, seed: u64) -> BenchMeasured {
    let config = WorkloadConfig {
        depth: Some(depth),
        requests: Some(requests),
        ..WorkloadConfig::default()
    };
    let run = BenchRun {
        target: target.to_owned(),
        access: Access::ReadOnly,
        more: Vec::new(),
        workload: "randread".to_owned(),
        source: Source::Generator(config),
        seed,
        limits: RunLimits::default(),
        keep,
        rows_in: None,
        interval: None,
        options: BenchOptions::default(),
    };
    match run.execute(&mut |_| KeepGoing::Continue) {
        Ok(measured) => measured,
        Err(error) => panic!("{target}: {error}; {}", error.help()),
    }
}

fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let median = values[values.len() / 2];
    let (low, high) = (values[0], values[values.len() - 1]);
    format!("{median:8.1} ({low:.1} to {high:.1})")
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, otherwise: u64| {
        let value = arguments.iter().skip_while(|a| *a != name).nth(1);
        value.and_then(|n| n.parse().ok()).unwrap_or(otherwise)
    };
    let runs = number("--runs", 5);
    let requests = number("--requests", 10_000_000);
    let target = arguments.get(1).filter(|a| !a.starts_with('-')).map_or("null:", String::as_str);
    println!("{target}, {requests} requests, median (lowest to highest) of {runs} runs");
    for (depth, keep) in
        [(1, Keep::None), (8, Keep::None), (32, Keep::None), (128, Keep::None), (32, Keep::Summary)]
    {
        let measured = (0..runs).map(|seed| run(target, depth, requests, keep, seed).result);
        let results: Vec<_> = measured.collect();
        let of = |pick: fn(&OwnCost) -> f64| {
            spread(results.iter().filter_map(|r| r.own_cost.as_ref().map(pick)).collect())
        };
        println!(
            "depth {depth:4}, keep {:8} {} ns CPU, {} ns user, {} IOPS, {} calls, {} switches",
            format!("{keep:?}").to_lowercase(),
            of(|cost| cost.cpu_ns_per_request),
            of(|cost| cost.user_cpu_ns_per_request.unwrap_or(f64::NAN)),
            spread(results.iter().map(|r| r.iops).collect()),
            of(|cost| cost.syscalls_per_request.unwrap_or(f64::NAN)),
            of(|cost| cost.context_switches_per_request.unwrap_or(f64::NAN)),
        );
        if target != "null:" {
            results.iter().flat_map(|r| &r.notes).for_each(|note| println!("  {note}"));
        }
    }
}
