//! Runs on several workers over loopback: real connections, simulated targets and files.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ssdyno_cluster::{
    ClusterLoad, HostAddress, HostLoad, Hosts, ProberAddress, ReachedHosts, WorkerConsent,
    WorkerListener, WorkerService, run_on_hosts,
};
use ssdyno_figures::{KeepGoing, RunResult};
use ssdyno_session::{FailureKind, RunSpec, Unattended, WriteSpec, resolve};

use crate::common::{Running, VERSION, at, file, name_of, run, spec, workers};

/// Sums over hosts are the figures of the run.
fn adds_up(result: &RunResult) {
    let requests: u64 = result.hosts.iter().map(|host| host.requests).sum();
    assert_eq!(requests, result.requests);
    let iops: f64 = result.hosts.iter().map(|host| host.iops).sum();
    assert!((iops / result.iops - 1.0).abs() < 1e-9, "{iops} {}", result.iops);
    assert!(result.invariants.iter().all(|one| one.holds), "{:?}", result.invariants);
}

/// Two hosts that simulate the same run are one run twice: the same percentiles, twice the rate.
#[test]
fn merged_percentiles_are_those_of_all_requests() {
    let (_workers, hosts) = workers(2);
    let spec = RunSpec {
        workload: Some("mixed".to_owned()),
        // Stretches of 1 ms: the cut falls on the end.
        interval: "1ms".parse().ok(),
        ..spec("sim:delay-100us", 0.2)
    };
    let load = |host| HostLoad { host, name: None, spec: spec.clone() };
    let both = ClusterLoad { common: spec.clone(), hosts: (0..2).map(load).collect() };
    let watch = &mut |_: &_| KeepGoing::Continue;
    let both = ReachedHosts::open(&at(&hosts), watch).unwrap().run(&both, watch).unwrap();
    assert!(both.failure.is_none(), "{:?}", both.failure);
    adds_up(&both.result);
    let alone =
        resolve(&RunSpec { keep: ssdyno_figures::Keep::Summary, ..spec }, &mut Unattended).unwrap();
    let alone = alone.start().unwrap().result().unwrap().result;
    let outside: u64 =
        both.result.window.as_ref().unwrap().outside.iter().map(|one| one.requests).sum();
    assert_eq!(both.result.requests + outside, 2 * alone.requests);
    let [a, b] = [&both.result, &alone].map(|result| result.latency_ns.as_ref().unwrap().all);
    assert!((a.mean / b.mean - 1.0).abs() < 0.01, "{a:?} {b:?}");
    assert!(
        (a.p50 / b.p50 - 1.0).abs() < 0.005 && (a.p99 / b.p99 - 1.0).abs() < 0.01,
        "{a:?} {b:?}"
    );
    assert!((both.result.iops / alone.iops / 2.0 - 1.0).abs() < 0.01);
    assert_eq!(both.result.hosts[0].start_skew_ns, None, "time is virtual");
    assert!(both.result.simulated_requests_per_wall_second.is_some_and(|speed| speed > 0.0));
    let compared = ssdyno_report::compare(&both.result, &alone);
    assert_eq!(compared.not_comparable[0], "one run used 2 hosts, the other one host");
    let changed: Vec<&str> = compared.changed.iter().map(|change| change.key.as_str()).collect();
    assert!(changed.iter().all(|key| !key.contains("workload")), "{changed:?}");
    // Both hosts have one spec, with the contents of the load that it names, which another run can be compared with.
    let kept = both.result.hosts.iter().map(|host| host.spec.as_ref());
    let [Some(spec), None] = kept.collect::<Vec<_>>()[..] else {
        panic!("{:?}", both.result.hosts)
    };
    assert!(spec["contents"]["workload"]["read_percent"].is_number(), "{spec}");
}

/// Of two hosts that simulate the same SSD each has the energy, the flash and the victims of the run alone, and both together have
/// twice as much. The cut to whole stretches of the series takes none of it.
#[test]
fn energy_and_flash_of_all_hosts_are_summed() {
    let (_workers, hosts) = workers(2);
    let spec = RunSpec {
        workload: Some("randwrite".to_owned()),
        interval: "1ms".parse().ok(),
        set: vec!["flash.blocks_per_plane=64".to_owned(), "workload.depth=8".to_owned()],
        ..spec("sim:config-a", 0.3)
    };
    let load = |host| HostLoad { host, name: None, spec: spec.clone() };
    let both = ClusterLoad { common: spec.clone(), hosts: (0..2).map(load).collect() };
    let watch = &mut |_: &_| KeepGoing::Continue;
    let both = ReachedHosts::open(&at(&hosts), watch).unwrap().run(&both, watch).unwrap().result;
    let alone =
        resolve(&RunSpec { keep: ssdyno_figures::Keep::Summary, ..spec }, &mut Unattended).unwrap();
    let alone = alone.start().unwrap().result().unwrap().result;
    let (sum, one) = (both.energy_joules.unwrap(), alone.energy_joules.unwrap());
    assert!((sum.total / one.total / 2.0 - 1.0).abs() < 1e-12, "{sum:?} {one:?}");
    let parts = sum.flash + sum.cpu + sum.dram + sum.bus + sum.parts;
    assert!((parts / sum.total - 1.0).abs() < 1e-9, "{sum:?}");
    let rows: f64 = both.energy_by_part.iter().map(|row| row.joules).sum();
    assert!((rows / sum.total - 1.0).abs() < 1e-9 && both.energy_by_part.len() > 3);
    assert!((sum.per_request.unwrap() / one.per_request.unwrap() - 1.0).abs() < 1e-12);
    let (all, single) = (both.flash_operations.unwrap(), alone.flash_operations.unwrap());
    assert_eq!((all.programs, all.erases), (2 * single.programs, 2 * single.erases));
    let factors = [&both, &alone].map(|result| result.write_amplification.unwrap());
    assert!((factors[0] / factors[1] - 1.0).abs() < 1e-12 && factors[0] > 1.0, "{factors:?}");
    let victims = [&both, &alone].map(|result| result.gc_victims.clone().unwrap());
    assert_eq!(victims[0].blocks, 2 * victims[1].blocks);
    assert!((victims[0].valid_mean / victims[1].valid_mean - 1.0).abs() < 1e-12);
    for host in &both.hosts {
        let whole = host.whole_run.as_ref().unwrap();
        assert_eq!(whole.flash_operations, alone.flash_operations);
        assert_eq!(whole.energy_joules, alone.energy_joules);
        let counted: u64 = host.series.iter().map(|point| point.writes).sum();
        assert_eq!(counted, host.requests, "the series of a host has all of its requests");
    }
    let power = |result: &RunResult| result.series[0].power_watts.unwrap().total;
    assert!((power(&both) / power(&alone) / 2.0 - 1.0).abs() < 1e-9);
}

/// Two hosts of which one runs twice as long: what cannot be cut to the window is in no sum, and each host has its own.
#[test]
fn energy_outside_the_window_is_not_summed() {
    let (_workers, hosts) = workers(2);
    let common = spec("sim:config-a", 0.1);
    let load = |host| {
        let spec = if host == 0 { common.clone() } else { spec("sim:config-a", 0.2) };
        HostLoad { host, name: None, spec }
    };
    let load = ClusterLoad { common: common.clone(), hosts: (0..2).map(load).collect() };
    let watch = &mut |_: &_| KeepGoing::Continue;
    let result = ReachedHosts::open(&at(&hosts), watch).unwrap().run(&load, watch).unwrap().result;
    assert_eq!((result.energy_joules, result.flash_operations), (None, None));
    let name = &result.hosts[1].name;
    let told = |note: &&String| note.contains(&**name) && note.contains("not summed");
    assert_eq!(result.notes.iter().filter(told).count(), 2, "{:?}", result.notes);
    let total = |at: usize| {
        result.hosts[at].whole_run.as_ref().unwrap().energy_joules.as_ref().unwrap().total
    };
    assert!(total(1) > 1.5 * total(0));
}

#[test]
fn real_targets_begin_together() {
    let (_workers, hosts) = workers(3);
    let file = file(16 << 20);
    let real = RunSpec { real: buffered(), ..spec(name_of(&file), 0.8) };
    let result = run(&hosts, &real).unwrap().result;
    adds_up(&result);
    assert_eq!(result.simulated_requests_per_wall_second, None);
    assert!(result.requests > 100 && !result.partial);
    let window = result.window.clone().unwrap();
    let length_ns = window.end_unix_ns.unwrap() - window.start_unix_ns;
    assert!((length_ns as f64 / 1e9 - result.simulated_seconds).abs() < 1e-6);
    // The last requests end after the time is up.
    assert!((0.7..=1.2).contains(&result.simulated_seconds), "{}", result.simulated_seconds);
    for host in &result.hosts {
        // One clock: the offset is within the bound that is told for it.
        assert!(
            host.clock_offset_ns.unsigned_abs() <= host.clock_uncertainty_ns + 50_000,
            "{host:?}"
        );
        // The machine of the test is a busy one.
        assert!(host.start_skew_ns.unwrap() < 50_000_000, "{host:?}");
        let latency = host.latency_ns.as_ref().unwrap().all;
        assert!(host.lost.is_none());
        // For its own requests: around its own figures, and not around those of all.
        let confidence = host.confidence.as_ref().unwrap();
        for (figure, interval) in
            [(host.iops, confidence.iops), (latency.mean, confidence.latency_ns.all.mean)]
        {
            let around = interval.unwrap();
            assert!(around.estimate == figure && around.low < figure && figure < around.high);
        }
    }
}

/// A run that fails while it prepares leaves no probe on the machines of its hosts, which take eight at once.
#[test]
fn a_run_that_cannot_begin_leaves_no_probes() {
    let (_workers, hosts) = workers(1);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let probed = Hosts { probe_every: Some(Duration::from_millis(100)), ..at(&hosts) };
    let watch = &mut |_: &_| KeepGoing::Continue;
    for _ in 0..9 {
        let nobody = spec(&format!("nbd://{free}/export"), 0.01);
        let failure = run_on_hosts(&probed, &nobody, watch).unwrap_err();
        assert!(failure.message.contains(&free.to_string()), "{failure}");
    }
    let measured = run_on_hosts(&probed, &spec("sim:delay-100us", 0.01), watch).unwrap();
    assert_eq!(measured.result.systems.len(), 1);
}

fn buffered() -> ssdyno_session::RealSpec {
    ssdyno_session::RealSpec { buffered: true, ..ssdyno_session::RealSpec::default() }
}

#[test]
fn an_interrupt_stops_all_within_a_second_and_keeps_what_was_measured() {
    let (_workers, hosts) = workers(2);
    let file = file(16 << 20);
    let real = RunSpec { real: buffered(), ..spec(name_of(&file), 60.0) };
    let mut told = None;
    let measured = run_on_hosts(&at(&hosts), &real, &mut |progress| {
        let seen = progress.merged();
        if seen.preparing.is_none() && seen.now.as_s_f64() > 0.4 {
            told.get_or_insert_with(Instant::now);
            return KeepGoing::Stop;
        }
        KeepGoing::Continue
    });
    let took = told.unwrap().elapsed();
    assert!(took < Duration::from_millis(1500), "{took:?}");
    let measured = measured.unwrap();
    assert_eq!(measured.failure.unwrap().kind, FailureKind::Interrupted);
    assert!(measured.result.partial && measured.result.requests > 10);
    adds_up(&measured.result);
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_half_started() {
    let (_workers, hosts) = workers(2);
    let message = |hosts: &[HostAddress], spec: &RunSpec| run(hosts, spec).unwrap_err();
    // One that is not there: the other one is free again afterwards.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let absent: HostAddress = free.to_string().parse().unwrap();
    let failure = message(&[hosts[0].clone(), absent.clone()], &spec("sim:delay-100us", 0.01));
    assert!(failure.message.contains(&absent.to_string()), "{failure}");
    let failure = message(&[hosts[0].clone(), hosts[0].clone()], &spec("sim:delay-100us", 0.01));
    assert!(failure.message.contains("named twice"), "{failure}");
    let failure = message(&hosts, &spec("/nowhere/at.all", 0.01));
    assert!(
        failure.message.contains("127.0.0.1:") && failure.message.contains("/nowhere"),
        "{failure}"
    );
    let wrong = RunSpec { workload: Some("nosuch".to_owned()), ..spec("sim:delay-100us", 0.01) };
    assert_eq!(message(&hosts, &wrong).kind, FailureKind::Usage);
    let old = Running::of_version(WorkerConsent::default(), "0.9.9");
    let failure = message(&[hosts[0].clone(), old.address.clone()], &spec("sim:delay-100us", 0.01));
    assert!(failure.message.contains("0.9.9") && failure.message.contains(VERSION), "{failure}");
    assert!(run(&hosts, &spec("sim:delay-100us", 0.01)).is_ok(), "both are free");
}

/// As many hosts as one controller is made for, each with a simulation of its own: all are there, once, and the sums are
/// those of the hosts.
#[test]
#[ignore = "a thousand workers with some threads each; about a minute"]
fn a_thousand_workers_start_run_and_merge() {
    let count = std::env::var("WORKERS").map_or(1000, |count| count.parse().unwrap());
    let (_workers, hosts) = workers(count);
    let spec = RunSpec { interval: "1ms".parse().ok(), ..spec("sim:delay-100us", 0.05) };
    let began = Instant::now();
    let mut told = 0;
    let measured = run_on_hosts(&at(&hosts), &spec, &mut |_| {
        told += 1;
        KeepGoing::Continue
    })
    .unwrap();
    println!("{count} workers: {:?}, told {told} times", began.elapsed());
    assert!(measured.failure.is_none(), "{:?}", measured.failure);
    assert_eq!(measured.result.hosts.len(), count);
    adds_up(&measured.result);
    let seeds: std::collections::BTreeSet<u64> =
        measured.result.hosts.iter().map(|host| host.seed).collect();
    assert_eq!(seeds.len(), count);
}

#[test]
fn two_controllers_do_not_share_a_worker() {
    let (_workers, hosts) = workers(1);
    let mut second = None;
    // Longer than the other controller needs, however busy the machine is; it is stopped then. Before the first completion
    // the worker may not have been told of the run.
    let first = run_on_hosts(&at(&hosts), &spec("null:", 60.0), &mut |progress| {
        if second.is_some() {
            return KeepGoing::Stop;
        }
        if progress.merged().completed > 0 {
            // A controller has a runtime of its own.
            let hosts = hosts.clone();
            let other = std::thread::spawn(move || run(&hosts, &spec("null:", 0.1)).unwrap_err());
            second = Some(other.join().unwrap());
        }
        KeepGoing::Continue
    });
    assert!(first.unwrap().result.requests > 0);
    assert!(second.unwrap().message.contains("has a run of"));
}

/// Consent to write is given where the disk is.
#[test]
fn no_controller_can_consent_to_write() {
    let file = file(1 << 20);
    let write = WriteSpec { allowed: true, overwrite: true, ..WriteSpec::default() };
    let asked = RunSpec {
        workload: Some("randwrite".to_owned()),
        write: write.clone(),
        real: buffered(),
        ..spec(name_of(&file), 0.1)
    };
    let (_workers, hosts) = workers(1);
    let failure = run(&hosts, &asked).unwrap_err();
    assert!(failure.message.contains("does not allow writing"), "{failure}");
    assert!(std::fs::read(file.path()).unwrap().iter().all(|byte| *byte == 7));
    let targets = BTreeMap::from([(name_of(&file).to_owned(), write)]);
    let willing = Running::new(WorkerConsent { targets });
    let measured = run(std::slice::from_ref(&willing.address), &asked).unwrap();
    assert!(measured.result.requests_by_op.write > 0);
}

/// A worker that ends in the middle leaves the others' figures and its name.
#[test]
fn a_worker_that_ends_in_the_middle_has_its_name_in_the_result() {
    let (workers, hosts) = workers(2);
    let mut ended = false;
    let measured = run_on_hosts(&at(&hosts), &spec("null:", 1.5), &mut |progress| {
        if !ended && progress.merged().now.as_s_f64() > 0.3 {
            ended = true;
            // It stops in order, and its controller fetches what it has.
            workers[1].end.store(true, Ordering::Relaxed);
        }
        KeepGoing::Continue
    });
    let measured = measured.unwrap();
    assert!(measured.result.partial);
    let failure = measured.failure.unwrap();
    assert!(failure.message.contains(&hosts[1].to_string()), "{failure}");
    let [whole, cut] = &measured.result.hosts[..] else { panic!("two hosts") };
    assert!(!whole.partial && cut.partial);
    adds_up(&measured.result);
}

#[test]
fn nobody_listens_beyond_loopback() {
    let failure = WorkerListener::bind("0.0.0.0:0".parse().unwrap()).unwrap_err();
    assert!(failure.message.contains("other machines"), "{failure}");
}

/// Samples of a worker's machine and of a prober lie on the time of the run, without gaps, and cover it.
#[test]
fn machines_are_sampled_on_the_timeline_of_the_run() {
    let (_workers, addresses) = workers(1);
    let prober = Running::of(WorkerService::prober(VERSION));
    let probed = Hosts {
        probers: vec![ProberAddress::Machine(prober.address.clone())],
        probe_every: Some(Duration::from_millis(50)),
        ..at(&addresses)
    };
    let mut seen = 0;
    let result = run_on_hosts(&probed, &spec("null:", 0.8), &mut |progress| {
        seen = seen.max(progress.systems.iter().filter(|(_, sample)| sample.is_some()).count());
        KeepGoing::Continue
    });
    let result = result.unwrap().result;
    assert_eq!(seen, 2);
    let names: Vec<(&str, bool)> =
        result.systems.iter().map(|one| (one.name.as_str(), one.is_worker)).collect();
    let expected = [(addresses[0].to_string(), true), (prober.address.to_string(), false)];
    assert_eq!(names, expected.each_ref().map(|(name, is_worker)| (name.as_str(), *is_worker)));
    for one in &result.systems {
        assert!(one.lost.is_none());
        let points = &one.system.points;
        assert_eq!(points.len(), one.ends_seconds.len());
        let first = one.ends_seconds[0] - points[0].mean.interval_ns as f64 / 1e9;
        let last = *one.ends_seconds.last().unwrap();
        assert!(first <= 0.0 && last >= result.simulated_seconds, "{first} {last}");
        assert!(last < result.simulated_seconds + 2.0, "{last}");
        for (ends, two) in one.ends_seconds.windows(2).zip(points.windows(2)) {
            let length = two[1].mean.interval_ns as f64 / 1e9;
            assert!((ends[1] - ends[0] - length).abs() < 1e-6, "a gap");
        }
    }
    // A prober carries no load, and nobody is sampled twice.
    let refused = run(std::slice::from_ref(&prober.address), &spec("null:", 0.1)).unwrap_err();
    assert!(refused.message.contains("prober"), "{refused}");
    let twice = addresses.iter().cloned().map(ProberAddress::Machine).collect();
    let twice = Hosts { probers: twice, ..probed };
    let refused = run_on_hosts(&twice, &spec("null:", 0.1), &mut |_| KeepGoing::Continue);
    assert!(refused.unwrap_err().message.contains("twice"));
}

/// An exporter of another program: answers as it is told, and is gone after `answers`.
fn exporter(answers: usize, text: &'static str) -> (String, std::thread::JoinHandle<()>) {
    use std::io::{Read as _, Write as _};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move || {
        for number in 0..answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 4096];
            let read = stream.read(&mut asked).unwrap();
            assert!(asked[..read].starts_with(b"GET /metrics HTTP/1.1\r\n"));
            let text = text.replace("{}", &number.to_string());
            // In chunks, as most exporters answer.
            let (head, tail) = text.split_at(text.len() / 2);
            let answer = format!(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n{:x}\r\n{head}\r\n{:x}\r\n{tail}\r\n0\r\n\r\n",
                head.len(),
                tail.len()
            );
            // The caller may have given up.
            let _ = stream.write_all(answer.as_bytes());
        }
    };
    (format!("http://{address}/metrics"), std::thread::spawn(serve))
}

const EXPORTED: &str = "# TYPE served counter\nserved_total{disk=\"a\"} {}\n# TYPE depth gauge\ndepth 4\n# TYPE other gauge\nother NaN\n# EOF\n";

/// Metrics of another program lie on the time of the run; what stops answering leaves gaps, and no failure.
#[test]
fn metrics_of_other_programs_are_series_of_the_run() {
    let (_workers, addresses) = workers(1);
    let (source, serving) = exporter(8, EXPORTED);
    let hosts = |source: &str| Hosts {
        probers: vec![source.parse().unwrap()],
        probe_every: Some(Duration::from_millis(50)),
        ..at(&addresses)
    };
    let spec = spec("null:", 1.0);
    let run = |source: &str| run_on_hosts(&hosts(source), &spec, &mut |_| KeepGoing::Continue);
    let result = run(&format!("{source}#served+other")).unwrap();
    assert!(result.failure.is_none(), "{:?}", result.failure);
    serving.join().unwrap();
    let [metrics] = &result.result.metrics[..] else { panic!("one source") };
    let [served] = &metrics.series[..] else { panic!("{:?}", metrics.series) };
    assert_eq!((served.name.as_str(), served.kind.as_str()), ("served_total", "counter"));
    assert_eq!(served.labels["disk"], "a");
    assert_eq!(metrics.left_out, 1, "`other` has no finite value");
    let known: Vec<f64> = served.values.iter().copied().flatten().collect();
    assert_eq!(known, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert!(metrics.readings_failed > 0 && metrics.last_error.is_some());
    assert_eq!(served.values.len(), metrics.times_seconds.len());
    // The first was read before the load began.
    assert!(
        metrics.times_seconds[0] < 0.0
            && metrics.times_seconds.windows(2).all(|two| two[0] < two[1])
    );
    assert!(ssdyno_report::summary_text(&result.result).contains("1 series"));
    assert!(ssdyno_report::report_html(&result.result).contains("served_total{disk="));
    // A file that cannot be read at first is an error, and nothing is loaded.
    for (text, says) in
        [("hello\n", "not OpenMetrics"), ("# TYPE a gauge\na 1\n# EOF\n", "no metric has")]
    {
        let (source, serving) = exporter(1, text);
        let failure = run(&format!("{source}#served")).unwrap_err();
        assert!(failure.message.contains(says) && failure.help.is_some(), "{failure}");
        serving.join().unwrap();
    }
    assert!(run(&source).unwrap_err().message.contains("cannot read the metrics"));
}
