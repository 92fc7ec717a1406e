//! Rows of requests that are fetched from workers.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use ssdyno_cluster::{Hosts, run_on_hosts};
use ssdyno_figures::{Keep, KeepGoing};
use ssdyno_session::{RunPhase, RunSpec};

use crate::common::{at, spec, workers};
use crate::failures::{CUT, OPEN, Remote};

/// When each request in a file was issued, and how long it took, in nanoseconds.
fn rows_of(path: &Path) -> Vec<(i64, i64)> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let columns = reader.metadata().file_metadata().schema_descr().columns().to_vec();
    let place = |name: &str| columns.iter().position(|column| column.name() == name).unwrap();
    let (issue, latency) = (place("issue_ns"), place("latency_ns"));
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| {
        let row = row.unwrap();
        let of = |at| row.get_long(at).or_else(|_| row.get_ulong(at).map(|ns| ns as i64)).unwrap();
        (of(issue), of(latency))
    })
    .collect()
}

/// The requests of a host are its rows that completed in the window, and the percentiles of the run are those of these rows
/// of all hosts together.
#[test]
fn merged_percentiles_are_those_of_all_rows() {
    let (_workers, addresses) = workers(2);
    let place = tempfile::tempdir().unwrap();
    let hosts = Hosts { rows_in: Some(place.path().to_owned()), ..at(&addresses) };
    // A device that takes different times: seeds differ, and so do the hosts.
    let spec = RunSpec {
        workload: Some("mixed".to_owned()),
        keep: Keep::All,
        interval: "1ms".parse().ok(),
        ..spec("sim:config-a", 0.05)
    };
    let measured = run_on_hosts(&hosts, &spec, &mut |_| KeepGoing::Continue).unwrap();
    assert!(measured.failure.is_none(), "{:?}", measured.failure);
    let result = &measured.result;
    let mut all = Vec::new();
    for (host, outside) in result.hosts.iter().zip(&result.window.as_ref().unwrap().outside) {
        let file = place.path().join(host.rows.as_ref().unwrap());
        let rows = rows_of(&file);
        assert_eq!(rows.len() as u64, host.requests + outside.requests, "{host:?}");
        let from = outside.before_seconds * 1e9;
        let to = from + result.simulated_seconds * 1e9;
        let is_inside = |(issue, latency): &&(i64, i64)| {
            let end = (issue + latency) as f64;
            from <= end && end < to
        };
        let inside: Vec<i64> = rows.iter().filter(is_inside).map(|(_, latency)| *latency).collect();
        assert_eq!(inside.len() as u64, host.requests, "{host:?}");
        all.extend(inside);
    }
    all.sort_unstable();
    let rank = |share: f64| all[((share * all.len() as f64).ceil() as usize).max(1) - 1] as f64;
    let merged = result.latency_ns.as_ref().unwrap().all;
    for (share, merged) in [(0.5, merged.p50), (0.95, merged.p95), (0.99, merged.p99)] {
        // What a histogram may be off.
        assert!((merged / rank(share) - 1.0).abs() < 0.004, "{share}: {merged} {}", rank(share));
    }
    assert_ne!(result.hosts[0].latency_ns, result.hosts[1].latency_ns, "each has its own seed");
}

/// A cut while rows are fetched: what came is not fetched again, and the file is whole.
#[test]
fn rows_survive_a_cut_while_they_are_fetched() {
    const REQUESTS: u64 = 1_000_000;
    let remotes = [Remote::new(), Remote::new()];
    let place = tempfile::tempdir().unwrap();
    let addresses: Vec<_> = remotes.iter().map(|one| one.network.address.clone()).collect();
    let hosts = Hosts { rows_in: Some(place.path().to_owned()), ..at(&addresses) };
    let spec = RunSpec {
        target: Some("null:".to_owned()),
        requests: Some(REQUESTS),
        interval: "10ms".parse().ok(),
        keep: Keep::All,
        ..RunSpec::default()
    };
    let mut over: Option<Instant> = None;
    let measured = run_on_hosts(&hosts, &spec, &mut |progress| {
        let ended = |(_, snapshot, _): &(_, ssdyno_session::RunSnapshot, _)| {
            snapshot.phase == RunPhase::Ended
        };
        if !progress.hosts.is_empty() && progress.hosts.iter().all(ended) {
            let since = over.get_or_insert_with(Instant::now).elapsed();
            let cut = (Duration::from_millis(60)..Duration::from_millis(900)).contains(&since);
            remotes[1].network.set(if cut { CUT } else { OPEN });
        }
        KeepGoing::Continue
    });
    let measured = measured.unwrap();
    assert!(measured.failure.is_none(), "{:?}", measured.failure);
    for host in &measured.result.hosts {
        let rows = rows_of(&place.path().join(host.rows.as_ref().unwrap()));
        assert_eq!(rows.len() as u64, REQUESTS, "{}", host.name);
    }
    let left: Vec<_> =
        walk(place.path()).into_iter().filter(|name| name.ends_with(".part")).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn walk(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: std::path::PathBuf| match path.is_dir() {
        true => walk(&path),
        false => vec![path.display().to_string()],
    };
    entries.flat_map(of).collect()
}

/// Rows that were not asked for are not kept, and a worker leaves nothing behind.
#[test]
fn a_worker_leaves_no_rows_behind() {
    let place = tempfile::tempdir().unwrap();
    let kept = tempfile::tempdir().unwrap();
    let service = ssdyno_cluster::WorkerService::new(
        ssdyno_cluster::WorkerConsent::default(),
        crate::common::VERSION,
    )
    .keep_rows_in(kept.path().to_owned());
    let worker = crate::common::Running::of(service);
    for keep in [Keep::All, Keep::Summary] {
        let rows_in = place.path().join(format!("{keep:?}"));
        let hosts =
            Hosts { rows_in: Some(rows_in.clone()), ..at(std::slice::from_ref(&worker.address)) };
        let spec = RunSpec { keep, ..spec("null:", 0.1) };
        let result = run_on_hosts(&hosts, &spec, &mut |_| KeepGoing::Continue).unwrap().result;
        assert_eq!(result.hosts[0].rows.is_some(), keep == Keep::All);
        assert_eq!(rows_in.exists(), keep == Keep::All);
        assert_eq!(walk(kept.path()), Vec::<String>::new());
    }
}
