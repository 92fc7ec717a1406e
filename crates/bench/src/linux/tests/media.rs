//! Reads that a cache or a hole serves, in whole runs.

use ssdyno_figures::{RunResult, WarningKind};

use super::*;

/// The figures of `workload` on the file `name`; `None` if its requests do not go past the page cache.
fn direct(name: &str, workload: &str) -> Option<RunResult> {
    let result = measure(&run(name, workload)).result;
    if result.warnings.iter().any(|one| one.kind == WarningKind::Memory) {
        eprintln!("skipped: there is no direct I/O in this directory");
        return None;
    }
    Some(result)
}

/// 80 % of 1000 reads of 4 KiB go to 1 % of 16 MiB: 3200 KiB / 163.84 KiB = 19.5 times. The whole range is read 0.24 times.
#[test]
fn a_hot_part_that_is_read_again_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 16 << 20);
    let hot = "requests = 1000\naddress = { pattern = \"hot-cold\", hot_space_percent = 1.0 }\n";
    let Some(result) = direct(&name, hot) else { return };
    let start = "the hot part of 0.16 MiB (80 % of the reads) was read 20 times: a cache";
    assert!(result.notes.iter().any(|note| note.starts_with(start)), "{:?}", result.notes);
    let uniform = direct(&name, "requests = 1000\n").unwrap().notes;
    assert!(!uniform.iter().any(|note| note.contains("a cache below")), "{uniform:?}");
}

/// 4 MiB of data and a hole of 12 MiB: reads of the first 2 MiB never meet it, those of the first 8 MiB do for their half.
#[test]
fn holes_that_a_run_did_not_reach_are_not_told() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 4 << 20);
    File::options().write(true).open(&name).unwrap().set_len(16 << 20).unwrap();
    for (requests, share) in [(512, None), (2048, Some("50 %")), (4096, Some("75 %"))] {
        let load = format!("requests = {requests}\naddress = {{ pattern = \"sequential\" }}\n");
        let Some(result) = direct(&name, &load) else { return };
        let mut messages = result.warnings.iter().map(|one| &*one.message);
        let told = messages.find(|message| message.contains("held no data before the run"));
        let told = told.map(|message| message.split(" of").next().unwrap());
        assert_eq!(told, share, "{requests} requests");
    }
}
