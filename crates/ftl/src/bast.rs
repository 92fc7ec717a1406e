//! BAST: block mapping with a log block for each logical block that is being overwritten.
//!
//! After Kim, Kim, Noh, Min and Cho, "A space-efficient flash translation layer for CompactFlash
//! systems", IEEE Transactions on Consumer Electronics 48(2), 2002. Overwrites of a logical block
//! go to its log block in the order in which they arrive, and a small page map gives the location
//! of each page. A log that holds its pages in order becomes the data block: at once if it is full
//! (*switch merge*), after the rest of the data block is copied to it else (*partial merge*). Any
//! other is merged with its data block into a fresh block (*full merge*). A log is merged when it
//! is full, or when another logical block needs one and it is the least recently written.
//!
//! `ftl.bast.log_blocks` is the share of log blocks. `ftl.cleaning` and `ftl.free_blocks_low` have no
//! meaning here.

use std::collections::VecDeque;

use ssdyno_flash::FlashOp;

use crate::log_blocks::{Place, Policy, Shares, Store};
use crate::map::NONE;
use crate::own_keys::LogBlockConfig;
use crate::{FtlConfig, ReadOnly};

#[derive(Clone, Copy, Debug)]
struct Log {
    /// The physical block.
    block: u32,
    /// The logical block it belongs to.
    of: u32,
    /// Every page so far went to its own offset.
    in_order: bool,
    /// Count of writes of the plane when this was last written.
    used: u64,
}

/// The log blocks of a plane.
#[derive(Clone, Debug)]
pub(crate) struct Bast {
    shares: Shares,
    logs: Vec<Log>,
    /// Index in `logs` of each logical block's; [`NONE`] where it has none.
    log_of: Vec<u32>,
    /// Every write, as its count and logical block, the oldest in front: those that are not the
    /// last of an existing log are stale.
    uses: VecDeque<(u64, u32)>,
    writes: u64,
}

impl Bast {
    fn log(&self, place: Place) -> Option<usize> {
        let index = self.log_of[place.block as usize];
        (index != NONE).then_some(index as usize)
    }

    fn remove(&mut self, index: usize) -> Log {
        let log = self.logs.swap_remove(index);
        self.log_of[log.of as usize] = NONE;
        // `swap_remove` puts the last log into the gap. Its logical block must find it under the
        // new index; the others keep theirs, so the cost does not grow with the number of logs.
        if let Some(moved) = self.logs.get(index) {
            self.log_of[moved.of as usize] = index as u32;
        }
        log
    }

    fn merge(
        &mut self,
        store: &mut Store,
        plane: u32,
        index: usize,
        out: &mut Vec<FlashOp>,
    ) -> Result<(), ReadOnly> {
        let Log { block: log, of, in_order, .. } = self.logs[index];
        let place = Place { plane, block: of };
        // Each page of the log lies at its own offset. The log can become the data block after
        // the pages behind its end are copied to it: a switch or partial merge saves the copies
        // of the others.
        if in_order {
            store.gather(place, store.written(log)..store.pages_per_block(), None, log, out);
            store.replace_data(place, log, out);
        } else {
            let fresh = store.open(plane)?;
            store.gather(place, 0..store.pages_per_block(), None, fresh, out);
            store.erase(log, out);
            store.replace_data(place, fresh, out);
        }
        self.remove(index);
        Ok(())
    }

    /// The log that was last written longest ago.
    fn oldest(&mut self) -> Option<usize> {
        loop {
            let (used, of) = *self.uses.front()?;
            // A log that was written again has a later entry in the queue. Stale entries are
            // dropped when they reach the front, so a write costs constant time and needs no
            // search for the old entry.
            if let Some(log) = self.last_written_at(used, of) {
                return Some(log);
            }
            self.uses.pop_front();
        }
    }

    /// The log of logical block `of`, if write number `used` was the last to it.
    fn last_written_at(&self, used: u64, of: u32) -> Option<usize> {
        let log = self.log_of[of as usize] as usize;
        self.logs.get(log).is_some_and(|log| log.used == used).then_some(log)
    }

    /// Notes a write to `logs[index]`.
    fn note_use(&mut self, index: usize) {
        self.writes += 1;
        self.logs[index].used = self.writes;
        self.uses.push_back((self.writes, self.logs[index].of));
        if self.uses.len() > 2 * self.shares.log_blocks as usize + 64 {
            let mut uses = std::mem::take(&mut self.uses);
            uses.retain(|(used, of)| self.last_written_at(*used, *of).is_some());
            self.uses = uses;
        }
    }

    /// Opens a log for `place`, merging others as long as there are too many.
    fn open(
        &mut self,
        store: &mut Store,
        place: Place,
        out: &mut Vec<FlashOp>,
    ) -> Result<usize, ReadOnly> {
        loop {
            let most = store.log_blocks_most(place.plane) as usize;
            if most == 0 {
                return Err(ReadOnly);
            }
            // `most` shrinks when blocks go bad. More than one log may be too many then, hence
            // the loop. The same loop makes a plane read-only only after its last log has been
            // given up.
            if self.logs.len() < most {
                break;
            }
            let oldest = self.oldest().ok_or(ReadOnly)?;
            self.merge(store, place.plane, oldest, out)?;
        }
        let block = store.open(place.plane)?;
        self.log_of[place.block as usize] = self.logs.len() as u32;
        self.logs.push(Log { block, of: place.block, in_order: true, used: 0 });
        Ok(self.logs.len() - 1)
    }
}

impl Policy for Bast {
    fn logs(config: &FtlConfig) -> Option<&LogBlockConfig> {
        Some(&config.bast)
    }

    fn new(shares: Shares) -> Bast {
        let log_of = vec![NONE; shares.logical_blocks as usize];
        Bast { shares, logs: Vec::new(), log_of, uses: VecDeque::new(), writes: 0 }
    }

    fn write(
        &mut self,
        store: &mut Store,
        place: Place,
        offset: u32,
        out: &mut Vec<FlashOp>,
    ) -> Result<(), ReadOnly> {
        if let Some(index) = self.log(place)
            // A full log is merged here and not when its last page was written: only the next
            // write to the logical block needs the room. Until then the log may still lose pages
            // that need no copy.
            && store.written(self.logs[index].block) == store.pages_per_block()
        {
            self.merge(store, place.plane, index, out)?;
        }
        let index = match self.log(place) {
            Some(index) => index,
            None if store.write_in_place(place, offset, out)? => return Ok(()),
            None => self.open(store, place, out)?,
        };
        self.note_use(index);
        let number = store.written(self.logs[index].block);
        let log = &mut self.logs[index];
        // One page out of place is enough to lose the switch merge. The flag never becomes true
        // again, because pages of a log are programmed upwards and none can move.
        log.in_order &= number == offset;
        let Log { block, in_order, .. } = *log;
        store.program(place, offset, (block, number), out);
        if in_order && number + 1 == store.pages_per_block() {
            self.merge(store, place.plane, index, out)?;
        }
        Ok(())
    }

    fn trimmed(&mut self, store: &mut Store, place: Place, out: &mut Vec<FlashOp>) {
        if let Some(index) = self.log(place)
            // A log without a valid page would cost a merge that copies nothing but the data
            // block. It is given up for one erase instead.
            && store.blocks.valid(self.logs[index].block) == 0
        {
            let log = self.remove(index);
            store.erase(log.block, out);
        }
        store.drop_dead_data(place, out);
    }

    fn merge_one(&mut self, store: &mut Store, plane: u32, out: &mut Vec<FlashOp>) -> bool {
        let Some(oldest) = self.oldest() else { return false };
        self.merge(store, plane, oldest, out).is_ok()
    }

    fn relocate(&mut self, to: &dyn Fn(u32) -> u32) {
        for log in &mut self.logs {
            log.block = to(log.block);
        }
    }

    fn settling_writes(shares: Shares) -> u64 {
        // Nearly every write needs a log of its own: all logs are replaced ten times.
        10 * u64::from(shares.log_blocks)
    }

    /// The block map (4 B an entry); for each log its logical and physical block (8 B) and a map
    /// of its pages (2 B each).
    fn ram_bytes(shares: Shares) -> u64 {
        let log = 8 + 2 * u64::from(shares.pages_per_block);
        4 * u64::from(shares.logical_blocks) + u64::from(shares.log_blocks) * log
    }
}
