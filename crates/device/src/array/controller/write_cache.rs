//! Dirty data of the cache, and the order in which changes reach the members.
//!
//! Every change that goes to the members - a destage, a write without write-back, a trim - holds a *lock* on its
//! range until the members have completed it. Changes with overlapping ranges go to the members one after another, in
//! the order of their locks, so the members never see them out of order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::config::DestageOrder;
use super::extent::{Extent, subtract};
use super::purpose::NUMBERS;

/// Dirty data up to `end`.
#[derive(Clone, Copy, Debug)]
struct Dirty {
    end: u64,
    /// When the bytes became dirty, counted in writes. Overwriting dirty bytes does not make them younger.
    age: u64,
}

/// A range that is changed on the members.
#[derive(Clone, Copy, Debug)]
struct Lock {
    id: u32,
    extent: Extent,
    /// The age of its oldest byte, if the data are still in the cache: this is a destage.
    age: Option<u64>,
    /// It waits for an earlier lock.
    waits: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct WriteCache {
    /// Bytes that may be dirty.
    room: u64,
    /// Bytes that are dirty or being destaged, or that writes have reserved.
    held: u64,
    /// The largest number of bytes in one destage: it stays within a multiple of them.
    unit: u64,
    order: DestageOrder,
    depth: u32,
    destages: u32,
    /// Disjoint, by start.
    dirty: BTreeMap<u64, Dirty>,
    /// Age and start of each.
    by_age: BTreeSet<(u64, u64)>,
    writes: u64,
    /// Where the last destage ended.
    pointer: u64,
    locks: Vec<Lock>,
    ids: u32,
    /// Writes that wait for room: the place of the command, and bytes.
    stalled: VecDeque<(u32, u64)>,
    /// Writes that had to wait for room so far.
    waits: u64,
}

impl WriteCache {
    pub(super) fn new(room: u64, unit: u64, order: DestageOrder, depth: u32) -> WriteCache {
        WriteCache { room, unit, order, depth, ..WriteCache::default() }
    }

    pub(super) fn room(&self) -> u64 {
        self.room
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.held
    }

    pub(super) fn waits(&self) -> u64 {
        self.waits
    }

    /// Reserves room for a write; without room the command waits for [`next_stalled`](Self::next_stalled).
    pub(super) fn reserve(&mut self, slot: u32, bytes: u64) -> bool {
        if self.stalled.is_empty() && self.fits(bytes) {
            self.held += bytes;
            return true;
        }
        self.stalled.push_back((slot, bytes));
        self.waits += 1;
        false
    }

    /// A write that is larger than the whole cache enters when the cache is empty.
    fn fits(&self, bytes: u64) -> bool {
        self.held + bytes <= self.room || self.held == 0
    }

    /// The next command that waited for room and has it now.
    pub(super) fn next_stalled(&mut self) -> Option<u32> {
        let (slot, bytes) = *self.stalled.front()?;
        if !self.fits(bytes) {
            return None;
        }
        self.stalled.pop_front();
        self.held += bytes;
        Some(slot)
    }

    /// The data of a write that has room are there.
    pub(super) fn insert(&mut self, extent: Extent) {
        self.writes += 1;
        let mut new = vec![extent];
        for (old, _) in self.dirty_in(&extent) {
            subtract(&mut new, &old);
        }
        let added: u64 = new.iter().map(Extent::bytes).sum();
        self.held -= extent.bytes() - added;
        new.into_iter().for_each(|part| self.add(part, self.writes));
    }

    fn add(&mut self, Extent { start, end }: Extent, age: u64) {
        self.dirty.insert(start, Dirty { end, age });
        self.by_age.insert((age, start));
    }

    /// The dirty data that touches `extent`, each with its age.
    fn dirty_in(&self, extent: &Extent) -> Vec<(Extent, u64)> {
        let downwards = self.dirty.range(..extent.end).rev();
        let all = downwards.map(|(&start, &Dirty { end, age })| (Extent { start, end }, age));
        // They are disjoint: the first that ends before `extent` is the last to look at.
        all.take_while(|(old, _)| old.end > extent.start).collect()
    }

    /// Takes what of `extent` is dirty out of the dirty data; gives how many bytes these were, and the oldest age.
    fn remove(&mut self, extent: &Extent) -> (u64, u64) {
        let (mut bytes, mut oldest) = (0, u64::MAX);
        let mut rest = Vec::new();
        for (old, age) in self.dirty_in(extent) {
            self.dirty.remove(&old.start);
            self.by_age.remove(&(age, old.start));
            old.without(extent, &mut rest);
            for part in rest.drain(..) {
                self.add(part, age);
            }
            bytes += old.common(extent).map_or(0, |common| common.bytes());
            oldest = oldest.min(age);
        }
        (bytes, oldest)
    }

    /// Takes out of `wanted` what the cache has.
    pub(super) fn subtract_from(&self, wanted: &mut Vec<Extent>) {
        let Some(all) = wanted.first().copied() else { return };
        for (old, _) in self.dirty_in(&all) {
            subtract(wanted, &old);
        }
        for lock in self.locks.iter().filter(|lock| lock.age.is_some()) {
            subtract(wanted, &lock.extent);
        }
    }

    /// The first byte of `extent` that is dirty or being changed on the members.
    pub(super) fn first_changed(&self, extent: &Extent) -> Option<u64> {
        let dirty = self.dirty_in(extent).into_iter().map(|(old, _)| old);
        let locked = self.locks.iter().map(|lock| lock.extent);
        dirty.chain(locked).filter_map(|old| Some(extent.common(&old)?.start)).min()
    }

    fn locked(&self, extent: &Extent) -> Option<Extent> {
        self.locks.iter().map(|lock| lock.extent).find(|locked| locked.overlaps(extent))
    }

    /// The next data to write to the members: the lock that they have now, and where they are.
    pub(super) fn next_destage(&mut self) -> Option<(u32, Extent)> {
        if self.destages == self.depth {
            return None;
        }
        let piece = match self.order {
            DestageOrder::Age => self.by_age.iter().find_map(|(_, start)| self.free_in(*start)),
            DestageOrder::Address => {
                let upwards =
                    self.dirty.range(self.pointer..).chain(self.dirty.range(..self.pointer));
                upwards.map(|(start, _)| *start).find_map(|start| self.free_in(start))
            }
        }?;
        let piece = self.joined(piece);
        let (_, age) = self.remove(&piece);
        self.pointer = piece.end;
        self.destages += 1;
        let id = self.push_lock(piece, Some(age), false);
        Some((id, piece))
    }

    /// The dirty data from `start` on that can be destaged now, inside one unit.
    fn free_in(&self, start: u64) -> Option<Extent> {
        let end = self.dirty.get(&start)?.end;
        let mut from = start;
        while from < end {
            let piece = Extent { start: from, end: end.min((from / self.unit + 1) * self.unit) };
            match self.locked(&piece) {
                None => return Some(piece),
                Some(locked) => from = locked.end,
            }
        }
        None
    }

    /// `piece` with the dirty data before and behind it in its unit.
    fn joined(&self, mut piece: Extent) -> Extent {
        let first = piece.start / self.unit * self.unit;
        let last = first + self.unit;
        for (&start, old) in self.dirty.range(first..piece.start).rev() {
            let part = Extent { start, end: piece.start };
            if old.end != piece.start || self.locked(&part).is_some() {
                break;
            }
            piece.start = start;
        }
        for (&start, old) in self.dirty.range(piece.end..last) {
            let part = Extent { start, end: old.end.min(last) };
            if start != piece.end || self.locked(&part).is_some() {
                break;
            }
            piece.end = part.end;
        }
        piece
    }

    fn push_lock(&mut self, extent: Extent, age: Option<u64>, waits: bool) -> u32 {
        self.ids = (self.ids + 1) & NUMBERS;
        self.locks.push(Lock { id: self.ids, extent, age, waits });
        self.ids
    }

    /// A command of the host changes `extent` on the members itself: its lock, and whether it may go now.
    pub(super) fn lock(&mut self, extent: Extent) -> (u32, bool) {
        let free = self.locked(&extent).is_none();
        (self.push_lock(extent, None, !free), free)
    }

    /// The data of `extent` are no longer wanted: what is dirty is not written.
    pub(super) fn discard(&mut self, extent: &Extent) {
        let (bytes, _) = self.remove(extent);
        self.held -= bytes;
    }

    /// The members have completed the change of lock `id`.
    pub(super) fn finish(&mut self, id: u32) {
        let Some(index) = self.locks.iter().position(|lock| lock.id == id) else { return };
        let lock = self.locks.remove(index);
        if lock.age.is_some() {
            self.destages -= 1;
            self.held -= lock.extent.bytes();
        }
    }

    /// The next lock that waited for an earlier one and may go now.
    pub(super) fn next_unlocked(&mut self) -> Option<u32> {
        let free = |index: usize| {
            let earlier = self.locks[..index].iter();
            let waits = self.locks[index].waits;
            waits
                && !earlier.into_iter().any(|lock| lock.extent.overlaps(&self.locks[index].extent))
        };
        let index = (0..self.locks.len()).find(|index| free(*index))?;
        self.locks[index].waits = false;
        Some(self.locks[index].id)
    }

    /// The age of the youngest data.
    pub(super) fn youngest(&self) -> u64 {
        self.writes
    }

    /// Whether all data of age `age` and older are on the members.
    pub(super) fn are_destaged(&self, age: u64) -> bool {
        let oldest = self.by_age.first().map(|(age, _)| *age);
        let locked = self.locks.iter().filter_map(|lock| lock.age).min();
        oldest.into_iter().chain(locked).all(|left| left > age)
    }

    /// Whether data are being destaged.
    pub(super) fn is_destaging(&self) -> bool {
        self.destages > 0
    }
}
