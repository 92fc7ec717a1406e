//! Any bytes as the configuration spaces of a few functions: a tree, capabilities and routes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdyno_pci::config::Snapshot;
use ssdyno_pci::{PciAddress, RootBus, Route, scan};

fuzz_target!(|data: &[u8]| {
    let mut snapshot = Snapshot::new();
    // Where each function is comes from the data, too.
    for chunk in data.chunks(2 + 1024) {
        let &[bus, place, ref image @ ..] = chunk else { continue };
        snapshot.add(PciAddress::new(0, bus, place >> 3, place & 7), image.to_vec());
    }
    let tree = scan(&mut snapshot, &[RootBus::FIRST]);
    for index in 0..tree.functions.len() {
        assert!(tree.path_to_root(index).all(|bridge| bridge != index));
        if let Some(route) = Route::find(&tree, index, None, None) {
            let _ = route.explanation();
        }
    }
});
