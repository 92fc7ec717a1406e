//! `ssdyno ui`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
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
    /// Serve the page at this loopback address; port 0 selects a free port. Reach it from other machines
    /// through ssh (`ssh -L`).
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7800")]
    pub(crate) listen: SocketAddr,
    /// Print the address without opening a browser.
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Write the session token to this file, for programs that read the metrics. Only the owner can read a
    /// new file; an existing file keeps its permissions.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Directory that contains the results directories.
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
    if let Some(file) = &args.token_file {
        write_token(file, server.token())?;
    }
    // The starting program waits for this line.
    output.either(|| format!("{address}\n"), || json!({ "address": address }))?;
    if !args.no_open && !open(&address) {
        tell("no browser could be started: open the address in one\n");
    }
    server.serve(interrupted)
}

fn write_token(file: &Path, token: &str) -> Result<(), Failure> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(file).and_then(|mut open| open.write_all(token.as_bytes()));
    written.map_err(|error| {
        Failure::usage(format!("cannot write the token to {}: {error}", file.display()))
            .with_key("token_file")
            .with_help("name a file in a directory that you may write to")
    })
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
