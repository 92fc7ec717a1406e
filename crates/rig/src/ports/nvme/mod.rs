//! The NVMe driver over a simulated function with a controller and a device behind it. Here is the way of a
//! command; what happens when it does not end as it should is in `error_recovery`.

mod error_recovery;
pub(crate) mod power;
mod scsi;

use ssdyno_block::{Completion, MonotonicTime, Op, Request, Status, SubmitError, Time, Token};
use ssdyno_controller_nvme::NvmeController;
use ssdyno_device::faults::FaultConfig;
use ssdyno_device::nvme::NvmeSetup;
use ssdyno_device::{Device, DeviceReport};
use ssdyno_driver_nvme::{
    DataBuffer, InterruptChoice, IoCommand, IoCompletion, IoError, IoResult, Namespace, NvmeConfig,
    NvmeDriver, NvmeError, PriorityClass, QueuePolicy, SimulatedNvme,
};
use ssdyno_engine::PrepareError;
use ssdyno_engine::events::EventLog;
use ssdyno_figures::Invariant;
use ssdyno_host::{Choice, CompletionWait, HostPort, Registers, ResentCommand};
use ssdyno_pci::{DmaRegion, FaultyDevice, PciFunction, SimulatedPci};

use self::error_recovery::ErrorRecovery;
use self::scsi::ScsiLayer;
use super::{PathFigures, PathReport, accesses, dma_invariant, none_invariant, reported, timing};
use crate::attach::{HostPlan, Stack};
use crate::error::RunError;
use crate::namespaces;

/// See the module. Time zero is when the driver was ready.
#[derive(Debug)]
pub(crate) struct NvmePort<D> {
    pci: SimulatedPci<NvmeController<D>>,
    driver: NvmeDriver,
    /// Those that are loaded.
    namespaces: Vec<Namespace>,
    /// The part of the addresses of this port that each of them has; all of them if there is one.
    span: u64,
    /// All commands share it: their data is not used.
    buffer: DmaRegion,
    epoch: Time,
    polled: bool,
    shared: bool,
    /// The core of each vector.
    cores: Vec<u16>,
    outstanding: u32,
    /// The driver's next deadline, [`Time::MAX`] for none.
    deadline: Time,
    /// The same while nothing is outstanding.
    alarm: Time,
    /// Completion entries that the controller had written when it was looked at last.
    seen: u64,
    answers: Vec<IoCompletion>,
    scsi: Option<ScsiLayer>,
    /// By vector: an interrupt has reached a core, and its handler has not run.
    raised: Vec<bool>,
    recovery: Box<ErrorRecovery>,
    /// Failed commands that were given again and not yet paid for.
    resent: Vec<ResentCommand>,
}

impl<D: Device> NvmePort<D> {
    /// Puts `device` behind a controller as `setup` says, and lets the driver start that. Injected
    /// `faults` are drawn with `seed`, from then on.
    pub(crate) fn start(
        setup: NvmeSetup,
        faults: &FaultConfig,
        driver: &NvmeConfig,
        host: &HostPlan,
        mut device: D,
        seed: u64,
    ) -> Result<NvmePort<D>, RunError> {
        power::check(&setup, driver, device.power().map(|power| &*power))?;
        let controller = NvmeController::in_front_of(device, setup)?;
        let pci = SimulatedPci::new(controller, timing(&host.config));
        let polled = host.plan.waiting != CompletionWait::Interrupt;
        let cores = host.plan.cores;
        let mut config = NvmeConfig { cores, ..driver.clone() };
        // S1-22: interrupts are configured but ignored. With polling the controller must not send
        // messages, which would otherwise be charged to cores that never take them.
        if polled {
            config.interrupts = InterruptChoice::Polling;
        }
        let mut nvme = SimulatedNvme::new(pci, config);
        nvme.start()?;
        let epoch = nvme.now;
        let (mut pci, mut driver) = nvme.into_parts();
        power::refused(&mut driver)?;
        let namespaces = namespaces::chosen(&driver, &host.namespaces)?;
        let buffer = pci.dma_allocate(driver.transfer_bytes_max()).map_err(NvmeError::from)?;
        pci.device_mut().device_mut().events().begin_at(epoch);
        // The costs of the start are discarded. Time zero of the run is when the driver is ready,
        // and the accesses of the initialisation belong to no request.
        pci.take_stall();
        pci.take_accesses();
        pci.watch_memory(polled);
        // Faults are armed after the start. A fault during the initialisation would end the run
        // before its first request, which is not what a rate per request means.
        if !faults.is_none() {
            pci.device_mut().arm(faults.plan(seed, epoch));
        }
        let recovery = ErrorRecovery::new(!faults.is_none(), host.retries);
        let shared = driver.choose(0, PriorityClass::default()).lock.is_some();
        let deadline = driver.next_deadline().map_or(Time::MAX, MonotonicTime::time);
        let stack = reported("nvme", driver.flags(), host.stack)?;
        let scsi = (stack == Stack::Scsi).then(|| ScsiLayer::new(&namespaces)).transpose()?;
        let mut port = NvmePort {
            scsi,
            recovery,
            alarm: Time::MAX,
            raised: vec![false; usize::from(driver.queues()) + 1],
            cores: vector_cores(&driver, cores),
            seen: pci.device().counters().completions,
            pci,
            driver,
            // With one namespace no address is divided. The comparison with the largest number
            // replaces a division for each command.
            span: if namespaces.len() == 1 { u64::MAX } else { namespaces::span(&namespaces) },
            namespaces,
            buffer,
            epoch,
            polled,
            shared,
            outstanding: 0,
            deadline,
            answers: Vec::with_capacity(256),
            resent: Vec::new(),
        };
        port.note_trouble(epoch);
        Ok(port)
    }
}

impl<D: Device> NvmePort<D> {
    /// Those that are loaded, in the order of their addresses.
    pub(crate) fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// When the driver looks for what is lost.
    #[inline]
    fn watchdog(&self) -> Time {
        // Deadlines of commands matter only where something is lost.
        // With nothing outstanding, a deadline would be an event without an effect. It would extend
        // the run beyond its last completion, and idle energy with it.
        if self.outstanding > 0 { self.deadline } else { self.alarm }
    }

    /// Something was done to the driver.
    #[inline]
    fn note_deadline(&mut self) {
        self.deadline = self.driver.next_deadline().map_or(Time::MAX, MonotonicTime::time);
    }

    /// Gives the driver a command of the host.
    #[inline(always)]
    fn give(
        &mut self,
        now: Time,
        queue: u16,
        request: Request,
        token: Token,
        more: bool,
    ) -> Result<(), IoError> {
        let mut request = request;
        let mut index = 0;
        if request.offset_bytes >= self.span {
            index = (request.offset_bytes / self.span) as usize;
            request.offset_bytes %= self.span;
        }
        let namespace = &self.namespaces[index];
        let scsi = self.scsi.as_mut();
        if let Some(command) = scsi.and_then(|scsi| scsi.begin(index, &request, token)) {
            // The driver receives the translation of the CDB.
            // The address goes through the CDB and back. An error of the translation then shows as
            // a wrong address on the device instead of being hidden by the original request.
            if matches!(request.op, Op::Read | Op::Write) {
                let block_bytes = namespace.block_bytes;
                request.offset_bytes = command.lba() * u64::from(block_bytes);
                request.length_bytes = command.blocks() * block_bytes;
            }
        }
        let data = DataBuffer::Contiguous(self.buffer.address);
        let mut range = Default::default();
        let command = IoCommand::of_request(namespace, &request, data, &mut range);
        let taken = match more {
            // A staged command is in the queue without a doorbell. One doorbell for the batch saves
            // a register write per command; S1-31 asks for both ways to be counted.
            true => self.driver.stage(&mut self.pci, now, queue, &command, token),
            false => self.driver.submit(&mut self.pci, now, queue, &command, token),
        };
        if taken.is_err()
            && let Some(scsi) = &mut self.scsi
        {
            // The SCSI job was begun before the driver refused the command. It is undone, because
            // the same token begins it again when there is room.
            scsi.withdraw(token);
        }
        taken
    }
}

/// The core for the interrupts of each vector: that of the queue, where a queue has one.
fn vector_cores(driver: &NvmeDriver, cores: u16) -> Vec<u16> {
    let mut of_vector = vec![0; usize::from(driver.queues()) + 1];
    // The loop goes downwards, so the lowest queue decides if several share a vector. Vector 0 of
    // the admin queue keeps core 0.
    for queue in (1..=driver.queues()).rev() {
        let index = queue - 1;
        let core = match driver.config().policy {
            // S1-36: floor(31/8) = 3 queues per core, neighbouring numbers in one pool. A remainder
            // by the number of cores would spread a pool over three cores.
            QueuePolicy::PerCorePool if driver.queues() >= cores => {
                index / (driver.queues() / cores)
            }
            _ => index % cores,
        };
        // Without interrupts the queue stands for the vector.
        let vector = usize::from(driver.vector(queue).unwrap_or(queue));
        if let Some(place) = of_vector.get_mut(vector) {
            *place = core;
        }
    }
    of_vector
}

impl<D: Device> HostPort for NvmePort<D> {
    fn capacity_bytes(&self) -> u64 {
        match &self.namespaces[..] {
            [one] => one.capacity_bytes(),
            all => self.span * all.len() as u64,
        }
    }

    fn sector_bytes(&self) -> u32 {
        namespaces::block_bytes(&self.namespaces)
    }

    fn transfer_bytes_max(&self) -> u32 {
        self.driver.transfer_bytes_max()
    }

    fn locks(&self) -> u16 {
        // Round robin as printed also takes that of queue 0.
        self.driver.queues() + 1
    }

    fn shared(&self) -> bool {
        self.shared
    }

    #[inline]
    fn choose(&mut self, core: u16, class: u8) -> Choice {
        // NVMe has four classes: urgent, high, medium and low (S1-41). A larger number means the
        // lowest one instead of a failure in the path of a request.
        let class = PriorityClass::ALL[usize::from(class.min(3))];
        let choice = self.driver.choose(core, class);
        Choice { queue: choice.queue, lock: choice.lock }
    }

    #[inline]
    fn core_of(&self, vector: u16) -> u16 {
        self.cores.get(usize::from(vector)).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn submit(
        &mut self,
        now: Time,
        queue: u16,
        request: Request,
        token: Token,
        more: bool,
    ) -> Result<Registers, SubmitError> {
        let now = now + self.epoch;
        self.pci.set_now(now);
        if self.recovery.asked {
            self.recovery.note(queue, request, token);
            self.strike(now);
        }
        match self.give(now, queue, request, token, more) {
            Ok(()) => {
                self.outstanding += 1;
                self.note_deadline();
                if self.recovery.alert {
                    self.note_trouble(now);
                }
            }
            Err(IoError::Full) => return Err(SubmitError::Full),
            Err(error) => self.not_taken(now, queue, request, token, error),
        }
        Ok(accesses(&mut self.pci))
    }

    fn ring(&mut self, now: Time, queue: u16) -> Registers {
        self.pci.set_now(now + self.epoch);
        self.driver.ring_doorbell(&mut self.pci, queue);
        accesses(&mut self.pci)
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        let at = self.pci.next_event().unwrap_or(Time::MAX).min(self.watchdog());
        (at < Time::MAX).then(|| at.saturating_sub(self.epoch))
    }

    fn advance(&mut self, until: Time, vectors: &mut Vec<u16>) -> Time {
        let until = until.saturating_add(self.epoch);
        let watch = self.watchdog();
        // The device goes first at equal times. A completion at the moment of its deadline is in
        // time, and the watchdog must not look for it before.
        let device = watch > until || self.pci.next_event().is_some_and(|at| at <= watch);
        let now = if device { self.pci.run(until.min(watch)) } else { watch };
        self.pci.take_interrupts(now, vectors);
        if self.polled {
            vectors.clear();
            // A poller sees a completion when the entry is in memory. The counter replaces a look
            // at each queue for every event of the device.
            let written = self.pci.device().counters().completions;
            if written != std::mem::replace(&mut self.seen, written) {
                vectors.extend(1..=self.driver.queues());
            }
        }
        for vector in &*vectors {
            if let Some(raised) = self.raised.get_mut(usize::from(*vector)) {
                *raised = true;
            }
        }
        if self.deadline <= now && self.look_for_lost(now) {
            vectors.push(1);
        }
        now.saturating_sub(self.epoch)
    }

    #[inline(always)]
    fn complete(&mut self, now: Time, vector: u16, done: &mut Vec<Completion>) -> Registers {
        let at = now + self.epoch;
        self.pci.set_now(at);
        if let Some(raised) = self.raised.get_mut(usize::from(vector)) {
            *raised = false;
        }
        if self.polled {
            self.driver.poll_queue(&mut self.pci, vector, &mut self.answers);
        } else {
            self.driver.on_interrupt(&mut self.pci, at, vector, &mut self.answers);
        }
        // All answers leave the count before retries are considered. A retry adds itself again, so
        // the count is right at every step.
        self.outstanding -= self.answers.len() as u32;
        for answer in &self.answers {
            let mut status = answer.result.block_status();
            if let Some(scsi) = &mut self.scsi {
                match answer.result {
                    IoResult::Completed(answered) => {
                        // The SCSI status is what the application sees. A command that succeeds in
                        // NVMe and fails in SCSI is an error, and the invariant counts the
                        // difference.
                        if !scsi.end(answer.token, answered) && status == Status::Ok {
                            status = Status::Error;
                        }
                    }
                    IoResult::Abandoned => scsi.withdraw(answer.token),
                }
            }
            let token = answer.token;
            if status != Status::Ok {
                self.recovery.abandoned += u64::from(answer.result == IoResult::Abandoned);
                // Nothing is sent again to a removed device. A retry would wait for a deadline of a
                // function that no longer answers.
                if !self.is_removed()
                    && let Some(Request { op, length_bytes: bytes, .. }) =
                        self.recovery.tries_again(token, status)
                {
                    self.outstanding += 1;
                    let core = self.core_of(vector);
                    self.resent.push(ResentCommand { core, op, bytes, completed: true });
                    continue;
                }
            }
            // The handler's time would count the interrupt and the wait for the core as work of the
            // device. Time zero as acceptance: the host knows when it gave the command.
            let written = match answer.result {
                IoResult::Completed(_) => self.pci.device().written_at(answer.queue, answer.entry),
                IoResult::Abandoned => None,
            };
            let completed = written.map_or(now, |at| at.saturating_sub(self.epoch));
            done.push(Completion { token, status, accepted: Time::ZERO, completed });
        }
        self.answers.clear();
        self.note_deadline();
        // Vector 0 is the admin queue's: what it brings may change what the driver is doing.
        if self.recovery.alert || vector == 0 {
            self.recovery.called = false;
            self.hand_out(at);
        }
        accesses(&mut self.pci)
    }

    #[inline(always)]
    fn take_resent(&mut self) -> Vec<ResentCommand> {
        std::mem::take(&mut self.resent)
    }
}

impl<D: Device> PathReport for NvmePort<D> {
    fn events(&mut self) -> &mut EventLog {
        self.pci.device_mut().device_mut().events()
    }

    fn report(&self, report: &mut DeviceReport) {
        let first = report.units().len();
        self.pci.device().device().report(report);
        // The device counts time from the reset of the controller, the run from the end of the
        // start. All times of the report are converted to the clock of the run.
        for (_, at) in report.units_from(first).iter_mut().flat_map(|unit| &mut unit.idle_states) {
            *at = at.saturating_sub(self.epoch);
        }
    }

    fn expect(&self, upcoming: &[Request]) {
        self.pci.device().device().expect(upcoming);
    }

    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        self.pci.device_mut().device_mut().precondition(watcher)
    }

    fn explaining(&mut self) -> Option<&mut dyn Device> {
        Some(self.pci.device_mut().device_mut())
    }

    fn is_gone(&self) -> bool {
        self.given_up().is_some()
    }

    fn path(&self, _end: Time, report: &mut PathFigures) {
        report.stack = if self.scsi.is_some() { Stack::Scsi } else { Stack::Block };
        report.faults = self.recovered();
        report.gone_because = self.given_up();
        let invariants = &mut report.invariants;
        invariants.push(dma_invariant(self.pci.faults()));
        invariants.extend(self.scsi.as_ref().map(ScsiLayer::invariant));
        let counters = self.driver.counters();
        let controller = self.pci.device().counters();
        invariants.push(none_invariant(
            "command_identifiers",
            counters.strays,
            "completions of commands that were not outstanding",
        ));
        invariants.push(none_invariant(
            "doorbells",
            controller.bad_doorbells,
            "doorbell writes were refused",
        ));
        self.unasked_invariants(invariants);
        // In commands, of which a long request has several: some may have been answered when it was given up.
        let answered = counters.completions + counters.abandoned;
        invariants.push(Invariant {
            name: "commands".into(),
            holds: counters.commands == answered && self.outstanding == 0,
            detail: format!("{} given, {answered} answered", counters.commands),
        });
    }
}
