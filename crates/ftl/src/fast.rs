//! FAST: block mapping with log blocks that all logical blocks share.
//!
//! After Lee, Park, Chung, Lee, Park and Song, "A log buffer-based flash translation layer using
//! fully-associative sector translation", ACM TECS 6(3), 2007. A write to offset 0 of a logical
//! block that is being overwritten begins the *sequential* log of the plane, and writes that
//! continue it follow there; it becomes the data block when it is full (switch merge) or when
//! another logical block begins (partial merge). All other overwrites fill the *random* log blocks
//! one after another. When the last is full, the oldest is reclaimed: every logical block that has
//! a valid page in it is merged from wherever its pages are into a fresh block (full merge).
//!
//! Where the paper merges the sequential log because a write to its logical block does not
//! continue it, here that write goes to the random log and the sequential one stays.
//!
//! `ftl.fast.log_blocks` is the share of log blocks, the sequential one included. `ftl.cleaning` and
//! `ftl.free_blocks_low` have no meaning here.

use std::collections::VecDeque;

use ssdyno_flash::FlashOp;

use crate::log_blocks::{Place, Policy, Shares, Store};
use crate::own_keys::LogBlockConfig;
use crate::{FtlConfig, ReadOnly};

#[derive(Clone, Copy, Debug)]
struct Sequential {
    /// The physical block.
    block: u32,
    /// The logical block it belongs to.
    of: u32,
}

/// The log blocks of a plane.
#[derive(Clone, Debug)]
pub(crate) struct Fast {
    sequential: Option<Sequential>,
    /// Random log blocks, the oldest in front; the last is being filled.
    random: VecDeque<u32>,
}

impl Fast {
    fn is_sequential(&self, place: Place) -> bool {
        self.sequential.is_some_and(|log| log.of == place.block)
    }

    /// Switch or partial merge of the sequential log, if there is one.
    fn end_sequential(&mut self, store: &mut Store, plane: u32, out: &mut Vec<FlashOp>) {
        let Some(Sequential { block, of }) = self.sequential.take() else { return };
        let place = Place { plane, block: of };
        // While the log existed nothing was written in place, so the valid pages of the data block
        // lie after the end of the log. Newer pages in random logs stay there.
        let rest = store.written(block)..store.pages_per_block();
        store.gather(place, rest, Some(store.data(place)), block, out);
        store.replace_data(place, block, out);
    }

    /// Collects all pages of `place` in a fresh block.
    fn merge(
        &mut self,
        store: &mut Store,
        place: Place,
        out: &mut Vec<FlashOp>,
    ) -> Result<(), ReadOnly> {
        let fresh = store.open(place.plane)?;
        store.gather(place, 0..store.pages_per_block(), None, fresh, out);
        store.replace_data(place, fresh, out);
        // The pages of the sequential log are in the fresh block now. The log holds nothing
        // valid and would otherwise block the next sequential write until its merge.
        if let Some(log) = self.sequential.take_if(|log| log.of == place.block) {
            store.erase(log.block, out);
        }
        Ok(())
    }

    /// Merges all that is valid in the oldest random log and erases it.
    fn reclaim(
        &mut self,
        store: &mut Store,
        plane: u32,
        out: &mut Vec<FlashOp>,
    ) -> Result<(), ReadOnly> {
        let oldest = *self.random.front().ok_or(ReadOnly)?;
        // A merge moves every page of its logical block out of the log, so later numbers of the
        // same logical block have no owner any more. Each logical block is merged once.
        for number in 0..store.written(oldest) {
            if let Some(block) = store.owner(oldest, number) {
                self.merge(store, Place { plane, block: block.block }, out)?;
            }
        }
        // The log leaves the queue only after all merges. If a merge fails, its valid pages are
        // still found there.
        self.random.pop_front();
        store.erase(oldest, out);
        Ok(())
    }

    /// The random log block to write to.
    fn random_log(
        &mut self,
        store: &mut Store,
        plane: u32,
        out: &mut Vec<FlashOp>,
    ) -> Result<u32, ReadOnly> {
        if let Some(log) = self.random.back()
            && store.written(*log) < store.pages_per_block()
        {
            return Ok(*log);
        }
        loop {
            // One block is for the sequential log.
            let most = store.log_blocks_most(plane).saturating_sub(1) as usize;
            if most == 0 {
                return Err(ReadOnly);
            }
            if self.random.len() < most {
                break;
            }
            // The oldest log is reclaimed because its pages had the most time to become stale.
            // Each stale page may spare the merge of a logical block.
            self.reclaim(store, plane, out)?;
        }
        let log = store.open(plane)?;
        self.random.push_back(log);
        Ok(log)
    }
}

impl Policy for Fast {
    fn logs(config: &FtlConfig) -> Option<&LogBlockConfig> {
        Some(&config.fast)
    }

    fn new(_: Shares) -> Fast {
        Fast { sequential: None, random: VecDeque::new() }
    }

    fn write(
        &mut self,
        store: &mut Store,
        place: Place,
        offset: u32,
        out: &mut Vec<FlashOp>,
    ) -> Result<(), ReadOnly> {
        let belongs = self.is_sequential(place);
        if !belongs && store.write_in_place(place, offset, out)? {
            return Ok(());
        }
        // A write to offset 0 is taken for the begin of a sequential run, as in the paper. The
        // log before it ends with a switch merge if it is full, else with a partial merge.
        if offset == 0 {
            self.end_sequential(store, place.plane, out);
            let block = store.open(place.plane)?;
            self.sequential = Some(Sequential { block, of: place.block });
        }
        if let Some(Sequential { block, of }) = self.sequential
            && of == place.block
            // The write continues the log only at its end. Any other offset would leave a gap,
            // and the log could not become the data block without copies.
            && store.written(block) == offset
        {
            store.program(place, offset, (block, offset), out);
            if offset + 1 == store.pages_per_block() {
                self.end_sequential(store, place.plane, out);
            }
            return Ok(());
        }
        let log = self.random_log(store, place.plane, out)?;
        store.program(place, offset, (log, store.written(log)), out);
        Ok(())
    }

    fn trimmed(&mut self, store: &mut Store, place: Place, out: &mut Vec<FlashOp>) {
        store.drop_dead_data(place, out);
    }

    fn merge_one(&mut self, store: &mut Store, plane: u32, out: &mut Vec<FlashOp>) -> bool {
        let before = out.len();
        if self.random.is_empty() {
            self.end_sequential(store, plane, out);
        } else {
            // Without a free block there is no merge; the next write will find out, too.
            let _ = self.reclaim(store, plane, out);
        }
        out.len() > before
    }

    fn relocate(&mut self, to: &dyn Fn(u32) -> u32) {
        for log in &mut self.random {
            *log = to(*log);
        }
        if let Some(log) = &mut self.sequential {
            log.block = to(log.block);
        }
    }

    fn settling_writes(shares: Shares) -> u64 {
        // The logs are filled three times over.
        3 * u64::from(shares.log_blocks) * u64::from(shares.pages_per_block)
    }

    /// The block map (4 B an entry), and for each page of a log the logical page (4 B).
    fn ram_bytes(shares: Shares) -> u64 {
        let logs = u64::from(shares.log_blocks) * u64::from(shares.pages_per_block);
        4 * (u64::from(shares.logical_blocks) + logs)
    }
}
