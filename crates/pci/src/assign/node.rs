//! The tree of everything that needs addresses: registers, and windows with the devices behind
//! them.

use alloc::vec::Vec;

use ssdyno_spec::pci::{COMMAND, COMMAND_IO, COMMAND_MEMORY, LAYOUT_BRIDGE};

use crate::bars::{Bar, BarSpace, Rom, enabled_rom, size_bars};
use crate::config::{At, ConfigAccess, ConfigSpace};
use crate::tree::Tree;
use crate::window::{Range, WindowKind, is_wide, read_window};

use super::place;

/// The first address above those of 32 bits.
const END_32_BITS: u64 = 1 << 32;
/// The first port above those of 16 bits.
const END_16_BITS: u64 = 1 << 16;

/// Who needs addresses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    Bar(Bar),
    Rom,
    Window(WindowKind),
}

/// A register, or a window and what is in it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Index of the function.
    pub(super) function: usize,
    pub(super) owner: Owner,
    /// From which window of the bus it is on, or aperture, it takes addresses.
    pub(super) kind: WindowKind,
    /// The size that it needs; 0 for an empty window.
    pub(super) bytes: u64,
    pub(super) alignment: u64,
    /// It must end at or below this address.
    pub(super) end_max: u64,
    /// What firmware gave it.
    pub(super) current: Option<Range>,
    pub(super) children: Vec<Node>,
    /// Where it goes.
    pub(super) placed: Option<Range>,
    /// That is where it was.
    pub(super) kept: bool,
}

/// Needs on one bus, by [`WindowKind`].
type Needs = [Vec<Node>; 3];

/// The bridges above a bus, as far as they decide which window a register belongs to.
#[derive(Clone, Copy)]
struct Above {
    /// Prefetchable window: `None` there is none, else whether it reaches above 4 GiB.
    prefetch: Option<bool>,
    /// The windows as firmware set them.
    current: [Option<Range>; 3],
}

/// Everything on and behind the root buses of `segment`.
pub(super) fn build(
    access: &mut dyn ConfigAccess,
    tree: &Tree,
    segment: u32,
    prefetch: bool,
) -> Needs {
    let above = Above { prefetch: prefetch.then_some(true), current: [None; 3] };
    on_bus(access, tree, None, segment, above)
}

/// Nests as deep as bridges do: 255 at most.
fn on_bus(
    access: &mut dyn ConfigAccess,
    tree: &Tree,
    bridge: Option<usize>,
    segment: u32,
    above: Above,
) -> Needs {
    let mut needs = Needs::default();
    for index in tree.behind(bridge) {
        let function = &tree.functions[index];
        if function.address.segment != segment || function.header.is_gone() {
            continue;
        }
        let (mut space, layout) = (At::new(access, function.address), function.header.layout);
        let bars =
            size_bars(&mut space, layout).into_iter().map(|bar| bar_node(index, bar, &above));
        let rom = enabled_rom(&mut space, layout).map(|rom| rom_node(index, rom, &above));
        for node in bars.chain(rom) {
            needs[node.kind as usize].push(node);
        }
        // CardBus bridges have windows of another kind, which are not set here.
        if function.header.layout == LAYOUT_BRIDGE && function.header.bridge().is_some() {
            for node in window_nodes(access, tree, index, &above) {
                needs[node.kind as usize].push(node);
            }
        }
    }
    needs
}

fn bar_node(function: usize, bar: Bar, above: &Above) -> Node {
    let current = (bar.address != 0).then_some(Range { start: bar.address, bytes: bar.bytes });
    let (kind, end_max) = match bar.space {
        BarSpace::Io => (WindowKind::Io, END_32_BITS),
        BarSpace::Memory { wide, prefetchable } => {
            // A 32-bit prefetchable BAR cannot use a prefetchable window above 4 GiB. It goes into
            // the plain memory window, which is always correct; the opposite direction is not.
            let usual = if prefetchable { above.prefetch_kind(wide) } else { WindowKind::Memory };
            let end_max = if wide { u64::MAX } else { END_32_BITS };
            (above.memory_kind(current, usual), end_max)
        }
    };
    leaf(function, Owner::Bar(bar), kind, bar.bytes, end_max, current)
}

fn rom_node(function: usize, rom: Rom, above: &Above) -> Node {
    let current = (rom.address != 0).then_some(Range { start: rom.address, bytes: rom.bytes });
    let kind = above.memory_kind(current, WindowKind::Memory);
    leaf(function, Owner::Rom, kind, rom.bytes, END_32_BITS, current)
}

/// A register, whose addresses are a multiple of its size.
fn leaf(
    function: usize,
    owner: Owner,
    kind: WindowKind,
    bytes: u64,
    end_max: u64,
    current: Option<Range>,
) -> Node {
    let (alignment, children) = (bytes, Vec::new());
    let (placed, kept) = (None, false);
    Node { function, owner, kind, bytes, alignment, end_max, current, children, placed, kept }
}

fn window_nodes(
    access: &mut dyn ConfigAccess,
    tree: &Tree,
    index: usize,
    above: &Above,
) -> Vec<Node> {
    let address = tree.functions[index].address;
    let mut space = At::new(access, address);
    let current = WindowKind::ALL.map(|kind| read_window(&mut space, kind));
    let end = end_of_windows(&mut space);
    let prefetch = end[WindowKind::Prefetch as usize].map(|end| end > END_32_BITS);
    let inside = Above { prefetch, current };
    let needs = on_bus(access, tree, Some(index), address.segment, inside);
    let mut nodes = Vec::new();
    for ((kind, children), end) in WindowKind::ALL.into_iter().zip(needs).zip(end) {
        // Where there is no I/O window, the ports behind it find no room.
        let exists = end.is_some();
        let children_end = children.iter().map(|child| child.end_max).min();
        let end_max = end.into_iter().chain(children_end).min().unwrap_or(0);
        let step = kind.window_step_bytes();
        // The size of a window follows from its children and not from the value of firmware.
        // Firmware can leave a hot-plug reserve; that reserve stays only if the window itself
        // stays.
        let packed = if exists { place::packed_bytes(&children).next_multiple_of(step) } else { 0 };
        let alignment = children.iter().map(|child| child.alignment).max().unwrap_or(1);
        let current = current[kind as usize].filter(|_| exists);
        let outside = match kind {
            WindowKind::Io => WindowKind::Io,
            WindowKind::Memory => WindowKind::Memory,
            WindowKind::Prefetch => {
                above.memory_kind(current, above.prefetch_kind(end_max > END_32_BITS))
            }
        };
        if exists || !children.is_empty() {
            nodes.push(Node {
                function: index,
                owner: Owner::Window(kind),
                kind: outside,
                bytes: packed,
                alignment: alignment.max(step),
                end_max,
                current,
                children,
                placed: None,
                kept: false,
            });
        }
    }
    nodes
}

/// Where the windows of a bridge end at the latest; `None` for those it does not have. To find out,
/// they are closed for a moment, so the bridge forwards nothing meanwhile.
fn end_of_windows(space: &mut dyn ConfigSpace) -> [Option<u64>; 3] {
    let decoding = space.read16(COMMAND) & (COMMAND_IO | COMMAND_MEMORY);
    space.change_command(decoding, 0);
    let ends = WindowKind::ALL.map(|kind| {
        let wide = is_wide(space, kind)?;
        Some(match (kind, wide) {
            (WindowKind::Io, false) => END_16_BITS,
            (WindowKind::Io, true) | (_, false) => END_32_BITS,
            (_, true) => u64::MAX,
        })
    });
    space.change_command(0, decoding);
    ends
}

impl Above {
    /// Where prefetchable memory goes that can (`wide`) or cannot lie above 4 GiB.
    fn prefetch_kind(&self, wide: bool) -> WindowKind {
        match self.prefetch {
            Some(reaches_high) if wide || !reaches_high => WindowKind::Prefetch,
            _ => WindowKind::Memory,
        }
    }

    /// `usual`, unless firmware put it into the other window: that is allowed on PCI Express.
    fn memory_kind(&self, current: Option<Range>, usual: WindowKind) -> WindowKind {
        let holds = |kind: &WindowKind| {
            let window = self.current[*kind as usize];
            window.zip(current).is_some_and(|(window, range)| window.contains(range))
        };
        // Firmware may put a non-prefetchable BAR of a PCI Express device into the prefetchable
        // window. A move to the "correct" window would change an address that the system already
        // uses.
        [usual, WindowKind::Memory, WindowKind::Prefetch].into_iter().find(holds).unwrap_or(usual)
    }
}
