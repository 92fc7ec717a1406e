//! Controllers that do not follow the specification, and the driver's reactions.
//!
//! The table is by PCI vendor and device, and some entries by vendor, model and firmware of Identify
//! Controller. Each entry's source is Linux 6.12.117: `drivers/nvme/host/pci.c`, `nvme_id_table`, or
//! `drivers/nvme/host/core.c`, `core_quirks`; facts were taken, those that matter to this driver. `cargo xtask
//! quirks FILE` compares the first of them, all devices and quirks. Quirks there of what this driver does
//! not use (namespace identifiers, subsystem names, thresholds of temperature, zeroes after deallocation,
//! addresses of 48 bits, for which [`PciFunction`](ssdyno_pci::PciFunction) answers) are left out.

use ssdyno_block::Time;
use ssdyno_spec::nvme::IdentifyController;

/// How long a controller with [`Quirks::DELAY_BEFORE_READY`] is left alone (Linux:
/// `NVME_QUIRK_DELAY_AMOUNT`, 2300 ms, found empirically).
pub(crate) const READY_DELAY: Time = Time::from_ms(2300);

bitflags::bitflags! {
    /// The driver's special behaviour for a controller.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub struct Quirks: u16 {
        /// Requests are split at multiples of the largest transfer (MDTS), where the drive goes from one
        /// stripe to the next: it is older than NOIOB. (Linux: `STRIPE_SIZE`.)
        const STRIPE_IS_MAX_TRANSFER = 1;
        /// Namespaces are counted up to NN: Identify knows CNS 0 and 1 only. (`IDENTIFY_CNS`)
        const NO_NAMESPACE_LIST = 1 << 1;
        /// After CC.EN is cleared, registers are left alone for 2.3 s. (`DELAY_BEFORE_CHK_RDY`)
        const DELAY_BEFORE_READY = 1 << 2;
        /// Write Zeroes is not used, whatever ONCS says. (`DISABLE_WRITE_ZEROES`)
        const NO_WRITE_ZEROES = 1 << 3;
        /// I/O submission queues are created with priority medium. (`MEDIUM_PRIO_SQ`)
        const MEDIUM_PRIORITY = 1 << 4;
        /// One interrupt vector for all queues. (`SINGLE_VECTOR`)
        const SINGLE_VECTOR = 1 << 5;
        /// MSI never fires; MSI-X and the pin do. (`BROKEN_MSI`)
        const BROKEN_MSI = 1 << 6;
        /// One I/O command at a time. (`QDEPTH_ONE`)
        const ONE_COMMAND = 1 << 7;
        /// Command identifiers must be below the size of the queue: they carry no generation.
        /// (`SKIP_CID_GEN`)
        const NO_GENERATION = 1 << 8;
        /// Queue entries of 128 bytes, and identifiers that the admin queue and the I/O queue share: this
        /// driver has neither, and refuses the controller. (`128_BYTES_SQES`, `SHARED_TAGS`)
        const ENTRIES_OF_128_BYTES = 1 << 9;
        /// Page lists begin at multiples of 512 bytes. (`DMAPOOL_ALIGN_512`)
        const LISTS_OF_512_BYTES = 1 << 10;
        /// No autonomous power state transitions. (`NO_APST`)
        const NO_AUTONOMOUS_POWER = 1 << 11;
        /// The deepest power state is not used. (`NO_DEEPEST_PS`)
        const NO_DEEPEST_POWER = 1 << 12;
        /// To suspend, the controller is shut down, also where a power state would do. (`SIMPLE_SUSPEND`)
        const SUSPEND_BY_SHUTDOWN = 1 << 13;
    }
}

impl Quirks {
    /// Nothing.
    pub const NONE: Quirks = Quirks::empty();

    /// The table of devices: PCI vendor, device, quirks.
    pub fn devices() -> impl Iterator<Item = (u16, u16, Quirks)> {
        BY_DEVICE.iter().copied()
    }

    /// Those of the controller with this PCI vendor and device.
    pub fn of_device(vendor: u16, device: u16) -> Quirks {
        let found = BY_DEVICE.iter().find(|entry| (entry.0, entry.1) == (vendor, device));
        found.map_or(Quirks::NONE, |entry| entry.2)
    }

    /// The quirks of a controller with this Identify data, in addition to those of its PCI device.
    pub fn of_identity(identity: &IdentifyController) -> Quirks {
        let is = |field: &[u8], text: &str| text.is_empty() || is_padded(field, text);
        let entries = BY_IDENTITY.iter().filter(|(vendor, model, firmware, _)| {
            identity.vendor.get() == *vendor
                && is(&identity.model, model)
                && is(&identity.firmware, firmware)
        });
        entries.fold(Quirks::NONE, |all, entry| all | entry.3)
    }
}

/// `text` is the content of `field`, which is padded with spaces.
fn is_padded(field: &[u8], text: &str) -> bool {
    match field.strip_prefix(text.as_bytes()) {
        Some(rest) => rest.iter().all(|byte| *byte == b' '),
        None => false,
    }
}

const STRIPES: Quirks = Quirks::STRIPE_IS_MAX_TRANSFER;
const DELAY: Quirks = Quirks::DELAY_BEFORE_READY;
const NO_ZEROES: Quirks = Quirks::NO_WRITE_ZEROES;
const INTEL: u16 = 0x8086;
const APPLE: u16 = 0x106b;

/// PCI vendor and device (Linux: `nvme_id_table`).
#[rustfmt::skip]
static BY_DEVICE: &[(u16, u16, Quirks)] = &[
    // 750, P3500, P3600, P3700: stripes of 128 KiB, and no NOIOB.
    (INTEL, 0x0953, STRIPES),
    // P3520.
    (INTEL, 0x0a53, STRIPES),
    // P4500, P4600.
    (INTEL, 0x0a54, STRIPES),
    // Dell Express Flash P4600.
    (INTEL, 0x0a55, STRIPES),
    // 600P, P3100.
    (INTEL, 0xf1a5, Quirks::NO_DEEPEST_POWER.union(Quirks::MEDIUM_PRIORITY).union(NO_ZEROES)),
    // QEMU's first controller.
    (INTEL, 0x5845, Quirks::NO_NAMESPACE_LIST.union(NO_ZEROES)),
    // O2 Micro 64 GB of the Steam Deck.
    (0x1217, 0x8760, Quirks::LISTS_OF_512_BYTES),
    // Silicon Motion, generic.
    (0x126f, 0x1001, Quirks::NO_DEEPEST_POWER),
    // Silicon Motion, generic.
    (0x126f, 0x2262, Quirks::NO_DEEPEST_POWER),
    // Seagate Nytro Flash Storage.
    (0x1bb1, 0x0100, DELAY),
    // HGST adapter.
    (0x1c58, 0x0003, DELAY),
    // WDC SN200 adapter.
    (0x1c58, 0x0023, DELAY),
    // Memblaze Pblaze4 adapter.
    (0x1c5f, 0x0540, DELAY),
    // Samsung PM1725.
    (0x144d, 0xa821, DELAY),
    // Samsung PM1725a.
    (0x144d, 0xa822, DELAY.union(NO_ZEROES)),
    // Samsung PM9B1.
    (0x144d, 0xa80b, NO_ZEROES),
    // Samsung MZALQ256HBJD.
    (0x144d, 0xa809, NO_ZEROES),
    // Sandisk SN530.
    (0x15b7, 0x5008, Quirks::BROKEN_MSI),
    // Sandisk SN550.
    (0x15b7, 0x5009, Quirks::BROKEN_MSI.union(Quirks::NO_DEEPEST_POWER)),
    // Sandisk Skyhawk.
    (0x15b7, 0x2001, NO_ZEROES),
    // Phison E19.
    (0x1987, 0x5019, NO_ZEROES),
    // Phison E21.
    (0x1987, 0x5021, NO_ZEROES),
    // ADATA SX8200PNP.
    (0x1cc1, 0x8201, Quirks::NO_DEEPEST_POWER),
    // Micron 4100AT.
    (0x1344, 0x6004, Quirks::LISTS_OF_512_BYTES),
    // SK hynix PC400.
    (0x1c5c, 0x1504, NO_ZEROES),
    // SK hynix BC901.
    (0x1c5c, 0x1d59, NO_ZEROES),
    // SPCC.
    (0x1d97, 0x2263, NO_ZEROES),
    // UMIS RPJTJ512MGE1QDY.
    (0x1cc4, 0x6303, NO_ZEROES),
    // UMIS RPJTJ256MGE1QDY.
    (0x1cc4, 0x6302, NO_ZEROES),
    // Kingston SKC2000.
    (0x2646, 0x2262, Quirks::NO_DEEPEST_POWER),
    // Kingston A2000.
    (0x2646, 0x2263, Quirks::NO_DEEPEST_POWER),
    // Kingston OM8SFP4.
    (0x2646, 0x5018, NO_ZEROES),
    // Kingston OM3PGP4.
    (0x2646, 0x5016, NO_ZEROES),
    // Kingston OM8PGP4.
    (0x2646, 0x501a, NO_ZEROES),
    // Kingston OM8PGP4, other firmware.
    (0x2646, 0x501b, NO_ZEROES),
    // Kingston OM3PGP4, other firmware.
    (0x2646, 0x501e, NO_ZEROES),
    // Kingston OM3SGP4.
    (0x2646, 0x502f, NO_ZEROES),
    // ZHITAI TiPro5000.
    (0x1e49, 0x0021, Quirks::NO_DEEPEST_POWER),
    // ZHITAI TiPro7000.
    (0x1e49, 0x0041, Quirks::NO_DEEPEST_POWER),
    // Solidigm P44 Pro.
    (0x025e, 0xf1ac, Quirks::NO_DEEPEST_POWER),
    // MacBook8,1 and some MacBook7,1: resets and loss of data with more than one command.
    (APPLE, 0x2001, Quirks::SINGLE_VECTOR.union(Quirks::ONE_COMMAND)),
    // T2.
    (APPLE, 0x2005, Quirks::SINGLE_VECTOR.union(Quirks::NO_GENERATION).union(Quirks::NO_NAMESPACE_LIST)
        .union(Quirks::ENTRIES_OF_128_BYTES)),
];

/// Vendor, model and firmware without the spaces at their ends, empty for any (Linux: `core_quirks`).
#[rustfmt::skip]
static BY_IDENTITY: &[(u16, &str, &str, Quirks)] = &[
    // Dies in any autonomous state.
    (0x1179, "THNSF5256GPUK TOSHIBA", "", Quirks::NO_AUTONOMOUS_POWER),
    // LiteON CL1-3D*-Q11: this firmware has a race in its suspend.
    (0x14a4, "", "22301111", Quirks::SUSPEND_BY_SHUTDOWN),
    // Kioxia CD6-V, HPE PE8030: timeouts pass under any load.
    (0x1e0f, "KCD6XVUL6T40", "", Quirks::NO_AUTONOMOUS_POWER),
    // Shares its PCI device with the 970 EVO Plus, which is well.
    (0x144d, "Samsung Portable SSD X5", "", DELAY.union(Quirks::NO_DEEPEST_POWER)),
];

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    #[test]
    fn every_device_stands_once_in_the_table_and_has_a_quirk() {
        for (i, entry) in BY_DEVICE.iter().enumerate() {
            assert_ne!(entry.2, Quirks::NONE, "{:04x}:{:04x}", entry.0, entry.1);
            let again = BY_DEVICE[i + 1..].iter().find(|e| (e.0, e.1) == (entry.0, entry.1));
            assert!(again.is_none(), "{:04x}:{:04x} stands twice", entry.0, entry.1);
            assert_eq!(Quirks::of_device(entry.0, entry.1), entry.2);
        }
        assert_eq!(Quirks::of_device(INTEL, 0x0953), Quirks::STRIPE_IS_MAX_TRANSFER);
        assert_eq!(Quirks::of_device(0x1b36, 0x0010), Quirks::NONE, "QEMU's newer controller");
        assert_eq!(Quirks::of_device(0xffff, 0xffff), Quirks::NONE);
    }

    #[test]
    fn model_and_firmware_are_filled_up_with_spaces() {
        let mut identity = IdentifyController::new_zeroed();
        identity.vendor = 0x14a4.into();
        identity.firmware = *b"22301111";
        assert_eq!(Quirks::of_identity(&identity), Quirks::SUSPEND_BY_SHUTDOWN);
        identity.firmware = *b"22301112";
        assert_eq!(Quirks::of_identity(&identity), Quirks::NONE);
        identity.vendor = 0x144d.into();
        identity.model = [b' '; 40];
        identity.model[..23].copy_from_slice(b"Samsung Portable SSD X5");
        let all = Quirks::DELAY_BEFORE_READY | Quirks::NO_DEEPEST_POWER;
        assert_eq!(Quirks::of_identity(&identity), all);
        identity.model[23] = b'0';
        assert_eq!(Quirks::of_identity(&identity), Quirks::NONE);
    }
}
