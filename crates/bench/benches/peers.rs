//! Side by side with fio, in the same minute on the same machine: IOPS, median latency, CPU time, context
//! switches and system calls for each request, 4 KiB random reads.
//!
//! Targets: nothing; a loop device over a file in memory, at depths 1, 4, 32 and 128; that file itself, and a file on
//! the disk that holds the build directory, at depth 32. ssdyno records every request and writes the rows as Parquet,
//! unless the name says otherwise. fio runs with its usual statistics; its percentiles are those of `lat` (`clat`
//! begins after the submit call). *Tuned* uses the options that one search before the rounds found. All are programs
//! that are started, run for the same time, and are waited for (wait4(2)): CPU time and switches are of the whole
//! process, starting, reporting and writing included. Runs alternate, in an order that turns round, so that a busy
//! neighbour meets all; each figure is the median, with half of the distance from the lowest to the highest. At the
//! end: what fio beside itself differs by in the same rounds, and the goals, and whether the median reaches them, by
//! the runs of the same round against each other; *undecided* is one that the interval covers.
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
/// Where nothing else is said.
const DEPTH: u32 = 32;
/// Of the loop device.
const DEPTHS: [u32; 4] = [1, 4, DEPTH, 128];

/// The figures of a run, per request if marked so.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    iops: f64,
    /// Median latency from before the call that submits.
    p50_ns: f64,
    user_ns: f64,
    system_ns: f64,
    switches: f64,
    calls: Option<f64>,
    /// The run's own measurement of the tool overhead.
    overhead_ns: Option<f64>,
}

impl Figures {
    fn cpu_ns(&self) -> f64 {
        self.user_ns + self.system_ns
    }
}

/// What is started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Program {
    Fio,
    /// fio's `t/io_uring`, where there is one: a loop without statistics.
    Raw,
    Ours,
}

/// One way to load a target.
#[derive(Clone, Debug)]
struct Peer {
    name: &'static str,
    program: Program,
    /// On top of the common ones.
    options: Vec<String>,
}

impl Peer {
    fn new(name: &'static str, program: Program, options: &[&str]) -> Peer {
        Peer { name, program, options: options.iter().map(|&option| option.to_owned()).collect() }
    }
}

/// The target whose cost is compared.
const LOOP: &str = "loop device over tmpfs";
/// fio as it comes, and with everything that makes it cheaper.
const FIO_DEFAULTS: &str = "fio, defaults";
const FIO_BATCH: &str = "fio, fixed, whole batches";
/// The same once more in each round: what differs between the two is the noise of the machine.
const FIO_AGAIN: &str = "fio, defaults, again";
const RAW: &str = "t/io_uring, whole batches";
/// Ours, by method.
const OURS: &str = "ours, default";
const OURS_EFFICIENT: &str = "ours, efficient";
const OURS_TUNED: &str = "ours, tuned";
/// Ours on nothing: without files, and with figures alone.
const OURS_NO_FILES: &str = "ours, no files";
const OURS_SUMMARY: &str = "ours, keep summary";

const FIXED: [&str; 3] = ["--ioengine=io_uring", "--fixedbufs", "--registerfiles"];

/// Settings of fio that suit block devices and files on disks.
fn fio_settings(depth: u32) -> Vec<Peer> {
    let mut peers = vec![
        Peer::new(FIO_DEFAULTS, Program::Fio, &["--ioengine=io_uring"]),
        Peer::new(FIO_AGAIN, Program::Fio, &["--ioengine=io_uring"]),
        Peer::new("fio, fixed", Program::Fio, &FIXED),
    ];
    let batched = |name, submit: u32, least: u32| {
        let mut peer = Peer::new(name, Program::Fio, &FIXED);
        peer.options.extend([
            format!("--iodepth_batch_submit={submit}"),
            format!("--iodepth_batch_complete_min={least}"),
            format!("--iodepth_batch_complete_max={depth}"),
        ]);
        peer
    };
    if depth >= 4 {
        peers.push(batched("fio, fixed, quarter batches", depth / 2, depth / 4));
        peers.push(batched(FIO_BATCH, depth, depth));
    }
    peers
}

/// Who loads a block device or a file on a disk at `depth`; `tuned` are the options that the search found.
fn asynchronous(depth: u32, tuned: Option<Vec<String>>) -> Vec<Peer> {
    let mut peers = fio_settings(depth);
    if depth == DEPTH {
        peers.push(Peer::new(RAW, Program::Raw, &[]));
    }
    peers.push(Peer::new(OURS_EFFICIENT, Program::Ours, &["--method", "efficient"]));
    peers.push(Peer::new(OURS, Program::Ours, &[]));
    peers.extend(tuned.map(|options| Peer { name: OURS_TUNED, program: Program::Ours, options }));
    peers
}

/// Without a target: what the tools themselves cost.
fn nothing() -> Vec<Peer> {
    let plain = ["--ioengine=null", "--gtod_reduce=1", "--disable_lat=1", "--norandommap"];
    vec![
        Peer::new(FIO_DEFAULTS, Program::Fio, &["--ioengine=null"]),
        Peer::new(FIO_AGAIN, Program::Fio, &["--ioengine=null"]),
        Peer::new("fio null, no statistics", Program::Fio, &plain),
        Peer::new(OURS, Program::Ours, &[]),
        Peer::new(OURS_NO_FILES, Program::Ours, &["--keep", "none"]),
        Peer::new(OURS_SUMMARY, Program::Ours, &["--keep", "summary"]),
    ]
}

/// Engines that suit files in memory.
fn synchronous() -> Vec<Peer> {
    let jobs = ["--numjobs=32", "--group_reporting"];
    vec![
        Peer::new(FIO_DEFAULTS, Program::Fio, &["--ioengine=io_uring"]),
        Peer::new(FIO_AGAIN, Program::Fio, &["--ioengine=io_uring"]),
        Peer::new("fio psync, 1 job", Program::Fio, &["--ioengine=psync"]),
        Peer::new("fio psync, 32 jobs", Program::Fio, &["--ioengine=psync", jobs[0], jobs[1]]),
        Peer::new("fio mmap, 32 jobs", Program::Fio, &["--ioengine=mmap", jobs[0], jobs[1]]),
        Peer::new(OURS, Program::Ours, &[]),
    ]
}

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
        runs: number("--runs", 10),
        seconds: number("--seconds", 3),
        ours,
        raw: path("--t-io-uring"),
    };
    if Command::new("fio").arg("--version").output().is_err() {
        println!("there is no fio to compare with: apt-get install fio");
        return;
    }
    say_if_busy();
    let mut tables = vec![compare("null:", NULL, DEPTH, &nothing(), &plan)];
    let memory = scratch(Path::new("/dev/shm"));
    let disk = scratch(&PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    if let Some(file) = &memory {
        match attach(file) {
            Some(device) => {
                tables.extend(DEPTHS.map(|depth| load(LOOP, &device, depth, &plan)));
                let _ = Command::new("losetup").args(["--detach", &device]).status();
            }
            None => println!("no loop device: not root, or the kernel has none"),
        }
        let name = file.display().to_string();
        tables.push(compare("file on tmpfs", &name, DEPTH, &synchronous(), &plan));
    }
    if let Some(file) = &disk {
        tables.push(load("file on disk", &file.display().to_string(), DEPTH, &plan));
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

/// The results of all runs on one target.
struct Compared {
    title: &'static str,
    depth: u32,
    /// Each peer with its runs.
    peers: Vec<(&'static str, Vec<Figures>)>,
}

/// All who may load `target`, which has no memory of its own.
fn load(title: &'static str, target: &str, depth: u32, plan: &Plan) -> Compared {
    let tuned = tuned(target, depth, plan);
    if let Some(options) = &tuned {
        println!("\n{title}, depth {depth}: tuned to {}", options.join(" "));
    }
    compare(title, target, depth, &asynchronous(depth, tuned), plan)
}

/// The options that a search finds.
fn tuned(target: &str, depth: u32, plan: &Plan) -> Option<Vec<String>> {
    let mut command = ours_on(target, depth, plan, 0);
    command.args(["--tune", "--keep", "none", "--for", "100ms"]);
    let result: serde_json::Value = serde_json::from_slice(&child::run(command)?.output).ok()?;
    let method = &result["method"];
    let mut options: Vec<String> =
        method["options"].as_str()?.split(' ').map(str::to_owned).collect();
    if let (Some(true), Some(core)) = (method["pinned"].as_bool(), method["cores"][0].as_u64()) {
        options.extend(["--pin".to_owned(), core.to_string()]);
    }
    Some(options)
}

fn compare(title: &'static str, target: &str, depth: u32, peers: &[Peer], plan: &Plan) -> Compared {
    let Plan { runs, seconds, .. } = *plan;
    println!(
        "\n{title} ({target}), depth {depth}: median of {runs} runs of {seconds} s, by request"
    );
    println!(
        "{:28} {:>10} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "IOPS", "spread", "p50 ns", "CPU ns", "user ns", "system ns", "switches", "calls"
    );
    let mut measured = vec![Vec::new(); peers.len()];
    for seed in 0..runs {
        let mut order: Vec<usize> = (0..peers.len()).collect();
        if seed % 2 == 1 {
            order.reverse();
        }
        for index in order {
            measured[index].extend(run(&peers[index], target, depth, plan, seed));
        }
    }
    let peers: Vec<(&str, Vec<Figures>)> =
        peers.iter().map(|peer| peer.name).zip(measured).collect();
    for (name, runs) in peers.iter().filter(|(_, runs)| !runs.is_empty()) {
        let f = median(runs);
        let spread = goals::spread(&runs.iter().map(|f| f.iops).collect::<Vec<f64>>());
        println!(
            "{name:28} {:10.0} {:>6.1} % {:9.0} {:9.0} {:9.0} {:9.0} {:9.4} {:>9}",
            f.iops,
            100.0 * spread / f.iops,
            f.p50_ns,
            f.cpu_ns(),
            f.user_ns,
            f.system_ns,
            f.switches,
            f.calls.map_or("-".to_owned(), |calls| format!("{calls:.4}")),
        );
    }
    Compared { title, depth, peers }
}

fn median(figures: &[Figures]) -> Figures {
    let of = |pick: fn(&Figures) -> f64| goals::median(figures.iter().map(pick).collect());
    let counted = figures.iter().all(|f| f.calls.is_some());
    Figures {
        iops: of(|f| f.iops),
        p50_ns: of(|f| f.p50_ns),
        user_ns: of(|f| f.user_ns),
        system_ns: of(|f| f.system_ns),
        switches: of(|f| f.switches),
        calls: counted.then(|| of(|f| f.calls.unwrap_or(f64::NAN))),
        overhead_ns: None,
    }
}

fn run(peer: &Peer, target: &str, depth: u32, plan: &Plan, seed: u64) -> Option<Figures> {
    match peer.program {
        Program::Raw => raw::run(plan.raw.as_deref()?, target, depth, plan.seconds),
        Program::Fio => fio(target, depth, &peer.options, plan.seconds, seed),
        Program::Ours => ours(target, depth, &peer.options, plan, seed),
    }
}

/// The cost of a process per request.
fn costs(ended: &Ended, requests: f64, iops: f64) -> Figures {
    Figures {
        iops,
        user_ns: ended.user_ns / requests,
        system_ns: ended.system_ns / requests,
        switches: ended.switches / requests,
        ..Figures::default()
    }
}

/// Our program on `target`, as yet without an end.
fn ours_on(target: &str, depth: u32, plan: &Plan, seed: u64) -> Command {
    let mut command = Command::new(&plan.ours);
    command.args(["run", target, "--workload", "randread", "--json"]).args([
        "--set",
        &format!("workload.depth={depth}"),
        "--seed",
        &seed.to_string(),
    ]);
    command
}

fn ours(target: &str, depth: u32, options: &[String], plan: &Plan, seed: u64) -> Option<Figures> {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ssdyno-peers-results");
    let mut command = ours_on(target, depth, plan, seed);
    command
        .args(["--for", &format!("{}s", plan.seconds), "--results"])
        .arg(&directory)
        .args(options);
    let ended = child::run(command)?;
    let _ = std::fs::remove_dir_all(directory);
    let result: serde_json::Value = serde_json::from_slice(&ended.output).ok()?;
    let Some(requests) = result["requests"].as_f64().filter(|n| *n > 0.0) else {
        println!("{target}: {}", result["error"]);
        return None;
    };
    let cost = &result["own_cost"];
    Some(Figures {
        p50_ns: result["latency_ns"]["p50"].as_f64()?,
        calls: cost["syscalls_per_request"].as_f64(),
        overhead_ns: cost["floor_cpu_ns_per_request"].as_f64(),
        ..costs(&ended, requests, result["iops"].as_f64()?)
    })
}

fn fio(target: &str, depth: u32, options: &[String], seconds: u64, seed: u64) -> Option<Figures> {
    let mut command = Command::new("fio");
    command
        .args(["--name=peer", "--rw=randread", "--bs=4k", "--direct=1", "--time_based"])
        .args(["--output-format=json", "--readonly", "--randrepeat=0", "--lat_percentiles=1"])
        .arg(format!("--iodepth={depth}"))
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
    // Without statistics there is none.
    let p50_ns = read["lat_ns"]["percentile"]["50.000000"].as_f64().unwrap_or(f64::NAN);
    Some(Figures { p50_ns, ..costs(&ended, requests, read["iops"].as_f64()?) })
}
