//! Any bytes as memory with an MP table, or as the table itself, with the checksums put right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdyno_pci::{MpTable, Pin};

#[expect(dead_code, reason = "its to_memory is for the tests")]
#[path = "../../tests/pci/mp_write.rs"]
mod mp_write;

fuzz_target!(|data: &[u8]| {
    let _ = MpTable::find(data, 0);
    let mut table = data.to_vec();
    if table.len() >= 44 {
        table[..4].copy_from_slice(b"PCMP");
        let length = usize::from(u16::from_le_bytes([table[4], table[5]])).min(table.len());
        table[7] = 0;
        let sum = table[..length].iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        table[7] = sum.wrapping_neg();
    }
    if let Ok(read) = MpTable::parse(&table) {
        let _ = read.lookup(0, 3, Pin::A);
        assert_eq!(
            MpTable::parse(&mp_write::to_table(&read)).map(|t| t.io_interrupts),
            Ok(read.io_interrupts)
        );
    }
});
