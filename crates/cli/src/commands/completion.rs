//! `ssdyno completion`.

use clap::CommandFactory;
use serde_json::json;

use crate::args::{Cli, CompletionArgs};
use crate::diagnose::Failure;
use crate::output::Output;

pub(crate) fn run(args: &CompletionArgs, output: Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ssdyno", &mut script);
    let script = String::from_utf8_lossy(&script);
    output.either(
        || script.to_string(),
        || json!({ "shell": args.shell.to_string(), "script": script }),
    )
}
