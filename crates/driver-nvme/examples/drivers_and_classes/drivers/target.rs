//! A driver and a simulated device as one block target: the driver's path without a host model.

use ssdyno_block::{BlockTarget, Completion, Request, SubmitError, Time, Token};
use ssdyno_driver_nvme::{IoCompletion, NvmeConfig, NvmeDriver, NvmeError, SimulatedNvme};
use ssdyno_pci::{PciDevice, SimulatedPci};

use super::requests::Requests;

/// One namespace behind an [`NvmeDriver`] over a [`SimulatedPci`], on one virtual clock.
///
/// Time zero is the moment at which the driver became ready. All requests share one buffer, for
/// nobody looks at their contents; a request longer than the buffer is done piece by piece. Requests
/// that the driver cannot take at once (full queue, reset) wait here; [`SubmitError::Full`] comes when
/// as many wait or are outstanding as the queues hold.
#[derive(Debug)]
pub struct NvmeTarget<D> {
    nvme: SimulatedNvme<D>,
    requests: Requests,
    /// The device's time when the target's began, and now.
    epoch: Time,
    at: Time,
    completions: Vec<IoCompletion>,
}

impl<D: PciDevice> NvmeTarget<D> {
    /// Starts a driver for `pci` and takes `namespace`. `buffer_bytes` is the size of the buffer that
    /// requests share, at least a page.
    ///
    /// # Errors
    /// The driver could not start, or there is no such namespace that it can use.
    pub fn start(
        pci: SimulatedPci<D>,
        config: NvmeConfig,
        namespace: u32,
        buffer_bytes: u32,
    ) -> Result<NvmeTarget<D>, NvmeError> {
        let mut nvme = SimulatedNvme::new(pci, config);
        nvme.start()?;
        let SimulatedNvme { driver, pci, .. } = &mut nvme;
        let found = driver.namespaces().iter().find(|n| n.id == namespace && n.unusable.is_none());
        let namespace = *found.ok_or(NvmeError::NoUsableNamespace { namespace })?;
        let requests = Requests::new(driver, pci, namespace, buffer_bytes)?;
        let at = nvme.now;
        Ok(NvmeTarget { nvme, requests, epoch: at, at, completions: Vec::with_capacity(256) })
    }

    /// The driver.
    pub fn driver(&self) -> &NvmeDriver {
        &self.nvme.driver
    }

    /// The device in its slot, with its counters, faults and hooks.
    pub fn pci(&self) -> &SimulatedPci<D> {
        &self.nvme.pci
    }

    /// The device's time at this target's time zero.
    pub fn epoch(&self) -> Time {
        self.epoch
    }

    /// Brings everything to the device's time `at`.
    fn run_to(&mut self, at: Time) {
        self.at = self.at.max(at);
        self.nvme.run_to(self.at, &mut self.completions);
        self.requests.answered(self.at.into(), &mut self.completions);
        let SimulatedNvme { driver, pci, .. } = &mut self.nvme;
        self.requests.issue(driver, pci, self.at.into());
    }
}

impl<D: PciDevice> BlockTarget for NvmeTarget<D> {
    fn capacity_bytes(&self) -> u64 {
        self.requests.namespace().capacity_bytes()
    }

    fn sector_bytes(&self) -> u32 {
        self.requests.namespace().block_bytes
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        self.at = self.at.max(now + self.epoch);
        let SimulatedNvme { driver, pci, .. } = &mut self.nvme;
        pci.set_now(self.at);
        self.requests.submit(driver, pci, self.at.into(), request, token)
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        let until = now + self.epoch;
        while let Some(at) = self.nvme.next_event().filter(|&at| at <= until) {
            self.run_to(at);
        }
        self.at = self.at.max(until);
        let epoch = self.epoch.into();
        out.extend(self.requests.take_done().map(|done| Completion {
            token: done.token,
            status: done.status,
            accepted: done.accepted.since(epoch),
            completed: done.completed.since(epoch),
        }));
    }

    fn next_event(&self) -> Option<Time> {
        if self.requests.has_done() {
            return Some(self.at - self.epoch);
        }
        self.nvme.next_event().map(|at| at.saturating_sub(self.epoch))
    }
}
