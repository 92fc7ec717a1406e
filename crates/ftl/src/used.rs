//! Used states that several devices of one process begin with.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use ssdyno_engine::PrepareError;

use crate::{Ftl, FtlFacts, Precondition, PrepareWatch};

/// Bytes that the kept states may need together, by [`state_bytes`].
const KEPT_BYTES: u64 = 256 << 20;

/// Keys that are remembered without a state. A grid meets the same state again after as many designs
/// as the keys of the FTL have combinations; a key needs some kilobytes.
const MET_KEYS: usize = 512;

/// The states that this process shares.
static STATES: Mutex<UsedStates> = Mutex::new(UsedStates::new(KEPT_BYTES));

/// Puts `ftl`, fresh from [`build`](crate::build) with `facts`, into the used state `how`.
///
/// Preconditioning takes a third of a run of 20 000 reads on 1 GiB. The designs of a sweep that differ
/// in time, power or load only begin with the same state, so it is copied. The result is the same
/// as that of [`Ftl::precondition`].
///
/// # Errors
/// Those of [`Ftl::precondition`].
pub fn precondition(
    ftl: &mut Box<dyn Ftl>,
    facts: &FtlFacts<'_>,
    how: &Precondition,
    watch: &mut PrepareWatch<'_>,
) -> Result<(), PrepareError> {
    precondition_with(&STATES, ftl, facts, how, watch)
}

fn precondition_with(
    states: &Mutex<UsedStates>,
    ftl: &mut Box<dyn Ftl>,
    facts: &FtlFacts<'_>,
    how: &Precondition,
    watch: &mut PrepareWatch<'_>,
) -> Result<(), PrepareError> {
    let key = key(facts, how);
    // A panic elsewhere leaves whole states: each is put in by one call.
    let states = || states.lock().unwrap_or_else(PoisonError::into_inner);
    let met = states().meet(&key);
    if let Met::Kept(state) = &met {
        // Copied without the lock, so that the runs of other threads need not wait.
        *ftl = dyn_clone::clone_box(state.as_ref());
        return Ok(());
    }
    ftl.precondition(how, facts.seed, watch)?;
    // A state that is met once is not worth the copy: most runs are alone in their process.
    if matches!(met, Met::Again) && state_bytes(facts) <= KEPT_BYTES {
        states().keep(key, Arc::from(dyn_clone::clone_box(ftl.as_ref())), state_bytes(facts));
    }
    Ok(())
}

/// Everything that decides about a used state. The times of the flash are not in it: no FTL has a
/// clock.
fn key(facts: &FtlFacts<'_>, how: &Precondition) -> String {
    let FtlFacts { geometry, flash, config, seed } = facts;
    let life = (flash.endurance_cycles, flash.endurance_spread, flash.factory_bad);
    // Without die interleaving the geometry counts the dies of a chip as one.
    format!("{geometry:?} {} {life:?} {config:?} {how:?} {seed}", flash.dies_per_chip)
}

/// About what a state needs: the map, its reverse and the orders of the blocks come to 9 to 14 bytes a
/// page.
fn state_bytes(facts: &FtlFacts<'_>) -> u64 {
    16 * u64::from(facts.geometry.pages())
}

/// The known facts about a key.
enum Met {
    First,
    Again,
    Kept(Arc<dyn Ftl>),
}

struct State {
    key: String,
    ftl: Arc<dyn Ftl>,
    bytes: u64,
}

/// States that were met twice, the one that was used last at the end.
struct UsedStates {
    kept: Vec<State>,
    met: VecDeque<String>,
    most_bytes: u64,
}

impl UsedStates {
    const fn new(most_bytes: u64) -> UsedStates {
        UsedStates { kept: Vec::new(), met: VecDeque::new(), most_bytes }
    }

    fn meet(&mut self, key: &str) -> Met {
        if let Some(at) = self.kept.iter().position(|state| state.key == key) {
            let state = self.kept.remove(at);
            let ftl = Arc::clone(&state.ftl);
            self.kept.push(state);
            return Met::Kept(ftl);
        }
        if self.met.iter().any(|met| met == key) {
            return Met::Again;
        }
        if self.met.len() == MET_KEYS {
            self.met.pop_front();
        }
        self.met.push_back(key.to_owned());
        Met::First
    }

    fn keep(&mut self, key: String, ftl: Arc<dyn Ftl>, bytes: u64) {
        // Two threads may have prepared the same state at once.
        if self.kept.iter().any(|state| state.key == key) {
            return;
        }
        self.kept.push(State { key, ftl, bytes });
        while self.kept.iter().map(|state| state.bytes).sum::<u64>() > self.most_bytes {
            self.kept.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_block::Time;
    use ssdyno_block::units::Span;
    use ssdyno_flash::FlashConfig;

    use super::*;
    use crate::conformance::{ftl_config, small_flash};
    use crate::{Fill, FtlConfig, build, names};

    fn used(states: &Mutex<UsedStates>, flash: &FlashConfig, ftl: &FtlConfig, seed: u64) -> String {
        let geometry = flash.geometry().unwrap();
        let facts = FtlFacts { geometry, flash, config: ftl, seed };
        let mut ftl = build(&facts).unwrap();
        let how = Precondition { fill: Fill::Random, ..Precondition::default() };
        let watcher = &mut |_| true;
        precondition_with(states, &mut ftl, &facts, &how, &mut PrepareWatch::new(watcher)).unwrap();
        format!("{ftl:?}")
    }

    fn config(name: &str) -> FtlConfig {
        ftl_config(name, 0.5, "")
    }

    #[test]
    fn a_shared_state_is_the_one_that_would_have_been_prepared() {
        let flash = small_flash(2, 2, 32, 16);
        for name in names() {
            let states = Mutex::new(UsedStates::new(KEPT_BYTES));
            let first = used(&states, &flash, &config(name), 7);
            assert!(states.lock().unwrap().kept.is_empty(), "{name}: one run copies nothing");
            for _ in 0..3 {
                assert_eq!(used(&states, &flash, &config(name), 7), first, "{name}");
            }
            assert_eq!(states.lock().unwrap().kept.len(), 1, "{name}");
            assert_ne!(used(&states, &flash, &config(name), 8), first, "{name}: another seed");
        }
    }

    /// The key leaves out the times of the flash: they must decide about nothing.
    #[test]
    fn times_of_the_flash_decide_about_no_state() {
        let flash = small_flash(2, 2, 32, 16);
        let mut other = flash.clone();
        std::mem::swap(&mut other.read_time, &mut other.program_time);
        other.erase_time = Span(Time::from_ms(7));
        other.read_priority = !flash.read_priority;
        other.program_suspend = !flash.program_suspend;
        other.cache_read = !flash.cache_read;
        other.cache_program = !flash.cache_program;
        for name in names() {
            let fresh = || Mutex::new(UsedStates::new(KEPT_BYTES));
            let states = used(&fresh(), &flash, &config(name), 7);
            assert_eq!(used(&fresh(), &other, &config(name), 7), states, "{name}");
        }
    }

    #[test]
    fn states_stay_within_their_memory() {
        let flash = small_flash(1, 1, 32, 16);
        let bytes = 16 * u64::from(flash.geometry().unwrap().pages());
        let states = Mutex::new(UsedStates::new(2 * bytes));
        for seed in [1, 2, 3, 1, 2, 3] {
            used(&states, &flash, &config("page"), seed);
        }
        let kept = states.lock().unwrap().kept.len();
        assert_eq!(kept, 2, "the state that was used last but two has gone");
    }
}
