//! Options of `run` for one side of a comparison: `--a '--queues single'`.

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Args, Command, FromArgMatches, Id};
use ssdyno_session::{Failure, RunSpec, refuse_real};

use crate::args::LoadArgs;
use crate::diagnose::told;
use crate::real::RealArgs;
use crate::suggest::{DESTROYING, called_here, harmless};

/// The options of a run, without its target.
#[derive(Clone, Debug, Args)]
pub(crate) struct SideArgs {
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) real: RealArgs,
}

impl SideArgs {
    /// As a spec has it.
    pub(crate) fn spec(&self) -> RunSpec {
        RunSpec { real: self.real.spec(), write: self.real.write_spec(), ..self.load.spec() }
    }

    /// The definitions of `run`, for words without the name of a program.
    fn command() -> Command {
        // Tips point at the help of the program, which `--help` within the words would not be.
        SideArgs::augment_args(Command::new("run").no_binary_name(true).disable_help_flag(true))
    }

    /// The spec of a side: what `text`, the value of `option`, says over what these say, which are common to all sides.
    /// Consent to write is common alone.
    pub(crate) fn with(&self, option: &str, text: &str, is_real: bool) -> Result<RunSpec, Failure> {
        let words = shlex::split(text).ok_or_else(|| {
            Failure::usage(format!(
                "`{option}` has an unclosed quotation mark or a final backslash"
            ))
            .with_help("quote as in a shell: --a '--set \"flash.channels=4\"'")
        })?;
        let name = |word: &String| word.split('=').next().unwrap_or_default().to_owned();
        if let Some(consent) = words.iter().map(name).find(|w| DESTROYING.contains(&w.as_str())) {
            return Err(Failure::usage(format!("`{consent}` cannot be used in `{option}`"))
                .with_help("give consent to write once, outside the options of a side"));
        }
        let wrong = |error| refused(option, harmless(error));
        let mut found = SideArgs::command().try_get_matches_from(words).map_err(wrong)?;
        let alone = SideArgs::from_arg_matches(&found).map_err(wrong)?;
        if !is_real {
            let instead = "a device, a file or `null:` as this side";
            refuse_real(&alone.spec().real, &alone.spec().write, instead).map_err(|failure| {
                Failure { message: format!("in `{option}`: {}", failure.message), ..failure }
            })?;
        }
        // A default must not replace a common value.
        let is_default =
            |id: &&Id| found.value_source(id.as_str()) != Some(ValueSource::CommandLine);
        let defaults: Vec<Id> = found.ids().filter(is_default).cloned().collect();
        for id in defaults {
            found.try_clear_id(id.as_str()).map_err(|error| Failure::usage(error.to_string()))?;
        }
        let mut both = self.clone();
        found.ids().for_each(|id| both.leave_out_rivals(id.as_str()));
        // Settings add up, and the later ones win: those of the side come last, whichever option says them.
        let set = [both.load.spec().set, alone.load.spec().set].concat();
        both.update_from_arg_matches(&found).map_err(wrong)?;
        let mut spec = RunSpec { set, ..both.spec() };
        if !is_real {
            (spec.real, spec.write) = Default::default();
        }
        Ok(spec)
    }

    /// Takes out what must not stand beside the option `id`, as the definitions say it in `conflicts_with`.
    fn leave_out_rivals(&mut self, id: &str) {
        let (load, real) = (&mut self.load, &mut self.real);
        match id {
            "duration" => load.requests = None,
            "requests" => (load.duration, load.fio) = (None, None),
            "fio" => {
                (load.workload, load.requests) = (None, None);
                (load.depth, load.block_size) = (None, None);
                (load.read_percent, load.rate) = (None, None);
                load.trace = crate::trace_args::TraceArgs::default();
            }
            "iopoll" => (real.buffered, real.wait) = (false, None),
            "buffered" | "wait" => real.iopoll = false,
            "no_probes" => real.probe_interval = None,
            "probe_interval" => real.no_probes = false,
            _ if replaced_by_fio(id) => load.fio = None,
            _ => {}
        }
    }
}

/// Whether `id` is an option that a job file replaces.
fn replaced_by_fio(id: &str) -> bool {
    let mut command = SideArgs::command();
    command.build();
    let mut fio = command.get_arguments().filter(|arg| arg.get_id() == "fio");
    fio.any(|fio| command.get_arg_conflicts_with(fio).iter().any(|other| other.get_id() == id))
}

/// The error of the words in `option`.
fn refused(option: &str, mut error: clap::Error) -> Failure {
    // It would show the options of `run` as if they were those of the program.
    error.remove(ContextKind::Usage);
    let known_elsewhere = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(wrong)) => called_here(wrong),
        _ => None,
    };
    let (message, rest) = told(&error);
    let usual = "use options of `ssdyno run` that set the load or the host, such as --a '--queues single \
         -d 16'";
    let help = known_elsewhere.or((!rest.is_empty()).then_some(rest));
    Failure::usage(format!("in `{option}`: {message}"))
        .with_help(help.unwrap_or_else(|| usual.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(words: &[&str]) -> SideArgs {
        let found = SideArgs::command().try_get_matches_from(words).unwrap();
        SideArgs::from_arg_matches(&found).unwrap()
    }

    #[test]
    fn options_of_a_side_go_over_the_common_ones() {
        let words = [
            "-d",
            "4",
            "--seed",
            "7",
            "--requests",
            "500",
            "--set",
            "flash.channels=2",
            "--sqpoll",
        ];
        let spec =
            common(&words).with("--a", "-d 16 --queues single -t 1s --jobs 2", true).unwrap();
        assert_eq!((spec.seed, spec.requests, spec.real.jobs), (7, None, Some(2)));
        assert!(spec.real.sqpoll && spec.duration.is_some() && spec.host.queues.is_some());
        assert_eq!(spec.set, ["workload.depth=4", "flash.channels=2", "workload.depth=16"]);
        // On a simulated side nothing is left of the common options of real ones.
        let spec = common(&words).with("--b", "--seed 1", false).unwrap();
        assert_eq!((spec.seed, spec.requests, spec.real), (1, Some(500), Default::default()));
        // A quotation mark holds what belongs together.
        let spec = common(&[]).with("--a", "--set 'flash.channels=3'", false).unwrap();
        assert_eq!(spec.set, ["flash.channels=3"]);
    }

    #[test]
    fn consent_is_not_given_to_a_side() {
        let words = ["--write", "--destroy", "S"];
        let spec = common(&words).with("--a", "-d 2", true).unwrap();
        assert!(spec.write.allowed);
        for text in ["--write", "--destroy=S", "--overwrite -d 1", "-d 1 --size 1GiB"] {
            let failure = common(&[]).with("--b", text, true).unwrap_err();
            assert!(failure.message.contains("cannot be used in `--b`"), "{failure:?}");
        }
    }

    #[test]
    fn wrong_words_are_refused_in_the_name_of_the_option() {
        for (text, part) in [
            ("--quues single", "unexpected argument '--quues'"),
            ("--queues sngle", "invalid value 'sngle'"),
            ("sim:p3600", "unexpected argument 'sim:p3600'"),
            ("-t 1s --requests 5", "cannot be used with"),
            ("--jobs 2", "`real.jobs` is for real targets"),
            ("--set 'a", "quotation mark"),
            ("--iodept 3", "unexpected"),
        ] {
            let failure = common(&[]).with("--b", text, false).unwrap_err();
            assert!(failure.message.contains(part), "{text}: {failure:?}");
            assert!(
                failure.message.contains("--b") && failure.help.is_some(),
                "{text}: {failure:?}"
            );
        }
    }

    /// The entries here must match the definitions.
    #[test]
    fn rivals_are_those_of_the_definitions() {
        let mut command = SideArgs::command();
        command.build();
        let mut pairs: Vec<(String, String)> = Vec::new();
        for arg in command.get_arguments().filter(|arg| arg.get_id() != "fio") {
            for other in command.get_arg_conflicts_with(arg) {
                let pair = (arg.get_id().to_string(), other.get_id().to_string());
                pairs.push(pair);
            }
        }
        let mut known = [
            ("duration", "requests"),
            ("buffered", "iopoll"),
            ("wait", "iopoll"),
            ("no_probes", "probe_interval"),
        ]
        .map(|(one, other)| (one.to_owned(), other.to_owned()));
        pairs.sort();
        known.sort();
        assert_eq!(pairs, known);
        assert!(replaced_by_fio("trace_ids") && !replaced_by_fio("seed"));
    }
}
