//! Bus numbers for bridges that firmware left without (S1-9).

use alloc::vec::Vec;

use ssdyno_spec::pci::BUS_NUMBERS;

use crate::PciAddress;
use crate::config::{At, ConfigAccess, ConfigSpace};
use crate::header::BusNumbers;
use crate::scan::{RootBus, leads_to_one_device, on_bus};
use crate::tree::{Note, Oddity};

/// A bridge that was met.
#[derive(Clone, Copy)]
struct Bridge {
    address: PciAddress,
    numbers: BusNumbers,
    one_device: bool,
}

/// The bridges on a bus: those with sound numbers in the order of these, and the rest.
struct Bridges {
    sound: Vec<Bridge>,
    broken: Vec<Bridge>,
}

/// Whether every bridge behind `root` has sound numbers. Writes nothing.
pub(crate) fn are_sound(access: &mut dyn ConfigAccess, root: RootBus) -> bool {
    let mut waiting = alloc::vec![(root.bus, root.bus_max, false)];
    while let Some((bus, bus_max, one_device)) = waiting.pop() {
        let bridges = Bridges::on(access, root.segment, bus, bus_max, one_device);
        if !bridges.broken.is_empty() || bridges.sound.iter().any(|b| b.numbers.primary != bus) {
            return false;
        }
        // Ranges are disjoint and above their bus, so no bus comes twice.
        let next = |b: &Bridge| (b.numbers.secondary, b.numbers.subordinate, b.one_device);
        waiting.extend(bridges.sound.iter().map(next));
    }
    true
}

/// Gives every bridge behind `root` sound numbers; keeps those that are sound, unless a bridge
/// would be left without for that.
pub(crate) fn give(access: &mut dyn ConfigAccess, root: RootBus, notes: &mut Vec<Note>) {
    // The first attempt keeps the numbers of firmware, because an operating system can already use
    // them. Only if a bridge gets no number are all bridges numbered anew.
    for keep in [true, false] {
        let mut without = Vec::new();
        let mut numbering =
            Numbering { access: &mut *access, segment: root.segment, keep, notes: &mut without };
        numbering.below(root.bus, root.bus_max, false);
        if without.is_empty() || !keep {
            return notes.append(&mut without);
        }
    }
}

struct Numbering<'a> {
    access: &'a mut dyn ConfigAccess,
    segment: u32,
    /// Sound numbers stay.
    keep: bool,
    notes: &'a mut Vec<Note>,
}

impl Numbering<'_> {
    /// Numbers everything below `bus` with numbers up to `bus_max`, and gives the highest one used.
    /// Each level has a higher bus than the one before, so this nests 255 deep at most.
    fn below(&mut self, bus: u8, bus_max: u8, one_device: bool) -> u8 {
        let Bridges { mut sound, mut broken } =
            Bridges::on(self.access, self.segment, bus, bus_max, one_device);
        if !self.keep {
            broken.append(&mut sound);
            broken.sort_by_key(|bridge| bridge.address);
        }
        // They must not answer for buses that others get now.
        for bridge in &broken {
            self.set(bridge, BusNumbers { primary: bus, secondary: 0, subordinate: 0 });
        }
        let mut taken: Vec<(u8, u8)> = Vec::new();
        for (index, bridge) in sound.iter().enumerate() {
            let next = sound.get(index + 1).map(|next| next.numbers.secondary - 1);
            let BusNumbers { secondary, subordinate, .. } = bridge.numbers;
            // While it is explored it forwards to all it may get.
            // A bridge forwards configuration requests only for its range. The range is opened as
            // far as possible during the exploration, and then reduced to the buses that were
            // found.
            let room = next.unwrap_or(bus_max);
            let top = self.explore(bridge, bus, secondary, room);
            let subordinate = subordinate.max(top);
            self.set(bridge, BusNumbers { primary: bus, secondary, subordinate });
            taken.push((secondary, subordinate));
        }
        for bridge in &broken {
            // The widest gap leaves the most room for buses behind this bridge, whose number is not
            // known yet. The first gap could be too small for a switch with many ports.
            let Some((first, last)) = widest_gap(&taken, bus, bus_max) else {
                self.notes.push(Note { address: bridge.address, what: Oddity::NoBusNumber });
                continue;
            };
            let subordinate = self.explore(bridge, bus, first, last);
            self.set(bridge, BusNumbers { primary: bus, secondary: first, subordinate });
            taken.push((first, subordinate));
            taken.sort_unstable();
        }
        taken.last().map_or(bus, |&(_, subordinate)| subordinate)
    }

    /// Numbers what is behind `bridge`, with `first` for its secondary bus; gives the highest used.
    fn explore(&mut self, bridge: &Bridge, primary: u8, first: u8, last: u8) -> u8 {
        self.set(bridge, BusNumbers { primary, secondary: first, subordinate: last });
        self.below(first, last, bridge.one_device)
    }

    fn set(&mut self, bridge: &Bridge, numbers: BusNumbers) {
        let mut space = At::new(self.access, bridge.address);
        // The dword also contains the secondary latency timer. A write of the three bus numbers
        // alone is not possible with 32-bit accesses, so the timer is preserved.
        let latency_timer = space.read32(BUS_NUMBERS) & 0xff00_0000;
        let BusNumbers { primary, secondary, subordinate } = numbers;
        let dword = u32::from_le_bytes([primary, secondary, subordinate, 0]);
        space.write32(BUS_NUMBERS, dword | latency_timer);
    }
}

impl Bridges {
    /// Sorts the bridges on `bus`. Sound are numbers above `bus`, up to `bus_max`, that no bridge
    /// before has. A primary number of 0 is hard-wired in some bridges, and forgiven.
    fn on(
        access: &mut dyn ConfigAccess,
        segment: u32,
        bus: u8,
        bus_max: u8,
        one_device: bool,
    ) -> Bridges {
        let (mut sound, mut broken): (Vec<Bridge>, Vec<Bridge>) = (Vec::new(), Vec::new());
        for function in on_bus(access, segment, bus, one_device) {
            let is_bridge = function.header.is_bus_bridge();
            let Some(numbers) = function.header.bus_numbers.filter(|_| is_bridge) else { continue };
            let one_device = leads_to_one_device(&function);
            let bridge = Bridge { address: function.address, numbers, one_device };
            let BusNumbers { primary, secondary, subordinate } = numbers;
            let range = bus < secondary && secondary <= subordinate && subordinate <= bus_max;
            let free = sound.iter().all(|other| {
                subordinate < other.numbers.secondary || other.numbers.subordinate < secondary
            });
            // A primary number of 0 is the value after a reset. It is accepted here and corrected
            // by the write, because PCI Express bridges do not use this register for routing.
            let good = range && free && (primary == bus || primary == 0);
            if good { sound.push(bridge) } else { broken.push(bridge) }
        }
        sound.sort_by_key(|bridge| bridge.numbers.secondary);
        Bridges { sound, broken }
    }
}

/// The most numbers in a row above `bus` and up to `bus_max` that are not in `taken`, which is
/// sorted; the first of equals.
fn widest_gap(taken: &[(u8, u8)], bus: u8, bus_max: u8) -> Option<(u8, u8)> {
    let mut best: Option<(u8, u8)> = None;
    let mut next = u16::from(bus) + 1;
    let ends = taken.iter().map(|&(first, last)| (u16::from(first), u16::from(last)));
    for (first, last) in ends.chain([(u16::from(bus_max) + 1, 0)]) {
        let wider = |(from, to): (u8, u8)| first - next > u16::from(to - from) + 1;
        if next < first && best.is_none_or(wider) {
            best = Some((next as u8, (first - 1) as u8));
        }
        next = last + 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps() {
        assert_eq!(widest_gap(&[], 0, 255), Some((1, 255)));
        assert_eq!(widest_gap(&[], 255, 255), None);
        assert_eq!(widest_gap(&[(1, 255)], 0, 255), None);
        assert_eq!(widest_gap(&[(2, 2), (4, 5)], 0, 6), Some((1, 1)), "the first of equals");
        assert_eq!(widest_gap(&[(2, 2), (4, 5)], 0, 9), Some((6, 9)));
        assert_eq!(widest_gap(&[(3, 254)], 2, 255), Some((255, 255)));
    }
}
