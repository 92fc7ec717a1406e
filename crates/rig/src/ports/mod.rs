//! Drivers with their functions and devices, as the host calls them: a [`HostPort`] each, and [`PathReport`] for
//! what the runner wants to know besides.
//!
//! - `nvme`: the NVMe driver over the controller; in it the SCSI stack before the driver, the power state,
//!   and what a host does when the controller does not answer (`error_recovery`);
//! - `ring`: the ring driver over its card;
//! - `queued`: no driver, but what it costs: an adapter, or a network with its sessions and its faults.

pub(crate) mod nvme;
mod queued;
mod ring;

pub(crate) use nvme::NvmePort;
pub(crate) use queued::QueuedPort;
pub(crate) use ring::RingPort;

use ssdyno_block::{Request, Time};
use ssdyno_device::{Device, DeviceReport};
use ssdyno_driver_nvme::NvmeError;
use ssdyno_engine::PrepareError;
use ssdyno_engine::events::EventLog;
use ssdyno_figures::{FaultsResult, Invariant, NetworkResult};
use ssdyno_host::{HostConfig, HostPort};
use ssdyno_pci::driver::DriverFlags;
use ssdyno_pci::{PciDevice, PciTiming, RecordedFault, SimulatedPci};

use crate::attach::Stack;
use crate::error::RunError;

/// The runner's needs from a port beyond those of the host.
pub(crate) trait PathReport: HostPort + Send {
    /// Device events, on the clock of the run.
    fn events(&mut self) -> &mut EventLog;
    /// The device's report, see [`Device::report`](ssdyno_device::Device::report); times are on the clock of the run.
    fn report(&self, report: &mut DeviceReport);
    /// Makes a used device of a fresh one, see
    /// [`Device::precondition`](ssdyno_device::Device::precondition).
    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError>;
    /// The expectation of the device, see [`Device::expect`](ssdyno_device::Device::expect).
    fn expect(&self, _upcoming: &[Request]) {}
    /// The device, where it can be asked what requests spend their time on: see [`Device::explain`].
    fn explaining(&mut self) -> Option<&mut dyn Device> {
        None
    }
    /// True if whatever is asked of the device ends with an error at once.
    fn is_gone(&self) -> bool {
        false
    }
    /// The reports of driver and network; `end` is when everything was over.
    fn path(&self, end: Time, report: &mut PathFigures);
}

/// The path between host and device, and its events.
#[derive(Debug)]
pub(crate) struct PathFigures {
    /// The stack before the driver, as that reports it; [`Stack::Block`] without one.
    pub(crate) stack: Stack,
    /// The network that lies between, if one does.
    pub(crate) network: Option<NetworkResult>,
    /// The faults, and the driver's reactions; none if no faults are configured and none occurred.
    pub(crate) faults: Option<FaultsResult>,
    /// Why the driver gave the device up, if it did.
    pub(crate) gone_because: Option<NvmeError>,
    /// Whether host, driver and device kept the invariants of their interfaces.
    pub(crate) invariants: Vec<Invariant>,
}

impl Default for PathFigures {
    fn default() -> PathFigures {
        let (network, faults, gone_because, invariants) = (None, None, None, Vec::new());
        PathFigures { stack: Stack::Block, network, faults, gone_because, invariants }
    }
}

/// The connector's time on `host`.
fn timing(host: &HostConfig) -> PciTiming {
    PciTiming {
        posted_write: host.costs.register_delivery.0,
        // A posted write costs the core nothing but its own instruction, while a read waits for the
        // answer of the device. S1-4 gives a read in cycles, so it scales with the clock of the
        // host.
        read_round_trip: host.costs.register_read.at(host.cpu.clock),
        interrupt: host.costs.interrupt_delivery.0,
    }
}

/// Register accesses of the call that is over.
#[inline]
fn accesses<D: PciDevice>(pci: &mut SimulatedPci<D>) -> ssdyno_host::Registers {
    let (reads, writes) = pci.take_accesses();
    ssdyno_host::Registers { writes, reads }
}

/// The stack that a driver with these flags is made for; an error where another is wished for.
fn reported(
    driver: &'static str,
    flags: DriverFlags,
    wished: Option<Stack>,
) -> Result<Stack, RunError> {
    // S1-47: the driver reports the stack that it is made for. A wish that differs is an error,
    // because the figures would belong to another path than the one in the result.
    let reported = if flags.contains(DriverFlags::SCSI) { Stack::Scsi } else { Stack::Block };
    match wished {
        Some(wished) if wished != reported => Err(RunError::Stack { driver, reported, wished }),
        _ => Ok(reported),
    }
}

/// No device touched memory that is not its own.
fn dma_invariant(faults: &[RecordedFault]) -> Invariant {
    Invariant {
        name: "dma".into(),
        holds: faults.is_empty(),
        detail: match faults.first() {
            None => "the device accessed only memory that was given to it".into(),
            Some(first) => format!("{} faults, the first: {}", faults.len(), first.fault),
        },
    }
}

/// `name` holds where `count` is zero.
fn none_invariant(name: &str, count: u64, what: &str) -> Invariant {
    Invariant { name: name.into(), holds: count == 0, detail: format!("{count} {what}") }
}
