//! The counters of the kernel at one moment.
//!
//! Each source is read whole or not at all: a file with a line that cannot be read gives an error and no figures,
//! since nobody knows what its other lines mean then.

mod disk;
mod memory;
mod network;
mod power;
mod pressure;
mod stat;

use std::collections::BTreeMap;

pub(crate) use disk::DiskCounters;
pub(crate) use power::PowerReading;
pub use power::PowerSensors;
pub(crate) use stat::{CPU_KINDS, CpuTicks, StatCounters};

use crate::clock;
use crate::sources::{SourceError, Sources};

/// The content of a source, and the time of its reading. Each source has its own time: a thread that was interrupted
/// between two of them still gives right rates.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Reading<T> {
    pub(crate) monotonic_ns: u64,
    pub(crate) value: T,
}

/// The counters of a machine at one moment. [`since`](SystemCounters::since) gives their difference.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SystemCounters {
    pub(crate) monotonic_ns: u64,
    pub(crate) unix_ns: u64,
    pub(crate) stat: Option<Reading<StatCounters>>,
    /// Bytes, in the order of the figures of `MemoryLevels`.
    pub(crate) memory: Option<Reading<[u64; 8]>>,
    /// Pages, in the order of `SwapRates`.
    pub(crate) swap: Option<Reading<[u64; 2]>>,
    /// In the order of `NetworkRates`.
    pub(crate) interfaces: Option<Reading<BTreeMap<String, [u64; 8]>>>,
    pub(crate) disks: Option<Reading<BTreeMap<String, DiskCounters>>>,
    pub(crate) power: Option<Reading<BTreeMap<String, PowerReading>>>,
    /// Microseconds.
    pub(crate) pressure: Option<Reading<BTreeMap<String, [u64; 1]>>>,
    errors: Vec<SourceError>,
}

impl SystemCounters {
    /// Reads everything now. A source that cannot be read is missing, and [`errors`](SystemCounters::errors) says why.
    /// Power and pressure are absent without an error where the machine does not have them or does not show them.
    pub fn read(sources: &Sources) -> SystemCounters {
        SystemCounters::read_with(sources, &PowerSensors::find(sources))
    }

    /// As [`read`](SystemCounters::read), with sensors that were found before.
    pub fn read_with(sources: &Sources, sensors: &PowerSensors) -> SystemCounters {
        let mut errors = Vec::new();
        let mut now = SystemCounters {
            // The two clocks of the sample are read before the sources. They mark the beginning of the
            // reading; each source adds its own time when it is read.
            monotonic_ns: clock::monotonic_ns(),
            unix_ns: clock::unix_ns(),
            stat: reading(&mut errors, || stat::read(sources).map(Some)),
            memory: reading(&mut errors, || memory::read(sources).map(Some)),
            swap: reading(&mut errors, || memory::read_swap(sources)),
            interfaces: reading(&mut errors, || network::read(sources).map(Some)),
            disks: reading(&mut errors, || disk::read(sources).map(Some)),
            power: reading(&mut errors, || sensors.read()),
            pressure: reading(&mut errors, || pressure::read(sources)),
            errors: Vec::new(),
        };
        now.errors = errors;
        now
    }

    /// Number of cores that are online; `None` if it is not known.
    pub fn cores(&self) -> Option<usize> {
        self.stat.as_ref().map(|stat| stat.value.cores.len())
    }

    /// Forgets all disks but those that `keep` names: for a caller that holds many readings of a machine with many
    /// disks.
    pub fn keep_disks(&mut self, keep: impl Fn(&str) -> bool) {
        if let Some(disks) = &mut self.disks {
            disks.value.retain(|name, _| keep(name));
        }
    }

    /// When the reading began, on the monotonic clock, in ns.
    pub fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns
    }

    /// Why sources are missing.
    pub fn errors(&self) -> &[SourceError] {
        &self.errors
    }
}

fn reading<T>(
    errors: &mut Vec<SourceError>,
    read: impl FnOnce() -> Result<Option<T>, SourceError>,
) -> Option<Reading<T>> {
    // The time is taken before the file is opened: on a busy machine the thread may wait between two
    // sources for longer than the interval of the samples.
    let monotonic_ns = clock::monotonic_ns();
    match read() {
        Ok(value) => value.map(|value| Reading { monotonic_ns, value }),
        Err(error) => {
            // An error of one source is kept beside the others. A machine with a broken sensor
            // still has its processors, disks and networks.
            errors.push(error);
            None
        }
    }
}
