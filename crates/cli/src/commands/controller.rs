//! `ssdyno controller`.

use clap::{Args, Subcommand};
use ssdyno_session::Failure;

#[cfg(target_os = "linux")]
use crate::commands::enrolled::{self, IdentityArgs, RevokeArgs};
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
    /// Run a plan on several hosts. A plan lists clients, their shares of the load, and steps.
    Run(PlanArgs),
    /// Print a token for one worker (`ssdyno worker enrol TOKEN`), and wait until the worker has enrolled.
    #[cfg(target_os = "linux")]
    Invite(InviteArgs),
    /// List the certificates of enrolled workers: names, serial numbers, dates and states.
    #[cfg(target_os = "linux")]
    List(IdentityArgs),
    /// Revoke the certificate of a worker. This controller then refuses to connect to the worker.
    #[cfg(target_os = "linux")]
    Revoke(RevokeArgs),
    /// Replace the key and the certificate of this controller, and revoke the old certificate. A worker
    /// refuses the old certificate after the next connection from this controller.
    #[cfg(target_os = "linux")]
    Renew(IdentityArgs),
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
