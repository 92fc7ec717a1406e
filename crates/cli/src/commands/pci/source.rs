//! Where the functions come from.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use ssdyno_controller_ring::{RingCard, RingConfig};
use ssdyno_device::{DeviceSpec, LinkConfig};
use ssdyno_pci::assign::NoRoom;
use ssdyno_pci::bars::size_bars;
use ssdyno_pci::capability::{CapabilityKind, Link};
use ssdyno_pci::config::At;
use ssdyno_pci::dump::DumpError;
use ssdyno_pci::topology::{APERTURES, Firmware, PciMachine, boot};
use ssdyno_pci::{
    Identity, MpError, MpTable, PciAddress, PciDevice, PciIds, RootBus, Tree, assign, dump, scan,
};
use ssdyno_session::{Failure, FailurePlace, files, named};
use ssdyno_ssd::Config;

use super::args::{FirmwareArg, MachineArg, PciArgs};

/// More than any table, and as much as firmware of PCs can see.
const MP_BYTES_MAX: u64 = 1 << 20;

/// Where distributions install the list of makers and names.
const IDS: [&str; 3] =
    ["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids", "/usr/share/pci.ids"];

/// Lines of a dump that were left out and are told one by one.
const LEFT_OUT_TOLD: usize = 10;

/// A machine, and the facts about it outside configuration space.
#[derive(Default)]
pub(super) struct MachineFacts {
    pub(super) tree: Tree,
    pub(super) mp: Option<MpTable>,
    /// Makers and names, where the source tells them.
    pub(super) names: BTreeMap<PciAddress, String>,
    /// The present driver of a function.
    pub(super) drivers: BTreeMap<PciAddress, String>,
    /// The operating system's interrupts of pins.
    pub(super) interrupts: BTreeMap<PciAddress, u32>,
    /// What base address registers ask for, in bytes, by their number, where the source tells it.
    pub(super) bar_bytes: BTreeMap<(PciAddress, u8), u64>,
    /// Functions that firmware did not set up, as far as that could still be seen.
    pub(super) unrecognised: Vec<PciAddress>,
    /// The registers without addresses.
    pub(super) no_room: Vec<NoRoom>,
    /// What else to tell.
    pub(super) remarks: Vec<String>,
}

pub(super) fn read(args: &PciArgs) -> Result<MachineFacts, Failure> {
    let simulated = args.target.starts_with("sim:");
    if !simulated && (args.machine.is_some() || args.firmware.is_some()) {
        let message = "--machine and --firmware apply only to simulated machines";
        let help = "name a target such as sim:nvme-tlc, or leave them out";
        return Err(Failure::usage(message).with_help(help));
    }
    let mut machine = if simulated {
        simulate(args)?
    } else if args.target == "sys" {
        this_machine(args.mp_table.is_some())?
    } else {
        saved(&args.target)?
    };
    if let Some(path) = &args.mp_table {
        machine.mp = Some(mp_table(path)?);
    }
    Ok(machine)
}

impl MachineFacts {
    fn new(tree: Tree) -> MachineFacts {
        let known = |f: &&ssdyno_pci::Function| f.firmware_knew_it() == Some(false);
        let unrecognised = tree.functions.iter().filter(known).map(|f| f.address).collect();
        MachineFacts { tree, unrecognised, ..MachineFacts::default() }
    }
}

/// A simulated machine: firmware first, then what it left to do.
fn simulate(args: &PciArgs) -> Result<MachineFacts, Failure> {
    let loaded = named::device(None, &args.target, &[])?;
    let (identity, link) = identity(&loaded.config).map_err(|e| loaded.document.impossible(&e))?;
    let machine = match args.machine.unwrap_or(MachineArg::RootPort) {
        MachineArg::RootPort => PciMachine::RootPort,
        MachineArg::Bridge => PciMachine::Bridge,
        MachineArg::TwoBridges => PciMachine::TwoBridges,
        MachineArg::Switch => PciMachine::Switch,
    };
    let (mut topology, device) = machine.with(&identity, link);
    let mp = boot(
        &mut topology,
        match args.firmware.unwrap_or(FirmwareArg::Full) {
            FirmwareArg::Full => Firmware::Full,
            FirmwareArg::OverlooksDevice => Firmware::Overlooks(device),
            FirmwareArg::None => Firmware::None,
        },
    );
    let tree = scan(&mut topology, &[RootBus::FIRST]);
    let mut facts = MachineFacts { mp, ..MachineFacts::new(tree) };
    facts.no_room = assign(&mut topology, &mut facts.tree, 0, &APERTURES).failures;
    for function in &facts.tree.functions {
        let mut space = At::new(&mut topology, function.address);
        let bars = size_bars(&mut space, function.header.layout).into_iter();
        facts.bar_bytes.extend(bars.map(|bar| ((function.address, bar.index), bar.bytes)));
    }
    let about = "the machine around the device is assumed: it has the chipset and bridges of QEMU's machine type pc";
    facts.remarks.push(about.to_owned());
    if let Some(address) = topology.address(device) {
        facts.names.insert(address, format!("simulated {}", loaded.name));
    }
    Ok(facts)
}

/// The device's description of itself on the bus, and its link.
fn identity(device: &DeviceSpec) -> Result<(Identity, Link), ssdyno_block::ConfigError> {
    if let Some(config) = device.get::<RingConfig>() {
        let link =
            Link { generation: config.link.generation as u8, lanes: config.link.lanes as u8 };
        return Ok((RingCard::fresh(config, 0)?.identity(), link));
    }
    if let Some(config) = device.get::<Config>() {
        // A device without a table [nvme] has the usual controller.
        let identity = config.nvme.clone().unwrap_or_default().identity();
        return Ok((identity, link(&config.host_link)));
    }
    Err(ssdyno_block::ConfigError::new(
        device.name(),
        format!("{} is not a function on a bus", device.what()),
        "name an SSD or a ring card, such as sim:nvme-tlc",
    ))
}

/// A link that is not PCI Express is not on this bus; the least one stands for it.
fn link(config: &LinkConfig) -> Link {
    match *config {
        LinkConfig::Pcie { generation, lanes, .. } => {
            Link { generation: generation as u8, lanes: lanes as u8 }
        }
        _ => Link { generation: 1, lanes: 1 },
    }
}

#[cfg(target_os = "linux")]
fn this_machine(has_table: bool) -> Result<MachineFacts, Failure> {
    use ssdyno_pci::sysfs;

    let mut system = sysfs::read(sysfs::DEVICES.as_ref()).map_err(|error| {
        let help =
            "the machine has no PCI, or a container hides it; saved output of lspci -xxxx also \
             works";
        Failure::usage(error.to_string()).with_help(help)
    })?;
    let tree = scan(&mut system.snapshot, &[]);
    let (names, missing) = names(&tree, BTreeMap::new(), &IDS);
    let mut facts = MachineFacts {
        names,
        drivers: system.drivers,
        interrupts: system.interrupts,
        bar_bytes: system.bar_bytes,
        ..MachineFacts::new(tree)
    };
    if facts.tree.notes.iter().any(|note| note.to_string().contains("only 64 bytes")) {
        facts.tree.notes.retain(|note| !note.to_string().contains("only 64 bytes"));
        let privilege = "capabilities are readable by root only: run this as root to see them";
        facts.remarks.push(privilege.to_owned());
    }
    facts.remarks.extend(missing);
    match sysfs::mp_table(sysfs::MEMORY.as_ref()) {
        Ok(table) => facts.mp = Some(table),
        Err(error) if !has_table => facts.remarks.push(format!("no MP table is used: {error}")),
        Err(_) => {}
    }
    Ok(facts)
}

#[cfg(not(target_os = "linux"))]
fn this_machine(_has_table: bool) -> Result<MachineFacts, Failure> {
    let help = "save its functions with lspci -xxxx, and name that file";
    Err(Failure::usage("the PCI devices of this machine can be read on Linux only").with_help(help))
}

/// A dump of lspci.
fn saved(path: &str) -> Result<MachineFacts, Failure> {
    if !std::path::Path::new(path).exists() {
        let help = "use sys, sim:NAME (see `ssdyno list devices`), or a file saved by lspci -xxxx";
        return Err(Failure::usage(format!("there is no target `{path}`")).with_help(help));
    }
    let text = files::read_printed_text(path)?;
    let mut dump = dump::parse(&text).map_err(|error| garbled(path, &text, error))?;
    let tree = scan(&mut dump.snapshot, &[]);
    // Where messages are in use the number is that of a message.
    let message = |kind: &CapabilityKind| matches!(kind, CapabilityKind::Msi { enabled: true, .. });
    let of_pin = |function: &&ssdyno_pci::Function| {
        !function.capabilities.all.iter().any(|capability| message(&capability.kind))
    };
    let pins = tree.functions.iter().filter(of_pin).map(|function| function.address);
    let interrupts = pins.filter_map(|at| Some((at, *dump.interrupts.get(&at)?))).collect();
    let (names, _) = names(&tree, dump.names, &IDS);
    Ok(MachineFacts {
        names,
        drivers: dump.drivers,
        bar_bytes: dump.bar_bytes,
        interrupts,
        remarks: left_out(&dump.skipped),
        ..MachineFacts::new(tree)
    })
}

/// Notes on lines of a dump that were left out: the first ones by number.
fn left_out(skipped: &[DumpError]) -> Vec<String> {
    let note = |error: &DumpError| format!("line {} is ignored: {error}", error.line);
    let mut notes: Vec<String> = skipped.iter().take(LEFT_OUT_TOLD).map(note).collect();
    if let Some(more @ 1..) = skipped.len().checked_sub(LEFT_OUT_TOLD) {
        notes.push(format!("{more} more lines are ignored for the same reasons"));
    }
    notes
}

/// The names of `known`, and of other functions those that the first of the lists at `paths` has; and what to say
/// if there is none.
fn names(
    tree: &Tree,
    mut known: BTreeMap<PciAddress, String>,
    paths: &[&str],
) -> (BTreeMap<PciAddress, String>, Option<String>) {
    let nameless = |f: &&ssdyno_pci::Function| known.get(&f.address).is_none_or(String::is_empty);
    let functions: Vec<_> = tree.functions.iter().filter(nameless).collect();
    let id = |f: &ssdyno_pci::Function| (f.header.vendor, f.header.device);
    let wanted: Vec<(u16, u16)> = functions.iter().map(|function| id(function)).collect();
    if wanted.is_empty() {
        return (known, None);
    }
    let Some(list) = paths.iter().find_map(|path| std::fs::read(path).ok()) else {
        let missing = format!(
            "the names of vendors and devices come from the file pci.ids (package pci.ids or hwdata), which is not in {}",
            paths.join(", ")
        );
        return (known, Some(missing));
    };
    let list = PciIds::parse(&String::from_utf8_lossy(&list), &wanted);
    for (function, (vendor, device)) in functions.into_iter().zip(wanted) {
        known.extend(list.name(vendor, device).map(|name| (function.address, name)));
    }
    (known, None)
}

fn garbled(path: &str, text: &str, error: DumpError) -> Failure {
    let before: usize = text.split_inclusive('\n').take(error.line - 1).map(str::len).sum();
    let line = text[before..].lines().next().unwrap_or_default();
    let place = FailurePlace {
        name: path.to_owned(),
        text: text.to_owned(),
        span: before..before + line.len(),
        first_line: 1,
        label: "this line".to_owned(),
        is_file: true,
    };
    Failure::usage(format!("{path}:{}: {error}", error.line))
        .with_help("save the functions with `lspci -xxxx > FILE`, as root")
        .at(Some(place))
}

/// A table from a file: by its floating pointer, or from its first byte on.
fn mp_table(path: &str) -> Result<MpTable, Failure> {
    let cannot = |why: String| {
        let help =
            "give the table itself, or an image of memory: the first MiB, or 0xf0000-0xfffff";
        Failure::usage(format!("cannot use {path} as an MP table: {why}")).with_help(help)
    };
    let file = File::open(path).map_err(|error| cannot(error.to_string()))?;
    let mut memory = Vec::new();
    file.take(MP_BYTES_MAX).read_to_end(&mut memory).map_err(|error| cannot(error.to_string()))?;
    if memory.starts_with(b"PCMP") {
        return MpTable::parse(&memory).map_err(|error| cannot(error.to_string()));
    }
    // An image may end at the first MiB, or begin at address 0; else the table follows its pointer.
    let below_1_mib = MP_BYTES_MAX - memory.len() as u64;
    let mut result = MpTable::find(&memory, 0);
    for base in [below_1_mib, following(&memory)] {
        if matches!(result, Err(MpError::Elsewhere { .. } | MpError::Signature(_))) {
            result = MpTable::find(&memory, base);
        }
    }
    result.map_err(|error| cannot(error.to_string()))
}

/// The base that an image has if the first `PCMP` in it is what its floating pointer means.
fn following(memory: &[u8]) -> u64 {
    let table = memory.windows(4).position(|window| window == b"PCMP");
    let address = MpTable::address(memory);
    let base = address.zip(table).and_then(|(address, at)| address.checked_sub(at as u64));
    base.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../pci/tests/data/qemu-pc-bridge.lspci"
    ));

    /// Names come from the source first, then from the first list that is there.
    #[test]
    fn names_from_the_list_of_the_system() {
        let tree = scan(&mut dump::parse(DUMP).unwrap().snapshot, &[]);
        let nvme = tree.functions.iter().find(|f| f.header.class >> 8 == 0x0108).unwrap();
        let other = tree.functions.iter().find(|f| f.address != nvme.address).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pci.ids");
        let path = path.to_str().unwrap();
        let list =
            format!("{:04x}  Maker\n\t{:04x}  Drive\n", nvme.header.vendor, nvme.header.device);
        std::fs::write(path, list).unwrap();
        let known = BTreeMap::from([(other.address, "told".to_owned())]);
        let (named, missing) = names(&tree, known.clone(), &["/no/such", path]);
        assert_eq!((named[&nvme.address].as_str(), missing), ("Maker Drive", None));
        assert_eq!(named[&other.address], "told", "the source has the last word");
        let (same, missing) = names(&tree, known.clone(), &["/no/such"]);
        assert_eq!(same, known);
        assert!(missing.unwrap().contains("not in /no/such"));
    }

    /// A prompt, a message and a function without bytes: notes, by line, and the machine all the same.
    #[test]
    fn lines_that_are_left_out_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("saved");
        let text = format!("root@box:~# lspci -xxxx\n{DUMP}00:1e.0 SMBus: Maker Thing\nlogout\n");
        std::fs::write(&path, &text).unwrap();
        let found = saved(path.to_str().unwrap()).unwrap();
        let plain = scan(&mut dump::parse(DUMP).unwrap().snapshot, &[]);
        assert_eq!(found.tree.functions.len(), plain.functions.len());
        assert_eq!(found.remarks.len(), 2, "{:?}", found.remarks);
        assert!(
            found.remarks[0].starts_with("line 1 is ignored: not a line"),
            "{:?}",
            found.remarks
        );
        let without = "function 0000:00:1e.0 has 0 of the 64 bytes of its header";
        assert!(found.remarks[1].contains(without), "{:?}", found.remarks);
        let many = text.replace("logout\n", &"x\n".repeat(100));
        std::fs::write(&path, many.replace("00:1e.0 SMBus: Maker Thing\n", "")).unwrap();
        let found = saved(path.to_str().unwrap()).unwrap();
        assert_eq!(found.remarks.len(), LEFT_OUT_TOLD + 1);
        assert!(found.remarks[LEFT_OUT_TOLD].starts_with("91 more"), "{:?}", found.remarks);
    }
}
