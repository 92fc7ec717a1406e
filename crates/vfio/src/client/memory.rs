//! Memory of ours that the device may reach.

use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use ssdyno_pci::DmaRegion;

use crate::memory::Shared;

/// The granularity of regions, in bytes.
const PAGE_BYTES: u64 = 4096;
/// Where the first region begins: not at 0, so that a forgotten address is found out, and above
/// 4 GiB, so that a lost upper half is found out too.
const BASE: u64 = 0x1_2000_0000;

/// Regions at addresses that are never used twice, with an unmapped page behind each.
#[derive(Debug)]
pub(super) struct Memory {
    next_address: u64,
    /// By handle; none where it was freed.
    regions: Vec<Option<Region>>,
}

#[derive(Debug)]
struct Region {
    address: u64,
    memory: Shared,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { next_address: BASE, regions: Vec::new() }
    }
}

impl Memory {
    /// Memory of at least `bytes`, zeroed: the region, its size in whole pages, and the file for the
    /// server, which can be neither shortened nor lengthened.
    pub(super) fn allocate(&mut self, bytes: u32) -> Result<(DmaRegion, u64, OwnedFd), Errno> {
        let size = u64::from(bytes.max(1)).next_multiple_of(PAGE_BYTES);
        let file = memfd_create("dma", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, size)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let memory = Shared::map(&file, 0, size as usize, true)?;
        let address = self.next_address;
        self.next_address += size + PAGE_BYTES;
        let handle = self.regions.len() as u64;
        self.regions.push(Some(Region { address, memory }));
        Ok((DmaRegion { address, bytes, handle }, size, file))
    }

    /// Gives `region` up, and says how large it is in whole pages.
    ///
    /// Panics where it was freed before.
    pub(super) fn free(&mut self, region: DmaRegion) -> u64 {
        let known = self.regions.get_mut(region.handle as usize);
        let known = known.and_then(|known| known.take_if(|r| r.address == region.address));
        assert!(
            known.is_some(),
            "{region:?} is freed, but is not allocated: free each region once"
        );
        u64::from(region.bytes.max(1)).next_multiple_of(PAGE_BYTES)
    }

    /// The memory of `region`, of which `bytes` from `offset` on are wanted.
    ///
    /// Panics where a driver leaves its region or uses a freed one.
    pub(super) fn host(&self, region: &DmaRegion, offset: u32, bytes: usize) -> &Shared {
        let end = offset as usize + bytes;
        assert!(end <= region.bytes as usize, "bytes {offset} to {end} leave {region:?}");
        match self.regions.get(region.handle as usize) {
            Some(Some(known)) if known.address == region.address => &known.memory,
            _ => panic!("{region:?} was freed"),
        }
    }
}
