//! The options that name other machines.

use clap::Args;
use ssdyno_cluster::{HostAddress, Hosts, RemoteStart};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Other machines")]
pub(crate) struct HostsArgs {
    /// Load it from these machines together, each its own target of this name: USER@HOST or HOST, where ssh
    /// starts `ssdyno worker`, or HOST:PORT, where one listens. One result, over the time in which all of them were running.
    #[arg(long, value_name = "HOST", value_delimiter = ',',
          conflicts_with_all = ["csv", "timeline", "tune"])]
    pub(crate) hosts: Vec<HostAddress>,
    /// The ssh for it, with options of its own, such as \"ssh -J gate\" [default: ssh].
    #[arg(long, value_name = "COMMAND", requires = "hosts")]
    pub(crate) ssh: Option<String>,
    /// What ssdyno is called on the machines that ssh reaches: a name, or a path there [default: ssdyno].
    #[arg(long, value_name = "PATH", requires = "hosts")]
    pub(crate) remote_program: Option<String>,
}

impl HostsArgs {
    /// The hosts; `None` where this machine alone is meant.
    pub(crate) fn hosts(&self) -> Option<Hosts> {
        let remote = RemoteStart::of(self.ssh.as_deref(), self.remote_program.as_deref());
        let (addresses, version) = (self.hosts.clone(), env!("CARGO_PKG_VERSION").to_owned());
        (!addresses.is_empty()).then_some(Hosts { addresses, remote, version })
    }

    /// The options and their values, for the command that repeats the run.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        let hosts = (!hosts.is_empty()).then(|| ("--hosts", hosts.join(",")));
        let ssh = self.ssh.clone().map(|ssh| ("--ssh", ssh));
        let program = self.remote_program.clone().map(|path| ("--remote-program", path));
        hosts.into_iter().chain(ssh).chain(program).collect()
    }
}
