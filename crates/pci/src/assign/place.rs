//! Putting what needs addresses into a window: first what stays, then the rest by alignment.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::window::Range;

use super::node::{Node, Owner};

/// Places the nodes of a root bus. What finds no room is left without, and all behind it.
pub(super) fn place_top(nodes: &mut [Node], room: Option<Range>) {
    // Where firmware put things outside of the aperture, it knew of addresses that we do not.
    let anywhere = Range { start: 1, bytes: u64::MAX };
    let taken = keep(nodes, anywhere);
    fill(nodes, room, taken);
}

/// Bytes that `nodes` need in a window of their own, whose start has their largest alignment.
pub(super) fn packed_bytes(nodes: &[Node]) -> u64 {
    let room = Range { start: 0, bytes: u64::MAX };
    let mut taken = Vec::new();
    for index in by_alignment(nodes).into_iter().filter(|&index| nodes[index].bytes != 0) {
        let Node { bytes, alignment, .. } = nodes[index];
        if let Some(start) = first_gap(room, &taken, bytes, alignment) {
            insert(&mut taken, Range { start, bytes });
        }
    }
    taken.last().map_or(0, |range| range.end())
}

/// Places `nodes` into the window that their bridge has; false if one finds no room.
fn place_kept(nodes: &mut [Node], window: Range) -> bool {
    let taken = keep(nodes, window);
    fill(nodes, Some(window), taken)
}

/// Places `nodes` into a window that was made for them.
fn place_new(nodes: &mut [Node], window: Range) {
    nodes.iter_mut().for_each(forget);
    fill(nodes, Some(window), Vec::new());
}

/// Places those of `nodes` that have no place yet; false if one finds no room.
fn fill(nodes: &mut [Node], room: Option<Range>, mut taken: Vec<Range>) -> bool {
    let mut all = true;
    for index in by_alignment(nodes) {
        let node = &mut nodes[index];
        if node.placed.is_some() || node.bytes == 0 {
            continue;
        }
        match room.and_then(|room| gap(room, &taken, node)) {
            Some(start) => settle(node, start, &mut taken),
            // No window moves for a ROM: it can be switched off.
            None => all &= matches!(node.owner, Owner::Rom),
        }
    }
    all
}

/// Keeps registers that are inside `window` and overlap no others: base address registers first, then ROMs, then
/// windows that hold the devices behind them. Gives what is taken, sorted.
fn keep(nodes: &mut [Node], window: Range) -> Vec<Range> {
    let mut taken: Vec<Range> = Vec::new();
    let rank = |owner: &Owner| match owner {
        Owner::Bar(_) => 0,
        Owner::Rom => 1,
        Owner::Window(_) => 2,
    };
    // BARs come before windows: if firmware let both overlap, the BAR belongs to a device that can
    // already be in use, while a window can move with its contents.
    for turn in 0..3 {
        for node in nodes.iter_mut() {
            let is_window = matches!(node.owner, Owner::Window(_));
            let Some(current) = node.current.filter(|_| rank(&node.owner) == turn) else {
                continue;
            };
            // A BAR decodes only the bits above its size, so an unaligned value from firmware is
            // not the address at which the device answers. Windows have the fixed steps of the
            // bridge.
            let aligned = is_window || current.start.is_multiple_of(node.alignment);
            let low = current.end() <= node.end_max;
            let free = taken.iter().all(|range| !range.overlaps(current));
            let inside = window.contains(current);
            if !(aligned && low && free && inside) {
                continue;
            }
            // All or nothing: a window that is too small for one child moves with all its children.
            // Splitting them would need two ranges, and a bridge has only one per kind.
            if is_window && !place_kept(&mut node.children, current) {
                node.children.iter_mut().for_each(forget);
                continue;
            }
            node.placed = Some(current);
            node.kept = true;
            insert(&mut taken, current);
        }
    }
    taken
}

/// A bridge whose own register has no address does not decode this kind of access, so it forwards none: the devices
/// behind it have no addresses either.
pub(super) fn close_bridges_without_room(top: &mut [Vec<Node>]) {
    loop {
        let mut off = BTreeSet::new();
        top.iter().flatten().for_each(|node| without_room(node, &mut off));
        let mut closed = false;
        top.iter_mut().flatten().for_each(|node| closed |= close(node, &off));
        // A closed window takes the addresses of the bridges behind it, whose windows must then
        // close too. Each turn closes at least one window, so the loop ends.
        if !closed {
            return;
        }
    }
}

/// Functions with a base address register that found no room, and whether it is one of ports.
fn without_room(node: &Node, off: &mut BTreeSet<(usize, bool)>) {
    if matches!(node.owner, Owner::Bar(_)) && node.placed.is_none() {
        off.insert((node.function, node.owner.is_io()));
    }
    node.children.iter().for_each(|child| without_room(child, off));
}

/// Closes the windows of these functions; true if one was open.
fn close(node: &mut Node, off: &BTreeSet<(usize, bool)>) -> bool {
    let is_window = matches!(node.owner, Owner::Window(_));
    if is_window && node.placed.is_some() && off.contains(&(node.function, node.owner.is_io())) {
        forget(node);
        return true;
    }
    node.children.iter_mut().fold(false, |closed, child| closed | close(child, off))
}

fn settle(node: &mut Node, start: u64, taken: &mut Vec<Range>) {
    let range = Range { start, bytes: node.bytes };
    node.placed = Some(range);
    insert(taken, range);
    place_new(&mut node.children, range);
}

fn forget(node: &mut Node) {
    node.placed = None;
    node.kept = false;
    node.children.iter_mut().for_each(forget);
}

/// Indices of `nodes`, the largest alignment first, then the largest.
fn by_alignment(nodes: &[Node]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|&index| {
        let Node { alignment, bytes, .. } = nodes[index];
        // Sizes are powers of two, so placement by falling alignment leaves no gaps between BARs.
        // In rising order, a small BAR before a large one wastes almost the size of the large one.
        core::cmp::Reverse((alignment, bytes))
    });
    order
}

/// The first place in `room` for `node`.
fn gap(room: Range, taken: &[Range], node: &Node) -> Option<u64> {
    let bytes = room.end().min(node.end_max).checked_sub(room.start)?;
    let room = Range { bytes, ..room };
    first_gap(room, taken, node.bytes, node.alignment)
}

fn first_gap(room: Range, taken: &[Range], bytes: u64, alignment: u64) -> Option<u64> {
    let mut start = room.start.checked_next_multiple_of(alignment)?;
    for range in taken {
        // A window close to 2^64 would wrap in this sum and appear to fit. The checked addition
        // reports "no room" instead.
        if start.checked_add(bytes)? <= range.start {
            break;
        }
        if range.end() > start {
            start = range.end().checked_next_multiple_of(alignment)?;
        }
    }
    (start.checked_add(bytes)? <= room.end()).then_some(start)
}

fn insert(taken: &mut Vec<Range>, range: Range) {
    let at = taken.partition_point(|other| other.start < range.start);
    taken.insert(at, range);
}
