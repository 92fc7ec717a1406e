//! Which block is cleaned next.

use ssdyno_engine::Rng;

use crate::{Blocks, Cleaning};

impl Cleaning {
    /// Of a plane with `blocks`, how many of the blocks that were closed first are looked at; 0 =
    /// without regard to when they were closed. `window` is `cleaning_window`.
    pub(crate) fn oldest_looked_at(self, window: u32, blocks: u32) -> u32 {
        match self {
            Cleaning::Greedy | Cleaning::Random | Cleaning::DChoices => 0,
            Cleaning::Fifo => 1,
            Cleaning::CostBenefit => u32::MAX,
            Cleaning::Windowed => (if window == 0 { blocks / 8 } else { window }).max(1),
        }
    }

    /// The victim in `plane`, taken out of the closed blocks' order; `None` without closed blocks.
    pub(crate) fn victim(
        self,
        blocks: &mut Blocks,
        plane: u32,
        window: u32,
        rng: &mut Rng,
    ) -> Option<u32> {
        match self {
            Cleaning::Greedy => blocks.least_valid(plane),
            Cleaning::Random => draw(blocks, plane, 1, rng),
            Cleaning::DChoices => draw(blocks, plane, if window == 0 { 10 } else { window }, rng),
            // How many are looked at was said when `blocks` was made.
            Cleaning::Fifo => blocks.take_best(plane, |_, age| age as f64),
            Cleaning::Windowed => blocks.take_best(plane, |valid, _| -f64::from(valid)),
            Cleaning::CostBenefit => {
                let data_pages = f64::from(blocks.data_pages().max(1));
                // An empty block has no cost to divide by. The small divisor makes its benefit
                // so large that it comes before blocks with valid pages.
                blocks.take_best(plane, |valid, age| {
                    let used = f64::from(valid) / data_pages;
                    (1.0 - used) * age as f64 / (2.0 * used).max(1e-9)
                })
            }
        }
    }
}

/// The best of `d` closed blocks drawn at random.
fn draw(blocks: &Blocks, plane: u32, d: u32, rng: &mut Rng) -> Option<u32> {
    // Nearly all blocks are closed when cleaning runs; where they are not, look at them in turn.
    let n = blocks.blocks_per_plane();
    let mut best: Option<(u32, u32)> = None;
    // The draws are independent, so one block may be drawn twice. In the mean-field model of Van
    // Houdt (SIGMETRICS 2013) the number of blocks is infinite, and this makes no difference.
    for _ in 0..d {
        // 32 tries find a closed block with near certainty if most blocks are closed. The search
        // in turn ends the call if few are, and it makes the number of steps finite.
        let start = rng.below(u64::from(n)) as u32;
        let tries = (0..32).map(|_| rng.below(u64::from(n)) as u32);
        let in_turn = (0..n).map(|i| (start + i) % n);
        let block = std::iter::once(start)
            .chain(tries)
            .chain(in_turn)
            .map(|index| plane * n + index)
            .find(|block| blocks.is_closed(*block))?;
        let valid = blocks.valid(block);
        if best.is_none_or(|(least, _)| valid < least) {
            best = Some((valid, block));
        }
    }
    best.map(|(_, block)| block)
}
