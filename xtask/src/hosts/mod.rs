//! The numbers of a run on many hosts, measured on one machine: how far apart workers begin by a trace of packets, what the
//! controller takes, and what a request costs a worker beside the same run alone.

mod fio;
mod trace;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command::Cmd;
use crate::setup;
use crate::workspace::Workspace;

/// Goals of issue F: start skew, the controller's share of a core, and the worker's cost beside the run alone.
const SKEW_US_MAX: f64 = 200.0;
const CONTROLLER_CORE_MAX: f64 = 0.03;
const WORKER_COST_MAX: f64 = 0.02;
/// Lengths of the runs whose difference is the controller's cost of running: starting and merging are in both.
const SHORT_SECONDS: u64 = 2;
const LONG_SECONDS: u64 = 12;
const ATTEMPTS: u32 = 8;
const LISTENS_WITHIN: Duration = Duration::from_secs(10);

/// Measures with `workers` workers, each figure `runs` times, by `program` or by one that is built; where `beside_fio`, a load on
/// all workers beside fio's client and servers instead.
///
/// # Errors
/// Something that is needed is missing, or a run failed.
pub(crate) fn run(
    workspace: &Workspace,
    workers: usize,
    runs: usize,
    program: Option<&Path>,
    beside_fio: bool,
) -> Result<bool> {
    if !setup::is_root() {
        bail!("tcpdump and nbd-server need root; use sudo");
    }
    for needed in ["tcpdump", "nbd-server"] {
        setup::program(needed, needed)?;
    }
    if beside_fio {
        setup::program("fio", "fio")?;
    }
    let program = match program {
        Some(program) => std::path::absolute(program)?,
        None => PathBuf::from(crate::peers::build(workspace)?.context("the build failed")?),
    };
    let folder = workspace.target_directory.join("hosts");
    fs::create_dir_all(&folder)?;
    let lab = Lab { folder, hosts: Workers::start(&program, workers)?, program };
    if beside_fio {
        fio::beside(&lab, runs)?;
        return Ok(true);
    }
    let skews = repeated(runs, || lab.skew_us())?;
    let mut good = row(&format!("start skew of {workers} workers, us"), &skews, SKEW_US_MAX);
    let shares = repeated(runs, || lab.controller_share())?;
    good &= row("CPU of the controller, cores", &shares, CONTROLLER_CORE_MAX);
    let costs = repeated(runs, || lab.worker_cost())?;
    good &= row("CPU of a request beside the run alone", &costs, WORKER_COST_MAX);
    Ok(good)
}

fn repeated(runs: usize, mut measure: impl FnMut() -> Result<f64>) -> Result<Vec<f64>> {
    (0..runs).map(|_| measure()).collect()
}

/// Prints median and range beside the goal; whether the median reaches it.
fn row(what: &str, figures: &[f64], most: f64) -> bool {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, median, high) = (sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
    let good = median <= most;
    let word = if good { "ok    " } else { "not ok" };
    println!("{word} {what}: median {median:.4} ({low:.4} to {high:.4}), goal {most}");
    good
}

/// The workers, and the program that starts runs on them.
struct Lab {
    program: PathBuf,
    folder: PathBuf,
    hosts: Workers,
}

impl Lab {
    /// The time between the first request of the first worker and that of the last. nbd-server lets ten connections wait (its
    /// `listen`), and of more that come at once some are not answered in time: such a run is begun again.
    fn skew_us(&self) -> Result<f64> {
        let mut tries = ATTEMPTS;
        loop {
            tries -= 1;
            match self.one_skew_us() {
                Err(error) if tries > 0 && format!("{error:#}").contains("handshake") => {}
                end => return end,
            }
        }
    }

    fn one_skew_us(&self) -> Result<f64> {
        let port = free_port()?;
        let _server = NbdServer::start(&self.folder, port)?;
        let packets = self.folder.join("packets.pcap");
        let trace = Tcpdump::start(&packets, port)?;
        let target = format!("nbd://127.0.0.1:{port}/export");
        // Equal gaps, so that the first requests of all are due at one moment. A closed loop would fill the processors: who began
        // first would keep the others waiting, whatever their clocks say.
        let load = [
            "--for",
            "1s",
            "--set",
            "workload.arrivals.kind=fixed",
            "--rate",
            "100",
            "--no-probes",
        ];
        self.run(&target, &load, &self.hosts.names())?;
        drop(trace);
        let first = trace::first_requests(&fs::read(&packets)?, port)?;
        let workers = self.hosts.workers.len();
        if first.len() != workers {
            bail!("{} connections have requests, of {workers} workers", first.len());
        }
        let times = || first.values().copied();
        let apart = times().max().unwrap_or(0) - times().min().unwrap_or(0);
        Ok(apart as f64 / 1e3)
    }

    /// Cores that the controller takes while all workers report ten times a second.
    fn controller_share(&self) -> Result<f64> {
        let names = self.hosts.names();
        let cpu = |seconds: u64| -> Result<f64> {
            let length = format!("{seconds}s");
            let load = ["--for", &length, "--rate", "100", "--no-probes"];
            Ok(self.run("null:", &load, &names)?.cpu_s)
        };
        Ok((cpu(LONG_SECONDS)? - cpu(SHORT_SECONDS)?) / (LONG_SECONDS - SHORT_SECONDS) as f64)
    }

    /// By how much a request costs more in a worker than in a run alone.
    fn worker_cost(&self) -> Result<f64> {
        let one = self.hosts.workers[0].address.to_string();
        // Several hosts keep no rows unless they are asked to, and rows cost more than anything else here.
        let load =
            ["--for", "3s", "--set", "workload.depth=16", "--no-probes", "--keep", "summary"];
        let cost = |figures: &Value| {
            let cost = figures["own_cost"]["cpu_ns_per_request"].as_f64();
            cost.context("a result without own_cost.cpu_ns_per_request")
        };
        let alone = cost(&self.run("null:", &load, "")?.result)?;
        let hosted = cost(&self.run("null:", &load, &one)?.result)?;
        Ok(hosted / alone - 1.0)
    }

    /// Runs a load on `hosts`, or here if there are none.
    fn run(&self, target: &str, load: &[&str], hosts: &str) -> Result<Ran> {
        let program = self.program.display().to_string();
        let mut words = vec![program.as_str(), "run", target, "--json", "--workload", "randread"];
        words.extend(load);
        if !hosts.is_empty() {
            words.extend(["--hosts", hosts]);
        }
        // The shell tells what its children took, when they have ended.
        let script = ["-c", "\"$@\"; code=$?; times >&2; exit $code", "bash"];
        let all = script.into_iter().chain(words.iter().copied());
        let ran = Cmd::new("bash").args(all).dir(&self.folder).capture()?;
        if !ran.ok {
            bail!("`{}` failed:\n{}{}", words.join(" "), ran.stdout, ran.stderr);
        }
        let result = serde_json::from_str(&ran.stdout).context("the result is not JSON")?;
        Ok(Ran { result, cpu_s: children_cpu_s(&ran.stderr).context("no times of the shell")? })
    }
}

/// A run that has ended.
struct Ran {
    result: Value,
    cpu_s: f64,
}

/// User and system time of the children of a shell, from the last line of its `times`: `0m1.250s 0m0.030s`.
fn children_cpu_s(text: &str) -> Option<f64> {
    let seconds = |word: &str| {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    text.trim_end().lines().next_back()?.split_whitespace().map(seconds).sum()
}

/// Workers that listen, each a process of its own.
struct Workers {
    workers: Vec<Worker>,
}

struct Worker {
    process: Child,
    address: SocketAddr,
}

impl Workers {
    fn start(program: &Path, count: usize) -> Result<Workers> {
        let mut workers = Workers { workers: Vec::new() };
        for _ in 0..count {
            let mut worker = Command::new(program);
            worker.args(["worker", "--listen", "127.0.0.1:0"]).stdin(Stdio::null());
            let mut process = worker.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
            let mut said = String::new();
            let output = process.stdout.take().context("a worker without output")?;
            BufReader::new(output).read_line(&mut said)?;
            let address = said.trim().rsplit(' ').next().and_then(|word| word.parse().ok());
            let Some(address) = address else {
                let _ = process.kill();
                bail!("a worker has said {said:?} in place of its address");
            };
            workers.workers.push(Worker { process, address });
        }
        Ok(workers)
    }

    /// As `--hosts` takes them.
    fn names(&self) -> String {
        let names: Vec<String> = self.workers.iter().map(|one| one.address.to_string()).collect();
        names.join(",")
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let _ = worker.process.kill();
            let _ = worker.process.wait();
        }
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// nbd-server with one export on a file; it goes to the background, and says in a file who it is.
struct NbdServer {
    process: String,
}

impl NbdServer {
    fn start(folder: &Path, port: u16) -> Result<NbdServer> {
        let (data, pid) = (folder.join("export"), folder.join("nbd-server.pid"));
        fs::File::create(&data)?.set_len(64 << 20)?;
        // The process of the previous server, whose number may now belong to another program.
        let _ = fs::remove_file(&pid);
        let settings = folder.join("nbd-server.conf");
        let text = format!(
            "[generic]\nlistenaddr = 127.0.0.1\nport = {port}\n[export]\nexportname = {}\nreadonly = true\n",
            data.display()
        );
        fs::write(&settings, text)?;
        let words = ["-C".to_owned(), settings.display().to_string()];
        let words = words.into_iter().chain(["-p".to_owned(), pid.display().to_string()]);
        if !Cmd::new("nbd-server").args(words).capture()?.ok {
            bail!("nbd-server did not start");
        }
        let from = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if from.elapsed() > LISTENS_WITHIN {
                bail!("nbd-server does not listen on port {port}");
            }
            sleep(Duration::from_millis(20));
        }
        Ok(NbdServer { process: fs::read_to_string(&pid)?.trim().to_owned() })
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        let _ = Cmd::new("kill").args([self.process.clone()]).capture();
    }
}

/// A trace of all packets of a port, with the kernel's times.
struct Tcpdump(Child);

impl Tcpdump {
    fn start(file: &Path, port: u16) -> Result<Tcpdump> {
        let mut trace = Command::new("tcpdump");
        // All at once to the file: what is read after the run must be there.
        trace.args(["-i", "lo", "--time-stamp-precision=nano", "-U", "-B", "65536", "-w"]);
        trace.arg(file).arg(format!("tcp port {port}"));
        let mut trace = trace.stderr(Stdio::piped()).spawn()?;
        let mut said = String::new();
        let output = trace.stderr.take().context("tcpdump without output")?;
        BufReader::new(output).read_line(&mut said)?;
        if !said.contains("listening") {
            let _ = trace.kill();
            bail!("tcpdump cannot trace loopback: {}", said.trim());
        }
        Ok(Tcpdump(trace))
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        // The kernel's buffered packets reach the file when it is told to end.
        sleep(Duration::from_millis(300));
        let _ = Cmd::new("kill").args([self.0.id().to_string()]).capture();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_of_a_shell_are_read() {
        let said = "note: done\n0m0.001s 0m0.002s\n1m2.500s 0m0.250s\n";
        assert_eq!(super::children_cpu_s(said), Some(62.75));
        assert_eq!(super::children_cpu_s("no times"), None);
    }
}
