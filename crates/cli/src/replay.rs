//! The command that repeats a run.

use clap::{ArgAction, Command};
use serde_json::Value;
use ssdyno_figures::Keep;
use ssdyno_session::{RunSpec, given};

use crate::options::option_of;

/// The source from which a run is repeated.
pub(crate) enum Origin<'a> {
    /// What was typed.
    Spec(&'a RunSpec),
    /// A file, and the values that replace those of the file.
    File(&'a str, Option<Keep>),
}

/// `ssdyno run` with everything that decides the run, and `rest`: options with their values, if they take one. `run` has the
/// options of that verb. A serial number that was typed when the tool asked for it is asked for again.
pub(crate) fn command(
    run: &Command,
    origin: &Origin<'_>,
    rest: Vec<(&'static str, Option<String>)>,
) -> String {
    let mut words = vec!["ssdyno".to_owned(), "run".to_owned()];
    match origin {
        Origin::File(file, keep) => {
            option(&mut words, "--spec", file);
            words.extend(keep.filter(|keep| *keep != Keep::All).map(keep_option));
        }
        Origin::Spec(spec) => words.extend(options(run, spec)),
    }
    for (name, value) in rest {
        match value {
            Some(value) => option(&mut words, name, value),
            None => words.push(name.to_owned()),
        }
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn keep_option(keep: Keep) -> String {
    let word = serde_json::to_value(keep).unwrap_or_default();
    format!("--keep={}", word.as_str().unwrap_or_default())
}

/// The target and the options of `ssdyno run` that ask for `spec`.
fn options(run: &Command, spec: &RunSpec) -> Vec<String> {
    let mut words = Vec::new();
    // A file whose name looks like an option.
    let named = |name: &String| match name.starts_with('-') {
        true => format!("./{name}"),
        false => name.clone(),
    };
    words.extend(spec.target.as_ref().map(named));
    for (key, value) in given("", spec).into_iter().filter(|(key, _)| key != "target") {
        let name = option_of(&key);
        match value {
            Value::Bool(_) => words.push(name),
            Value::Array(list) => {
                let list: Vec<String> = list.iter().map(text).collect();
                match delimiter(run, &name) {
                    Some(delimiter) => option(&mut words, &name, list.join(&delimiter.to_string())),
                    None => list.iter().for_each(|value| option(&mut words, &name, value)),
                }
            }
            value => option(&mut words, &name, text(&value)),
        }
    }
    words
}

/// The separator between the values of an option that takes several.
fn delimiter(run: &Command, option: &str) -> Option<char> {
    let mut options = run.get_arguments();
    let option = options.find(|known| known.get_long() == option.strip_prefix("--"))?;
    // An option that is given once reads its list itself, as `--pin` does.
    let once = matches!(option.get_action(), ArgAction::Set).then_some(',');
    option.get_value_delimiter().or(once)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn option(words: &mut Vec<String>, name: &str, value: impl ToString) {
    let value = value.to_string();
    // Alone it would be taken for another option.
    if value.starts_with('-') {
        words.push(format!("{name}={value}"));
    } else {
        words.extend([name.to_owned(), value]);
    }
}

/// As a POSIX shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use proptest::prelude::*;

    use super::*;
    use crate::commands::run::RunArgs;
    use crate::options::is_key;
    use crate::verbs::{Cli, Verb};

    /// Options that a replay leaves out on purpose.
    const LEFT_OUT: [&str; 10] = [
        // Short for `--set workload.KEY`, which a replay has.
        "depth",
        "block-size",
        "read-percent",
        "rate",
        "help",
        "json",
        "junit",
        "name",
        "no-live",
        "spec",
    ];

    /// Each option with a value that is not its default, and what it cannot do without.
    const SAMPLES: &[(&str, &str)] = &[
        ("hosts", "127.0.0.1:7801"),
        ("probers", "admin@b,[::1]:7802,http://a:9100/metrics#node_disk_+node_cpu"),
        ("ssh", "ssh -J gate"),
        ("remote-program", "/opt/a b/ssdyno"),
        ("identity", "/a b/controller"),
        ("workload", "a b's.toml"),
        ("fio", "jobs/x y.fio"),
        ("seed", "7"),
        ("for", "1500us"),
        ("requests", "1.5M"),
        ("until", "p99=2.5%"),
        ("set", "workload.address={ pattern = \"sequential\" }"),
        ("trace-format", "csv"),
        ("timing", "scaled=0.3"),
        ("trace-depth", "4"),
        ("trace-device", "-3"),
        ("trace-origin", "absolute"),
        ("trace-slot", "100GiB"),
        ("trace-ids", "hash"),
        ("trace-columns", "time_s,object,length_bytes"),
        ("beyond-end", "wrap"),
        ("driver", "nvme"),
        ("host", "e5430"),
        ("cores", "4"),
        ("network", "iscsi-25g"),
        ("queues", "per-core-pool"),
        ("stack", "scsi"),
        ("threads", "batch"),
        ("completion", "hybrid"),
        ("doorbell", "each"),
        ("classes", "1,3"),
        ("namespaces", "2,1"),
        ("power-state", "2"),
        ("time-limit", "1500ms"),
        ("retries", "3"),
        ("ring", "block=16,completion=napi:64"),
        ("engine", "io_uring"),
        ("iopoll", ""),
        ("sqpoll", ""),
        ("buffered", ""),
        ("jobs", "2"),
        ("pin", "0,1"),
        ("pin", "none"),
        ("method", "efficient"),
        ("batch", "8"),
        ("batch", "all"),
        ("submit", "2"),
        ("wait", "spin"),
        ("method", "default"),
        ("timeout", "90s"),
        ("no-probes", ""),
        ("tune", ""),
        ("probe-interval", "200ms"),
        ("write", ""),
        ("destroy", "S3RIAL $HOME"),
        ("overwrite", ""),
        ("size", "1000000001B"),
        ("keep", "none"),
        ("csv", ""),
        ("results", "~/my runs"),
        ("interval", "10ms"),
        ("why", ""),
        ("timeline", "a/timeline.json"),
        ("timeline-from", "3ms"),
        ("require", "p99<2ms"),
        ("timing", "fast"),
        ("timing", "original"),
        ("until", "0.3%"),
        ("for", "2h"),
        ("size", "64GiB"),
        ("timeout", "1.25min"),
        ("requests", "1"),
        ("runs", "3"),
        ("sweep", "depth=1..256"),
        ("sweep", "rate=1k..200k"),
        ("latency-target", "p99.9=1ms"),
    ];

    fn parsed(line: &[String]) -> RunArgs {
        let Verb::Run(args) = Cli::try_parse_from(line).unwrap().verb else { panic!("not a run") };
        *args
    }

    /// As a shell reads it.
    fn words(line: &str) -> Vec<String> {
        let script = format!("printf '%s\\n' {line}");
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{line}");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// The line that is printed for `args`.
    fn printed(args: &RunArgs) -> String {
        let spec = args.typed();
        args.replay(&spec.with_names(spec.target()))
    }

    /// `line` and what is printed for it ask for the same.
    fn repeats(line: &[String]) {
        let mut asked = parsed(line);
        let printed = printed(&asked);
        let again = parsed(&words(&printed));
        // Defaults are written out.
        let spec = asked.typed();
        let spec = spec.with_names(spec.target());
        (asked.target, asked.load.workload) = (spec.target, spec.workload);
        asked.load.trace.trace_origin = spec.trace.origin;
        if asked.keep == Some(Keep::All) {
            asked.keep = None;
        }
        assert_eq!(format!("{asked:?}"), format!("{again:?}"), "{line:?}\n{printed}");
    }

    fn line(options: &[(&str, &str)]) -> Vec<String> {
        let start = ["ssdyno", "run", "/dev/x"].map(str::to_owned).into_iter();
        let typed = options.iter().map(|(name, value)| match *value {
            "" => format!("--{name}"),
            value => format!("--{name}={value}"),
        });
        start.chain(typed).collect()
    }

    #[test]
    fn every_option_is_repeated_by_the_printed_line() {
        let command = <Cli as clap::CommandFactory>::command();
        let run = command.find_subcommand("run").unwrap();
        for name in run.get_arguments().filter_map(|argument| argument.get_long()) {
            let known = LEFT_OUT.contains(&name) || SAMPLES.iter().any(|(known, _)| *known == name);
            assert!(known, "--{name} is new: give it a sample here, and repeat it");
        }
        for &(name, value) in SAMPLES {
            let needs = match name {
                "destroy" | "overwrite" => vec![("write", "")],
                "ssh" | "remote-program" | "identity" | "probers" => vec![("hosts", "a")],
                "timeline-from" => vec![("timeline", "t.json")],
                _ => Vec::new(),
            };
            repeats(&line(&[&needs[..], &[(name, value)]].concat()));
        }
    }

    #[test]
    fn options_given_several_times_or_not_at_all_are_repeated() {
        let bare = ["ssdyno", "run"].map(str::to_owned);
        repeats(&bare);
        repeats(&line(&[]));
        let set = [("set", "workload.depth=3"), ("set", "workload.read_percent=0")];
        repeats(&line(&[&set[..], &[("write", ""), ("destroy", "A"), ("destroy", "B")]].concat()));
    }

    #[test]
    fn a_trace_is_repeated_with_its_origin_of_time() {
        let printed = |options: &[(&str, &str)]| printed(&parsed(&line(options)));
        let line = printed(&[("workload", "a.csv"), ("trace-device", "1"), ("trace-device", "7")]);
        assert!(line.contains(" --trace-origin first --trace-device 1 --trace-device 7"), "{line}");
        let line = printed(&[("workload", "a.csv"), ("trace-origin", "absolute")]);
        assert!(line.contains(" --trace-origin absolute"), "{line}");
        assert!(!printed(&[("workload", "mixed")]).contains("--trace-origin"));
    }

    #[test]
    fn a_file_that_looks_like_an_option_stays_a_file() {
        let args = parsed(&["ssdyno", "run", "--", "-x"].map(str::to_owned));
        assert_eq!(words(&printed(&args))[2], "./-x");
    }

    #[test]
    fn every_key_of_a_spec_is_an_option() {
        let spec = ssdyno_session::RunSpec::default();
        let schema = schemars::schema_for!(RunSpec).to_value();
        let command = Cli::command();
        let run = command.find_subcommand("run").unwrap();
        let options: Vec<String> = run
            .get_arguments()
            .filter_map(|argument| argument.get_long())
            .map(|long| format!("--{long}"))
            .collect();
        let mut keys = Vec::new();
        for (name, property) in schema["properties"].as_object().unwrap() {
            let table = property["$ref"].as_str().map(|path| &path[1..]);
            match table.and_then(|path| schema.pointer(path)).and_then(|t| t.get("properties")) {
                Some(inner) => {
                    let inner = inner.as_object().unwrap().keys();
                    keys.extend(inner.map(|key| format!("{name}.{key}")));
                }
                None => keys.push(name.clone()),
            }
        }
        let other =
            |key: &String| key == "version" || key == "target" || key.starts_with("contents.");
        keys.retain(|key| !other(key));
        assert!(keys.len() > 45, "{keys:?}");
        for key in keys {
            assert!(is_key(&key), "{key} is new: name it in `options`");
            assert!(options.contains(&option_of(&key)), "{key}: {}", option_of(&key));
        }
        assert_eq!(given("", &spec).len(), 1, "a default is not repeated, but the seed");
    }

    #[test]
    fn a_run_from_a_file_is_repeated_by_it() {
        let args =
            parsed(&["ssdyno", "run", "--spec", "a b.toml", "--keep", "none"].map(str::to_owned));
        assert_eq!(args.replay(&RunSpec::default()), "ssdyno run --spec 'a b.toml' --keep=none");
    }

    proptest! {
        /// Any of them together, as far as they go together.
        #[test]
        fn options_are_repeated_together(chosen in prop::collection::vec(0..SAMPLES.len(), 0..8)) {
            let mut names = std::collections::BTreeSet::new();
            let mut chosen: Vec<_> = chosen.into_iter().map(|at| SAMPLES[at]).collect();
            chosen.retain(|(name, _)| names.insert(*name));
            let line = line(&chosen);
            prop_assume!(Cli::try_parse_from(&line).is_ok());
            repeats(&line);
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a b'c"), r"'a b'\''c'");
        assert_eq!(quoted("--set"), "--set");
        assert_eq!(quoted(""), "''");
    }
}
