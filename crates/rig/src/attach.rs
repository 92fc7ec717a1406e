//! The loaded device, and the path of the load.

use ssdyno_block::ConfigError;
use ssdyno_device::{DeviceReport, DeviceSpec};
use ssdyno_driver_nvme::{HeadDoorbell, NvmeConfig, QueuePolicy};
use ssdyno_driver_ring::RingDriverOptions as RingOptions;
use ssdyno_host::{CompletionWait, HostUse, ThreadMode};
use ssdyno_ssd::Config;

use crate::network::NetworkConfig;

ssdyno_block::named! {
    /// The layers between a process and the driver (S1-47).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Stack: name {
        /// The storage resource alone.
        Block = "block",
        /// The SCSI resource under it: each request becomes a CDB and is translated.
        Scsi = "scsi",
    }
}

/// A host: what it is, and how it is used.
#[derive(Clone, PartialEq, Debug)]
pub struct HostPlan {
    /// Its name in results.
    pub name: String,
    /// The machine.
    pub config: ssdyno_host::HostConfig,
    /// Cores, threads, completion. Whether there is a SCSI stack is not said here: the driver does.
    pub plan: ssdyno_host::HostUse,
    /// The stack that is wished for. A driver that reports another is an error; models of cost alone
    /// (adapter, network) have the one that is wished for. None: as the driver reports.
    pub stack: Option<Stack>,
    /// Namespaces of an NVMe device. With none given, the load uses the first; with one, that namespace; with several,
    /// each thread uses one of them in turn and sees no other (S1-43). As long as the smallest of them is, so long is
    /// the device for the workload, and its block is the largest of theirs.
    pub namespaces: Vec<u32>,
    /// Threads that there will be; none where their number is open.
    pub processes: Option<u32>,
    /// How often a command that failed is given to an NVMe device again.
    pub retries: u32,
}

/// How a host is to be used, as far as it is said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostOptions {
    /// Number of cores used; none: all.
    pub cores: Option<u16>,
    /// How threads issue requests; none: as in the host file.
    pub mode: Option<ThreadMode>,
    /// How threads learn of completions.
    pub waiting: CompletionWait,
    /// The stack, see [`HostPlan::stack`].
    pub stack: Option<Stack>,
    /// One doorbell for all that a thread issues together.
    pub doorbell_per_batch: bool,
    /// Priority classes of the threads, see [`HostUse::classes`].
    pub classes: Vec<u8>,
    /// See [`HostPlan::namespaces`].
    pub namespaces: Vec<u32>,
    /// See [`HostPlan::retries`].
    pub retries: u32,
}

impl HostPlan {
    /// `config` under `load`: as many asynchronous threads as that has, or else one a core, but none
    /// without a request.
    pub fn new(
        name: &str,
        config: ssdyno_host::HostConfig,
        options: &HostOptions,
        load: Option<&ssdyno_workload::WorkloadConfig>,
    ) -> HostPlan {
        let cores = options.cores.unwrap_or(config.cpu.cores);
        let said = load.and_then(|load| load.threads);
        // An open loop has no number of outstanding requests, so it cannot decide how many threads
        // there are. Its requests use one thread per core.
        let depth = load.filter(|load| load.arrivals.is_none()).map(|load| load.depth.unwrap_or(1));
        // A thread without a request would only appear in the figures per core as an idle one. The
        // depth therefore limits the threads.
        let threads = said.unwrap_or_else(|| depth.unwrap_or(u32::MAX).min(u32::from(cores)));
        let plan = HostUse {
            cores,
            mode: options.mode.unwrap_or(config.threads),
            threads,
            waiting: options.waiting,
            scsi: false,
            doorbell_per_batch: options.doorbell_per_batch,
            classes: options.classes.clone(),
        };
        let processes = match plan.mode {
            // Each outstanding request has its own.
            ThreadMode::Sync => depth,
            ThreadMode::Async | ThreadMode::Batch => Some(threads),
        };
        let (name, namespaces) = (name.to_owned(), options.namespaces.clone());
        let HostOptions { stack, retries, .. } = *options;
        HostPlan { name, config, plan, stack, namespaces, processes, retries }
    }
}

/// How the commands of a host reach the device.
#[derive(Clone, PartialEq, Debug)]
pub enum DevicePath {
    /// An adapter that costs a register write a command and an interrupt a completion.
    Adapter,
    /// A network, and the machine at its end that serves the device (S4-7, S4-46).
    Network(Box<NetworkConfig>),
    /// The NVMe driver, PCI Express, an NVMe controller: the device's file has a table `[nvme]`. Cores and
    /// interrupts are set by the host.
    Nvme(Box<NvmeConfig>),
    /// The ring driver, PCI Express, a ring card.
    Ring(Box<RingOptions>),
}

/// A host, and its way to the device.
#[derive(Clone, PartialEq, Debug)]
pub struct HostSide {
    /// The host.
    pub plan: Box<HostPlan>,
    /// The way.
    pub path: DevicePath,
}

/// A device, and the path between it and the workload.
#[derive(Clone, PartialEq, Debug)]
pub struct Attach {
    /// The device.
    pub device: DeviceSpec,
    /// The sender of the requests; without one, they appear in the device and cost no CPU time.
    pub host: Option<HostSide>,
}

impl<D: Into<DeviceSpec>> From<D> for Attach {
    fn from(device: D) -> Attach {
        Attach { device: device.into(), host: None }
    }
}

fn whole_bytes(report: &DeviceReport) -> u64 {
    report.whole().map_or(0, |unit| unit.facts.capacity_bytes)
}

impl Attach {
    /// `device` behind `path` of the host `plan`.
    pub fn behind(device: impl Into<DeviceSpec>, plan: HostPlan, path: DevicePath) -> Attach {
        Attach { device: device.into(), host: Some(HostSide { plan: Box::new(plan), path }) }
    }

    /// The device file of the SSD; `None` where it is another device.
    pub fn ssd_mut(&mut self) -> Option<&mut Config> {
        self.device.get_mut()
    }

    /// The device file of an SSD; `None` for others.
    pub fn ssd(&self) -> Option<&Config> {
        self.device.get()
    }

    /// The host, if there is one.
    pub fn host(&self) -> Option<&HostPlan> {
        self.host.as_ref().map(|host| &*host.plan)
    }

    /// The way of the host to the device, if there is a host.
    pub fn path(&self) -> Option<&DevicePath> {
        self.host.as_ref().map(|host| &host.path)
    }

    /// The same, to be changed.
    pub fn path_mut(&mut self) -> Option<&mut DevicePath> {
        self.host.as_mut().map(|host| &mut host.path)
    }

    /// The share of the capacity that a host can address, 0 to 1: of an NVMe device that said `report`, what its namespaces
    /// have. No host writes the rest, so it stays as it is.
    pub(crate) fn reachable_share(&self, report: &DeviceReport) -> f64 {
        let Some(DevicePath::Nvme(_)) = self.path() else { return 1.0 };
        self.device.nvme().map_or(1.0, |nvme| nvme.allocated_share(whole_bytes(report)))
    }

    /// True if `capacity_bytes`, those of the namespaces that are loaded, are all that a host can address.
    pub(crate) fn is_reached_by(&self, capacity_bytes: u64, report: &DeviceReport) -> bool {
        let reachable_bytes = self.reachable_share(report) * whole_bytes(report) as f64;
        // A namespace is a number of whole logical blocks, and several are as long as the smallest.
        capacity_bytes as f64 >= 0.999 * reachable_bytes
    }

    /// The message if the driver called `driver` is for other devices.
    pub(crate) fn cannot_be_driven(&self, driver: &str) -> ConfigError {
        let problem = format!("the driver `{driver}` cannot drive {}", self.device.what());
        ConfigError::new("driver", problem, "use the driver that can")
    }

    // The names are part of `result.json`. They are independent of the names of the types, so that
    // a change in the code does not change old results.
    /// The driver's name, `direct` without one.
    pub(crate) fn driver_name(&self) -> &'static str {
        match self.path() {
            None => "direct",
            Some(DevicePath::Adapter) => "adapter",
            Some(DevicePath::Network(_)) => "network",
            Some(DevicePath::Nvme(_)) => "nvme",
            Some(DevicePath::Ring(_)) => "ring",
        }
    }

    /// How commands are spread over queues, in words.
    pub(crate) fn queues(&self) -> String {
        let driver = match self.path() {
            Some(DevicePath::Nvme(driver)) => driver,
            Some(DevicePath::Ring(_)) => return "one ring".to_owned(),
            Some(DevicePath::Network(_)) => return "a session per core".to_owned(),
            None | Some(DevicePath::Adapter) => return "per-core".to_owned(),
        };
        let name = match driver.policy {
            QueuePolicy::RoundRobin { as_printed: false } => "round-robin",
            QueuePolicy::RoundRobin { as_printed: true } => "round-robin as printed",
            QueuePolicy::PerCore => "per-core",
            QueuePolicy::PerCorePool => "per-core-pool",
            QueuePolicy::Single => "single",
            QueuePolicy::Weighted { .. } => "weighted",
            QueuePolicy::MoreQueues { .. } => "more-queues",
        };
        match driver.head_doorbell {
            HeadDoorbell::PerBatch => name.to_owned(),
            HeadDoorbell::PerCompletion => format!("{name}, a head doorbell for each completion"),
        }
    }
}
