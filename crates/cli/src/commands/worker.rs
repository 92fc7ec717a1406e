//! `ssdyno worker` and `ssdyno prober`.

use std::net::SocketAddr;

use clap::Args;
use serde_json::json;
use ssdyno_cluster::{WorkerListener, WorkerService, serve_listener, serve_stdio};
use ssdyno_session::Failure;

use crate::consent::ConsentArgs;
use crate::output::Output;
use crate::progress::interrupted;

/// Where controllers are waited for.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArgs {
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
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ProberArgs {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

pub(crate) fn run(args: &WorkerArgs, output: Output) -> Result<(), Failure> {
    let consent = args.consent.consent();
    serve(&args.serve, &WorkerService::new(consent, env!("CARGO_PKG_VERSION")), output)
}

pub(crate) fn run_prober(args: &ProberArgs, output: Output) -> Result<(), Failure> {
    serve(&args.serve, &WorkerService::prober(env!("CARGO_PKG_VERSION")), output)
}

fn serve(args: &ServeArgs, worker: &WorkerService, output: Output) -> Result<(), Failure> {
    let Some(address) = args.listen.filter(|_| !args.stdio) else {
        return serve_stdio(worker, interrupted);
    };
    let listener = WorkerListener::bind(address)?;
    let bound = listener.address();
    // Who starts it waits for this line.
    output.either(
        || format!("listening at {bound}\n"),
        || json!({ "listening": bound.to_string() }),
    )?;
    serve_listener(listener, worker, interrupted)
}
