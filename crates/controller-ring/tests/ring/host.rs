//! A host of the ring card.

use ssdyno_block::Time;
use ssdyno_controller_ring::{RingCard, RingConfig};
use ssdyno_pci::{DmaRegion, InterruptMode, PciFunction, PciTiming, SimulatedPci};
use ssdyno_spec::pci;
use ssdyno_spec::ring::{self as layout, Descriptor, ResponseMode, RingCommandKind};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromZeros, IntoBytes};

/// A host that does no more than it is told.
pub(crate) struct Host {
    pub(crate) pci: SimulatedPci<RingCard>,
    pub(crate) ring: DmaRegion,
    pub(crate) pages: DmaRegion,
    pub(crate) size: u32,
    /// Number of the next descriptor.
    pub(crate) number: u32,
    pub(crate) now: Time,
    /// When interrupts came.
    pub(crate) interrupts: Vec<Time>,
}

impl Host {
    pub(crate) fn new(config: &RingConfig, size: u32, mode: ResponseMode, subset: u32) -> Host {
        let zero = Time::ZERO;
        let timing = PciTiming { posted_write: zero, read_round_trip: zero, interrupt: zero };
        let mut pci = SimulatedPci::new(RingCard::new(config, 1).unwrap(), timing);
        let on = u32::from(pci::COMMAND_MEMORY | pci::COMMAND_BUS_MASTER);
        pci.config_write(pci::COMMAND, on);
        pci.enable_interrupts(InterruptMode::MsiX, 1).unwrap();
        let ring = pci.dma_allocate(size * layout::DESCRIPTOR_BYTES).unwrap();
        let pages = pci.dma_allocate(size * layout::PAGE_BYTES).unwrap();
        let mut host =
            Host { pci, ring, pages, size, number: 0, now: zero, interrupts: Vec::new() };
        host.write(layout::RING_LOW, ring.address as u32);
        host.write(layout::RING_HIGH, (ring.address >> 32) as u32);
        host.write(layout::RING_SIZE, size);
        host.write(layout::RESPONSE, mode as u32 | subset << 16);
        host.write(layout::INTERRUPT_BATCH, 1);
        host
    }

    pub(crate) fn on(mut self) -> Host {
        self.write(layout::CONTROL, 1);
        assert_eq!(self.read(layout::STATUS), layout::STATUS_ENABLED);
        self
    }

    pub(crate) fn write(&mut self, register: u32, value: u32) {
        self.pci.set_now(self.now);
        self.pci.bar_write32(0, register, value);
        self.pci.advance(self.now);
    }

    pub(crate) fn read(&mut self, register: u32) -> u32 {
        self.pci.set_now(self.now);
        self.pci.bar_read32(0, register)
    }

    pub(crate) fn card(&mut self) -> &mut RingCard {
        self.pci.device_mut()
    }

    pub(crate) fn put(&mut self, kind: RingCommandKind, page: u64) -> u32 {
        let number = self.number;
        let index = number % self.size;
        let transfers = matches!(kind, RingCommandKind::Read | RingCommandKind::Write);
        let descriptor = Descriptor {
            control: U32::new(layout::OWNER_DEVICE | (kind as u32) << 2),
            sectors: if transfers { 8 } else { 0 },
            host_address: U64::new(self.pages.address + u64::from(index * layout::PAGE_BYTES)),
            device_offset: U64::new(page * 4096),
            pages: U32::new(1),
            number: U32::new(number),
            ..Descriptor::new_zeroed()
        };
        self.set(number, &descriptor);
        self.number = number.wrapping_add(1);
        number
    }

    /// Commands for the first `count` pages.
    pub(crate) fn put_all(&mut self, kind: RingCommandKind, count: u64) {
        for page in 0..count {
            self.put(kind, page);
        }
    }

    pub(crate) fn set(&mut self, number: u32, descriptor: &Descriptor) {
        let at = number % self.size * layout::DESCRIPTOR_BYTES;
        self.pci.dma_write(&self.ring, at, descriptor.as_bytes());
    }

    pub(crate) fn get(&mut self, number: u32) -> Descriptor {
        let at = number % self.size * layout::DESCRIPTOR_BYTES;
        let mut descriptor = Descriptor::new_zeroed();
        self.pci.dma_read(&self.ring, at, descriptor.as_mut_bytes());
        descriptor
    }

    pub(crate) fn give(&mut self, first: u32, size: u32) {
        self.write(layout::NEXT_OFFSET, first % self.size);
        self.write(layout::NEXT_SIZE, size);
    }

    /// Goes on until nothing is left to happen.
    pub(crate) fn settle(&mut self) {
        let mut vectors = Vec::new();
        while let Some(next) = self.pci.next_event() {
            self.now = self.now.max(next);
            self.pci.advance(self.now);
            self.pci.take_interrupts(self.now, &mut vectors);
            self.interrupts.extend(vectors.drain(..).map(|_| self.now));
        }
    }

    /// A block of `size` commands, from doorbell to end.
    pub(crate) fn block(&mut self, kind: RingCommandKind, size: u32) -> Time {
        let (start, first) = (self.now, self.number);
        for at in 0..size {
            self.put(kind, u64::from(first.wrapping_add(at)) % 1000);
        }
        self.give(first, size);
        self.settle();
        for at in 0..size {
            let response = self.get(first.wrapping_add(at));
            assert!(!response.is_with_device() && !response.is_command(), "{response:?}");
            assert_eq!(response.status, layout::STATUS_SUCCESS, "{response:?}");
            assert_eq!(response.number.get(), first.wrapping_add(at));
        }
        assert!(self.pci.faults().is_empty());
        self.now - start
    }
}
