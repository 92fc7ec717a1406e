//! Traces and job files through the program.

use serde_json::Value;

use crate::common::Place;

/// 1000 reads in 20 ms after a lead-in of 0.94 s, as MQSim writes them.
fn lead_in() -> String {
    let line = |at: u64| format!("{} 0 {} 8 1\n", 940_000_000 + at * 20_000, at * 8);
    (0..1000).map(line).collect()
}

fn run(place: &Place, more: &[&str]) -> Value {
    let load = ["run", "sim:config-a", "--workload", "a.trace", "--keep", "none"];
    place.json(&[&load[..], more].concat())
}

/// Issue: 0.94 s of lead-in counted as idle time, 6.4 k instead of 51 k IOPS.
#[test]
fn a_lead_in_is_neither_load_nor_energy() {
    let place = Place::new();
    place.write("a.trace", lead_in());
    let first = run(&place, &[]);
    let iops = first["iops"].as_f64().unwrap();
    assert!((48_000.0..51_000.0).contains(&iops), "{iops}");
    let notes = first["notes"].to_string();
    assert!(notes.contains("first replayed request: 0.94 s on the trace's clock"), "{notes}");
    let replay = first["replay"].as_str().unwrap();
    assert!(replay.contains("--trace-origin first"), "{replay}");
    let toml = first["configuration"]["workload_toml"].as_str().unwrap();
    assert!(toml.contains("trace_origin = \"first\""), "{toml}");
    let absolute = run(&place, &["--trace-origin", "absolute"]);
    let iops = absolute["iops"].as_f64().unwrap();
    assert!((1_000.0..1_100.0).contains(&iops), "{iops}");
    let joules = |run: &Value| run["energy_joules"]["total"].as_f64().unwrap();
    // Half of the time is the idle power of the whole run.
    assert!(joules(&absolute) > 5.0 * joules(&first), "{} {}", joules(&absolute), joules(&first));
    assert!(absolute["notes"].to_string().contains("trace's own clock"));
}

#[test]
fn devices_are_chosen_and_laid_side_by_side() {
    let place = Place::new();
    let line =
        |at: u64| format!("{},R,{},4096,{}\n", at % 2, at * 4096, 1_577_808_000_000_000 + at);
    place.write("a.trace", (0..100).map(line).collect::<String>());
    assert_eq!(run(&place, &["--trace-volume", "1"])["requests"], 50);
    let both = run(&place, &["--trace-device", "0", "--trace-device", "1", "--trace-slot", "1MiB"]);
    assert_eq!(both["requests"], 100);
    let notes = both["notes"].to_string();
    assert!(notes.contains("2 devices of the trace lie one after the other"), "{notes}");
    let text =
        place.fails(2, &["run", "sim:config-a", "--workload", "mixed", "--trace-slot", "1MiB"]);
    assert!(text.contains("needs a trace"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn job_files_replay_verify_and_go_through_the_page_cache() {
    let place = Place::new();
    std::fs::File::create(place.path().join("disk")).unwrap().set_len(1 << 20).unwrap();
    place.write(
        "io.log",
        "fio version 3 iolog\n0 /x add\n500 /x read 0 4096\n900 /x read 8192 4096\n",
    );
    place.write("replay.fio", "[a]\nfilename=disk\nread_iolog=io.log\n");
    let replayed = place.json(&["run", "--fio", "replay.fio", "--keep", "none", "--no-probes"]);
    assert_eq!(replayed["requests"], 2);
    let job = "[a]\nfilename=disk\nrw=read\nbs=4k\nsize=256k\nfadvise_hint=0\n";
    place.write("cached.fio", format!("{job}direct=0\n"));
    let cached = place.json(&["run", "--fio", "cached.fio", "--keep", "none", "--no-probes"]);
    assert_eq!((&cached["page_cache"], &cached["requests"]), (&Value::Bool(true), &64.into()));
    let warnings = cached["warnings"].to_string();
    assert!(warnings.contains("buffered I/O") && warnings.contains("memory"), "{warnings}");
    place.write("two.fio", format!("{job}direct=0\n[b]\nfilename=disk\nrw=read\ndirect=1\n"));
    let text = place.fails(2, &["run", "--fio", "two.fio", "--keep", "none"]);
    assert!(text.contains("must have the same"), "{text}");
    place.write("nameless.fio", "[a]\nrw=read\nsize=1m\n");
    let text = place.fails(2, &["run", "--fio", "nameless.fio", "--keep", "none"]);
    assert!(text.contains("names no file") && text.contains("sim:nvme-tlc"), "{text}");
    place.write(
        "command.fio",
        "[a]\nfilename=disk\nioengine=io_uring_cmd\ncmd_type=nvme\nrw=read\n",
    );
    let text = place.fails(2, &["run", "--fio", "command.fio", "--keep", "none"]);
    assert!(text.contains("/dev/ng0n1"), "{text}");
    place
        .write("check.fio", "[a]\nfilename=./new\nrw=randwrite\nbs=4k\nsize=256k\nverify=crc32c\n");
    let text = place.fails(2, &["run", "--fio", "check.fio", "--keep", "none"]);
    assert!(text.contains("check.fio:6") && text.contains("ssdyno verify"), "{text}");
    let checked = place.json(&["verify", "--fio", "check.fio", "--write", "--size", "1MiB"]);
    assert_eq!((&checked["faults"], &checked["writes"]), (&0.into(), &64.into()));
}
