//! The whole machine - host, driver, bus, device - as one target on one clock.

use ssdyno_block::{BlockTarget, Completion, Request, SubmitError, Time, Token};
use ssdyno_device::delay::DelayDevice;
use ssdyno_device::faults::Faulty;
use ssdyno_device::{Device, DeviceFacts, PrepareError, Ssd};
use ssdyno_driver_nvme::NvmeError;
use ssdyno_engine::events::EventLog;
use ssdyno_ftl::Health;
use ssdyno_host::{Account, Host, Plan, Unwatched, Watch, Watched};
use ssdyno_result::{FaultsResult, Invariant, NamespaceResult, NetworkResult};

use crate::attach::{Attach, BlockDevice, HostPlan, Stack};
use crate::faults;
use crate::namespaces::{self, Apart};
use crate::network::NetworkConfig;
use crate::ports::{Behind, NvmePort, QueuedPort, RingPort};
use crate::run::RunError;

/// What a run needs of its target beyond a device.
pub(crate) trait Rigged: Device {
    /// The same, as what the loop drives.
    fn as_device(&mut self) -> &mut dyn Device;
    /// What the host did, if there is one.
    fn account(&self) -> Option<&Account>;
    /// The stack before the driver; [`Stack::Block`] without one.
    fn stack(&self) -> Stack {
        Stack::Block
    }
    /// The network to the device, if there is one; `end` is when everything was over.
    fn network(&self, _end: Time) -> Option<NetworkResult> {
        None
    }
    /// Why the driver gave the device up, if it did.
    fn gone_because(&self) -> Option<NvmeError> {
        None
    }
    /// What went wrong, where anything was asked for or happened.
    fn faults(&self) -> Option<FaultsResult> {
        None
    }
    /// The figures of each namespace, where namespaces were chosen. Ends their recording.
    fn namespaces(&mut self) -> Vec<NamespaceResult> {
        Vec::new()
    }
    /// Laws of host, driver and bus.
    fn laws(&self, laws: &mut Vec<Invariant>);
}

impl Rigged for Ssd {
    fn as_device(&mut self) -> &mut dyn Device {
        self
    }
    fn account(&self) -> Option<&Account> {
        None
    }
    fn laws(&self, _: &mut Vec<Invariant>) {}
}

impl Rigged for DelayDevice {
    fn as_device(&mut self) -> &mut dyn Device {
        self
    }
    fn account(&self) -> Option<&Account> {
        None
    }
    fn laws(&self, _: &mut Vec<Invariant>) {}
}

impl Rigged for Faulty {
    fn as_device(&mut self) -> &mut dyn Device {
        self
    }
    fn account(&self) -> Option<&Account> {
        None
    }
    fn faults(&self) -> Option<FaultsResult> {
        Some(FaultsResult { device: faults::of_device(self.injected()), ..FaultsResult::default() })
    }
    fn laws(&self, _: &mut Vec<Invariant>) {}
}

/// What a workload must know of `target`.
pub(crate) fn facts(target: &dyn Rigged) -> ssdyno_workload::DeviceFacts {
    ssdyno_workload::DeviceFacts {
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
pub(crate) fn build(attach: &Attach, seed: u64, told: bool) -> Result<Box<dyn Rigged>, RunError> {
    faults::check(attach)?;
    match attach {
        Attach::Direct(device) if !device.faults().is_none() => Ok(Box::new(faulty(device, seed)?)),
        Attach::Direct(device) => Ok(match &**device {
            BlockDevice::Ssd(config) => Box::new(Ssd::fresh(config, seed)?),
            BlockDevice::Delay(config) => Box::new(DelayDevice::new(config, seed)?),
        }),
        Attach::Adapter { device, host } => queued(device, None, host, seed, told),
        Attach::Network { device, network, host } => {
            network.check()?;
            queued(device, Some(network), host, seed, told)
        }
        Attach::Nvme { device, driver, host } => {
            namespaces::check(host)?;
            let ssd = Ssd::fresh(device, seed)?;
            let port = NvmePort::start(device, driver, host, ssd, seed)?;
            let loaded = port.namespaces().to_vec();
            let machine = machine(host, port, seed, told)?;
            Ok(match host.namespaces.is_empty() {
                true => machine,
                false => Box::new(Apart::new(machine, host, &loaded)),
            })
        }
        Attach::Ring { card, driver, host } => {
            machine(host, RingPort::start(card, driver, host, seed)?, seed, told)
        }
    }
}

/// A host over an adapter or a network.
fn queued(
    device: &BlockDevice,
    network: Option<&NetworkConfig>,
    host: &HostPlan,
    seed: u64,
    told: bool,
) -> Result<Box<dyn Rigged>, RunError> {
    match device {
        _ if !device.faults().is_none() => {
            let port = QueuedPort::new(host, network, faulty(device, seed)?, seed);
            machine(host, port, seed, told)
        }
        BlockDevice::Ssd(config) => {
            let ssd = Ssd::fresh(config, seed)?;
            machine(host, QueuedPort::new(host, network, ssd, seed), seed, told)
        }
        BlockDevice::Delay(config) => {
            let port = QueuedPort::new(host, network, DelayDevice::new(config, seed)?, seed);
            machine(host, port, seed, told)
        }
    }
}

/// A device with the faults of its file.
fn faulty(device: &BlockDevice, seed: u64) -> Result<Faulty, RunError> {
    let inner: Box<dyn Device> = match device {
        BlockDevice::Ssd(config) => Box::new(Ssd::fresh(config, seed)?),
        BlockDevice::Delay(config) => Box::new(DelayDevice::new(config, seed)?),
    };
    Ok(Faulty::new(inner, device.faults(), seed))
}

fn machine<P: Behind + 'static>(
    plan: &HostPlan,
    port: P,
    seed: u64,
    told: bool,
) -> Result<Box<dyn Rigged>, RunError> {
    fn made<P: Behind + 'static, W: Watch + 'static>(
        plan: &HostPlan,
        port: P,
        seed: u64,
    ) -> Result<Box<dyn Rigged>, RunError> {
        let driven = Plan { scsi: port.stack() == Stack::Scsi, ..plan.plan.clone() };
        let host = Host::<P, W>::new(&plan.config, driven, port, seed);
        Ok(Box::new(Machine { host: host.map_err(RunError::Host)? }))
    }
    if told { made::<P, Watched>(plan, port, seed) } else { made::<P, Unwatched>(plan, port, seed) }
}

impl<P: Behind, W: Watch> BlockTarget for Machine<P, W> {
    fn capacity_bytes(&self) -> u64 {
        self.host.port().capacity_bytes()
    }

    fn sector_bytes(&self) -> u32 {
        self.host.port().sector_bytes()
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
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

impl<P: Behind, W: Watch> Device for Machine<P, W> {
    fn events(&mut self) -> &mut EventLog {
        self.host.log(P::events)
    }

    fn facts(&self) -> DeviceFacts {
        self.host.port().facts()
    }

    fn health(&self) -> Health {
        self.host.port().health()
    }

    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        self.host.port_mut().precondition(watcher)
    }

    fn expect(&self, upcoming: &[Request]) {
        self.host.port().expect(upcoming);
    }

    fn idle_states(&self) -> Vec<(u8, Time)> {
        self.host.port().idle_states()
    }

    fn begin_window(&mut self, at: Time) {
        self.host.begin_window(at);
    }

    fn is_gone(&self) -> bool {
        self.host.port().is_gone()
    }

    fn towards_answer(&mut self, limit: Option<Time>, out: &mut Vec<Completion>) -> Option<Time> {
        self.host.run(limit.unwrap_or(Time::MAX), out)
    }
}

impl<P: Behind + 'static, W: Watch> Rigged for Machine<P, W> {
    fn as_device(&mut self) -> &mut dyn Device {
        self
    }

    fn account(&self) -> Option<&Account> {
        Some(self.host.account())
    }

    fn stack(&self) -> Stack {
        self.host.port().stack()
    }

    fn network(&self, end: Time) -> Option<NetworkResult> {
        self.host.port().network(end)
    }

    fn gone_because(&self) -> Option<NvmeError> {
        self.host.port().gone_because()
    }

    fn faults(&self) -> Option<FaultsResult> {
        self.host.port().faults()
    }

    fn laws(&self, laws: &mut Vec<Invariant>) {
        let account = self.host.account();
        let delivered: u64 = account.delivered_by_core.iter().sum();
        laws.push(Invariant {
            name: "host_requests".into(),
            holds: account.requests == delivered && self.host.is_idle(),
            detail: format!("{} handed in, {delivered} reported", account.requests),
        });
        let taken = account.interrupts + account.interrupts_merged;
        let polled = account.interrupts == 0;
        laws.push(Invariant {
            name: "host_interrupts".into(),
            holds: polled || account.messages == taken,
            detail: format!("{} messages, {taken} taken or merged", account.messages),
        });
        let late = self.host.late_errors();
        laws.push(Invariant {
            name: "late_errors".into(),
            // On order they may, and where the driver gave commands up.
            holds: late == 0 || self.host.port().faults().is_some(),
            detail: format!("{late} writes failed after they had been reported as done"),
        });
        self.host.port().laws(laws);
    }
}
