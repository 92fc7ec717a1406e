//! `ssdyno completion`.

use clap::{Args, Command};
use clap_complete::Shell;
use serde_json::json;
use ssdyno_session::Failure;

use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell.
    pub(crate) shell: Shell,
}

pub(crate) fn run(
    args: &CompletionArgs,
    mut program: Command,
    output: Output,
) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "ssdyno", &mut script);
    let script = String::from_utf8_lossy(&script);
    output.either(
        || script.to_string(),
        || json!({ "shell": args.shell.to_string(), "script": script }),
    )
}
