//! The options that name other machines.

use std::time::Duration;

use clap::Args;
use ssdyno_cluster::{HostAddress, Hosts, RemoteStart};
use ssdyno_session::RealSpec;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Other machines")]
pub(crate) struct HostsArgs {
    /// Load it from these machines together, each its own target of this name: USER@HOST or HOST, where ssh
    /// starts `ssdyno worker`, or HOST:PORT, where one listens. One result, over the time in which all of them were running.
    #[arg(long, value_name = "HOST", value_delimiter = ',',
          conflicts_with_all = ["csv", "timeline", "tune"])]
    pub(crate) hosts: Vec<HostAddress>,
    /// Sample these machines, too, which carry no load, such as the servers of the targets: USER@HOST or HOST, where ssh
    /// starts `ssdyno worker`, or HOST:PORT, where `ssdyno prober` listens.
    #[arg(long, value_name = "HOST", value_delimiter = ',', requires = "hosts")]
    pub(crate) probers: Vec<HostAddress>,
    /// The ssh for it, with options of its own, such as \"ssh -J gate\" [default: ssh].
    #[arg(long, value_name = "COMMAND", requires = "hosts")]
    pub(crate) ssh: Option<String>,
    /// What ssdyno is called on the machines that ssh reaches: a name, or a path there [default: ssdyno].
    #[arg(long, value_name = "PATH", requires = "hosts")]
    pub(crate) remote_program: Option<String>,
}

impl HostsArgs {
    /// The hosts, sampled as `real` says, by default each second; `None` where this machine alone is meant.
    pub(crate) fn hosts(&self, real: &RealSpec) -> Option<Hosts> {
        let remote = RemoteStart::of(self.ssh.as_deref(), self.remote_program.as_deref());
        let (addresses, version) = (self.hosts.clone(), env!("CARGO_PKG_VERSION").to_owned());
        let every = real.probe_interval.map_or(1.0, |span| span.0.as_s_f64());
        let probe_every = (!real.no_probes).then(|| Duration::from_secs_f64(every));
        let probers = self.probers.clone();
        (!addresses.is_empty()).then_some(Hosts {
            addresses,
            remote,
            version,
            probers,
            probe_every,
        })
    }

    /// The options and their values, for the command that repeats the run.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        let list = |option, hosts: &[HostAddress]| {
            let names: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            (!names.is_empty()).then(|| (option, names.join(",")))
        };
        let hosts = list("--hosts", &self.hosts);
        let probers = list("--probers", &self.probers);
        let ssh = self.ssh.clone().map(|ssh| ("--ssh", ssh));
        let program = self.remote_program.clone().map(|path| ("--remote-program", path));
        hosts.into_iter().chain(probers).chain(ssh).chain(program).collect()
    }
}
