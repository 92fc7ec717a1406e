//! Machines as QEMU 7.2 and SeaBIOS show them, read after the start of the firmware: configuration
//! spaces in the form of `lspci -xxx`, and the MP table with its floating pointer, from 0xf5b90 on.

use ssdyno_pci::capability::Link;
use ssdyno_pci::routing::Via;
use ssdyno_pci::routing::quirks::snippet_3_5;
use ssdyno_pci::topology::{Firmware, PciMachine, boot};
use ssdyno_pci::{Identity, MpTable, PciAddress, RootBus, Route, Tree, dump, scan};

/// Where SeaBIOS put the floating pointer.
const BASE: u64 = 0xf_5b90;

macro_rules! machine {
    ($name:literal) => {
        machine(
            include_str!(concat!("../data/", $name, ".lspci")),
            include_bytes!(concat!("../data/", $name, ".mp")),
        )
    };
}

fn machine(text: &str, memory: &[u8]) -> (Tree, MpTable) {
    let mut dump = dump::parse(text).unwrap();
    let tree = scan(&mut dump.snapshot, &[RootBus::FIRST]);
    (tree, MpTable::find(memory, BASE).unwrap())
}

fn route(machine: &(Tree, MpTable), at: &str) -> Route {
    let index = machine.0.find(at.parse().unwrap()).unwrap();
    Route::find(&machine.0, index, Some(&machine.1), None).unwrap()
}

/// The case that guests without ACPI get wrong: 11 works, the entry that looks near says 10.
#[test]
fn nvme_behind_a_bridge_is_not_in_the_mp_table() {
    let machine = machine!("qemu-pc-bridge");
    assert_eq!(machine.0.functions.len(), 8);
    assert_eq!(machine.1.oem, "BOCHSCPU");
    let nvme = route(&machine, "01:03.0");
    assert_eq!(nvme.pin_at_root().to_string(), "INTD");
    assert!(matches!(nvme.mp, Some(Err(_))));
    assert_eq!(nvme.chosen(), Some((Via::InterruptLine, 11)));
    assert_eq!(
        nvme.other_pin.map(|(pin, input)| (pin.to_string(), input)),
        Some(("INTA".into(), 10))
    );
    let index = machine.0.find(nvme.function).unwrap();
    assert_eq!(snippet_3_5(&machine.0, index, &machine.1).unwrap().input, Some(10));
    assert_eq!(route(&machine, "00:03.0").chosen(), Some((Via::MpTable, 11)));
    assert_eq!(route(&machine, "00:05.0").chosen(), Some((Via::MpTable, 10)));
    let function = &machine.0.functions[index];
    assert_eq!(function.capabilities.msix_vectors(), 65);
    assert_eq!(function.firmware_knew_it(), Some(true));
    assert_eq!(machine.0.functions[function.parent.unwrap()].address, "00:05.0".parse().unwrap());
}

/// SeaBIOS enters into each interrupt line register what the pin arrives at: with its rule for bus 0
/// it proves our swizzle, for every function of the machine.
#[test]
fn the_swizzle_agrees_with_the_firmware_of_qemu() {
    let irqs = [10, 10, 11, 11];
    for (tree, mp) in [machine!("qemu-pc-bridge"), machine!("qemu-pc-two-bridges")] {
        let mut checked = 0;
        for index in 0..tree.functions.len() {
            let Some(route) = Route::find(&tree, index, Some(&mp), None) else { continue };
            let at_root = route.steps.last().map_or(route.function, |step| step.bridge).device();
            // The PIIX4's own functions, device 1, are wired to interrupt 9.
            if at_root == 1 {
                continue;
            }
            let link = usize::from(route.pin_at_root().zero_based() + at_root + 3) % 4;
            assert_eq!(route.interrupt_line, Some(irqs[link]), "{}", route.function);
            checked += 1;
        }
        assert!(checked >= 3, "{checked}");
    }
}

#[test]
fn a_switch_behind_a_root_port() {
    let machine = machine!("qemu-q35-switch");
    let nvme = route(&machine, "05:00.0");
    let way: Vec<_> = nvme.steps.iter().map(|s| format!("{} {}", s.bridge, s.pin)).collect();
    assert_eq!(way, ["0000:03:01.0 INTA", "0000:02:00.0 INTB", "0000:00:1c.1 INTB"]);
    assert_eq!(nvme.chosen(), Some((Via::InterruptLine, 10)));
    let network = route(&machine, "01:00.0");
    assert_eq!(network.chosen(), Some((Via::Swizzle, 10)));
    let (tree, _) = &machine;
    let bridges: Vec<PciAddress> =
        tree.functions.iter().filter(|f| f.header.bridge().is_some()).map(|f| f.address).collect();
    assert_eq!(bridges.len(), 5);
    assert!(tree.notes.is_empty(), "{:?}", tree.notes);
}

/// Our simulated machines are those that QEMU has: same interrupt lines, same entries of the bridge.
#[test]
fn simulated_machines_agree_with_qemu() {
    let identity = Identity {
        vendor: 0x1b36,
        device: 0x0010,
        class: 0x01_0802,
        revision: 2,
        bar_bytes: [1 << 14, 0, 0],
        msix_vectors: 65,
        msi_vectors: 0,
        interrupt_pin: 1,
    };
    let link = Link { generation: 1, lanes: 1 };
    let real = [
        (PciMachine::Bridge, machine!("qemu-pc-bridge"), "01:03.0"),
        (PciMachine::TwoBridges, machine!("qemu-pc-two-bridges"), "02:03.0"),
    ];
    for (kind, real, at) in real {
        let (mut topology, _) = kind.with(&identity, link);
        let mp = boot(&mut topology, Firmware::Full).unwrap();
        let ours = (scan(&mut topology, &[RootBus::FIRST]), mp);
        for at in [at, "00:05.0"] {
            let (ours, real) = (route(&ours, at), route(&real, at));
            assert_eq!(ours.interrupt_line, real.interrupt_line, "{at}");
            assert_eq!(ours.chosen(), real.chosen());
            assert_eq!(ours.steps, real.steps);
            assert_eq!(ours.other_pin, real.other_pin);
        }
    }
}
