//! Trees of any shape.

use proptest::prelude::*;
use ssdyno_pci::Pin;
use ssdyno_pci::topology::{BarSpec, BridgeSpec, BusId, FunctionId, FunctionSpec, Topology};

/// One function to add: its bus, its place, and its kind.
#[derive(Clone, Debug)]
pub(crate) struct Addition {
    bus: prop::sample::Index,
    device: u8,
    function: u8,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Bridge(BridgeSpec),
    Function(FunctionSpec),
}

/// Up to 40 functions; about every third is a bridge.
pub(crate) fn additions() -> impl Strategy<Value = Vec<Addition>> {
    let addition = (any::<prop::sample::Index>(), 0..32_u8, 0..8_u8, kind())
        .prop_map(|(bus, device, function, kind)| Addition { bus, device, function, kind });
    prop::collection::vec(addition, 1..40)
}

fn kind() -> impl Strategy<Value = Kind> {
    let pin = prop::option::of(0..4_u8).prop_map(|pin| pin.map(Pin::from_zero_based));
    let bridge = (
        pin.clone(),
        prop::option::of(any::<bool>()),
        prop::option::of(any::<bool>()),
        prop::collection::vec(bar(), 0..2),
        rom(),
    );
    let bridge = bridge.prop_map(|(pin, io, prefetch, mut bars, rom_bytes)| {
        bars.retain(|bar| !matches!(bar, BarSpec::Io(_)));
        let more = BridgeSpec::default();
        Kind::Bridge(BridgeSpec { id: (1, 2), bars, rom_bytes, pin, io, prefetch, ..more })
    });
    let function =
        (pin, prop::collection::vec(bar(), 0..4), rom()).prop_map(|(pin, bars, rom_bytes)| {
            let bars = bars.into_iter().take(3).collect();
            let (id, class, more) = ((3, 4), 0x01_0802, FunctionSpec::default());
            Kind::Function(FunctionSpec { id, class, bars, rom_bytes, pin, ..more })
        });
    prop_oneof![1 => bridge, 2 => function]
}

/// Expansion ROMs, which nobody has enabled.
fn rom() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0, 1 << 11, 1 << 16])
}

fn bar() -> impl Strategy<Value = BarSpec> {
    prop_oneof![
        (2..8_u32).prop_map(|bits| BarSpec::Io(1 << bits)),
        (4..22_u32, any::<bool>())
            .prop_map(|(bits, prefetchable)| BarSpec::Memory32 { bytes: 1 << bits, prefetchable }),
        (4..24_u32, any::<bool>())
            .prop_map(|(bits, prefetchable)| BarSpec::Memory64 { bytes: 1 << bits, prefetchable }),
    ]
}

/// The topology after power-on, on one root bus.
pub(crate) fn build(additions: &[Addition]) -> Topology {
    let mut topology = Topology::new();
    let mut buses: Vec<BusId> = vec![topology.root(0, 0)];
    let mut taken: Vec<(BusId, u8, u8)> = Vec::new();
    for Addition { bus, device, function, kind } in additions {
        let bus = *bus.get(&buses);
        // A device has a function 0.
        let function = if taken.contains(&(bus, *device, 0)) { *function } else { 0 };
        if taken.contains(&(bus, *device, function)) {
            continue;
        }
        taken.push((bus, *device, function));
        match kind {
            Kind::Bridge(spec) => buses.push(topology.bridge(bus, *device, function, spec).1),
            Kind::Function(spec) => {
                topology.function(bus, *device, function, spec);
            }
        }
    }
    topology
}

/// The bridges of a topology.
pub(crate) fn bridges(topology: &Topology) -> Vec<FunctionId> {
    let parents = topology.functions().filter_map(|function| topology.parent(function));
    let mut bridges: Vec<FunctionId> = parents.collect();
    bridges.sort();
    bridges.dedup();
    bridges
}
