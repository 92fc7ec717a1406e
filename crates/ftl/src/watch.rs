//! Long preparations tell how far they are, and may be interrupted.

use ssdyno_engine::PrepareError;

/// Steps between two calls of the watcher: some hundred microseconds, so that the call costs nothing.
const CALL_EVERY: u64 = 1 << 12;

/// The same in operations of the flash, where a step is many: some milliseconds.
const CALL_EVERY_OPERATIONS: u64 = 1 << 16;

/// Counts the steps of a preparation and calls a watcher now and then.
///
/// The watcher gets the share of the work that is done, 0 to 1, never falling; false asks for an
/// end. It decides nothing else: the preparation does not depend on being watched.
pub struct PrepareWatch<'a> {
    watcher: &'a mut dyn FnMut(f64) -> bool,
    done: u64,
    expected: u64,
    call_at: u64,
    /// Operations of the flash since the last call.
    operations: u64,
    share: f64,
}

impl<'a> PrepareWatch<'a> {
    /// The steps reported to `watcher`.
    pub fn new(watcher: &'a mut dyn FnMut(f64) -> bool) -> PrepareWatch<'a> {
        PrepareWatch {
            watcher,
            done: 0,
            expected: 0,
            call_at: CALL_EVERY,
            operations: 0,
            share: 0.0,
        }
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

    /// One more step is done, which came to `operations` of the flash. Where cleaning thrashes, that is
    /// thousands, and the watcher is called after fewer steps.
    ///
    /// # Errors
    /// [`PrepareError::Interrupted`] once the watcher asks for an end.
    #[inline]
    pub fn step_of(&mut self, operations: usize) -> Result<(), PrepareError> {
        // Steps differ in cost by orders of magnitude. Where cleaning thrashes, a watcher that
        // counts steps only was called too late, and an interrupt was not heard.
        self.operations += operations as u64;
        if self.operations >= CALL_EVERY_OPERATIONS {
            self.done += 1;
            return self.call();
        }
        self.step(1)
    }

    #[cold]
    fn call(&mut self) -> Result<(), PrepareError> {
        self.call_at = self.done + CALL_EVERY;
        self.operations = 0;
        // An unexpected event must not lead beyond the end.
        let share = self.done as f64 / self.expected.max(self.done) as f64;
        self.share = self.share.max(share);
        if (self.watcher)(self.share) { Ok(()) } else { Err(PrepareError::Interrupted) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{ftl_config, small_flash};
    use crate::{Fill, FtlFacts, Precondition, build};

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

    #[test]
    fn costly_steps_are_told_of_sooner() {
        let mut shares = Vec::new();
        let mut watcher = |share| {
            shares.push(share);
            shares.len() < 3
        };
        let mut watch = PrepareWatch::new(&mut watcher);
        watch.expect(2 * CALL_EVERY);
        let costly = CALL_EVERY_OPERATIONS as usize / 2;
        (0..4).for_each(|_| watch.step_of(costly).unwrap());
        // From the last call on, cheap steps count as ever.
        (0..CALL_EVERY - 1).for_each(|_| watch.step_of(1).unwrap());
        assert_eq!(watch.step_of(1), Err(PrepareError::Interrupted));
        let steps = 2.0 * CALL_EVERY as f64;
        assert_eq!(shares, [2.0 / steps, 4.0 / steps, 0.5 + 4.0 / steps]);
    }

    /// The announced work equals the work done: the share neither sticks at one nor jumps to it. Within 1 %, seed 1.
    #[test]
    fn the_steps_that_are_announced_cover_the_work() {
        let flash = small_flash(2, 2, 64, 16);
        let geometry = flash.geometry().unwrap();
        let tables = ["page", "dftl", "block", "bast", "fast", "agrawal"].map(|name| (name, ""));
        let large_cache = ("dftl", r#","dftl.mapping_cache":"64MiB""#);
        for (name, more) in tables.into_iter().chain([large_cache]) {
            let config = ftl_config(name, 0.28, more);
            for fill in [Fill::Sequential, Fill::Random] {
                let facts = FtlFacts { geometry, flash: &flash, config: &config, seed: 1 };
                let mut ftl = build(&facts).unwrap();
                let mut going_on = |_| true;
                let mut watch = PrepareWatch::new(&mut going_on);
                let how = Precondition { fill, ..Precondition::default() };
                ftl.precondition(&how, 1, &mut watch).unwrap();
                let covered = watch.expected as f64 / watch.done.max(1) as f64;
                // A dense fill of Agrawal's FTL takes no steps.
                let nothing = watch.expected == 0 && watch.done == 0;
                assert!(nothing || (covered - 1.0).abs() < 0.01, "{name} {fill:?}: {covered}");
            }
        }
    }
}
