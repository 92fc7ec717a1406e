//! Side by side with fio, in the same minute on the same machine: IOPS, CPU time, context
//! switches and system calls for each request, 4 KiB random reads at depth 32.
//!
//! Targets: a loop device over a file in memory, that file itself, and a file on the disk that
//! holds the build directory. Ours records every request and writes them into Parquet (`null:` also without); fio
//! runs with its usual statistics. All are programs that are started, run for the same time, and are waited for
//! (wait4(2)): CPU time and switches are of the whole process, starting, reporting and writing included.
//! Runs alternate, in an order that turns round, so that a busy neighbour meets all; each figure is the
//! median, with half of the distance from the lowest to the highest. At the end: the goals, and what
//! was reached of them, by the runs of the same round against each other.
//!
//! `cargo xtask peers [--runs N] [--seconds N] [--quick] [--t-io-uring FILE]` says what is missing and runs
//! it, as root (for the loop device), with fio from Debian's packages (apt-get install fio). fio's own
//! `t/io_uring` is in no package: FILE is one that was built from fio's source (make t/io_uring).

mod child;
mod goals;
mod raw;

use std::path::{Path, PathBuf};
use std::process::Command;

use ssdyno_bench::NULL;

use crate::child::Ended;

const SIZE_BYTES: u64 = 1 << 30;
const DEPTH: u32 = 32;

/// What a run gave, for each request where it says so.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    iops: f64,
    user_ns: f64,
    system_ns: f64,
    switches: f64,
    calls: Option<f64>,
}

impl Figures {
    fn cpu_ns(&self) -> f64 {
        self.user_ns + self.system_ns
    }
}

/// One way to load a target.
#[derive(Clone, Copy, Debug)]
enum Peer {
    /// fio with these options on top of the common ones.
    Fio(&'static str, &'static [&'static str]),
    /// fio's `t/io_uring`, where there is one: a loop without statistics.
    Raw(&'static str),
    /// Ours, with completions taken in batches of so many; none: as it finds fastest.
    Ours(&'static str, Option<u32>),
    /// Ours in batches of so many, everything recorded, and nothing written to a disk.
    Unwritten(&'static str, u32),
}

/// The target whose cost is compared.
const LOOP: &str = "loop device over tmpfs";
/// fio as it comes, and with everything that makes it cheaper.
const FIO_DEFAULTS: &str = "fio, defaults";
const FIO_BATCH: &str = "fio, fixed, batch 32";
const RAW: &str = "t/io_uring, batch 32";
/// Ours where a request shall cost least; otherwise it finds out what is fastest.
const OURS_BATCH: &str = "ours, batch 32";
/// Ours without the files, which cost as much again where a request costs nothing.
const OURS_UNWRITTEN: &str = "ours, batch 32, no files";

const FIXED: [&str; 2] = ["--fixedbufs", "--registerfiles"];

/// Engines that suit block devices and files on disks.
const ASYNCHRONOUS: &[Peer] = &[
    Peer::Fio(FIO_DEFAULTS, &["--ioengine=io_uring"]),
    Peer::Fio("fio, fixed", &["--ioengine=io_uring", FIXED[0], FIXED[1]]),
    Peer::Fio(
        "fio, fixed, batch 8",
        &[
            "--ioengine=io_uring",
            FIXED[0],
            FIXED[1],
            "--iodepth_batch_submit=16",
            "--iodepth_batch_complete_min=8",
            "--iodepth_batch_complete_max=32",
        ],
    ),
    Peer::Fio(
        FIO_BATCH,
        &[
            "--ioengine=io_uring",
            FIXED[0],
            FIXED[1],
            "--iodepth_batch_submit=32",
            "--iodepth_batch_complete_min=32",
            "--iodepth_batch_complete_max=32",
        ],
    ),
    Peer::Raw(RAW),
    Peer::Ours(OURS_BATCH, Some(32)),
    Peer::Ours("ours", None),
];

/// Without a target: what the tools themselves cost.
const NOTHING: &[Peer] = &[
    Peer::Fio(FIO_DEFAULTS, &["--ioengine=null"]),
    Peer::Fio(
        "fio null, no statistics",
        &["--ioengine=null", "--gtod_reduce=1", "--disable_lat=1", "--norandommap"],
    ),
    Peer::Ours(OURS_BATCH, Some(32)),
    Peer::Unwritten(OURS_UNWRITTEN, 32),
];

/// Engines that suit files in memory.
const SYNCHRONOUS: &[Peer] = &[
    Peer::Fio(FIO_DEFAULTS, &["--ioengine=io_uring"]),
    Peer::Fio("fio psync, 1 job", &["--ioengine=psync"]),
    Peer::Fio("fio psync, 32 jobs", &["--ioengine=psync", "--numjobs=32", "--group_reporting"]),
    Peer::Fio("fio mmap, 32 jobs", &["--ioengine=mmap", "--numjobs=32", "--group_reporting"]),
    Peer::Ours("ours", None),
];

/// How everything is measured.
struct Plan {
    runs: u64,
    seconds: u64,
    /// Our program.
    ours: PathBuf,
    /// The program `t/io_uring`.
    raw: Option<PathBuf>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, otherwise: u64| {
        let value = arguments.iter().skip_while(|a| *a != name).nth(1);
        value.and_then(|n| n.parse().ok()).unwrap_or(otherwise)
    };
    let path = |name: &str| arguments.iter().skip_while(|a| *a != name).nth(1).map(PathBuf::from);
    let Some(ours) = path("--ours") else {
        println!(
            "nothing to compare: `cargo xtask peers` builds the program and names it with --ours"
        );
        return;
    };
    let plan = Plan {
        runs: number("--runs", 15),
        seconds: number("--seconds", 3),
        ours,
        raw: path("--t-io-uring"),
    };
    if Command::new("fio").arg("--version").output().is_err() {
        println!("there is no fio to compare with: apt-get install fio");
        return;
    }
    say_if_busy();
    let mut tables = vec![compare("null:", NULL, NOTHING, &plan)];
    let memory = scratch(Path::new("/dev/shm"));
    let disk = scratch(&PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    if let Some(file) = &memory {
        match attach(file) {
            Some(device) => {
                tables.push(compare(LOOP, &device, ASYNCHRONOUS, &plan));
                let _ = Command::new("losetup").args(["--detach", &device]).status();
            }
            None => println!("no loop device: not root, or the kernel has none"),
        }
        let name = file.display().to_string();
        tables.push(compare("file on tmpfs", &name, SYNCHRONOUS, &plan));
    }
    if let Some(file) = &disk {
        let name = file.display().to_string();
        tables.push(compare("file on disk", &name, ASYNCHRONOUS, &plan));
    }
    for file in [memory, disk].into_iter().flatten() {
        let _ = std::fs::remove_file(file);
    }
    goals::print(&tables);
}

/// Figures beside one another mean little on a machine that does something else as well.
fn say_if_busy() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().and_then(|load| load.parse::<f64>().ok());
    if let Some(load) = load.filter(|load| *load > 0.5) {
        println!(
            "note: the machine is busy (load {load}). Each job of fio is a session of its own, to \
             which sched_autogroup gives as much time as to all threads of ours together: compare \
             speeds on a quiet machine"
        );
    }
}

/// A file of incompressible bytes; `None`, with a word, where it cannot be made.
fn scratch(directory: &Path) -> Option<PathBuf> {
    let path = directory.join(format!("ssdyno-peers-{}", std::process::id()));
    let fill = Command::new("dd")
        .args(["if=/dev/urandom", "bs=1M", "status=none", "conv=fsync"])
        .args([format!("of={}", path.display()), format!("count={}", SIZE_BYTES >> 20)])
        .status();
    if fill.is_ok_and(|status| status.success()) {
        return Some(path);
    }
    println!("no place for 1 GiB in {}", directory.display());
    let _ = std::fs::remove_file(path);
    None
}

fn attach(file: &Path) -> Option<String> {
    let mut losetup = Command::new("losetup");
    losetup.args(["--find", "--show", "--direct-io=on"]).arg(file);
    let output = losetup.output().ok()?;
    let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    output.status.success().then_some(name)
}

/// What all runs on one target gave.
struct Compared {
    title: &'static str,
    /// Each peer with its runs.
    peers: Vec<(&'static str, Vec<Figures>)>,
}

fn compare(title: &'static str, target: &str, peers: &[Peer], plan: &Plan) -> Compared {
    let Plan { runs, seconds, .. } = *plan;
    println!("\n{title} ({target}): median of {runs} runs of {seconds} s, by request");
    println!(
        "{:26} {:>10} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "IOPS", "spread", "CPU ns", "user ns", "system ns", "switches", "calls"
    );
    let mut measured = vec![Vec::new(); peers.len()];
    for seed in 0..runs {
        let mut order: Vec<usize> = (0..peers.len()).collect();
        if seed % 2 == 1 {
            order.reverse();
        }
        for index in order {
            measured[index].extend(run(&peers[index], target, plan, seed));
        }
    }
    let peers: Vec<(&str, Vec<Figures>)> = peers.iter().map(name).zip(measured).collect();
    for (name, runs) in peers.iter().filter(|(_, runs)| !runs.is_empty()) {
        let f = median(runs);
        let spread = goals::spread(&runs.iter().map(|f| f.iops).collect::<Vec<f64>>());
        println!(
            "{name:26} {:10.0} {:>6.1} % {:9.0} {:9.0} {:9.0} {:9.4} {:>9}",
            f.iops,
            100.0 * spread / f.iops,
            f.cpu_ns(),
            f.user_ns,
            f.system_ns,
            f.switches,
            f.calls.map_or("-".to_owned(), |calls| format!("{calls:.4}")),
        );
    }
    Compared { title, peers }
}

fn name(peer: &Peer) -> &'static str {
    match peer {
        Peer::Fio(name, _) | Peer::Raw(name) | Peer::Ours(name, ..) | Peer::Unwritten(name, _) => {
            name
        }
    }
}

fn median(figures: &[Figures]) -> Figures {
    let of = |pick: fn(&Figures) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let counted = figures.iter().all(|f| f.calls.is_some());
    Figures {
        iops: of(|f| f.iops),
        user_ns: of(|f| f.user_ns),
        system_ns: of(|f| f.system_ns),
        switches: of(|f| f.switches),
        calls: counted.then(|| of(|f| f.calls.unwrap_or(f64::NAN))),
    }
}

fn run(peer: &Peer, target: &str, plan: &Plan, seed: u64) -> Option<Figures> {
    match peer {
        Peer::Raw(_) => raw::run(plan.raw.as_deref()?, target, DEPTH, plan.seconds),
        Peer::Fio(_, options) => fio(target, options, plan.seconds, seed),
        Peer::Ours(_, batch) => ours(target, *batch, "all", plan, seed),
        Peer::Unwritten(_, batch) => ours(target, Some(*batch), "none", plan, seed),
    }
}

/// What a process cost, for each of its requests.
fn costs(ended: &Ended, requests: f64, iops: f64) -> Figures {
    Figures {
        iops,
        user_ns: ended.user_ns / requests,
        system_ns: ended.system_ns / requests,
        switches: ended.switches / requests,
        calls: None,
    }
}

fn ours(target: &str, batch: Option<u32>, keep: &str, plan: &Plan, seed: u64) -> Option<Figures> {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ssdyno-peers-results");
    let mut command = Command::new(&plan.ours);
    command
        .args(["run", target, "--workload", "randread", "--json"])
        .args(["--keep", keep])
        .args(["--set", &format!("workload.depth={DEPTH}"), "--for", &format!("{}s", plan.seconds)])
        .args(["--seed", &seed.to_string(), "--results"])
        .arg(&directory);
    if let Some(batch) = batch {
        command.args(["--batch", &batch.to_string()]);
    }
    let ended = child::run(command)?;
    let _ = std::fs::remove_dir_all(directory);
    let result: serde_json::Value = serde_json::from_slice(&ended.output).ok()?;
    let Some(requests) = result["requests"].as_f64().filter(|n| *n > 0.0) else {
        println!("{target}: {}", result["error"]);
        return None;
    };
    if seed == 0 {
        let notes = result["notes"].as_array().into_iter().flatten();
        notes.filter_map(|note| note.as_str()).for_each(|note| println!("  note: {note}"));
    }
    let calls = result["own_cost"]["syscalls_per_request"].as_f64();
    Some(Figures { calls, ..costs(&ended, requests, result["iops"].as_f64()?) })
}

fn fio(target: &str, options: &[&str], seconds: u64, seed: u64) -> Option<Figures> {
    let mut command = Command::new("fio");
    command
        .args(["--name=peer", "--rw=randread", "--bs=4k", "--direct=1", "--time_based"])
        .args(["--output-format=json", "--readonly", "--randrepeat=0"])
        .arg(format!("--iodepth={DEPTH}"))
        .args([format!("--runtime={seconds}"), format!("--size={SIZE_BYTES}")])
        .arg(format!("--randseed={}", seed + 1))
        .args(options);
    if target != NULL {
        command.arg(format!("--filename={target}"));
    }
    let ended = child::run(command)?;
    let text = String::from_utf8_lossy(&ended.output);
    let json: serde_json::Value = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    let read = &json["jobs"][0]["read"];
    let requests = read["total_ios"].as_f64().filter(|n| *n > 0.0)?;
    Some(costs(&ended, requests, read["iops"].as_f64()?))
}
