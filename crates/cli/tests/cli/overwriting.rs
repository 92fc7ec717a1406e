//! What must not be overwritten, by whatever name and through whatever lies on it.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::Place;
use crate::loops::Loops;
use crate::trouble::shell;

/// What allows writing, and making files, means nothing where nothing is real: whoever typed it meant
/// something else.
#[test]
fn options_of_real_targets_are_refused_for_simulated_ones() {
    let place = Place::new();
    place.write("device.toml", place.ok(&["show", "sim:config-a"]));
    let runs: [&[&str]; 6] = [
        &["run", "sim:config-a"],
        &["run", "device.toml", "--workload", "randread"],
        &["run"],
        &["compare", "sim:config-a", "sim:nvme-tlc"],
        &["pts", "sim:config-a"],
        &["profile", "sim:config-a"],
    ];
    let options: [&[&str]; 5] = [
        &["--engine", "threads"],
        &["--write"],
        &["--size", "1MiB"],
        &["--write", "--overwrite"],
        &["--write", "--destroy", "X"],
    ];
    for run in runs {
        for option in options {
            let text = place.fails(2, &[run, option].concat());
            let refused = format!("`{}` is for real targets", option[0]);
            assert!(text.contains(&refused) && text.contains("leave it out"), "{text}");
        }
    }
    let text = place.fails(2, &["run", "new", "--write", "--size", "1MiB"]);
    assert!(text.contains("./NAME"), "{text}");
    let args = ["verify", "sim:config-a", "--write", "--size", "1MiB"];
    assert!(place.fails(2, &args).contains("sim:config-a is simulated"));
    assert!(!place.path().join("sim:config-a").exists() && !place.path().join("results").exists());
    let resumed = ["verify", "device.toml", "--resume", "journal", "--size", "1MiB"];
    assert!(place.fails(2, &resumed).contains("--size"));
    // One side is real: the program asks for consent for that side.
    let load = ["--workload", "randread", "--requests", "100", "--keep", "none"];
    let both = [&["compare", "sim:config-a", "./real", "--size", "1MiB"], &load[..]].concat();
    place.ok(&both);
    place.ok(&[&["run", "./another", "--write", "--size", "1MiB"], &load[..]].concat());
}

/// The kernel does not say that a loop device holds the device below it; what is mounted there would
/// be lost.
#[test]
fn what_lies_below_a_loop_device_is_not_written() {
    let place = Place::new();
    place.write("image", vec![7u8; 1 << 20]);
    let mut loops = Loops(Vec::new());
    let Some(()) = loops.attach(&place, "image") else { return };
    let device = loops.0[0].clone();
    let name = device.trim_start_matches("/dev/").to_owned();
    let run = ["run", &device, "--workload", "randwrite", "--requests", "100", "--keep", "none"];
    let unasked = place.fails(2, &[&run[..], &["--write"]].concat());
    assert!(unasked.contains(&format!("--destroy={name}")), "{unasked}");
    let write = [&run[..], &["--write", "--destroy", &name]].concat();
    let Some(()) = loops.attach(&place, &device) else { return };
    let refused = place.fails(2, &write);
    assert!(refused.contains("is in use") && refused.contains("held by loop"), "{refused}");
    assert_eq!(std::fs::read(place.path().join("image")).unwrap(), vec![7u8; 1 << 20]);
    let _ = Command::new("losetup").args(["--detach", &loops.0.pop().unwrap()]).status();
    place.ok(&write);
    let image = ["run", "image", "--workload", "randwrite", "--write", "--overwrite"];
    assert!(place.fails(2, &image).contains("behind the loop device"));
}

/// Whatever it is called, and through whatever other loop device: it is one file.
#[test]
fn a_file_behind_a_loop_device_is_known_by_all_its_names() {
    let place = Place::new();
    place.write("image", vec![7u8; 1 << 20]);
    std::fs::hard_link(place.path().join("image"), place.path().join("link")).unwrap();
    std::os::unix::fs::symlink("image", place.path().join("symbolic")).unwrap();
    let mut loops = Loops(Vec::new());
    let Some(()) = loops.attach(&place, "image") else { return };
    let write = |target: &str| {
        let name = target.trim_start_matches("/dev/").to_owned();
        let run = ["run", target, "--workload", "randwrite", "--requests", "9", "--keep", "none"];
        let consent = ["--write", "--overwrite", "--destroy", &name];
        place.fails(2, &[&run[..], &consent].concat())
    };
    for name in ["image", "link", "symbolic"] {
        assert!(write(name).contains("behind the loop device"), "{name}");
    }
    std::fs::remove_file(place.path().join("image")).unwrap();
    assert!(write("link").contains("behind the loop device"), "its first name is gone");
    let Some(()) = loops.attach(&place, "link") else { return };
    let refused = write(&loops.0[1]);
    assert!(refused.contains("in use") && refused.contains("behind the loop device"), "{refused}");
    assert_eq!(std::fs::read(place.path().join("link")).unwrap(), vec![7u8; 1 << 20]);
    // Two on one device, too.
    let Some(()) = loops.attach(&place, &loops.0[0].clone()) else { return };
    let Some(()) = loops.attach(&place, &loops.0[0].clone()) else { return };
    let refused = write(&loops.0[3]);
    assert!(refused.contains("behind the loop device"), "{refused}");
}

/// Loop devices on loop devices: at any depth the file below may be in somebody's hands.
#[test]
fn a_stack_of_loop_devices_is_looked_through_to_its_ground() {
    let place = Place::new();
    place.write("image", vec![7u8; 1 << 20]);
    let mut loops = Loops(Vec::new());
    for _ in 0..2 {
        let Some(()) = loops.attach(&place, "image") else { return };
    }
    for _ in 0..2 {
        let Some(()) = loops.attach(&place, &loops.0[loops.0.len() - 1].clone()) else { return };
    }
    let (other, top) = (loops.0[0].clone(), loops.0[3].clone());
    let name = |device: &str| device.trim_start_matches("/dev/").to_owned();
    let run = ["run", &top, "--workload", "randwrite", "--requests", "9", "--keep", "none"];
    let serial = name(&top);
    let write = [&run[..], &["--write", "--destroy", &serial]].concat();
    let refused = place.fails(2, &write);
    assert!(
        refused.contains("behind the loop device") && refused.contains(&name(&other)),
        "{refused}"
    );
    assert_eq!(std::fs::read(place.path().join("image")).unwrap(), vec![7u8; 1 << 20]);
    // Alone on its file the stack may be written to.
    let _ = Command::new("losetup").args(["--detach", &loops.0.remove(0)]).status();
    place.ok(&write);
}

/// What writes elsewhere than to the target does not write to a device either.
#[test]
fn a_timeline_is_not_written_over_a_device() {
    let place = Place::new();
    place.write("image", vec![7u8; 1 << 20]);
    let mut loops = Loops(Vec::new());
    let Some(()) = loops.attach(&place, "image") else { return };
    let run = ["run", "sim:config-a", "--requests", "9", "--keep", "none", "--timeline"];
    let refused = place.fails(2, &[&run[..], &[&loops.0[0]]].concat());
    assert!(refused.contains("is not a timeline"), "{refused}");
    assert_eq!(std::fs::read(place.path().join("image")).unwrap(), vec![7u8; 1 << 20]);
}

/// A trim of a device is a discard, by the device's own count, and no write of zeroes.
#[test]
fn trims_of_a_device_are_discards() {
    let place = Place::new();
    place.write("image", vec![7u8; 1 << 20]);
    let mut loops = Loops(Vec::new());
    let Some(()) = loops.attach(&place, "image") else { return };
    let name = loops.0[0].trim_start_matches("/dev/").to_owned();
    let counted = || {
        let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        let field = |n| text.split_whitespace().nth(n).and_then(|n| n.parse::<u64>().ok());
        // Documentation/block/stat.rst: writes, and discards, with those that were merged into others.
        (field(4).unwrap(), field(11).unwrap_or(0) + field(12).unwrap_or(0))
    };
    for engine in ["threads", "io_uring"] {
        let before = counted();
        let run = [
            "run",
            &loops.0[0],
            "--set",
            "workload.trim_percent=100",
            "--requests",
            "50",
            "--set",
            "workload.read_percent=0",
        ];
        let how = ["--engine", engine, "--keep", "none", "--write", "--destroy", &name];
        let output = place.call(&[&run[..], &how].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        if engine == "io_uring" && told.contains("io_uring cannot be used") {
            continue;
        }
        assert!(output.status.success(), "{engine}: {told}");
        // The kernel tells of the end of a request before it counts it (blk_mq_end_request), so
        // the last ones may come late on a busy machine.
        let began = Instant::now();
        while counted().1 - before.1 < 50 && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let after = counted();
        assert_eq!((after.0 - before.0, after.1 - before.1), (0, 50), "{engine}");
    }
}

/// A mount in another name space is in no list that is seen here; the kernel knows of it.
#[test]
fn a_claim_of_another_name_space_is_seen_through_a_loop_device() {
    let place = Place::new();
    place.write("image", vec![0u8; 4 << 20]);
    let tools = ["mkfs.ext4", "unshare", "mount"];
    let made = shell(&place, &tools, "mkfs.ext4 -q -F image && mkdir mounted");
    if !made.is_some_and(|made| made.status.success()) {
        return;
    }
    let mut loops = Loops(Vec::new());
    let Some(()) = loops.attach(&place, "image") else { return };
    let Some(()) = loops.attach(&place, &loops.0[0].clone()) else { return };
    let (below, above) = (&loops.0[0], &loops.0[1]);
    let mount = format!("mount {below} mounted && echo ready && read gone");
    let mut elsewhere = Command::new("unshare");
    elsewhere.args(["--mount", "sh", "-c", &mount]).current_dir(place.path());
    elsewhere.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let Ok(mut elsewhere) = elsewhere.spawn() else { return };
    let mut ready = [0u8; 6];
    let mounted = std::io::Read::read_exact(elsewhere.stdout.as_mut().unwrap(), &mut ready);
    let name = above.trim_start_matches("/dev/");
    let run = ["run", above, "--workload", "randwrite", "--requests", "9", "--keep", "none"];
    let output = place.call(&[&run[..], &["--write", "--destroy", name]].concat());
    drop(elsewhere.stdin.take());
    elsewhere.wait().unwrap();
    if mounted.is_err() {
        println!("skipped: nothing can be mounted here");
        return;
    }
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && told.contains("claims it"), "{told}");
}

/// A scratch file is written to without being asked, but only while it holds what ssdyno wrote.
#[test]
fn a_scratch_file_that_somebody_else_wrote_to_is_not_overwritten() {
    let place = Place::new();
    let load = ["--workload", "randwrite", "--requests", "200", "--keep", "none", "--write"];
    let run = |target: &'static str| [&["run", target], &load[..]].concat();
    let first = place.call(&[&run("./scratch")[..], &["--size", "4MiB"]].concat());
    assert!(first.status.success());
    let again = place.call(&run("./scratch"));
    if !again.status.success() {
        eprintln!("skipped: no extended attributes here");
        return;
    }
    place.ok(&["verify", "./scratch", "--write"]);
    place.ok(&run("./scratch"));

    let cp = |arguments: &[&str]| {
        let mut cp = Command::new("cp");
        assert!(cp.args(arguments).current_dir(place.path()).status().unwrap().success());
    };
    cp(&["-a", "scratch", "copy"]);
    let refused = place.fails(2, &run("./copy"));
    assert!(refused.contains("it is a copy") && refused.contains("--overwrite"), "{refused}");

    place.write("precious", vec![7u8; 4 << 20]);
    cp(&["precious", "scratch"]);
    let refused = place.fails(2, &run("./scratch"));
    assert!(refused.contains("it was written, renamed or"), "{refused}");
    assert_eq!(std::fs::read(place.path().join("scratch")).unwrap(), vec![7u8; 4 << 20]);
    // Somebody said that its contents may go, but the run wrote only a part of it.
    place.ok(&[&run("./scratch")[..], &["--overwrite"]].concat());
    place.fails(2, &run("./scratch"));
    place.write("theirs", vec![7u8; 4 << 20]);
    let theirs = run("./theirs");
    place.ok(&[&theirs[..], &["--overwrite"]].concat());
    assert!(place.fails(2, &theirs).contains("was not made by ssdyno"));
}

/// A run that loads the first MiB of a file, while another program writes to the third.
#[test]
fn data_that_came_during_a_run_are_not_overwritten_by_the_next() {
    let place = Place::new();
    let load = ["./scratch", "--workload", "randwrite", "--set", "workload.address.length=1MiB"];
    let run = [&["run"], &load[..], &["--keep", "none", "--write"]].concat();
    place.ok(&[&run[..], &["--size", "8MiB", "--requests", "9"]].concat());
    if !place.call(&[&run[..], &["--requests", "9"]].concat()).status.success() {
        eprintln!("skipped: no extended attributes here");
        return;
    }
    let script =
        "sleep 0.4; printf precious | dd of=scratch bs=1 seek=3000000 conv=notrunc 2>/dev/null";
    let mut other = Command::new("sh");
    let mut other = other.args(["-c", script]).current_dir(place.path()).spawn().unwrap();
    place.ok(&[&run[..], &["--for", "1s"]].concat());
    assert!(other.wait().unwrap().success());
    let all = ["--workload", "randwrite", "--requests", "9", "--write", "--keep", "none"];
    let refused = place.fails(2, &[&["run", "./scratch"], &all[..]].concat());
    assert!(refused.contains("may hold other data now"), "{refused}");
    let found = std::fs::read(place.path().join("scratch")).unwrap();
    assert_eq!(&found[3_000_000..3_000_008], b"precious");
}

/// Where a device is missing, no file is made in its place.
#[test]
fn no_file_is_made_among_the_devices() {
    let place = Place::new();
    for path in ["/dev/ng0n1-missing", "/dev/../dev/missing", "/proc/missing", "/sys/missing"] {
        for more in [&[][..], &["--size", "1MiB"]] {
            let run = [&["run", path, "--requests", "9", "--keep", "none"], more].concat();
            let told = place.fails(2, &run);
            assert!(told.contains("no device or file") && !told.contains("--size"), "{told}");
            assert!(!std::path::Path::new(path).exists());
        }
    }
}

#[test]
fn a_size_is_that_of_the_target_or_is_refused() {
    let place = Place::new();
    let run = ["run", "./t", "--requests", "9", "--keep", "none", "--size"];
    let with = |size: &'static str| [&run[..], &[size]].concat();
    // The second run finds the file that the first one made.
    place.ok(&with("1MiB"));
    place.ok(&with("1MiB"));
    let told = place.fails(2, &with("2MiB"));
    assert!(told.contains("has 1MiB, not 2MiB") && told.contains("`--size`"), "{told}");
    assert_eq!(std::fs::metadata(place.path().join("t")).unwrap().len(), 1 << 20);
}
