//! `ssdyno worker`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use clap::Args;
use serde_json::json;
use ssdyno_cluster::{WorkerConsent, WorkerListener, WorkerService, serve_listener, serve_stdio};
use ssdyno_session::{Failure, WriteSpec};

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
    /// Let controllers write to this target, by the name that they use for it. May be given several times. Without it
    /// every target is opened read-only, whatever a controller says.
    #[arg(long, value_name = "TARGET")]
    pub(crate) write: Vec<String>,
    /// Serial numbers of the devices among them whose contents may be destroyed.
    #[arg(long, value_name = "SERIAL", requires = "write")]
    pub(crate) destroy: Vec<String>,
    /// Allow overwriting files among them that ssdyno did not make.
    #[arg(long, requires = "write")]
    pub(crate) overwrite: bool,
}

impl WorkerArgs {
    fn consent(&self) -> WorkerConsent {
        let write = WriteSpec {
            allowed: true,
            destroy: self.destroy.clone(),
            overwrite: self.overwrite,
            ..WriteSpec::default()
        };
        let targets: BTreeMap<_, _> =
            self.write.iter().map(|name| (name.clone(), write.clone())).collect();
        WorkerConsent { targets }
    }
}

pub(crate) fn run(args: &WorkerArgs, output: Output) -> Result<(), Failure> {
    let worker = WorkerService::new(args.consent(), env!("CARGO_PKG_VERSION"));
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
