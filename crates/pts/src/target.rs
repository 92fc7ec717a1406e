//! The tested target, and how it is brought close to a state as if nothing had ever been written.

use ssdyno_block::units::Bytes;
use ssdyno_session::{
    Failure, KeptTarget, LoadProgress, Prepared, Prompt, RunSpec, is_real, refuse_workload_keys,
    resolve, settings,
};
use ssdyno_workload::{AddressPattern, Pattern, WorkloadConfig};

use crate::plan::PtsPlan;

/// The target that takes everything and keeps nothing.
const NULL: &str = "null:";

/// Bytes of one discard: large enough to be quick, small enough for every device.
const DISCARD_BYTES: u64 = 16 << 20;

impl PtsPlan {
    /// Opens the target of the plan, as [`resolve`](PtsPlan::resolve) prepares it.
    ///
    /// # Errors
    /// Those of [`resolve`](PtsPlan::resolve), and the target cannot be opened.
    pub fn open(&self, spec: &RunSpec, prompt: &mut dyn Prompt) -> Result<KeptTarget, Failure> {
        self.resolve(spec, prompt)?.keep()
    }

    /// Prepares the target of the plan. `spec` says what lies before it, how it is loaded and whether it may be
    /// written to; its load does not matter.
    ///
    /// # Errors
    /// There is no such target, an option does not go with it, or it may not be written to.
    pub fn resolve(&self, spec: &RunSpec, prompt: &mut dyn Prompt) -> Result<Prepared, Failure> {
        let help =
            "the specification defines its loads; `depth` sets the number of outstanding requests";
        refuse_workload_keys(&settings(&spec.set)?, "the test", help)?;
        let spec = spec.of_many_loads(&self.target, "pts", self.depth, self.seed);
        // Every test of the specification writes over the target. The refusal comes before the
        // target is opened, so nothing is touched.
        if is_real(&spec)? && !spec.write.allowed && self.target != NULL {
            return Err(Failure::usage("this test overwrites the target")
                .with_help("allow it with `write.allowed`; everything on the target will be lost")
                .with_key("write.allowed"));
        }
        resolve(&spec, prompt)
    }
}

/// Brings `target` as close as possible to a state as if nothing had ever been written, and returns the method.
pub(crate) fn purge(
    target: &mut KeptTarget,
    progress: &mut LoadProgress<'_>,
) -> Result<String, Failure> {
    if !target.is_real() {
        // A simulated flash device is formatted: no page is programmed then, which no sequence
        // of discards guarantees. Other models have no such state.
        return Ok(match target.format()? {
            true => "formatted: a fresh device, with no page programmed".to_owned(),
            false => "none: a device without flash has no state to purge".to_owned(),
        });
    }
    let facts = target.facts();
    let (mut discards, mut errors) = (0, 0);
    for config in discards_of(facts.capacity_bytes, u64::from(facts.sector_bytes)) {
        let result = target.load(&config, 0, None, progress)?;
        discards += result.requests + result.errors;
        errors += result.errors;
        if result.partial {
            return Ok("interrupted".to_owned());
        }
    }
    Ok(outcome(discards, errors))
}

/// The loads that discard a target as a whole: equal blocks, and what is left at its end.
fn discards_of(capacity_bytes: u64, sector_bytes: u64) -> Vec<WorkloadConfig> {
    let discard = |start: u64, block: u64, requests: u64| WorkloadConfig {
        trim_percent: Some(100.0),
        read_percent: Some(0.0),
        write_percent: Some(0.0),
        block_size: Some(Bytes(block)),
        address: AddressPattern {
            pattern: Pattern::Sequential,
            start: Bytes(start),
            length: Some(Bytes(block * requests)),
            ..AddressPattern::default()
        },
        alignment: Some(Bytes(sector_bytes)),
        requests: Some(requests),
        ..WorkloadConfig::default()
    };
    let whole = capacity_bytes / sector_bytes * sector_bytes;
    let block = DISCARD_BYTES / sector_bytes * sector_bytes;
    // A discard of the whole device at once may exceed the limit of a request.
    let (blocks, rest) = (whole / block, whole % block);
    let mut loads = Vec::new();
    if blocks > 0 {
        loads.push(discard(0, block, blocks));
    }
    if rest > 0 {
        loads.push(discard(blocks * block, rest, 1));
    }
    loads
}

/// The result of this number of discards, of which some failed.
fn outcome(discards: u64, errors: u64) -> String {
    match errors {
        0 => "discarded from start to end; the drive decides what a discard does (a secure erase or a format is stronger)"
            .to_owned(),
        all if all == discards => {
            "none: the target does not accept discards; the overwrite replaces the purge".to_owned()
        }
        some => format!(
            "incomplete: {some} of {discards} discards failed; the overwrite replaces the purge"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discards_reach_to_the_last_sector() {
        for (capacity, sector) in [(500_107_862_016, 512), (16 << 20, 4096), (1_000_448, 512)] {
            let mut end = 0;
            for load in discards_of(capacity, sector) {
                assert_eq!(load.address.start.0, end, "{capacity}");
                end += load.block_size.unwrap().0 * load.requests.unwrap();
            }
            assert_eq!(end, capacity);
        }
    }

    #[test]
    fn some_failed_discards_are_no_refusal() {
        assert!(outcome(100, 0).starts_with("discarded from start to end"));
        assert!(outcome(100, 100).contains("does not accept discards"));
        assert!(outcome(100, 3).contains("3 of 100 discards failed"));
    }
}
