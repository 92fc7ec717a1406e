//! Every block has its own sector, and runs are consistent.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::DiskConfig;
use crate::layout::Layout;

fn config(order: &str, keys: &str) -> DiskConfig {
    let text = format!(
        "[disk]\nrpm = 6000\nsurfaces = 3\norder = \"{order}\"\nband = 4\nhead_switch = \"1ms\"\n\
         bus = \"1GB/s\"\n[disk.seek]\npoints = [[1, \"2ms\"]]\n\
         [[disk.zones]]\ncylinders = 10\nsectors_per_track = 9\n{keys}\n\
         [[disk.zones]]\nfirst_cylinder = 12\ncylinders = 5\nsectors_per_track = 7\n"
    );
    DiskConfig::parse(&text).unwrap()
}

fn walk(order: &str, keys: &str) -> u64 {
    let (layout, _) = Layout::new(&config(order, keys).disk).unwrap();
    let mut seen = BTreeSet::new();
    let mut block = 0;
    while block < layout.blocks {
        let run = layout.run(block);
        assert!(run.length > 0 && run.sector + run.length <= run.track.sectors, "{run:?}");
        assert!(run.track.head < 3 && run.track.cylinder < 17 && run.track.origin < layout.turn());
        for next in 0..run.length {
            let place = layout.run(block + u64::from(next));
            assert_eq!(place.track, run.track);
            assert_eq!(place.sector, run.sector + next);
            assert!(seen.insert((place.track.cylinder, place.track.head, place.sector)), "twice");
        }
        block += u64::from(run.length);
    }
    layout.blocks
}

const ORDERS: [&str; 3] = ["cylinder", "cylinder-serpentine", "surface-serpentine"];

#[test]
fn every_sector_is_used_once() {
    for order in ORDERS {
        assert_eq!(walk(order, ""), 3 * (10 * 9 + 5 * 7));
        assert_eq!(walk(order, "unused = 11\nslips = [20, 21, 200]"), 3 * (10 * 9 + 5 * 7) - 14);
        // Three ranges of three cylinders and one of one, each less two.
        assert_eq!(walk(order, "spares = 2\nspare_cylinders = 3\nslips = [80, 82]"), 375 - 8);
    }
}

proptest! {
    #[test]
    fn slips_and_spares_never_lose_a_block(
        order in 0..3_usize,
        spares in 0..5_u32,
        range in 1..=10_u32,
        slips in proptest::collection::btree_set(0..270_u64, 0..4),
    ) {
        let slips: Vec<u64> = slips.into_iter().collect();
        walk(ORDERS[order], &format!("spares = {spares}\nspare_cylinders = {range}\nslips = {slips:?}"));
    }
}
