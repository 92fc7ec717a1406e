//! Addresses for base address registers and bridge windows that firmware left without (S1-9).
//!
//! Valid addresses from firmware are kept. Registers that it left out go into the gaps; a bridge's window moves, with
//! all its contents, only if it is too small for the devices behind it. Expansion ROMs that firmware left enabled keep
//! their addresses or get others; those that are off need none.

mod node;
mod place;

use alloc::vec::Vec;
use core::fmt;

use ssdyno_spec::pci::{COMMAND_BUS_MASTER, COMMAND_IO, COMMAND_MEMORY};

use crate::PciAddress;
use crate::bars::{Bar, set_bar, set_rom};
use crate::config::{At, ConfigAccess, ConfigSpace};
use crate::header::ConfigHeader;
use crate::tree::Tree;
use crate::window::{Range, WindowKind, set_window};

use node::{Node, Owner};

/// Addresses that a host gives to the devices behind a root bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Apertures {
    /// I/O ports; `None` where the host has none.
    pub io: Option<Range>,
    /// Memory below 4 GiB.
    pub memory: Range,
    /// Memory above 4 GiB, for prefetchable 64-bit registers; `None` where the host has none.
    pub prefetch: Option<Range>,
}

/// Who has addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Holder {
    /// A base address register.
    Bar(u8),
    /// An expansion ROM that firmware left enabled.
    Rom,
    /// A window of a bridge.
    Window(WindowKind),
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Bar(index) => write!(f, "BAR {index}"),
            Holder::Rom => f.write_str("the expansion ROM"),
            Holder::Window(WindowKind::Io) => f.write_str("I/O window"),
            Holder::Window(WindowKind::Memory) => f.write_str("memory window"),
            Holder::Window(WindowKind::Prefetch) => f.write_str("prefetchable window"),
        }
    }
}

/// Addresses that a function has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resource {
    /// The function.
    pub address: PciAddress,
    /// Its register or window.
    pub holder: Holder,
    /// I/O or memory.
    pub kind: WindowKind,
    /// The addresses.
    pub range: Range,
    /// Firmware gave them.
    pub kept: bool,
}

/// Addresses that a function needs and cannot get.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{address}: no addresses are left for {holder} ({bytes} bytes); {} stays off. Give \
     the root bus a larger aperture",
    what_stays_off(*.holder)
)]
pub struct NoRoom {
    /// The function.
    pub address: PciAddress,
    /// Its register or window.
    pub holder: Holder,
    /// How much it needs.
    pub bytes: u64,
}

/// A function works without its ROM.
fn what_stays_off(holder: Holder) -> &'static str {
    if holder == Holder::Rom { "it" } else { "the function" }
}

/// The results of [`assign`], in the order of addresses.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Assignment {
    /// All registers and windows that have addresses.
    pub resources: Vec<Resource>,
    /// Those that could not get any.
    pub failures: Vec<NoRoom>,
}

/// Gives addresses to everything on the root buses of `segment`, and behind them, and makes the
/// functions answer. The root buses share `apertures`. Reads the changed headers into `tree` again.
pub fn assign(
    access: &mut dyn ConfigAccess,
    tree: &mut Tree,
    segment: u32,
    apertures: &Apertures,
) -> Assignment {
    // The whole tree is measured before any address is written. A placement bus by bus would give a
    // bridge a window before the needs of the devices behind it are known.
    let mut top = node::build(access, tree, segment, apertures.prefetch.is_some());
    let mut done = Assignment::default();
    for kind in WindowKind::ALL {
        let room = match kind {
            WindowKind::Io => apertures.io,
            WindowKind::Memory => Some(apertures.memory),
            WindowKind::Prefetch => apertures.prefetch,
        };
        place::place_top(&mut top[kind as usize], room);
    }
    place::close_bridges_without_room(&mut top);
    let mut decisions = Vec::new();
    top.iter().flatten().for_each(|node| collect(node, tree, &mut done, &mut decisions));
    done.resources.sort_by_key(|resource| (resource.address, resource.holder));
    done.failures.sort_by_key(|failure| (failure.address, failure.holder));
    for (index, function) in tree.functions.iter_mut().enumerate() {
        let mine = decisions.iter().filter(|decision| decision.0 == index);
        let mine: Vec<&Decision> = mine.collect();
        if !mine.is_empty() {
            let mut space = At::new(access, function.address);
            commit(&mut space, function.header.layout, &mine);
            function.header = ConfigHeader::read(&mut space);
        }
    }
    done
}

/// Function, owner, and where it goes.
type Decision = (usize, Owner, Option<(Range, bool)>);

fn collect(node: &Node, tree: &Tree, done: &mut Assignment, decisions: &mut Vec<Decision>) {
    let address = tree.functions[node.function].address;
    let holder = match node.owner {
        Owner::Bar(bar) => Holder::Bar(bar.index),
        Owner::Rom => Holder::Rom,
        Owner::Window(kind) => Holder::Window(kind),
    };
    decisions.push((node.function, node.owner, node.placed.map(|range| (range, node.kept))));
    match node.placed {
        Some(range) => {
            let (kind, kept) = (node.kind, node.kept);
            done.resources.push(Resource { address, holder, kind, range, kept });
        }
        None if node.bytes != 0 => {
            done.failures.push(NoRoom { address, holder, bytes: node.bytes });
        }
        None => {}
    }
    node.children.iter().for_each(|child| collect(child, tree, done, decisions));
}

/// Writes the addresses of one function, and enables each kind of access for which all registers
/// have addresses.
fn commit(space: &mut dyn ConfigSpace, layout: u8, mine: &[&Decision]) {
    let decode = COMMAND_IO | COMMAND_MEMORY;
    // A function must not decode while its BAR changes: the BAR has two halves, and between both
    // writes the function would answer at an address of another device.
    if mine.iter().any(|(_, _, placed)| placed.is_none_or(|(_, kept)| !kept)) {
        space.change_command(decode, 0);
    }
    let (mut wanted, mut missing) = (0, 0);
    for (_, owner, placed) in mine {
        let bit = if owner.is_io() { COMMAND_IO } else { COMMAND_MEMORY };
        match (owner, placed) {
            (Owner::Bar(bar), Some((range, false))) => set_bar(space, bar, range.start),
            // Left as it is, and off.
            (Owner::Bar(_), None) => missing |= bit,
            (Owner::Rom, Some((range, false))) => set_rom(space, layout, Some(range.start)),
            (Owner::Rom, None) => set_rom(space, layout, None),
            (Owner::Window(kind), Some((range, false))) => set_window(space, *kind, Some(*range)),
            (Owner::Window(kind), None) => set_window(space, *kind, None),
            (_, Some((_, true))) => {}
        }
        if placed.is_some() {
            wanted |= bit;
        }
        if let Owner::Window(_) = owner {
            // It must carry the transfers of the devices behind it to the host.
            wanted |= COMMAND_BUS_MASTER;
        }
    }
    // One register without an address switches off the whole kind of access. The register keeps a
    // stale value, and the function would otherwise decode an address that is not its own.
    space.change_command(missing, wanted & !missing);
}

impl Owner {
    fn is_io(&self) -> bool {
        match self {
            Owner::Bar(Bar { space, .. }) => *space == crate::bars::BarSpace::Io,
            Owner::Rom => false,
            Owner::Window(kind) => *kind == WindowKind::Io,
        }
    }
}
