//! The live view in a pseudo-terminal (script(1)), and plain lines if there is none.

use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

use crate::common::Place;

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
const SHOW_CURSOR: &str = "\x1b[?25h";

/// What a shell command shows on a terminal of 80 to 24, and its exit code; `typed` is typed after
/// a while. `None` where there is no script(1).
fn on_a_terminal(place: &Place, command: &str, typed: &[u8]) -> Option<(String, i32)> {
    let program = env!("CARGO_BIN_EXE_ssdyno");
    let shell = format!("stty rows 24 cols 80; ssdyno() {{ '{program}' \"$@\"; }}; {command}");
    let spawned = std::process::Command::new("script")
        .args(["-qec", &shell, "/dev/null"])
        .current_dir(place.path())
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        println!("skipped: there is no script(1) here");
        return None;
    };
    let mut keys = child.stdin.take().unwrap();
    let mut shown = Vec::new();
    let mut screen = child.stdout.take().unwrap();
    if !typed.is_empty() {
        // What is typed before the view is there is the shell's.
        let mut some = [0; 4096];
        while !String::from_utf8_lossy(&shown).contains(ENTER) {
            let length = screen.read(&mut some).unwrap();
            assert!(length > 0, "no view: {}", String::from_utf8_lossy(&shown));
            shown.extend(&some[..length]);
        }
        std::thread::sleep(Duration::from_millis(1000));
        keys.write_all(typed).unwrap();
    }
    screen.read_to_end(&mut shown).unwrap();
    drop(keys);
    let code = child.wait().unwrap().code().unwrap();
    Some((String::from_utf8_lossy(&shown).into_owned(), code))
}

/// The output before, in and after the view; the terminal must be as it was.
fn parts(shown: &str) -> (&str, &str, &str) {
    assert_eq!(shown.matches(ENTER).count(), 1, "{shown:?}");
    assert_eq!(shown.matches(LEAVE).count(), 1, "{shown:?}");
    let (before, rest) = shown.split_once(ENTER).unwrap();
    let (view, after) = rest.split_once(LEAVE).unwrap();
    assert!(view.ends_with(SHOW_CURSOR), "the cursor is hidden: {view:?}");
    assert!(!after.contains("\x1b[?25l"), "{after:?}");
    (before, view, after)
}

/// Whether the terminal echoes typed characters, according to `stty -a`.
const ECHO: &str =
    "stty -a | grep -qE '[^-]echo ' && stty -a | grep -q 'susp = ^Z' && echo RESTORED";

#[test]
fn a_run_shows_its_figures_and_gives_the_terminal_back() {
    let place = Place::new();
    for target in ["null: --for 1500ms", "sim:config-a --for 20s --workload randread"] {
        let command = format!("ssdyno run {target} --keep none; {ECHO}");
        let Some((shown, code)) = on_a_terminal(&place, &command, b"") else { return };
        assert_eq!(code, 0, "{shown}");
        let (_, view, after) = parts(&shown);
        for part in ["IOPS", "p99.9", "Throughput", "now", "Ctrl-C"] {
            assert!(view.contains(part), "{part} in {view:?}");
        }
        assert!(after.contains("Latency") && after.contains("RESTORED"), "{after:?}");
    }
}

#[test]
fn an_interrupt_gives_the_terminal_back_and_keeps_the_result() {
    let place = Place::new();
    let command =
        format!("ssdyno run null: --for 100s --keep summary --name i; C=$?; {ECHO}; exit $C");
    let Some((shown, code)) = on_a_terminal(&place, &command, b"\x03") else { return };
    // The shell gets the signal too, and dies of it where it does not wait for its job.
    assert!([130, 2].contains(&(code & 0xff)), "{code}: {shown}");
    let (_, _, after) = parts(&shown);
    assert!(after.contains("stopping"), "{after:?}");
    let stored = std::fs::read_to_string(place.path().join("results/i/result.json")).unwrap();
    assert!(stored.contains("\"partial\": true"), "{stored}");
}

/// The end of the terminal apart, signals that are not typed give it back too.
#[test]
fn other_signals_give_the_terminal_back() {
    let place = Place::new();
    for (signal, twice) in [("TERM", false), ("HUP", false), ("TERM", true)] {
        let program = env!("CARGO_BIN_EXE_ssdyno");
        let run = format!("exec {program} run null: --for 100s --keep none");
        let again =
            if twice { format!("; sleep 0.5; kill -{signal} $(cat pid) ") } else { String::new() };
        let command = format!(
            "rm -f pid; (until [ -s pid ]; do sleep 0.1; done; sleep 1.5; \
             kill -{signal} $(cat pid){again}) & sh -c 'echo $$ > pid; {run}'; C=$?; \
             {ECHO}; echo CODE $C"
        );
        let Some((shown, _)) = on_a_terminal(&place, &command, b"") else { return };
        let (_, _, after) = parts(&shown);
        assert!(after.contains("RESTORED") && after.contains("CODE 130"), "{signal}: {after:?}");
    }
}

/// The window is closed: there is no viewer any more, and the results are kept.
#[test]
fn a_run_outlives_its_terminal() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_ssdyno");
    let shell = format!(
        "stty rows 24 cols 80; exec {program} run null: --for 100s --name w --keep summary"
    );
    let spawned = std::process::Command::new("script")
        .args(["-qec", &shell, "/dev/null"])
        .current_dir(place.path())
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    let Ok(mut window) = spawned else {
        println!("skipped: there is no script(1) here");
        return;
    };
    let within = |what: &str, done: &dyn Fn() -> bool| {
        let began = std::time::Instant::now();
        while !done() {
            assert!(began.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let results = place.path().join("results/w");
    // Made after the handlers of signals are set.
    within("it does not start", &|| results.exists());
    std::thread::sleep(Duration::from_millis(1000));
    window.kill().unwrap();
    window.wait().unwrap();
    let kept = || std::fs::read_to_string(results.join("result.json")).unwrap_or_default();
    within("nothing was kept", &|| kept().contains("\"partial\": true"));
}

#[test]
fn errors_and_other_sizes_leave_no_mess() {
    let place = Place::new();
    place.write("bad.trace", "0.0 0 0 8 1\n0.5 0 16 8 1\n0.6 0 garbled\n");
    let command = format!("ssdyno run sim:config-a --workload bad.trace --keep none; {ECHO}");
    let Some((shown, _)) = on_a_terminal(&place, &command, b"") else { return };
    let (_, _, after) = parts(&shown);
    assert!(after.contains("bad.trace:3") && after.contains("RESTORED"), "{after:?}");
    // Smaller than the view can be, and large again, while it is shown.
    let sizes = "(sleep 0.5; stty rows 3 cols 9; sleep 0.5; stty rows 50 cols 200) &";
    let command = format!("{sizes} ssdyno run null: --for 1500ms --keep none; wait; {ECHO}");
    let Some((shown, code)) = on_a_terminal(&place, &command, b"") else { return };
    assert_eq!(code, 0, "{shown}");
    assert!(parts(&shown).2.contains("RESTORED"), "{shown:?}");
}

#[test]
fn there_is_no_view_where_none_is_wanted() {
    let place = Place::new();
    let run = "ssdyno run null: --requests 1000 --keep none";
    for command in [
        format!("{run} --no-live"),
        format!("TERM=dumb; export TERM; {run}"),
        format!("NO_COLOR=1; export NO_COLOR; {run}"),
        format!("stty rows 5 cols 20; {run} --no-live"),
        format!("{run} 2>/dev/null"),
    ] {
        let Some((shown, code)) = on_a_terminal(&place, &command, b"") else { return };
        assert_eq!(code, 0, "{shown}");
        assert!(!shown.contains('\x1b') && shown.contains("IOPS"), "{command}: {shown:?}");
    }
    let output = place.call(&["run", "null:", "--requests", "1000", "--keep", "none"]);
    assert!(output.stderr.is_empty() && !output.stdout.contains(&0x1b));
}
