//! The command line of SSDyno: arguments, progress and printing around the libraries.
//!
//! Key parts: `verbs` (all verbs), `args` (what several of them take: each group of options gives its part of a
//! [`RunSpec`](ssdyno_session::RunSpec)), `commands` (a file for each verb, with its arguments), `replay` (the
//! command of a spec), `options` (keys in texts become options), `task` (one way to carry out what is no run), `memory`
//! (the allocator, and what is said when it has nothing left), `diagnose` (errors with their place and the exit codes).
//!
//! Errors: every `Failure` has one message, a place where there is one, help and an exit code; with
//! `--json` it is an object on standard output.
//!
//! Not here: what a run is made from and what can be wrong with it (crate session), models, statistics, file
//! formats of results.

mod args;
mod columns;
mod commands;
mod consent;
mod dask;
mod diagnose;
mod gates;
mod help;
mod help_texts;
mod host;
mod hosts;
mod memory;
mod options;
mod output;
mod program;
mod progress;
mod real;
mod replay;
mod results;
mod scheduler_files;
mod screen;
mod side;
mod suggest;
mod swept;
mod task;
mod timeline;
mod trace_args;
mod verbs;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use diagnose::exit_code;
use output::{Output, report};
use ssdyno_session::{Failure, FailureKind};
use verbs::{Cli, Verb};

#[global_allocator]
static MEMORY: memory::OrEnd = memory::OrEnd;

fn main() -> ExitCode {
    let parsed = help::command().try_get_matches().and_then(|found| Cli::from_arg_matches(&found));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return refused(&suggest::harmless(error)),
    };
    let output = Output { json: cli.json };
    memory::tell_as_json(cli.json);
    progress::watch_interrupts(output);
    #[cfg(target_os = "linux")]
    ssdyno_bench::outlive_file_size_limit();
    let done = match &cli.verb {
        Verb::Run(args) => match (&args.sweep, &args.latency_target) {
            (Some(swept), _) => commands::swept::run(args, swept, output),
            (None, Some(target)) => commands::swept::search(args, target, output),
            (None, None) => commands::run::run(args, output),
        },
        Verb::Compare(args) => commands::compare::run(args, output),
        Verb::Sweep(args) => commands::sweep::run(args, output),
        Verb::Pts(args) => commands::pts::run(args, output),
        Verb::Profile(args) => commands::profile::run(args, output),
        Verb::Papers(args) => commands::papers::run(args, output),
        Verb::Pci(args) => commands::pci::run(args, output),
        #[cfg(target_os = "linux")]
        Verb::Verify(args) => commands::verify::run(args, output),
        #[cfg(target_os = "linux")]
        Verb::Probe(args) => commands::probe::run(args, output),
        Verb::Controller(args) => commands::controller::run(args, output),
        Verb::Worker(args) => commands::worker::run(args, output),
        Verb::Prober(args) => commands::worker::run_prober(args, output),
        Verb::Ui(args) => commands::ui::run(args, output),
        Verb::Recover(args) => commands::recover::run(args, output),
        Verb::Explain(args) => commands::explain::run(args, output),
        Verb::List(args) => commands::list::run(args, output),
        Verb::Show(args) => commands::show::run(args, output),
        Verb::Schema(args) => commands::schema::run(args, output),
        Verb::Completion(args) => commands::completion::run(args, help::command(), output),
        Verb::Man(args) => commands::man::run(args, help::command(), output),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure, output),
    }
}

/// Errors that clap reports in an unhelpful way: values with a minus sign, which it takes for options, and arguments
/// that are not text, which it does not name.
fn misread(error: &clap::Error, mut args: impl Iterator<Item = OsString>) -> Option<Failure> {
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else {
                return None;
            };
            if let Some(help) = suggest::called_here(wrong) {
                let message = format!("there is no option `{wrong}`");
                return Some(Failure::usage(message).with_help(help));
            }
            let is_value = wrong.strip_prefix('-')?.starts_with(|c: char| c.is_ascii_digit());
            let whole = args.find(|arg| arg.to_string_lossy().starts_with(wrong.as_str()));
            let whole = whole.filter(|_| is_value)?;
            let message =
                format!("`{}` is below zero and is not an option", whole.to_string_lossy());
            Some(Failure::usage(message).with_help("no value may be negative: leave the `-` out"))
        }
        ErrorKind::InvalidUtf8 => {
            let wrong = args.find(|arg| arg.to_str().is_none())?;
            let message = format!("the argument `{}` is not UTF-8", wrong.to_string_lossy());
            let help = "rename the file, or make a link to it with another name (`ln -s`)";
            Some(Failure::usage(message).with_help(help))
        }
        _ => None,
    }
}

/// Wrong arguments, or a call for help, which clap treats alike.
fn refused(error: &clap::Error) -> ExitCode {
    let is_help = !error.use_stderr();
    let json = std::env::args_os().skip(1).take_while(|a| a != "--").any(|a| a == "--json");
    if let Some(failure) = misread(error, std::env::args_os().skip(1)) {
        return report(&failure, Output { json });
    }
    if json && !is_help {
        let (message, help) = diagnose::told(error);
        let failure = Failure::usage(message).with_help(help);
        return report(&failure, Output { json });
    }
    // A closed pipe is not a reason to fail.
    let _ = error.print();
    if is_help { ExitCode::SUCCESS } else { ExitCode::from(exit_code(FailureKind::Usage)) }
}
