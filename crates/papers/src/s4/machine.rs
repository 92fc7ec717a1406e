//! S4's table 3 and its overheads on the machine at hand (S4-21, S4-44, S4-45): what our own engines
//! take, and what a system call and a switch cost here. Measured in wall time, so the numbers differ
//! from run to run; nothing is compared with them.

use crate::FigureTable;

/// Both tables; none where the machine is not one that can be measured.
#[cfg(not(target_os = "linux"))]
pub(super) fn tables(_title: &str, _requests: Option<u64>) -> Vec<FigureTable> {
    Vec::new()
}

#[cfg(target_os = "linux")]
pub(super) use linux::tables;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::path::{Path, PathBuf};
    use std::time::Instant;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use ssdyno_session::{RunSpec, Unattended, resolve};

    use super::FigureTable;

    /// Size of the file that is read; small enough to stay in the page cache.
    const FILE_BYTES: usize = 16 << 20;
    /// Requests of a measurement, at most.
    const REQUESTS_MAX: u64 = 40_000;
    /// Calls of a measurement.
    const CALLS: u32 = 200_000;
    /// Round trips between two threads.
    const ROUNDS: u32 = 20_000;

    /// Both tables, with `requests` at most for each engine.
    pub(in super::super) fn tables(title: &str, requests: Option<u64>) -> Vec<FigureTable> {
        let requests = requests.unwrap_or(REQUESTS_MAX).min(REQUESTS_MAX);
        vec![engines(title, requests), costs()]
    }

    /// A file of ours that goes with the measurement.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> std::io::Result<Scratch> {
            let name = format!("ssdyno-papers-{}.bin", std::process::id());
            let path = std::env::temp_dir().join(name);
            // `create_new` fails if the file exists. A file of another user, or a symbolic link to
            // one, would otherwise be overwritten.
            let mut file = File::create_new(&path)?;
            let scratch = Scratch(path);
            file.write_all(&vec![0xA5; FILE_BYTES])?;
            // Write-back of the new file would run during the first measurement. It is finished
            // before, so the first engine has no disadvantage.
            file.sync_all()?;
            Ok(scratch)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            // What cannot be removed is left in the system's directory for such files.
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn engines(title: &str, requests: u64) -> FigureTable {
        let scratch = Scratch::new().ok();
        let file = scratch.as_ref().map(|scratch| scratch.0.as_path());
        let row = |name: &str, target: Option<&Path>, depth, real: &str| match target {
            Some(target) => row(name, target, depth, requests, real),
            None => vec![name.to_owned(), "no room for the file".to_owned()],
        };
        let (threads, uring) = ("engine = \"threads\"", "engine = \"uring\"");
        let nothing_of_the_system =
            ["simulated device in the same process", "0", "0", "see the runs"];
        let rows = vec![
            nothing_of_the_system.map(str::to_owned).to_vec(),
            row("null:, depth 32", Some(Path::new("null:")), 32, ""),
            row("pread(2), depth 1", file, 1, threads),
            row("pread(2), depth 8", file, 8, threads),
            row("io_uring, depth 1", file, 1, uring),
            row("io_uring, depth 32", file, 32, uring),
            row("io_uring, SQPOLL, depth 32", file, 32, &format!("{uring}\nsqpoll = true")),
            vec!["libaio".to_owned(), "not an engine of this tool".to_owned()],
        ];
        let columns = ["engine", "system calls", "switches", "CPU, ns", "requests per second"];
        let rows = rows.into_iter().map(|row| filled(row, columns.len())).collect();
        let title = format!("{title} (a file of 16 MiB in the system's temporary directory)");
        FigureTable::new("S4/machine", title, columns, rows)
    }

    /// As many cells as there are columns.
    fn filled(mut row: Vec<String>, columns: usize) -> Vec<String> {
        row.resize(columns, String::new());
        row
    }

    /// What a request costs, where `real` says how the target is loaded.
    fn row(name: &str, target: &Path, depth: u32, requests: u64, real: &str) -> Vec<String> {
        let name = name.to_owned();
        let text = format!(
            "workload = \"random read\"\nkeep = \"summary\"\n[real]\n{real}\n[contents.workload]\nread_percent = 100\nblock_size = \"4KiB\"\ndepth = {depth}\nrequests = {requests}\n[contents.workload.address]\nlength = \"16MiB\""
        );
        let Ok(spec) = toml::from_str::<RunSpec>(&text) else { return vec![name] };
        let spec = RunSpec { target: Some(target.display().to_string()), ..spec };
        let run = resolve(&spec, &mut Unattended).and_then(|run| run.start()?.result());
        let result = match run {
            Ok(measured) => measured.result,
            Err(failure) => return vec![name, format!("cannot be run: {failure}")],
        };
        let cost = result.own_cost.unwrap_or_default();
        let shown = |value: Option<f64>| match value {
            Some(value) => format!("{value:.3}"),
            None => "not counted".to_owned(),
        };
        vec![
            name,
            shown(cost.syscalls_per_request),
            shown(cost.context_switches_per_request),
            format!("{:.0}", cost.cpu_ns_per_request),
            format!("{:.0}", result.iops),
        ]
    }

    /// The mean time of `call`, in us.
    fn time(calls: u32, mut call: impl FnMut()) -> f64 {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
    }

    fn costs() -> FigureTable {
        let mut rows = vec![
            vec!["getppid".to_owned(), "0.352 (getpid)".to_owned(), {
                let each = time(CALLS, || {
                    // S4-39 measures getpid. C libraries have cached its result, so getppid is
                    // measured: it is a system call each time.
                    let _ = std::hint::black_box(rustix::process::getppid());
                });
                format!("{each:.3}")
            }],
            vec![
                "clock_gettime without a system call".to_owned(),
                "0.517 (gettimeofday)".to_owned(),
                {
                    let each = time(CALLS, || {
                        // Linux answers this from the vDSO without entering the kernel. The printed
                        // 0.517 us is a real system call, and the row says so.
                        let _ = std::hint::black_box(Instant::now());
                    });
                    format!("{each:.3}")
                },
            ],
        ];
        let write = File::create("/dev/null").ok().map(|mut file| {
            // /dev/null takes everything.
            time(CALLS, || drop(file.write(&[0])))
        });
        let shown = |value: Option<f64>| {
            value.map_or_else(|| "not available".to_owned(), |value| format!("{value:.3}"))
        };
        rows.push(vec!["write to /dev/null".to_owned(), "0.465".to_owned(), shown(write)]);
        let switch = vec![
            "context switch, including read and write of a pipe".to_owned(),
            "4.27 (1.14 to 7.41)".to_owned(),
            shown(switch()),
        ];
        rows.push(switch);
        let title = "Cost of system calls and switches, S4's machine (ms read as us) and this one";
        FigureTable::new("S4/machine/costs", title, ["", "S4, us", "here, us"], rows)
    }

    /// Two threads on one core hand a byte to and fro: half of a round trip, in us.
    fn switch() -> Option<f64> {
        let core = (0..CpuSet::MAX_CPU)
            .find(|n| sched_getaffinity(None).is_ok_and(|allowed| allowed.is_set(*n)))?;
        // Both threads must share a core. On two cores the pipe would measure a wake-up of the
        // other core, which is not the switch of S4-39.
        let pin = move || {
            let mut set = CpuSet::new();
            set.set(core);
            sched_setaffinity(None, &set).ok()
        };
        let (mut ping_read, mut ping_write) = std::io::pipe().ok()?;
        let (mut pong_read, mut pong_write) = std::io::pipe().ok()?;
        let other = std::thread::spawn(move || {
            let mut byte = [0];
            pin()?;
            while ping_read.read_exact(&mut byte).is_ok() && pong_write.write_all(&byte).is_ok() {}
            Some(())
        });
        let mine = std::thread::spawn(move || {
            let mut byte = [0];
            pin()?;
            let mut lost = false;
            let each = time(ROUNDS, || {
                lost |= ping_write.write_all(&byte).is_err();
                lost |= pong_read.read_exact(&mut byte).is_err();
            });
            // A round trip contains two switches. It also contains a read and a write for each, so
            // the figure is an upper bound of the switch.
            (!lost).then_some(each / 2.0)
        });
        let each = mine.join().ok().flatten();
        // The other one ends with the pipe.
        let _ = other.join();
        each
    }
}
