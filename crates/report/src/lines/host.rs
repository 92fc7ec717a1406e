//! Lines and rows about the simulated host.

use std::fmt::Write;

use ssdyno_block::counted;
use ssdyno_figures::{
    HostResult, Interval, NamespaceResult, bytes_per_second, joules, nanoseconds, percent, rate,
    significant,
};

use crate::intervals::plus_minus;
use crate::lines::latency::bounded;

/// What it is called in tables.
pub(crate) fn name(namespace: &NamespaceResult) -> String {
    let threads: Vec<String> = namespace.threads.iter().map(u32::to_string).collect();
    match threads.len() {
        0 => format!("namespace {}", namespace.namespace),
        1 => format!("namespace {}, thread {}", namespace.namespace, threads[0]),
        _ => format!("namespace {}, threads {}", namespace.namespace, threads.join(", ")),
    }
}

/// Mean and 99th percentile of the latency, for tables.
pub(crate) fn latencies(namespace: &NamespaceResult) -> [String; 2] {
    match &namespace.latency_ns {
        Some(latency) => {
            let [mean, _, _, p99, ..] = latency.all.lower_bounds();
            let all = &latency.all;
            [bounded(mean, nanoseconds(all.mean)), bounded(p99, nanoseconds(all.p99))]
        }
        None => ["-".to_owned(), "-".to_owned()],
    }
}

/// Name and value of the figures of one request, for tables.
pub(crate) fn rows(host: &HostResult) -> Vec<[String; 2]> {
    let mut rows = vec![["CPU time".to_owned(), nanoseconds(host.cpu_ns_per_request)]];
    for (cause, ns) in &host.cpu_ns_per_request_by_cause {
        if *ns > 0.0 {
            rows.push([format!("  {}", cause.replace('_', " ")), nanoseconds(*ns)]);
        }
    }
    for (name, value) in [
        ("commands", host.commands_per_request),
        ("context switches", host.context_switches_per_request),
        ("interrupts", host.interrupts_per_request),
        ("register writes", host.register_writes_per_request),
        ("register reads", host.register_reads_per_request),
    ] {
        rows.push([name.to_owned(), significant(value, 3)]);
    }
    if let Some(share) = host.locks_contended_share {
        rows.push(["waiting for locks".to_owned(), nanoseconds(host.lock_wait_ns_per_request)]);
        rows.push(["locks contended".to_owned(), percent(share)]);
    }
    if let Some(energy) = host.energy.above_idle_joules_per_request {
        rows.push(["energy above idle (estimate)".to_owned(), joules(energy)]);
    }
    rows
}

/// A few lines for the terminal; `network` is the name of the network to the device, by the spec of the run.
pub(crate) fn text(host: &HostResult, cpu: Option<Interval>, network: Option<&str>) -> String {
    let HostResult { host: machine, driver, queues, stack, threads, completion, .. } = host;
    let n = host.cores.len();
    let cores = counted(n as u64, "core", "cores");
    let network = network.map_or(String::new(), |name| format!(" {name}"));
    let mut text = format!(
        "\nHost  {machine}, {cores}: {driver}{network}, queues {queues}, stack {stack}, threads {threads}, by {completion}\n"
    );
    let busy = host.cores.iter().map(|core| core.busy_share).sum::<f64>() / n.max(1) as f64;
    let _ = writeln!(
        text,
        "  per request  {} CPU{}, {} interrupts, {} switches, {} register writes; cores busy {}",
        nanoseconds(host.cpu_ns_per_request),
        plus_minus(cpu),
        significant(host.interrupts_per_request, 3),
        significant(host.context_switches_per_request, 3),
        significant(host.register_writes_per_request, 3),
        percent(busy),
    );
    let mut causes: Vec<_> = host.cpu_ns_per_request_by_cause.iter().collect();
    causes.sort_by(|a, b| b.1.total_cmp(a.1));
    let causes: Vec<String> = causes
        .into_iter()
        .filter(|(_, ns)| **ns > 0.0)
        .map(|(cause, ns)| format!("{} {}", cause.replace('_', " "), nanoseconds(*ns)))
        .collect();
    let _ = writeln!(text, "  CPU goes to  {}", causes.join(", "));
    if let Some(share) = host.locks_contended_share {
        let wait = nanoseconds(host.lock_wait_ns_per_request);
        let _ = writeln!(text, "  locks        {} contended, {wait} waited", percent(share));
    }
    if n > 1 && n <= 16 {
        let each: Vec<String> = host.cores.iter().map(|core| rate(core.iops)).collect();
        let _ = writeln!(text, "  IOPS by core {}", each.join(", "));
    }
    for namespace in &host.namespaces {
        let [mean, p99] = latencies(namespace);
        let _ = writeln!(
            text,
            "  {}: {} IOPS, {}, mean {mean}, p99 {p99} (blocks of {} B)",
            name(namespace),
            rate(namespace.iops),
            bytes_per_second(namespace.throughput_bytes_per_second),
            namespace.block_bytes,
        );
    }
    if let Some(cache) = host.cache {
        let ratio = cache.hit_ratio.map_or_else(|| "nothing read".to_owned(), percent);
        let _ = writeln!(
            text,
            "  page cache   hits {ratio}, {} written back in {}, {} of writers",
            counted(cache.pages_written, "page", "pages"),
            counted(cache.write_commands, "command", "commands"),
            counted(cache.throttled, "wait", "waits"),
        );
    }
    if let Some(network) = &host.network {
        let _ = writeln!(
            text,
            "  network      target's CPU {} busy, {} per command; link {} to the target, {} to the host",
            percent(network.target_cpu_share),
            nanoseconds(network.target_cpu_ns_per_command),
            percent(network.link_to_target_share),
            percent(network.link_to_host_share),
        );
    }
    if let Some(device) = host.device_completed_bytes_per_second {
        let shown = bytes_per_second(device);
        let _ = writeln!(text, "  the device itself completed {shown}: writes are reported early");
    }
    text
}
