//! Where in a file a job's requests go, as fio decides it (`get_next_block`, `get_next_buflen` and
//! `setup_strided_zone_mode` in its `io_u.c`, read for what they do; the code is ours).

use ssdyno_engine::Rng;

use super::distribution::Picker;
use super::map::Map;
use super::sizes::Sizes;
use crate::generator::place::happens;

/// One direction: reads, writes or trims. Each has a place of its own.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) sizes: Sizes,
    /// Random offsets are multiples of this.
    pub(super) align: u64,
    /// Probability of a random place, where the job is random.
    pub(super) random: u64,
    pub(super) picker: Picker,
    /// Where the last request ended, from the base; 0 before the first.
    pub(super) end: u64,
    /// Where it began.
    pub(super) start: u64,
}

/// Parts of the target that are visited one after the other (`zonemode=strided`), in bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Strides {
    /// Moved in one before the next is visited.
    pub(super) size: u64,
    /// Length of one.
    pub(super) range: u64,
    /// Left out between two.
    pub(super) skip: u64,
}

/// Places in one file of a job.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) ways: [Way; 3],
    /// First byte of the range, its length, and the end of the file, all in bytes of the target.
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) capacity: u64,
    /// First byte of the file.
    pub(super) file_start: u64,
    /// Where offsets count from: the start, or that of the present stride.
    pub(super) base: u64,
    pub(super) random: bool,
    /// Added to the place of each sequential request but the first (`rw=read:4k`).
    pub(super) gap: i64,
    /// Within a run the place stays the same (`rw_sequencer=identical`).
    pub(super) identical: bool,
    /// Blocks that were asked for: one map for all directions. A block is as long as the shortest request
    /// of its direction; where these differ, block 7 of reads and block 7 of writes lie in different
    /// places and yet exclude one another, as in fio.
    pub(super) map: Option<Map>,
    pub(super) strides: Option<Strides>,
    /// Moved in the present stride.
    pub(super) strode: u64,
    /// Holes are passed over again and again: the range is all of the file.
    pub(super) wraps: bool,
}

impl Places {
    /// The next place and length for `way`, in bytes of the target; at a place of its own (`fresh`) or in
    /// the run of the last one. `None` where the range has been gone through.
    pub(super) fn take(&mut self, way: usize, fresh: bool, rng: &mut Rng) -> Option<(u64, u64)> {
        self.enter_stride();
        let (offset, length) = self.find(way, fresh, rng)?;
        self.ways[way].start = offset;
        self.ways[way].end = offset + length;
        self.strode += length;
        Some((self.base + offset, length))
    }

    /// Length of what is gone through from the base on.
    fn range(&self) -> u64 {
        self.strides.map_or(self.length, |strides| strides.range)
    }

    /// Moves on to the next stride if enough was moved in this stride.
    fn enter_stride(&mut self) {
        let Some(strides) = self.strides else { return };
        // fio moves on by bytes transferred and not by position, so random requests also leave a
        // zone after `zonesize` bytes.
        if self.strode >= strides.size {
            self.strode = 0;
            self.base = self.base.saturating_add(strides.range).saturating_add(strides.skip);
            if self.base >= self.capacity {
                self.base = self.start;
            }
            self.ways.iter_mut().for_each(|way| way.end = 0);
        }
        for way in &mut self.ways {
            if way.end >= strides.range {
                way.end = 0;
            }
        }
        if let (true, Some(map)) = (self.strode.is_multiple_of(strides.range), &mut self.map) {
            map.clear();
        }
    }

    /// Begins the range again, for `way` alone if there is one.
    pub(super) fn restart(&mut self, way: Option<usize>) {
        if self.strides.is_some() {
            (self.base, self.strode) = (self.start, 0);
        }
        if let Some(map) = &mut self.map {
            map.clear();
        }
        for (index, other) in self.ways.iter_mut().enumerate() {
            if way.is_none_or(|way| way == index) {
                other.end = 0;
                other.picker.restart();
            }
        }
    }

    /// The next place from the base, and length; `None` where the range has been gone through.
    fn find(&mut self, way: usize, fresh: bool, rng: &mut Rng) -> Option<(u64, u64)> {
        if self.random && fresh && happens(self.ways[way].random, rng) {
            return self.random_place(way, rng);
        }
        if self.random && !fresh && self.identical {
            let offset = self.ways[way].start;
            return self.fit(way, offset, rng).map(|length| (offset, length));
        }
        let next = self.sequential_place(way, rng);
        if next.is_none() && self.random { self.random_place(way, rng) } else { next }
    }

    fn random_place(&mut self, way: usize, rng: &mut Rng) -> Option<(u64, u64)> {
        let Way { picker, align, .. } = &mut self.ways[way];
        let (block, align) = (picker.draw(rng)?, *align);
        let Some(map) = &self.map else {
            let offset = block * align;
            return self.fit(way, offset, rng).map(|length| (offset, length));
        };
        // With a map, blocks are of its size: alignments of their own switch it off.
        let block = map.free_from(block)?;
        let offset = block * align;
        // Beyond the end of this direction there may still be blocks of one with shorter requests. fio takes
        // that for the end of the job.
        if offset >= self.range() {
            return None;
        }
        let length = self.fit(way, offset, rng)?;
        let taken = self.map.as_mut()?.take(block, length.div_ceil(align));
        Some((offset, length.min(taken * align)))
    }

    fn sequential_place(&mut self, way: usize, rng: &mut Rng) -> Option<(u64, u64)> {
        let (end, range) = (self.ways[way].end, self.range());
        let mut offset = end;
        if end == 0 && self.gap < 0 && self.start > self.file_start {
            // Backwards from an offset of its own begins at the end, from that of the file at its start.
            offset = range.checked_add_signed(self.gap)?;
        } else if end > 0 && self.gap != 0 {
            offset = match end.checked_add_signed(self.gap) {
                Some(offset) => offset,
                // Backwards, and at the start: on from the end.
                None => range.checked_add_signed(self.gap)?,
            };
        }
        if offset >= range {
            return None;
        }
        self.fit(way, offset, rng).map(|length| (offset, length))
    }

    /// A length for a request at `offset`. One size need only fit into the target, as in fio;
    /// several are drawn until one fits into the range.
    fn fit(&self, way: usize, offset: u64, rng: &mut Rng) -> Option<u64> {
        let sizes = &self.ways[way].sizes;
        let room = self.capacity.checked_sub(self.base.checked_add(offset)?)?;
        let room = match sizes.is_fixed() {
            true => room,
            false => room.min(self.range().saturating_sub(offset)),
        };
        sizes.draw(room, rng)
    }
}
