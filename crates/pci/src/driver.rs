//! A driver's description of itself.

bitflags::bitflags! {
    /// A driver's description of itself for the system (the thesis' `DEV_CAP_…`).
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct DriverFlags: u8 {
        /// Passive: it gets no interrupts, whatever its function could do (`NOINT`, S1-10).
        const NO_INTERRUPTS = 1;
        /// It moves data by itself (`BUSMASTER`).
        const BUS_MASTER = 1 << 1;
        /// It starts with the pin and asks for more when it is ready (`INTPIN_INIT`, S1-21).
        const PIN_AT_START = 1 << 2;
        /// What is asked of it comes through the SCSI resource, as with the thesis' drivers of MFI and NVMe
        /// (S1-47); without the flag it comes straight from the storage resource (S1-51).
        const SCSI = 1 << 3;
    }
}
