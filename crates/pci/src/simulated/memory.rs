//! Host memory that is shared with one function.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use ssdyno_block::prefetch;

use crate::{DmaDirection, DmaFault, DmaRegion, FunctionError};

const PAGE_BYTES: u64 = 4096;
/// Where the first region begins: not at 0, so that a forgotten address is found out, and above
/// 4 GiB, so that a lost upper half is found out too.
const BASE: u64 = 0x1_2000_0000;
/// A page that belongs to no living region.
const NOBODY: u32 = u32::MAX;

/// An access of the device that real hardware would have let pass, or answered with silence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedFault {
    /// What was touched.
    pub fault: DmaFault,
    /// Which way.
    pub direction: DmaDirection,
    /// The memory was the device's once, and was freed while it was in use.
    pub freed: bool,
}

/// Regions at addresses that are never used twice, with an unmapped page behind each: an access past
/// an end or after a free always hits a page of nobody.
pub(super) struct Memory {
    /// The region of each page from [`BASE`] on.
    pages: Vec<u32>,
    regions: Vec<Region>,
    allocated_bytes: u64,
    pub(super) limit_bytes: u64,
    pub(super) faults: Vec<RecordedFault>,
}

struct Region {
    address: u64,
    bytes: Box<[u8]>,
}

/// Without the contents.
impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Memory");
        shown.field("allocated_bytes", &self.allocated_bytes).field("faults", &self.faults);
        shown.finish_non_exhaustive()
    }
}

/// Queues lie in shared memory and are walked from end to end; many deep ones are more than a cache
/// holds, and what was touched a turn ago has left it.
#[inline]
fn fetch_ahead(bytes: &[u8], end: usize) {
    const AHEAD: usize = 64;
    if let Some(place) = bytes.get(end + AHEAD) {
        prefetch(place);
    }
}

impl Memory {
    pub(super) fn new() -> Memory {
        Memory {
            pages: Vec::new(),
            regions: Vec::new(),
            allocated_bytes: 0,
            limit_bytes: u64::MAX,
            faults: Vec::new(),
        }
    }

    pub(super) fn allocated_bytes(&self) -> u64 {
        self.allocated_bytes
    }

    pub(super) fn allocate(&mut self, bytes: u32) -> Result<DmaRegion, FunctionError> {
        let pages = u64::from(bytes.max(1)).div_ceil(PAGE_BYTES);
        let size = pages * PAGE_BYTES;
        if self.allocated_bytes + size > self.limit_bytes {
            return Err(FunctionError::NoMemory { bytes });
        }
        let id = self.regions.len() as u32;
        let address = BASE + self.pages.len() as u64 * PAGE_BYTES;
        self.pages.extend((0..pages).map(|_| id));
        // The unmapped page behind each region detects a device that runs past the end of a PRP
        // list or a ring. With adjacent regions such an access would change another queue without a
        // trace.
        self.pages.push(NOBODY);
        self.regions.push(Region { address, bytes: vec![0; size as usize].into_boxed_slice() });
        self.allocated_bytes += size;
        Ok(DmaRegion { address, bytes, handle: u64::from(id) })
    }

    pub(super) fn free(&mut self, region: DmaRegion) {
        let known = self.regions.get_mut(region.handle as usize);
        let known = known.filter(|r| r.address == region.address && !r.bytes.is_empty());
        let Some(known) = known else {
            panic!("{region:?} is freed, but is not allocated: free each region once");
        };
        let size = known.bytes.len() as u64;
        // The region keeps its place in the table and its addresses are not used again. An
        // allocator that reuses addresses would let a late DMA transfer after a free hit a new,
        // valid region.
        known.bytes = Box::default();
        self.allocated_bytes -= size;
        let first = ((region.address - BASE) / PAGE_BYTES) as usize;
        self.pages[first..first + (size / PAGE_BYTES) as usize].fill(NOBODY);
    }

    /// The driver's own view: `bytes` from `offset` of `region`.
    ///
    /// Panics where a driver leaves its region or uses a freed one: on hardware that would be the
    /// memory of somebody else.
    #[inline]
    pub(super) fn host(&mut self, region: &DmaRegion, offset: u32, bytes: usize) -> &mut [u8] {
        let end = offset as usize + bytes;
        assert!(end <= region.bytes as usize, "bytes {offset} to {end} leave {region:?}");
        let known = &mut self.regions[region.handle as usize];
        assert!(
            known.address == region.address && end <= known.bytes.len(),
            "{region:?} was freed"
        );
        fetch_ahead(&known.bytes, end);
        &mut known.bytes[offset as usize..end]
    }

    /// The part of `bytes` at `address` that lies in one region; `None` where nobody shares it.
    #[inline]
    fn device(&mut self, address: u64, bytes: u64) -> Option<&mut [u8]> {
        let page = address.checked_sub(BASE)? / PAGE_BYTES;
        let id = *self.pages.get(page as usize)?;
        if id == NOBODY {
            return None;
        }
        let region = &mut self.regions[id as usize];
        let offset = (address - region.address) as usize;
        // The slice can be shorter than requested; the callers compare lengths. A panic here would
        // stop the run, but a wrong address of a device is a result that the run must report.
        let end = region.bytes.len().min(offset.saturating_add(bytes as usize));
        fetch_ahead(&region.bytes, end);
        Some(&mut region.bytes[offset..end])
    }

    /// Copies out for the device.
    #[inline]
    pub(super) fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), DmaFault> {
        match self.device(address, out.len() as u64) {
            Some(found) if found.len() == out.len() => {
                out.copy_from_slice(found);
                Ok(())
            }
            _ => Err(self.record(address, out.len() as u64, DmaDirection::FromHost)),
        }
    }

    /// Copies in for the device.
    #[inline]
    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        match self.device(address, bytes.len() as u64) {
            Some(found) if found.len() == bytes.len() => {
                found.copy_from_slice(bytes);
                Ok(())
            }
            _ => Err(self.record(address, bytes.len() as u64, DmaDirection::ToHost)),
        }
    }

    /// Checks as `read` and `write` do. Regions never touch, so one access lies in one region.
    #[inline]
    pub(super) fn touch(
        &mut self,
        address: u64,
        bytes: u64,
        way: DmaDirection,
    ) -> Result<(), DmaFault> {
        match self.device(address, bytes) {
            Some(found) if found.len() as u64 == bytes => Ok(()),
            _ => Err(self.record(address, bytes, way)),
        }
    }

    /// Keeps what the device did wrong.
    #[cold]
    pub(super) fn record(&mut self, address: u64, bytes: u64, direction: DmaDirection) -> DmaFault {
        let fault = DmaFault { address, bytes };
        let after = self.regions.partition_point(|r| r.address <= address);
        let freed = after.checked_sub(1).is_some_and(|i| {
            let end = self
                .regions
                .get(after)
                .map_or_else(|| BASE + self.pages.len() as u64 * PAGE_BYTES, |next| next.address);
            // An access in the guard page behind a freed region is an overrun, not a use after
            // free. The distinction tells the developer whether the length or the life time of the
            // buffer is wrong.
            self.regions[i].bytes.is_empty() && address < end - PAGE_BYTES
        });
        self.faults.push(RecordedFault { fault, direction, freed });
        fault
    }
}
