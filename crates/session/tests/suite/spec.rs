//! A spec decides a run, and the spec in a result repeats it.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use proptest::prelude::*;
use ssdyno_figures::RunResult;
use ssdyno_session::{
    DriverSpec, Failure, HostSpec, Prepared, Queues, RunSpec, Runner, Unattended, resolve,
};

/// A device that is ready at once.
const SMALL: [&str; 2] = ["flash.blocks_per_plane=32", "flash.channels=2"];

fn small(target: &str, more: &[&str]) -> RunSpec {
    RunSpec {
        target: Some(target.to_owned()),
        workload: Some("mixed".to_owned()),
        requests: Some(2000),
        set: SMALL.iter().chain(more).map(|text| (*text).to_owned()).collect(),
        ..RunSpec::default()
    }
}

fn prepared(spec: &RunSpec) -> Prepared {
    resolve(spec, &mut Unattended).unwrap_or_else(|failure| panic!("{failure}"))
}

fn run(spec: &RunSpec) -> RunResult {
    let measured = prepared(spec).start().and_then(Runner::result).unwrap();
    assert!(measured.failure.is_none(), "{:?}", measured.failure);
    measured.result
}

fn refused(spec: &RunSpec) -> Failure {
    resolve(spec, &mut Unattended).map(|_| ()).unwrap_err()
}

/// Everything except wall-clock times.
fn figures(result: &RunResult) -> RunResult {
    RunResult {
        wall_seconds: 0.0,
        simulated_requests_per_wall_second: None,
        own_cost: None,
        ..result.clone()
    }
}

/// As a result that was written and read again has it.
fn stored(result: &RunResult) -> RunSpec {
    let text = ssdyno_report::to_json(result).unwrap();
    let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    RunSpec::read(file.path().to_str().unwrap()).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn the_spec_in_a_result_repeats_a_simulated_run_to_the_last_digit() {
    let nvme = RunSpec {
        host: HostSpec {
            driver: Some(DriverSpec::Nvme),
            queues: Some(Queues::RoundRobin),
            cores: Some(2),
            ..HostSpec::default()
        },
        seed: u64::MAX,
        ..small("sim:config-a", &["workload.depth=7"])
    };
    let network = RunSpec {
        host: HostSpec { network: Some("iscsi-25g".to_owned()), ..HostSpec::default() },
        ..small("sim:config-a", &["network.faults.drop=0.001"])
    };
    let until = RunSpec {
        until: "5%".parse().ok(),
        requests: None,
        ..small("sim:config-a", &["ftl.cleaning=fifo", "flash.read_time=25.0000003us"])
    };
    for spec in [small("config-a", &[]), nvme, network, until] {
        let first = run(&spec);
        let again = stored(&first);
        assert!(again.set.is_empty() && again.contents.device.is_some());
        assert_eq!(figures(&first), figures(&run(&again)), "{again:?}");
    }
}

/// The files that were named may change, or be gone.
#[test]
fn a_result_is_repeated_without_its_files() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let device = ssdyno_session::DEVICE_KINDS.find("config-a").unwrap().text;
    std::fs::write(file("d.toml"), device).unwrap();
    std::fs::write(file("w.toml"), "depth = 3\nread_percent = 40\n").unwrap();
    let spec = RunSpec { workload: Some(file("w.toml")), ..small(&file("d.toml"), &[]) };
    let first = run(&spec);
    std::fs::write(file("d.toml"), "").unwrap();
    std::fs::remove_file(file("w.toml")).unwrap();
    assert_eq!(figures(&first), figures(&run(&stored(&first))));
    // The names alone are not enough any more.
    assert!(refused(&spec).message.contains("w.toml") || refused(&spec).place.is_some());
}

/// A trace is not in the result; what it was is.
#[test]
fn a_trace_that_changed_is_not_taken_for_the_one_that_was_played() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("t.csv").to_str().unwrap().to_owned();
    let trace = "time_us,op,offset_bytes,length_bytes\n0,read,0,4096\n100,write,8192,4096\n";
    std::fs::write(&file, trace).unwrap();
    let spec = RunSpec { workload: Some(file.clone()), requests: None, ..small("config-a", &[]) };
    let first = run(&spec);
    assert_eq!(first.requests, 2);
    let again = stored(&first);
    assert_eq!(again.contents.files[0].path, file);
    assert_eq!(figures(&first), figures(&run(&again)));
    std::fs::write(&file, trace.replace("8192", "4096")).unwrap();
    let changed = refused(&again);
    assert!(changed.message.contains("has changed since"), "{changed}");
    assert_eq!(changed.key.as_deref(), Some("contents.files"));
    std::fs::remove_file(&file).unwrap();
    assert!(refused(&again).message.contains("cannot read"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_real_run_is_repeated_with_the_same_spec() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("target");
    std::fs::write(&path, vec![0x5A; 1 << 20]).unwrap();
    let spec = RunSpec {
        target: Some(path.to_str().unwrap().to_owned()),
        requests: Some(300),
        set: vec!["workload.depth=3".to_owned()],
        ..RunSpec::default()
    };
    let first = run(&spec);
    let second = run(&stored(&first));
    assert_eq!(first.spec, second.spec);
    let again = stored(&second);
    assert_eq!(again.real.method, Some(ssdyno_bench::Method::Default));
    assert_eq!((again.workload.as_deref(), again.seed), (Some("randread"), 1));
    assert_eq!(again.contents.workload.unwrap()["depth"].as_integer(), Some(3));
}

#[test]
fn what_is_wrong_is_told_with_its_key_and_a_remedy() {
    let refused = |toml: &str| {
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        std::fs::write(file.path(), toml).unwrap();
        let failure = RunSpec::read(file.path().to_str().unwrap())
            .and_then(|spec| resolve(&spec, &mut Unattended).map(|_| ()))
            .unwrap_err();
        assert!(failure.help.as_ref().is_some_and(|help| !help.is_empty()), "{failure}");
        (failure.key.clone().unwrap_or_default(), failure.message)
    };
    for (toml, key) in [
        ("version = 2", "version"),
        ("sede = 1", "sede"),
        ("requests = 0", "requests"),
        ("requests = 5\nfor = \"1s\"", "requests"),
        ("for = \"0s\"", "for"),
        ("until = \"99%\"", "until"),
        ("fio = \"a.fio\"\nworkload = \"mixed\"", "workload"),
        ("fio = \"a.fio\"\n[trace]\ndepth = 2", "trace.depth"),
        ("set = [\"flash.chanels=4\"]", "flash.chanels"),
        ("[host]\ncores = 0", "host.cores"),
        ("[host]\nclasses = [4]", "host.classes"),
        ("[host]\npower_state = 32", "host.power_state"),
        ("[host]\nnamespaces = [0]", "host.namespaces"),
        ("[host]\ntime_limit = \"2h\"", "host.time_limit"),
        ("[host]\nretries = 1001", "host.retries"),
        ("[host]\nring = \"block\"", "host.ring"),
        ("[host]\nring = \"block=16\"", "host.ring"),
        ("[host]\ndriver = \"ring\"", "host.driver"),
        ("[host]\ndriver = \"direct\"\ncores = 2", "host.cores"),
        ("target = \"sim:zc706-ring\"\n[host]\nqueues = \"single\"", "host.queues"),
        ("[trace]\ndepth = 4", "trace.depth"),
        ("[trace]\ntiming = \"slow\"", "trace.timing"),
        ("[trace]\nslot = \"0B\"", "trace.slot"),
        ("[real]\njobs = 2", "real.jobs"),
        ("target = \"null:\"\n[real]\njobs = 0", "real.jobs"),
        ("target = \"null:\"\n[real]\nbatch = 0", "real.batch"),
        ("target = \"null:\"\n[real]\nbuffered = true\niopoll = true", "real.iopoll"),
        ("target = \"null:\"\n[real]\ntune = true\nwait = \"spin\"", "real.tune"),
        ("target = \"null:\"\n[host]\ncores = 2", "host.cores"),
        ("target = \"null:\"\nset = [\"flash.channels=4\"]", "flash.channels"),
        ("[write]\noverwrite = true", "write.overwrite"),
        ("[contents.device]\nflash = 3", "flash"),
        ("[contents.workload]\ndepht = 3", "depht"),
    ] {
        let (found, message) = refused(toml);
        assert_eq!(found, key, "{toml}: {message}");
    }
}

#[test]
fn a_file_that_is_no_spec_is_told_with_its_place() {
    let read = |name: &str, text: &str| {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(name);
        std::fs::write(&path, text).unwrap();
        RunSpec::read(path.to_str().unwrap()).unwrap_err()
    };
    assert_eq!(read("a.toml", "seed = 1\nsede = 2\n").body().line, Some(2));
    let failure = read("a.json", "{\n \"seed\": 1,,\n}");
    assert_eq!((failure.body().line, failure.body().column), (Some(2), Some(12)), "{failure}");
    let failure = read("a.json", "{\"host\": {\"cors\": 3}}");
    assert_eq!(failure.key.as_deref(), Some("host.cors"));
    assert!(failure.file.is_some_and(|file| file.ends_with("a.json")));
    assert!(read("result.json", "{\"schema_version\": 1}").message.contains("has no spec"));
    assert!(read("a.json", "[1]").message.contains("object"));
    assert!(RunSpec::read("/nowhere.json").unwrap_err().message.contains("no such file"));
}

#[test]
fn a_spec_is_read_as_it_was_written() {
    let spec = RunSpec {
        duration: None,
        trace: toml::from_str("timing = \"scaled=0.3\"\nids = \"hash\"\nslot = \"1GiB\"").unwrap(),
        real: toml::from_str("batch = \"all\"\nsubmit = 2\nengine = \"io_uring\"").unwrap(),
        host: toml::from_str("ring = \"block=16\"\nqueues = \"per-core-pool\"").unwrap(),
        ..small("sim:config-a", &[])
    };
    let place = tempfile::tempdir().unwrap();
    for (name, text) in
        [("a.toml", spec.to_toml()), ("a.json", serde_json::to_string(&spec).unwrap())]
    {
        let path = place.path().join(name);
        std::fs::write(&path, text).unwrap();
        assert_eq!(RunSpec::read(path.to_str().unwrap()).unwrap(), spec, "{name}");
    }
}

proptest! {
    /// Whatever is in a spec: a run that can start, or a message.
    #[test]
    fn any_text_ends_in_a_spec_or_in_a_message(
        text in "((seed|for|host|real|set|contents|[a-z]{1,4})( = |\\.)[\\[\\]{}\"a-z0-9.=]{0,8}\n){0,5}",
    ) {
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        if let Err(failure) = RunSpec::read(file.path().to_str().unwrap()) {
            prop_assert!(!failure.message.is_empty() && failure.help.is_some());
        }
    }
}
