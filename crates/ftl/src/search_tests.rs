//! Compares the results of [`Blocks`] with a search of all blocks, one after another.

use proptest::prelude::*;
use ssdyno_engine::Rng;

use crate::blocks::Searches;
use crate::{Blocks, Cleaning, Endurance, WearLevelling};

/// The blocks of one plane, slow and obvious.
#[derive(Clone, Debug)]
struct Naive {
    data_pages: u32,
    valid: Vec<u32>,
    closed: Vec<bool>,
    erases: Vec<u32>,
    /// The one free longest in front.
    free: Vec<u32>,
    /// Closed blocks in the order of closing, with the count of closings then.
    order: Vec<(u32, u64)>,
    closings: u64,
}

impl Naive {
    fn new(blocks: u32, data_pages: u32) -> Naive {
        Naive {
            data_pages,
            valid: vec![0; blocks as usize],
            closed: vec![false; blocks as usize],
            erases: vec![0; blocks as usize],
            free: (0..blocks).collect(),
            order: Vec::new(),
            closings: 0,
        }
    }

    fn open(&mut self, wear: WearLevelling) -> Option<u32> {
        let at = (0..self.free.len()).min_by_key(|at| match wear {
            WearLevelling::Off => (0, *at),
            _ => (self.erases[self.free[*at] as usize], *at),
        })?;
        Some(self.free.remove(at))
    }

    fn close(&mut self, block: u32, valid: u32) {
        self.closings += 1;
        self.valid[block as usize] = valid;
        self.closed[block as usize] = true;
        self.order.push((block, self.closings));
    }

    fn erased(&mut self, block: u32) {
        self.valid[block as usize] = 0;
        self.closed[block as usize] = false;
        self.erases[block as usize] += 1;
        self.free.push(block);
    }

    fn score(&self, at: usize) -> f64 {
        let (block, closed) = self.order[at];
        let used = f64::from(self.valid[block as usize]) / f64::from(self.data_pages);
        (1.0 - used) * (self.closings - closed + 1) as f64 / (2.0 * used).max(1e-9)
    }

    fn victim(&mut self, policy: Cleaning, window: usize) -> Option<u32> {
        let first_of_best = match policy {
            Cleaning::Windowed => {
                let seen = 0..self.order.len().min(window);
                seen.min_by_key(|at| (self.valid[self.order[*at].0 as usize], *at))
            }
            Cleaning::CostBenefit => (0..self.order.len())
                .reduce(|best, at| if self.score(at) > self.score(best) { at } else { best }),
            _ => (!self.order.is_empty()).then_some(0),
        };
        Some(self.order.remove(first_of_best?).0)
    }

    fn laggard(&self) -> Option<(u32, u32)> {
        let closed = (0..self.closed.len()).filter(|block| self.closed[*block]);
        let least = closed.min_by_key(|block| (self.erases[*block], *block))?;
        let most = self.erases.iter().max()?;
        Some((least as u32, most - self.erases[least]))
    }
}

const POLICIES: [Cleaning; 3] = [Cleaning::Fifo, Cleaning::Windowed, Cleaning::CostBenefit];
const WEAR: [WearLevelling; 3] =
    [WearLevelling::Off, WearLevelling::Dynamic, WearLevelling::Static];

/// An operation on the blocks: the step, and a number that it may use.
type Step = (u8, u32);

/// Does `step` to both and compares what they find.
fn both(
    (fast, slow): (&mut Blocks, &mut Naive),
    (policy, window, wear): (Cleaning, u32, WearLevelling),
    (step, number): Step,
) -> Result<(), TestCaseError> {
    let rng = &mut Rng::new(0, "not used");
    match step {
        0..=3 => {
            let opened = slow.open(wear);
            prop_assert_eq!(fast.next_free(0), opened);
            prop_assert_eq!(fast.open(0), opened);
            if let Some(block) = opened {
                let valid = slow.data_pages - (number % slow.data_pages / 4);
                fast.add_valid(block, valid);
                fast.close(block);
                slow.close(block, valid);
            }
        }
        4..=10 => {
            let block = number % slow.valid.len() as u32;
            let loses = slow.valid[block as usize].min(number >> 8 & 7);
            for _ in 0..if slow.closed[block as usize] { loses } else { 0 } {
                fast.invalidate(block);
                slow.valid[block as usize] -= 1;
            }
        }
        11..=14 => {
            let victim = slow.victim(policy, window as usize);
            prop_assert_eq!(policy.victim(fast, 0, window, rng), victim);
            let Some(block) = victim else { return Ok(()) };
            if number % 8 == 0 {
                fast.put_back(block);
                slow.order.push((block, slow.closings));
                return Ok(());
            }
            if number % 8 == 1 {
                fast.take_out(block);
            }
            fast.erased(block);
            slow.erased(block);
        }
        15..=17 => {
            if wear != WearLevelling::Static {
                prop_assert_eq!(fast.laggard(0), None);
                return Ok(());
            }
            prop_assert_eq!(fast.laggard(0), slow.laggard());
            if let Some((block, _)) = slow.laggard().filter(|_| number % 2 == 0) {
                fast.forget_order(block);
                slow.order.retain(|(other, _)| *other != block);
                fast.erased(block);
                slow.erased(block);
            }
        }
        _ => {
            fast.forget_wear();
            slow.erases.fill(0);
        }
    }
    Ok(())
}

fn blocks(planes: u32, n: u32, data_pages: u32, searches: Searches) -> Blocks {
    Blocks::new(planes, n, data_pages, searches, Endurance::endless(1))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]
    /// Every victim, every opened block and every laggard equals the result of a search of all
    /// blocks, after any history; a state stamped on another plane continues in the same way.
    #[test]
    fn finds_what_a_search_of_all_finds(
        n in 1u32..40,
        data_pages in 1u32..20,
        policy in prop::sample::select(POLICIES.to_vec()),
        wear in prop::sample::select(WEAR.to_vec()),
        window in 0u32..50,
        steps in prop::collection::vec((0u8..19, any::<u32>()), 1..1500),
    ) {
        let looked_at = policy.oldest_looked_at(window, n);
        let searches = Searches { window: looked_at, wear };
        let mut fast = blocks(1, n, data_pages, searches);
        let mut slow = Naive::new(n, data_pages);
        for step in steps {
            both((&mut fast, &mut slow), (policy, looked_at, wear), step)?;
        }
        let mut stamped = blocks(2, n, data_pages, searches);
        let on_second: Vec<u32> = (n..2 * n).collect();
        stamped.stamp(1, &fast, &on_second);
        slow.erases.fill(0);
        let to_second = |(block, lag): (u32, u32)| (block + n, lag);
        if wear == WearLevelling::Static {
            prop_assert_eq!(stamped.laggard(1), slow.laggard().map(to_second));
        }
        let rng = &mut Rng::new(0, "not used");
        while let Some(block) = slow.victim(policy, looked_at as usize) {
            prop_assert_eq!(policy.victim(&mut stamped, 1, window, rng), Some(block + n));
        }
        prop_assert_eq!(policy.victim(&mut stamped, 1, window, rng), None);
        while let Some(block) = slow.open(wear) {
            prop_assert_eq!(stamped.open(1), Some(block + n));
        }
        prop_assert_eq!(stamped.open(1), None);
    }
}
