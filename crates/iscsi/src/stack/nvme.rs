//! Logical units that are the namespaces of an NVMe controller: SCSI translation, NVMe driver, and
//! the controller at its connector.

use ssdyno_block::{FaultPlan, Time};
use ssdyno_pci::{FaultyDevice, SimulatedPci};
use ssdyno_scsi::{
    ControllerFacts, JobProgress, NamespaceFacts, NvmeCommand, ScsiData, ScsiJob, ScsiTarget,
    Translator,
};
use ssdyno_spec::nvme::{NvmeStatus, admin, cns};

use super::backend::{Backend, Ended, Refused};
use super::device::{Device, Landed, Purpose, identify};
use super::{COMMAND_BYTES_MAX, StackError, Stage, UnitOptions, Units};

/// The namespaces of a simulated controller as logical units: LUN n is namespace n + 1.
///
/// The controller must keep data (`nvme.contents = true`) if anybody is to find what he wrote. The
/// controller's time begins when [`start`](NvmeUnits::start) has brought it up.
pub type NvmeUnits<D> = Units<NvmeBackend<D>>;

/// A driver at a controller, and the translation to its commands.
#[derive(Debug)]
pub struct NvmeBackend<D> {
    device: Device<D>,
    translator: Translator,
    options: UnitOptions,
    /// Namespaces that were identified again: for which command, with which status, and the data.
    looked: Vec<(usize, NvmeStatus, Vec<u8>)>,
}

impl<D: FaultyDevice> Backend for NvmeBackend<D> {
    type Command = NvmeCommand;
    /// Status and dword 0.
    type End = (NvmeStatus, u32);
    const NO_DATA: (NvmeStatus, u32) = (NvmeStatus::DATA_TRANSFER_ERROR, 0);
    const ABORTED: (NvmeStatus, u32) = (NvmeStatus::ABORT_REQUESTED, 0);

    fn target(&self) -> &ScsiTarget {
        &self.translator
    }

    fn target_mut(&mut self) -> &mut ScsiTarget {
        &mut self.translator
    }

    fn next_command(&self, job: &mut ScsiJob) -> Option<NvmeCommand> {
        job.next_command()
    }

    fn complete(
        &mut self,
        job: &mut ScsiJob,
        _command: &NvmeCommand,
        (status, dword0): (NvmeStatus, u32),
    ) -> JobProgress {
        self.translator.complete(job, status, dword0)
    }

    fn data(command: &NvmeCommand) -> ScsiData {
        command.data
    }

    fn is_to_host(command: &NvmeCommand) -> bool {
        command.opcode & 3 == 2
    }

    fn take_wait_ms(command: &mut NvmeCommand) -> u32 {
        std::mem::take(&mut command.wait_ms)
    }

    fn formatted(command: &NvmeCommand, end: (NvmeStatus, u32)) -> Option<u32> {
        let formats = command.admin && command.opcode == admin::FORMAT_NVM && end.0.is_success();
        formats.then_some(command.nsid)
    }

    fn send(
        &mut self,
        place: usize,
        command: NvmeCommand,
        outgoing: &[u8],
    ) -> Result<(), Refused<(NvmeStatus, u32)>> {
        self.device.send(Purpose::Command(place), command, outgoing)
    }

    fn ended(&mut self) -> Option<Ended<Self>> {
        loop {
            let Landed { purpose, command, status, dword0, data } = self.device.landed()?;
            match purpose {
                Purpose::Command(place) => {
                    return Some(Ended { place, command, end: (status, dword0), data });
                }
                Purpose::LookAgain(place) => self.looked.push((place, status, data)),
            }
        }
    }

    fn look_again(units: &mut Units<Self>) {
        units.look_again();
    }

    fn now(&self) -> Time {
        self.device.nvme.now
    }

    fn next_event(&self) -> Option<Time> {
        let fault = Some(self.device.nvme.pci.next_injection()).filter(|at| *at < Time::MAX);
        [self.device.nvme.next_event(), fault].into_iter().flatten().min()
    }

    fn go_to(&mut self, now: Time) {
        self.device.go_to(now);
    }
}

impl<D: FaultyDevice> Units<NvmeBackend<D>> {
    /// Brings the controller in its slot up, and shows all its namespaces.
    ///
    /// # Errors
    /// [`StackError`].
    pub fn start(pci: SimulatedPci<D>) -> Result<NvmeUnits<D>, StackError> {
        NvmeUnits::start_with(pci, UnitOptions::default())
    }

    /// The same, with other units.
    ///
    /// # Errors
    /// The same; [`StackError::PhysicalBlock`].
    pub fn start_with(
        pci: SimulatedPci<D>,
        options: UnitOptions,
    ) -> Result<NvmeUnits<D>, StackError> {
        let bytes = options.physical_block_bytes;
        if bytes != 0 && !bytes.is_power_of_two() {
            return Err(StackError::PhysicalBlock { bytes });
        }
        let mut device = Device::start(pci)?;
        let mut facts = ControllerFacts::from_identify(&device.identify(cns::CONTROLLER, 0)?);
        // The driver sends no fused commands, and buffers have an end.
        facts.optional.fused_compare_write = false;
        facts.optional.saveable_cache = device.saves_cache(&facts);
        facts.transfer_bytes_max = match facts.transfer_bytes_max {
            0 => COMMAND_BYTES_MAX,
            most => most.min(COMMAND_BYTES_MAX),
        };
        let ids: Vec<u32> = device.nvme.driver.namespaces().iter().map(|n| n.id).collect();
        let mut namespaces = Vec::with_capacity(ids.len());
        for id in ids {
            let mut facts =
                NamespaceFacts::from_identify(id, &device.identify(cns::NAMESPACE, id)?);
            facts.write_protected |= options.read_only;
            namespaces.push(facts);
        }
        let largest = namespaces.iter().map(|n| n.block_bytes).max().unwrap_or(0);
        let translator = Translator::new(facts, &namespaces, options.config(largest))?;
        Ok(Units::new(NvmeBackend { device, translator, options, looked: Vec::new() }))
    }

    /// With injected faults; `plan` gets the controller's time at which the callers' begins.
    #[must_use]
    pub fn with_faults(mut self, plan: impl FnOnce(Time) -> FaultPlan) -> NvmeUnits<D> {
        self.backend.device.nvme.pci.device_mut().arm(plan(self.origin));
        self
    }

    /// The device in its slot, with its counters, faults and hooks.
    pub fn pci(&self) -> &SimulatedPci<D> {
        &self.backend.device.nvme.pci
    }

    /// After a FORMAT UNIT: the namespace may have other blocks now, which driver and translator learn.
    fn look_again(&mut self) {
        while let Some((place, status, data)) = self.backend.looked.pop() {
            self.looked(place, status, &data);
        }
        let places = if self.formats > 0 { self.running.len() } else { 0 };
        for place in 0..places {
            let Some(running) = &mut self.running[place] else { continue };
            let device = &mut self.backend.device;
            match running.stage {
                Stage::Formatted(nsid) => {
                    let at = device.nvme.now;
                    if device.nvme.driver.is_scanning() {
                        // Somebody else's format.
                        continue;
                    }
                    match device.nvme.driver.rescan(&mut device.nvme.pci, at) {
                        Ok(()) => running.stage = Stage::Looking(nsid),
                        // The device is gone, or comes up again and is looked at then.
                        Err(_) => self.end(place, JobProgress::Done),
                    }
                }
                Stage::Looking(nsid)
                    if !device.nvme.driver.is_scanning() && running.unsent.is_none() =>
                {
                    let command = identify(cns::NAMESPACE, nsid);
                    match device.send(Purpose::LookAgain(place), command, &[]) {
                        // Sent once.
                        Ok(()) => running.unsent = Some(command),
                        Err(Refused::Later) => {}
                        Err(Refused::Ended(_)) => self.end(place, JobProgress::Done),
                    }
                }
                _ => {}
            }
        }
    }

    /// The namespace that the task in `place` has formatted was identified.
    fn looked(&mut self, place: usize, status: NvmeStatus, data: &[u8]) {
        let Some(running) = &self.running[place] else { return };
        if let (Stage::Looking(nsid), Ok(data), true) =
            (running.stage, data.try_into(), status.is_success())
        {
            // One that can no longer be shown stays as it was: its commands will fail.
            let mut facts = NamespaceFacts::from_identify(nsid, data);
            facts.write_protected |= self.backend.options.read_only;
            let _shown = self.backend.translator.replace_namespace(facts, Some(running.task.nexus));
        }
        self.end(place, JobProgress::Done);
    }
}
