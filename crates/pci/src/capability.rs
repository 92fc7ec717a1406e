//! The walk along the capabilities of a function.

use alloc::vec::Vec;

use ssdyno_spec::pci::{
    CAPABILITIES, CAPABILITY_BRIDGE_SUBSYSTEM, CAPABILITY_FIRST, CAPABILITY_MSI, CAPABILITY_MSIX,
    CAPABILITY_PCIE, CAPABILITY_POWER_MANAGEMENT, CARDBUS_CAPABILITIES, CONFIG_BYTES,
    EXTENDED_CAPABILITY_FIRST, EXTENDED_SERIAL_NUMBER, LAYOUT_CARDBUS, MSI_64_BIT, MSI_CONTROL,
    MSI_ENABLE, MSI_MASKABLE, MSIX_CONTROL, MSIX_ENABLE, MSIX_FUNCTION_MASK, MSIX_PENDING,
    MSIX_TABLE, MSIX_TABLE_SIZE, PCIE_ARI_FORWARDING, PCIE_CAPABILITIES, PCIE_DEVICE_CAPABILITIES,
    PCIE_DEVICE_CONTROL_2, PCIE_LINK_CAPABILITIES, PCIE_LINK_STATUS, PM_CAPABILITIES, PM_CONTROL,
    STATUS, STATUS_CAPABILITIES,
};

use crate::config::ConfigSpace;

/// One capability and where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capability {
    /// Offset in configuration space.
    pub offset: u16,
    /// What it says.
    pub kind: CapabilityKind,
}

/// What a capability says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapabilityKind {
    /// Power management (PCI PM 1.2, clause 3.2).
    PowerManagement {
        /// Version of the structure; 3 is PCI PM 1.2.
        version: u8,
        /// It can go to D1.
        d1: bool,
        /// It can go to D2.
        d2: bool,
        /// It is in D0 to D3.
        state: u8,
    },
    /// Message signalled interrupts (PCI clause 6.8.1).
    Msi {
        /// Vectors it can use: 1 to 32.
        vectors: u16,
        /// It takes 64-bit addresses.
        wide: bool,
        /// It has a mask bit for each vector.
        maskable: bool,
        /// It is in use.
        enabled: bool,
    },
    /// Message signalled interrupts, extended (PCI clause 6.8.2).
    MsiX {
        /// Entries of the table: 1 to 2048.
        vectors: u16,
        /// The BAR with the table, and the table's offset there.
        table: (u8, u32),
        /// The BAR with the pending bits, and their offset there.
        pending: (u8, u32),
        /// It is in use.
        enabled: bool,
        /// All vectors are masked.
        masked: bool,
    },
    /// PCI Express (PCIe clause 7.5.3).
    Pcie(Pcie),
    /// Subsystem of a bridge (Bridge clause 4.2.2).
    BridgeSubsystem {
        /// Its vendor.
        vendor: u16,
        /// The vendor's name for it.
        device: u16,
    },
    /// Serial number of the device, an extended capability (PCIe clause 7.9.3).
    SerialNumber(u64),
    /// Any other, by its identifier.
    Other(u8),
    /// Any other extended one, by its identifier.
    OtherExtended(u16),
}

/// The fields of the PCI Express capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pcie {
    /// The kind of the port.
    pub port: PciePort,
    /// There is a slot behind it.
    pub slot: bool,
    /// Largest payload of a packet, in bytes.
    pub payload_bytes_max: u32,
    /// The capabilities of the link; `None` inside a root complex, which has no links.
    pub link_max: Option<Link>,
    /// The present state of the link.
    pub link: Option<Link>,
    /// A port that forwards to functions 8 to 255: what is behind it has no device numbers.
    pub ari_forwarding: bool,
}

/// Speed and width of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Generation: 1 is 2.5 GT/s, 2 is 5, 3 is 8, 4 is 16, 5 is 32, 6 is 64.
    pub generation: u8,
    /// Lanes: 1 to 32.
    pub lanes: u8,
}

/// Kind of a PCI Express function (PCIe clause 7.5.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PciePort {
    /// An endpoint.
    Endpoint,
    /// An endpoint with I/O space and locks.
    LegacyEndpoint,
    /// A port of the root complex.
    RootPort,
    /// The port of a switch that looks to the root.
    Upstream,
    /// A port of a switch that looks away from the root.
    Downstream,
    /// From PCI Express to PCI or PCI-X.
    ToPci,
    /// From PCI or PCI-X to PCI Express.
    FromPci,
    /// An endpoint inside the root complex.
    Integrated,
    /// The event collector of a root complex.
    EventCollector,
    /// Any other code.
    Other(u8),
}

/// Codes, ports and their names.
const PORTS: [(u8, PciePort, &str); 9] = [
    (0x0, PciePort::Endpoint, "endpoint"),
    (0x1, PciePort::LegacyEndpoint, "legacy endpoint"),
    (0x4, PciePort::RootPort, "root port"),
    (0x5, PciePort::Upstream, "upstream port"),
    (0x6, PciePort::Downstream, "downstream port"),
    (0x7, PciePort::ToPci, "bridge to PCI"),
    (0x8, PciePort::FromPci, "bridge from PCI"),
    (0x9, PciePort::Integrated, "integrated endpoint"),
    (0xa, PciePort::EventCollector, "event collector"),
];

impl PciePort {
    fn of(code: u8) -> PciePort {
        let port = PORTS.iter().find(|(known, ..)| *known == code).map(|(_, port, _)| *port);
        port.unwrap_or(PciePort::Other(code))
    }
    /// True if a link leads away from it, on which there is one device: number 0 (PCIe clause 7.3.1).
    pub fn has_one_device_behind(self) -> bool {
        matches!(self, PciePort::RootPort | PciePort::Downstream | PciePort::FromPci)
    }

    /// The name of it.
    pub fn name(self) -> &'static str {
        let port = PORTS.iter().find(|(_, port, _)| *port == self);
        port.map_or("port of unknown kind", |(.., name)| name)
    }
}

/// The error of a list of capabilities.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ListFault {
    /// The list comes back to where it was.
    #[error("the capability list loops at {offset:#x}")]
    Circle {
        /// Where it was before.
        offset: u16,
    },
    /// A pointer leads into the header.
    #[error("the capability list points to {offset:#x}, which is inside the header")]
    IntoHeader {
        /// Where it points.
        offset: u16,
    },
    /// The function stopped answering, or never had a capability there.
    #[error("the capability list points to {offset:#x}, where nothing answers")]
    Silent {
        /// Where it points.
        offset: u16,
    },
    /// The image ends before the list does.
    #[error("the capability list continues at {offset:#x}, but only {bytes} bytes are known")]
    Unknown {
        /// Where it goes on.
        offset: u16,
        /// How much is known.
        bytes: u16,
    },
}

/// Capabilities in the order of the list, and the errors of the list.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CapabilityList {
    /// Those below 0x100, then the extended ones.
    pub all: Vec<Capability>,
    /// Why a walk ended early.
    pub faults: Vec<ListFault>,
}

impl CapabilityList {
    /// Walks along the lists of a function with header layout `layout` (PCI clause 6.7, PCIe clause
    /// 7.6.3). Ends for every content: no offset is visited twice.
    pub fn read(space: &mut dyn ConfigSpace, layout: u8) -> CapabilityList {
        let mut found = CapabilityList::default();
        if space.read16(STATUS) & STATUS_CAPABILITIES != 0 {
            found.walk(space, layout);
        }
        // Only PCI Express and PCI-X 2 functions have the extended space. Behind a bridge to
        // conventional PCI, offsets above 0x100 can alias the first 256 bytes and produce a false
        // list.
        if found.pcie().is_some() && space.bytes() > CONFIG_BYTES {
            found.walk_extended(space);
        }
        found
    }

    /// The first one that `wanted` accepts.
    fn find<T>(&self, wanted: impl Fn(CapabilityKind) -> Option<T>) -> Option<T> {
        self.all.iter().find_map(|capability| wanted(capability.kind))
    }

    /// Its data as a PCI Express function.
    pub fn pcie(&self) -> Option<Pcie> {
        self.find(|kind| if let CapabilityKind::Pcie(pcie) = kind { Some(pcie) } else { None })
    }

    /// Vectors of MSI-X; 0 if it has none.
    pub fn msix_vectors(&self) -> u16 {
        let vectors = |kind| match kind {
            CapabilityKind::MsiX { vectors, .. } => Some(vectors),
            _ => None,
        };
        self.find(vectors).unwrap_or(0)
    }

    /// Vectors of MSI; 0 if it has none.
    pub fn msi_vectors(&self) -> u16 {
        let vectors = |kind| match kind {
            CapabilityKind::Msi { vectors, .. } => Some(vectors),
            _ => None,
        };
        self.find(vectors).unwrap_or(0)
    }

    fn walk(&mut self, space: &mut dyn ConfigSpace, layout: u8) {
        let first = if layout == LAYOUT_CARDBUS { CARDBUS_CAPABILITIES } else { CAPABILITIES };
        let known = space.bytes().min(CONFIG_BYTES);
        // A bit for each of the 64 dwords in which a capability may start.
        // The set makes the walk end for every content. A counter of 48 steps, as operating systems
        // use, also ends, but it lists the capabilities of a loop several times.
        let mut visited = 0_u64;
        // The two lowest bits are reserved (PCI clause 6.7).
        let mut offset = u16::from(space.read8(first) & !3);
        while offset != 0 {
            if offset < CAPABILITY_FIRST {
                return self.faults.push(ListFault::IntoHeader { offset });
            }
            let bit = 1 << (offset / 4);
            if visited & bit != 0 {
                return self.faults.push(ListFault::Circle { offset });
            }
            visited |= bit;
            if offset >= known {
                return self.faults.push(ListFault::Unknown { offset, bytes: known });
            }
            let head = space.read32(offset);
            // Identifier FFh comes from a function that has disappeared during the walk. Without
            // the check the next pointer would be FCh, and the list would contain an invalid
            // capability.
            if head as u8 == 0xff {
                return self.faults.push(ListFault::Silent { offset });
            }
            self.all.push(Capability { offset, kind: kind(space, head as u8, offset) });
            offset = u16::from((head >> 8) as u8 & !3);
        }
    }

    fn walk_extended(&mut self, space: &mut dyn ConfigSpace) {
        let known = space.bytes();
        let mut visited = [0_u64; 16];
        let mut offset = EXTENDED_CAPABILITY_FIRST;
        loop {
            let (word, bit) = (usize::from(offset / 256), 1_u64 << (offset / 4 % 64));
            if visited[word] & bit != 0 {
                return self.faults.push(ListFault::Circle { offset });
            }
            visited[word] |= bit;
            if offset >= known {
                return self.faults.push(ListFault::Unknown { offset, bytes: known });
            }
            let head = space.read32(offset);
            // Without extended capabilities the dword is zero (PCIe clause 7.6.2), or ones if
            // nothing responds.
            if head == 0 || head == u32::MAX {
                if offset != EXTENDED_CAPABILITY_FIRST && head != 0 {
                    self.faults.push(ListFault::Silent { offset });
                }
                return;
            }
            let kind = match head as u16 {
                EXTENDED_SERIAL_NUMBER if offset + 8 < known => {
                    let low = u64::from(space.read32(offset + 4));
                    CapabilityKind::SerialNumber(low | u64::from(space.read32(offset + 8)) << 32)
                }
                id => CapabilityKind::OtherExtended(id),
            };
            // Some devices head the list with identifier 0 to hide what stood there.
            if kind != CapabilityKind::OtherExtended(0) {
                self.all.push(Capability { offset, kind });
            }
            offset = (head >> 20) as u16 & !3;
            if offset == 0 {
                return;
            }
            if offset < EXTENDED_CAPABILITY_FIRST {
                return self.faults.push(ListFault::IntoHeader { offset });
            }
        }
    }
}

/// Bytes of a structure that is read here; a shorter rest of the image makes it an `Other`.
fn bytes_read(id: u8) -> u16 {
    match id {
        CAPABILITY_POWER_MANAGEMENT | CAPABILITY_BRIDGE_SUBSYSTEM => 8,
        CAPABILITY_MSIX => 12,
        CAPABILITY_PCIE => 20,
        _ => 4,
    }
}

fn kind(space: &mut dyn ConfigSpace, id: u8, at: u16) -> CapabilityKind {
    if at + bytes_read(id) > space.bytes().min(CONFIG_BYTES) {
        return CapabilityKind::Other(id);
    }
    match id {
        CAPABILITY_POWER_MANAGEMENT => {
            let can = space.read16(at + PM_CAPABILITIES);
            CapabilityKind::PowerManagement {
                version: can as u8 & 7,
                d1: can & 1 << 9 != 0,
                d2: can & 1 << 10 != 0,
                state: space.read16(at + PM_CONTROL) as u8 & 3,
            }
        }
        CAPABILITY_MSI => {
            let control = space.read16(at + MSI_CONTROL);
            CapabilityKind::Msi {
                // Codes 6 and 7 are reserved (PCI table 6-4).
                vectors: 1 << (control >> 1 & 7).min(5),
                wide: control & MSI_64_BIT != 0,
                maskable: control & MSI_MASKABLE != 0,
                enabled: control & MSI_ENABLE != 0,
            }
        }
        CAPABILITY_MSIX => {
            let control = space.read16(at + MSIX_CONTROL);
            let place = |dword: u32| ((dword & 7) as u8, dword & !7);
            CapabilityKind::MsiX {
                vectors: (control & MSIX_TABLE_SIZE) + 1,
                table: place(space.read32(at + MSIX_TABLE)),
                pending: place(space.read32(at + MSIX_PENDING)),
                enabled: control & MSIX_ENABLE != 0,
                masked: control & MSIX_FUNCTION_MASK != 0,
            }
        }
        CAPABILITY_PCIE => CapabilityKind::Pcie(pcie(space, at)),
        CAPABILITY_BRIDGE_SUBSYSTEM => CapabilityKind::BridgeSubsystem {
            vendor: space.read16(at + 4),
            device: space.read16(at + 6),
        },
        other => CapabilityKind::Other(other),
    }
}

fn pcie(space: &mut dyn ConfigSpace, at: u16) -> Pcie {
    let can = space.read16(at + PCIE_CAPABILITIES);
    let port = PciePort::of((can >> 4 & 0xf) as u8);
    let payload_code = space.read32(at + PCIE_DEVICE_CAPABILITIES) & 7;
    let link = |register: u32| {
        let link = Link { generation: (register & 0xf) as u8, lanes: (register >> 4 & 0x3f) as u8 };
        // Functions inside a root complex have no link and leave these fields zero. A link of width
        // 0 would give a bandwidth of 0 in the closed form of S1-1.
        (link.lanes != 0).then_some(link)
    };
    let link_max = link(space.read32(at + PCIE_LINK_CAPABILITIES));
    let link_now = link(u32::from(space.read16(at + PCIE_LINK_STATUS)));
    // Version 1 structures end before the second set of registers (PCIe clause 7.5.3).
    let second = can & 0xf >= 2 && at + PCIE_DEVICE_CONTROL_2 + 2 <= CONFIG_BYTES;
    let second = second && at + PCIE_DEVICE_CONTROL_2 + 2 <= space.bytes();
    let forwards = matches!(port, PciePort::RootPort | PciePort::Downstream) && second;
    Pcie {
        port,
        slot: can & 1 << 8 != 0,
        payload_bytes_max: 128 << payload_code.min(5),
        link_max,
        link: link_now,
        ari_forwarding: forwards
            && space.read16(at + PCIE_DEVICE_CONTROL_2) & PCIE_ARI_FORWARDING != 0,
    }
}
