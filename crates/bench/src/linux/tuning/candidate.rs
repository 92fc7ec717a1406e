//! One of the methods that the search tries.

use ssdyno_figures::MethodSettings;

use crate::method::SubmitStrategy;
use crate::options::BenchOptions;

/// A method, and the core that the job is bound to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Candidate {
    pub(super) strategy: SubmitStrategy,
    pub(super) core: Option<usize>,
}

impl Candidate {
    /// The options of a run that uses it.
    pub(super) fn applied(self, options: &BenchOptions) -> BenchOptions {
        let SubmitStrategy { complete, submit, waiting } = self.strategy;
        BenchOptions {
            batch: Some(complete),
            submit: Some(submit),
            waiting: Some(waiting),
            cores: self.core.map_or_else(|| options.cores.clone(), |core| vec![core]),
            tune: false,
            ..options.clone()
        }
    }

    /// The settings that select the method.
    pub(super) fn settings(self) -> MethodSettings {
        MethodSettings { pin: self.core.map(|core| core as u32), ..self.strategy.settings() }
    }
}
