//! The pages: which are there, which are dirty, which go first.

use std::collections::{BTreeSet, HashMap, VecDeque};

use ssdyno_block::Time;
use ssdyno_engine::{Linked, NO_SLOT, SlotLinks, SlotList, SlotTable};

/// On its way from the device.
const FILLING: u8 = 1;
/// Newer than what the device has.
const DIRTY: u8 = 2;
/// On its way to the device.
const WRITING: u8 = 4;

/// The state of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// It is there.
    Here,
    /// It is on its way.
    Filling,
    /// Nothing.
    Missing,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    page: u64,
    flags: u8,
    /// Among the clean ones.
    links: SlotLinks,
    since: Time,
}

impl Linked for Node {
    #[inline]
    fn links(&mut self) -> &mut SlotLinks {
        &mut self.links
    }
}

/// All pages of the cache. Only clean ones can go, the least recently used first; where none is
/// clean, the cache holds more than it should until one is.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    capacity: usize,
    /// Only looked up in, never walked: its order is not part of any result.
    places: HashMap<u64, u32>,
    nodes: SlotTable<Node>,
    /// Clean pages, by their last use.
    clean: SlotList,
    /// Dirty pages by address, those being written left out.
    dirty: BTreeSet<u64>,
    /// Dirty pages by age; entries of pages that were written since are stale.
    by_age: VecDeque<(Time, u64)>,
    writing: usize,
}

impl Pages {
    pub(crate) fn new(capacity: usize) -> Pages {
        Pages {
            capacity,
            places: HashMap::new(),
            nodes: SlotTable::default(),
            clean: SlotList::default(),
            dirty: BTreeSet::new(),
            by_age: VecDeque::new(),
            writing: 0,
        }
    }

    /// Pages held.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Pages dirty or being written.
    pub(crate) fn unwritten(&self) -> usize {
        self.dirty.len() + self.writing
    }

    /// Pages dirty and not being written.
    pub(crate) fn dirty(&self) -> usize {
        self.dirty.len()
    }

    /// The state of `page`; it is used now.
    pub(crate) fn use_page(&mut self, page: u64) -> Found {
        let Some(place) = self.places.get(&page).copied() else { return Found::Missing };
        let flags = self.nodes[place].flags;
        if flags == 0 {
            self.clean.unlink(&mut self.nodes, place);
            self.clean.push(&mut self.nodes, place);
        }
        // A page on its way counts as a hit for the command but not for the time: the reader waits
        // for the command of another reader and sends none of its own.
        if flags & FILLING != 0 { Found::Filling } else { Found::Here }
    }

    /// True if `page` is there or on its way; this does not count as a use.
    pub(crate) fn has(&self, page: u64) -> bool {
        self.places.contains_key(&page)
    }

    /// A missing page will come from the device.
    pub(crate) fn fill(&mut self, page: u64) {
        let place = self.add(page);
        self.nodes[place].flags = FILLING;
    }

    /// It has come.
    pub(crate) fn filled(&mut self, page: u64) {
        self.clear(page, FILLING);
    }

    /// The process has changed `page`; true if it was clean before.
    pub(crate) fn make_dirty(&mut self, page: u64, now: Time) -> bool {
        let place = match self.places.get(&page).copied() {
            Some(place) => place,
            None => self.add(page),
        };
        let node = &mut self.nodes[place];
        if node.flags & DIRTY != 0 {
            return false;
        }
        let clean =
            node.flags == 0 && (node.links.newer != NO_SLOT || self.clean.newest() == place);
        node.flags |= DIRTY;
        node.since = now;
        if clean {
            self.clean.unlink(&mut self.nodes, place);
        }
        self.dirty.insert(page);
        self.by_age.push_back((now, page));
        true
    }

    /// The oldest dirty page, if it is dirty since `before` or earlier; asked again it is the next.
    pub(crate) fn take_old(&mut self, before: Time) -> Option<u64> {
        while let Some((since, page)) = self.by_age.front().copied() {
            let place = self.places.get(&page).filter(|_| self.dirty.contains(&page));
            let current = place.is_some_and(|place| self.nodes[*place].since == since);
            if current && since > before {
                return None;
            }
            self.by_age.pop_front();
            if current {
                return Some(page);
            }
        }
        None
    }

    /// Starts to write `page` and the dirty ones after it, `most` at the most; gives how many: 0 if
    /// it is not dirty, or still on its way from the last time: then its turn comes again.
    pub(crate) fn write_run(&mut self, page: u64, most: u64) -> u64 {
        let mut count = 0;
        while count < most && self.dirty.contains(&(page + count)) {
            let place = self.places.get(&(page + count)).copied();
            let Some(node) = place.map(|place| &mut self.nodes[place]) else { break };
            if node.flags & WRITING != 0 {
                break;
            }
            node.flags = (node.flags & !DIRTY) | WRITING;
            self.dirty.remove(&(page + count));
            self.writing += 1;
            count += 1;
        }
        count
    }

    /// A dirty page at `page` or after it.
    pub(crate) fn dirty_from(&self, page: u64) -> Option<u64> {
        self.dirty.range(page..).next().copied()
    }

    /// `page` is on the device.
    pub(crate) fn written(&mut self, page: u64) {
        self.writing -= 1;
        self.clear(page, WRITING);
    }

    fn clear(&mut self, page: u64, flag: u8) {
        let Some(place) = self.places.get(&page).copied() else { return };
        let node = &mut self.nodes[place];
        node.flags &= !flag;
        if flag == WRITING && node.flags & DIRTY != 0 {
            // Changed on its way: it is as old as that.
            self.by_age.push_front((node.since, page));
        }
        if node.flags == 0 {
            self.clean.push(&mut self.nodes, place);
            self.shrink();
        }
    }

    /// A page that is in no list yet.
    fn add(&mut self, page: u64) -> u32 {
        let links = SlotLinks::LOOSE;
        let place = self.nodes.insert(Node { page, flags: 0, links, since: Time::ZERO });
        self.places.insert(page, place);
        self.shrink();
        place
    }

    /// Clean pages go until the rest has room.
    fn shrink(&mut self) {
        while self.places.len() > self.capacity && !self.clean.is_empty() {
            let place = self.clean.oldest();
            self.clean.unlink(&mut self.nodes, place);
            self.places.remove(&self.nodes[place].page);
            self.nodes.free(place);
        }
    }
}
