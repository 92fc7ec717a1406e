//! Help of two lengths: `-h` has what people type each day, `--help` everything, with examples at its end.

use clap::{Command, CommandFactory};

use crate::verbs::Cli;

/// Options that `-h` shows for a verb; verbs that are not here show all theirs.
const EVERYDAY: [(&str, &[&str]); 5] = [
    (
        "run",
        &[
            "target",
            "workload",
            "duration",
            "requests",
            "until",
            "depth",
            "block_size",
            "read_percent",
            "rate",
            "set",
            "seed",
            "write",
            "name",
            "json",
            "hosts",
            "require",
            "runs",
            "sweep",
        ],
    ),
    (
        "compare",
        &[
            "sides",
            "workload",
            "duration",
            "requests",
            "depth",
            "block_size",
            "read_percent",
            "rate",
            "set",
            "seed",
            "sort",
            "top",
            "runs",
            "a",
            "b",
            "fail_if_slower",
            "json",
        ],
    ),
    (
        "sweep",
        &[
            "target",
            "vary",
            "objective",
            "require",
            "sampling",
            "designs",
            "workload",
            "requests",
            "duration",
            "set",
            "resume",
            "csv",
            "json",
        ],
    ),
    ("pts", &["target", "test", "quick", "set", "write", "destroy", "json"]),
    ("profile", &["target", "time", "method", "ops", "sizes", "span", "set", "write", "json"]),
];

/// Examples of each verb: what it does, and the arguments.
const EXAMPLES: [(&str, &[(&str, &str)]); 16] = [
    (
        "run",
        &[
            ("a simulated drive for ten seconds of device time", "run sim:nvme-tlc -t 10s"),
            (
                "random reads, 16 outstanding, 8 KiB each",
                "run sim:p3600 -w randread -d 16 -b 8k -t 1s",
            ),
            ("70 % reads at 20 000 requests per second", "run sim:nvme-tlc -r 70 --rate 20k -t 1s"),
            ("another design of the flash", "run sim:config-a -w randwrite -s flash.channels=16"),
            (
                "a real drive, read-only, until the interval of p99 is 2 %",
                "run /dev/nvme0n1 --until p99=2%",
            ),
            (
                "throughput and latency by depth, and the knee",
                "run sim:p3600 -w randread --requests 20k --sweep depth=1..256",
            ),
            (
                "the highest rate with p99 within 1 ms",
                "run sim:nvme-tlc -w randread --requests 20k --latency-target p99=1ms",
            ),
            ("from two hosts at once", "run /dev/nvme1n1 --hosts a,admin@b"),
        ],
    ),
    (
        "compare",
        &[
            ("two stored runs", "compare results/first results/second"),
            (
                "two drives under one load",
                "compare sim:nvme-tlc sim:config-a -w oltp --requests 200k",
            ),
            (
                "a single queue and one queue per core, five runs each",
                "compare sim:p3600 sim:p3600 --requests 20k --runs 5 --b=--queues=single",
            ),
        ],
    ),
    (
        "sweep",
        &[
            (
                "a grid of three designs",
                "sweep sim:config-a --vary flash.channels=2,4,8 --requests 5k --objective p99,cost",
            ),
            (
                "latency by depth",
                "sweep sim:p3600 --vary workload.depth=1..256*2 -w randread --requests 20k",
            ),
        ],
    ),
    (
        "pts",
        &[
            ("a short test of a simulated drive", "pts sim:nvme-tlc --quick"),
            (
                "a real drive; destroys its data",
                "pts /dev/nvme1n1 --test latency --write --destroy SERIAL",
            ),
        ],
    ),
    (
        "profile",
        &[
            ("reads of a drive in three minutes", "profile /dev/nvme0n1 --ops read --time 3m"),
            ("a simulated disk", "profile sim:exos-x20 --time 30s"),
        ],
    ),
    (
        "papers",
        &[
            ("one table", "papers S3/table3"),
            ("a whole paper", "papers S3"),
            ("all runs again", "papers S1 --fresh"),
        ],
    ),
    ("pci", &[("this machine", "pci sys"), ("a simulated one", "pci sim:p3600")]),
    ("verify", &[("a file, which is created", "verify ./scratch --write --size 1GiB")]),
    ("probe", &[("one drive and its machine", "probe --device /dev/nvme0n1")]),
    ("worker", &[("for controllers on this machine", "worker --listen 127.0.0.1:7801")]),
    ("ui", &[("another port, without a browser", "ui --listen 127.0.0.1:8080 --no-open")]),
    ("list", &[("one kind", "list workloads"), ("devices that match a word", "list devices nvme")]),
    ("show", &[("a file to edit", "show sim:nvme-tlc"), ("a workload", "show oltp")]),
    (
        "explain",
        &[
            ("a key of a device", "explain ftl.page.cleaning_pace"),
            ("a figure of a result", "explain latency_ns.p99"),
            ("all keys of that name", "explain size"),
        ],
    ),
    ("schema", &[("of a device file", "schema device")]),
    ("recover", &[("a run that was killed", "recover results/first")]),
];

/// The command line with both lengths of help.
pub(crate) fn command() -> Command {
    let mut command = Cli::command();
    for (verb, shown) in EVERYDAY {
        command = command.mut_subcommand(verb, |verb| {
            let verb = verb.after_help("--help shows all options and examples.");
            verb.mut_args(|arg| match shown.contains(&arg.get_id().as_str()) {
                true => arg,
                false => arg.hide_short_help(true),
            })
        });
    }
    for (verb, examples) in EXAMPLES {
        // A verb of another system only.
        if command.find_subcommand(verb).is_none() {
            continue;
        }
        command = command.mut_subcommand(verb, |verb| {
            let lines =
                examples.iter().map(|(what, args)| format!("  # {what}\n  ssdyno {args}\n"));
            let examples = format!("Examples:\n{}", lines.collect::<String>());
            let before = verb.get_after_long_help().map(|text| format!("{text}\n\n"));
            verb.after_long_help(before.unwrap_or_default() + examples.trim_end())
        });
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_accepted_and_shown() {
        for (verb, examples) in EXAMPLES {
            let mut command = command();
            let Some(found) = command.find_subcommand_mut(verb) else { continue };
            let help = found.render_long_help().to_string();
            for (what, args) in examples {
                assert!(args.starts_with(verb) && help.contains(args), "{what}: {help}");
                let parsed = super::command()
                    .try_get_matches_from(std::iter::once("ssdyno").chain(args.split_whitespace()));
                assert!(parsed.is_ok(), "{args}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn short_help_fits_a_screen_and_names_options_that_exist() {
        for (verb, shown) in EVERYDAY {
            let mut command = command();
            let found = command.find_subcommand_mut(verb).unwrap();
            let ids: Vec<String> =
                found.get_arguments().map(|arg| arg.get_id().to_string()).collect();
            for id in shown {
                assert!(
                    ids.iter().any(|known| known == id) || *id == "json",
                    "{verb}: {id} of {ids:?}"
                );
            }
            let lines = found.render_help().to_string().lines().count();
            assert!(
                lines <= 60 && lines < found.render_long_help().to_string().lines().count(),
                "{lines}"
            );
        }
    }

    #[test]
    fn every_verb_that_does_something_has_an_example() {
        let none = ["completion", "man", "prober", "controller", "help"];
        for verb in Cli::command().get_subcommands() {
            let has = EXAMPLES.iter().any(|(name, _)| *name == verb.get_name());
            assert!(has || none.contains(&verb.get_name()), "{}", verb.get_name());
        }
    }
}
