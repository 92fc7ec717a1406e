//! When blocks fail.

use ssdyno_engine::Rng;
use ssdyno_flash::FlashConfig;

/// The life of every block, drawn from the device's seed. The FTL asks at each erase; real flash
/// answers with a failed status, here the answer is known when the erase is ordered.
#[derive(Clone, Debug)]
pub struct Endurance {
    mean_cycles: Option<u32>,
    spread: f64,
    factory_bad: f64,
    rng: Rng,
}

impl Endurance {
    /// From the `[flash]` table.
    pub fn new(config: &FlashConfig, seed: u64) -> Endurance {
        Endurance {
            mean_cycles: config.endurance_cycles,
            spread: config.endurance_spread,
            factory_bad: config.factory_bad,
            rng: Rng::new(seed, "flash endurance"),
        }
    }

    /// Blocks that last forever.
    pub(crate) fn endless(seed: u64) -> Endurance {
        let rng = Rng::new(seed, "flash endurance");
        Endurance { mean_cycles: None, spread: 0.0, factory_bad: 0.0, rng }
    }

    /// True if blocks can ever be bad.
    pub fn matters(&self) -> bool {
        self.mean_cycles.is_some() || self.factory_bad > 0.0
    }

    /// Draws `count` blocks, see [`draw`](Endurance::draw); draws none if blocks never wear out.
    pub(crate) fn draw_all(mut self, count: u32) -> Vec<u32> {
        if self.matters() { (0..count).map(|_| self.draw()).collect() } else { Vec::new() }
    }

    /// Draws the next block: the erases it survives; 0 = bad from the factory, `u32::MAX` = endless.
    pub fn draw(&mut self) -> u32 {
        let is_bad = self.rng.unit() < self.factory_bad;
        let Some(mean) = self.mean_cycles else { return if is_bad { 0 } else { u32::MAX } };
        // Twelve uniforms make a normal deviate, good to three sigma: ample for wear. They are
        // drawn for bad blocks, too, so that the lives of others do not depend on `factory_bad`.
        let normal: f64 = (0..12).map(|_| self.rng.unit()).sum::<f64>() - 6.0;
        if is_bad {
            return 0;
        }
        let cycles = f64::from(mean) * (1.0 + self.spread * normal);
        // A life of 0 means bad from the factory. A wide spread can draw a negative number of
        // cycles, which the conversion turns into 0, and such a block survives one erase.
        (cycles.round() as u32).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two devices that differ in `factory_bad` alone share random numbers: one block is bad or it is not, and the
    /// others live as long.
    #[test]
    fn blocks_bad_from_the_factory_change_no_other_life() {
        let lives = |factory_bad| {
            let rng = Rng::new(7, "flash endurance");
            let mean_cycles = Some(3_000);
            Endurance { mean_cycles, spread: 0.2, factory_bad, rng }.draw_all(1_000)
        };
        let (all, some) = (lives(0.0), lives(0.1));
        let bad = some.iter().filter(|life| **life == 0).count();
        assert!((50..200).contains(&bad), "{bad}");
        assert!(all.iter().zip(&some).all(|(all, some)| *some == 0 || some == all));
    }
}
