//! Whole runs on targets that every Linux machine has, and on a loop device where root may.

mod iscsi;
mod loops;
mod media;
mod methods;
mod network;
mod searches;
mod several;
mod spinning;
mod stalled;
mod written;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use loops::Loop;
use ssdyno_block::{Op, Time};
use ssdyno_figures::{Keep, KeepGoing, RunLimits};
use ssdyno_safety::{Access, Consent};
use ssdyno_workload::{Source, TraceOptions, TraceTiming, WorkloadConfig};

use crate::{BenchError, BenchMeasured, BenchOptions, BenchRun, EngineKind, ReapWait};

/// Where tmpfs is mounted on nearly every Linux.
const MEMORY: &str = "/dev/shm";

fn run(target: &str, workload: &str) -> BenchRun {
    BenchRun {
        target: target.to_owned(),
        access: Access::ReadOnly,
        more: Vec::new(),
        workload: "test".to_owned(),
        source: Source::Generator(WorkloadConfig::from_toml(workload).unwrap()),
        seed: 1,
        limits: RunLimits::default(),
        keep: Keep::All,
        rows_in: None,
        interval: None,
        options: BenchOptions::default(),
    }
}

fn measure(run: &BenchRun) -> BenchMeasured {
    let measured = run.execute(&mut |_| KeepGoing::Continue).unwrap_or_else(|e| panic!("{e}"));
    let broken: Vec<_> = measured.result.invariants.iter().filter(|i| !i.holds).collect();
    assert!(broken.is_empty(), "{broken:?}");
    measured
}

fn refusal(run: &BenchRun) -> BenchError {
    match run.execute(&mut |_| KeepGoing::Continue) {
        Ok(measured) => panic!("was not refused: {:?}", measured.result.notes),
        Err(error) => {
            assert!(!error.to_string().is_empty() && !error.help().is_empty());
            error
        }
    }
}

/// A file of `bytes` in `directory`, and its name.
fn file(directory: &Path, bytes: usize) -> String {
    let path = directory.join("target");
    let mut file = File::create(&path).unwrap();
    file.write_all(&vec![0xA5; bytes]).unwrap();
    file.sync_all().unwrap();
    path.to_str().unwrap().to_owned()
}

/// To write over a file that is there.
fn permit(name: &str) -> Access {
    let consent = Consent { overwrite: true, ..Consent::default() };
    Access::Write(ssdyno_safety::inspect(name).unwrap().permit(consent).unwrap())
}

#[test]
fn null_records_every_request_at_any_depth_and_number_of_jobs() {
    for (depth, jobs) in [(1, 1), (32, 1), (32, 3), (7, 7)] {
        let mut run = run("null:", &format!("depth = {depth}\nrequests = 20000\nramp_up = 1001\n"));
        run.options.jobs = jobs;
        let BenchMeasured { result, recording, failure } = measure(&run);
        assert!(failure.is_none() && !result.partial);
        assert_eq!(result.requests, 20_000, "depth {depth}, {jobs} jobs");
        assert_eq!(recording.rows().unwrap().len(), 20_000);
        let counted: u64 = result.series.iter().map(|p| p.reads).sum();
        assert_eq!(counted, 20_000);
        let cost = result.own_cost.unwrap();
        assert_eq!(cost.syscalls_per_request, Some(0.0));
        assert!(cost.floor_cpu_ns_per_request.unwrap() > 0.0);
    }
}

#[test]
fn one_job_draws_the_requests_of_a_simulated_run() {
    let workload = "depth = 4\nrequests = 1000\nread_percent = 50\n";
    let measured = measure(&run("null:", workload));
    let rows: Vec<_> = measured.recording.rows().unwrap().to_vec().unwrap();
    let rows = rows.iter().map(|row| row.request);
    let facts = ssdyno_workload::TargetFacts { capacity_bytes: 1 << 40, sector_bytes: 512 };
    let mut same = WorkloadConfig::from_toml(workload).unwrap().build(&facts, 1).unwrap();
    for request in rows {
        let step = same.next(Time::ZERO);
        assert!(
            matches!(step, ssdyno_workload::WorkloadStep::Issue { request: r, .. } if r == request)
        );
        same.completed(ssdyno_workload::Finished::UNKNOWN, Time::ZERO);
    }
}

/// The most popular place of a Zipf load gets 1 / zeta(1.5) = 38.3 % of its requests, whatever the number of jobs. Within five
/// standard deviations of 20 000 draws (1.7 %).
#[test]
fn jobs_that_share_a_load_have_the_same_popular_places() {
    let load = "depth = 4\nrequests = 20000\naddress = { pattern = \"zipf\", theta = 1.5 }\n";
    for jobs in [1, 4] {
        let mut run = run("null:", load);
        run.options.jobs = jobs;
        let rows = measure(&run).recording.rows().unwrap().to_vec().unwrap();
        let mut counts = std::collections::BTreeMap::new();
        rows.iter().for_each(|row| *counts.entry(row.request.offset_bytes).or_insert(0) += 1);
        let share = f64::from(*counts.values().max().unwrap()) / rows.len() as f64;
        assert!((share - 0.383).abs() < 0.017, "{jobs} jobs: {share}");
    }
}

/// As rows in memory, with everything that follows from them.
#[test]
fn rows_in_a_file_are_those_of_the_run() {
    let directory = tempfile::tempdir().unwrap();
    for jobs in [1, 3] {
        let mut run = run("null:", "depth = 6\nrequests = 300000\nramp_up = 1000\n");
        run.options.jobs = jobs;
        let place = directory.path().to_owned();
        run.rows_in = Some(crate::RowsPlace { directory: place, spec: None, provenance: None });
        let BenchMeasured { result, recording, .. } = measure(&run);
        assert!(directory.path().join("requests.rows").exists());
        assert!(!directory.path().join("requests.room").exists(), "figures need that room now");
        let rows = recording.rows().unwrap();
        let (lost, error) = rows.lost();
        assert_eq!(error, None);
        assert_eq!(rows.len() as u64 + lost, 300_000);
        let all = rows.to_vec().unwrap();
        let ends = |row: &ssdyno_record::Row| row.issue_ns + row.latency_ns;
        assert!(all.windows(2).all(|two| ends(&two[0]) <= ends(&two[1])));
        if lost == 0 {
            let mut sorted: Vec<u64> = all.iter().map(|row| row.latency_ns).collect();
            sorted.sort_unstable();
            let p99 = sorted[300_000 * 99 / 100 - 1] as f64;
            assert_eq!(result.latency_ns.unwrap().all.p99, p99, "exact, from the file");
        }
        assert_eq!(rows.names().devices, [(0, "null:".to_owned())]);
        ssdyno_report::RunDirectory::open(directory.path())
            .unwrap()
            .write_rows(rows, false)
            .unwrap();
        assert!(!directory.path().join("requests.rows").exists());
        std::fs::remove_file(directory.path().join("requests.parquet")).unwrap();
    }
}

#[test]
fn files_are_read_and_written_with_both_engines() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 1 << 20);
    let workload = "depth = 8\nrequests = 500\nread_percent = 60\ntrim_percent = 5\n\
                    block_sizes = [{ size = \"4KiB\", weight = 3 }, { size = \"16KiB\", weight = 1 }]\n";
    for engine in [EngineKind::Uring, EngineKind::Threads] {
        let mut run = run(&name, workload);
        run.access = permit(&name);
        run.options.engine = engine;
        let BenchMeasured { result, failure, .. } = match run.execute(&mut |_| KeepGoing::Continue)
        {
            Err(BenchError::Uring { source }) => {
                eprintln!("skipped: no io_uring here ({source})");
                continue;
            }
            other => other.unwrap(),
        };
        assert!(failure.is_none(), "{failure:?} {:?}", result.notes);
        assert_eq!((result.requests, result.errors), (500, 0), "{:?}", result.notes);
        let by_op = &result.requests_by_op;
        assert!(by_op.read > 200 && by_op.write > 100 && by_op.trim > 5, "{by_op:?}");
        assert!(result.own_cost.unwrap().syscalls_per_request.unwrap() > 0.0);
    }
    let content = std::fs::read(&name).unwrap();
    assert_eq!(content.len(), 1 << 20, "the file keeps its size");
    assert!(content.iter().any(|b| *b != 0xA5), "nothing was written");
}

#[test]
fn a_file_in_memory_is_told_and_read_by_threads() {
    if !Path::new(MEMORY).is_dir() {
        eprintln!("skipped: there is no {MEMORY}");
        return;
    }
    let directory = tempfile::tempdir_in(MEMORY).unwrap();
    let name = file(directory.path(), 1 << 20);
    let result = measure(&run(&name, "depth = 4\nrequests = 1000\n")).result;
    assert_eq!((result.requests, result.errors), (1_000, 0));
    let notes = result.notes.join("\n");
    assert!(notes.contains("engine threads (pread and pwrite); 4 jobs"), "{notes}");
    assert!(
        result.warnings.iter().any(|one| one.message.contains("tmpfs")),
        "{:?}",
        result.warnings
    );
}

#[test]
fn latency_in_an_open_loop_counts_from_the_intended_start() {
    // All arrive at once and one is outstanding at a time: they wait for one another.
    let workload = "requests = 64\ndepth = 1\n\
                    arrivals = { kind = \"bursts\", length = 64, interval = \"1s\" }\n";
    let result = measure(&run("null:", workload)).result;
    let (all, inside) = (result.latency_ns.unwrap().all, result.device_latency_ns.unwrap());
    assert!(all.max > 10.0 * inside.mean && all.mean > inside.mean, "{all:?} {inside:?}");
    assert!(result.issue_delay_ns.unwrap().queued >= 60);
}

#[test]
fn a_steady_rate_is_kept() {
    let workload = "requests = 200\narrivals = { kind = \"fixed\", rate = 2000.0 }\n";
    let result = measure(&run("null:", workload)).result;
    // 199 gaps of 0.5 ms: the first is at 0. Late by up to a second where the machine is busy.
    assert!((0.0995..1.1).contains(&result.simulated_seconds), "{}", result.simulated_seconds);
    assert_eq!(result.issue_delay_ns.unwrap().queued, 0);
}

#[test]
fn a_trace_keeps_its_times_and_says_how_late_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("some.csv");
    let mut text = String::from("time_ns,op,offset_bytes,length_bytes\n");
    for i in 0..100u64 {
        text.push_str(&format!("{},read,{},4096\n", i * 200_000, i * 4096));
    }
    std::fs::write(&path, text).unwrap();
    let mut run = run("null:", "");
    run.source = Source::Trace { path: path.clone(), options: TraceOptions::default() };
    let result = measure(&run).result;
    assert_eq!(result.requests, 100);
    assert!(result.simulated_seconds >= 99.0 * 200e-6 && result.issue_delay_ns.is_some());
    let fast = TraceOptions {
        timing: TraceTiming::AsFastAsPossible { depth: 8 },
        ..TraceOptions::default()
    };
    run.source = Source::Trace { path, options: fast };
    let result = measure(&run).result;
    assert!(result.requests == 100 && result.issue_delay_ns.is_none());
}

#[test]
fn nothing_is_written_without_a_permit_for_this_very_file() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 1 << 16);
    let mut writes = run(&name, "read_percent = 50\nrequests = 10\n");
    assert!(matches!(refusal(&writes), BenchError::ReadOnly { op: Op::Write, .. }));
    writes.source = Source::Generator(WorkloadConfig::from_toml("trim_percent = 1\n").unwrap());
    assert!(matches!(refusal(&writes), BenchError::ReadOnly { op: Op::Trim, .. }));
    let other = tempfile::tempdir().unwrap();
    writes.access = permit(&file(other.path(), 1 << 16));
    assert!(matches!(refusal(&writes), BenchError::Permit { .. }));
    let trace = directory.path().join("w.csv");
    std::fs::write(&trace, "time_ns,op,offset_bytes,length_bytes\n0,read,0,4096\n1,write,0,4096\n")
        .unwrap();
    let mut traced = run(&name, "");
    traced.source = Source::Trace { path: trace, options: TraceOptions::default() };
    let measured = traced.execute(&mut |_| KeepGoing::Continue).unwrap();
    assert!(matches!(measured.failure, Some(BenchError::ReadOnly { .. })));
    assert!(measured.result.partial && measured.result.requests == 1);
    assert!(std::fs::read(&name).unwrap().iter().all(|b| *b == 0xA5), "something was written");
}

#[test]
fn what_cannot_be_loaded_is_named() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(refusal(&run("/no/such/thing", "")), BenchError::Open { .. }));
    let folder = directory.path().to_str().unwrap();
    assert!(matches!(refusal(&run(folder, "")), BenchError::Kind { kind: "a directory", .. }));
    assert!(matches!(refusal(&run("/dev/null", "")), BenchError::Kind { .. }));
    let small = file(directory.path(), 100);
    assert!(matches!(refusal(&run(&small, "")), BenchError::TooSmall { size_bytes: 100, .. }));
    let odd = file(directory.path(), 10_000);
    assert!(matches!(refusal(&run(&odd, "block_size = \"1000B\"")), BenchError::Workload(_)));
    assert!(matches!(refusal(&run(&odd, "block_size = \"16KiB\"")), BenchError::Workload(_)));
}

#[test]
fn two_runs_on_one_target_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 1 << 16);
    let first = crate::RealTarget::open(&name, &Access::ReadOnly).unwrap();
    assert!(matches!(refusal(&run(&name, "requests = 1")), BenchError::Busy { .. }));
    drop(first);
    assert_eq!(measure(&run(&name, "requests = 1")).result.requests, 1);
}

#[test]
fn options_that_cannot_be_carried_out_are_named() {
    let option = |change: fn(&mut BenchOptions)| {
        let mut run = run("null:", "depth = 2\n");
        change(&mut run.options);
        match refusal(&run) {
            BenchError::Option { option, .. } => option,
            other => panic!("{other}"),
        }
    };
    assert_eq!(option(|o| o.jobs = 0), "jobs");
    assert_eq!(option(|o| o.jobs = 3), "jobs");
    assert_eq!(option(|o| o.batch = Some(0)), "batch");
    assert_eq!(option(|o| o.submit = Some(0)), "submit");
    assert_eq!(option(|o| o.tune = true), "tune");
    assert_eq!(option(|o| o.timeout = Duration::ZERO), "timeout");
    assert_eq!(option(|o| o.cores = vec![100_000]), "cores");
    assert_eq!(
        option(|o| {
            o.engine = EngineKind::Threads;
            o.iopoll = true;
        }),
        "iopoll"
    );
    // A core for nothing: others wait there.
    let spin = |change: fn(&mut BenchOptions)| {
        let mut run = run("null:", "depth = 2\n");
        run.options.waiting = Some(ReapWait::Spin);
        change(&mut run.options);
        matches!(refusal(&run), BenchError::Option { option: "wait", .. })
    };
    assert!(spin(|o| o.engine = EngineKind::Threads));
    assert!(spin(|o| o.iopoll = true));
}

#[test]
fn a_run_that_is_stopped_keeps_what_it_has() {
    let run = run("null:", "depth = 4\nduration = \"60s\"\n");
    let mut told = 0;
    let mut stop = |progress: &ssdyno_figures::RunProgress| {
        assert!(progress.completed <= progress.issued);
        // Stopped before its load, it would have nothing to keep.
        if progress.completed == 0 {
            return KeepGoing::Continue;
        }
        told += 1;
        KeepGoing::Stop
    };
    let measured = BenchRun { keep: Keep::Summary, ..run }.execute(&mut stop).unwrap();
    assert_eq!(told, 1);
    assert!(matches!(measured.failure, Some(BenchError::Interrupted)));
    assert!(measured.result.partial && measured.result.requests > 0);
    assert!(measured.result.invariants.iter().all(|i| i.holds), "{:?}", measured.result.invariants);
}

/// The jobs of a job file with `text` as the load of `run`.
fn with_jobs(mut run: BenchRun, text: &str) -> BenchRun {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let jobs = ssdyno_workload::read_fio_jobs(file.path()).unwrap();
    run.source = Source::Jobs { path: "some.fio".into(), jobs };
    run
}

#[test]
fn jobs_of_a_job_file_run_and_are_told_apart() {
    let text = "[global]\nbs=4k\nioengine=libaio\niodepth=8\nnorandommap\nsize=4m\n\
                [a]\nrw=randread\nnumjobs=2\n[b]\nrw=read\nbs=64k\nstartdelay=20ms\n\
                [c]\nstonewall\nrw=randrw\nnumjobs=3\ngroup_reporting\n\
                [d]\nrw=randread\nbs=8k\nrate_iops=1000\nruntime=60ms\ntime_based\nramp_time=50ms\n";
    for keep in [Keep::All, Keep::Summary] {
        let run = with_jobs(BenchRun { keep, ..run("null:", "") }, text);
        let BenchMeasured { result, recording, failure } = measure(&run);
        assert!(failure.is_none() && !result.partial);
        let names: Vec<&str> = result.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["a", "a", "b", "c", "d"]);
        let groups: Vec<u32> = result.jobs.iter().map(|job| job.group).collect();
        assert_eq!(groups, [0, 0, 0, 1, 1]);
        let requests: Vec<u64> = result.jobs.iter().map(|job| job.requests).collect();
        assert_eq!(requests[..4], [1024, 1024, 64, 3 * 1024]);
        // 110 ms at 1000 a second, of which the first 50 are not recorded; on a busy machine some of
        // those complete later.
        assert!((60..=110).contains(&requests[4]), "{requests:?}");
        if let Some(rows) = recording.rows() {
            let rows = rows.to_vec().unwrap();
            // When they were meant to start is exact, however late they did.
            let paced = rows.iter().filter(|row| row.request.length_bytes == 8192);
            let mut starts: Vec<u64> = paced.map(|row| row.issue_ns).collect();
            starts.sort_unstable();
            assert_eq!(starts.len() as u64, requests[4]);
            assert!(starts.windows(2).all(|two| two[1] - two[0] == 1_000_000), "{starts:?}");
            let ramped_up = recording.start() + Time::from_s_f64(result.jobs[4].start_seconds);
            let recorded = starts.iter().filter(|start| Time::from_ns(**start) >= ramped_up);
            assert_eq!(recorded.count(), 60, "{ramped_up:?} {starts:?}");
        }
        assert_eq!(result.requests, requests.iter().sum::<u64>());
        assert_eq!(
            recording.rows().map(|rows| rows.len() as u64).unwrap_or(result.requests),
            result.requests
        );
        assert!(result.jobs[2].start_seconds >= 0.02 && result.jobs[3].start_seconds >= 0.02);
        assert_eq!(result.jobs[3].copies, 3);
        let writes: u64 = result.jobs.iter().map(|job| job.requests_by_op.write).sum();
        assert_eq!(writes, result.jobs[3].requests_by_op.write);
        assert_eq!(result.requests_by_op.write, writes);
    }
}

#[test]
fn jobs_run_on_a_file_with_both_engines_and_only_write_with_a_permit() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 1 << 20);
    let text =
        "[global]\nbs=4k\nioengine=libaio\niodepth=4\n[r]\nrw=randread\n[w]\nrw=write\nfsync=16\n";
    let refused = refusal(&with_jobs(run(&name, ""), text));
    assert!(matches!(&refused, BenchError::ReadOnlyJob { job, .. } if job == "w"), "{refused}");
    for engine in [EngineKind::Uring, EngineKind::Threads] {
        let mut run = with_jobs(run(&name, ""), text);
        (run.access, run.options.engine) = (permit(&name), engine);
        let result = match run.execute(&mut |_| KeepGoing::Continue) {
            Err(BenchError::Uring { source }) => {
                eprintln!("skipped: no io_uring here ({source})");
                continue;
            }
            other => other.unwrap().result,
        };
        let by_op = &result.requests_by_op;
        assert_eq!((by_op.read, by_op.write, result.errors), (256, 256, 0), "{:?}", result.notes);
        assert!((12..=16).contains(&by_op.flush), "{by_op:?}");
    }
}

#[test]
fn jobs_that_a_target_cannot_carry_are_named_by_their_section() {
    let refused = |text: &str| match refusal(&with_jobs(run("null:", ""), text)) {
        BenchError::Workload(error) => (error.at.clone().unwrap().number, error.to_string()),
        other => panic!("{other}"),
    };
    let (line, message) = refused("[a]\nrw=read\n[b]\nsize=9000t\n");
    assert!(line == 4 && message.contains("size"), "{message}");
    let (line, message) = refused("[a]\nbs=1000\n");
    assert!(line == 2 && message.contains("bs"), "{message}");
    let mut twice = with_jobs(run("null:", ""), "[a]\n");
    twice.options.jobs = 2;
    assert!(matches!(refusal(&twice), BenchError::Option { option: "jobs", .. }));
}

#[test]
fn cores_are_pinned() {
    let mut run = run("null:", "depth = 2\nrequests = 1000\n");
    (run.options.jobs, run.options.cores) = (2, vec![0]);
    assert_eq!(measure(&run).result.requests, 1_000);
}

/// A file system of its own, unmounted when dropped.
struct Mounted {
    device: Loop,
    place: tempfile::TempDir,
}

impl Mounted {
    fn new(directory: &Path) -> Option<Mounted> {
        let image = directory.join("image");
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let device = Loop::over(image.to_str().unwrap())?;
        let place = tempfile::tempdir().unwrap();
        let did = |program: &str, arguments: &[&str]| {
            let status = std::process::Command::new(program).args(arguments).status();
            status.is_ok_and(|status| status.success())
        };
        let mounted = did("mkfs.ext4", &["-q", &device.name])
            && did("mount", &[&device.name, place.path().to_str().unwrap()]);
        if !mounted {
            eprintln!("skipped: no file system can be made and mounted here");
        }
        mounted.then_some(Mounted { device, place })
    }

    fn freeze(&self, option: &str) {
        let place = self.place.path();
        let status = std::process::Command::new("fsfreeze").arg(option).arg(place).status();
        assert!(status.unwrap().success(), "fsfreeze {option}");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The kernel holds files of a ring for a while after it was closed.
        for _ in 0..50 {
            let did = std::process::Command::new("umount").arg(self.place.path()).output();
            if did.is_ok_and(|did| did.status.success()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.device.detach();
    }
}

/// Whether percentiles are what a stall of `stall` makes of them: a tenth of the requests arrives in it, evenly spread,
/// and waits for the rest of it. So p95 is the wait of the first of them less half of the stall, and p99 that wait less
/// a tenth. Within 5 %, and `slack` for a machine that does other things.
fn sees_the_stall(latency: &ssdyno_figures::Latency, stall: Duration, slack: Duration) -> bool {
    let (stall, slack) = (stall.as_nanos() as f64, slack.as_nanos() as f64);
    let near = |got: f64, want: f64| (got - want).abs() <= 0.05 * want + slack;
    (0.95 * stall..1.2 * stall + slack).contains(&latency.max)
        && near(latency.p95, latency.max - 0.5 * stall)
        && near(latency.p99, latency.max - 0.1 * stall)
        // And nobody else: nine of ten requests met no stall.
        && latency.p50 < 0.02 * stall + slack
}

/// 1000 writes a second while the file system under the target is frozen for a tenth of the time.
fn stalled_by_freezing(seconds: f64) {
    let directory = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::new(directory.path()) else { return };
    let name = file(mounted.place.path(), 16 << 20);
    let stall = Duration::from_secs_f64(seconds / 10.0);
    for depth in [1, 32] {
        let workload = format!(
            "duration = \"{seconds}s\"\nread_percent = 0\ndepth = {depth}\n\
             arrivals = {{ kind = \"fixed\", rate = 1000.0 }}\n"
        );
        let mut run = run(&name, &workload);
        (run.access, run.options.engine) = (permit(&name), EngineKind::Uring);
        let measured = std::thread::scope(|scope| {
            let running = scope.spawn(|| measure(&run));
            std::thread::sleep(stall * 4);
            mounted.freeze("--freeze");
            std::thread::sleep(stall);
            mounted.freeze("--unfreeze");
            running.join().unwrap()
        });
        let latency = measured.result.latency_ns.unwrap().all;
        let [p95, p99, max] = [latency.p95, latency.p99, latency.max].map(|ns| ns / 1e6);
        let whole = stall.as_secs_f64() * 1e3;
        eprintln!(
            "stall of {whole:.0} ms, depth {depth}: p95 {p95:.1} ms (exact {:.1}), p99 {p99:.1} ms \
             (exact {:.1}), most {max:.1} ms",
            max - 0.5 * whole,
            max - 0.1 * whole
        );
        assert!(sees_the_stall(&latency, stall, Duration::from_millis(10)), "{latency:?}");
    }
}

/// 10 s, of which 1 s is frozen: p95 and p99 are about 500 and 900 ms.
#[test]
#[ignore = "half a minute, as root, on a machine with nothing else to do"]
fn a_frozen_file_system_is_seen_by_everybody_who_arrived_meanwhile() {
    stalled_by_freezing(10.0);
}

/// The same with a target that completes nothing for a while, which needs no permission: 2.5 s, of
/// which 0.25 s are stalled.
#[test]
fn a_stall_is_seen_by_everybody_who_arrived_in_it() {
    let stall = Duration::from_millis(250);
    let runs = std::thread::scope(|scope| {
        let runs = [1, 32].map(|depth| scope.spawn(move || stalled::latency(depth, stall)));
        runs.map(|run| run.join().unwrap())
    });
    for (recorded, exact) in runs {
        let at = |share: f64| exact[(share * exact.len() as f64).ceil() as usize - 1] as f64;
        // A tenth arrives in the stall: one in a hundred waits for nearly all of it.
        assert!(at(0.99) > 0.85 * stall.as_nanos() as f64, "{}", at(0.99));
        // The clock is read a moment before the target's answers are; on a busy machine something
        // may come between the two.
        let near = |got: f64, want: f64| (got - want).abs() <= 0.01 * want + 10e6;
        for (got, want) in [
            (recorded.p50, at(0.5)),
            (recorded.p95, at(0.95)),
            (recorded.p99, at(0.99)),
            (recorded.max, at(1.0)),
        ] {
            assert!(near(got, want), "{got} recorded, {want} exact; {recorded:?}");
        }
    }
}
