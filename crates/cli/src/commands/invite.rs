//! `ssdyno controller invite`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use ssdyno_block::units::Span;
use ssdyno_cluster::{Invitation, InvitationOptions};
use ssdyno_session::Failure;

use crate::args::positive_span;
use crate::commands::enrolled::IdentityArgs;
use crate::output::{Output, tell};
use crate::progress::interrupted;

#[derive(Clone, Debug, Args)]
pub(crate) struct InviteArgs {
    /// Wait for the worker at this address; port 0 selects a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:7809")]
    listen: SocketAddr,
    /// Name or address under which the worker reaches this machine [default: the address of --listen; for
    /// 0.0.0.0 the name of this machine].
    #[arg(long, value_name = "HOST")]
    reach: Option<String>,
    /// Time for which the token is valid, such as 15m; at most 24 hours.
    #[arg(long, value_name = "TIME", default_value = "900s", value_parser = positive_span)]
    valid_for: Span,
    /// Number of days for which the certificate of the worker is valid. Enrol the worker again to renew it.
    #[arg(long, value_name = "DAYS", default_value_t = 365)]
    hosts_valid: u32,
    /// Name or address of the worker for `run --hosts`. May be repeated [default: the name of the worker's
    /// machine, and the address from which the worker connects].
    #[arg(long, value_name = "HOST")]
    name: Vec<String>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(args: &InviteArgs, output: Output) -> Result<(), Failure> {
    let options = InvitationOptions {
        listen: args.listen,
        reach: args.reach.clone(),
        valid_for: Duration::from_nanos(args.valid_for.0.as_ns()),
        worker_days: args.hosts_valid,
        names: args.name.clone(),
    };
    let invitation = Invitation::open(&args.identity.directory()?, options)?;
    let (token, place) = (invitation.token(), invitation.place());
    output.either(
        || format!("{token}\n"),
        || json!({ "token": token, "waiting_at": place, "valid_for_s": args.valid_for.0.as_s_f64() }),
    )?;
    tell(&format!("on the worker: ssdyno worker enrol TOKEN (waiting at {place})\n"));
    let worker = invitation.wait(interrupted, &mut |why| tell(&format!("{why}\n")))?;
    tell(&format!("enrolled {}: {}\n", worker.peer, worker.names.join(", ")));
    Ok(())
}
