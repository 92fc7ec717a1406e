//! The command that repeats a run.

use ssdyno_bench::Method;
use ssdyno_result::{Keep, MethodResult};
use ssdyno_workload::{ObjectIds, Timing, TraceOrigin};

use crate::args::LoadArgs;
use crate::commands::run::RunArgs;
use crate::load::is_trace;
use crate::results;
use crate::trace_args::{TraceArgs, TraceOriginArg};

/// `ssdyno run` with everything that was asked for: the figures, what may be written to, what is kept and
/// where. Not the name of the directory, which a second run cannot have again, nor how progress and
/// result are shown. A serial number that was typed when the tool asked for it is asked for again.
/// No `target` where the job file names them. `method` is what a real run was carried out with: it is written
/// out, so that the same is done again, also where it was searched for.
pub(crate) fn command(
    args: &RunArgs,
    target: Option<&str>,
    method: Option<&MethodResult>,
) -> String {
    // A file whose name looks like an option.
    let named =
        |name: &str| if name.starts_with('-') { format!("./{name}") } else { name.to_owned() };
    let target = target.map(named);
    let mut words = vec!["ssdyno".to_owned(), "run".to_owned()];
    words.extend(target.clone());
    load(&args.load, target.as_deref().unwrap_or_default(), &mut words);
    given(&mut words, args.real.given());
    resolved(args, method, &mut words);
    #[cfg(target_os = "linux")]
    given(&mut words, args.real.write.given());
    match args.keep {
        Keep::All => {}
        Keep::Summary => option(&mut words, "--keep", "summary"),
        Keep::None => option(&mut words, "--keep", "none"),
    }
    if args.csv {
        words.push("--csv".to_owned());
    }
    if args.results.results.as_os_str() != results::DEFAULT {
        option(&mut words, "--results", args.results.results.display());
    }
    if let Some(interval) = args.interval {
        option(&mut words, "--interval", interval);
    }
    given(&mut words, args.timeline.given());
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// The method that was used, where it was not typed.
fn resolved(args: &RunArgs, method: Option<&MethodResult>, words: &mut Vec<String>) {
    let searched = method.filter(|method| args.tune && !method.tuning.is_empty());
    if let Some(method) = searched {
        words.extend(method.options.split(' ').map(str::to_owned));
        if let (true, [core]) = (args.real.pin.is_empty() && method.pinned, method.cores.as_slice())
        {
            option(words, "--pin", core);
        }
    } else if method.is_some() && args.real.method.is_none() {
        option(words, "--method", Method::default().name());
    }
}

fn given(words: &mut Vec<String>, options: Vec<(&'static str, Option<String>)>) {
    for (name, value) in options {
        match value {
            Some(value) => option(words, name, value),
            None => words.push(name.to_owned()),
        }
    }
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
    let is_trace = load.fio.is_none() && is_trace(load.workload(target));
    trace(&load.trace, is_trace, words);
    load.host.given().into_iter().for_each(|(name, value)| option(words, name, value));
}

/// The origin of time is written out where times count, though it was not given: who reads the line
/// should not need to know the rule.
fn trace(trace: &TraceArgs, is_trace: bool, words: &mut Vec<String>) {
    if let Some(format) = trace.trace_format {
        option(words, "--trace-format", format);
    }
    match trace.timing {
        None => {}
        Some(Timing::Original) => option(words, "--timing", "original"),
        Some(Timing::Scaled(factor)) => option(words, "--timing", format!("scaled={factor}")),
        Some(Timing::AsFastAsPossible { .. }) => option(words, "--timing", "fast"),
    }
    let default = is_trace.then_some(TraceOriginArg::First);
    if let Some(origin) = trace.trace_origin.or(default) {
        option(words, "--trace-origin", TraceOrigin::from(origin).name());
    }
    if let Some(depth) = trace.trace_depth {
        option(words, "--trace-depth", depth);
    }
    trace.trace_device.iter().for_each(|device| option(words, "--trace-device", device));
    if let Some(slot) = trace.trace_slot {
        option(words, "--trace-slot", slot);
    }
    if let Some(ids) = trace.trace_ids {
        option(words, "--trace-ids", ObjectIds::from(ids).name());
    }
    if let Some(columns) = &trace.trace_columns {
        option(words, "--trace-columns", columns);
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
    use proptest::prelude::*;
    use ssdyno_result::TunedMethod;

    use super::*;
    use crate::args::{Cli, Verb};

    /// Options that a replay leaves out on purpose.
    const LEFT_OUT: [&str; 5] = ["help", "json", "name", "no-live", "tune"];

    /// Each option with a value that is not its default, and what it cannot do without.
    const SAMPLES: [(&str, &str); 63] = [
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
        ("method", "efficient"),
        ("batch", "8"),
        ("batch", "all"),
        ("submit", "2"),
        ("wait", "spin"),
        ("method", "default"),
        ("timeout", "90s"),
        ("no-probes", ""),
        ("probe-interval", "200ms"),
        ("write", ""),
        ("destroy", "S3RIAL $HOME"),
        ("overwrite", ""),
        ("size", "1000000001B"),
        ("keep", "none"),
        ("csv", ""),
        ("results", "~/my runs"),
        ("interval", "10ms"),
        ("timeline", "a/timeline.json"),
        ("timeline-from", "3ms"),
        ("timing", "fast"),
        ("timing", "original"),
        ("until", "0.3%"),
        ("for", "2h"),
        ("size", "64GiB"),
        ("timeout", "1.25min"),
        ("requests", "1"),
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

    /// `line` and what is printed for it ask for the same.
    fn repeats(line: &[String]) {
        let mut asked = parsed(line);
        let printed = command(&asked, Some(asked.target()), None);
        let again = parsed(&words(&printed));
        // Defaults are written out.
        asked.target = Some(asked.target().to_owned());
        if asked.load.fio.is_none() {
            asked.load.workload = Some(asked.load.workload(asked.target()).to_owned());
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
        for (name, value) in SAMPLES {
            let needs = match name {
                "destroy" | "overwrite" => vec![("write", "")],
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
        let printed = |options: &[(&str, &str)]| {
            let args = parsed(&line(options));
            command(&args, Some(args.target()), None)
        };
        let line = printed(&[("workload", "a.csv"), ("trace-device", "1"), ("trace-device", "7")]);
        assert!(line.contains(" --trace-origin first --trace-device 1 --trace-device 7"), "{line}");
        let line = printed(&[("workload", "a.csv"), ("trace-origin", "absolute")]);
        assert!(line.contains(" --trace-origin absolute"), "{line}");
        assert!(!printed(&[("workload", "mixed")]).contains("--trace-origin"));
    }

    #[test]
    fn a_file_that_looks_like_an_option_stays_a_file() {
        let args = parsed(&["ssdyno", "run", "--", "-x"].map(str::to_owned));
        assert_eq!(words(&command(&args, Some(args.target()), None))[2], "./-x");
    }

    #[test]
    fn the_method_of_a_real_run_is_written_out() {
        let printed = |options: &[(&str, &str)], method: &MethodResult| {
            command(&parsed(&line(options)), Some("/dev/x"), Some(method))
        };
        let mut method =
            MethodResult { options: "--method default".to_owned(), ..Default::default() };
        assert!(printed(&[], &method).contains(" --method default"));
        let typed = printed(&[("method", "latency"), ("batch", "2")], &method);
        assert!(
            typed.contains("--method latency --batch 2") && !typed.contains("default"),
            "{typed}"
        );
        // Searched for: what was found is done again, and not searched for once more.
        method.options = "--batch 16 --submit 2 --wait spin".to_owned();
        method.tuning = vec![TunedMethod::default()];
        (method.cores, method.pinned) = (vec![1], true);
        let found = printed(&[("tune", "")], &method);
        assert!(found.contains(" --batch 16 --submit 2 --wait spin --pin 1"), "{found}");
        assert!(!found.contains("--tune"), "{found}");
        repeats(&words(&found));
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
