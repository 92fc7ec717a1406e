//! What drivers call.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};
use ssdyno_pci::{DmaRegion, FunctionError, InterruptMode, PciFunction};
use ssdyno_spec::vfio_user::{
    self as layout, DmaMap, DmaUnmap, RegionAccess, SetInterrupts, command,
};
use zerocopy::{FromBytes, IntoBytes};

use super::{ClientError, VfioUserFunction, bytes_of, set_interrupts};

/// Eventfds of one kind at most.
const VECTORS_MAX: u32 = 2048;

fn index_of(mode: InterruptMode) -> u32 {
    match mode {
        InterruptMode::Pin => layout::PIN,
        InterruptMode::Msi => layout::MSI,
        InterruptMode::MsiX => layout::MSIX,
    }
}

fn dword(region: u32, offset: u64) -> RegionAccess {
    RegionAccess { offset: offset.into(), region: region.into(), count: 4.into() }
}

impl VfioUserFunction {
    /// A dword of a region; ones where the function is gone or refuses.
    fn read_dword(&mut self, region: u32, offset: u64) -> u32 {
        let asked = dword(region, offset);
        let answer = self.call(command::REGION_READ, asked.as_bytes(), &[], &[]);
        let data = answer.ok().and_then(|answer| {
            let (header, data) = RegionAccess::read_from_prefix(&answer).ok()?;
            (header.count.get() == 4).then(|| data.first_chunk().copied()).flatten()
        });
        data.map_or(u32::MAX, u32::from_le_bytes)
    }

    fn check_access(&self, bar: u8, offset: u32) {
        assert!(
            offset.is_multiple_of(4) && u64::from(offset) < self.bar_bytes(bar),
            "register {offset:#x} is not in BAR {bar}"
        );
    }

    /// No interrupts of a kind.
    fn switch_off(&mut self, index: u32) -> Result<(), ClientError> {
        let flags = layout::SET_DATA_NONE | layout::SET_ACTION_TRIGGER;
        let asked = SetInterrupts { flags: flags.into(), ..set_interrupts(index) };
        self.call(command::DEVICE_SET_IRQS, asked.as_bytes(), &[], &[]).map(|_| ())
    }

    /// Gives the server the eventfds, as many at a time as it takes.
    fn switch_on(&mut self, index: u32) -> Result<(), ClientError> {
        let events = std::mem::take(&mut self.events);
        let mut set = Ok(());
        for (at, some) in events.chunks(self.descriptors_max).enumerate() {
            let asked = SetInterrupts {
                flags: (layout::SET_DATA_EVENTFD | layout::SET_ACTION_TRIGGER).into(),
                start: ((at * self.descriptors_max) as u32).into(),
                count: (some.len() as u32).into(),
                ..set_interrupts(index)
            };
            let some: Vec<BorrowedFd<'_>> = some.iter().map(AsFd::as_fd).collect();
            set = self.call(command::DEVICE_SET_IRQS, asked.as_bytes(), &[], &some).map(|_| ());
            if set.is_err() {
                break;
            }
        }
        self.events = events;
        set
    }
}

/// The error for the driver; the original error is kept in the function, which is then unusable.
fn told(_: ClientError) -> FunctionError {
    FunctionError::Gone
}

impl PciFunction for VfioUserFunction {
    fn config_read(&mut self, offset: u16) -> u32 {
        assert!(offset.is_multiple_of(4), "configuration dword at {offset:#x}");
        self.read_dword(layout::REGION_CONFIG, u64::from(offset))
    }

    fn config_write(&mut self, offset: u16, value: u32) {
        assert!(offset.is_multiple_of(4), "configuration dword at {offset:#x}");
        let asked = dword(layout::REGION_CONFIG, u64::from(offset));
        // Not posted (PCIe 5.0, table 2-3). What is refused or lost is so as on hardware: silently.
        let _ = self.call(command::REGION_WRITE, asked.as_bytes(), &value.to_le_bytes(), &[]);
    }

    fn bar_bytes(&self, bar: u8) -> u64 {
        self.bar_bytes.get(usize::from(bar)).copied().unwrap_or(0)
    }

    fn bar_read32(&mut self, bar: u8, offset: u32) -> u32 {
        self.check_access(bar, offset);
        fence(Ordering::SeqCst);
        self.read_dword(u32::from(bar), u64::from(offset))
    }

    fn bar_write32(&mut self, bar: u8, offset: u32, value: u32) {
        self.check_access(bar, offset);
        // What was written to shared memory is there before the message is.
        fence(Ordering::SeqCst);
        let asked = dword(u32::from(bar), u64::from(offset));
        self.post(command::REGION_WRITE, asked.as_bytes(), &value.to_le_bytes());
    }

    fn dma_allocate(&mut self, bytes: u32) -> Result<DmaRegion, FunctionError> {
        if self.gone.is_some() {
            return Err(FunctionError::Gone);
        }
        let allocated = self.memory.allocate(bytes);
        let (region, size, file) = allocated.map_err(|_| FunctionError::NoMemory { bytes })?;
        let asked = DmaMap {
            argument_bytes: bytes_of::<DmaMap>(),
            flags: (layout::DMA_READABLE | layout::DMA_WRITABLE).into(),
            offset: 0.into(),
            address: region.address.into(),
            bytes: size.into(),
        };
        match self.call(command::DMA_MAP, asked.as_bytes(), &[], &[file.as_fd()]) {
            Ok(_) => Ok(region),
            Err(error) => {
                self.memory.free(region);
                let refused = matches!(error, ClientError::Refused { .. });
                Err(if refused { FunctionError::NoMemory { bytes } } else { told(error) })
            }
        }
    }

    fn dma_free(&mut self, region: DmaRegion) {
        let size = self.memory.free(region);
        let asked = DmaUnmap {
            argument_bytes: bytes_of::<DmaUnmap>(),
            address: region.address.into(),
            bytes: size.into(),
            ..DmaUnmap::default()
        };
        // The address is not used again, whatever the server says.
        let _ = self.call(command::DMA_UNMAP, asked.as_bytes(), &[], &[]);
    }

    fn dma_read(&mut self, region: &DmaRegion, offset: u32, out: &mut [u8]) {
        self.memory.host(region, offset, out.len()).read(offset as usize, out);
    }

    fn dma_write(&mut self, region: &DmaRegion, offset: u32, bytes: &[u8]) {
        self.memory.host(region, offset, bytes.len()).write(offset as usize, bytes);
    }

    fn dma_load32(&mut self, region: &DmaRegion, offset: u32) -> u32 {
        self.memory.host(region, offset, 4).load32(offset as usize)
    }

    fn enable_interrupts(
        &mut self,
        mode: InterruptMode,
        vectors: u16,
    ) -> Result<u16, FunctionError> {
        if self.gone.is_some() {
            return Err(FunctionError::Gone);
        }
        let index = index_of(mode);
        let has = self.interrupt_counts[index as usize].min(VECTORS_MAX);
        if has == 0 {
            return Err(FunctionError::NoInterrupt { mode });
        }
        let granted = u32::from(vectors).clamp(1, has);
        let granted = if mode == InterruptMode::Msi { 1 << granted.ilog2() } else { granted };
        let event = |_| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let events: Result<Vec<_>, _> = (0..granted).map(event).collect();
        let bytes = granted * 8;
        let events = events.map_err(|_| FunctionError::NoMemory { bytes })?;
        if let Some(old) = self.mode.take() {
            self.switch_off(index_of(old)).map_err(told)?;
        }
        self.events = events;
        self.pin_masked = false;
        match self.switch_on(index) {
            Ok(()) => {
                self.mode = Some(mode);
                Ok(granted as u16)
            }
            Err(ClientError::Refused { .. }) => Err(FunctionError::NoInterrupt { mode }),
            Err(error) => Err(told(error)),
        }
    }
}
