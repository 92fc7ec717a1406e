//! The target: nbd-server in a namespace, on files that are in memory only, and what its CPU does.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::lab::{Lab, TARGET_ADDRESS, file_of};
use super::tools::{Tools, refused};
use crate::PaperError;

/// The port of nbd-server.
pub(super) const PORT: u16 = 10_809;

/// Size of the export of one client.
const EXPORT_BYTES: usize = 64 << 20;

/// How long the server may take to listen.
const LISTENS_WITHIN: Duration = Duration::from_secs(5);

/// How long the server may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Starts the server, which goes to the background, and ends what runs in its namespace with standard input: killed as we may
/// be, nothing outlives us. (In the foreground, with `-d`, nbd-server takes one connection only.)
const UNTIL_END_OF_INPUT: &str = "\"$1\" -C \"$2\" </dev/null || exit 1; read -r _; \
    for one in $(\"$3\" netns pids \"$4\"); do [ \"$one\" = $$ ] || kill \"$one\" 2>/dev/null; done";

/// The core of the target, and those of everything else.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    /// `None` where there is only one core.
    pub(super) target: Option<usize>,
    others: CpuSet,
    all: CpuSet,
}

impl Cores {
    pub(super) fn split() -> Result<Cores, PaperError> {
        let all = sched_getaffinity(None)
            .map_err(|error| refused(format!("cannot ask for the cores: {error}"), ""))?;
        let mut others = all;
        let first = (0..CpuSet::MAX_CPU).find(|core| all.is_set(*core));
        let target = first.filter(|_| all.count() > 1);
        if let Some(core) = target {
            others.unset(core);
        }
        Ok(Cores { target, others, all })
    }

    /// Runs `work`, and what it starts, on the core of the target.
    pub(super) fn on_target<T>(&self, work: impl FnOnce() -> T) -> T {
        if let Some(core) = self.target {
            let mut set = CpuSet::new();
            set.set(core);
            // A core that may not be chosen costs accuracy only.
            let _ = sched_setaffinity(None, &set);
        }
        let done = work();
        let _ = sched_setaffinity(None, &self.others);
        done
    }
}

/// Dropped, this thread may use all cores again.
impl Drop for Cores {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.all);
    }
}

/// A file that is in memory and goes with us.
struct MemoryFile(File);

impl MemoryFile {
    fn new(name: &str, contents: &[u8]) -> Result<MemoryFile, PaperError> {
        let cannot = |error: std::io::Error| {
            refused(format!("no memory for the target's data: {error}"), "")
        };
        let file: OwnedFd =
            memfd_create(name, MemfdFlags::CLOEXEC).map_err(|error| cannot(error.into()))?;
        let mut file = File::from(file);
        file.write_all(contents).map_err(cannot)?;
        Ok(MemoryFile(file))
    }

    /// Its name for programs that run while it is open.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

/// nbd-server with an export for each client. Dropped, it is stopped.
pub(super) struct NbdServer {
    child: Child,
    _files: Vec<MemoryFile>,
}

/// The export of client `n`, from 1.
pub(super) fn export(n: u16) -> String {
    format!("client-{n}")
}

fn configuration(paths: &[String]) -> String {
    let mut text =
        format!("[generic]\nlistenaddr = {TARGET_ADDRESS}\nport = {PORT}\nallowlist = true\n");
    for (n, path) in (1..).zip(paths) {
        text += &format!("[{}]\nexportname = {path}\nreadonly = true\n", export(n));
    }
    text
}

impl NbdServer {
    pub(super) fn start(
        tools: &Tools,
        lab: &Lab,
        cores: &Cores,
        clients: u16,
    ) -> Result<NbdServer, PaperError> {
        let contents: Vec<u8> = (0..EXPORT_BYTES).map(|at| (at >> 9) as u8).collect();
        let exports = (1..=clients).map(|n| MemoryFile::new(&export(n), &contents));
        let mut files = exports.collect::<Result<Vec<_>, _>>()?;
        let paths: Vec<String> = files.iter().map(MemoryFile::path).collect();
        files.push(MemoryFile::new("nbd-server.conf", configuration(&paths).as_bytes())?);
        let configuration = files.last().map(MemoryFile::path).unwrap_or_default();
        let mut command = Command::new(&tools.ip);
        command
            .args(["netns", "exec", &lab.target(), "sh", "-c", UNTIL_END_OF_INPUT, "sh"])
            .arg(&tools.nbd_server)
            .arg(configuration)
            .arg(&tools.ip)
            .arg(lab.target())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let child = cores.on_target(|| command.spawn());
        let child =
            child.map_err(|error| refused(format!("nbd-server cannot be started: {error}"), ""))?;
        let mut server = NbdServer { child, _files: files };
        server.wait_until_it_listens(&lab.target())?;
        Ok(server)
    }

    fn wait_until_it_listens(&mut self, namespace: &str) -> Result<(), PaperError> {
        let process = PathBuf::from(format!("/proc/{}", self.child.id()));
        let begun = Instant::now();
        while begun.elapsed() < LISTENS_WITHIN {
            // At first it is outside, where another server may listen at this port.
            let is_in = link_of(namespace).is_some_and(|own| is_in(&process, &own));
            let sockets = std::fs::read_to_string(process.join("net/tcp"));
            if is_in && sockets.is_ok_and(|text| listens(&text, PORT)) {
                return Ok(());
            }
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(refused(
            format!("nbd-server does not listen within {} s", LISTENS_WITHIN.as_secs()),
            "try `nbd-server -d -C FILE` by hand",
        ))
    }
}

/// Whether a socket of `text`, a /proc/…/net/tcp, listens at `port`.
fn listens(text: &str, port: u16) -> bool {
    let port = format!(":{port:04X}");
    text.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (local, state) = (words.next().unwrap_or(""), words.nth(1).unwrap_or(""));
        local.ends_with(&port) && state == "0A"
    })
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let begun = Instant::now();
        while begun.elapsed() < ENDS_WITHIN {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // It is gone, or cannot be stopped at all.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time so far, by two counts, at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuTime {
    at: Instant,
    /// Of the processes in the target's namespace.
    processes: Duration,
    /// During which the target's core was not idle, and altogether; in ticks.
    core: Option<(u64, u64)>,
}

/// Shares of the CPU between two moments, 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct CpuShares {
    /// Of the processes of the target: 1 is a whole core.
    pub(super) processes: f64,
    /// How busy the target's core was, with interrupts; NaN where it has none of its own.
    pub(super) core: f64,
}

impl CpuTime {
    pub(super) fn now(target: &str, core: Option<usize>) -> CpuTime {
        let statistics = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        CpuTime {
            at: Instant::now(),
            processes: in_namespace(target),
            core: core.and_then(|core| core_ticks(&statistics, core)),
        }
    }

    pub(super) fn until(&self, later: &CpuTime) -> CpuShares {
        let wall = later.at.duration_since(self.at).as_secs_f64();
        let core = match (self.core, later.core) {
            (Some((busy, all)), Some((busy_later, all_later))) if all_later > all => {
                busy_later.saturating_sub(busy) as f64 / (all_later - all) as f64
            }
            _ => f64::NAN,
        };
        let processes = later.processes.saturating_sub(self.processes).as_secs_f64() / wall;
        CpuShares { processes, core }
    }
}

/// Ticks of `core` that were not idle, and all, from a /proc/stat.
fn core_ticks(statistics: &str, core: usize) -> Option<(u64, u64)> {
    let name = format!("cpu{core}");
    let line = statistics.lines().find(|line| line.split(' ').next() == Some(&name))?;
    // Time of guests is in that of users.
    let ticks: Vec<u64> =
        line.split_whitespace().skip(1).take(8).filter_map(|n| n.parse().ok()).collect();
    let all: u64 = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((all - idle, all))
}

/// What `/proc/…/ns/net` of the processes in `namespace` points to.
fn link_of(namespace: &str) -> Option<String> {
    let own = std::fs::metadata(file_of(namespace)).ok()?;
    Some(format!("net:[{}]", own.ino()))
}

fn is_in(process: &Path, link: &str) -> bool {
    std::fs::read_link(process.join("ns/net")).is_ok_and(|own| own.to_str() == Some(link))
}

/// CPU time of the processes in a namespace, with that of their children that have ended.
fn in_namespace(namespace: &str) -> Duration {
    let Some(own) = link_of(namespace) else { return Duration::ZERO };
    let Ok(processes) = std::fs::read_dir("/proc") else { return Duration::ZERO };
    let mut ticks = 0;
    for process in processes.flatten().map(|process| process.path()) {
        if is_in(&process, &own) {
            let text = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
            ticks += process_ticks(&text).unwrap_or(0);
        }
    }
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64)
}

/// Ticks from a /proc/…/stat: of the process and of its children that have ended, as user and in the kernel.
fn process_ticks(text: &str) -> Option<u64> {
    // The name before it may have blanks and brackets.
    let (_, fields) = text.rsplit_once(')')?;
    let numbers = fields.split_whitespace().skip(11).take(4);
    numbers.map(|n| n.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_proc_are_read() {
        let stat = "cpu  9 9 9 9\ncpu0 100 5 50 800 20 3 2 1 7 0\ncpu10 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(core_ticks(stat, 0), Some((161, 981)));
        assert_eq!(core_ticks(stat, 10), Some((6, 8)));
        assert_eq!(core_ticks(stat, 1), None);
        let process = "12 (a b) c) S 1 12 12 0 -1 0 1 2 3 4 500 60 7 8 20 0 1 0 99";
        assert_eq!(process_ticks(process), Some(575));
        assert_eq!(process_ticks("nothing"), None);
        let tcp = "  sl  local_address rem_address   st\n   0: 0153000A:2A39 00000000:0000 0A 00000000\n   1: 0100007F:0050 00000000:0000 01 0\n";
        assert!(listens(tcp, PORT) && !listens(tcp, 80) && !listens(tcp, 22));
    }

    #[test]
    fn shares_are_differences() {
        let at = Instant::now();
        let before = CpuTime { at, processes: Duration::from_secs(1), core: Some((10, 100)) };
        let later = CpuTime {
            at: at + Duration::from_secs(2),
            processes: Duration::from_secs(2),
            core: Some((190, 300)),
        };
        assert_eq!(before.until(&later), CpuShares { processes: 0.5, core: 0.9 });
        assert!(before.until(&CpuTime { core: None, ..later }).core.is_nan());
    }

    #[test]
    fn each_client_has_an_export() {
        let text = configuration(&["/a".to_owned(), "/b".to_owned()]);
        assert!(text.contains("[client-2]\nexportname = /b\nreadonly = true"), "{text}");
        assert!(text.starts_with("[generic]\nlistenaddr = 10.83.0.1\nport = 10809\n"), "{text}");
    }

    #[test]
    fn files_in_memory_can_be_read_by_others() {
        let file = MemoryFile::new("x", b"contents").unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), b"contents");
    }
}
