//! Any bus numbers in a machine with nested bridges: the scan ends, finds no function twice, and
//! what it found can be given addresses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdyno_pci::topology::{APERTURES, BarSpec, BridgeSpec, FunctionSpec, Topology};
use ssdyno_pci::{RootBus, assign, scan};

fuzz_target!(|data: &[u8]| {
    let mut topology = Topology::new();
    let mut buses = vec![topology.root(0, 0)];
    let mut bridges = Vec::new();
    let spec =
        BridgeSpec { id: (1, 2), io: Some(true), prefetch: Some(true), ..BridgeSpec::default() };
    let memory = BarSpec::Memory64 { bytes: 1 << 14, prefetchable: false };
    let function = FunctionSpec { id: (3, 4), bars: vec![memory], ..FunctionSpec::default() };
    // Four bytes a bridge: the bus it is on, and the numbers it has.
    for (index, bytes) in data.chunks_exact(4).take(24).enumerate() {
        let bus = buses[usize::from(bytes[0]) % buses.len()];
        let (bridge, behind) = topology.bridge(bus, index as u8, 0, &spec);
        topology.function(behind, 31, 0, &function);
        buses.push(behind);
        bridges.push((bridge, u32::from_le_bytes([bytes[1], bytes[2], bytes[3], 0])));
    }
    for (bridge, numbers) in bridges {
        topology.poke(bridge, 0x18, numbers);
    }
    let mut tree = scan(&mut topology, &[RootBus::FIRST]);
    assert!(tree.functions.windows(2).all(|pair| pair[0].address < pair[1].address));
    assert!(tree.functions.len() <= topology.functions().count());
    let done = assign(&mut topology, &mut tree, 0, &APERTURES);
    assert!(done.failures.is_empty());
});
