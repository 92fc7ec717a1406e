//! Which driver gets which function.

use ssdyno_pci::{DeviceClass, Function, PciFunction};

use super::{ClassDriver, DriverError, DriverType, Unit, Units};

/// All kinds of drivers, and the devices of all classes.
pub struct Registry {
    types: Vec<Box<dyn DriverType>>,
    /// Storage devices.
    pub storage: Units,
    /// Network devices.
    pub network: Units,
    /// Bridges to other buses.
    pub bridges: Units,
}

impl Registry {
    /// With these kinds of drivers; of two that suit alike, the first is taken.
    pub fn new(types: Vec<Box<dyn DriverType>>) -> Registry {
        Registry {
            types,
            storage: Units::new(DeviceClass::Storage),
            network: Units::new(DeviceClass::Network),
            bridges: Units::new(DeviceClass::Bridge),
        }
    }

    /// The kind of driver that suits `function` best.
    pub fn driver_for(&self, function: &Function) -> Option<&dyn DriverType> {
        let suited = self.types.iter().filter_map(|t| Some((t.suits(function)?, t)));
        // The last of equals wins in `max_by_key`.
        suited.rev().max_by_key(|(suits, _)| *suits).map(|(_, t)| &**t)
    }

    /// Makes a unit of `function`: of a bridge without a driver, of others with the one that suits.
    /// `open` gives access to the function. What firmware did not recognise is treated like all else
    /// (S1-23): nothing here asks firmware.
    ///
    /// # Errors
    /// No class or no driver for it, or its driver refuses.
    pub fn attach(
        &mut self,
        function: &Function,
        open: impl FnOnce() -> Box<dyn PciFunction>,
    ) -> Result<(DeviceClass, Unit), DriverError> {
        let (address, class) = (function.address, function.header.device_class());
        let driver = match class {
            DeviceClass::Bridge => None,
            DeviceClass::Unknown => return Err(DriverError::NoDriver(address)),
            DeviceClass::Storage | DeviceClass::Network => {
                let driver = self.driver_for(function).ok_or(DriverError::NoDriver(address))?;
                Some(driver.bind(address, open())?)
            }
        };
        let units = match class {
            DeviceClass::Storage => &mut self.storage,
            DeviceClass::Network => &mut self.network,
            DeviceClass::Bridge | DeviceClass::Unknown => &mut self.bridges,
        };
        Ok((class, units.add(address, driver)))
    }
}
