//! The whole machine - host, driver, bus, device - as one target on one clock.

use ssdyno_block::{BlockTarget, Completion, Request, SubmitError, Time, Token};
use ssdyno_controller_nvme::BehindLink;
use ssdyno_controller_ring::RingConfig;
use ssdyno_device::nvme::NvmeSetup;
use ssdyno_device::{Device, DeviceReport, ExplainedRequest, LinkConfig};
use ssdyno_engine::PrepareError;
use ssdyno_engine::events::EventLog;
use ssdyno_figures::{FaultsResult, Invariant};
use ssdyno_host::{Account, CoreWatch, Host, HostUse, Unwatched, Watched};
use ssdyno_ssd::{Config, Ssd};

use crate::attach::{Attach, DevicePath, HostPlan, HostSide, Stack};
use crate::error::RunError;
use crate::faults;
use crate::namespaces::{self, PerNamespaceRecorder};
use crate::ports::{NvmePort, PathFigures, PathReport, QueuedPort, RingPort};
use crate::sim_target::SimTarget;

/// A device with nothing before it.
struct Alone(Box<dyn Device>);

impl SimTarget for Alone {
    fn as_device(&mut self) -> &mut dyn Device {
        self.0.as_mut()
    }

    fn device(&self) -> &dyn Device {
        self.0.as_ref()
    }

    fn path(&self, _: Time, report: &mut PathFigures) {
        let device = faults::of_device(DeviceReport::of(self.device()).injected(), Time::ZERO);
        report.faults =
            device.map(|device| FaultsResult { device: Some(device), ..FaultsResult::default() });
    }
}

/// What a workload must know of `target`.
pub(crate) fn facts(target: &dyn Device) -> ssdyno_workload::TargetFacts {
    ssdyno_workload::TargetFacts {
        capacity_bytes: target.capacity_bytes(),
        sector_bytes: target.sector_bytes(),
    }
}

/// A host over a port. Requests are submitted by its threads, and complete when a thread knows.
#[derive(Debug)]
struct Machine<P, W> {
    host: Host<P, W>,
}

/// Builds what `attach` says, with a driver that is ready and a device that is still to be
/// preconditioned ([`Device::precondition`]): whatever cannot be built shows before that has taken
/// its time. Where `told`, the log of events also has what each core of the host did.
pub(crate) fn build(
    attach: &Attach,
    seed: u64,
    told: bool,
) -> Result<Box<dyn SimTarget>, RunError> {
    // Faults are checked before anything is built. An impossible fault would otherwise be found
    // after the preconditioning, which takes seconds for a large device.
    faults::check(attach)?;
    let device = &attach.device;
    let Some(HostSide { plan: host, path }) = &attach.host else {
        return Ok(Box::new(Alone(device.build(seed)?)));
    };
    match path {
        DevicePath::Adapter => {
            machine(host, QueuedPort::new(host, None, device.build(seed)?, seed), seed, told)
        }
        DevicePath::Network(network) => {
            network.check()?;
            let port = QueuedPort::new(host, Some(network), device.build(seed)?, seed);
            machine(host, port, seed, told)
        }
        DevicePath::Nvme(driver) => {
            namespaces::check(host)?;
            let mut device = device.clone();
            if let Some(config) = device.get_mut::<Config>() {
                *config = config.with_data_in_namespaces()?;
            }
            let faults = device.faults();
            let ssd = device.get::<Config>();
            // An SSD is known by its type, which saves a call through a table for every event.
            // The statically known type is only for the plain SSD. A slowed device is a wrapper
            // around it and takes the general path below.
            if let Some(config) = ssd.filter(|_| faults.slow_by <= 0.0) {
                let setup = config.nvme_setup().ok_or_else(|| attach.cannot_be_driven("nvme"))?;
                let ssd = Ssd::fresh(config, seed)?;
                let port = NvmePort::start(setup, faults, driver, host, ssd, seed)?;
                return nvme_machine(host, port, seed, told);
            }
            let nvme = device.nvme().ok_or_else(|| attach.cannot_be_driven("nvme"))?;
            // A device without its own controller, such as a disk, has no PCIe link. The controller
            // in front charges the link, and a second link in the device would count each byte
            // twice.
            let behind = device.build_behind_controller(seed)?;
            let setup = match ssd.and_then(Config::nvme_setup) {
                Some(setup) => setup,
                None => NvmeSetup::in_front(nvme, behind.volatile_cache()),
            };
            // An SSD has charged its link itself.
            let link = if ssd.is_some() { &LinkConfig::Ideal } else { &setup.host_link };
            let behind = BehindLink::new(behind, link)?;
            let port = NvmePort::start(setup, faults, driver, host, behind, seed)?;
            nvme_machine(host, port, seed, told)
        }
        DevicePath::Ring(driver) => {
            let card = device.get::<RingConfig>().ok_or_else(|| attach.cannot_be_driven("ring"))?;
            machine(host, RingPort::start(card, driver, host, seed)?, seed, told)
        }
    }
}

/// With figures of each namespace, where the host names any.
fn nvme_machine<D: Device + 'static>(
    host: &HostPlan,
    port: NvmePort<D>,
    seed: u64,
    told: bool,
) -> Result<Box<dyn SimTarget>, RunError> {
    let loaded = port.namespaces().to_vec();
    let machine = machine(host, port, seed, told)?;
    Ok(match host.namespaces.is_empty() {
        true => machine,
        false => Box::new(PerNamespaceRecorder::new(machine, host, &loaded)),
    })
}

fn machine<P: PathReport + 'static>(
    plan: &HostPlan,
    port: P,
    seed: u64,
    told: bool,
) -> Result<Box<dyn SimTarget>, RunError> {
    fn made<P: PathReport + 'static, W: CoreWatch + 'static>(
        plan: &HostPlan,
        port: P,
        seed: u64,
    ) -> Result<Box<dyn SimTarget>, RunError> {
        let mut path = PathFigures::default();
        port.path(Time::ZERO, &mut path);
        let driven = HostUse { scsi: path.stack == Stack::Scsi, ..plan.plan.clone() };
        let host = Host::<P, W>::new(&plan.config, driven, port, seed);
        Ok(Box::new(Machine { host: host.map_err(RunError::Host)? }))
    }
    // The watch is a type and not a flag: without a timeline, the compiler removes every call. A
    // flag would be tested several times per request.
    if told { made::<P, Watched>(plan, port, seed) } else { made::<P, Unwatched>(plan, port, seed) }
}

impl<P: PathReport, W: CoreWatch> BlockTarget for Machine<P, W> {
    fn capacity_bytes(&self) -> u64 {
        self.host.port().capacity_bytes()
    }

    fn sector_bytes(&self) -> u32 {
        self.host.port().sector_bytes()
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        // The host splits requests before the port sees them. A bad request must be refused before
        // the split, or its first pieces would already have been executed.
        self.check(&request)?;
        self.host.submit(now, request, token)
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        self.host.reap(now, out);
    }

    fn next_event(&self) -> Option<Time> {
        self.host.next_event()
    }
}

impl<P: PathReport, W: CoreWatch> Device for Machine<P, W> {
    fn events(&mut self) -> &mut EventLog {
        self.host.log(P::events)
    }

    fn report(&self, report: &mut DeviceReport) {
        self.host.port().report(report);
    }

    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        self.host.port_mut().precondition(watcher)
    }

    fn expect(&self, upcoming: &[Request]) {
        self.host.port().expect(upcoming);
    }

    fn explain(&mut self) -> bool {
        self.host.port_mut().explaining().is_some_and(|device| device.explain())
    }

    fn explained(&mut self, out: &mut Vec<ExplainedRequest>) {
        if let Some(device) = self.host.port_mut().explaining() {
            device.explained(out);
        }
    }

    fn begin_window(&mut self, at: Time) {
        self.host.begin_window(at);
    }

    fn host_cpu(&self) -> Time {
        self.host.account().cpu.total()
    }

    fn is_gone(&self) -> bool {
        self.host.port().is_gone()
    }

    fn run_until_completion(
        &mut self,
        limit: Option<Time>,
        out: &mut Vec<Completion>,
    ) -> Option<Time> {
        self.host.run(limit.unwrap_or(Time::MAX), out)
    }
}

impl<P: PathReport + 'static, W: CoreWatch> SimTarget for Machine<P, W> {
    fn as_device(&mut self) -> &mut dyn Device {
        self
    }

    fn device(&self) -> &dyn Device {
        self
    }

    fn account(&self) -> Option<&Account> {
        Some(self.host.account())
    }

    fn path(&self, end: Time, report: &mut PathFigures) {
        let before = report.invariants.len();
        self.host.port().path(end, report);
        // Those of the host stand first.
        let mut of_port = report.invariants.split_off(before);
        self.invariants(report.faults.is_some(), &mut report.invariants);
        report.invariants.append(&mut of_port);
    }
}

impl<P: PathReport, W: CoreWatch> Machine<P, W> {
    /// Invariants of the host.
    fn invariants(&self, faults: bool, invariants: &mut Vec<Invariant>) {
        let account = self.host.account();
        let delivered: u64 = account.delivered_by_core.iter().sum();
        invariants.push(Invariant {
            name: "host_requests".into(),
            holds: account.requests == delivered && self.host.is_idle(),
            detail: format!("{} requests submitted, {delivered} completed", account.requests),
        });
        // Each message of the device is either taken by a core or merged with a pending one. A lost
        // message would be a request that nobody completes.
        let taken = account.interrupts + account.interrupts_merged;
        let polled = account.interrupts == 0;
        invariants.push(Invariant {
            name: "host_interrupts".into(),
            holds: polled || account.messages == taken,
            detail: format!("{} messages, {taken} taken or merged", account.messages),
        });
        let late = self.host.late_errors();
        invariants.push(Invariant {
            name: "late_errors".into(),
            // Where faults are injected they may, and where the driver gave commands up.
            holds: late == 0 || faults,
            detail: format!("{late} writes failed after they had been reported as complete"),
        });
    }
}
