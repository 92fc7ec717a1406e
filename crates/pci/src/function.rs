//! A driver's view of one PCI function.

use alloc::boxed::Box;

/// Memory that host and device share.
///
/// `address` is the address for the device; the driver reads and writes through
/// [`PciFunction::dma_read`] and [`PciFunction::dma_write`] only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DmaRegion {
    /// Where the device finds it; a multiple of 4096.
    pub address: u64,
    /// Its size, in bytes.
    pub bytes: u32,
    /// The key by which the implementation finds it: an index, or its address on the host.
    pub handle: u64,
}

/// How a function interrupts the host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InterruptMode {
    /// One of INTA to INTD, level triggered.
    Pin,
    /// Message signalled (PCI Local Bus 3.0, clause 6.8.1): up to 32 vectors.
    Msi,
    /// Message signalled, extended: up to 2048 vectors.
    MsiX,
}

/// The reason why a function refused an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FunctionError {
    /// No memory for DMA is left.
    #[error("there is no DMA memory left for {bytes} bytes")]
    NoMemory {
        /// The requested value.
        bytes: u32,
    },
    /// The function has no such kind of interrupt.
    #[error("the function has no interrupts of kind {mode:?}")]
    NoInterrupt {
        /// The requested value.
        mode: InterruptMode,
    },
    /// The function is gone: every register reads as ones.
    #[error("the function does not answer; it was removed or has lost its power")]
    Gone,
}

/// One PCI function, as its driver sees it.
///
/// The implementation owes: registers are accessed exactly as told, in order, without merging; all
/// [`dma_write`](PciFunction::dma_write)s before a [`bar_write32`](PciFunction::bar_write32) are
/// visible to the device before that write is; what [`dma_load32`](PciFunction::dma_load32) saw was
/// written after everything that the device wrote before it (so a phase tag guards its entry). A
/// function that is gone reads as ones and forgets writes.
///
/// The driver owes: offsets are multiples of the access and inside the BAR; regions are its own and
/// not yet freed. Implementations check it and panic where hardware would do something silent.
///
/// Methods take `&mut self` of an instance: several devices live side by side; a system with several
/// cores gives each core its own instance. *Before* then includes what another core did through its
/// instance, where the two have synchronised since, as with a release and an acquire of an atomic.
pub trait PciFunction {
    /// The dword of configuration space at `offset`, a multiple of 4.
    fn config_read(&mut self, offset: u16) -> u32;
    /// Sets the dword of configuration space at `offset`, a multiple of 4.
    fn config_write(&mut self, offset: u16, value: u32);

    /// Size of base address register `bar` in bytes; 0 if there is none.
    fn bar_bytes(&self, bar: u8) -> u64;
    /// Reads a register: the host waits for the answer.
    fn bar_read32(&mut self, bar: u8, offset: u32) -> u32;
    /// Writes a register: posted, the host does not wait.
    fn bar_write32(&mut self, bar: u8, offset: u32, value: u32);
    /// Reads a register of 64 bits, low half first (base 2.0c, clause 3.1.3 allows halves).
    fn bar_read64(&mut self, bar: u8, offset: u32) -> u64 {
        let low = self.bar_read32(bar, offset);
        u64::from(low) | u64::from(self.bar_read32(bar, offset + 4)) << 32
    }
    /// Writes a register of 64 bits, low half first.
    fn bar_write64(&mut self, bar: u8, offset: u32, value: u64) {
        self.bar_write32(bar, offset, value as u32);
        self.bar_write32(bar, offset + 4, (value >> 32) as u32);
    }

    /// Memory of at least `bytes`, zeroed, contiguous for the device, on a page boundary.
    ///
    /// # Errors
    /// [`FunctionError::NoMemory`].
    fn dma_allocate(&mut self, bytes: u32) -> Result<DmaRegion, FunctionError>;
    /// Gives `region` back; the device must not know it any more.
    fn dma_free(&mut self, region: DmaRegion);
    /// Copies out of `region`.
    fn dma_read(&mut self, region: &DmaRegion, offset: u32, out: &mut [u8]);
    /// Copies into `region`.
    fn dma_write(&mut self, region: &DmaRegion, offset: u32, bytes: &[u8]);
    /// The dword at `offset`; everything read later was read later.
    fn dma_load32(&mut self, region: &DmaRegion, offset: u32) -> u32;

    /// Switches to `vectors` interrupts of kind `mode`, and gives how many there are: at least one,
    /// at most as many as asked. May be called again to change the kind (S1-21).
    ///
    /// # Errors
    /// [`FunctionError::NoInterrupt`] where the function cannot.
    fn enable_interrupts(
        &mut self,
        mode: InterruptMode,
        vectors: u16,
    ) -> Result<u16, FunctionError>;
}

/// A function of whatever implementation: what a driver holds that was bound at run time.
impl<F: PciFunction + ?Sized> PciFunction for Box<F> {
    fn config_read(&mut self, offset: u16) -> u32 {
        (**self).config_read(offset)
    }
    fn config_write(&mut self, offset: u16, value: u32) {
        (**self).config_write(offset, value);
    }
    fn bar_bytes(&self, bar: u8) -> u64 {
        (**self).bar_bytes(bar)
    }
    fn bar_read32(&mut self, bar: u8, offset: u32) -> u32 {
        (**self).bar_read32(bar, offset)
    }
    fn bar_write32(&mut self, bar: u8, offset: u32, value: u32) {
        (**self).bar_write32(bar, offset, value);
    }
    fn bar_read64(&mut self, bar: u8, offset: u32) -> u64 {
        (**self).bar_read64(bar, offset)
    }
    fn bar_write64(&mut self, bar: u8, offset: u32, value: u64) {
        (**self).bar_write64(bar, offset, value);
    }
    fn dma_allocate(&mut self, bytes: u32) -> Result<DmaRegion, FunctionError> {
        (**self).dma_allocate(bytes)
    }
    fn dma_free(&mut self, region: DmaRegion) {
        (**self).dma_free(region);
    }
    fn dma_read(&mut self, region: &DmaRegion, offset: u32, out: &mut [u8]) {
        (**self).dma_read(region, offset, out);
    }
    fn dma_write(&mut self, region: &DmaRegion, offset: u32, bytes: &[u8]) {
        (**self).dma_write(region, offset, bytes);
    }
    fn dma_load32(&mut self, region: &DmaRegion, offset: u32) -> u32 {
        (**self).dma_load32(region, offset)
    }
    fn enable_interrupts(
        &mut self,
        mode: InterruptMode,
        vectors: u16,
    ) -> Result<u16, FunctionError> {
        (**self).enable_interrupts(mode, vectors)
    }
}
