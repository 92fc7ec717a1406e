//! The command line's names of the keys of a spec and of a task: libraries name keys, users type options.

use std::ffi::OsString;

use ssdyno_session::{Failure, keys_in_tables};

/// Keys of a spec outside its tables. Each key in a table has an option, too, and is replaced wherever a text has it in
/// backticks. Devices and workloads have keys of the same names: these are replaced only
/// where a text has them with a value, such as `keep=summary`.
const AT_TOP: [&str; 10] =
    ["workload", "fio", "seed", "for", "requests", "until", "set", "keep", "interval", "why"];

/// Keys of tasks that failures and results of tasks name.
const OF_TASKS: [&str; 20] = [
    "flush_every",
    "writes",
    "range",
    "threads",
    "active_range_percent",
    "journal",
    "resume",
    "method",
    "ops",
    "span",
    "set",
    "seed",
    "error",
    "points",
    "repeat",
    "sizes",
    "depth",
    "threshold",
    "time",
    "solution",
];

/// Keys of a sweep that its failures name.
const OF_SWEEP: [&str; 8] =
    ["vary", "sampling", "designs", "objectives", "require", "run_hopeless", "time", "resume"];

/// Keys of repeated runs that failures name.
const OF_RUNS: [&str; 1] = ["runs"];

/// Tables whose keys `--set` takes, in texts that give such a key a value.
const OF_SET: [&str; 3] = ["workload.", "network.", "faults."];

/// The option of the command line that stands for `key`, such as `--queues` for `host.queues`.
pub(crate) fn option_of(key: &str) -> String {
    let (table, last) = key.rsplit_once('.').unwrap_or(("", key));
    let name = match (table, last) {
        ("host", "name") => "host".to_owned(),
        ("write", "allowed") => "write".to_owned(),
        ("trace", "timing" | "beyond_end") => last.to_owned(),
        ("trace", _) => format!("trace-{last}"),
        ("", "objectives") => "objective".to_owned(),
        ("", "active_range_percent") => "active-range".to_owned(),
        _ => last.to_owned(),
    };
    format!("--{}", name.replace('_', "-"))
}

/// Whether `key` is one of a spec that has an option.
#[cfg(test)]
pub(crate) fn is_key(key: &str) -> bool {
    keys_in_tables().contains(key) || AT_TOP.contains(&key)
}

/// `failure` with options instead of the keys of a spec that its text names.
pub(crate) fn in_failure(failure: &Failure) -> Failure {
    if is_from_file(std::env::args_os()) {
        return failure.clone();
    }
    replaced(failure.clone(), &of_spec)
}

/// The same for a task, whose own keys are replaced, too.
pub(crate) fn in_failure_of_task(failure: Failure) -> Failure {
    // An error in a file keeps its words: keys in it are other keys.
    if is_of_file(&failure) { failure } else { replaced(failure, &of_task) }
}

/// `text`, which a library made of a result, with options instead of the keys of a spec.
pub(crate) fn in_text(text: &str) -> String {
    if is_from_file(std::env::args_os()) {
        return text.to_owned();
    }
    in_lines(text, &of_spec)
}

/// The same for the result of a task.
pub(crate) fn in_text_of_task(text: &str) -> String {
    in_lines(text, &of_task)
}

/// Whether the spec was read from a file, whose reader writes keys and may not add options.
fn is_from_file(args: impl Iterator<Item = OsString>) -> bool {
    let args: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    let verb = args.iter().skip(1).find(|arg| !arg.starts_with('-'));
    verb.is_some_and(|verb| verb == "controller")
        || args.iter().any(|arg| arg == "--spec" || arg.starts_with("--spec="))
}

fn verb(args: impl Iterator<Item = OsString>) -> Option<String> {
    args.skip(1).map(|arg| arg.to_string_lossy().into_owned()).find(|arg| !arg.starts_with('-'))
}

fn is_of_file(failure: &Failure) -> bool {
    failure.file.is_some() || failure.place.as_ref().is_some_and(|place| place.is_file)
}

fn replaced(mut failure: Failure, option: &dyn Fn(&str) -> Option<String>) -> Failure {
    let is_of_file = is_of_file(&failure);
    let setting = failure.place.as_mut().filter(|place| !place.is_file && place.name == "set");
    setting.into_iter().for_each(|place| "--set".clone_into(&mut place.name));
    // An error in a file or in the value of an option is reported in the terms of that file or
    // option.
    if !is_of_file && failure.place.is_none() {
        failure.message = in_lines(&failure.message, option);
    }
    let names_key_of_file =
        |help: &str| help.starts_with("did you mean") || help.starts_with("set `");
    failure.help = failure.help.map(|help| match is_of_file && names_key_of_file(&help) {
        true => help,
        false => in_lines(&help, option),
    });
    failure
}

/// Line by line, so that a backtick in a name disturbs no other line.
fn in_lines(text: &str, option: &dyn Fn(&str) -> Option<String>) -> String {
    text.split('\n').map(|line| in_line(line, option)).collect::<Vec<_>>().join("\n")
}

fn in_line(line: &str, option: &dyn Fn(&str) -> Option<String>) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let is_paired = parts.len() % 2 == 1;
    let shown = parts.iter().enumerate().map(|(at, part)| {
        let is_quoted = is_paired && at % 2 == 1 && !is_typed(part, std::env::args_os().skip(1));
        is_quoted.then(|| option(part)).flatten().unwrap_or_else(|| (*part).to_owned())
    });
    shown.collect::<Vec<_>>().join("`")
}

/// Whether `part` is what the user typed, such as the name of a target: it is not a word of a library.
fn is_typed(part: &str, args: impl Iterator<Item = OsString>) -> bool {
    args.map(|arg| arg.to_string_lossy().into_owned())
        .any(|arg| arg == part || arg.split_once('=').is_some_and(|(_, value)| value == part))
}

fn of_spec(part: &str) -> Option<String> {
    let value = part.split_once('=');
    if value.is_some() && OF_SET.iter().any(|table| part.starts_with(table)) {
        return Some(format!("--set {part}"));
    }
    let key = value.map_or(part, |(key, _)| key);
    let is_known = keys_in_tables().contains(key) || value.is_some() && AT_TOP.contains(&key);
    is_known.then(|| with_value(key, value))
}

fn of_task(part: &str) -> Option<String> {
    let value = part.split_once('=');
    if value == Some(("method", "map")) {
        return Some("--map".to_owned());
    }
    let key = value.map_or(part, |(key, _)| key);
    // A comparison and a sweep are made of runs: their failures name keys of workloads and devices, too.
    let keys: &[&str] = match verb(std::env::args_os()).as_deref() {
        Some("sweep") => &OF_SWEEP,
        Some("compare" | "run") => &OF_RUNS,
        _ => &OF_TASKS,
    };
    if keys.contains(&key) { Some(with_value(key, value)) } else { of_spec(part) }
}

/// The option of `key`, with the value where there is one; a switch has none.
fn with_value(key: &str, value: Option<(&str, &str)>) -> String {
    match value {
        None | Some((_, "true")) => option_of(key),
        Some((_, value)) => format!("{} {value}", option_of(key)),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};
    use ssdyno_session::FailurePlace;

    use super::*;
    use crate::verbs::Cli;

    fn takes(command: &Command, verbs: &[&str], option: &str) -> bool {
        let mut verbs = verbs.iter().filter_map(|verb| command.find_subcommand(verb));
        let Some(name) = option.strip_prefix("--") else { return false };
        verbs.any(|verb| verb.get_arguments().any(|arg| arg.get_long() == Some(name)))
    }

    #[test]
    fn every_key_has_an_option_that_exists() {
        let command = Cli::command();
        let in_tables = keys_in_tables().iter().map(String::as_str);
        for key in in_tables.chain(AT_TOP) {
            assert!(takes(&command, &["run"], &option_of(key)), "{key}: {}", option_of(key));
        }
        let verbs = ["pts", "profile", "verify", "probe"];
        for key in OF_TASKS {
            assert!(takes(&command, &verbs, &option_of(key)), "{key}: {}", option_of(key));
        }
        for key in OF_RUNS {
            assert!(takes(&command, &["compare"], &option_of(key)), "{key}: {}", option_of(key));
        }
        for key in OF_SWEEP {
            assert!(takes(&command, &["sweep"], &option_of(key)), "{key}: {}", option_of(key));
        }
        assert!(takes(&command, &["profile"], "--map") && takes(&command, &["run"], "--set"));
    }

    #[test]
    fn keys_have_the_names_of_options() {
        for (key, option) in [
            ("seed", "--seed"),
            ("host.name", "--host"),
            ("host.time_limit", "--time-limit"),
            ("trace.timing", "--timing"),
            ("trace.slot", "--trace-slot"),
            ("trace.beyond_end", "--beyond-end"),
            ("write.allowed", "--write"),
        ] {
            assert_eq!(option_of(key), option);
        }
    }

    #[test]
    fn keys_in_backticks_become_options() {
        for (text, shown) in [
            ("`host.queues` is for the NVMe driver", "`--queues` is for the NVMe driver"),
            (
                "raise `host.time_limit`, or `keep=summary`",
                "raise `--time-limit`, or `--keep summary`",
            ),
            ("make it with `write.size=1GiB`", "make it with `--size 1GiB`"),
            ("add `write.allowed=true`", "add `--write`"),
            ("add `host.ring=partial-after=1us`", "add `--ring partial-after=1us`"),
            ("`workload.ramp_up=9` helps", "`--set workload.ramp_up=9` helps"),
            // Keys of files, words without backticks, and what only looks like a key.
            ("`workload.depth`: too much", "`workload.depth`: too much"),
            ("`flash.channels=4`, host.queues", "`flash.channels=4`, host.queues"),
            ("`depth`, `requests`, `host.speed`", "`depth`, `requests`, `host.speed`"),
            ("a `name\nbeside `real.jobs`", "a `name\nbeside `--jobs`"),
            ("an odd ` before `real.jobs`", "an odd ` before `real.jobs`"),
        ] {
            assert_eq!(in_text(text), shown);
            assert_eq!(in_text(shown), shown);
        }
        let of_task = "use `method=map`, `time`, `error=5%`, `real.jobs`; `dmesg`";
        let shown = "use `--map`, `--time`, `--error 5%`, `--jobs`; `dmesg`";
        assert_eq!(in_text_of_task(of_task), shown);
    }

    #[test]
    fn failures_of_files_and_values_keep_their_words() {
        let failure = Failure::usage("`real.jobs` is 0").with_help("leave `real.jobs` out");
        let (message, help) = ("`--jobs` is 0", "leave `--jobs` out");
        let shown = in_failure(&failure);
        assert_eq!((shown.message.as_str(), shown.help.as_deref()), (message, Some(help)));
        // The help is about the command line wherever the mistake is, but where it names another key of the file.
        let shown = in_failure(&failure.clone().in_file("spec.toml"));
        assert_eq!(
            (shown.message.as_str(), shown.help.as_deref()),
            ("`real.jobs` is 0", Some(help))
        );
        let place = FailurePlace {
            name: "set".into(),
            text: "real.jobs=0".into(),
            span: 0..9,
            first_line: 1,
            label: String::new(),
            is_file: false,
        };
        let shown = in_failure(&failure.clone().at(Some(place)));
        assert_eq!(shown.message, "`real.jobs` is 0");
        assert_eq!(shown.place.map(|place| place.name).as_deref(), Some("--set"));
        let typo = Failure::usage("no key `real.job`").with_help("did you mean `real.jobs`?");
        let typo = typo.in_file("spec.toml");
        assert_eq!(in_failure(&typo), typo);
        let of_task = Failure::usage("there is no key `depth`").in_file("device.toml");
        assert_eq!(in_failure_of_task(of_task.clone()), of_task);
    }

    #[test]
    fn what_was_typed_or_is_in_a_file_stays() {
        let args =
            || ["run", "real.jobs", "--workload=host.driver"].map(OsString::from).into_iter();
        assert!(is_typed("real.jobs", args()) && is_typed("host.driver", args()));
        let is_from_file = |line: &[&str]| is_from_file(line.iter().map(OsString::from));
        assert!(is_from_file(&["ssdyno", "run", "--spec", "a.toml"]));
        assert!(is_from_file(&["ssdyno", "run", "--keep=none", "--spec=a.toml"]));
        assert!(is_from_file(&["ssdyno", "--json", "controller", "run", "plan.toml"]));
        assert!(!is_from_file(&["ssdyno", "run", "--workload", "controller"]));
        assert!(!is_typed("real.pin", args()) && !is_typed("jobs", args()));
    }
}
