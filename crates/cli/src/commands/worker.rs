//! `ssdyno worker`.

use std::net::SocketAddr;

use clap::Args;
use serde_json::json;
use ssdyno_cluster::{WorkerListener, WorkerService, serve_listener, serve_stdio};
use ssdyno_session::Failure;

use crate::consent::ConsentArgs;
use crate::output::Output;
use crate::progress::interrupted;

#[derive(Clone, Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Listen for controllers at this address of loopback, such as 127.0.0.1:7801; with port 0 one that is free.
    /// Others reach it through ssh (`ssh -L`).
    #[arg(
        long,
        value_name = "ADDRESS",
        required_unless_present = "stdio",
        conflicts_with = "stdio"
    )]
    pub(crate) listen: Option<SocketAddr>,
    /// Serve the one controller at standard input and output, and end with it.
    #[arg(long)]
    pub(crate) stdio: bool,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}

pub(crate) fn run(args: &WorkerArgs, output: Output) -> Result<(), Failure> {
    let worker = WorkerService::new(args.consent.consent(), env!("CARGO_PKG_VERSION"));
    let Some(address) = args.listen.filter(|_| !args.stdio) else {
        return serve_stdio(&worker, interrupted);
    };
    let listener = WorkerListener::bind(address)?;
    let bound = listener.address();
    // Who starts it waits for this line.
    output.either(
        || format!("listening at {bound}\n"),
        || json!({ "listening": bound.to_string() }),
    )?;
    serve_listener(listener, &worker, interrupted)
}
