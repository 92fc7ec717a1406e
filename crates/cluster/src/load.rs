//! The request to a controller: the hosts, and the load of each host.

use std::path::PathBuf;
use std::time::Duration;

use ssdyno_session::{Failure, RealSpec, RunSpec};

use crate::hosts::HostAddress;
use crate::scraped::ProberAddress;
use crate::ssh::RemoteStart;

/// The hosts of a run, and how they are reached.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hosts {
    /// Each is named once.
    pub addresses: Vec<HostAddress>,
    /// How ssh starts workers on those that are reached by it.
    pub remote: RemoteStart,
    /// The directory with the certificate of this controller, for hosts that are reached by TLS.
    pub identity: Option<PathBuf>,
    /// Version of this program, which all workers must have.
    pub version: String,
    /// Machines that are sampled and carry no load, such as the servers of the targets, and programs whose metrics are
    /// read.
    pub probers: Vec<ProberAddress>,
    /// How often these and the hosts are sampled; `None`: not at all.
    pub probe_every: Option<Duration>,
    /// The directory of the result, for rows of requests; without it they are not kept.
    pub rows_in: Option<PathBuf>,
}

impl Hosts {
    /// Lets the machines be sampled as the keys of `real` say, by default each second.
    ///
    /// # Errors
    /// Probers are named, and nothing is sampled.
    pub fn sample_as(&mut self, real: &RealSpec) -> Result<(), Failure> {
        if real.no_probes && !self.probers.is_empty() {
            return Err(Failure::usage("`real.no_probes` leaves nothing for the probers to do")
                .with_help("leave out the probers, or `real.no_probes`")
                .with_key("probers"));
        }
        // A sample each second costs a prober about half a millisecond of CPU time. Once a second is therefore a
        // cheap default; the limits of a prober are 10 ms and 1 h.
        let every = real.probe_interval.map_or(1.0, |span| span.0.as_s_f64());
        self.probe_every = (!real.no_probes).then(|| Duration::from_secs_f64(every));
        Ok(())
    }
}

/// The load of one host of a run.
#[derive(Clone, Debug)]
pub struct HostLoad {
    /// Its place among the [`addresses`](Hosts::addresses); each has one load at most.
    pub host: usize,
    /// Its name in the result and in messages; `None`: by its address.
    pub name: Option<String>,
    /// What it runs. The common `keep` of the hosts decides about rows, not that of this spec.
    pub spec: RunSpec,
}

/// The common load of the hosts of one run.
#[derive(Clone, Debug)]
pub struct ClusterLoad {
    /// Their common spec: the spec of the result.
    pub common: RunSpec,
    /// One or more.
    pub hosts: Vec<HostLoad>,
}

impl ClusterLoad {
    /// `spec` on each of `count` hosts, with random numbers of its own: host n, from 0, has the seed of `spec` plus n.
    /// With one seed all would ask for the same blocks in the same order, and a target that they share would find them
    /// in its cache.
    pub fn of(spec: &RunSpec, count: usize) -> ClusterLoad {
        let host = |host: usize| HostLoad {
            host,
            name: None,
            // The sum wraps: every 64-bit value is a valid seed, and the largest
            // one must not stop a run on two hosts.
            spec: RunSpec { seed: spec.seed.wrapping_add(host as u64), ..spec.clone() },
        };
        ClusterLoad { common: spec.clone(), hosts: (0..count).map(host).collect() }
    }
}
