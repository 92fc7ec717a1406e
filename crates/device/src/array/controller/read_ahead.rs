//! Sequential streams, and the data read ahead for them.
//!
//! The cache holds what was read ahead until a read of the stream ends behind it. A write drops everything that
//! was read ahead of the streams it touches.

use std::collections::{BTreeMap, VecDeque};

use super::config::ReadAheadPolicy;
use super::extent::{Extent, subtract};
use super::purpose::NUMBERS;

/// One command that reads ahead, and its data.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    extent: Extent,
    fetch: u32,
    arrived: bool,
}

/// Reads that each begin at the end of the previous read.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// Where the last one ended.
    next: u64,
    /// How many there were.
    reads: u64,
    /// When there was the last one, counted in reads.
    used: u64,
    /// Up to where was read ahead.
    ahead: u64,
    /// The prefetched data, by address.
    chunks: VecDeque<Chunk>,
}

/// A command that reads ahead and is under way.
#[derive(Clone, Debug)]
struct Fetch {
    bytes: u64,
    /// Reads of the host that wait for it: the place of the command, and the range that it needs.
    waiting: Vec<(u32, Extent)>,
    /// Its stream has no more use for it.
    dropped: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct ReadAhead {
    policy: ReadAheadPolicy,
    /// How far to read ahead.
    distance: u64,
    /// Most bytes of one command.
    chunk: u64,
    stripe: u64,
    /// Bytes of the array.
    capacity: u64,
    streams: Vec<Stream>,
    /// Bytes that the cache may hold, and those that it holds or that are on the way.
    room: u64,
    held: u64,
    fetches: BTreeMap<u32, Fetch>,
    ids: u32,
    reads: u64,
}

impl ReadAhead {
    pub(super) fn new(
        policy: ReadAheadPolicy,
        streams: u32,
        distance: u64,
        (stripe, capacity): (u64, u64),
    ) -> ReadAhead {
        let number = if policy == ReadAheadPolicy::None { 0 } else { streams };
        // Nothing continues a stream that has not begun.
        let unused = Stream { next: u64::MAX, ..Stream::default() };
        ReadAhead {
            policy,
            distance,
            chunk: stripe.min(distance),
            stripe,
            capacity,
            streams: vec![unused; number as usize],
            room: u64::from(number) * distance,
            held: 0,
            fetches: BTreeMap::new(),
            ids: 0,
            reads: 0,
        }
    }

    /// Removes from `wanted` the data that was read ahead or is on the way. The command at `slot` waits for the data on
    /// the way, as often as the result says.
    pub(super) fn subtract_from(&mut self, wanted: &mut Vec<Extent>, slot: u32) -> u32 {
        let mut waits = 0;
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return 0 };
        let all = Extent { start: first.start, end: last.end };
        let streams = self.streams.iter().filter(|stream| stream.window().overlaps(&all));
        for chunk in streams.flat_map(|stream| &stream.chunks) {
            let fetch = if chunk.arrived { None } else { self.fetches.get_mut(&chunk.fetch) };
            if let Some(fetch) = fetch {
                let parts = wanted.iter().filter_map(|part| part.common(&chunk.extent));
                let before = fetch.waiting.len();
                fetch.waiting.extend(parts.map(|part| (slot, part)));
                waits += (fetch.waiting.len() - before) as u32;
            }
            subtract(wanted, &chunk.extent);
        }
        waits
    }

    /// The host read `read`; gives its stream if there is to be read ahead of it.
    pub(super) fn observe(&mut self, read: &Extent) -> Option<usize> {
        self.reads += 1;
        let found = self.streams.iter().position(|stream| stream.is_continued_by(read));
        let oldest = || {
            let all = self.streams.iter().enumerate();
            all.min_by_key(|(_, stream)| stream.used).map(|(index, _)| index)
        };
        let index = found.or_else(oldest)?;
        if found.is_none() {
            self.drop_chunks(index, |_| true);
            self.streams[index] = Stream::default();
        }
        let stream = &mut self.streams[index];
        stream.used = self.reads;
        stream.reads += 1;
        stream.next = stream.next.max(read.end);
        stream.ahead = stream.ahead.max(stream.next);
        let least = match self.policy {
            ReadAheadPolicy::None => return None,
            ReadAheadPolicy::Always => 1,
            ReadAheadPolicy::Adaptive => 2,
        };
        let (reads, next) = (stream.reads, stream.next);
        self.drop_chunks(index, |chunk| chunk.extent.end <= next);
        (reads >= least).then_some(index)
    }

    /// The next read-ahead of stream `index`; `limit` gives up to where that may go, since the data on the members are
    /// not the newest behind that.
    pub(super) fn next_fetch(
        &mut self,
        index: usize,
        limit: impl FnOnce(&Extent) -> Option<u64>,
    ) -> Option<(u32, Extent)> {
        let stream = self.streams.get_mut(index)?;
        let start = stream.ahead;
        let end =
            (start + self.chunk).min((start / self.stripe + 1) * self.stripe).min(self.capacity);
        let mut extent = Extent { start, end };
        let is_far = end > stream.next + self.distance;
        if start >= end || is_far || self.held + extent.bytes() > self.room {
            return None;
        }
        extent.end = limit(&extent).unwrap_or(end);
        if extent.end == start {
            return None;
        }
        self.ids = (self.ids + 1) & NUMBERS;
        let bytes = extent.bytes();
        stream.chunks.push_back(Chunk { extent, fetch: self.ids, arrived: false });
        stream.ahead = extent.end;
        self.held += bytes;
        self.fetches.insert(self.ids, Fetch { bytes, waiting: Vec::new(), dropped: false });
        Some((self.ids, extent))
    }

    /// A command that reads ahead has ended, with data if it is `good`. Gives the reads that waited for it.
    pub(super) fn arrived(&mut self, id: u32, good: bool) -> Vec<(u32, Extent)> {
        let Some(fetch) = self.fetches.remove(&id) else { return Vec::new() };
        if fetch.dropped || !good {
            self.held -= fetch.bytes;
        }
        if !fetch.dropped {
            let chunks = self.streams.iter_mut().map(|stream| &mut stream.chunks);
            for chunks in chunks {
                let Some(at) = chunks.iter().position(|chunk| chunk.fetch == id) else { continue };
                match good {
                    true => chunks[at].arrived = true,
                    false => drop(chunks.remove(at)),
                }
            }
        }
        fetch.waiting
    }

    /// The bytes of `written` are changing: prefetched data of streams that contain some of them is not used.
    pub(super) fn invalidate(&mut self, written: &Extent) {
        for index in 0..self.streams.len() {
            let stream = &self.streams[index];
            if stream.chunks.iter().any(|chunk| chunk.extent.overlaps(written)) {
                self.drop_chunks(index, |_| true);
                self.streams[index].ahead = self.streams[index].next;
            }
        }
    }

    /// Drops the chunks of stream `index` that are `chosen`. Data on the way take room until they are there.
    fn drop_chunks(&mut self, index: usize, chosen: impl Fn(&Chunk) -> bool) {
        let (fetches, held) = (&mut self.fetches, &mut self.held);
        self.streams[index].chunks.retain(|chunk| {
            if !chosen(chunk) {
                return true;
            }
            match fetches.get_mut(&chunk.fetch).filter(|_| !chunk.arrived) {
                Some(fetch) => fetch.dropped = true,
                None => *held -= chunk.extent.bytes(),
            }
            false
        });
    }

    /// Whether something is on the way.
    pub(super) fn is_busy(&self) -> bool {
        !self.fetches.is_empty()
    }
}

impl Stream {
    /// Where its chunks are.
    fn window(&self) -> Extent {
        let ends = self.chunks.front().zip(self.chunks.back());
        ends.map_or(Extent { start: 0, end: 0 }, |(first, last)| Extent {
            start: first.extent.start,
            end: last.extent.end,
        })
    }

    /// A read that begins inside what was read ahead continues the stream, too: commands of a deep queue overtake one
    /// another.
    fn is_continued_by(&self, read: &Extent) -> bool {
        let window = self.window();
        read.start == self.next || (window.start <= read.start && read.start < window.end)
    }
}
