//! Statements of a paper, each with how it is checked.

use crate::{Claim, Selector};

/// Whether a statement holds, and the numbers; `None` where what it needs was not run.
pub(crate) type Verdict = Option<(bool, String)>;

/// A statement and how it is checked.
#[derive(Debug)]
pub(crate) struct ClaimCheck<F: 'static> {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    /// Figures and tables beside which it stands.
    pub(crate) about: &'static [&'static str],
    /// Gives the [`Verdict`] on what the paper's runs gave.
    pub(crate) check: F,
}

/// All statements of a paper.
#[derive(Debug)]
pub(crate) struct Claims<F: 'static> {
    pub(crate) paper: &'static str,
    pub(crate) checks: &'static [ClaimCheck<F>],
}

impl<F> Claims<F> {
    fn id(&self, check: &ClaimCheck<F>) -> String {
        format!("{}/claims/{}", self.paper, check.name)
    }

    /// All of them, by identifier and text.
    pub(crate) fn titles(&self) -> impl Iterator<Item = (String, String)> {
        self.checks.iter().map(|check| (self.id(check), check.text.to_owned()))
    }

    /// Those that `selector` names as such.
    pub(crate) fn named(
        &self,
        selector: &Selector,
    ) -> impl Iterator<Item = &'static ClaimCheck<F>> {
        self.checks.iter().filter(|check| selector.selects(&self.id(check)))
    }

    /// Those, and the ones that stand beside a figure or table that it names.
    pub(crate) fn selected(
        &self,
        selector: &Selector,
    ) -> impl Iterator<Item = &'static ClaimCheck<F>> {
        self.checks.iter().filter(|check| {
            let beside =
                check.about.iter().any(|part| selector.selects(&format!("{}/{part}", self.paper)));
            beside || selector.selects(&self.id(check))
        })
    }

    /// `check` as it is reported; `unknown` says why there is no verdict.
    pub(crate) fn report(
        &self,
        check: &ClaimCheck<F>,
        verdict: Verdict,
        unknown: impl Into<String>,
    ) -> Claim {
        let (holds, evidence) = match verdict {
            Some((holds, evidence)) => (Some(holds), evidence),
            None => (None, unknown.into()),
        };
        Claim { id: self.id(check), text: check.text.to_owned(), holds, evidence }
    }
}
