//! Machines to put a device into.

use alloc::vec;

use crate::capability::Link;
use crate::{Identity, Pin};

use super::{BarSpec, BridgeSpec, CapabilitySpec, FunctionId, FunctionSpec, Topology};

/// How a device is connected to the root bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PciMachine {
    /// Behind a PCI Express root port: at 01:00.0.
    RootPort,
    /// Behind a conventional bridge at 00:05.0: at 01:03.0, as paper S1's case can be shown in QEMU.
    Bridge,
    /// Behind two conventional bridges, 00:05.0 and 01:02.0: at 02:03.0, the depth at which the
    /// thesis' swizzling goes wrong (S1-19).
    TwoBridges,
    /// Behind a root port and a switch with two ports: at 04:00.0, beside a network controller.
    Switch,
}

impl PciMachine {
    /// The machine with a device in it, as after power-on; `link` is that of the device, and of the
    /// ports on the way to it.
    pub fn with(self, identity: &Identity, link: Link) -> (Topology, FunctionId) {
        let device = FunctionSpec::of(identity, link);
        let mut topology = Topology::new();
        let root = topology.root(0, 0);
        topology.function(root, 0, 0, &host_bridge());
        topology.function(root, 1, 0, &isa_bridge());
        let place = match self {
            PciMachine::RootPort => {
                let (_, bus) = topology.bridge(root, 0x1c, 0, &port(4, link));
                (bus, 0)
            }
            PciMachine::Bridge => (topology.bridge(root, 5, 0, &conventional()).1, 3),
            PciMachine::TwoBridges => {
                let (_, bus) = topology.bridge(root, 5, 0, &conventional());
                (topology.bridge(bus, 2, 0, &conventional()).1, 3)
            }
            PciMachine::Switch => {
                let (_, bus) = topology.bridge(root, 0x1c, 0, &port(4, link));
                let (_, inside) = topology.bridge(bus, 0, 0, &port(5, link));
                let (_, first) = topology.bridge(inside, 0, 0, &port(6, link));
                let (_, second) = topology.bridge(inside, 1, 0, &port(6, link));
                topology.function(first, 0, 0, &network());
                (second, 0)
            }
        };
        let function = topology.function(place.0, place.1, 0, &device);
        (topology, function)
    }
}

/// Intel's 440FX, as in QEMU's machine `pc`.
fn host_bridge() -> FunctionSpec {
    FunctionSpec { id: (0x8086, 0x1237), class: 0x06_0000, ..FunctionSpec::default() }
}

/// Intel's PIIX3.
fn isa_bridge() -> FunctionSpec {
    FunctionSpec { id: (0x8086, 0x7000), class: 0x06_0100, ..FunctionSpec::default() }
}

/// A bridge from PCI to PCI: QEMU's `pci-bridge`, with the register file and pin of its hot-plug
/// controller.
fn conventional() -> BridgeSpec {
    BridgeSpec {
        id: (0x1b36, 0x0001),
        bars: vec![BarSpec::Memory64 { bytes: 256, prefetchable: false }],
        rom_bytes: 0,
        pin: Some(Pin::A),
        io: Some(false),
        prefetch: Some(true),
        capabilities: vec![CapabilitySpec::Msi(1)],
    }
}

/// A PCI Express port: QEMU's root port, or ports of a switch by Texas Instruments.
fn port(code: u8, link: Link) -> BridgeSpec {
    let id = match code {
        4 => (0x1b36, 0x000c),
        5 => (0x104c, 0x8232),
        _ => (0x104c, 0x8233),
    };
    BridgeSpec {
        id,
        bars: vec![],
        rom_bytes: 0,
        pin: Some(Pin::A),
        io: Some(true),
        prefetch: Some(true),
        capabilities: vec![
            CapabilitySpec::PowerManagement,
            CapabilitySpec::Msi(1),
            CapabilitySpec::Pcie { port: code, link: Some(link) },
            CapabilitySpec::BridgeSubsystem { vendor: id.0, device: 0 },
        ],
    }
}

/// Intel's 82574L.
fn network() -> FunctionSpec {
    FunctionSpec {
        id: (0x8086, 0x10d3),
        class: 0x02_0000,
        revision: 0,
        bars: vec![
            BarSpec::Memory32 { bytes: 1 << 17, prefetchable: false },
            BarSpec::Memory32 { bytes: 1 << 17, prefetchable: false },
            BarSpec::Io(32),
            BarSpec::Memory32 { bytes: 1 << 14, prefetchable: false },
        ],
        rom_bytes: 0,
        pin: Some(Pin::A),
        capabilities: vec![
            CapabilitySpec::PowerManagement,
            CapabilitySpec::Msi(1),
            CapabilitySpec::MsiX { vectors: 5, bar: 3 },
            CapabilitySpec::Pcie { port: 0, link: Some(Link { generation: 1, lanes: 1 }) },
            CapabilitySpec::SerialNumber(0x0052_54ff_ff12_3456),
        ],
    }
}
