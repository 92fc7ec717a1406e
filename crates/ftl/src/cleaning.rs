//! Which block is cleaned next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_engine::Rng;

use crate::Blocks;

/// How the victim of a cleaning is chosen among the closed blocks of a plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cleaning {
    /// The block with the fewest valid pages: the best there is when all pages are equally likely
    /// to be overwritten (Yang, Misra and Rubenstein 2015).
    Greedy,
    /// The block that was closed first.
    Fifo,
    /// Any block, all equally likely.
    Random,
    /// The best of `cleaning_window` blocks drawn at random (Van Houdt 2013); 10 by default.
    DChoices,
    /// The block with the most (1 - u) age / 2u, where u is its valid share (Rosenblum and
    /// Ousterhout 1992).
    CostBenefit,
    /// The best of the `cleaning_window` blocks that were closed first; 1/8 of the plane by default.
    Windowed,
}

impl Cleaning {
    /// True if the order in which blocks were closed must be kept.
    pub(crate) fn needs_order(self) -> bool {
        matches!(self, Cleaning::Fifo | Cleaning::CostBenefit | Cleaning::Windowed)
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
            Cleaning::Fifo => blocks.take_ordered(plane, 1, |_| Some(0)),
            Cleaning::Windowed => {
                let window = if window == 0 { blocks.blocks_per_plane() / 8 } else { window };
                blocks.take_ordered(plane, window.max(1) as usize, |queue| {
                    let oldest = queue.iter().enumerate();
                    oldest.min_by_key(|(at, block)| (block.valid, *at)).map(|(at, _)| at)
                })
            }
            Cleaning::CostBenefit => blocks.take_ordered(plane, usize::MAX, |queue| {
                let scored = queue.iter().enumerate().map(|(at, block)| {
                    let used = f64::from(block.valid) / f64::from(block.data_pages.max(1));
                    (at, (1.0 - used) * block.age as f64 / (2.0 * used).max(1e-9))
                });
                // On equal scores the older block.
                scored
                    .reduce(|best, next| if next.1 > best.1 { next } else { best })
                    .map(|(at, _)| at)
            }),
        }
    }
}

/// The best of `d` closed blocks drawn at random.
fn draw(blocks: &Blocks, plane: u32, d: u32, rng: &mut Rng) -> Option<u32> {
    // Nearly all blocks are closed when cleaning runs; where they are not, look at them in turn.
    let n = blocks.blocks_per_plane();
    let mut best: Option<(u32, u32)> = None;
    for _ in 0..d {
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
