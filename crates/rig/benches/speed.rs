//! How fast configuration A is simulated: requests per CPU-second of one thread.
//!
//! Everything that a run does is on - energy, statistics, a record of every request - but nothing
//! is written to disk (`--keep none`). Each figure is the median of several runs, with the lowest
//! and the highest; the load is the preset workload of the same name. Preconditioning is timed by
//! itself. Further rows show that the cost does not grow with capacity or depth.
//!
//! `cargo bench -p ssdyno-rig --bench speed [-- --runs N]`

mod common;

use common::{speed, spread, workload};
use ssdyno_figures::Keep;
use ssdyno_rig::{RunLimits, SimRun, Source};
use ssdyno_ssd::{Config, Ssd, presets};

struct Case {
    name: &'static str,
    workload: &'static str,
    /// Keys of configuration A that differ, as (table, key, value in TOML).
    changes: &'static [(&'static str, &'static str, &'static str)],
    depth: u32,
    requests: u64,
}

const fn case(name: &'static str, workload: &'static str, requests: u64) -> Case {
    Case { name, workload, changes: &[], depth: 32, requests }
}

const LARGE: &[(&str, &str, &str)] = &[("flash", "blocks_per_plane", "32768")];
const MEDIUM: &[(&str, &str, &str)] = &[("flash", "blocks_per_plane", "2048")];
const THROUGH: &[(&str, &str, &str)] = &[("flash", "copy", "\"controller\"")];

fn cases() -> Vec<Case> {
    let mut all = vec![
        case("read", "randread", 2_000_000),
        case("write, steady state", "randwrite", 1_000_000),
        case("mixed 70/30", "mixed", 1_500_000),
        Case { changes: THROUGH, ..case("write, pages moved out and in", "randwrite", 1_000_000) },
        Case { changes: THROUGH, ..case("mixed, pages moved out and in", "mixed", 1_000_000) },
    ];
    for (depth, read, write) in
        [(1, "read, depth 1", "write, depth 1"), (1024, "read, depth 1024", "write, depth 1024")]
    {
        all.push(Case { depth, ..case(read, "randread", 1_000_000) });
        all.push(Case { depth, ..case(write, "randwrite", 500_000) });
    }
    for (changes, read, write) in
        [(MEDIUM, "read, 64 GiB", "write, 64 GiB"), (LARGE, "read, 1 TiB", "write, 1 TiB")]
    {
        all.push(Case { changes, ..case(read, "randread", 1_000_000) });
        all.push(Case { changes, ..case(write, "randwrite", 500_000) });
    }
    all
}

fn device(changes: &[(&str, &str, &str)]) -> Config {
    let text = presets::find("config-a").map_or("", |preset| preset.text);
    let mut table: toml::Table = toml::from_str(text).unwrap_or_default();
    for (section, key, value) in changes {
        if let Some(section) = table.get_mut(*section).and_then(toml::Value::as_table_mut) {
            let parsed: toml::Table = toml::from_str(&format!("v = {value}")).unwrap_or_default();
            section.extend(parsed.into_iter().map(|(_, value)| ((*key).to_owned(), value)));
        }
    }
    match Config::parse(&table.to_string()) {
        Ok(config) => config,
        Err(error) => panic!("configuration A: {error}"),
    }
}

fn run(case: &Case, seed: u64) -> SimRun {
    let mut workload = workload(case.workload);
    workload.depth = Some(case.depth);
    workload.requests = Some(case.requests);
    SimRun {
        target: "sim:config-a".into(),
        device: device(case.changes).into(),
        workload: case.workload.into(),
        source: Source::Generator(workload),
        seed,
        limits: RunLimits::default(),
        keep: Keep::None,
        interval: None,
        why: false,
    }
}

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--runs").skip(1);
    let runs: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(5);
    let filter = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    println!("configuration A, median (lowest to highest) of {runs} runs, one thread");
    let config = device(&[]);
    let precondition = |seed| {
        let start = cpu_time::ThreadTime::now();
        let ssd = Ssd::new(&config, seed);
        assert!(ssd.is_ok(), "configuration A is valid");
        start.elapsed().as_secs_f64()
    };
    println!("{:30} {} s", "preconditioning", spread((0..runs).map(precondition).collect()));
    println!("{:30} million requests per CPU-second", "");
    for case in cases() {
        if filter.as_ref().is_some_and(|filter| !case.name.contains(filter.as_str())) {
            continue;
        }
        let large = case.changes == LARGE;
        let runs = if large { 1 } else { runs };
        let speeds = (0..runs).map(|seed| speed(case.name, &run(&case, seed)));
        println!("{:30} {}", case.name, spread(speeds.collect()));
    }
}
