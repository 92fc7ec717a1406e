//! The driver as a part of a system of drivers and classes (S1-24): found by class code, bound to a
//! function of whatever implementation, started and used through the interface that all drivers have.

use ssdyno_block::{Completion, MonotonicTime, Request, SubmitError, Token};
use ssdyno_driver_nvme::{
    DriverState, InterruptChoice, IoCompletion, Namespace, NvmeConfig, NvmeDriver, NvmeError,
    SuspendMode,
};
use ssdyno_pci::driver::DriverFlags;
use ssdyno_pci::{Function, PciAddress, PciFunction};

use super::requests::Requests;
use super::{DriverError, DriverType, PciDriver, Suits, Volume};

/// Class code of an NVMe controller (base 2.0c, clause 2: I/O controllers).
const CLASS: u32 = 0x01_0802;

/// The kind of driver that drives all NVMe controllers.
///
/// A unit is one namespace: the one that was [chosen](NvmeType::serving), or the first that can be used;
/// [`PciDriver::volume`] says which, and of how many. As with [`NvmeTarget`](super::NvmeTarget) all its
/// requests share one buffer, for a [`Request`] does not say where its data is.
#[derive(Clone, Debug)]
pub struct NvmeType {
    config: NvmeConfig,
    buffer_bytes: u32,
    namespace: Option<u32>,
}

impl NvmeType {
    /// With this configuration for each controller, but the kind of interrupts: that is the best the
    /// class can give. With [`NvmeConfig::pin_first`] its units say so
    /// ([`DriverFlags::PIN_AT_START`]). `buffer_bytes` is the size of a unit's buffer.
    pub fn new(config: NvmeConfig, buffer_bytes: u32) -> NvmeType {
        let config = NvmeConfig { interrupts: InterruptChoice::Best, ..config };
        NvmeType { config, buffer_bytes, namespace: None }
    }

    /// Its units are `namespace` of their controller and no other (S1-43). A controller that has none of
    /// this number, or one that cannot be used, never becomes ready.
    #[must_use]
    pub fn serving(self, namespace: u32) -> NvmeType {
        NvmeType { namespace: Some(namespace), ..self }
    }

    /// Its units say that what is asked of them comes through the SCSI resource
    /// ([`DriverFlags::SCSI`], S1-47).
    #[must_use]
    pub fn behind_scsi(self) -> NvmeType {
        NvmeType { config: NvmeConfig { scsi: true, ..self.config }, ..self }
    }
}

impl DriverType for NvmeType {
    fn name(&self) -> &'static str {
        "nvme"
    }

    fn suits(&self, function: &Function) -> Option<Suits> {
        (function.header.class == CLASS).then_some(Suits::Class)
    }

    fn bind(
        &self,
        address: PciAddress,
        function: Box<dyn PciFunction>,
    ) -> Result<Box<dyn PciDriver>, DriverError> {
        Ok(Box::new(NvmeUnit {
            address,
            function,
            driver: NvmeDriver::new(self.config.clone()),
            requests: None,
            buffer_bytes: self.buffer_bytes,
            namespace: self.namespace,
            opened: false,
            answers: Vec::new(),
        }))
    }
}

/// One controller, driven.
struct NvmeUnit {
    address: PciAddress,
    function: Box<dyn PciFunction>,
    driver: NvmeDriver,
    /// Once the controller is ready and has a namespace that can be used, until it is stopped.
    requests: Option<Requests>,
    buffer_bytes: u32,
    /// The one that is wanted; none: the first.
    namespace: Option<u32>,
    /// It was looked for a namespace since the start.
    opened: bool,
    answers: Vec<IoCompletion>,
}

impl NvmeUnit {
    /// Hands on what the driver completed, and does what its state asks for.
    fn go_on(&mut self, now: MonotonicTime) {
        let NvmeUnit { driver, function, requests, answers, .. } = self;
        if let Some(requests) = requests {
            requests.answered(now, answers);
            requests.issue(driver, function, now);
        }
        match driver.state() {
            DriverState::Ready if !self.opened => self.open(),
            DriverState::Stopped | DriverState::Failed(_) => self.close(),
            _ => {}
        }
    }

    /// The controller is ready: takes the namespace that is wanted, or the first that can be used.
    fn open(&mut self) {
        self.opened = true;
        let mut all = self.driver.namespaces().iter();
        let wanted = |n: &&Namespace| {
            n.unusable.is_none() && self.namespace.is_none_or(|wanted| n.id == wanted)
        };
        let Some(namespace) = all.find(wanted).copied() else { return };
        let (driver, function) = (&self.driver, &mut self.function);
        let room = self.answers.try_reserve(driver.outstanding_limit() as usize);
        let requests = Requests::new(driver, function, namespace, self.buffer_bytes);
        self.requests = requests.ok().filter(|_| room.is_ok());
    }

    /// The controller is off, and nothing will reach the buffer any more: gives it back once the last
    /// answer was taken.
    fn close(&mut self) {
        if let Some(requests) = self.requests.take_if(|r| r.is_idle() && !r.has_done()) {
            self.function.dma_free(requests.buffer());
        }
    }

    fn error(&self, error: NvmeError) -> DriverError {
        let address = self.address;
        let reason = match error {
            NvmeError::Function(error) => return DriverError::Function(error),
            NvmeError::ReadyTimeout { .. } => return DriverError::Timeout { address },
            NvmeError::RegistersMissing { .. } => "BAR 0 has no room for its registers",
            NvmeError::NoNvmCommandSet => "it has no NVM command set (CAP.CSS)",
            NvmeError::NoMemory => "the heap has no room",
            NvmeError::PageSize { .. } => "its pages are larger than 4096 bytes (CAP.MPSMIN)",
            NvmeError::NoWeightedArbitration => "it has no weighted round robin (CAP.AMS)",
            NvmeError::WrongState { .. } => "it has not stopped yet",
            _ => "it could not be started",
        };
        DriverError::Unfit { address, reason }
    }
}

impl PciDriver for NvmeUnit {
    fn id(&self) -> PciAddress {
        self.address
    }

    fn flags(&self) -> DriverFlags {
        let starts = self.driver.config().pin_first && !self.is_ready();
        let pin = if starts { DriverFlags::PIN_AT_START } else { DriverFlags::empty() };
        self.driver.flags() | pin
    }

    fn volume(&self) -> Option<Volume> {
        let number = self.requests.as_ref().filter(|_| self.is_ready())?.namespace().id;
        let usable = self.driver.namespaces().iter().filter(|n| n.unusable.is_none()).count();
        Some(Volume { number, of: usable as u32 })
    }

    fn start(&mut self, now: MonotonicTime) -> Result<(), DriverError> {
        self.close();
        let started = self.driver.start(&mut self.function, now);
        started.map_err(|error| self.error(error))?;
        self.opened = false;
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.driver.state() == DriverState::Ready && self.requests.is_some()
    }

    fn stop(&mut self, now: MonotonicTime) {
        // What is not up cannot be shut down in order: it is cut off.
        if self.driver.shutdown(&mut self.function, now).is_err() {
            self.driver.removed(&mut self.function, &mut self.answers);
        }
        self.go_on(now);
    }

    fn interrupt(&mut self, now: MonotonicTime, vector: u16) {
        self.driver.on_interrupt(&mut self.function, now, vector, &mut self.answers);
        self.go_on(now);
    }

    fn read_write(
        &mut self,
        now: MonotonicTime,
        request: Request,
        token: Token,
    ) -> Result<(), SubmitError> {
        let Some(requests) = &mut self.requests else { return Err(SubmitError::Full) };
        let namespace = requests.namespace();
        request.check(namespace.capacity_bytes(), namespace.block_bytes)?;
        requests.submit(&mut self.driver, &mut self.function, now, request, token)
    }

    fn reap(&mut self, _now: MonotonicTime, out: &mut Vec<Completion<MonotonicTime>>) {
        if let Some(requests) = &mut self.requests {
            requests.append_done(out);
        }
        if matches!(self.driver.state(), DriverState::Stopped | DriverState::Failed(_)) {
            self.close();
        }
    }

    fn watchdog(&mut self, now: MonotonicTime) -> Option<MonotonicTime> {
        if self.driver.next_deadline().is_some_and(|at| at <= now) {
            self.driver.poll(&mut self.function, now, &mut self.answers);
        }
        self.go_on(now);
        self.driver.next_deadline()
    }

    fn suspend(&mut self, now: MonotonicTime, keeps_power: bool) -> Result<(), DriverError> {
        let mode = if keeps_power { SuspendMode::PowerState } else { SuspendMode::PowerOff };
        let begun = self.driver.suspend(now, mode);
        begun.map_err(|_| DriverError::NotOperational(self.address))
    }

    fn is_suspended(&self) -> bool {
        self.driver.state() == DriverState::Suspended
    }

    fn resume(&mut self, now: MonotonicTime) -> Result<(), DriverError> {
        let resumed = self.driver.resume(&mut self.function, now, &mut self.answers);
        self.go_on(now);
        resumed.map_err(|error| match error {
            NvmeError::WrongState { .. } => {
                let (address, reason) = (self.address, "it is not suspended");
                DriverError::Unfit { address, reason }
            }
            error => self.error(error),
        })
    }

    fn function(&mut self) -> &mut dyn PciFunction {
        &mut *self.function
    }
}
