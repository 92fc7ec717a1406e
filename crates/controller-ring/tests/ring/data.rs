//! Data that is kept, the order in which responses are written, and the function level reset.

use ssdyno_pci::{BusMaster, DmaDirection, DmaFault, PciDevice};

use super::*;

/// Three modes, whole pages, parts of pages, trims.
#[test]
fn what_was_written_is_read() {
    for mode in [ResponseMode::Block, ResponseMode::Each, ResponseMode::Subsets] {
        let mut host = Host::new(&preset(), 16, mode, 2).on();
        host.card().keep_contents();
        for index in 0..8 {
            let page = [index as u8 + 1; 4096];
            host.pci.dma_write(&host.pages, index * 4096, &page);
        }
        host.block(RingCommandKind::Write, 8);
        // Sectors 2 and 3 of page 3 are written again, page 5 is trimmed.
        let part = host.put(RingCommandKind::Write, 3);
        let mut descriptor = host.get(part);
        (descriptor.first_sector, descriptor.sectors) = (2, 2);
        host.set(part, &descriptor);
        // The data stands at its offset in its page of host memory.
        host.pci.dma_write(&host.pages, part % 16 * 4096, &[0x11; 4096]);
        host.pci.dma_write(&host.pages, part % 16 * 4096 + 1024, &[0xee; 1024]);
        host.put(RingCommandKind::Trim, 5);
        host.give(part, 2);
        host.settle();
        host.pci.dma_write(&host.pages, 0, &[0x55; 16 * 4096]);
        let first = host.number;
        host.put_all(RingCommandKind::Read, 9);
        host.give(first, 9);
        host.settle();
        for index in 0..9_u32 {
            let mut page = [0; 4096];
            host.pci.dma_read(&host.pages, (first + index) % 16 * 4096, &mut page);
            let mut wanted = [if index < 8 && index != 5 { index as u8 + 1 } else { 0 }; 4096];
            if index == 3 {
                wanted[1024..2048].fill(0xee);
            }
            assert!(page == wanted, "page {index} in mode {mode:?}");
        }
        assert!(host.pci.faults().is_empty());
    }
}

/// Keeping data takes no simulated time.
#[test]
fn data_that_is_kept_changes_no_time() {
    let time = |keep: bool| {
        let mut host = Host::new(&preset(), 32, ResponseMode::Each, 0).on();
        if keep {
            host.card().keep_contents();
        }
        (
            host.block(RingCommandKind::Write, 16),
            host.block(RingCommandKind::Read, 16),
            host.pci.counters(),
        )
    };
    let (write, read, counters) = time(true);
    assert_eq!((write, read), (time(false).0, time(false).1));
    // Each page is moved once, and counted once.
    assert_eq!(counters.dma_bytes_to_host, time(false).2.dma_bytes_to_host);
}

/// Memory without a host behind it: 1 MiB at 0, and a record of the writes.
struct Memory {
    bytes: Vec<u8>,
    writes: Vec<(u64, usize)>,
}

impl BusMaster for Memory {
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), DmaFault> {
        out.copy_from_slice(&self.bytes[address as usize..][..out.len()]);
        Ok(())
    }
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.writes.push((address, bytes.len()));
        self.bytes[address as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
    fn touch(&mut self, _: u64, _: u64, _: DmaDirection) -> Result<(), DmaFault> {
        Ok(())
    }
    fn interrupt(&mut self, _: Time, _: u16) -> bool {
        false
    }
    fn deassert(&mut self, _: Time) {}
}

fn start(card: &mut RingCard, memory: &mut Memory) {
    for (register, value) in
        [(layout::RING_LOW, 0x1000), (layout::RING_SIZE, 4), (layout::CONTROL, 1)]
    {
        card.bar_write(Time::ZERO, 0, register, value);
    }
    let descriptor = Descriptor {
        control: U32::new(layout::OWNER_DEVICE),
        sectors: 8,
        host_address: U64::new(0x8000),
        ..Descriptor::new_zeroed()
    };
    memory.bytes[0x1000..0x1020].copy_from_slice(descriptor.as_bytes());
    card.bar_write(Time::ZERO, 0, layout::NEXT_SIZE, 1);
    card.advance(Time::ZERO, memory);
}

/// The host may look at any time: a response that is seen is there as a whole.
#[test]
fn a_response_shows_itself_last() {
    let mut card = RingCard::new(&preset(), 1).unwrap();
    let mut memory = Memory { bytes: vec![0; 1 << 20], writes: Vec::new() };
    start(&mut card, &mut memory);
    while let Some(at) = card.next_event() {
        card.advance(at, &mut memory);
    }
    assert_eq!(memory.writes, [(0x1004, 28), (0x1000, 4)]);
    assert_eq!(memory.bytes[0x1000], layout::RESPONSE_FLAG as u8);
}

/// PCIe 5.0, clause 6.6.2.
#[test]
fn a_function_level_reset_is_like_power_on() {
    let mut card = RingCard::new(&preset(), 1).unwrap();
    let mut memory = Memory { bytes: vec![0; 1 << 20], writes: Vec::new() };
    start(&mut card, &mut memory);
    let fresh = |register| RingCard::new(&preset(), 1).unwrap().bar_read(Time::ZERO, 0, register);
    assert_ne!(card.bar_read(Time::ZERO, 0, layout::STATUS), fresh(layout::STATUS));
    card.reset(Time::ZERO);
    for register in (0..layout::BAR_BYTES).step_by(4) {
        assert_eq!(card.bar_read(Time::ZERO, 0, register), fresh(register), "{register:#x}");
    }
    assert_eq!((card.next_event(), &memory.writes[..]), (None, &[][..]));
}
