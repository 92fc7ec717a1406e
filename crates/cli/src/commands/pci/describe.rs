//! The shape of `ssdyno pci --json`.

use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_pci::bars::{BarSpace, HeldBar, held_bars};
use ssdyno_pci::capability::{Capability, CapabilityKind, Link};
use ssdyno_pci::interrupts::InterruptAbilities;
use ssdyno_pci::routing::quirks;
use ssdyno_pci::{DeviceClass, Function, InterruptMode, MpTable, PciAddress, Pin, Route};
use ssdyno_spec::pci::{capability_name, extended_capability_name, subclass_name};

use super::source::MachineFacts;

/// The functions of a machine.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PciOutput {
    /// The machine, as the user gave it.
    pub(super) target: String,
    /// The functions, by address.
    pub(super) functions: Vec<FunctionOutput>,
    /// The MP table; `null` if there is none.
    pub(super) mp_table: Option<MpTableOutput>,
    /// Anomalies, and other notes for the reader.
    pub(super) notes: Vec<String>,
}

/// A function.
#[derive(Serialize, JsonSchema)]
pub(super) struct FunctionOutput {
    /// Segment, bus, device and function, as in 0000:01:03.0.
    pub(super) address: String,
    /// storage, network, bridge (to another bus), or unknown.
    pub(super) class: &'static str,
    /// Base class, subclass and programming interface, as in 0x010802.
    pub(super) class_code: String,
    /// Name of the class.
    pub(super) class_name: &'static str,
    /// Vendor identifier, as in 0x8086.
    pub(super) vendor: String,
    /// Device identifier.
    pub(super) device: String,
    /// Vendor and device name, if the source has them.
    pub(super) name: Option<String>,
    /// Address of the bridge above the function; `null` on a root bus.
    pub(super) parent: Option<String>,
    /// Bus numbers; only for a bridge.
    pub(super) buses: Option<BusesOutput>,
    /// INTA to INTD; `null` without a pin.
    pub(super) pin: Option<String>,
    /// Routing of the pin; `null` without a pin.
    pub(super) routed: Option<RoutedOutput>,
    /// With --vortex-quirks: routing of the pin by the specification, and by the thesis' other rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) beside: Option<BesideOutput>,
    /// The interrupts available to a driver: the best kind; `null` for bridges, which are passive, and for functions
    /// without interrupts.
    pub(super) interrupts: Option<InterruptsOutput>,
    /// Base address registers that are not empty, even if they contain only their kind.
    pub(super) bars: Vec<BarOutput>,
    /// The capabilities, in the order of the list.
    pub(super) capabilities: Vec<CapabilityOutput>,
    /// Whether firmware set the function up; `null` if unknown.
    pub(super) recognised_by_firmware: Option<bool>,
    /// Whether firmware can start an operating system from the function: storage that firmware recognised. `null` for
    /// other classes.
    pub(super) bootable: Option<bool>,
    /// The current driver, if the source has it.
    pub(super) driver: Option<String>,
}

/// Bus numbers of a bridge.
#[derive(Clone, Copy, Serialize, JsonSchema)]
pub(super) struct BusesOutput {
    /// The bus towards the root.
    pub(super) primary: u8,
    /// The bus directly below the bridge.
    pub(super) secondary: u8,
    /// The last bus below the bridge.
    pub(super) subordinate: u8,
}

/// Routing of a pin.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct RoutedOutput {
    /// Source of the routing: mp-table (an entry for the function), swizzle (an entry for a bridge above),
    /// operating-system, interrupt-line (the register that firmware left), vortex-quirks, or none.
    pub(super) via: &'static str,
    /// The pin on the root bus, swizzled through the bridges above; `null` if the thesis' code derives no pin.
    pub(super) pin_at_root: Option<String>,
    /// The interrupt: the input of the I/O APIC, or the number from firmware or the operating system; `null` if
    /// unknown.
    pub(super) irq: Option<u32>,
    /// The I/O APIC of an MP entry.
    pub(super) io_apic: Option<u8>,
    /// The bridges above, the nearest first, each with the pin after its swizzle.
    pub(super) path: Vec<StepOutput>,
    /// All sources of an interrupt number, the most reliable first.
    pub(super) sources: Vec<SourceOutput>,
    /// True if the sources have different numbers.
    pub(super) disagree: bool,
    /// Explanation of the routing.
    pub(super) explanation: String,
}

/// A bridge on the path of an interrupt.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct StepOutput {
    /// The bridge.
    pub(super) bridge: String,
    /// The pin at the bridge.
    pub(super) pin: String,
}

/// A source of an interrupt number.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct SourceOutput {
    /// The source, with the values of `via` in the routing.
    pub(super) via: &'static str,
    /// The interrupt number.
    pub(super) irq: u32,
}

/// The routing by the specification beside the rules of the thesis.
#[derive(Serialize, JsonSchema)]
pub(super) struct BesideOutput {
    /// Routing of the pin by the specification.
    pub(super) specification: RoutedOutput,
    /// The pin on the root bus by equation 2, which uses bus numbers (S1-17).
    pub(super) pin_at_root_by_equation_2: String,
    /// The pin on the root bus by table 3.1, which subtracts (S1-18).
    pub(super) pin_at_root_by_table_3_1: String,
}

/// A base address register.
#[derive(Serialize, JsonSchema)]
pub(super) struct BarOutput {
    /// Number of the register, 0 to 5; for a pair of registers, the number of the lower half.
    pub(super) index: u8,
    /// Address space: memory or ports.
    pub(super) space: &'static str,
    /// The address may be above 4 GiB: the address takes two registers.
    pub(super) wide: bool,
    /// Reads have no side effects and may be merged.
    pub(super) prefetchable: bool,
    /// Address, as in 0xfe800000; `null` if not assigned yet.
    pub(super) address: Option<String>,
    /// Requested size in bytes; `null` if the source does not have it.
    pub(super) bytes: Option<u64>,
}

/// A kind of interrupts.
#[derive(Clone, Copy, Serialize, JsonSchema)]
pub(super) struct InterruptsOutput {
    /// msi-x, msi or pin.
    pub(super) mode: &'static str,
    /// Number of vectors.
    pub(super) vectors: u16,
}

/// A capability.
#[derive(Serialize, JsonSchema)]
pub(super) struct CapabilityOutput {
    /// Offset in configuration space.
    pub(super) offset: u16,
    /// Identifier of the capability in its list.
    pub(super) id: u16,
    /// True for offsets above 0x100.
    pub(super) extended: bool,
    /// Contents of the capability.
    #[serde(flatten)]
    pub(super) says: Says,
}

/// Contents of a capability.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub(super) enum Says {
    /// Power states.
    PowerManagement { version: u8, d1: bool, d2: bool, state: u8 },
    /// Message signalled interrupts.
    Msi { vectors: u16, wide: bool, maskable: bool, enabled: bool },
    /// Message signalled interrupts with a table in a BAR.
    MsiX {
        vectors: u16,
        table_bar: u8,
        table_offset: u32,
        pending_bar: u8,
        pending_offset: u32,
        enabled: bool,
        masked: bool,
    },
    /// PCI Express: kind of port, current link, and best possible link.
    PciExpress {
        port: &'static str,
        slot: bool,
        payload_bytes_max: u32,
        link: Option<LinkOutput>,
        link_max: Option<LinkOutput>,
    },
    /// Vendor of the board of a bridge.
    BridgeSubsystem { vendor: String, device: String },
    /// Serial number of the device.
    SerialNumber { serial: String },
    /// Another capability.
    Other { title: &'static str },
}

/// A link.
#[derive(Clone, Copy, Serialize, JsonSchema)]
pub(super) struct LinkOutput {
    /// 1 is 2.5 GT/s, 2 is 5, 3 is 8, 4 is 16, 5 is 32, 6 is 64.
    pub(super) generation: u8,
    /// 1 to 32.
    pub(super) lanes: u8,
}

/// Contents of an MP table.
#[derive(Serialize, JsonSchema)]
pub(super) struct MpTableOutput {
    /// Manufacturer of the machine.
    pub(super) oem: String,
    /// Product name of the machine.
    pub(super) product: String,
    /// Number of processors.
    pub(super) processors: usize,
    /// Number of buses.
    pub(super) buses: usize,
    /// Number of I/O APICs.
    pub(super) io_apics: usize,
    /// Number of entries for interrupts of buses.
    pub(super) io_interrupts: usize,
    /// Number of entries for interrupts at local APICs.
    pub(super) local_interrupts: usize,
}

pub(super) fn describe(target: &str, machine: &MachineFacts, quirks: bool) -> PciOutput {
    let tree = &machine.tree;
    let functions = (0..tree.functions.len()).map(|index| function(machine, index, quirks));
    let mut notes: Vec<String> = machine.remarks.clone();
    notes.extend(tree.notes.iter().map(ToString::to_string));
    notes.extend(machine.no_room.iter().map(ToString::to_string));
    PciOutput {
        target: target.to_owned(),
        functions: functions.collect(),
        mp_table: machine.mp.as_ref().map(|table| MpTableOutput {
            oem: table.oem.clone(),
            product: table.product.clone(),
            processors: table.processors.len(),
            buses: table.buses.len(),
            io_apics: table.io_apics.len(),
            io_interrupts: table.io_interrupts.len(),
            local_interrupts: table.local_interrupts.len(),
        }),
        notes,
    }
}

fn function(machine: &MachineFacts, index: usize, quirks: bool) -> FunctionOutput {
    let tree = &machine.tree;
    let function = &tree.functions[index];
    let Function { address, header, .. } = function;
    let class = header.device_class();
    let is_known = function.firmware_knew_it().map(|_| !machine.unrecognised.contains(address));
    let operating_system = machine.interrupts.get(address).copied();
    let route = Route::find(tree, index, machine.mp.as_ref(), operating_system);
    let routed = route.as_ref().map(routed);
    let (routed, beside) = match (routed, route, &machine.mp) {
        (Some(right), Some(route), Some(mp)) if quirks => {
            let (wrong, beside) = as_printed(machine, index, &route, mp, right);
            (wrong, Some(beside))
        }
        (routed, ..) => (routed, None),
    };
    let best = InterruptAbilities::of(header, &function.capabilities).best();
    let best = best.filter(|_| class != DeviceClass::Bridge);
    FunctionOutput {
        address: address.to_string(),
        class: class.name(),
        class_code: format!("{:#08x}", header.class),
        class_name: subclass_name(header.class),
        vendor: format!("{:#06x}", header.vendor),
        device: format!("{:#06x}", header.device),
        name: machine.names.get(address).filter(|name| !name.is_empty()).cloned(),
        parent: function.parent.map(|parent| tree.functions[parent].address.to_string()),
        buses: header.bridge().map(|numbers| BusesOutput {
            primary: numbers.primary,
            secondary: numbers.secondary,
            subordinate: numbers.subordinate,
        }),
        pin: header.pin().filter(|_| !header.is_gone()).map(|pin| pin.to_string()),
        routed,
        beside,
        interrupts: best.map(|(mode, vectors)| InterruptsOutput { mode: mode_name(mode), vectors }),
        bars: held_bars(header).iter().map(|held| bar(machine, *address, held)).collect(),
        capabilities: function.capabilities.all.iter().map(capability).collect(),
        recognised_by_firmware: is_known,
        bootable: is_known.filter(|_| class == DeviceClass::Storage),
        driver: machine.drivers.get(address).cloned(),
    }
}

fn bar(machine: &MachineFacts, address: PciAddress, held: &HeldBar) -> BarOutput {
    let (wide, prefetchable) = match held.space {
        BarSpace::Io => (false, false),
        BarSpace::Memory { wide, prefetchable } => (wide, prefetchable),
    };
    BarOutput {
        index: held.index,
        space: if held.space == BarSpace::Io { "ports" } else { "memory" },
        wide,
        prefetchable,
        address: (held.address != 0).then(|| format!("{:#x}", held.address)),
        bytes: machine.bar_bytes.get(&(address, held.index)).copied(),
    }
}

fn mode_name(mode: InterruptMode) -> &'static str {
    match mode {
        InterruptMode::MsiX => "msi-x",
        InterruptMode::Msi => "msi",
        InterruptMode::Pin => "pin",
    }
}

fn routed(route: &Route) -> RoutedOutput {
    let chosen = route.chosen();
    let entry = route.mp.and_then(Result::ok);
    let step = |step: &ssdyno_pci::routing::RoutingStep| StepOutput {
        bridge: step.bridge.to_string(),
        pin: step.pin.to_string(),
    };
    let sources = route.sources().into_iter();
    RoutedOutput {
        via: chosen.map_or("none", |(via, _)| via.name()),
        pin_at_root: Some(route.pin_at_root().to_string()),
        irq: chosen.map(|(_, irq)| irq),
        io_apic: entry.map(|entry| entry.apic),
        path: route.steps.iter().map(step).collect(),
        sources: sources.map(|(via, irq)| SourceOutput { via: via.name(), irq }).collect(),
        disagree: route.disagrees(),
        explanation: route.explanation(),
    }
}

/// The result of the thesis' code, beside the right result.
fn as_printed(
    machine: &MachineFacts,
    index: usize,
    route: &Route,
    mp: &MpTable,
    right: RoutedOutput,
) -> (Option<RoutedOutput>, BesideOutput) {
    let tree = &machine.tree;
    let found = quirks::snippet_3_5(tree, index, mp);
    let by = |rule: &dyn Fn(Pin, PciAddress) -> Pin| {
        quirks::pin_at_root(tree, index, route.pin, rule).to_string()
    };
    let routed = found.map(|found| {
        // 1-based until the first bridge.
        let zero_based = found.pin - i32::from(found.bridges == 0);
        let pin = u8::try_from(zero_based).ok().filter(|pin| *pin < 4).map(Pin::from_zero_based);
        let sources =
            found.input.map(|input| SourceOutput { via: "vortex-quirks", irq: u32::from(input) });
        let explanation = match (found.input, found.exact) {
            (Some(input), true) => format!("snippet 3.5 finds an entry: input {input}"),
            (Some(input), false) => format!(
                "snippet 3.5 finds no entry for the pin, keeps the entry for another pin of a device on the way, input {input}, and reports success"
            ),
            (None, _) => "snippet 3.5 finds nothing, and reports success".to_owned(),
        };
        RoutedOutput {
            via: if found.input.is_some() { "vortex-quirks" } else { "none" },
            pin_at_root: pin.map(|pin| pin.to_string()),
            irq: found.input.map(u32::from),
            io_apic: None,
            path: Vec::new(),
            sources: sources.into_iter().collect(),
            disagree: false,
            explanation,
        }
    });
    let beside = BesideOutput {
        specification: right,
        pin_at_root_by_equation_2: by(&|pin, at| quirks::equation_2(pin, at.bus)),
        pin_at_root_by_table_3_1: by(&|pin, at| quirks::table_3_1(pin, at.device())),
    };
    (routed, beside)
}

fn capability(capability: &Capability) -> CapabilityOutput {
    let link = |link: Link| LinkOutput { generation: link.generation, lanes: link.lanes };
    let (id, says) = match capability.kind {
        CapabilityKind::PowerManagement { version, d1, d2, state } => {
            (0x01, Says::PowerManagement { version, d1, d2, state })
        }
        CapabilityKind::Msi { vectors, wide, maskable, enabled } => {
            (0x05, Says::Msi { vectors, wide, maskable, enabled })
        }
        CapabilityKind::MsiX { vectors, table, pending, enabled, masked } => {
            let ((table_bar, table_offset), (pending_bar, pending_offset)) = (table, pending);
            let says = Says::MsiX {
                vectors,
                table_bar,
                table_offset,
                pending_bar,
                pending_offset,
                enabled,
                masked,
            };
            (0x11, says)
        }
        CapabilityKind::Pcie(pcie) => {
            let says = Says::PciExpress {
                port: pcie.port.name(),
                slot: pcie.slot,
                payload_bytes_max: pcie.payload_bytes_max,
                link: pcie.link.map(link),
                link_max: pcie.link_max.map(link),
            };
            (0x10, says)
        }
        CapabilityKind::BridgeSubsystem { vendor, device } => {
            let hex = |id: u16| format!("{id:#06x}");
            (0x0d, Says::BridgeSubsystem { vendor: hex(vendor), device: hex(device) })
        }
        CapabilityKind::SerialNumber(serial) => {
            (0x0003, Says::SerialNumber { serial: format!("{serial:#018x}") })
        }
        CapabilityKind::Other(id) => (u16::from(id), Says::Other { title: capability_name(id) }),
        CapabilityKind::OtherExtended(id) => {
            (id, Says::Other { title: extended_capability_name(id) })
        }
    };
    CapabilityOutput { offset: capability.offset, id, extended: capability.offset >= 0x100, says }
}
