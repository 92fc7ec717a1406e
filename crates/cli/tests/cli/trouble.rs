//! Real targets that misbehave, and machines that forbid things: a message, an exit code, no hang.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::common::{Place, one_object};

/// Starts `args` and waits until its load has begun, or nearly so.
pub(crate) fn started(place: &Place, args: &[&str], name: &str) -> Child {
    let mut command = place.command(&[args, &["--name", name, "--json"]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while !place.path().join("results").join(name).exists() {
        assert!(began.elapsed() < Duration::from_secs(10), "it does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(700));
    child
}

/// Waits until the program has worked for half a second on a target that answers at once. Starting takes
/// less, so its load has begun, however busy the machine is, if a batch is given: the trial that finds one
/// may take longer.
pub(crate) fn at_work(child: &Child) {
    let began = Instant::now();
    let stat = format!("/proc/{}/stat", child.id());
    let ticks = || {
        let text = std::fs::read_to_string(&stat).unwrap();
        // Behind the name, which may have spaces, user and system time are the 12th and 13th.
        let behind = text.rsplit(')').next().unwrap().split_whitespace();
        behind.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>()
    };
    // A hundred of them are a second on every Linux.
    while ticks() < 50 {
        assert!(began.elapsed() < Duration::from_secs(30), "it does not work");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn ended(child: Child, code: i32) -> Value {
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    one_object(&String::from_utf8(output.stdout).unwrap())
}

pub(crate) fn stored(place: &Place, name: &str) -> Value {
    let file = place.path().join("results").join(name).join("result.json");
    one_object(&std::fs::read_to_string(file).unwrap())
}

pub(crate) fn message(object: &Value) -> String {
    format!("{} {}", object["error"]["message"], object["error"]["help"])
}

/// Runs a shell command in which `ssdyno` is the program; `None` where `needs` is missing here.
pub(crate) fn shell(place: &Place, needs: &[&str], command: &str) -> Option<Output> {
    let missing = needs.iter().find(|tool| {
        let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
        !found.is_ok_and(|found| found.status.success())
    });
    if let Some(tool) = missing {
        println!("skipped: there is no {tool} here");
        return None;
    }
    let command = command.replace("ssdyno", env!("CARGO_BIN_EXE_ssdyno"));
    let mut sh = Command::new("sh");
    Some(sh.args(["-c", &command]).current_dir(place.path()).output().unwrap())
}

const READ: [&str; 6] = ["run", "./file", "--workload", "randread", "--batch", "4"];

/// A signal that requests an end keeps the results so far, as Ctrl-C does.
#[test]
fn signals_stop_a_run_and_keep_its_result() {
    for (signal, name) in [(Signal::TERM, "term"), (Signal::HUP, "hup"), (Signal::INT, "int")] {
        let place = Place::new();
        let run = ["run", "null:", "--workload", "randread", "--for", "60s", "--keep", "summary"];
        let run = started(&place, &run, name);
        at_work(&run);
        rustix::process::kill_process(Pid::from_child(&run), signal).unwrap();
        let object = ended(run, 130);
        assert_eq!(object["partial"], true, "{name}");
        let stored = stored(&place, name);
        assert!(stored["partial"] == true && stored["requests"].as_u64().unwrap() > 0, "{name}");
    }
}

#[test]
fn two_runs_at_once_are_refused_and_the_first_goes_on() {
    let place = Place::new();
    place.write("file", vec![7u8; 1 << 20]);
    let first = started(&place, &[&READ[..], &["--for", "60s", "--keep", "summary"]].concat(), "a");
    at_work(&first);
    let refused = place.fails(2, &[&READ[..], &["--for", "1s"]].concat());
    assert!(refused.contains("locked by another program"), "{refused}");
    let verify = ["verify", "./file", "--write", "--overwrite"];
    assert!(place.fails(2, &verify).contains("locked by another program"));
    // It ends when it is told to, however long the others took.
    rustix::process::kill_process(Pid::from_child(&first), Signal::TERM).unwrap();
    let object = ended(first, 130);
    assert!(object["errors"] == 0 && object["requests"].as_u64().unwrap() > 0, "{object}");
}

#[test]
fn a_target_that_shrinks_away_ends_the_run_and_what_was_measured_is_kept() {
    let place = Place::new();
    place.write("file", vec![7u8; 4 << 20]);
    let run = started(&place, &[&READ[..], &["--for", "60s", "--keep", "summary"]].concat(), "a");
    at_work(&run);
    std::fs::File::options()
        .write(true)
        .open(place.path().join("file"))
        .unwrap()
        .set_len(0)
        .unwrap();
    let began = Instant::now();
    let object = ended(run, 1);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(message(&object).contains("no longer responds"), "{}", message(&object));
    let stored = stored(&place, "a");
    assert_eq!(stored["partial"], true);
    assert!(stored["requests"].as_u64().unwrap() > 0 && stored["errors"].as_u64().unwrap() > 0);
}

/// The kernel would end the program with a signal.
#[test]
fn a_limit_of_file_sizes_keeps_the_figures() {
    let place = Place::new();
    let command = "ulimit -f 600; \
        ssdyno run null: --requests 100000 --workload randread --results r --name a --json";
    let Some(output) = shell(&place, &[], command) else { return };
    assert_eq!(output.status.code(), Some(3));
    let object = one_object(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(object["requests"], 100_000);
    assert!(message(&object).contains("rows of"), "{}", message(&object));
    assert!(object["rows_lost"].as_u64().unwrap() > 0);
}

/// 480 MB of rows in less address space: those that are kept go to the disk and the run ends as usual; of several jobs,
/// too. If no files are kept there are no rows, and the result states the resolution of percentiles.
///
/// A slow disk under a target that completes at once loses rows, which is allowed: other tests of the machine
/// write at the same time. The loss has to be counted, percentiles then are those of the histogram, and most
/// rows are kept.
#[test]
fn rows_that_outgrow_memory_are_kept_on_the_disk() {
    for (jobs, limit, keep) in [(1, 450_000, "all"), (2, 600_000, "all"), (1, 450_000, "none")] {
        let place = Place::new();
        let run = format!(
            "ulimit -v {limit}; exec ssdyno run null: --requests 30M --workload randread \
             --set workload.depth=32 --jobs {jobs} --no-probes --name a --json --keep {keep}"
        );
        let Some(output) = shell(&place, &[], &run) else { return };
        let object = one_object(&String::from_utf8(output.stdout).unwrap());
        if keep == "none" {
            assert_eq!(output.status.code(), Some(0), "{object}");
            assert_eq!(object["requests"], 30_000_000);
            assert_eq!(object["percentile_error_max"], 1.0 / 256.0);
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{object}");
        let stored = stored(&place, "a");
        assert_eq!((&stored["partial"], &stored["requests"]), (&false.into(), &30_000_000.into()));
        let rows_lost = stored["rows_lost"].as_u64().unwrap_or(0);
        let error = if rows_lost == 0 { 0.0 } else { 1.0 / 256.0 };
        assert_eq!(stored["percentile_error_max"], error, "{}", stored["notes"]);
        assert!(rows_lost < 15_000_000, "{}", stored["notes"]);
        let directory = place.path().join("results/a");
        assert!(directory.join("requests.parquet").metadata().unwrap().len() > 1 << 20);
        let mut names: Vec<_> =
            directory.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["report.html", "requests.parquet", "result.json"]);
    }
}

/// Rows of a simulated run are in memory, and end the run when that does.
#[test]
fn a_simulated_run_whose_rows_outgrow_memory_ends_in_order() {
    let place = Place::new();
    let run = "ulimit -v 420000; exec ssdyno run sim:delay-10us --requests 30M --workload randread \
               --json --keep none";
    let Some(output) = shell(&place, &[], run) else { return };
    let object = one_object(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(output.status.code(), Some(1), "{object}");
    assert!(message(&object).contains("memory ran out"), "{}", message(&object));
    let help = object["error"]["help"].as_str().unwrap();
    assert!(help.contains("--keep summary"), "{help}");
    assert_eq!(object["stopped_because"], "memory");
    assert!(object["requests"].as_u64().unwrap() > 1_000_000, "{}", object["requests"]);
}

/// Nobody can be asked to end properly any more: what was measured until the last second is there.
#[test]
fn a_run_that_is_killed_leaves_its_rows() {
    let place = Place::new();
    // The second half is a hole: what is known of the file before the run survives the run.
    place.write("file", vec![7u8; 1 << 20]);
    let file = std::fs::File::options().write(true).open(place.path().join("file")).unwrap();
    file.set_len(2 << 20).unwrap();
    let keep = ["--for", "60s", "--jobs", "2", "--set", "workload.depth=2"];
    let mut run = started(&place, &[&READ[..], &keep].concat(), "a");
    let directory = place.path().join("results/a");
    std::thread::sleep(Duration::from_millis(2500));
    let in_use = place.fails(2, &["recover", "results/a"]);
    assert!(in_use.contains("the run is not finished"), "{in_use}");
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(directory.join("requests.rows").exists() && !directory.join("result.json").exists());
    // Half a chunk at the end, as a kill in the midst of writing leaves it.
    let rows = std::fs::File::options().append(true).open(directory.join("requests.rows")).unwrap();
    (&rows).write_all(b"CHUNK\n\0\0 and no more").unwrap();
    let text = place.ok(&["recover", "results/a", "--csv", "--json"]);
    let object = one_object(&text);
    assert_eq!((&object["partial"], &object["stopped_because"]), (&true.into(), &"killed".into()));
    assert_eq!((&object["target"], &object["seed"]), (&"./file".into(), &1.into()));
    let requests = object["requests"].as_u64().unwrap();
    assert!(requests > 100 && object["simulated_seconds"].as_f64().unwrap() > 1.0, "{object}");
    assert!(object["notes"].to_string().contains("recovered from the rows"));
    assert!(object["warnings"].to_string().contains("held no data before the run"), "{object}");
    assert_eq!(stored(&place, "a")["requests"], requests);
    assert!(stored(&place, "a")["provenance"]["machine"].is_object());
    // It is repeated as another one is.
    let spec = &stored(&place, "a")["spec"];
    assert_eq!((&spec["for"], &spec["real"]["jobs"]), (&"60s".into(), &2.into()), "{spec}");
    assert_eq!((&spec["real"]["method"], &spec["version"]), (&"default".into(), &1.into()));
    assert_eq!(spec["contents"]["workload"]["depth"], 2);
    let csv = std::fs::read_to_string(directory.join("requests.csv")).unwrap();
    // The rows go on after the figures, which end with the job whose rows end first.
    let rows = csv.lines().count() as u64 - 1;
    assert!(rows >= requests, "{rows} rows, {requests} requests");
    let told = format!("the rows of {rows} requests");
    assert!(object["notes"].to_string().contains(&told), "{}", object["notes"]);
    // Of each job something is there.
    for job in [",0,./file,0", ",1,./file,0"] {
        assert!(csv.lines().any(|line| line.ends_with(job)), "{job}");
    }
    assert!(directory.join("requests.parquet").exists() && directory.join("report.html").exists());
    assert!(!directory.join("requests.rows").exists() && !directory.join("requests.room").exists());
    let nothing = place.fails(2, &["recover", "results/a"]);
    assert!(nothing.contains("has nothing to recover: its result is complete"), "{nothing}");
}

/// A signal of a terminal that is closed, at any moment; nohup(1) keeps it away.
#[test]
fn a_hang_up_ends_a_run_as_an_interrupt_does() {
    let place = Place::new();
    let hang_up = |child: &Child| {
        rustix::process::kill_process(Pid::from_child(child), Signal::HUP).unwrap();
    };
    let spawn = |args: &[&str]| {
        let mut command = place.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let exists = |path: &str| {
        let began = Instant::now();
        while !place.path().join(path).exists() {
            assert!(began.elapsed() < Duration::from_secs(30), "no {path}");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    // While the device is prepared: a drive of 4 TiB takes seconds.
    let large = ["--set", "flash.blocks_per_plane=20000", "--for", "10s", "--json"];
    let preparing = spawn(&[&["run", "sim:nvme-tlc", "--name", "p"][..], &large].concat());
    exists("results/p");
    std::thread::sleep(Duration::from_millis(300));
    hang_up(&preparing);
    let object = ended(preparing, 130);
    assert!(message(&object).contains("interrupted"), "{object}");
    assert!(!place.path().join("results/p").exists());

    // While it runs, and once more: a shell sends it to its jobs, too.
    let run = ["run", "null:", "--workload", "randread", "--for", "60s", "--keep", "summary"];
    let run = started(&place, &run, "r");
    at_work(&run);
    hang_up(&run);
    std::thread::sleep(Duration::from_millis(300));
    // It may have ended by now.
    let _ = rustix::process::kill_process(Pid::from_child(&run), Signal::HUP);
    assert_eq!(ended(run, 130)["partial"], true);
    assert_eq!(stored(&place, "r")["partial"], true);

    // While it writes: all of it is written.
    let load = ["--workload", "randread", "--requests", "5M", "--set", "workload.depth=32"];
    let writing = spawn(&[&["run", "null:", "--name", "w", "--json"][..], &load].concat());
    exists("results/w/requests.parquet.tmp");
    hang_up(&writing);
    let object = ended(writing, 0);
    assert_eq!((&object["partial"], &object["requests"]), (&false.into(), &5_000_000.into()));
    assert_eq!(stored(&place, "w")["requests"], 5_000_000);
    assert!(place.path().join("results/w/requests.parquet").exists());

    let nohup = "nohup ssdyno run null: --for 2s --keep none --json > out 2>&1 & \
                 sleep 1; kill -HUP $!; wait $!";
    let Some(output) = shell(&place, &["nohup"], nohup) else { return };
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let out = std::fs::read_to_string(place.path().join("out")).unwrap();
    assert!(out.contains("\"partial\": false"), "{out}");
}

/// A simulated run, too: 1.6 GB of rows in 300 MB of address space, some three seconds of it.
#[test]
fn rows_of_a_simulated_run_that_outgrow_memory_are_kept_as_far_as_they_go() {
    let place = Place::new();
    let run = "ulimit -v 300000; exec ssdyno run sim:delay-10us --requests 100M \
               --workload randread --name a --json";
    let Some(output) = shell(&place, &[], run) else { return };
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let object = one_object(&String::from_utf8(output.stdout).unwrap());
    assert!(message(&object).contains("memory ran out"), "{}", message(&object));
    assert!(message(&object).contains("--keep summary"), "{}", message(&object));
    let stored = stored(&place, "a");
    assert_eq!((&stored["partial"], &stored["stopped_because"]), (&true.into(), &"memory".into()));
    let broken = stored["invariants"]
        .as_array()
        .unwrap()
        .iter()
        .find(|invariant| invariant["holds"] == false);
    assert_eq!(broken, None);
    let requests = stored["requests"].as_u64().unwrap();
    assert!((100_000..50_000_000).contains(&requests), "{requests}");
    let rows = place.path().join("results/a/requests.parquet");
    assert!(rows.metadata().unwrap().len() > 1 << 18);
}

/// A device larger than the address space: reported like every other error, without an abort.
#[test]
fn a_limit_of_memory_ends_with_a_message() {
    let place = Place::new();
    let run = "ulimit -v 200000; exec ssdyno run sim:nvme-tlc --requests 10 --keep none \
               --set flash.blocks_per_plane=20000";
    let Some(output) = shell(&place, &[], run) else { return };
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("out of memory") && text.contains("ulimit -v"), "{text}");
    let Some(output) = shell(&place, &[], &format!("{run} --json")) else { return };
    assert_eq!(output.status.code(), Some(1));
    let object = one_object(&String::from_utf8(output.stdout).unwrap());
    assert!(message(&object).contains("out of memory"), "{}", message(&object));
    assert_eq!(object["error"].as_object().unwrap().len(), 6);
}

/// A file system of 300 KiB, in a name space of its own: no root needed where those are allowed.
#[test]
fn a_full_disk_for_results_keeps_the_figures_that_fit() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("tiny")).unwrap();
    let command = "unshare -rm sh -c 'mount -t tmpfs -o size=300k none tiny || exit 77; \
        ssdyno run null: --requests 100000 --workload randread --results tiny --name a --json; \
        echo; echo code $?; ls tiny/a'";
    let Some(output) = shell(&place, &["unshare", "mount"], command) else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    if output.status.code() == Some(77) || text.is_empty() {
        println!("skipped: no name spaces here");
        return;
    }
    let (json, rest) = text.split_once("\n\ncode").unwrap();
    let object = one_object(json);
    assert_eq!(object["requests"], 100_000);
    let message = message(&object);
    assert!(message.contains("rows of") && message.contains("free some space"), "{message}");
    // What had been written by then is kept.
    let lost = object["rows_lost"].as_u64().unwrap();
    assert!((1..=100_000).contains(&lost), "{lost}");
    assert!(rest.contains("result.json") && rest.contains("report.html"), "{rest}");
    assert!(!rest.contains("requests.room") && !rest.contains("tmp"), "{rest}");
}

#[test]
fn little_lockable_memory_and_forbidden_rings_are_told() {
    let place = Place::new();
    place.write("file", vec![7u8; 1 << 20]);
    let run = "ssdyno run ./file --workload randread --requests 500 --keep none --json";
    let limited = format!("ulimit -l 0; exec {run} --engine io_uring");
    let Some(output) = shell(&place, &["sh"], &limited) else { return };
    let object = one_object(&String::from_utf8(output.stdout).unwrap());
    match output.status.code() {
        // Root may lock what it likes.
        Some(0) => assert_eq!(object["requests"], 500),
        Some(2) => {
            assert!(message(&object).contains("ulimit -l") || message(&object).contains("io_uring"))
        }
        code => panic!("{code:?}: {object}"),
    }
    // Sandboxes forbid all of it, or what comes after the ring was made.
    for call in ["setup", "register", "enter"] {
        let forbid = format!("strace -f -qq -o /dev/null -e inject=io_uring_{call}:error=EPERM");
        let Some(output) = shell(&place, &["strace"], &format!("{forbid} true")) else { return };
        if !output.status.success() {
            println!("skipped: nothing can be traced here");
            return;
        }
        let Some(output) = shell(&place, &[], &format!("{forbid} {run}")) else { return };
        let object = one_object(&String::from_utf8(output.stdout).unwrap());
        assert_eq!(object["requests"], 500, "{call}");
        let said = object["notes"].to_string();
        assert!(said.contains("threads, because io_uring cannot be used (EPERM"), "{call}: {said}");
        let asked = format!("{forbid} {run} --engine io_uring");
        let Some(output) = shell(&place, &[], &asked) else { return };
        assert_eq!(output.status.code(), Some(2), "{call}");
        let object = one_object(&String::from_utf8(output.stdout).unwrap());
        assert!(message(&object).contains("EPERM: "), "{}", message(&object));
    }
}

/// A file system on a loop device, which is taken down whatever happens.
struct Mounted(std::path::PathBuf);

impl Mounted {
    /// `None` where that is not allowed.
    fn new(place: &Place) -> Option<Mounted> {
        let make = "truncate -s 64M fs.img && mkfs.ext4 -q fs.img && mkdir mnt && mount -o loop fs.img mnt";
        let output = shell(place, &["mkfs.ext4", "mount", "fsfreeze", "losetup"], make)?;
        if !output.status.success() {
            println!("skipped: no file system can be mounted here (root may)");
            return None;
        }
        Some(Mounted(place.path().join("mnt")))
    }

    fn freeze(&self, how: &str) {
        assert!(Command::new("fsfreeze").arg(how).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").arg("-u").arg(&self.0).stderr(Stdio::null()).status();
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Waits for a file, since the program itself cannot end before the kernel lets go of it.
fn wait_for(file: &Path) {
    let began = Instant::now();
    while !file.exists() {
        assert!(began.elapsed() < Duration::from_secs(10), "no {}", file.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_target_that_hangs_is_given_up_in_time() {
    let place = Place::new();
    let Some(mounted) = Mounted::new(&place) else { return };
    let write = ["mnt/t", "--write", "--size", "16MiB", "--timeout", "1s"];
    let run =
        ["run", "--workload", "randwrite", "--batch", "4", "--for", "60s", "--keep", "summary"];
    let run = started(&place, &[&run[..], &write[..]].concat(), "a");
    at_work(&run);
    mounted.freeze("-f");
    // Written while the target still hangs.
    wait_for(&place.path().join("results/a/result.json"));
    mounted.freeze("-u");
    let object = ended(run, 1);
    assert!(message(&object).contains("hangs"), "{}", message(&object));
    assert!(object["notes"].to_string().contains("had not completed when the run ended"));
    assert_eq!(stored(&place, "a")["partial"], true);

    let verify = ["verify", "mnt/t", "--write", "--overwrite", "--timeout", "1s", "--json"];
    let verify = [&verify[..], &["--writes", "100000000"]].concat();
    let mut command = place.command(&verify);
    let mut verify = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    at_work(&verify);
    mounted.freeze("-f");
    // It tells before it can end; thawed any sooner, the target would answer again.
    let mut told = vec![0];
    let mut output = verify.stdout.take().unwrap();
    output.read_exact(&mut told).unwrap();
    mounted.freeze("-u");
    output.read_to_end(&mut told).unwrap();
    assert_eq!(verify.wait().unwrap().code(), Some(1));
    let object = one_object(&String::from_utf8(told).unwrap());
    assert!(message(&object).contains("hangs"), "{}", message(&object));
}

/// The name is wrong, so nothing is made for the run.
#[test]
fn a_wrong_name_of_results_is_refused_before_a_target_is_made() {
    let place = Place::new();
    let run = ["run", "./new", "--size", "1MiB", "--write", "--for", "10ms", "--name", "na me"];
    assert!(place.fails(2, &run).contains("use letters, digits"));
    assert!(!place.path().join("new").exists());
}

/// A trace of which one request is due in the three seconds of the run: 1/3 requests per second.
#[test]
fn a_trace_lasts_its_duration() {
    let place = Place::new();
    place.write(
        "t.csv",
        "time_us,op,offset_bytes,length_bytes\n0,read,0,4096\n5000000,read,8192,4096\n",
    );
    let run = |length: &'static str| {
        place.json(&["run", "sim:delay-100us", "-w", "t.csv", "--for", length, "--keep", "none"])
    };
    let cut = run("3s");
    assert_eq!((&cut["requests"], &cut["simulated_seconds"]), (&1.into(), &3.0.into()));
    // The trace ends before the duration does.
    let whole = run("60s");
    assert!(whole["requests"] == 2 && whole["simulated_seconds"].as_f64().unwrap() < 6.0);
}
