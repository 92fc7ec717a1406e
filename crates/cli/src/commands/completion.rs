//! `ssdyno completion`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde_json::json;
use ssdyno_session::Failure;

use crate::args::Cli;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell.
    pub(crate) shell: Shell,
}

pub(crate) fn run(args: &CompletionArgs, output: Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ssdyno", &mut script);
    let script = String::from_utf8_lossy(&script);
    output.either(
        || script.to_string(),
        || json!({ "shell": args.shell.to_string(), "script": script }),
    )
}
