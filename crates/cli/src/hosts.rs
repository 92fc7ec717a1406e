//! The options that name other machines.

use std::path::{Path, PathBuf};

use clap::Args;
use ssdyno_cluster::{HostAddress, Hosts, ProberAddress, RemoteStart};
use ssdyno_session::{Failure, RealSpec};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Other machines")]
pub(crate) struct HostsArgs {
    /// Run the load on these machines at the same time, with one result: HOST or USER@HOST through ssh, or
    /// HOST:PORT of a worker.
    ///
    /// Each machine loads its own target of this name. For HOST and USER@HOST, ssh starts `ssdyno worker`.
    /// A worker at HOST:PORT is reached with TLS; on this machine, only tls://HOST:PORT uses TLS. The
    /// figures cover the time in which all machines were running.
    #[arg(long, value_name = "HOST", value_delimiter = ',',
          conflicts_with_all = ["timeline", "tune"])]
    pub(crate) hosts: Vec<HostAddress>,
    /// Also sample these machines, which run no load, such as the servers of the targets. For HOST and
    /// USER@HOST, ssh starts `ssdyno worker`; at HOST:PORT, `ssdyno prober` listens, with TLS as for
    /// --hosts. http://HOST:PORT/metrics reads the metrics of another program (OpenMetrics); append
    /// #PREFIX+PREFIX to select metrics by name.
    #[arg(long, value_name = "HOST", value_delimiter = ',', requires = "hosts")]
    pub(crate) probers: Vec<ProberAddress>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// How other machines are reached.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Other machines")]
pub(crate) struct ReachArgs {
    /// Run this command instead of ssh. It may have options, such as `ssh -J gate` [default: ssh].
    #[arg(long, value_name = "COMMAND")]
    pub(crate) ssh: Option<String>,
    /// Name or path of ssdyno on the machines that ssh reaches [default: ssdyno].
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_program: Option<String>,
    /// Directory with the certificate of this controller, for workers that use TLS [default:
    /// $XDG_CONFIG_HOME/ssdyno/controller].
    #[arg(long, value_name = "DIR")]
    pub(crate) identity: Option<PathBuf>,
}

impl ReachArgs {
    /// Hosts that are reached so, none of which is named yet.
    pub(crate) fn hosts(&self) -> Hosts {
        Hosts {
            remote: RemoteStart::of(self.ssh.as_deref(), self.remote_program.as_deref()),
            // Without such a place a host that needs it is named.
            identity: identity(self.identity.as_deref(), "controller").ok(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Hosts::default()
        }
    }

    /// The options and their values.
    fn given(&self) -> Vec<(&'static str, String)> {
        let ssh = self.ssh.clone().map(|ssh| ("--ssh", ssh));
        let program = self.remote_program.clone().map(|path| ("--remote-program", path));
        let identity = self.identity.as_ref().map(|at| ("--identity", at.display().to_string()));
        ssh.into_iter().chain(program).chain(identity).collect()
    }
}

/// The directory of the user for the certificate of a `controller` or a `worker`, unless another is given.
pub(crate) fn identity(given: Option<&Path>, role: &str) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let of = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = of("XDG_CONFIG_HOME").or_else(|| of("HOME").map(|home| home.join(".config")));
    let config = config.ok_or_else(|| {
        Failure::usage("neither XDG_CONFIG_HOME nor HOME is set, so the directory of the certificates is unknown")
            .with_help("name a directory for them")
            .with_key("identity")
    })?;
    Ok(config.join("ssdyno").join(role))
}

impl HostsArgs {
    /// The hosts, sampled as `real` says, by default each second; `None` where this machine alone is meant.
    ///
    /// # Errors
    /// It is said how other machines are reached, and none is named. Or nothing is sampled, and probers are named.
    pub(crate) fn hosts(&self, real: &RealSpec) -> Result<Option<Hosts>, Failure> {
        if self.hosts.is_empty() {
            return match self.reach.given().first() {
                Some((option, _)) => Err(Failure::usage(format!(
                    "`{option}` sets how other machines are reached, but `--hosts` is missing"
                ))
                .with_help("add `--hosts`, or leave it out")),
                None => Ok(None),
            };
        }
        let (addresses, probers) = (self.hosts.clone(), self.probers.clone());
        let mut hosts = Hosts { addresses, probers, ..self.reach.hosts() };
        hosts.sample_as(real)?;
        Ok(Some(hosts))
    }

    /// The options and their values, for the command that repeats the run.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        fn list<T: ToString>(option: &'static str, hosts: &[T]) -> Option<(&'static str, String)> {
            let names: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            (!names.is_empty()).then(|| (option, names.join(",")))
        }
        let hosts = list("--hosts", &self.hosts);
        let probers = list("--probers", &self.probers);
        hosts.into_iter().chain(probers).chain(self.reach.given()).collect()
    }
}
