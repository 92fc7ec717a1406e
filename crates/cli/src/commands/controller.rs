//! `ssdyno controller`.

use clap::{Args, Subcommand};
use ssdyno_session::Failure;

#[cfg(target_os = "linux")]
use crate::commands::enrolled::{self, ListArgs, RenewArgs, RevokeArgs};
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
    /// List the certificates of enrolled workers: names, serial numbers, dates, and whether they are valid.
    #[cfg(target_os = "linux")]
    List(ListArgs),
    /// Take back the certificate of a worker: this controller refuses to connect to it from then on.
    #[cfg(target_os = "linux")]
    Revoke(RevokeArgs),
    /// Replace the key and the certificate of this controller, and take back the old certificate: workers refuse it from
    /// the next connection of this controller on.
    #[cfg(target_os = "linux")]
    Renew(RenewArgs),
}

pub(crate) fn run(args: &ControllerArgs, output: Output) -> Result<(), Failure> {
    match &args.verb {
        ControllerVerb::Run(args) => plan::run(args, output),
        #[cfg(target_os = "linux")]
        ControllerVerb::Invite(args) => invite::run(args, output),
        #[cfg(target_os = "linux")]
        ControllerVerb::List(args) => enrolled::list(args, output),
        #[cfg(target_os = "linux")]
        ControllerVerb::Revoke(args) => enrolled::revoke(args, output),
        #[cfg(target_os = "linux")]
        ControllerVerb::Renew(args) => enrolled::renew(args, output),
    }
}
