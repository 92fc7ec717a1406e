//! A driver's description of itself.

use core::ops::BitOr;

/// A driver's description of itself for the system (the thesis' `DEV_CAP_…`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DriverFlags(u8);

impl DriverFlags {
    /// Nothing special.
    pub const NONE: DriverFlags = DriverFlags(0);
    /// Passive: it gets no interrupts, whatever its function could do (`NOINT`, S1-10).
    pub const NO_INTERRUPTS: DriverFlags = DriverFlags(1);
    /// It moves data by itself (`BUSMASTER`).
    pub const BUS_MASTER: DriverFlags = DriverFlags(1 << 1);
    /// It starts with the pin and asks for more when it is ready (`INTPIN_INIT`, S1-21).
    pub const PIN_AT_START: DriverFlags = DriverFlags(1 << 2);
    /// What is asked of it comes through the SCSI resource, as with the thesis' drivers of MFI and NVMe
    /// (S1-47); without the flag it comes straight from the storage resource (S1-51).
    pub const SCSI: DriverFlags = DriverFlags(1 << 3);

    /// True if all flags of `other` are set.
    pub const fn contains(self, other: DriverFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for DriverFlags {
    type Output = DriverFlags;
    fn bitor(self, other: DriverFlags) -> DriverFlags {
        DriverFlags(self.0 | other.0)
    }
}
