//! Any text as a saved `lspci -xxxx`: a tree, or an error with its line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdyno_pci::{RootBus, dump, scan};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match dump::parse(text) {
        Ok(mut dump) => {
            let count = dump.snapshot.len();
            assert_eq!(scan(&mut dump.snapshot, &[RootBus::FIRST]).functions.len(), count);
        }
        Err(error) => assert!((1..=text.lines().count().max(1)).contains(&error.line)),
    }
});
