//! The devices of one class.

use ssdyno_block::{Completion, MonotonicTime, Request, Token};
use ssdyno_pci::driver::DriverFlags;
use ssdyno_pci::interrupts::set_interrupts;
use ssdyno_pci::{DeviceClass, DmaRegion, PciAddress};

use super::{ClassDriver, DriverError, Interrupts, PciDriver, Unit, Volume};

/// The class driver of this project: the same for storage, network and bridges. Bridges have no
/// driver; their state is logical and their hardware is left alone (thesis, 3.3).
pub struct Units {
    class: DeviceClass,
    units: Vec<State>,
}

struct State {
    address: PciAddress,
    driver: Option<Box<dyn PciDriver>>,
    started: bool,
    interrupts: Interrupts,
    /// The interrupts are those for the start only.
    starting: bool,
}

impl Units {
    /// No devices of `class` yet.
    pub fn new(class: DeviceClass) -> Units {
        Units { class, units: Vec::new() }
    }

    /// The interrupts that a device has now.
    ///
    /// # Errors
    /// There is no such device.
    pub fn interrupts(&self, unit: Unit) -> Result<Interrupts, DriverError> {
        Ok(self.get(unit)?.interrupts)
    }

    /// Interrupt `vector` of a device came.
    ///
    /// # Errors
    /// There is no such device, or it has no driver.
    pub fn interrupt(
        &mut self,
        unit: Unit,
        now: MonotonicTime,
        vector: u16,
    ) -> Result<(), DriverError> {
        self.driver(unit)?.interrupt(now, vector);
        Ok(())
    }

    /// Lets the driver of a device look after what takes too long.
    ///
    /// # Errors
    /// There is no such device, or it has no driver.
    pub fn watchdog(
        &mut self,
        unit: Unit,
        now: MonotonicTime,
    ) -> Result<Option<MonotonicTime>, DriverError> {
        Ok(self.driver(unit)?.watchdog(now))
    }

    /// Begins to suspend a device, see [`PciDriver::suspend`].
    ///
    /// # Errors
    /// There is no such device, it has no driver, or that does not suspend it.
    pub fn suspend(
        &mut self,
        unit: Unit,
        now: MonotonicTime,
        keeps_power: bool,
    ) -> Result<(), DriverError> {
        self.driver(unit)?.suspend(now, keeps_power)
    }

    /// Whether a device is suspended.
    ///
    /// # Errors
    /// There is no such device.
    pub fn is_suspended(&self, unit: Unit) -> Result<bool, DriverError> {
        Ok(self.get(unit)?.driver.as_ref().is_some_and(|driver| driver.is_suspended()))
    }

    /// Begins to resume a suspended device, see [`PciDriver::resume`].
    ///
    /// # Errors
    /// There is no such device, it has no driver, is not suspended, or does not answer.
    pub fn resume(&mut self, unit: Unit, now: MonotonicTime) -> Result<(), DriverError> {
        self.driver(unit)?.resume(now)
    }

    fn get(&self, unit: Unit) -> Result<&State, DriverError> {
        self.units.get(unit.0 as usize).ok_or(DriverError::NoUnit(unit.0))
    }

    fn get_mut(&mut self, unit: Unit) -> Result<&mut State, DriverError> {
        self.units.get_mut(unit.0 as usize).ok_or(DriverError::NoUnit(unit.0))
    }

    fn driver(&mut self, unit: Unit) -> Result<&mut Box<dyn PciDriver>, DriverError> {
        let state = self.get_mut(unit)?;
        state.driver.as_mut().ok_or(DriverError::NoDriver(state.address))
    }
}

impl ClassDriver for Units {
    fn class(&self) -> DeviceClass {
        self.class
    }

    fn add(&mut self, address: PciAddress, driver: Option<Box<dyn PciDriver>>) -> Unit {
        let unit = Unit(self.units.len() as u32);
        let (started, interrupts, starting) = (false, None, false);
        self.units.push(State { address, driver, started, interrupts, starting });
        unit
    }

    fn id(&self, unit: Unit) -> Result<PciAddress, DriverError> {
        Ok(self.get(unit)?.address)
    }

    fn flags(&self, unit: Unit) -> Result<DriverFlags, DriverError> {
        let driver = self.get(unit)?.driver.as_ref();
        Ok(driver.map_or(DriverFlags::NO_INTERRUPTS, |driver| driver.flags()))
    }

    fn volume(&self, unit: Unit) -> Result<Option<Volume>, DriverError> {
        Ok(self.get(unit)?.driver.as_ref().and_then(|driver| driver.volume()))
    }

    fn start(&mut self, unit: Unit, now: MonotonicTime) -> Result<(), DriverError> {
        let state = self.get_mut(unit)?;
        if let Some(driver) = &mut state.driver {
            let flags = driver.flags();
            state.interrupts = set_interrupts(driver.function(), flags)?;
            state.starting = flags.contains(DriverFlags::PIN_AT_START);
            driver.start(now)?;
        }
        state.started = true;
        Ok(())
    }

    fn stop(&mut self, unit: Unit, now: MonotonicTime) -> Result<(), DriverError> {
        let state = self.get_mut(unit)?;
        if let Some(driver) = &mut state.driver {
            driver.stop(now);
        }
        state.started = false;
        Ok(())
    }

    fn read_write(
        &mut self,
        unit: Unit,
        now: MonotonicTime,
        request: Request,
        token: Token,
    ) -> Result<(), DriverError> {
        let operational = self.is_operational(unit)?;
        let address = self.id(unit)?;
        let driver = self.driver(unit)?;
        if !operational {
            return Err(DriverError::NotOperational(address));
        }
        Ok(driver.read_write(now, request, token)?)
    }

    fn done(
        &mut self,
        unit: Unit,
        now: MonotonicTime,
        out: &mut Vec<Completion<MonotonicTime>>,
    ) -> Result<(), DriverError> {
        let state = self.get_mut(unit)?;
        let Some(driver) = &mut state.driver else { return Ok(()) };
        driver.reap(now, out);
        let flags = driver.flags();
        if state.starting && driver.is_ready() && !flags.contains(DriverFlags::PIN_AT_START) {
            state.interrupts = set_interrupts(driver.function(), flags)?;
            state.starting = false;
            let vectors = state.interrupts.map_or(0, |(_, vectors)| vectors);
            (0..vectors).for_each(|vector| driver.interrupt(now, vector));
            driver.reap(now, out);
        }
        Ok(())
    }

    fn allocate(&mut self, unit: Unit, bytes: u32) -> Result<DmaRegion, DriverError> {
        Ok(self.driver(unit)?.function().dma_allocate(bytes)?)
    }

    fn free(&mut self, unit: Unit, region: DmaRegion) -> Result<(), DriverError> {
        self.driver(unit)?.function().dma_free(region);
        Ok(())
    }

    fn is_operational(&self, unit: Unit) -> Result<bool, DriverError> {
        let state = self.get(unit)?;
        Ok(state.started && state.driver.as_ref().is_none_or(|driver| driver.is_ready()))
    }
}
