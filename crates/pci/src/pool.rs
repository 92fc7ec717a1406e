//! Pieces of equal size of memory for DMA, asked for when they are first needed.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

use crate::{DmaRegion, FunctionError, PciFunction};

/// A piece of a [`DmaPool`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DmaPiece(u16);

impl DmaPiece {
    /// Stands for no piece; no pool has it.
    pub const NONE: DmaPiece = DmaPiece(u16::MAX);
}

/// A pool of pieces of equal size in memory for DMA, for what not every request needs.
///
/// It asks the function for a chunk of several pieces when none is free, keeps what it has, and never has
/// more pieces than it was made for: a pool of `n` pieces pins at most
/// `n.div_ceil(pieces of a chunk) * bytes of a chunk`. The heap is touched by [`new`](DmaPool::new) alone,
/// so taking a piece may pin memory and never allocates.
#[derive(Debug)]
pub struct DmaPool {
    chunks: Vec<DmaRegion>,
    /// Pieces that exist and are free; the last one is taken next, for it is most likely in a cache.
    free: Vec<DmaPiece>,
    piece_bytes: u32,
    per_chunk: u32,
    /// Pieces that exist, and that may.
    pieces: u32,
    pieces_max: u32,
}

impl DmaPool {
    /// A pool of up to `pieces_max` pieces (65535 at most) of `piece_bytes`, which comes in chunks of about
    /// `chunk_bytes`. It has no memory for DMA yet.
    ///
    /// # Errors
    /// The heap has no room for the table of free pieces.
    pub fn new(
        piece_bytes: u32,
        chunk_bytes: u32,
        pieces_max: u32,
    ) -> Result<DmaPool, TryReserveError> {
        let (piece_bytes, pieces_max) = (piece_bytes.max(1), pieces_max.min(u32::from(u16::MAX)));
        let per_chunk = (chunk_bytes / piece_bytes).clamp(1, pieces_max.max(1));
        let (mut chunks, mut free) = (Vec::new(), Vec::new());
        chunks.try_reserve_exact(pieces_max.div_ceil(per_chunk) as usize)?;
        // The list of free pieces gets its full capacity at the start, so `put_back` never
        // allocates. A full heap is then an error of the start and not of an I/O (S1-30).
        free.try_reserve_exact(pieces_max as usize)?;
        Ok(DmaPool { chunks, free, piece_bytes, per_chunk, pieces: 0, pieces_max })
    }

    /// Size of a piece, in bytes.
    pub fn piece_bytes(&self) -> u32 {
        self.piece_bytes
    }

    /// Memory that it has asked for, in bytes.
    pub fn pinned_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.bytes)).sum()
    }

    /// Pieces that are taken.
    pub fn taken(&self) -> u32 {
        self.pieces - self.free.len() as u32
    }

    /// Has `pieces` free pieces, or as many as it may have.
    ///
    /// # Errors
    /// [`FunctionError::NoMemory`]; what it got stays.
    pub fn reserve<F: PciFunction + ?Sized>(
        &mut self,
        function: &mut F,
        pieces: u32,
    ) -> Result<(), FunctionError> {
        while (self.free.len() as u32) < pieces && self.pieces < self.pieces_max {
            self.grow(function)?;
        }
        Ok(())
    }

    /// Asks for one more chunk.
    #[cold]
    fn grow<F: PciFunction + ?Sized>(&mut self, function: &mut F) -> Result<(), FunctionError> {
        let more = self.per_chunk.min(self.pieces_max - self.pieces);
        // The last chunk is as large as the others: its size is what finding a piece rests on.
        let chunk = function.dma_allocate(self.per_chunk * self.piece_bytes)?;
        self.chunks.push(chunk);
        // The reverse order hands out the lowest piece first, since `take` removes from the end.
        // Neighbouring commands then use neighbouring memory.
        self.free.extend((self.pieces..self.pieces + more).rev().map(|n| DmaPiece(n as u16)));
        self.pieces += more;
        Ok(())
    }

    /// A piece; `None` where all are taken.
    ///
    /// # Errors
    /// [`FunctionError::NoMemory`].
    #[inline]
    pub fn take<F: PciFunction + ?Sized>(
        &mut self,
        function: &mut F,
    ) -> Result<Option<DmaPiece>, FunctionError> {
        if self.free.is_empty() && self.pieces < self.pieces_max {
            self.grow(function)?;
        }
        Ok(self.free.pop())
    }

    /// Gives back a piece that was taken.
    #[inline]
    pub fn put_back(&mut self, piece: DmaPiece) {
        debug_assert!(self.free.len() < self.pieces as usize && u32::from(piece.0) < self.pieces);
        // Last in, first out: the piece that was used last is still in the CPU cache. A queue would
        // walk through all pieces and evict them.
        self.free.push(piece);
    }

    /// All pieces are free: whoever had some has forgotten them.
    pub fn put_back_all(&mut self) {
        self.free.clear();
        self.free.extend((0..self.pieces).rev().map(|n| DmaPiece(n as u16)));
    }

    /// Where a piece that was taken is: its chunk, and its offset there.
    #[inline]
    pub fn place(&self, piece: DmaPiece) -> (DmaRegion, u32) {
        let number = u32::from(piece.0);
        let chunk = self.chunks[(number / self.per_chunk) as usize];
        (chunk, number % self.per_chunk * self.piece_bytes)
    }

    /// Gives all memory back; the device must not know it any more.
    pub fn release<F: PciFunction + ?Sized>(&mut self, function: &mut F) {
        for chunk in self.chunks.drain(..) {
            function.dma_free(chunk);
        }
        self.free.clear();
        self.pieces = 0;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use alloc::vec::Vec;

    use super::*;
    use crate::InterruptMode;

    /// Memory alone.
    #[derive(Default)]
    struct Memory {
        asked: u32,
        given_back: u32,
        most: u32,
    }

    impl PciFunction for Memory {
        fn config_read(&mut self, _offset: u16) -> u32 {
            0
        }
        fn config_write(&mut self, _offset: u16, _value: u32) {}
        fn bar_bytes(&self, _bar: u8) -> u64 {
            0
        }
        fn bar_read32(&mut self, _bar: u8, _offset: u32) -> u32 {
            0
        }
        fn bar_write32(&mut self, _bar: u8, _offset: u32, _value: u32) {}
        fn dma_allocate(&mut self, bytes: u32) -> Result<DmaRegion, FunctionError> {
            if self.asked == self.most {
                return Err(FunctionError::NoMemory { bytes });
            }
            self.asked += 1;
            let address = u64::from(self.asked) << 20;
            Ok(DmaRegion { address, bytes, handle: address })
        }
        fn dma_free(&mut self, _region: DmaRegion) {
            self.given_back += 1;
        }
        fn dma_read(&mut self, _region: &DmaRegion, _offset: u32, _out: &mut [u8]) {}
        fn dma_write(&mut self, _region: &DmaRegion, _offset: u32, _bytes: &[u8]) {}
        fn dma_load32(&mut self, _region: &DmaRegion, _offset: u32) -> u32 {
            0
        }
        fn enable_interrupts(
            &mut self,
            _mode: InterruptMode,
            vectors: u16,
        ) -> Result<u16, FunctionError> {
            Ok(vectors)
        }
    }

    #[test]
    fn memory_is_asked_for_when_it_is_needed_and_up_to_the_bound() {
        let mut f = Memory { most: 99, ..Memory::default() };
        let mut pool = DmaPool::new(512, 4096, 20).unwrap();
        assert_eq!((pool.pinned_bytes(), f.asked), (0, 0));
        let mut taken = Vec::new();
        for n in 1..=20_u32 {
            taken.push(pool.take(&mut f).unwrap().unwrap());
            assert_eq!((f.asked, pool.taken()), (n.div_ceil(8), n));
        }
        assert_eq!(pool.take(&mut f), Ok(None));
        assert_eq!(pool.pinned_bytes(), 3 * 4096);
        let mut places: Vec<(u64, u32)> =
            taken.iter().map(|piece| pool.place(*piece)).map(|(r, at)| (r.address, at)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 20, "no two are in the same place");
        assert!(places.iter().all(|(_, at)| at + 512 <= 4096));
        taken.into_iter().for_each(|piece| pool.put_back(piece));
        assert_eq!((pool.taken(), f.asked), (0, 3));
        pool.release(&mut f);
        assert_eq!((pool.pinned_bytes(), f.given_back), (0, 3));
    }

    #[test]
    fn a_function_without_memory_leaves_the_pool_as_it_was() {
        let mut f = Memory { most: 1, ..Memory::default() };
        let mut pool = DmaPool::new(4096, 4096, 3).unwrap();
        assert_eq!(pool.reserve(&mut f, 2), Err(FunctionError::NoMemory { bytes: 4096 }));
        let piece = pool.take(&mut f).unwrap().unwrap();
        assert_eq!(pool.take(&mut f), Err(FunctionError::NoMemory { bytes: 4096 }));
        pool.put_back(piece);
        assert_eq!(pool.take(&mut f), Ok(Some(piece)));
        f.most = 9;
        assert!(pool.take(&mut f).unwrap().is_some());
        pool.put_back_all();
        assert_eq!(pool.taken(), 0);
        assert_eq!(pool.reserve(&mut f, 9), Ok(()), "as many as it may have");
        assert_eq!(f.asked, 3);
    }

    #[test]
    fn pieces_longer_than_a_chunk_are_chunks() {
        let mut f = Memory { most: 9, ..Memory::default() };
        let mut pool = DmaPool::new(8192, 4096, 2).unwrap();
        let pieces = [pool.take(&mut f), pool.take(&mut f)].map(|piece| piece.unwrap().unwrap());
        assert!(pieces.iter().all(|piece| pool.place(*piece).1 == 0));
        assert_eq!(pool.pinned_bytes(), 2 * 8192);
    }
}
