//! The contents of the drive's memory: segments of read data, and extents that wait to be written.

use ssdyno_block::Time;

use crate::config::{CacheTable, DiskTable};
use crate::layout::Run;
use crate::mechanics::Mechanics;

/// Blocks `start` to `end` (exclusive) of the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Extent {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Extent {
    pub(crate) fn new(start: u64, blocks: u32) -> Extent {
        Extent { start, end: start + u64::from(blocks) }
    }

    /// The comparison has no branch: between extents in any order the processor would predict every other one wrong.
    pub(crate) fn contains(&self, other: &Extent) -> bool {
        (self.start <= other.start) & (other.end <= self.end)
    }

    fn overlaps(&self, other: &Extent) -> bool {
        self.start < other.end && other.start < self.end
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    holds: Extent,
    used: u64,
}

/// Reading ahead: the head stays where the last read ended and goes on. It is not an event for each
/// sector: where it has come to follows from the time, when somebody asks.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    segment: usize,
    /// The block that passes next, and when it begins to.
    next: u64,
    at: Time,
    /// Where it ends.
    limit: u64,
    /// The contiguous data from `next` on.
    run: Run,
}

impl Ahead {
    /// The head leaves for the track of the next block at `at`, and waits for the block there.
    fn go_on(&mut self, at: Time, mechanics: &mut Mechanics) {
        self.run = mechanics.layout.run(self.next);
        let arrived = mechanics.move_to(at, &self.run.track, false);
        self.at = mechanics.begins(arrived, &self.run);
    }
}

/// Segments of reads.
#[derive(Clone, Debug)]
pub(crate) struct ReadCache {
    segments: Vec<Segment>,
    /// Blocks of a segment, and how many are read ahead.
    size: u64,
    distance: u64,
    ahead: Option<Ahead>,
    clock: u64,
}

/// Stretches of time in which the channel read ahead.
pub(crate) type Stretches = Vec<(Time, Time)>;

impl ReadCache {
    pub(crate) fn new(disk: &DiskTable, cache: Option<&CacheTable>) -> ReadCache {
        let blocks = |bytes: u64| bytes / disk.sector.0;
        ReadCache {
            segments: vec![Segment::default(); cache.map_or(0, |cache| cache.segments as usize)],
            size: cache.map_or(0, |cache| blocks(cache.segment.0)),
            distance: cache.map_or(0, |cache| blocks(cache.read_ahead.0)),
            ahead: None,
            clock: 0,
        }
    }

    /// Whether a segment has all of `wanted`. The search checks all of them: with random reads, which never hit, a
    /// search that ends early took 15 % of the time of a simulation, because of mispredicted branches.
    pub(crate) fn has(&self, wanted: &Extent) -> bool {
        self.segments.iter().fold(false, |any, segment| any | segment.holds.contains(wanted))
    }

    /// The length of the read-ahead after `read`: the rest of the segment keeps the requested data.
    fn limit(&self, read: &Extent, mechanics: &Mechanics) -> u64 {
        (read.end + self.distance).min(mechanics.layout.blocks)
    }

    /// Marks a hit at `at`. One in the stream that is read ahead lets the stream go on.
    pub(crate) fn hit(&mut self, wanted: &Extent, at: Time, mechanics: &mut Mechanics) {
        self.clock += 1;
        let clock = self.clock;
        let found = self.segments.iter_mut().enumerate().find(|(_, s)| s.holds.contains(wanted));
        let Some((index, segment)) = found else { return };
        segment.used = clock;
        let limit = self.limit(wanted, mechanics);
        let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.segment == index) else {
            return;
        };
        let limit = limit.max(ahead.limit);
        // The drive goes on once half of what it had read ahead is used up; going on for every hit would
        // cost a turn each time.
        if ahead.next >= ahead.limit {
            // Where a command still uses the arm, its end decides how far to go on.
            let free = ahead.at <= at;
            if free && limit > ahead.next && limit - ahead.next >= self.distance / 2 {
                ahead.go_on(at, mechanics);
                ahead.limit = limit;
            }
        } else {
            ahead.limit = limit;
        }
    }

    /// Brings what is read ahead to `now`.
    pub(crate) fn advance(&mut self, now: Time, mechanics: &mut Mechanics, busy: &mut Stretches) {
        let Some(ahead) = &mut self.ahead else { return };
        while ahead.next < ahead.limit && ahead.at < now {
            let left = u64::from(ahead.run.length).min(ahead.limit - ahead.next) as u32;
            let end = ahead.at + mechanics.passes(&ahead.run, left);
            if end > now {
                let passed = sectors_in(&ahead.run, now - ahead.at, left, mechanics);
                if passed > 0 {
                    step(ahead, passed, mechanics, busy);
                }
                break;
            }
            step(ahead, left, mechanics, busy);
            if ahead.next < ahead.limit && ahead.run.length == 0 {
                ahead.go_on(ahead.at, mechanics);
            }
        }
        let (index, next) = (ahead.segment, ahead.next);
        self.grow(index, next);
    }

    fn grow(&mut self, index: usize, next: u64) {
        let holds = &mut self.segments[index].holds;
        holds.end = holds.end.max(next);
        holds.start = holds.start.max(holds.end.saturating_sub(self.size));
    }

    /// Where `wanted` goes on with what is being read ahead at `now`: when its first block and its
    /// last have passed. The stream then stands behind it.
    pub(crate) fn goes_on(
        &mut self,
        wanted: &Extent,
        now: Time,
        mechanics: &mut Mechanics,
        busy: &mut Stretches,
    ) -> Option<(Time, Time)> {
        self.advance(now, mechanics, busy);
        let ahead = self.ahead.as_mut()?;
        let held = self.segments[ahead.segment].holds;
        if wanted.start < held.start || wanted.start > ahead.next || wanted.end <= ahead.next {
            return None;
        }
        if ahead.next >= ahead.limit && ahead.at < now {
            // It had ended; the block comes by once in a turn.
            ahead.go_on(now, mechanics);
        } else if ahead.run.length == 0 {
            ahead.go_on(ahead.at, mechanics);
        }
        let first = if wanted.start < ahead.next {
            now
        } else {
            ahead.at + mechanics.passes(&ahead.run, 1)
        };
        ahead.limit = ahead.limit.max(wanted.end);
        while ahead.next < wanted.end {
            let left = u64::from(ahead.run.length).min(wanted.end - ahead.next) as u32;
            step(ahead, left, mechanics, busy);
            if ahead.run.length == 0 && ahead.next < wanted.end {
                ahead.go_on(ahead.at, mechanics);
            }
        }
        let end = ahead.at;
        let index = ahead.segment;
        ahead.limit = wanted.end;
        self.grow(index, wanted.end);
        self.clock += 1;
        self.segments[index].used = self.clock;
        Some((first, end))
    }

    /// Ends reading ahead at `now`; gives the time from which the arm is free.
    pub(crate) fn stop(
        &mut self,
        now: Time,
        mechanics: &mut Mechanics,
        busy: &mut Stretches,
    ) -> Time {
        self.advance(now, mechanics, busy);
        let Some(mut ahead) = self.ahead.take() else { return now };
        let under_way = ahead.next < ahead.limit && ahead.at < now && ahead.run.length > 0;
        if !under_way {
            return now;
        }
        // A sector that has begun is read to its end.
        step(&mut ahead, 1, mechanics, busy);
        self.grow(ahead.segment, ahead.next);
        ahead.at
    }

    /// `read`, which begins with `run`, was read from the medium, up to `at`: a segment takes it, and the drive reads ahead.
    pub(crate) fn fill(&mut self, read: &Extent, run: &Run, at: Time, mechanics: &Mechanics) {
        let limit = self.limit(read, mechanics);
        if let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.next == read.end) {
            ahead.limit = limit;
            return;
        }
        let Some(index) = self.take_segment(read) else { return };
        // Without a block behind it there is nothing to read ahead, but the stream can be gone on with.
        let last = (read.end - read.start - 1) as u32;
        let run = match last < run.length {
            true => Run { sector: run.sector + last, length: 0, ..*run },
            false => Run { length: 0, ..mechanics.layout.run(read.end - 1) },
        };
        self.ahead = Some(Ahead { segment: index, next: read.end, at, limit, run });
    }

    /// A segment that holds blocks which are written over is given up whole, as drives do: it has one
    /// range, and is not cut in two. Data that stay readable take a segment of their own.
    pub(crate) fn written(&mut self, written: &Extent, keep: bool) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            let ahead = self.ahead.as_ref().filter(|ahead| ahead.segment == index);
            let reaches = ahead.is_some_and(|a| a.next <= written.end && written.start < a.limit);
            if segment.holds.overlaps(written) || reaches {
                *segment = Segment::default();
                self.ahead.take_if(|ahead| ahead.segment == index);
            }
        }
        if keep {
            let taken = self.take_segment(written);
            self.ahead.take_if(|ahead| Some(ahead.segment) == taken);
        }
    }

    /// Whether a write touches or continues what a segment holds.
    pub(crate) fn touches(&self, written: &Extent) -> bool {
        let touches = |s: &Segment| s.holds.start <= written.start && written.start <= s.holds.end;
        self.segments.iter().any(|s| s.holds.end > 0 && touches(s))
    }

    /// The segment that was not used for longest takes `extent`, or the end of it.
    fn take_segment(&mut self, extent: &Extent) -> Option<usize> {
        self.clock += 1;
        let oldest = self.segments.iter_mut().enumerate().min_by_key(|(_, s)| s.used);
        let (index, segment) = oldest?;
        let start = extent.start.max(extent.end.saturating_sub(self.size));
        *segment = Segment { holds: Extent { start, end: extent.end }, used: self.clock };
        Some(index)
    }
}

/// `sectors` of the run pass.
fn step(ahead: &mut Ahead, sectors: u32, mechanics: &Mechanics, busy: &mut Stretches) {
    let end = ahead.at + mechanics.passes(&ahead.run, sectors);
    match busy.last_mut().filter(|last| last.1 == ahead.at) {
        Some(last) => last.1 = end,
        None => busy.push((ahead.at, end)),
    }
    ahead.at = end;
    ahead.next += u64::from(sectors);
    ahead.run.sector += sectors;
    ahead.run.length -= sectors;
}

/// How many whole sectors of `run`, below `most`, pass in `time`.
fn sectors_in(run: &Run, time: Time, most: u32, mechanics: &Mechanics) -> u32 {
    let turn = mechanics.layout.turn();
    let guess = time.as_ps() * u64::from(run.track.sectors) / turn;
    let mut sectors = (guess as u32).min(most - 1);
    // Sectors are not all of the same number of picoseconds.
    while sectors > 0 && mechanics.passes(run, sectors) > time {
        sectors -= 1;
    }
    sectors
}
