//! The loads, and what they gave.

use std::collections::BTreeMap;
use std::time::Duration;

use ssdyno_cluster::{
    ClusterLoad, ClusterProgress, HostAddress, HostLoad, Hosts, ReachedHosts, RemoteStart,
};
use ssdyno_figures::RunResult;
use ssdyno_session::{Failure, FailureKind, Measured, RunPhase, RunSpec};

use super::cpu::{Cores, CpuShares, CpuTime};
use super::delay::{self, DelayServer, Lateness};
use super::lab::{Lab, Link, TARGET_ADDRESS};
use super::ramp::{Rate, steady};
use super::target::{Server, Targets};
use super::tools::{Tools, refused};
use crate::error::parse;
use crate::s4::data::Plan;
use crate::{HostsOptions, KeepGoing, PapersProgress};

/// Clients of table 4.
pub(super) const CLIENTS: [u16; 3] = [1, 2, 3];

/// Links of table 4.
pub(super) const LINKS: [Link; 2] = [Link::Gigabit, Link::Unshaped];

/// Workers of figure 7: each is a client with one request outstanding.
pub(super) const WORKERS: [u16; 6] = [1, 2, 3, 4, 5, 6];

/// Delays of figure 7, in us, with the figure of each.
pub(super) const DELAYS: [(u32, &str); 2] = [(100, "figure7a"), (10, "figure7b")];

/// What takes the place of ssh: its options are skipped, and the name of the host is that of a namespace.
const IN_NAMESPACE: &str = "ip=$1; while [ \"$1\" != -- ]; do shift; done; \
    exec \"$ip\" netns exec \"$2\" sh -c \"exec $3\"";

/// Which parts are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Parts {
    pub(super) table4: bool,
    /// By the places of [`DELAYS`].
    pub(super) figure7: [bool; 2],
    /// Needs the loads of table 4.
    pub(super) ramp_up: bool,
}

/// One client in one load.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Client {
    pub(super) megabytes: f64,
    /// How long after the first client it began, in us.
    pub(super) skew_us: f64,
    /// When its rate was steady, after the common start, in s.
    pub(super) steady_seconds: Option<f64>,
}

/// One load.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Load {
    pub(super) clients: Vec<Client>,
    /// Of all clients, in MB/s.
    pub(super) megabytes: f64,
    pub(super) iops: f64,
    pub(super) latency_us: f64,
    pub(super) cpu: CpuShares,
    /// When the rate of all clients together was steady, in s.
    pub(super) steady_seconds: Option<f64>,
}

/// All that was measured: every load as often as it was repeated.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) table4: BTreeMap<(Server, Link, u16), Vec<Load>>,
    /// By delay in us, and workers.
    pub(super) figure7: BTreeMap<(u32, u16), Vec<Load>>,
    /// How late the server with a delay was, by delay in us: over all loads with it.
    pub(super) late: BTreeMap<u32, Vec<Lateness>>,
    pub(super) is_partial: bool,
    /// Whether the target had a core of its own.
    pub(super) has_core: bool,
    /// Whether tgt is installed.
    pub(super) has_tgt: bool,
}

/// Measures `parts`, with all repetitions of a load spread over the whole time.
pub(super) fn measure(
    plan: &Plan,
    parts: Parts,
    options: &HostsOptions,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<Outcome, Failure> {
    let tools = Tools::find()?;
    let clients = match parts.figure7.contains(&true) {
        true => WORKERS.len() as u16,
        false => CLIENTS.len() as u16,
    };
    // The cores are split before the lab and the workers exist. Processes inherit the affinity of
    // the thread that starts them, so no worker can run on the core of the target.
    let cores = Cores::split()?;
    let lab = Lab::build(&tools, clients)?;
    let is_table = parts.table4 || parts.ramp_up;
    let delays: Vec<u32> =
        DELAYS.iter().zip(parts.figure7).filter(|(_, on)| *on).map(|((us, _), _)| *us).collect();
    let servers = servers(&tools, is_table);
    let of_table = servers.len() * LINKS.len() * CLIENTS.len();
    let of = (of_table + delays.len() * WORKERS.len()) as u64 * u64::from(options.repeats);
    let mut bench = Bench {
        reached: reach(&tools, &lab, clients, options, progress)?,
        lab: &lab,
        cores: &cores,
        plan,
        seconds: options.seconds,
        done: 0,
        of,
        progress,
    };
    let mut outcome = Outcome {
        has_core: cores.target.is_some(),
        has_tgt: tools.tgt.is_some(),
        ..Outcome::default()
    };
    let carried_out = bench.carry_out(&tools, &servers, &delays, options.repeats, &mut outcome);
    match carried_out {
        Err(Ended::Stopped) => outcome.is_partial = true,
        Err(Ended::Failed(error)) => return Err(error),
        Ok(()) => {}
    }
    Ok(outcome)
}

/// Those of table 4 that are there.
fn servers(tools: &Tools, is_table: bool) -> Vec<Server> {
    let is_there = |server: &Server| *server != Server::Tgt || tools.tgt.is_some();
    Server::ALL.into_iter().filter(|server| is_table && is_there(server)).collect()
}

fn reach(
    tools: &Tools,
    lab: &Lab,
    clients: u16,
    options: &HostsOptions,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<ReachedHosts, Failure> {
    let ip = tools.ip.display().to_string();
    let ssh = ["sh", "-c", IN_NAMESPACE, "in-namespace", &ip].map(str::to_owned).to_vec();
    let address = |n| HostAddress::Ssh { destination: lab.client(n), port: None };
    let hosts = Hosts {
        addresses: (1..=clients).map(address).collect(),
        remote: RemoteStart { ssh, program: options.program.display().to_string() },
        version: options.version.clone(),
        ..Hosts::default()
    };
    let told = PapersProgress::part(0, 1, vec!["starting workers".to_owned()]);
    let reached = ReachedHosts::open(&hosts, &mut |_| progress(&told));
    reached.map_err(|why| Failure { help: why.help, ..Failure::failed(why.message) })
}

/// Why no more loads are carried out.
enum Ended {
    Stopped,
    Failed(Failure),
}

impl From<Failure> for Ended {
    fn from(error: Failure) -> Ended {
        Ended::Failed(error)
    }
}

/// Carries out loads, one after the other.
struct Bench<'a> {
    reached: ReachedHosts,
    lab: &'a Lab,
    cores: &'a Cores,
    plan: &'a Plan,
    seconds: f64,
    done: u64,
    of: u64,
    progress: &'a mut dyn FnMut(&PapersProgress) -> KeepGoing,
}

impl Bench<'_> {
    fn carry_out(
        &mut self,
        tools: &Tools,
        servers: &[Server],
        delays: &[u32],
        repeats: u32,
        outcome: &mut Outcome,
    ) -> Result<(), Ended> {
        let clients = CLIENTS.len() as u16;
        // The targets run for the whole time and are idle between loads. A start per load would
        // measure cold caches and slow starts of TCP each time.
        let start = || Targets::start(tools, self.lab, self.cores, clients);
        let _targets = (!servers.is_empty()).then(start).transpose()?;
        // The repetition is the outermost loop: a slow change of the machine then affects all cases
        // alike. Repetitions in a row would make it look like a difference between cases.
        for repeat in 0..repeats {
            for link in LINKS.into_iter().filter(|_| !servers.is_empty()) {
                self.lab.shape(link)?;
                for (server, clients) in cases(servers) {
                    let load = self.table4(server, clients, repeat)?;
                    outcome.table4.entry((server, link, clients)).or_default().push(load);
                }
            }
            for delay in delays {
                // The paper's storage is in the machine of the workers: its link is no part of figure 7.
                self.lab.shape(Link::Unshaped)?;
                let target = self.lab.target();
                let time = Duration::from_micros(u64::from(*delay));
                // The server with a delay polls and uses a whole core. It exists only during its
                // own loads, so the loads of table 4 have the core of the target to themselves.
                let server = DelayServer::start(&target, self.cores, time)?;
                for workers in WORKERS {
                    let load = self.figure7(workers, repeat)?;
                    outcome.figure7.entry((*delay, workers)).or_default().push(load);
                }
                outcome.late.entry(*delay).or_default().push(server.end());
            }
        }
        Ok(())
    }

    fn table4(&mut self, server: Server, clients: u16, repeat: u32) -> Result<Load, Ended> {
        let table = &self.plan.table4;
        let (size, depth) = (table.size_kib, table.outstanding);
        self.load(
            clients,
            repeat,
            &|n| server.address(n),
            &format!("{size}KiB"),
            depth,
            "sequential",
        )
    }

    fn figure7(&mut self, workers: u16, repeat: u32) -> Result<Load, Ended> {
        let size = format!("{}KiB", self.plan.figure7.size_kib);
        let target = |_| format!("nbd://{TARGET_ADDRESS}:{}", delay::PORT);
        self.load(workers, repeat, &target, &size, 1, "random")
    }

    fn load(
        &mut self,
        clients: u16,
        repeat: u32,
        target: &dyn Fn(u16) -> String,
        size: &str,
        depth: u32,
        pattern: &str,
    ) -> Result<Load, Ended> {
        let spec = |n: u16| spec(&target(n), size, depth, pattern, self.seconds, repeat);
        let common = spec(1)?;
        let host = |n: u16| {
            // Each client has its own seed. With one seed, all random readers would ask for the
            // same blocks in the same order.
            let spec = RunSpec { seed: common.seed.wrapping_add(u64::from(n)), ..spec(n)? };
            Ok(HostLoad { host: usize::from(n - 1), name: Some(format!("client {n}")), spec })
        };
        let hosts = (1..=clients).map(host).collect::<Result<Vec<_>, Failure>>()?;
        let load = ClusterLoad { common: common.clone(), hosts };
        let clients =
            if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
        let running = vec![format!("{clients}, {pattern} reads of {size}")];
        let told = PapersProgress::part(self.done, self.of, running);
        let mut watch = Watch::new(self.lab.target(), self.cores.target);
        let progress = &mut *self.progress;
        let measured = self.reached.run(&load, &mut |cluster| {
            watch.see(cluster);
            progress(&told)
        });
        self.done += 1;
        let load = finished(measured, &watch)?;
        match (self.progress)(&told) {
            KeepGoing::Stop => Err(Ended::Stopped),
            _ => Ok(load),
        }
    }
}

/// All numbers of clients of each of `servers`.
fn cases(servers: &[Server]) -> impl Iterator<Item = (Server, u16)> {
    servers.iter().flat_map(|server| CLIENTS.map(|clients| (*server, clients)))
}

/// A load of one client.
fn spec(
    target: &str,
    size: &str,
    depth: u32,
    pattern: &str,
    seconds: f64,
    repeat: u32,
) -> Result<RunSpec, Failure> {
    let text = format!(
        "workload = \"{pattern} read\"\nseed = {}\nkeep = \"summary\"\ninterval = \"10ms\"\n[real]\nno_probes = true\n\
         [contents.workload]\nread_percent = 100\nwrite_percent = 0\nblock_size = \"{size}\"\ndepth = {depth}\n\
         duration = \"{seconds}s\"\n[contents.workload.address]\npattern = \"{pattern}\"\n",
        1000 * repeat
    );
    let spec: RunSpec = parse("papers/s4/plan.toml", &text)?;
    Ok(RunSpec { target: Some(target.to_owned()), ..spec })
}

fn finished(measured: Result<Measured, Failure>, watch: &Watch) -> Result<Load, Ended> {
    let failed = |failure: &Failure| match failure.kind {
        FailureKind::Interrupted => Ended::Stopped,
        _ => Ended::Failed(Failure {
            help: failure.help.clone(),
            ..Failure::failed(format!("a load over the network failed: {failure}"))
        }),
    };
    let Measured { result, failure, .. } = measured.map_err(|failure| failed(&failure))?;
    // A load that ends partway has figures, but for another duration. It must not enter a mean with
    // complete loads.
    if let Some(failure) = failure {
        return Err(failed(&failure));
    }
    // Failed requests complete quickly and would raise the rate. One failure therefore rejects the
    // whole load.
    if result.errors > 0 {
        let problem = format!("{} requests over the network failed", result.errors);
        return Err(Ended::Failed(refused(problem, "please report this")));
    }
    Ok(load_of(&result, watch))
}

fn load_of(result: &RunResult, watch: &Watch) -> Load {
    let clients = result.hosts.iter().map(|host| Client {
        megabytes: host.throughput_bytes_per_second / 1e6,
        skew_us: host.start_skew_ns.unwrap_or(0) as f64 / 1e3,
        steady_seconds: watch.seen.get(&host.name).and_then(|seen| steady(&rates(seen), 3)),
    });
    let series: Vec<Rate> = result
        .series
        .iter()
        .filter(|point| point.length_seconds > 0.0)
        .map(|point| Rate { start: point.start_seconds, rate: point.iops })
        .collect();
    Load {
        clients: clients.collect(),
        megabytes: result.throughput_bytes_per_second / 1e6,
        iops: result.iops,
        latency_us: result.latency_ns.as_ref().map_or(f64::NAN, |l| l.all.mean / 1e3),
        cpu: watch.cpu(),
        steady_seconds: steady(&series, 5),
    }
}

/// What is seen of a load while it goes on.
struct Watch {
    target: String,
    core: Option<usize>,
    /// Of each client, how many requests it had completed after how many seconds.
    seen: BTreeMap<String, Vec<(f64, u64)>>,
    /// CPU time when all clients were under load for the first and for the last time.
    first: Option<CpuTime>,
    last: Option<CpuTime>,
    latest: u64,
}

impl Watch {
    fn new(target: String, core: Option<usize>) -> Watch {
        Watch { target, core, seen: BTreeMap::new(), first: None, last: None, latest: 0 }
    }

    fn see(&mut self, cluster: &ClusterProgress) {
        let mut sum = 0;
        for (name, snapshot, _) in &cluster.hosts {
            let progress = &snapshot.progress;
            let point = (progress.now.as_s_f64(), progress.completed);
            sum += progress.completed;
            let seen = self.seen.entry(name.clone()).or_default();
            // A snapshot can be delivered twice. A point with the same time would give a rate of
            // zero or a division by zero.
            if snapshot.phase == RunPhase::Loaded && seen.last().is_none_or(|last| last.0 < point.0)
            {
                seen.push(point);
            }
        }
        let loaded = |(_, snapshot, _): &(_, ssdyno_session::RunSnapshot, _)| {
            snapshot.phase == RunPhase::Loaded && snapshot.progress.completed > 0
        };
        // Snapshots come ten times a second; between them there is nothing new.
        if sum != self.latest && !cluster.hosts.is_empty() && cluster.hosts.iter().all(loaded) {
            self.latest = sum;
            let now = CpuTime::now(&self.target, self.core);
            // CPU time counts from the first to the last moment at which all clients load the
            // target. The start and the end, with fewer clients, would lower the share.
            self.first.get_or_insert(now);
            self.last = Some(now);
        }
    }

    fn cpu(&self) -> CpuShares {
        match (&self.first, &self.last) {
            (Some(first), Some(last)) => first.until(last),
            _ => CpuShares { processes: f64::NAN, core: f64::NAN, others: f64::NAN },
        }
    }
}

/// Rates between snapshots, the first one from the start.
fn rates(seen: &[(f64, u64)]) -> Vec<Rate> {
    let before = std::iter::once((0.0, 0)).chain(seen.iter().copied());
    let pairs = before.zip(seen.iter().copied());
    let rate = |((start, before), (end, after)): ((f64, u64), (f64, u64))| {
        let rate = after.saturating_sub(before) as f64 / (end - start);
        (end > start).then_some(Rate { start, rate })
    };
    pairs.filter_map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loads_are_those_of_the_plan() {
        let spec = spec("nbd://10.83.0.1/a", "32KiB", 8, "sequential", 1.5, 2).unwrap();
        assert_eq!((spec.target.as_deref(), spec.seed), (Some("nbd://10.83.0.1/a"), 2000));
        let workload = spec.contents.workload.unwrap();
        assert_eq!(workload["duration"].as_str(), Some("1.5s"));
        assert_eq!(workload["depth"].as_integer(), Some(8));
        assert!(spec.real.no_probes && spec.interval.is_some());
    }

    #[test]
    fn rates_are_those_between_snapshots() {
        let rates = rates(&[(0.1, 50), (0.2, 150), (0.2, 150), (0.4, 350)]);
        let told: Vec<(f64, f64)> =
            rates.iter().map(|rate| (rate.start, rate.rate.round())).collect();
        assert_eq!(told, [(0.0, 500.0), (0.1, 1000.0), (0.2, 1000.0)]);
    }

    #[test]
    fn what_takes_the_place_of_ssh_skips_its_options() {
        let words =
            ["-c", IN_NAMESPACE, "x", "echo", "-T", "-o", "BatchMode=yes", "--", "ns", "a b"];
        let output = std::process::Command::new("sh").args(words).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "netns exec ns sh -c exec a b\n");
    }
}
