//! Several workers as processes of their own, and the run on them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::Place;

/// A worker that is killed with the test.
pub(crate) struct Worker {
    process: Child,
    pub(crate) address: String,
}

impl Worker {
    pub(crate) fn start(place: &Place) -> Worker {
        Worker::listening(place, "worker")
    }

    /// A `worker` or a `prober`.
    pub(crate) fn listening(place: &Place, verb: &str) -> Worker {
        let mut command = place.command(&[verb, "--listen", "127.0.0.1:0"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening at ").unwrap().to_owned();
        Worker { process, address }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn two_workers_give_one_result() {
    let place = Place::new();
    let workers = [Worker::start(&place), Worker::start(&place)];
    let hosts = workers.each_ref().map(|worker| worker.address.as_str()).join(",");
    let args =
        ["run", "sim:delay-100us", "--workload", "randread", "--for", "100ms", "--hosts", &hosts];
    let result = place.json(&[&args[..], &["--name", "both"]].concat());
    assert_eq!(result["hosts"].as_array().unwrap().len(), 2);
    let of = |at: usize| result["hosts"][at]["requests"].as_u64().unwrap();
    assert!(of(0) > 0 && result["requests"] == of(0) + of(1));
    let around = &result["hosts"][1]["confidence"]["iops"];
    assert_eq!(around["estimate"], result["hosts"][1]["iops"]);
    // Each has its own machine; the run has the program and the command.
    let of_host = |at: usize| &result["hosts"][at]["provenance"];
    assert!(of_host(1)["machine"]["architecture"].is_string(), "{}", of_host(1));
    assert_eq!(of_host(0)["command"], serde_json::Value::Null);
    let of_run = &result["provenance"];
    assert!(of_run["command"].as_str().unwrap().contains("--hosts") && of_run["machine"].is_null());
    assert_eq!(result["window"]["outside"].as_array().unwrap().len(), 2);
    assert!(result["replay"].as_str().unwrap().contains("--hosts"), "{}", result["replay"]);
    let stored = std::fs::read_to_string(place.path().join("results/both/result.json")).unwrap();
    assert!(stored.contains("clock_uncertainty_ns"));
    let page = std::fs::read_to_string(place.path().join("results/both/report.html")).unwrap();
    assert!(page.contains(&workers[1].address));
    let text = place.ok(&[&args[..], &["--keep", "none"]].concat());
    assert!(text.contains("Host ") && text.contains(&workers[0].address), "{text}");
    // Its spec names no hosts, and a run on this machine alone would be another run.
    for of_result in ["results/both/result.json", "results/both"] {
        let again = ["run", "--spec", of_result];
        let text = place.fails(2, &again);
        assert!(text.contains("a run on 2 hosts") && text.contains(&workers[1].address), "{text}");
        assert!(text.contains("add `--hosts`"), "{text}");
        let with_hosts = ["--hosts", &hosts, "--keep", "none"];
        let result = place.json(&[&again[..], &with_hosts].concat());
        assert_eq!(result["hosts"].as_array().unwrap().len(), 2);
    }
}

/// A directory for each step, one table, and the steps that can be carried out although one cannot.
#[test]
fn a_plan_leaves_all_that_its_steps_measured() {
    let place = Place::new();
    let workers = [Worker::start(&place), Worker::start(&place)];
    let [a, b] = workers.each_ref().map(|worker| &worker.address);
    let plan = format!(
        "[load]\ntarget = \"sim:delay-100us\"\nworkload = \"randread\"\nfor = \"50ms\"\n\
         [[clients]]\nname = \"a\"\nhost = \"{a}\"\n[[clients]]\nname = \"b\"\nhost = \"{b}\"\n\
         [[steps]]\nname = \"A, alone\"\nclients = [\"a\"]\n\
         [[steps]]\nname = \"wrong\"\nchange = {{ workload = \"nosuch\" }}\n\
         [[steps]]\nname = \"rates\"\nrates = [2000, 4000]\n"
    );
    std::fs::write(place.path().join("plan.toml"), plan).unwrap();
    let run = ["controller", "run", "plan.toml", "--name", "planned", "--no-probes"];
    let output = place.command(&[&run[..], &["--json"]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "a key of a step is wrong");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let steps = result["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 4);
    assert!(steps[1]["error"]["message"].as_str().unwrap().contains("nosuch"), "{}", steps[1]);
    let planned = place.path().join("results/planned");
    for (step, directory) in [(0, "001-a--alone"), (2, "003-rates"), (3, "004-rates")] {
        assert_eq!(steps[step]["directory"], directory);
        let stored = std::fs::read(planned.join(directory).join("result.json")).unwrap();
        let stored: serde_json::Value = serde_json::from_slice(&stored).unwrap();
        assert_eq!(stored["requests"], steps[step]["figures"]["requests"]);
        assert_eq!(stored["hosts"][0]["name"], "a");
    }
    let csv = std::fs::read_to_string(planned.join("steps.csv")).unwrap();
    assert!(csv.contains("\n1,\"A, alone\",1,all,,false,"), "{csv}");
    let page = std::fs::read_to_string(planned.join("report.html")).unwrap();
    assert!(page.contains("003-rates/report.html") && page.contains("nosuch"));
    // One that is not there: nothing is begun, and no directory is left.
    drop(workers);
    let absent = ["controller", "run", "plan.toml", "--name", "absent"];
    assert_eq!(place.command(&absent).output().unwrap().status.code(), Some(1));
    assert!(!place.path().join("results/absent").exists());
}

/// SIGKILL, and a new worker at its address: the run is not taken up there, and the host has its name in the result.
#[test]
fn a_worker_that_is_killed_and_started_anew_is_not_counted_twice() {
    let place = Place::new();
    let mut workers = [Worker::start(&place), Worker::start(&place)];
    let hosts = workers.each_ref().map(|worker| worker.address.as_str()).join(",");
    let args = ["run", "null:", "--for", "4s", "--hosts", &hosts, "--json", "--keep", "none"];
    let run = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    workers[1].process.kill().unwrap();
    workers[1].process.wait().unwrap();
    let again = ["worker", "--listen", &workers[1].address];
    let began = Instant::now();
    let again = loop {
        let started = place.command(&again).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut started = started.unwrap();
        let mut line = String::new();
        BufReader::new(started.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if !line.is_empty() || began.elapsed() > Duration::from_secs(20) {
            break started;
        }
        started.wait().unwrap();
    };
    workers[1].process = again;
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["partial"], &result["hosts"][0]["partial"]), (&true.into(), &false.into()));
    assert!(result["hosts"][1]["lost"].as_str().unwrap().contains(&workers[1].address));
    assert_eq!(result["requests"], result["hosts"][0]["requests"]);
}

#[test]
fn bad_addresses_and_absent_workers_are_named() {
    let place = Place::new();
    let refused =
        |code, hosts| place.fails(code, &["run", "sim:delay-100us", &format!("--hosts={hosts}")]);
    assert!(refused(2, "-oProxyCommand=x").contains("HOST:PORT"));
    let text = refused(1, "127.0.0.1:1");
    assert!(text.contains("127.0.0.1:1") && text.contains("start a worker"), "{text}");
    assert!(!place.path().join("results").exists(), "nothing is left of a run that never was");
    let text = place.fails(2, &["worker", "--listen", "0.0.0.0:0", "--identity", "none"]);
    assert!(text.contains("with TLS") && text.contains("enrol the worker first"), "{text}");
}

/// What takes the place of ssh: it runs the command here, or fails as ssh does.
fn fake_ssh(place: &Place, body: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = place.path().join("fake-ssh");
    // Everything before `--` is for ssh; then come the host and the command.
    let head = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nhost=$2; command=$3\n";
    std::fs::write(&path, format!("{head}{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn over_ssh<'a>(ssh: &'a str, program: &'a str, hosts: &'a str) -> Vec<&'a str> {
    vec!["run", "null:", "--hosts", hosts, "--ssh", ssh, "--remote-program", program]
}

#[test]
fn ssh_starts_workers_that_end_with_the_run() {
    let place = Place::new();
    let ssh = fake_ssh(
        &place,
        "echo \"motd of $host\" >&2; echo $$ >> pids; exec sh -c \"exec $command\"",
    );
    let program = env!("CARGO_BIN_EXE_ssdyno");
    let mut args = over_ssh(&ssh, program, "one,admin@two");
    args.extend(["--for", "300ms", "--name", "both"]);
    let result = place.json(&args);
    let names: Vec<&str> = result["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| host["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["one", "admin@two"]);
    assert!(result["hosts"][1]["requests"].as_u64().unwrap() > 0);
    let replay = result["replay"].as_str().unwrap();
    assert!(
        replay.contains("--hosts one,admin@two") && replay.contains("--remote-program"),
        "{replay}"
    );
    // Nothing is left running.
    let pids = std::fs::read_to_string(place.path().join("pids")).unwrap();
    let began = Instant::now();
    let lives = |pid: &str| std::path::Path::new("/proc").join(pid).join("exe").exists();
    while pids.lines().any(lives) {
        assert!(began.elapsed() < Duration::from_secs(5), "a worker is left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_host_that_ssh_does_not_reach_says_why() {
    let place = Place::new();
    let refused = fake_ssh(&place, "echo 'Permission denied (publickey).' >&2; exit 255");
    let said = place.fails(1, &over_ssh(&refused, "ssdyno", "far"));
    assert!(said.contains("ssh does not reach far: Permission denied (publickey)."), "{said}");
    assert!(said.contains("ssh -o BatchMode=yes far true"), "{said}");

    let missing = fake_ssh(&place, "exec sh -c \"$command\"");
    let said = place.fails(1, &over_ssh(&missing, "no-such-program", "near"));
    assert!(said.contains("near has no `no-such-program`") && said.contains("scp"), "{said}");

    // A program that is not a worker, and talks.
    let said = place.fails(1, &over_ssh(&missing, "echo", "near"));
    assert!(said.contains("near"), "{said}");

    let said = place.fails(1, &over_ssh("/no/such/ssh", "ssdyno", "near"));
    assert!(said.contains("cannot start `/no/such/ssh`"), "{said}");
    assert!(!place.path().join("results").exists(), "nothing half started");
}
