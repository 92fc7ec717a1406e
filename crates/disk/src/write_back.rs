//! Data that the host wrote and that wait in the cache for the arm.

use std::collections::VecDeque;

use crate::cache::Extent;
use crate::config::{CacheTable, DiskTable};
use crate::layout::Run;
use crate::schedule::Job;

/// Extents that wait, and what waits for them.
#[derive(Debug, Default)]
pub(crate) struct WriteBack {
    /// The limit of waiting blocks, and the waiting blocks, including those that the arm is
    /// writing.
    room: u64,
    held: u64,
    extents_most: u32,
    extents: u32,
    /// A write that continues an extent joins it up to this number of blocks.
    join_most: u64,
    jobs: Vec<Job>,
    /// The extent that the arm is writing.
    under_way: Option<Job>,
    /// Commands without room, in order, with what they write.
    stalled: VecDeque<(u32, Extent)>,
    /// Commands that had to wait for room so far.
    waits: u64,
    /// Flushes, each with the number of the last extent before it.
    flushes: Vec<(u32, u64)>,
    arrivals: u64,
    ids: u32,
}

impl WriteBack {
    pub(crate) fn new(disk: &DiskTable, cache: Option<&CacheTable>) -> WriteBack {
        WriteBack {
            room: cache.map_or(0, |cache| cache.write_back.0 / disk.sector.0),
            extents_most: cache.map_or(0, |cache| cache.write_extents),
            join_most: cache.map_or(0, |cache| cache.segment.0 / disk.sector.0),
            ..WriteBack::default()
        }
    }

    /// Bytes that wait, in blocks of `sector_bytes`.
    pub(crate) fn held_bytes(&self, sector_bytes: u64) -> u64 {
        self.held * sector_bytes
    }

    /// Commands that had to wait for room so far, of blocks or of extents.
    pub(crate) fn waits(&self) -> u64 {
        self.waits
    }

    /// False: every write goes to the medium before it completes.
    pub(crate) fn is_on(&self) -> bool {
        self.room > 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.extents == 0
    }

    /// A command waits for room: writing back goes before the commands of the host.
    pub(crate) fn is_pressed(&self) -> bool {
        !self.stalled.is_empty()
    }

    /// The extents that wait for the arm, in order of arrival.
    pub(crate) fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Whether one extent has all of `wanted`.
    pub(crate) fn has(&self, wanted: &Extent) -> bool {
        let holds = |job: &Job| Extent::new(job.block, job.blocks).contains(wanted);
        self.under_way.iter().chain(&self.jobs).any(holds)
    }

    /// Room for a write; without, it waits and gets room from [`next_stalled`](Self::next_stalled).
    pub(crate) fn reserve(&mut self, slot: u32, extent: &Extent) -> bool {
        if self.stalled.is_empty() && self.fits(extent) {
            self.hold(extent);
            return true;
        }
        self.stalled.push_back((slot, *extent));
        self.waits += 1;
        false
    }

    /// A write that is larger than the whole cache enters when the cache is empty.
    fn fits(&self, extent: &Extent) -> bool {
        let blocks = extent.end - extent.start;
        let room = self.held + blocks <= self.room && self.extents < self.extents_most;
        room || self.extents == 0
    }

    fn hold(&mut self, extent: &Extent) {
        self.held += extent.end - extent.start;
        self.extents += 1;
    }

    /// A command that waited for room and has it now.
    pub(crate) fn next_stalled(&mut self) -> Option<u32> {
        let (slot, extent) = *self.stalled.front()?;
        if !self.fits(&extent) {
            return None;
        }
        self.stalled.pop_front();
        self.hold(&extent);
        Some(slot)
    }

    /// The data are there. They overwrite or continue an extent that waits, or become one.
    pub(crate) fn insert(&mut self, extent: Extent, run: impl FnOnce(u64) -> Run) {
        let blocks = extent.end - extent.start;
        self.arrivals += 1;
        for job in &mut self.jobs {
            let held = Extent::new(job.block, job.blocks);
            if held.contains(&extent) {
                self.held -= blocks;
                self.extents -= 1;
                return;
            }
            if held.end == extent.start && u64::from(job.blocks) + blocks <= self.join_most {
                job.blocks += blocks as u32;
                self.extents -= 1;
                return;
            }
        }
        self.ids = self.ids.wrapping_add(1);
        self.jobs.push(Job {
            id: self.ids,
            write: true,
            block: extent.start,
            blocks: blocks as u32,
            run: run(extent.start),
            order: self.arrivals,
        });
    }

    /// The arm begins to write extent number `index` of [`jobs`](Self::jobs).
    pub(crate) fn take(&mut self, index: usize) -> Job {
        let job = self.jobs.remove(index);
        self.under_way = Some(job);
        job
    }

    /// The extent is on the medium; gives the flushes that complete with it.
    pub(crate) fn finish(&mut self, id: u32) -> Vec<u32> {
        if let Some(job) = self.under_way.take_if(|job| job.id == id) {
            self.held -= u64::from(job.blocks);
            self.extents -= 1;
        }
        if self.flushes.is_empty() {
            return Vec::new();
        }
        let oldest = self.jobs.iter().map(|job| job.order).min().unwrap_or(u64::MAX);
        let through = |flush: &mut (u32, u64)| flush.1 < oldest;
        self.flushes.extract_if(.., through).map(|(slot, _)| slot).collect()
    }

    /// A flush; true where nothing has to be waited for.
    pub(crate) fn flush(&mut self, slot: u32) -> bool {
        if self.jobs.is_empty() && self.under_way.is_none() {
            return true;
        }
        self.flushes.push((slot, self.arrivals));
        false
    }
}
