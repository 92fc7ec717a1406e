//! `ssdyno worker` and `ssdyno prober`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use ssdyno_cluster::{MetricsListener, WorkerListener, WorkerService, serve_listener, serve_stdio};
use ssdyno_session::Failure;

use crate::consent::ConsentArgs;
use crate::output::{Output, tell};
use crate::program;
use crate::progress::interrupted;

/// How the program waits for controllers.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArgs {
    /// Listen for controllers at this address, such as 127.0.0.1:7801; port 0 selects a free port. An
    /// address other than loopback uses TLS and accepts only the controller that enrolled this worker.
    #[arg(
        long,
        value_name = "ADDRESS",
        required_unless_present = "stdio",
        conflicts_with = "stdio"
    )]
    pub(crate) listen: Option<SocketAddr>,
    /// Serve one controller on standard input and output, and exit when it disconnects.
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Serve metrics for Prometheus at this loopback address, such as 127.0.0.1:9801
    /// (http://ADDRESS/metrics); port 0 selects a free port.
    #[arg(long, value_name = "ADDRESS", requires = "listen")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Use TLS also on loopback.
    #[cfg(target_os = "linux")]
    #[arg(long, requires = "listen")]
    pub(crate) tls: bool,
    /// Directory with the certificate of this worker [default: $XDG_CONFIG_HOME/ssdyno/worker].
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "DIR", requires = "listen")]
    pub(crate) identity: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct WorkerArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<WorkerVerb>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    /// Directory for the rows (`run --keep all`) until the controller has fetched them [default: the
    /// directory for temporary files].
    #[arg(long, value_name = "DIR")]
    pub(crate) rows: Option<PathBuf>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum WorkerVerb {
    /// Enrol this worker with the token that `ssdyno controller invite` printed. It may then listen on
    /// addresses other than loopback.
    #[cfg(target_os = "linux")]
    Enrol(EnrolArgs),
}

#[cfg(target_os = "linux")]
#[derive(Clone, Debug, Args)]
pub(crate) struct EnrolArgs {
    /// The token; - reads it from standard input, which keeps it out of process lists.
    pub(crate) token: String,
    /// Name or address under which controllers reach this worker. May be repeated [default: the name of
    /// this machine, and the address from which it reaches the controller].
    #[arg(long, value_name = "HOST")]
    pub(crate) name: Vec<String>,
    /// Directory for the certificate and its key [default: $XDG_CONFIG_HOME/ssdyno/worker].
    #[arg(long, value_name = "DIR")]
    pub(crate) identity: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ProberArgs {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

pub(crate) fn run(args: &WorkerArgs, output: Output) -> Result<(), Failure> {
    match &args.verb {
        #[cfg(target_os = "linux")]
        Some(WorkerVerb::Enrol(args)) => return enrol(args, output),
        #[cfg(not(target_os = "linux"))]
        Some(verb) => match *verb {},
        None => {}
    }
    let worker = WorkerService::new(args.consent.consent(), env!("CARGO_PKG_VERSION"))
        .built_from(program::commit());
    let worker = match &args.rows {
        Some(directory) => worker.keep_rows_in(directory.clone()),
        None => worker,
    };
    serve(&args.serve, &worker, output)
}

pub(crate) fn run_prober(args: &ProberArgs, output: Output) -> Result<(), Failure> {
    serve(&args.serve, &WorkerService::prober(env!("CARGO_PKG_VERSION")), output)
}

fn serve(args: &ServeArgs, worker: &WorkerService, output: Output) -> Result<(), Failure> {
    let Some(address) = args.listen.filter(|_| !args.stdio) else {
        return serve_stdio(worker, interrupted);
    };
    let mut listener = bind(args, address)?.on_refused(|why| tell(&format!("{why}\n")));
    let metrics = args.metrics.map(MetricsListener::bind).transpose()?;
    let bound = listener.address();
    let at = metrics.as_ref().map(|metrics| format!("http://{}/metrics", metrics.address()));
    if let Some(metrics) = metrics {
        listener = listener.with_metrics(metrics);
    }
    // The starting program waits for this line.
    output.either(
        || {
            let at = at.as_ref().map_or(String::new(), |at| format!("metrics at {at}\n"));
            format!("listening at {bound}\n{at}")
        },
        || {
            let mut told = json!({ "listening": bound.to_string() });
            if let Some(at) = &at {
                told["metrics"] = json!(at);
            }
            told
        },
    )?;
    serve_listener(listener, worker, interrupted)
}

#[cfg(target_os = "linux")]
fn bind(args: &ServeArgs, address: SocketAddr) -> Result<WorkerListener, Failure> {
    if !args.tls && args.identity.is_none() && address.ip().is_loopback() {
        return WorkerListener::bind(address);
    }
    let directory = crate::hosts::identity(args.identity.as_deref(), "worker")?;
    WorkerListener::bind_tls(address, &directory)
}

#[cfg(not(target_os = "linux"))]
fn bind(_: &ServeArgs, address: SocketAddr) -> Result<WorkerListener, Failure> {
    WorkerListener::bind(address)
}

#[cfg(target_os = "linux")]
fn enrol(args: &EnrolArgs, output: Output) -> Result<(), Failure> {
    let mut token = args.token.clone();
    if token == "-" {
        token.clear();
        std::io::stdin().read_line(&mut token).map_err(|error| {
            Failure::usage(format!("cannot read a token from standard input: {error}"))
        })?;
    }
    let directory = crate::hosts::identity(args.identity.as_deref(), "worker")?;
    let enrolled = ssdyno_cluster::enrol_worker(&token, &directory, &args.name)?;
    let (names, until) = (enrolled.names.join(", "), &enrolled.valid_until);
    output.either(
        || format!("enrolled as {names} until {until}\n"),
        || json!({ "names": enrolled.names, "valid_until": until, "file": enrolled.file }),
    )
}
