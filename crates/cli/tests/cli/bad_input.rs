//! Bad input gets a message with its place, and the exit code that the help promises.

use crate::common::{Place, SMALL, one_object};

/// A complete device file, as `show` prints it.
fn device(place: &Place) -> String {
    place.ok(&["show", "sim:config-a", "--set", "flash.blocks_per_plane=32"])
}

/// Runs `file` as a device and as JSON; both must name `line` and say `words`.
fn refused(place: &Place, args: &[&str], file: &str, line: usize, words: &[&str]) {
    let text = place.fails(2, args);
    assert!(text.contains(&format!("{file}:{line}:")), "{file}:{line} in {text}");
    let output = place.call(&[args, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stderr.is_empty());
    let error = &one_object(&String::from_utf8(output.stdout).unwrap())["error"];
    assert_eq!((error["file"].as_str(), error["line"].as_u64()), (Some(file), Some(line as u64)));
    for word in words {
        let told = format!("{} {}", error["message"], error["help"]);
        assert!(told.contains(word), "{word} in {told}");
    }
}

fn line_of(text: &str, start: &str) -> usize {
    text.lines().position(|line| line.starts_with(start)).unwrap() + 1
}

fn changed(text: &str, key: &str, line: &str) -> String {
    let at = line_of(text, key) - 1;
    text.lines()
        .enumerate()
        .map(|(n, old)| format!("{}\n", if n == at { line } else { old }))
        .collect()
}

#[test]
fn device_files() {
    let place = Place::new();
    let good = device(&place);
    let cases = [
        ("channels =", "channels = ", vec!["not valid TOML"]),
        ("channels =", "chanels = 8", vec!["flash.chanels", "did you mean `flash.channels`"]),
        ("read_time =", "read_time = \"25uz\"", vec!["flash.read_time", "25us"]),
        ("page_size =", "page_size = 4096", vec!["flash.page_size", "4KiB"]),
        ("page_size =", "page_size = \"0B\"", vec!["flash.page_size", "4KiB"]),
        ("channels =", "channels = 0", vec!["flash.channels", "1 to 1024"]),
        ("channels =", "channels = -1", vec!["flash.channels"]),
        ("over_provisioning =", "over_provisioning = 0.0001", vec!["ftl.over_provisioning"]),
        ("over_provisioning =", "over_provisioning = nan", vec!["ftl.over_provisioning"]),
        ("name =", "name = \"pages\"", vec!["ftl.name", "dftl"]),
    ];
    for (key, line, words) in cases {
        place.write("d.toml", changed(&good, key, line));
        let args = ["run", "sim:d.toml", "--keep", "none", "--requests", "10"];
        refused(&place, &args, "d.toml", line_of(&good, key), &words);
    }
    place.write("d.toml", changed(&good, "channels =", ""));
    let args = ["run", "d.toml"];
    refused(&place, &args, "d.toml", line_of(&good, "[flash]"), &["flash.channels", "missing"]);
    // Not of the table that comes first.
    let (before, rest) = good.split_once("[host_link]").unwrap();
    let (_, after) = rest.split_once("\n[").unwrap();
    place.write("d.toml", format!("{before}[{after}"));
    let told = place.fails(2, &args);
    assert!(told.contains("the key `host_link` is missing"), "{told}");
    assert!(!place.path().join("results").exists(), "nothing ran, nothing may be left");
}

#[test]
fn workload_files() {
    let place = Place::new();
    let cases = [
        ("depth = 0", vec!["depth", "1 or more"]),
        ("detph = 3", vec!["did you mean `depth`"]),
        ("block_size = \"4kb\"", vec!["block_size", "4KiB"]),
        ("block_size = \"1B\"", vec!["block_size", "multiple"]),
        ("requests = 0", vec!["requests"]),
        ("address.theta = inf\naddress.pattern = \"zipf\"", vec!["address.theta"]),
    ];
    for (line, words) in cases {
        place.write("w.toml", format!("# a workload\n{line}\n"));
        let args = ["run", "sim:config-a", "--workload", "w.toml", "--keep", "none"];
        refused(&place, &args, "w.toml", 2, &words);
    }
}

#[test]
fn settings() {
    let place = Place::new();
    for (setting, column, words) in [
        ("flash.chanels=4", 1, "did you mean `flash.channels`?"),
        ("depth=4", 1, "did you mean `workload.depth`?"),
        ("flash.channels=0", 16, "from 1 to 1024"),
        ("flash.read_time=25", 17, "wrong value"),
        ("workload.depth=0", 16, "1 or more"),
        ("ftl.cleaning=fifoo", 14, "fifo"),
    ] {
        let text = place.fails(2, &["run", "sim:config-a", "--keep", "none", "--set", setting]);
        assert!(text.contains(&format!("--set:1:{column}\n")), "{text}");
        assert!(text.contains(words), "{words} in {text}");
    }
    assert!(place.fails(2, &["run", "--set", "nothing"]).contains("KEY=VALUE"));
}

#[test]
fn names_and_files() {
    let place = Place::new();
    place.write("binary.toml", b"a = 1\nb = \"\xff\"\n");
    std::fs::create_dir(place.path().join("directory.toml")).unwrap();
    std::fs::create_dir(place.path().join("empty")).unwrap();
    place.write("network.toml", "[link]\nrate = 5\n");
    place.write("broken.json", "{\n  \"target\": 3\n}\n");
    for (args, words) in [
        (vec!["run", "sim:nvme-tcl"], "did you mean `sim:nvme-tlc`?"),
        (vec!["run", "/dev/nvme0n1"], "nvme0n1"),
        (vec!["run", "--workload", "randred"], "did you mean `randread`?"),
        (vec!["run", "--workload", "none/such.trace"], "no such file"),
        (vec!["run", "none.toml"], "no such file"),
        (vec!["run", "directory.toml"], "it is a directory"),
        (vec!["run", "sim:delay-10us", "--workload", "empty", "--keep", "none"], "directory"),
        (vec!["run", "binary.toml"], "binary.toml:2:6"),
        (vec!["show", "nothing"], "no device, host, network or workload `nothing`"),
        (vec!["show", "serve"], "did you mean `server`?"),
        (vec!["run", "--network", "network.toml"], "network.toml:2:"),
        (
            vec!["run", "--set", "host_link.kind=sata"],
            "it does not apply to this kind: expected `rate`",
        ),
        (vec!["run", "--set", "flash.channels=-1"], "expected a whole number"),
        (vec!["run", "sim:delay-10us", "--set", "workload.read_percent=150"], "is more than 100"),
        (vec!["compare", "sim:delay-10us", "sim:delay-100us", "--sort", "cost"], "use one of iops"),
        (vec!["compare", "sim:delay-10us", "sim:delay-100us", "--top", "0"], "use at least 1"),
        (vec!["sweep", "--vary", "workload.depth=1,2", "--top", "0"], "use at least 1"),
        (vec!["papers", "S3", "--hosts", "--keep", "none"], "is not measured over a network"),
        (vec!["run", "sim:zc706-ring", "--queues", "single"], "is for the NVMe driver"),
        (vec!["run", "sim:zc706-ring", "--stack", "scsi"], "does not accept SCSI commands"),
        (vec!["run", "sim:zc706-ring", "--namespaces", "1"], "is for the NVMe driver"),
        (vec!["run", "sim:p3600", "--driver", "direct", "--namespaces", "1"], "needs a driver"),
        (vec!["run", "sim:p3600", "--namespaces", "2"], "no namespace 2; it has: 1"),
        (
            vec!["run", "sim:p3600", "--namespaces", "1,1", "--set", "workload.threads=3"],
            "2 namespaces for 3 threads",
        ),
        (vec!["run", "sim:p3600", "--power-state", "1"], "no power state 1: the last is 0"),
        (vec!["run", "sim:zc706-ring", "--power-state", "0"], "is for the NVMe driver"),
        (vec!["run", "sim:zc706-ring", "--ring", "block=64"], "change it in `--ring`"),
        (
            vec!["run", "sim:zc706-ring", "--cores", "65"],
            "`cpu.cores` of the host: 65 cores are requested; the host has 16",
        ),
        (vec!["run", "sim:p3600", "--classes", "1,3"], "add `--queues weighted`"),
        (vec!["show", "sim:p3600", "--id-ctrl", "no.txt"], "cannot read no.txt"),
        (vec!["show", "sim:zc706-ring", "--id-ctrl", "no.txt"], "has no NVMe controller"),
        (vec!["compare", "empty", "empty"], "holds no result.json"),
        (vec!["compare", "broken.json", "broken.json"], "broken.json:2:"),
        (vec!["papers", "S9"], "S0, S0/arithmetic"),
        (vec!["papers", "--trace", "x=y"], "iozone"),
        (vec!["run", "--requests", "0"], "--requests"),
        (vec!["run", "--requests", "many"], "--requests"),
        (vec!["run", "--for", "10"], "--for"),
        (vec!["run", "--interval", "10"], "--interval"),
        #[cfg(target_os = "linux")]
        (vec!["run", "./small", "--size", "100B"], "less than one block"),
        (vec!["run", "--for", "1s", "--requests", "1"], "cannot be used with"),
        (vec!["run", "--timing", "fast"], "needs a trace"),
        (vec!["run", "--seed", "-1"], "--seed"),
        (vec!["runn"], "run"),
        (vec![], "Usage"),
    ] {
        let text = place.fails(2, &args);
        assert!(text.contains(words), "{words} in {text}");
        let output = place.call(&[&args[..], &["--json"]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let object = one_object(&String::from_utf8(output.stdout).unwrap());
        assert!(object["error"]["message"].is_string(), "{object}");
    }
}

/// A static block that never fills is reported as such, and not as an error of the simulation.
#[test]
fn a_stalled_driver_is_told() {
    let place = Place::new();
    for (depth, requests, left) in
        [("workload.depth=4", "100", "4"), ("workload.depth=16", "90", "2")]
    {
        let args = ["run", "sim:zc706-ring", "--workload", "randread", "--keep", "none"];
        let more = ["--set", depth, "--requests", requests, "--ring", "block=8"];
        let text = place.fails(1, &[&args[..], &more].concat());
        assert!(text.contains(&format!("is stalled: the last {left} requests")), "{text}");
        assert!(text.contains("partial-after") && !text.contains("report this"), "{text}");
    }
}

#[test]
fn traces() {
    let place = Place::new();
    place.write("no.trace", "hello\n");
    place.write("bad.trace", "0.0 0 0 8 1\n0.5 0 16 8 1\n0.6 0 garbled\n");
    place.write("far.trace", "0.0 0 0 8 1\n0.5 0 99999999999 8 1\n");
    let args = |name| ["run", "sim:config-a", "--workload", name, "--name", "t"];
    assert!(place.fails(2, &args("no.trace")).contains("no.trace:1"));
    let text = place.fails(1, &args("bad.trace"));
    assert!(text.contains("bad.trace:3") && text.contains("0.6 0 garbled"), "{text}");
    let stored = std::fs::read_to_string(place.path().join("results/t/result.json")).unwrap();
    let stored = one_object(&stored);
    assert_eq!((&stored["partial"], &stored["requests"]), (&true.into(), &2.into()));
    assert!(place.fails(1, &args("far.trace")).contains("far.trace:2"));
    let wrapped = place.json(&[&args("far.trace")[..], &["--beyond-end", "wrap"]].concat());
    assert_eq!(wrapped["requests"], 2);
    let args = [&args("bad.trace")[..], &["--set", "workload.depth=2"]].concat();
    assert!(place.fails(2, &args).contains("a trace has no key"));
}

/// Data of only ones or zeroes does not come from a controller.
#[test]
fn structures_that_nobody_filled() {
    let place = Place::new();
    for (name, byte) in [("ones.bin", 0xff), ("zeroes.bin", 0)] {
        place.write(name, [byte; 4096]);
        let text = place.fails(2, &["show", "sim:p3600", "--id-ctrl", name]);
        assert!(
            text.contains(&format!("cannot use {name}: this is not the data of a controller")),
            "{text}"
        );
        assert!(text.contains("`nvme list` that the drive responds"), "{text}");
    }
}

#[test]
fn places_that_cannot_be_written() {
    let place = Place::new();
    place.write("file", "");
    let run = [&["run", "sim:config-a", "--results", "file"], &SMALL[..]].concat();
    assert!(place.fails(3, &run).contains("cannot write file"));
    assert!(place.fails(3, &["man", "file"]).contains("cannot write file"));
    let full = std::path::Path::new("/dev/full");
    if !full.exists() {
        println!("skipped: this system has no device that is always full");
        return;
    }
    let run = [&["run", "sim:config-a", "--keep", "none"], &SMALL[..]].concat();
    let full = std::fs::OpenOptions::new().write(true).open(full).unwrap();
    let output = place.command(&run).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_what_was_measured() {
    use std::process::Stdio;
    use std::thread::sleep;
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process};

    // Twice, as timeout(1) sends it: to the program, and at once to its group.
    let (int, term) = (Signal::INT, Signal::TERM);
    for (signal, times) in [(int, 1), (term, 1), (int, 2), (term, 3)] {
        let place = Place::new();
        // Small: what is interrupted is the load, not the preparation of the device.
        let small = ["--set", "flash.blocks_per_plane=32", "--set", "flash.channels=2"];
        let args = ["run", "sim:config-a", "--for", "100000s", "--keep", "summary", "--name", "i"];
        let args = [&args[..], &small].concat();
        let mut command = place.command(&args);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The directory is made after the handler is set.
        for _ in 0..500 {
            if place.path().join("results/i").exists() {
                break;
            }
            sleep(Duration::from_millis(10));
        }
        sleep(Duration::from_millis(300));
        for _ in 0..times {
            let pid = Pid::from_child(&child);
            kill_process(pid, signal).unwrap();
            sleep(Duration::from_millis(1));
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{signal:?}");
        let stored = std::fs::read_to_string(place.path().join("results/i/result.json")).unwrap();
        let stored = one_object(&stored);
        assert_eq!(stored["partial"], true);
        assert!(stored["requests"].as_u64().unwrap() > 0);
    }
}

/// One that waits for something else can be ended, and says so with `--json`, too.
#[cfg(unix)]
#[test]
fn a_second_interrupt_ends_at_once_with_one_object() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::time::{Duration, Instant};

    let place = Place::new();
    let mkfifo = std::process::Command::new("mkfifo").arg(place.path().join("never.toml")).status();
    assert!(mkfifo.unwrap().success());
    // Nobody writes: it waits in open(2).
    let mut command = place.command(&["show", "never.toml", "--json"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(30), "it hangs");
        std::thread::sleep(Duration::from_millis(300));
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let object = one_object(&String::from_utf8(output.stdout).unwrap());
    assert!(object["error"]["message"].as_str().unwrap().contains("interrupted twice"), "{object}");
}

/// With a side that cannot start there is nothing to compare: the other, which would take an hour, is
/// given up.
#[test]
fn a_side_that_cannot_start_ends_the_comparison() {
    let place = Place::new();
    let bad = changed(&device(&place), "over_provisioning =", "over_provisioning = 0.0001");
    place.write("bad.toml", bad);
    let args = ["compare", "sim:config-a", "bad.toml", "--requests", "1G"];
    let mut child = place.command(&args).stderr(std::process::Stdio::piped()).spawn().unwrap();
    for _ in 0..1200 {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // Without effect on one that has ended.
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("bad.toml") && errors.contains("ftl.over_provisioning"), "{errors}");
    assert!(!place.path().join("results").exists(), "nothing is left behind");
}

/// What a terminal shows, and the JSON object: the message, and what to do.
fn told(place: &Place, args: &[&str], message: &str, help: &str) {
    let text = place.fails(2, args);
    let words = text.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ");
    assert!(words.contains(message) && words.contains(help), "{args:?}: {text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{args:?}: {text:?}");
    let output = place.call(&[args, &["--json"]].concat());
    let object = one_object(&String::from_utf8(output.stdout).unwrap());
    let error = |key: &str| object["error"][key].as_str().unwrap_or_default().to_owned();
    assert!(error("message").contains(message) && error("help").contains(help), "{object}");
}

#[test]
fn wrong_command_lines_are_told_what_to_do() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("d")).unwrap();
    place.write("empty.toml", "");
    place.write("comment.toml", "# nothing\n");
    place.write("empty.json", "\n");
    place.write("cut.json", "{\"a\":\n");
    let negative = "no value may be negative";
    let complete = "`ssdyno show mixed` print complete files";
    let result = "name a result.json";
    for (args, message, help) in [
        (&["run", "sim:config-a", "--requests", "-5"][..], "`-5` is below zero", negative),
        (&["run", "sim:config-a", "--for", "-3s"], "`-3s` is below zero", negative),
        (&["run", "sim:config-a", "--until", "-1%"], "`-1%` is below zero", negative),
        (&["pts", "sim:config-a", "--round", "-1s"], "`-1s` is below zero", negative),
        (
            &["run", "sim:config-a", "--seed", "-1"],
            "a whole number from 0 to 18446744073709551615",
            "",
        ),
        (&["run", "."], ". is a directory", "name a device or a file in it"),
        (&["run", "d"], "d is a directory", "name a device or a file in it"),
        (&["show", "empty.toml"], "empty.toml contains no file", complete),
        (&["show", "comment.toml"], "comment.toml contains no file", complete),
        (&["compare", "empty.json", "cut.json"], "empty.json is empty", result),
        (&["compare", "cut.json", "empty.json"], "cut.json:2:1: not a result: EOF while", result),
        (
            &["run", "sim:config-a", "--set", "ftl.hot_cold=classes"],
            "0 entries",
            "--set 'ftl.page.classes=[{ space = 0.2, writes = 0.8 }",
        ),
    ] {
        told(&place, args, message, help);
    }
}

/// Colours, bells and titles that a file or an argument asks for stay out of the terminal.
#[test]
fn messages_give_a_terminal_nothing_to_obey() {
    let place = Place::new();
    place.write("e.toml", "# \u{1b}[31mred\u{7}\n[flash]\n");
    place.write("b.json", b"{ \x1b]0;title\x07 \xff }");
    told(&place, &["run", "e.toml"], "e.toml is not valid TOML", "toml.io");
    told(&place, &["compare", "b.json", "b.json"], "it is not UTF-8 text", "save it as UTF-8");
    let text = place.fails(2, &["run", "sim:\u{1b}[31mX"]);
    assert!(text.contains("there is no target `sim:?[31mX`"), "{text:?}");
}

#[cfg(unix)]
#[test]
fn arguments_that_are_no_text_are_named() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let mut command = place.command(&["run"]);
    let output = command.arg(std::ffi::OsStr::from_bytes(b"./dri\xffve")).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("the argument `./dri\u{fffd}ve` is not UTF-8"), "{text}");
    assert!(text.contains("ln -s"), "{text}");
}

#[test]
fn names_of_solutions() {
    let place = Place::new();
    let capacity = ["profile", "sim:delay-10us", "--method", "capacity", "--solution"];
    for name in ["", " ", "a b", "a=b", "a\nb", "\u{fc}"] {
        let text = place.fails(2, &[&capacity[..], &[name]].concat());
        assert!(
            text.contains("is not a valid name") && text.contains("isolated-bandwidth"),
            "{text}"
        );
    }
    let ratios = ["profile", "sim:delay-10us", "--solution", "naive"];
    assert!(place.fails(2, &ratios).contains("`--solution` is for `--method capacity`"));
    assert!(!place.path().join("results").exists());
    let stored = |name: &str, solution: &str, seed: &str| {
        let args = ["--solution", solution, "--name", name, "--seed", seed, "--ops", "read"];
        place.ok(&[&capacity[..4], &args, &["--time", "1s"]].concat());
    };
    stored("a", "a-b", "1");
    stored("b", "A_b", "2");
    let merge = ["profile", "--merge", "results/a", "results/b"];
    let text = place.fails(2, &merge);
    assert!(text.contains("a-b and A_b have the same key IOCOST_MODEL_A_B"), "{text}");
    place.fails(2, &[&merge[..], &["--solution", "x"]].concat());
    // A name that somebody wrote into the file.
    let file = place.path().join("results/b/result.json");
    let edited = std::fs::read_to_string(&file).unwrap().replace("A_b", "c d");
    std::fs::write(&file, edited).unwrap();
    assert!(place.fails(2, &merge).contains("is not a valid name"));
    assert!(!place.path().join("results/merged-profile").exists());
}
