//! What is tested, and how it is brought near to a state as if nothing had ever been written.

use ssdyno_block::units::Bytes;
use ssdyno_figures::Keep;
use ssdyno_session::{
    Failure, FileContents, KeptTarget, LoadProgress, Prepared, Prompt, RunSpec, is_real,
    refuse_workload_keys, resolve, settings,
};
use ssdyno_workload::{AddressPattern, Pattern, WorkloadConfig};

use crate::error::PtsError;
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
        // The number of outstanding requests decides how many threads the host has. The target
        // is opened once for all loads, so the number is told here.
        let load = [("depth".to_owned(), i64::from(self.depth).into())];
        let workload = Some(load.into_iter().collect());
        let spec = RunSpec {
            target: Some(self.target.clone()),
            workload: Some("pts".to_owned()),
            seed: self.seed,
            set: spec.set.clone(),
            keep: Keep::Summary,
            host: spec.host.clone(),
            real: spec.real.clone(),
            write: spec.write.clone(),
            contents: FileContents { workload, ..spec.contents.clone() },
            ..RunSpec::default()
        };
        // Every test of the specification writes over the target. The refusal comes before the
        // target is opened, so nothing is touched.
        if is_real(&spec)? && !spec.write.allowed && self.target != NULL {
            return Err(Failure::usage("this test writes over the target")
                .with_help("allow it with `write.allowed`; everything on the target will be lost")
                .with_key("write.allowed"));
        }
        resolve(&spec, prompt)
    }
}

/// Brings `target` as near as possible to a state as if nothing had ever been written, and says how.
pub(crate) fn purge(
    target: &mut KeptTarget,
    progress: &mut LoadProgress<'_>,
) -> Result<String, PtsError> {
    if !target.is_real() {
        // A simulated flash device is formatted: no page is programmed then, which no sequence
        // of discards guarantees. Other models have no such state.
        return Ok(match target.format()? {
            true => "formatted: a fresh device, with no page programmed".to_owned(),
            false => "none: a device without flash has no state to purge".to_owned(),
        });
    }
    let facts = target.facts();
    let sector = u64::from(facts.sector_bytes);
    let block = DISCARD_BYTES.min(facts.capacity_bytes) / sector * sector;
    let config = WorkloadConfig {
        trim_percent: Some(100.0),
        read_percent: Some(0.0),
        write_percent: Some(0.0),
        block_size: Some(Bytes(block)),
        address: AddressPattern { pattern: Pattern::Sequential, ..AddressPattern::default() },
        // One discard for each block of the device. A discard of the whole device at once may
        // exceed the limit of a request.
        requests: Some(facts.capacity_bytes / block.max(1)),
        ..WorkloadConfig::default()
    };
    let result = target.load(&config, 0, None, progress)?;
    Ok(match (result.partial, result.errors) {
        (true, _) => "interrupted".to_owned(),
        (_, 0) => "discarded from start to end; what the drive makes of that is its affair \
                   (a secure erase or a format is stronger)"
            .to_owned(),
        (_, _) => {
            "none: the target does not accept discards; the overwrite replaces the purge".to_owned()
        }
    })
}
