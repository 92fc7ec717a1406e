//! Long preparations tell how far they are, and may be interrupted.

use ssdyno_engine::PrepareError;

/// Steps between two calls of the watcher: some hundred microseconds, so that the call costs nothing.
const CALL_EVERY: u64 = 1 << 12;

/// Counts the steps of a preparation and calls a watcher now and then.
///
/// The watcher gets the share of the work that is done, 0 to 1, never falling; false asks for an
/// end. It decides about nothing else: what is prepared does not depend on being watched.
pub struct PrepareWatch<'a> {
    watcher: &'a mut dyn FnMut(f64) -> bool,
    done: u64,
    expected: u64,
    call_at: u64,
    share: f64,
}

impl<'a> PrepareWatch<'a> {
    /// Steps that `watcher` hears of.
    pub fn new(watcher: &'a mut dyn FnMut(f64) -> bool) -> PrepareWatch<'a> {
        PrepareWatch { watcher, done: 0, expected: 0, call_at: CALL_EVERY, share: 0.0 }
    }

    /// `steps` more will come; a page written is a step.
    pub fn expect(&mut self, steps: u64) {
        self.expected += steps;
    }

    /// `steps` more are done.
    ///
    /// # Errors
    /// [`PrepareError::Interrupted`] once the watcher asks for an end.
    #[inline]
    pub fn step(&mut self, steps: u64) -> Result<(), PrepareError> {
        self.done += steps;
        if self.done < self.call_at { Ok(()) } else { self.call() }
    }

    #[cold]
    fn call(&mut self) -> Result<(), PrepareError> {
        self.call_at = self.done + CALL_EVERY;
        // What was not expected must not lead beyond the end.
        let share = self.done as f64 / self.expected.max(self.done) as f64;
        self.share = self.share.max(share);
        if (self.watcher)(self.share) { Ok(()) } else { Err(PrepareError::Interrupted) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_rise_to_one_and_an_end_is_heard() {
        let mut shares = Vec::new();
        let mut watcher = |share| {
            shares.push(share);
            shares.len() < 4
        };
        let mut watch = PrepareWatch::new(&mut watcher);
        watch.expect(4 * CALL_EVERY);
        watch.step(CALL_EVERY - 1).unwrap();
        watch.step(1).unwrap();
        watch.step(2 * CALL_EVERY).unwrap();
        // More work than was thought.
        watch.expect(8 * CALL_EVERY);
        watch.step(CALL_EVERY).unwrap();
        assert_eq!(watch.step(20 * CALL_EVERY), Err(PrepareError::Interrupted));
        assert_eq!(shares, [0.25, 0.75, 0.75, 1.0]);
    }
}
