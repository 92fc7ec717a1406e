//! The ring in host memory, and the bios array beside it (S0-8, S0-30).

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

use ssdyno_block::{MonotonicTime, Status, try_list};
use ssdyno_pci::{DmaPiece, DmaRegion, PciFunction};
use ssdyno_spec::ring as layout;
use ssdyno_spec::ring::{Descriptor, ErrorKind};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromZeros, IntoBytes};

use crate::requests::Bio;

/// A bio that stands in the ring: the slot of its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    request: u32,
    /// The page of the driver's own that it has, if any.
    page: DmaPiece,
    /// The card was reset while it had the descriptor.
    abandoned: bool,
}

/// A descriptor that completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RingCompletion {
    pub(crate) request: u32,
    pub(crate) page: DmaPiece,
    pub(crate) status: Status,
}

const NOTHING: Place = Place { request: u32::MAX, page: DmaPiece::NONE, abandoned: false };

/// The block at the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    pub(crate) size: u32,
    pub(crate) since: MonotonicTime,
}

/// The ring. Numbers of descriptors count on forever, modulo 2^32; the index is the number modulo
/// the size. In the order of numbers:
/// returned and not answered - with the card - of the next block - free.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) region: DmaRegion,
    size: u32,
    /// The bios array: what stands at index i of the ring (S0-30).
    bios: Vec<Place>,
    /// The first descriptor that has not completed.
    oldest: u32,
    /// The first one that is not known to be back.
    seen: u32,
    /// The first of the next block (S0-30).
    next_block: u32,
    /// The first free one (S0-30).
    first_free: u32,
    /// The block at the card: it ends at `next_block`.
    pub(crate) block: Option<Block>,
    /// The owner bit is written after the rest, because the card may look at any time.
    owner_last: bool,
}

impl Ring {
    pub(crate) fn new(
        region: DmaRegion,
        size: u32,
        owner_last: bool,
    ) -> Result<Ring, TryReserveError> {
        Ok(Ring {
            region,
            size,
            bios: try_list(NOTHING, size as usize)?,
            oldest: 0,
            seen: 0,
            next_block: 0,
            first_free: 0,
            block: None,
            owner_last,
        })
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    pub(crate) fn index(&self, number: u32) -> u32 {
        // The size is a power of two (S0-9), so the mask is the remainder. Numbers count on for
        // ever and wrap at 2^32, which is a multiple of the size.
        number & (self.size - 1)
    }

    fn offset(&self, number: u32) -> u32 {
        self.index(number) * layout::DESCRIPTOR_BYTES
    }

    pub(crate) fn is_full(&self) -> bool {
        // Numbers and not indexes are compared. Full and empty differ by the size then, and no
        // place of the ring has to stay empty.
        self.first_free.wrapping_sub(self.oldest) == self.size
    }

    /// Descriptors of the next block.
    pub(crate) fn pending(&self) -> u32 {
        self.first_free.wrapping_sub(self.next_block)
    }

    /// Descriptors that are back, or given up, and not answered.
    pub(crate) fn to_answer(&self) -> u32 {
        self.seen.wrapping_sub(self.oldest)
    }

    /// Writes a command into the first free place.
    pub(crate) fn push<F: PciFunction>(
        &mut self,
        function: &mut F,
        request: u32,
        bio: &Bio,
        address: u64,
        page: DmaPiece,
    ) {
        debug_assert!(!self.is_full(), "somebody looks before");
        let number = self.first_free;
        let urgent = if bio.urgent { layout::URGENT } else { 0 };
        let descriptor = Descriptor {
            control: U32::new(layout::OWNER_DEVICE | (bio.kind as u32) << 2 | urgent),
            status: layout::STATUS_SUCCESS,
            error: 0,
            first_sector: bio.first_sector,
            sectors: bio.sectors,
            host_address: U64::new(address),
            device_offset: U64::new(bio.device_offset),
            pages: U32::new(bio.pages),
            number: U32::new(number),
        };
        let (offset, bytes) = (self.offset(number), descriptor.as_bytes());
        // A card that prefetches may read a descriptor at any time. It must not find the owner
        // bit set on a command that is only half written.
        if self.owner_last {
            function.dma_write(&self.region, offset + 4, &bytes[4..]);
            function.dma_write(&self.region, offset, &bytes[..4]);
        } else {
            function.dma_write(&self.region, offset, bytes);
        }
        let index = self.index(number) as usize;
        self.bios[index] = Place { request, page, abandoned: false };
        self.first_free = number.wrapping_add(1);
    }

    /// Gives `size` descriptors to the card: index of the first, and the requests in the block.
    pub(crate) fn give(
        &mut self,
        now: MonotonicTime,
        size: u32,
    ) -> (u32, impl Iterator<Item = u32> + '_) {
        // One block is with the card at a time (S0-14). The block is a range of numbers that
        // ends at `next_block`, so nothing else has to be stored of it.
        debug_assert!(self.block.is_none() && size <= self.pending());
        let first = self.next_block;
        self.next_block = first.wrapping_add(size);
        self.block = Some(Block { size, since: now });
        let numbers = (0..size).map(move |at| first.wrapping_add(at));
        let requests = numbers.map(|number| self.bios[self.index(number) as usize].request);
        (self.index(first), requests)
    }

    /// Looks which descriptors of the block are back, in order; true if there are new ones.
    pub(crate) fn look<F: PciFunction>(&mut self, function: &mut F) -> bool {
        let before = self.seen;
        if self.block.is_some() {
            // The look stops at the first descriptor that is not back. Completions keep their
            // order (S0-6), so those behind it could not be used yet.
            while self.seen != self.next_block && self.is_back(function, self.seen) {
                self.seen = self.seen.wrapping_add(1);
            }
        }
        self.seen != before
    }

    fn is_back<F: PciFunction>(&self, function: &mut F, number: u32) -> bool {
        // Owner and response flag are in one dword, which the card writes last. A single load
        // therefore never sees one of them without the rest of the descriptor.
        let control = function.dma_load32(&self.region, self.offset(number));
        control & (layout::OWNER_DEVICE | layout::RESPONSE_FLAG) == layout::RESPONSE_FLAG
    }

    /// The block, if all of it is back; it is not outstanding any more.
    pub(crate) fn take_returned(&mut self) -> Option<Block> {
        if self.seen == self.next_block { self.block.take() } else { None }
    }

    /// The card was reset or is gone: what it had and did not give back is given up.
    pub(crate) fn abandon_block<F: PciFunction>(&mut self, function: &mut F) {
        let mut number = self.seen;
        while number != self.next_block {
            let abandoned = !self.is_back(function, number);
            let index = self.index(number) as usize;
            self.bios[index].abandoned = abandoned;
            number = number.wrapping_add(1);
        }
        self.seen = self.next_block;
        self.block = None;
    }

    /// The card is gone: everything in the ring is given up.
    pub(crate) fn abandon_all<F: PciFunction>(&mut self, function: &mut F) {
        self.next_block = self.first_free;
        self.abandon_block(function);
    }

    /// Answers the oldest descriptor, resets it and frees its place (S0-29).
    pub(crate) fn pop<F: PciFunction>(&mut self, function: &mut F) -> Option<RingCompletion> {
        if self.to_answer() == 0 {
            return None;
        }
        let number = self.oldest;
        let index = self.index(number) as usize;
        let Place { request, page, abandoned } = self.bios[index];
        self.bios[index] = NOTHING;
        let status = if abandoned { Status::Abandoned } else { self.status(function, number) };
        // The control dword is cleared before the place is free. A card that reads too far then
        // finds no command with an owner bit (S0-29).
        function.dma_write(&self.region, self.offset(number), &[0; 4]);
        self.oldest = number.wrapping_add(1);
        Some(RingCompletion { request, page, status })
    }

    fn status<F: PciFunction>(&self, function: &mut F, number: u32) -> Status {
        let mut descriptor = Descriptor::new_zeroed();
        function.dma_read(&self.region, self.offset(number), descriptor.as_mut_bytes());
        // The number tells whether this answer belongs to this command. One of an older round at
        // the same place is an error and not a success.
        if descriptor.number.get() != number {
            return Status::Error;
        }
        match (descriptor.status, ErrorKind::from_bits(descriptor.error)) {
            (layout::STATUS_SUCCESS, _) => Status::Ok,
            (_, Some(ErrorKind::ReadOnly)) => Status::ReadOnly,
            _ => Status::Error,
        }
    }
}
