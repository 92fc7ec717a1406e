//! Where requests go.

use ssdyno_engine::{Rng, Scatter};

use super::zipf::Zipf;

// A double has 53 bits of precision, so every threshold is a whole number on this scale. Comparing
// whole numbers is exact, and the same on every processor.
/// Random numbers are compared with thresholds on this scale.
pub(crate) const ONE: u64 = 1 << 53;

/// `share` of [`ONE`].
pub(crate) fn threshold(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * ONE as f64).round() as u64
}

/// True with the probability that `threshold` stands for; draws only where it is in doubt.
#[inline]
pub(crate) fn happens(threshold: u64, rng: &mut Rng) -> bool {
    match threshold {
        0 => false,
        ONE => true,
        _ => rng.below(ONE) < threshold,
    }
}

/// The choice of a slot if a request does not continue the previous one.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// Never asked: everything is sequential.
    Never,
    /// Any slot that the size fits in.
    Uniform,
    /// By rank over `slots`.
    Zipf { zipf: Zipf, scatter: Option<Scatter> },
    /// `hot` of `slots` with a probability of their own.
    HotCold { hot: u64, slots: u64, threshold: u64, scatter: Option<Scatter> },
    /// Each of `slots` once in a drawn order, then each once in another; `next` of this order is due.
    Once { slots: u64, next: u64, order: Scatter },
}

/// The part of the range that one thread runs through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) at: u64,
}

/// Makes offsets.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// First byte of the range.
    pub(crate) start: u64,
    /// Bytes between slots.
    pub(crate) alignment: u64,
    /// Slots that a request of each size fits in.
    pub(crate) slots: Vec<u64>,
    pub(crate) choice: Choice,
    /// Probability of continuing.
    pub(crate) sequential: u64,
    /// One a thread; threads take turns.
    pub(crate) cursors: Vec<Cursor>,
    pub(crate) turn: usize,
    /// Some size is not a multiple of the alignment: ends are rounded up to it.
    pub(crate) round_up: bool,
}

impl Place {
    /// The offset of a request with the size number `index`, which is `size` bytes.
    #[inline]
    pub(crate) fn draw(&mut self, index: usize, size: u64, rng: &mut Rng) -> u64 {
        // Without sequential requests no cursor is needed.
        if self.sequential == 0 {
            return self.start + self.slot(index, rng) * self.alignment;
        }
        let offset = if happens(self.sequential, rng) {
            let cursor = &self.cursors[self.turn];
            // A sequential request that does not fit starts again at the first byte. Shortening it
            // would create a size that the user did not ask for.
            let fits = cursor.end - cursor.at >= size;
            if fits { cursor.at } else { cursor.first }
        } else {
            self.start + self.slot(index, rng) * self.alignment
        };
        // The cursor also follows a random request: `sequential_percent` means that a request
        // continues the previous one of its thread, wherever that one was.
        let cursor = &mut self.cursors[self.turn];
        let end = offset + size;
        let end = if self.round_up { end.next_multiple_of(self.alignment) } else { end };
        cursor.at = end.min(cursor.end);
        self.turn += 1;
        if self.turn == self.cursors.len() {
            self.turn = 0;
        }
        offset
    }

    /// The slots of requests with a single size; `None` where places are chosen in another way.
    pub(crate) fn uniform(&self) -> Option<u64> {
        match (&self.choice, &self.slots[..]) {
            (Choice::Uniform, &[slots]) if self.sequential == 0 => Some(slots),
            _ => None,
        }
    }

    #[inline]
    fn slot(&mut self, index: usize, rng: &mut Rng) -> u64 {
        let (slot, scatter) = match &mut self.choice {
            Choice::Never => return 0,
            Choice::Uniform => return rng.below(self.slots[index]),
            Choice::Once { slots, next, order } => {
                if *next == *slots {
                    // Each pass has a new order. The same order again would be a long repeated
                    // sequence, which a cache with prefetching could learn.
                    (*next, *order) = (0, Scatter::new(*slots, rng));
                }
                *next += 1;
                return order.map(*next - 1);
            }
            Choice::Zipf { zipf, scatter } => (zipf.draw(rng), scatter),
            Choice::HotCold { hot, slots, threshold, scatter } => {
                let slot = if happens(*threshold, rng) {
                    rng.below(*hot)
                } else {
                    *hot + rng.below(*slots - *hot)
                };
                (slot, scatter)
            }
        };
        scatter.as_ref().map_or(slot, |scatter| scatter.map(slot))
    }
}
