//! The command that repeats a run.

use ssdyno_workload::Timing;

use crate::args::{LoadArgs, RunArgs, TraceArgs};

/// `ssdyno run` with everything that decides about the figures.
pub(crate) fn command(args: &RunArgs, target: &str) -> String {
    let mut words = vec!["ssdyno".to_owned(), "run".to_owned(), target.to_owned()];
    load(&args.load, target, &mut words);
    for (name, value) in args.real.given() {
        words.push(name.to_owned());
        words.extend(value);
    }
    if args.keep != "all" {
        option(&mut words, "--keep", &args.keep);
    }
    if let Some(interval) = args.interval {
        option(&mut words, "--interval", interval);
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn option(words: &mut Vec<String>, name: &str, value: impl ToString) {
    words.extend([name.to_owned(), value.to_string()]);
}

fn load(load: &LoadArgs, target: &str, words: &mut Vec<String>) {
    match &load.fio {
        Some(file) => option(words, "--fio", file.display()),
        None => option(words, "--workload", load.workload(target)),
    }
    option(words, "--seed", load.seed);
    if let Some(duration) = load.duration {
        option(words, "--for", duration);
    }
    if let Some(requests) = load.requests {
        option(words, "--requests", requests);
    }
    if let Some(until) = load.until {
        option(words, "--until", until);
    }
    load.set.iter().for_each(|setting| option(words, "--set", setting));
    trace(&load.trace, words);
    load.host.given().into_iter().for_each(|(name, value)| option(words, name, value));
}

fn trace(trace: &TraceArgs, words: &mut Vec<String>) {
    if let Some(format) = trace.trace_format {
        option(words, "--trace-format", format);
    }
    match trace.timing {
        None => {}
        Some(Timing::Original) => option(words, "--timing", "original"),
        Some(Timing::Scaled(factor)) => option(words, "--timing", format!("scaled={factor}")),
        Some(Timing::AsFastAsPossible { .. }) => option(words, "--timing", "fast"),
    }
    if let Some(depth) = trace.trace_depth {
        option(words, "--trace-depth", depth);
    }
    if let Some(device) = &trace.trace_device {
        option(words, "--trace-device", device);
    }
    if let Some(beyond) = trace.beyond_end {
        option(words, "--beyond-end", beyond.name());
    }
}

/// As a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Verb};

    fn parsed(line: &[&str]) -> String {
        let Verb::Run(args) = Cli::try_parse_from(line).unwrap().verb else { panic!("not a run") };
        command(&args, args.target())
    }

    #[test]
    fn a_replay_replays_itself() {
        let line = [
            "ssdyno",
            "run",
            "sim:config-a",
            "--workload",
            "a.trace",
            "--seed",
            "7",
            "--requests",
            "9",
            "--set",
            "flash.channels=2",
            "--timing",
            "scaled=0.5",
            "--trace-depth",
            "4",
            "--trace-format",
            "csv",
            "--trace-device",
            "3",
            "--beyond-end",
            "wrap",
            "--keep",
            "none",
            "--interval",
            "10ms",
            "--driver",
            "nvme",
            "--host",
            "e5430",
            "--cores",
            "4",
            "--queues",
            "per-core-pool",
            "--stack",
            "scsi",
            "--threads",
            "batch",
            "--completion",
            "hybrid",
            "--doorbell",
            "each",
            "--classes",
            "1,3",
            "--engine",
            "io_uring",
            "--iopoll",
            "--sqpoll",
            "--jobs",
            "2",
            "--pin",
            "0,1",
            "--batch",
            "8",
            "--timeout",
            "5s",
            "--probe-interval",
            "200ms",
        ];
        let once = parsed(&line);
        let again = parsed(&once.split(' ').collect::<Vec<_>>());
        assert_eq!(once, again);
        for word in line {
            assert!(once.split(' ').any(|w| w == word), "{word} in {once}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a b'c"), r"'a b'\''c'");
        assert_eq!(quoted("--set"), "--set");
        assert_eq!(quoted(""), "''");
    }
}
