//! The same load on the same workers' machine by fio's client and servers, and by ours, in turn.
//!
//! fio 3.33 adds the IOPS of its clients, but has no percentiles of all of them: its worst host stands
//! in for them, and the line says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{LISTENS_WITHIN, Lab, children_cpu_s, free_port};
use crate::command::Cmd;

const SECONDS: u64 = 3;
const DEPTH: u64 = 4;
/// Large enough that no cache of the processor holds it, small enough for any machine.
const DEVICE_BYTES: usize = 256 << 20;

/// What one side measured.
struct Figures {
    iops: f64,
    p99_us: f64,
    /// User and system time that a request costs the workers.
    cpu_us: f64,
    /// Of the program that starts the run and puts its figures together.
    controller_cpu_s: f64,
}

type Column = (&'static str, fn(&Figures) -> f64);

const COLUMNS: [Column; 4] = [
    ("thousand IOPS", |side| side.iops / 1e3),
    ("p99, us (fio: of its worst host)", |side| side.p99_us),
    ("CPU of a request in the workers, us", |side| side.cpu_us),
    ("CPU of the controller, s", |side| side.controller_cpu_s),
];

/// Runs both `runs` times in turn, so that what else the machine does meets both, and prints medians and ranges.
pub(super) fn beside(lab: &Lab, runs: usize) -> Result<()> {
    let device = MemoryDevice::make()?;
    let workers = lab.hosts.workers.len();
    let servers = Servers::start(&lab.folder, workers)?;
    let (mut ours, mut fios) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        ours.push(ours_of(lab, &device.name)?);
        fios.push(servers.run(&lab.folder, &device.name)?);
    }
    println!("{workers} workers, 4 KiB random reads, depth {DEPTH} each, {}", device.name);
    for (what, figure) in COLUMNS {
        println!("       {what}: {}, fio {}", spread(&ours, figure), spread(&fios, figure));
    }
    Ok(())
}

fn spread(sides: &[Figures], figure: fn(&Figures) -> f64) -> String {
    let mut sorted: Vec<f64> = sides.iter().map(figure).collect();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
    format!("{:.2} ({low:.2} to {high:.2})", sorted[sorted.len() / 2])
}

fn ours_of(lab: &Lab, device: &str) -> Result<Figures> {
    let (length, depth) = (format!("{SECONDS}s"), DEPTH.to_string());
    // Without rows, as fio has none.
    let load = ["--for", &length, "--depth", &depth, "--no-probes", "--keep", "summary"];
    let ran = lab.run(device, &load, &lab.hosts.names())?;
    let number = |path: &str| {
        let number = ran.result.pointer(path).and_then(Value::as_f64);
        number.with_context(|| format!("a result without {path}"))
    };
    Ok(Figures {
        iops: number("/iops")?,
        p99_us: number("/latency_ns/p99")? / 1e3,
        cpu_us: number("/own_cost/cpu_ns_per_request")? / 1e3,
        controller_cpu_s: ran.cpu_s,
    })
}

/// A loop device over a file in memory, with data in all blocks: holes would be answered without a copy.
struct MemoryDevice {
    name: String,
    file: PathBuf,
}

impl MemoryDevice {
    fn make() -> Result<MemoryDevice> {
        let file = Path::new("/dev/shm").join(format!("ssdyno-hosts-{}", std::process::id()));
        fs::write(&file, vec![0x5au8; DEVICE_BYTES])?;
        let words = ["--find", "--show"].map(str::to_owned);
        let words = words.into_iter().chain([file.display().to_string()]);
        let made = Cmd::new("losetup").args(words).capture()?;
        let device = MemoryDevice { name: made.stdout.trim().to_owned(), file };
        if !made.ok {
            bail!("no loop device: {}", made.stderr.trim());
        }
        Ok(device)
    }
}

impl Drop for MemoryDevice {
    fn drop(&mut self) {
        let _ = Cmd::new("losetup").args(["--detach", &self.name]).capture();
        let _ = fs::remove_file(&self.file);
    }
}

/// fio's servers, in the background.
struct Servers(Vec<Server>);

struct Server {
    port: u16,
    /// Where it writes which process it is.
    pid: PathBuf,
}

impl Servers {
    fn start(folder: &Path, count: usize) -> Result<Servers> {
        let mut servers = Servers(Vec::new());
        for number in 0..count {
            let (port, pid) = (free_port()?, folder.join(format!("fio-{number}.pid")));
            // The process of the previous server, whose number may now belong to another program.
            let _ = fs::remove_file(&pid);
            let words =
                [format!("--server=ip:127.0.0.1,{port}"), format!("--daemonize={}", pid.display())];
            if !Cmd::new("fio").args(words).capture()?.ok {
                bail!("fio --server did not start on port {port}");
            }
            servers.0.push(Server { port, pid });
            servers.await_last()?;
        }
        Ok(servers)
    }

    /// fio takes a connection for a client, and one that only tries the port ends the server's child with an
    /// error: the kernel's table of listening ports is read instead.
    fn await_last(&self) -> Result<()> {
        let port = self.0.last().map_or(0, |server| server.port);
        let listens = format!(":{port:04X} 00000000:0000 0A ");
        let from = Instant::now();
        while !fs::read_to_string("/proc/net/tcp")?.contains(&listens) {
            if from.elapsed() > LISTENS_WITHIN {
                bail!("fio does not listen on port {port}");
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn run(&self, folder: &Path, device: &str) -> Result<Figures> {
        let job = folder.join("hosts.fio");
        let text = format!(
            "[load]\nioengine=io_uring\ndirect=1\nrw=randread\nbs=4k\niodepth={DEPTH}\n\
             time_based\nruntime={SECONDS}\nfilename={device}\n"
        );
        fs::write(&job, text)?;
        // The shell tells what its children took, when they have ended.
        let mut words: Vec<String> =
            ["-c", "\"$@\"; code=$?; times >&2; exit $code", "bash", "fio"]
                .map(str::to_owned)
                .into();
        for server in &self.0 {
            words.push(format!("--client=ip:127.0.0.1,{}", server.port));
            words.push(job.display().to_string());
        }
        words.push("--output-format=json".to_owned());
        let ran = Cmd::new("bash").args(words).dir(folder).capture()?;
        if !ran.ok {
            bail!("fio failed:\n{}{}", ran.stdout, ran.stderr);
        }
        let mut figures = figures(&ran.stdout, self.0.len())?;
        figures.controller_cpu_s = children_cpu_s(&ran.stderr).context("no times of the shell")?;
        Ok(figures)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &self.0 {
            let Ok(pid) = fs::read_to_string(&server.pid) else { continue };
            let _ = Cmd::new("kill").args([pid.trim().to_owned()]).capture();
        }
    }
}

/// From fio's JSON, before which stand lines of text; `hosts` clients have to be in it.
fn figures(text: &str, hosts: usize) -> Result<Figures> {
    let json = text.find('{').map_or("", |at| &text[at..]);
    let output: Value = serde_json::from_str(json).context("fio printed no JSON")?;
    let clients = output["client_stats"].as_array().context("no client_stats of fio")?;
    // With several clients there is an entry of all of them, too.
    let single: Vec<&Value> =
        clients.iter().filter(|client| client["jobname"] != "All clients").collect();
    if single.len() != hosts {
        bail!("fio has {} of {hosts} clients in its result", single.len());
    }
    let number = |client: &Value, path: &str| {
        let number = client.pointer(path).and_then(Value::as_f64);
        number.with_context(|| format!("fio's result without {path}"))
    };
    let mut all = Figures { iops: 0.0, p99_us: 0.0, cpu_us: 0.0, controller_cpu_s: 0.0 };
    let (mut cpu_s, mut requests) = (0.0, 0.0);
    for client in single {
        all.iops += number(client, "/read/iops")?;
        let p99_ns = number(client, "/read/clat_ns/percentile/99.000000")?;
        all.p99_us = all.p99_us.max(p99_ns / 1e3);
        // fio gives percent of the run time, which is in milliseconds.
        let share = (number(client, "/usr_cpu")? + number(client, "/sys_cpu")?) / 100.0;
        cpu_s += share * number(client, "/read/runtime")? / 1e3;
        requests += number(client, "/read/total_ios")?;
    }
    all.cpu_us = cpu_s * 1e6 / requests;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(name: &str, iops: f64, p99: u64) -> String {
        format!(
            r#"{{"jobname":"{name}","usr_cpu":10.0,"sys_cpu":20.0,"read":{{"iops":{iops},"runtime":1000,
            "total_ios":{iops},"clat_ns":{{"percentile":{{"99.000000":{p99}}}}}}}}}"#
        )
    }

    #[test]
    fn figures_of_all_clients_are_added() {
        let (a, b) = (client("load", 1000.0, 5000), client("load", 3000.0, 9000));
        let all = client("All clients", 4000.0, 1);
        let text = format!("hostname=vm\n{{\"client_stats\":[{a},{b},{all}]}}");
        let both = figures(&text, 2).unwrap();
        assert_eq!((both.iops, both.p99_us), (4000.0, 9.0));
        // 0.3 s of each second of both, for 4000 requests.
        assert!((both.cpu_us - 150.0).abs() < 1e-9, "{}", both.cpu_us);
        assert!(figures(&text, 3).is_err_and(|error| error.to_string().contains("2 of 3")));
        assert!(figures("no servers", 1).is_err());
    }
}
