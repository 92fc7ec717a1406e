//! A card that answers every block at once: for the cost of the driver alone.

#![allow(unreachable_pub, reason = "part of several programs")]

use ssdyno_pci::{DmaRegion, FunctionError, InterruptMode, PciFunction};
use ssdyno_spec::ring as layout;

/// Memory and the few registers that matter.
pub struct Instant {
    memory: Vec<u8>,
    used: usize,
    ring: usize,
    ring_size: u32,
    next_offset: u32,
    enabled: bool,
}

impl Instant {
    /// With all its memory for DMA from the start.
    pub fn new() -> Instant {
        let memory = vec![0; 4 << 20];
        Instant { memory, used: 0, ring: 0, ring_size: 0, next_offset: 0, enabled: false }
    }

    fn answer(&mut self, size: u32) {
        for at in 0..size {
            let index = (self.next_offset + at) & (self.ring_size - 1);
            let place = self.ring + (index * layout::DESCRIPTOR_BYTES) as usize;
            let control = &mut self.memory[place];
            *control = *control & !(layout::OWNER_DEVICE as u8) | layout::RESPONSE_FLAG as u8;
        }
    }
}

impl PciFunction for Instant {
    fn config_read(&mut self, _offset: u16) -> u32 {
        0
    }
    fn config_write(&mut self, _offset: u16, _value: u32) {}
    fn bar_bytes(&self, _bar: u8) -> u64 {
        4096
    }
    fn bar_read32(&mut self, _bar: u8, offset: u32) -> u32 {
        match offset {
            layout::IDENTIFIER => layout::IDENTIFIER_VALUE,
            layout::VERSION | layout::TECHNOLOGY | layout::CHANNELS => 1,
            layout::CAPACITY_LOW => 1 << 18,
            layout::MAX_BLOCK => 32,
            layout::STATUS => u32::from(self.enabled),
            _ => 0,
        }
    }
    #[inline]
    fn bar_write32(&mut self, _bar: u8, offset: u32, value: u32) {
        match offset {
            layout::CONTROL => self.enabled = value != 0,
            layout::RING_LOW => self.ring = value as usize,
            layout::RING_SIZE => self.ring_size = value,
            layout::NEXT_OFFSET => self.next_offset = value,
            layout::NEXT_SIZE => self.answer(value),
            _ => {}
        }
    }
    fn dma_allocate(&mut self, bytes: u32) -> Result<DmaRegion, FunctionError> {
        let address = self.used as u64;
        self.used += (bytes as usize).next_multiple_of(4096);
        if self.used > self.memory.len() {
            return Err(FunctionError::NoMemory { bytes });
        }
        Ok(DmaRegion { address, bytes, handle: 0 })
    }
    fn dma_free(&mut self, _region: DmaRegion) {}
    #[inline]
    fn dma_read(&mut self, region: &DmaRegion, offset: u32, out: &mut [u8]) {
        let at = region.address as usize + offset as usize;
        out.copy_from_slice(&self.memory[at..at + out.len()]);
    }
    #[inline]
    fn dma_write(&mut self, region: &DmaRegion, offset: u32, bytes: &[u8]) {
        let at = region.address as usize + offset as usize;
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }
    #[inline]
    fn dma_load32(&mut self, region: &DmaRegion, offset: u32) -> u32 {
        let mut bytes = [0; 4];
        self.dma_read(region, offset, &mut bytes);
        u32::from_le_bytes(bytes)
    }
    fn enable_interrupts(
        &mut self,
        _mode: InterruptMode,
        vectors: u16,
    ) -> Result<u16, FunctionError> {
        Ok(vectors)
    }
}
