//! Loop devices, where root may make them.

use super::*;
use crate::method::Method;

/// It costs less there, in every run; others may know better, or must not wait for a core.
#[test]
fn only_the_single_job_of_a_closed_loop_on_a_loop_device_stays_on_a_core() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        return eprintln!("skipped: no /dev/shm");
    };
    let file = file(directory.path(), 1 << 20);
    let Some(device) = Loop::over(&file) else { return };
    let closed = "depth = 4\nrequests = 400\n";
    let single = "depth = 1\nrequests = 400\n";
    let open = "requests = 40\narrivals = { kind = \"fixed\", rate = 1000.0 }\n";
    for (name, workload, jobs, cores, stays) in [
        (&device.name, closed, 1, None, false),
        (&device.name, single, 1, Some(vec![]), false),
        (&device.name, closed, 1, Some(vec![]), true),
        (&device.name, closed, 2, Some(vec![]), false),
        (&device.name, closed, 1, Some(vec![0]), false),
        (&device.name, open, 1, Some(vec![]), false),
        (&file, closed, 1, Some(vec![]), false),
    ] {
        let mut run = run(name, workload);
        // `None`: bound to no core, not even by our choice.
        let (stay, cores) = (cores.is_some(), cores.unwrap_or_default());
        run.options = BenchOptions { engine: EngineKind::Uring, jobs, cores, stay, ..run.options };
        let result = match run.execute(&mut |_| KeepGoing::Continue) {
            Err(BenchError::Uring { source }) => {
                return eprintln!("skipped: no io_uring here ({source})");
            }
            other => other.unwrap().result,
        };
        let noted = result.notes.iter().any(|note| note.contains("stays on core"));
        assert_eq!(stays, noted, "{name}, {jobs} jobs: {:?}", result.notes);
        let method = result.method.unwrap();
        assert_eq!(method.cores.len(), usize::from(stays || !run.options.cores.is_empty()));
    }
}

/// A loop device over a file, taken away when dropped.
pub(super) struct Loop {
    pub(super) name: String,
}

impl Loop {
    /// `None`, with a word why, where it cannot be made.
    pub(super) fn over(path: &str) -> Option<Loop> {
        let made = std::process::Command::new("losetup").args(["--find", "--show", path]).output();
        match made {
            Ok(output) if output.status.success() => {
                Some(Loop { name: String::from_utf8(output.stdout).ok()?.trim().to_owned() })
            }
            other => {
                eprintln!("skipped: no loop device ({other:?})");
                None
            }
        }
    }

    pub(super) fn detach(&self) {
        let _ = std::process::Command::new("losetup").args(["--detach", &self.name]).status();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.detach();
    }
}

#[test]
fn a_block_device_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 4 << 20);
    let Some(device) = Loop::over(&name) else { return };
    let mut run = run(&device.name, "depth = 32\nrequests = 5000\nramp_up = 100\n");
    (run.options.method, run.options.batch) = (Method::Efficient, Some(29));
    let result = measure(&run).result;
    assert_eq!((result.requests, result.errors), (5_000, 0), "{:?}", result.notes);
    if result.notes.iter().any(|note| note.contains("engine io_uring")) {
        let calls = result.own_cost.unwrap().syscalls_per_request.unwrap();
        assert!(calls <= 0.035 + 0.01, "{calls} system calls for each request");
        // In pairs: a call for two requests, and one for each wait.
        run.options.submit = Some(2);
        let result = measure(&run).result;
        let calls = result.own_cost.unwrap().syscalls_per_request.unwrap();
        assert!((0.5..=0.55).contains(&calls), "{calls} system calls for each request");
        let said = |note: &String| {
            note.contains("it reaps 29 completions at a time and submits 2 requests at a time")
        };
        assert!(result.notes.iter().any(said), "{:?}", result.notes);
    }
    // Nobody else uses it: its own account is ours, with the ramp-up, to the last request.
    let machine = result.machine.unwrap();
    assert_eq!(machine.device.as_deref(), device.name.strip_prefix("/dev/"));
    let check = machine.device_check.unwrap();
    assert!(check.agrees, "{check:?}");
    assert_eq!(check.device.read_bytes, check.run.read_bytes);
    // The kernel joins neighbours, never more than a few in a random load.
    assert_eq!(check.run.reads, 5_100);
    assert!((4_900..=5_100).contains(&check.device.reads), "{check:?}");
}

#[test]
fn a_device_that_fails_everything_ends_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 4 << 20);
    let Some(device) = Loop::over(&name) else { return };
    // The device keeps its length, and the bytes beyond it are unchanged.
    File::options().write(true).open(&name).unwrap().set_len(0).unwrap();
    let run = run(&device.name, "depth = 8\nduration = \"60s\"\n");
    let measured = run.execute(&mut |_| KeepGoing::Continue).unwrap();
    assert!(matches!(measured.failure, Some(BenchError::Gone { .. })), "{:?}", measured.failure);
    assert!(measured.result.partial && measured.result.errors >= 1_000);
    let notes = measured.result.notes.join("\n");
    assert!(notes.contains("requests failed with Input/output error"), "{notes}");
}

/// One call to submit and at most one to sleep, or as many as it takes to look; and the report says it.
#[test]
fn a_job_spins_that_is_asked_to() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 4 << 20);
    let Some(device) = Loop::over(&name) else { return };
    for (waiting, calls) in [(ReapWait::Sleep, 1.0..=2.01), (ReapWait::Spin, 1.0..=3.0)] {
        let mut run = run(&device.name, "depth = 1\nrequests = 2000\n");
        (run.options.engine, run.options.waiting) = (EngineKind::Uring, Some(waiting));
        let result = match run.execute(&mut |_| KeepGoing::Continue) {
            Err(BenchError::Uring { source }) => {
                return eprintln!("skipped: no io_uring here ({source})");
            }
            other => other.unwrap().result,
        };
        assert_eq!((result.requests, result.errors), (2_000, 0));
        let made = result.own_cost.unwrap().syscalls_per_request.unwrap();
        assert!(calls.contains(&made), "{waiting:?}: {made} system calls for each request");
        let said = |what: &str| result.notes.iter().any(|note| note.contains(what));
        assert_eq!(said("each spins"), waiting == ReapWait::Spin);
        // Who is always there is not the limit for that.
        assert!(!(waiting == ReapWait::Spin && said("this machine is the limit")));
    }
}
