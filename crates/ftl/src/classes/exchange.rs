//! Free blocks that go from class to class.

use ssdyno_flash::FlashOp;

use super::{Classes, Holder, Member};
use crate::WearLevelling;
use crate::page_map::PageMap;

impl Classes {
    /// After a call into the page map of `class`, which worked on `plane` and appended the operations
    /// from number `from` on: they get pages of the device, and where blocks were erased, blocks
    /// change places.
    #[inline]
    pub(super) fn settle(&mut self, class: usize, plane: u32, from: usize, out: &mut Vec<FlashOp>) {
        let erased = self.place_all(class, from, out);
        // Wear changes only by erases, and blocks change places only because of wear or bad
        // blocks. Most calls erase nothing and end here.
        if erased && (self.mortal || self.wear_levelling != WearLevelling::Off) {
            self.after_erase(class, plane, out);
        }
    }

    #[cold]
    fn after_erase(&mut self, class: usize, plane: u32, out: &mut Vec<FlashOp>) {
        if self.wear_levelling == WearLevelling::Static {
            self.level_wear(class, plane, out);
        }
        if self.mortal {
            self.keep_shares(plane, out);
        }
        if self.wear_levelling != WearLevelling::Off {
            self.take_least_worn(class, plane);
        }
    }

    /// Static wear levelling between classes: what lags behind the most worn block of the plane is
    /// moved also where `class` alone is written. Its own laggards `class` has moved by now.
    fn level_wear(&mut self, class: usize, plane: u32, out: &mut Vec<FlashOp>) {
        let most = self.members.iter().map(|member| member.map.blocks.erases_most(plane)).max();
        for other in 0..self.members.len() {
            let map = &mut self.members[other].map;
            // Laggards of a class are measured from the most worn block of the whole plane.
            // Compared with its own blocks only, a class that is seldom written would look level
            // while it falls behind.
            map.blocks.compare_with(plane, most.unwrap_or(0));
            let lag = map.blocks.laggard(plane).map_or(0, |(_, lag)| lag);
            if other != class && lag > map.config.wear_threshold {
                let from = out.len();
                // Otherwise another block would move as a whole while the begun victim, which is
                // nearly empty, waits. That costs copies; the mapping would be right in either
                // case.
                map.finish_cleaning(plane, out);
                map.level_wear(plane, out);
                self.place_all(other, from, out);
            }
        }
    }

    /// Where blocks have gone bad, every class keeps its share of those that are left.
    pub(super) fn keep_shares(&mut self, plane: u32, out: &mut Vec<FlashOp>) {
        let classes = self.members.len();
        let range = plane as usize * classes..(plane as usize + 1) * classes;
        let good = |member: &Member| good(&member.map, plane);
        let left: u32 = self.members.iter().map(good).sum();
        let targets = &mut self.targets[range.clone()];
        // Targets only shrink. They follow the blocks that are left, one block at a time, until
        // both sums agree or no class can spare a block.
        while targets.iter().sum::<u32>() > left && self.sharing.shed(targets) {}
        // Every turn brings two classes nearer to their targets.
        loop {
            let targets = &self.targets[range.clone()];
            let pairs = || self.members.iter().map(good).zip(targets).enumerate();
            let short = pairs().find(|(_, (good, target))| good < target);
            let rich = pairs().find(|(_, (good, target))| good > target);
            let (Some((to, _)), Some((from, _))) = (short, rich) else { return };
            if !self.give(from, to, plane, out) {
                return;
            }
        }
    }

    /// `class` has no block left to open in `plane`, because several went bad at once: the class with the largest
    /// surplus above its own need gives one, if there is such a class.
    #[cold]
    pub(super) fn beg(&mut self, class: usize, plane: u32, out: &mut Vec<FlashOp>) -> bool {
        loop {
            let above = |other: usize| {
                good(&self.members[other].map, plane).saturating_sub(self.sharing.least(other))
            };
            let others = (0..self.members.len()).filter(|other| *other != class);
            let rich = others.filter(|other| above(*other) > 0);
            let Some(from) = rich.max_by_key(|other| above(*other)) else { return false };
            let had = good(&self.members[from].map, plane);
            if self.give(from, class, plane, out) {
                return true;
            }
            // The block that it cleaned to give may have gone bad itself: then it tries once more.
            // Each further turn needs a block of the giver that went bad, and there are finitely
            // many, so the loop ends.
            if good(&self.members[from].map, plane) == had {
                return false;
            }
        }
    }

    /// Moves a free block of `plane` from class `from` to class `to`, which gives a bad block for
    /// it; false if there is none to give. The giver keeps one for its own cleaning.
    fn give(&mut self, from: usize, to: usize, plane: u32, out: &mut Vec<FlashOp>) -> bool {
        let first = out.len();
        // Only a free block can change its class: nothing refers to its pages, so no map has to
        // change.
        clean_to_give(&mut self.members[from].map, plane, out);
        self.place_all(from, first, out);
        let Some((giver, taker)) = two(&mut self.members, from, to) else { return false };
        if giver.map.blocks.free_count(plane) < 2 {
            return false;
        }
        let Some(numbers) = giver.map.blocks.give_free(&mut taker.map.blocks, plane) else {
            return false;
        };
        self.swap_places((from, to), numbers);
        true
    }

    /// The block that `class` writes in next is the least worn of all free blocks of `plane`.
    fn take_least_worn(&mut self, class: usize, plane: u32) {
        let wear = |member: &Member| member.map.blocks.next_free_wear(plane);
        let Some(own) = wear(&self.members[class]) else { return };
        let others = (0..).zip(&self.members).filter_map(|(other, m)| Some((wear(m)?, other)));
        let Some((least, other)) = others.min() else { return };
        // Equal wear keeps the own block. An exchange without gain would happen at nearly every
        // erase.
        if least >= own {
            return;
        }
        let Some((mine, theirs)) = two(&mut self.members, class, other) else { return };
        if let Some(numbers) = mine.map.blocks.trade_free(&mut theirs.map.blocks, plane) {
            self.swap_places((class, other), numbers);
        }
    }

    /// Blocks `numbers` of two classes stand for each other's block of the device from now on.
    fn swap_places(&mut self, classes: (usize, usize), numbers: (u32, u32)) {
        let Some((a, b)) = two(&mut self.members, classes.0, classes.1) else { return };
        let (first, second) =
            (&mut a.places[numbers.0 as usize], &mut b.places[numbers.1 as usize]);
        std::mem::swap(first, second);
        // Both directions must agree: `places` turns numbers of a class into blocks of the
        // device, and `holders` turns them back for the caller's questions.
        self.holders[*first as usize] = Holder { class: classes.0 as u32, number: numbers.0 };
        self.holders[*second as usize] = Holder { class: classes.1 as u32, number: numbers.1 };
    }
}

/// Cleans until two blocks of `plane` are free, always those with the fewest valid pages.
fn clean_to_give(map: &mut PageMap, plane: u32, out: &mut Vec<FlashOp>) {
    if map.blocks.free_count(plane) < 2 {
        map.finish_cleaning(plane, out);
    }
    // Each turn gains a page at least.
    while map.blocks.free_count(plane) < 2 {
        let Some(victim) = map.choose_victim(plane, true) else { return };
        let valid = map.blocks.valid(victim);
        let gains = valid < map.limits.data_pages;
        if !gains || !map.clean(plane, victim, out) {
            return map.blocks.put_back(victim);
        }
        map.victims.count(valid, map.limits.data_pages);
    }
}

/// Blocks of `plane` that are not bad.
fn good(map: &PageMap, plane: u32) -> u32 {
    map.blocks.blocks_per_plane() - map.blocks.bad_count(plane)
}

/// Two members at once; `None` if they are the same.
fn two(members: &mut [Member], a: usize, b: usize) -> Option<(&mut Member, &mut Member)> {
    let [a, b] = members.get_disjoint_mut([a, b]).ok()?;
    Some((a, b))
}

#[cfg(test)]
mod tests;
