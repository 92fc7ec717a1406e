//! Which kind of interrupt a function gets, first and later (S1-20, S1-21).

use ssdyno_spec::pci::HEADER_TYPE;

use crate::capability::CapabilityList;
use crate::config::{ConfigSpace, OfFunction};
use crate::driver::DriverFlags;
use crate::header::ConfigHeader;
use crate::{FunctionError, InterruptMode, PciFunction};

/// The kinds of interrupts of a function, and the number of vectors of each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct InterruptAbilities {
    /// Vectors of MSI-X: the size of its table; 0 if it has none.
    pub msix_vectors: u16,
    /// Vectors of MSI; 0 if it has none.
    pub msi_vectors: u16,
    /// It has a pin.
    pub pin: bool,
}

impl InterruptAbilities {
    /// From the header and the capabilities.
    pub fn of(header: &ConfigHeader, capabilities: &CapabilityList) -> InterruptAbilities {
        InterruptAbilities {
            msix_vectors: capabilities.msix_vectors(),
            msi_vectors: capabilities.msi_vectors(),
            pin: header.pin().is_some(),
        }
    }

    /// From configuration space of a function that a driver holds.
    pub fn read(function: &mut dyn PciFunction) -> InterruptAbilities {
        let mut space = OfFunction(function);
        let layout = space.read8(HEADER_TYPE) & 0x7f;
        let header = ConfigHeader::read(&mut space);
        InterruptAbilities::of(&header, &CapabilityList::read(&mut space, layout))
    }

    /// The best kind, MSI-X before MSI before the pin, and its vectors; `None` if it has none.
    pub fn best(self) -> Option<(InterruptMode, u16)> {
        let msix = (self.msix_vectors != 0).then_some((InterruptMode::MsiX, self.msix_vectors));
        let msi = (self.msi_vectors != 0).then_some((InterruptMode::Msi, self.msi_vectors));
        msix.or(msi).or(self.pin.then_some((InterruptMode::Pin, 1)))
    }

    /// What to start a function with whose driver has `flags`: nothing with
    /// [`DriverFlags::NO_INTERRUPTS`], the pin with [`DriverFlags::PIN_AT_START`] if it has one, else
    /// the best.
    pub fn wanted(self, flags: DriverFlags) -> Option<(InterruptMode, u16)> {
        if flags.contains(DriverFlags::NO_INTERRUPTS) {
            return None;
        }
        if flags.contains(DriverFlags::PIN_AT_START) && self.pin {
            return Some((InterruptMode::Pin, 1));
        }
        self.best()
    }
}

/// Gives `function` the interrupts that its driver's `flags` ask for: the thesis'
/// `device_config_set_inthandler`. A driver that needs the pin to start calls it a second time,
/// without the flag, when its controller is ready (S1-21). Falls back to the next kind where the host
/// has no vectors of the best. Gives the kind and the number of vectors; `None` if the function is
/// passive or has no interrupts.
///
/// # Errors
/// The function refuses every kind it has.
pub fn set_interrupts(
    function: &mut dyn PciFunction,
    flags: DriverFlags,
) -> Result<Option<(InterruptMode, u16)>, FunctionError> {
    let mut left = InterruptAbilities::read(function);
    let mut refused = None;
    while let Some((mode, vectors)) = left.wanted(flags) {
        match function.enable_interrupts(mode, vectors) {
            Ok(vectors) => return Ok(Some((mode, vectors))),
            Err(error @ FunctionError::NoInterrupt { .. }) => refused = Some(error),
            Err(error) => return Err(error),
        }
        match mode {
            InterruptMode::MsiX => left.msix_vectors = 0,
            InterruptMode::Msi => left.msi_vectors = 0,
            InterruptMode::Pin => left.pin = false,
        }
    }
    refused.map_or(Ok(None), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: InterruptAbilities =
        InterruptAbilities { msix_vectors: 32, msi_vectors: 8, pin: true };

    #[test]
    fn msix_before_msi_before_the_pin() {
        assert_eq!(ALL.best(), Some((InterruptMode::MsiX, 32)));
        let old = InterruptAbilities { msix_vectors: 0, ..ALL };
        assert_eq!(old.best(), Some((InterruptMode::Msi, 8)));
        let older = InterruptAbilities { msi_vectors: 0, ..old };
        assert_eq!(older.best(), Some((InterruptMode::Pin, 1)));
        assert_eq!(InterruptAbilities::default().best(), None);
    }

    #[test]
    fn flags_override_the_preference() {
        assert_eq!(ALL.wanted(DriverFlags::PIN_AT_START), Some((InterruptMode::Pin, 1)));
        let without_pin = InterruptAbilities { pin: false, ..ALL };
        let wanted = without_pin.wanted(DriverFlags::PIN_AT_START);
        assert_eq!(
            wanted,
            Some((InterruptMode::MsiX, 32)),
            "a pin that does not exist is not a start"
        );
        let bridge = DriverFlags::NO_INTERRUPTS | DriverFlags::PIN_AT_START;
        assert_eq!(ALL.wanted(bridge), None);
    }
}
