//! `ssdyno controller`.

use clap::{Args, Subcommand};
use ssdyno_session::Failure;

#[cfg(target_os = "linux")]
use crate::commands::invite::{self, InviteArgs};
use crate::commands::plan::{self, PlanArgs};
use crate::output::Output;

#[derive(Clone, Debug, Args)]
pub(crate) struct ControllerArgs {
    #[command(subcommand)]
    verb: ControllerVerb,
}

#[derive(Clone, Debug, Subcommand)]
enum ControllerVerb {
    /// Carry out a plan on several hosts: which clients load what, with which share, in which steps.
    Run(PlanArgs),
    /// Print a token with which one worker enrols (`ssdyno worker enrol TOKEN`), and wait until it has.
    #[cfg(target_os = "linux")]
    Invite(InviteArgs),
}

pub(crate) fn run(args: &ControllerArgs, output: Output) -> Result<(), Failure> {
    match &args.verb {
        ControllerVerb::Run(args) => plan::run(args, output),
        #[cfg(target_os = "linux")]
        ControllerVerb::Invite(args) => invite::run(args, output),
    }
}
