//! `ssdyno ui`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use ssdyno_cluster::Hosts;
use ssdyno_session::Failure;
use ssdyno_web::{DeskOptions, PageServer};

use crate::consent::ConsentArgs;
use crate::hosts::ReachArgs;
use crate::output::{Output, tell};
use crate::progress::interrupted;
use crate::results::{DEFAULT, HEADING};

#[derive(Clone, Debug, Args)]
pub(crate) struct UiArgs {
    /// Serve the page at this address of loopback; with port 0 at one that is free. Others reach it through ssh
    /// (`ssh -L`).
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7800")]
    pub(crate) listen: SocketAddr,
    /// Print the address and open no browser.
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Where directories of runs lie.
    #[arg(long, value_name = "DIR", default_value = DEFAULT, help_heading = HEADING)]
    pub(crate) results: PathBuf,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

pub(crate) fn run(args: &UiArgs, output: Output) -> Result<(), Failure> {
    let hosts = Hosts { probe_every: Some(Duration::from_secs(1)), ..args.reach.hosts() };
    let (results, consent) = (args.results.clone(), args.consent.consent());
    let server = PageServer::bind(args.listen, DeskOptions { results, consent, hosts })?;
    let address = server.address();
    // Who starts it waits for this line.
    output.either(|| format!("{address}\n"), || json!({ "address": address }))?;
    if !args.no_open && !open(&address) {
        tell("no browser could be started: open the address in one\n");
    }
    server.serve(interrupted)
}

/// Opens `address` in the browser of this desktop, if there is one.
fn open(address: &str) -> bool {
    let (program, first): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("cmd", &["/C", "start", ""])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(first).arg(address);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
