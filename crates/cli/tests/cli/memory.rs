//! The memory that a run takes, at two lengths of the run.

use std::process::Stdio;
use std::time::Duration;

use crate::common::Place;

/// The most memory in bytes that `args` had at once (VmHWM, proc_pid_status(5)), as looked at each millisecond.
fn peak_bytes(place: &Place, args: &[&str]) -> u64 {
    let mut command = place.command(args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak_bytes = 0;
    while child.try_wait().unwrap().is_none() {
        // A program that has just ended has no such line any more.
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
        let now = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10;
        peak_bytes = peak_bytes.max(now);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(peak_bytes > 1 << 20, "{args:?} was not seen at work");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    peak_bytes
}

/// A run of four times as many requests takes no more memory, whatever is kept and told, but for a simulated run
/// that has rows. Tolerance: half a row of 16 bytes for each further request; statistics grow with the logarithm of
/// the length (7 MB for four times as many). A simulated run: one row and a half.
#[test]
fn memory_does_not_grow_with_the_run() {
    let place = Place::new();
    place.write("file", vec![7u8; 4 << 20]);
    // Buffered, so that a slow disk does not make the test slow.
    let file = ["--buffered", "--no-probes"];
    let targets = [
        ("null:", 2_000_000, &file[1..]),
        ("./file", 1_500_000, &file),
        ("sim:delay-10us", 300_000, &[]),
    ];
    for (target, requests, how) in targets {
        for keep in ["all", "summary", "none"] {
            for json in [&[][..], &["--json"]] {
                let peak = |requests: u64| {
                    let requests = requests.to_string();
                    let run = ["run", target, "--workload", "randread", "--requests", &requests];
                    let keep = ["--keep", keep, "--set", "workload.depth=32"];
                    peak_bytes(&place, &[&run[..], &keep, how, json].concat())
                };
                // These runs take some seconds, and the way of printing is the same for every target.
                if target == "./file" && json.is_empty() != (keep == "summary") {
                    continue;
                }
                let has_rows = target.starts_with("sim:") && keep != "summary";
                let most = if has_rows { 24.0 } else { 8.0 };
                // Rows wait in memory while other programs keep the writer from the disk. A run that
                // holds rows of its own needs them in each of three tries.
                let each = || {
                    let grown = peak(4 * requests).saturating_sub(peak(requests));
                    grown as f64 / (3 * requests) as f64
                };
                let tries: Vec<f64> =
                    (0..3).map(|_| each()).take_while(|each| *each >= most).collect();
                assert!(tries.len() < 3, "{target} {keep} {json:?}: {tries:?} bytes for a request");
            }
        }
    }
}
