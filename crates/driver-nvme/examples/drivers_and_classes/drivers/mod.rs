//! Drivers and classes of devices as exchangeable parts (S1-24).
//!
//! [`PciDriver`] is the thesis' *driver multiplexor* (its `ddm_…` functions): one controller, driven.
//! [`DriverType`] finds out whether a driver suits a function, and makes one. [`ClassDriver`] is the
//! *class multiplexor* (`dcl_…`): the one interface to all devices of a class, whatever drives them.
//! [`Registry`] brings functions and drivers together. [`NvmeType`] is the NVMe driver as such a part, and
//! [`NvmeTarget`](target::NvmeTarget) the same driver, with a simulated device, as a block target.

#![allow(dead_code, unreachable_pub, reason = "the tests use more of it than the example")]

mod nvme;
mod registry;
mod requests;
pub mod target;
mod units;

use ssdyno_block::{Completion, MonotonicTime, Request, SubmitError, Token};
use ssdyno_pci::driver::DriverFlags;
use ssdyno_pci::{
    DeviceClass, DmaRegion, FunctionError, InterruptMode, PciAddress, PciFunction, tree,
};

pub use nvme::NvmeType;
pub use registry::Registry;
pub use units::Units;

/// Which of the volumes of its device a driver serves (S1-43): a namespace of an NVMe controller, say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Volume {
    /// Its number on the device.
    pub number: u32,
    /// Volumes that the device has and the driver could serve.
    pub of: u32,
}

/// How well a driver suits a function; more is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Suits {
    /// It drives all devices of this class code.
    Class,
    /// It was made for this vendor and device.
    Device,
}

/// A kind of driver.
pub trait DriverType {
    /// What it is called.
    fn name(&self) -> &'static str;
    /// Whether it drives `function` (`ddm_probe`, its first half).
    fn suits(&self, function: &tree::Function) -> Option<Suits>;
    /// A driver of the function at `address` (`ddm_probe`, its second half). The controller is not
    /// touched before [`PciDriver::start`].
    ///
    /// # Errors
    /// The function is not what it seemed.
    fn bind(
        &self,
        address: PciAddress,
        function: Box<dyn PciFunction>,
    ) -> Result<Box<dyn PciDriver>, DriverError>;
}

/// One controller, driven. Passive: it never waits, and reads no clock.
///
/// The driver owes what a [`BlockTarget`](ssdyno_block::BlockTarget) owes; the caller owes to call
/// [`watchdog`](PciDriver::watchdog) at the times it names.
pub trait PciDriver {
    /// Which function it drives (`ddm_get_id`).
    fn id(&self) -> PciAddress;
    /// What it wants now (`ddm_get_cap`). [`DriverFlags::PIN_AT_START`] goes when it is ready.
    fn flags(&self) -> DriverFlags;
    /// The volume that its requests go to, once it is ready; none where a device is one volume.
    fn volume(&self) -> Option<Volume> {
        None
    }
    /// Starts to start the controller (`ddm_start`). It is ready when
    /// [`is_ready`](PciDriver::is_ready) says so.
    ///
    /// # Errors
    /// The controller cannot be started.
    fn start(&mut self, now: MonotonicTime) -> Result<(), DriverError>;
    /// True once it takes requests.
    fn is_ready(&self) -> bool;
    /// Begins to stop the controller (`ddm_stop`): it takes no request any more, and those that are
    /// outstanding end, answered or abandoned. [`watchdog`](PciDriver::watchdog) goes on until it names
    /// no time.
    fn stop(&mut self, now: MonotonicTime);
    /// Interrupt `vector` came (`ddm_interrupt`).
    fn interrupt(&mut self, now: MonotonicTime, vector: u16);
    /// Takes a request (`ddm_readwrite`).
    ///
    /// # Errors
    /// As for [`BlockTarget::submit`](ssdyno_block::BlockTarget::submit).
    fn read_write(
        &mut self,
        now: MonotonicTime,
        request: Request,
        token: Token,
    ) -> Result<(), SubmitError>;
    /// Appends what has completed.
    fn reap(&mut self, now: MonotonicTime, out: &mut Vec<Completion<MonotonicTime>>);
    /// Looks after requests that take too long, and after the start; names the time of the next look
    /// (`ddm_watchdog`).
    fn watchdog(&mut self, now: MonotonicTime) -> Option<MonotonicTime>;
    /// Begins to suspend the controller, which loses its power afterwards, or (`keeps_power`) goes to a low
    /// power state. What it has in hand ends; requests that it has not begun wait for the resume.
    /// [`watchdog`](PciDriver::watchdog) goes on until [`is_suspended`](PciDriver::is_suspended) says so.
    ///
    /// # Errors
    /// The controller is not ready, or the driver suspends none: stop it instead.
    fn suspend(&mut self, now: MonotonicTime, keeps_power: bool) -> Result<(), DriverError> {
        let _ = (now, keeps_power);
        Err(DriverError::NoSuspend(self.id()))
    }
    /// The controller is suspended.
    fn is_suspended(&self) -> bool {
        false
    }
    /// Begins to resume a suspended controller, whose configuration space is restored already. It is ready
    /// when [`is_ready`](PciDriver::is_ready) says so.
    ///
    /// # Errors
    /// It is not suspended, or does not answer.
    fn resume(&mut self, now: MonotonicTime) -> Result<(), DriverError> {
        let _ = now;
        Err(DriverError::NoSuspend(self.id()))
    }
    /// The function below: for buffers and interrupts.
    fn function(&mut self) -> &mut dyn PciFunction;
}

/// A device of a class, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Unit(pub u32);

/// The one interface to all devices of a class: storage, network, or bridges.
pub trait ClassDriver {
    /// Which class.
    fn class(&self) -> DeviceClass;
    /// Takes a device (`dcl_new`). Bridges have no driver: they are passive.
    fn add(&mut self, address: PciAddress, driver: Option<Box<dyn PciDriver>>) -> Unit;
    /// Where the device is (`dcl_get_id`).
    ///
    /// # Errors
    /// There is no such device.
    fn id(&self, unit: Unit) -> Result<PciAddress, DriverError>;
    /// What its driver says (`dcl_get_cap`).
    ///
    /// # Errors
    /// There is no such device.
    fn flags(&self, unit: Unit) -> Result<DriverFlags, DriverError>;
    /// The volume that its requests go to, see [`PciDriver::volume`].
    ///
    /// # Errors
    /// There is no such device.
    fn volume(&self, unit: Unit) -> Result<Option<Volume>, DriverError>;
    /// Starts it (`dcl_start`), with the interrupts that its driver wants for the start.
    ///
    /// # Errors
    /// There is no such device, or its driver cannot.
    fn start(&mut self, unit: Unit, now: MonotonicTime) -> Result<(), DriverError>;
    /// Stops it (`dcl_stop`).
    ///
    /// # Errors
    /// There is no such device.
    fn stop(&mut self, unit: Unit, now: MonotonicTime) -> Result<(), DriverError>;
    /// Hands over a request.
    ///
    /// # Errors
    /// There is no such device, it takes no requests, or refuses this one.
    fn read_write(
        &mut self,
        unit: Unit,
        now: MonotonicTime,
        request: Request,
        token: Token,
    ) -> Result<(), DriverError>;
    /// Tells of completed requests (`dcl_write_done`), and switches a device whose controller has
    /// become ready to its best kind of interrupts (S1-21). What was on its way by the old kind may be
    /// lost, so its driver is told of every vector once.
    ///
    /// # Errors
    /// There is no such device, or it refuses the interrupts.
    fn done(
        &mut self,
        unit: Unit,
        now: MonotonicTime,
        out: &mut Vec<Completion<MonotonicTime>>,
    ) -> Result<(), DriverError>;
    /// Memory that the device can reach (`dcl_devbuf_alloc`).
    ///
    /// # Errors
    /// There is no such device, it has no driver, or there is no memory.
    fn allocate(&mut self, unit: Unit, bytes: u32) -> Result<DmaRegion, DriverError>;
    /// Gives it back (`dcl_devbuf_free`).
    ///
    /// # Errors
    /// There is no such device, or it has no driver.
    fn free(&mut self, unit: Unit, region: DmaRegion) -> Result<(), DriverError>;
    /// Whether the device is in operation (`dcl_isoperational`).
    ///
    /// # Errors
    /// There is no such device.
    fn is_operational(&self, unit: Unit) -> Result<bool, DriverError>;
}

/// Why a driver or a class did not do what it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DriverError {
    /// No such unit.
    #[error("there is no unit {0} of this class")]
    NoUnit(u32),
    /// Nobody drives it.
    #[error("no driver suits {0}; bridges and devices of unknown classes have none")]
    NoDriver(PciAddress),
    /// It is stopped, or not ready yet.
    #[error("{0} is not in operation; start it, and wait until it is ready")]
    NotOperational(PciAddress),
    /// Its driver suspends no controllers.
    #[error("the driver of {0} cannot suspend it; stop it, and start it again afterwards")]
    NoSuspend(PciAddress),
    /// The controller does not do what the driver needs.
    #[error("{address} cannot be driven: {reason}")]
    Unfit {
        /// Which function.
        address: PciAddress,
        /// What is missing.
        reason: &'static str,
    },
    /// It does not become ready.
    #[error("{address} did not become ready in time")]
    Timeout {
        /// Which function.
        address: PciAddress,
    },
    /// The request was refused.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The function refused.
    #[error(transparent)]
    Function(#[from] FunctionError),
}

/// Kind of interrupts and number of vectors.
pub type Interrupts = Option<(InterruptMode, u16)>;
