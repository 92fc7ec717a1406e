//! Statements of a paper, each with how it is checked.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use ssdyno_session::Failure;

use crate::answer::Answer;
use crate::assumptions::{AssumedValue, Assumptions};
use crate::error::{defect, parse};
use crate::measured::{Measured, PointPlan};
use crate::vary::{Answers, Step, Varied, judge, vary};
use crate::{Claim, ClaimState, KeepGoing, PapersOptions, PapersProgress, Selector, Vary};

/// What the runs say of a statement, and the numbers; `None` where what it needs was not run.
pub(crate) type Verdict = Option<(Answer, String)>;

/// A statement as the file of its paper has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Statement {
    text: String,
    /// Figures and tables beside which it stands.
    #[serde(default)]
    pub(crate) about: Vec<String>,
    /// Runs without which it cannot be checked.
    #[serde(default)]
    pub(crate) runs: Vec<String>,
}

/// A statement and how it is checked.
#[derive(Debug)]
pub(crate) struct ClaimCheck<F> {
    pub(crate) name: &'static str,
    pub(crate) statement: Statement,
    /// Gives the [`Verdict`] on what the paper's runs gave.
    pub(crate) check: F,
}

/// All statements of a paper.
#[derive(Debug)]
pub(crate) struct Claims<F> {
    paper: &'static str,
    pub(crate) checks: Vec<ClaimCheck<F>>,
}

impl<F: Copy> Claims<F> {
    /// The statements in `text`, which `file` contains by name, in the order of `checks`.
    ///
    /// # Errors
    /// Statements and checks do not have the same names.
    pub(crate) fn read(
        paper: &'static str,
        (file, text): (&str, &str),
        checks: &[(&'static str, F)],
    ) -> Result<Claims<F>, Failure> {
        let mut statements: BTreeMap<String, Statement> = parse(file, text)?;
        let check = |(name, check): &(&'static str, F)| {
            let missing = || defect(file, format!("there is no statement {name}"));
            let statement = statements.remove(*name).ok_or_else(missing)?;
            Ok(ClaimCheck { name, statement, check: *check })
        };
        let checks = checks.iter().map(check).collect::<Result<Vec<_>, Failure>>()?;
        match statements.into_keys().next() {
            None => Ok(Claims { paper, checks }),
            Some(name) => Err(defect(file, format!("nothing checks {name}"))),
        }
    }

    fn id(&self, check: &ClaimCheck<F>) -> String {
        format!("{}/claims/{}", self.paper, check.name)
    }

    /// All of them, by identifier and text.
    pub(crate) fn titles(&self) -> impl Iterator<Item = (String, String)> {
        self.checks.iter().map(|check| (self.id(check), check.statement.text.clone()))
    }

    /// Those that `selector` names as such.
    pub(crate) fn named(&self, selector: &Selector) -> impl Iterator<Item = &ClaimCheck<F>> {
        self.checks.iter().filter(|check| selector.selects(&self.id(check)))
    }

    /// Those, and the ones that stand beside a figure or table that it names.
    pub(crate) fn selected(&self, selector: &Selector) -> impl Iterator<Item = &ClaimCheck<F>> {
        self.checks.iter().filter(|check| {
            let mut about = check.statement.about.iter();
            let beside = about.any(|part| selector.selects(&format!("{}/{part}", self.paper)));
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
        let (state, evidence) = match verdict {
            Some((answer, evidence)) => (Some(ClaimState::from(answer)), evidence),
            None => (None, unknown.into()),
        };
        let holds = state.and_then(ClaimState::decided);
        let (id, text) = (self.id(check), check.statement.text.clone());
        Claim { id, text, holds, state, evidence, assumptions: Vec::new() }
    }
}

/// A paper with claims about what its points gave.
pub(crate) trait ClaimedPlan: PointPlan {
    /// What [`verdict`](ClaimedPlan::verdict) checks a claim with.
    type Check: Copy;

    /// Reads all claims.
    const CLAIMS: fn() -> Result<Claims<Self::Check>, Failure>;

    /// Reads the values that claims may depend on.
    const ASSUMPTIONS: fn() -> Result<Assumptions, Failure>;

    /// What the runs say of a claim.
    fn verdict(&self, check: Self::Check, measured: &Measured<Self::Case>) -> Verdict;

    /// Why there is no verdict.
    fn unknown(_: &ClaimCheck<Self::Check>) -> &'static str {
        "not run"
    }

    /// The selected claims on `measured`, and again with assumed values varied; true if that was stopped.
    fn judge(
        &self,
        selector: &Selector,
        measured: &Measured<Self::Case>,
        options: &PapersOptions,
        progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
    ) -> Result<(Vec<Claim>, bool), Failure> {
        let (all, mut claims) = ((Self::CLAIMS)()?, Vec::new());
        let (mut base, mut points) = (Answers::new(), BTreeMap::new());
        // The list of asked points is cleared first. A point that an earlier claim asked for would
        // otherwise be rerun for this claim at every variation.
        measured.take_asked();
        for check in all.selected(selector) {
            let verdict = self.verdict(check.check, measured);
            let asked = measured.take_asked();
            // A claim that asked for no point is arithmetic on printed numbers. No assumed value
            // can change it, so it needs no variation.
            if let Some((answer, _)) = verdict.as_ref().filter(|_| !asked.is_empty()) {
                base.insert(check.name, *answer);
                points.insert(check.name, (check, asked));
            }
            claims.push((check.name, all.report(check, verdict, Self::unknown(check))));
        }
        let mut stopped = measured.partial;
        let mut rerun = |step: Step<'_>| {
            let wanted = step.claims.iter().filter_map(|claim| points.get(claim));
            let cases: BTreeSet<Self::Case> =
                // The points of all claims of a step are joined to a set. Two claims often use the
                // same point, which is then simulated once per variation.
                wanted.flat_map(|(_, own)| own.iter().cloned()).collect();
            let varied = Self::simulate(&cases, options, step.changes, &mut |p| {
                let running = vec![format!("assumed: {}", step.told)];
                progress(&PapersProgress { running, ..*p })
            })?;
            stopped |= varied.partial;
            let answer = |claim: &&'static str| {
                let (check, _) = points.get(claim)?;
                Some((*claim, self.verdict(check.check, &varied)?.0))
            };
            Ok(match varied.partial {
                // A stopped variation has only some of its points. Answers from them could be based
                // on other points than the base answer.
                true => Answers::new(),
                false => step.claims.iter().filter_map(answer).collect(),
            })
        };
        // An interrupted base has no complete answers. To vary values on it would take long and
        // still leave each claim undecided.
        let how = if measured.partial { Vary::None } else { options.vary };
        let values = &(Self::ASSUMPTIONS)()?.values;
        let varied = vary(values, &base, how, &mut rerun)?;
        let judged = claims.into_iter().map(|(name, claim)| {
            let answer = base.get(name).copied();
            claim.judged_by(values, how, (name, answer), varied.get(name), stopped)
        });
        Ok((judged.collect(), stopped))
    }
}

impl Claim {
    /// The claim called `name`, of which the runs say `answer`, with the state that follows from varying
    /// `values`; undecided where some bear on it and were not varied.
    pub(crate) fn judged_by(
        self,
        values: &[AssumedValue],
        how: Vary,
        (name, answer): (&str, Option<Answer>),
        varied: Option<&Vec<Varied>>,
        stopped: bool,
    ) -> Claim {
        let Some(answer) = answer else { return self };
        if !values.iter().any(|value| value.bears_on(name, how)) {
            return self;
        }
        match varied {
            // The state follows from all variations together: one that contradicts makes a claim
            // undecided, as the design demands for an assumption that covers both answers.
            Some(varied) if !stopped => {
                let (state, mut assumptions) = judge(answer, varied);
                // The values that decide the claim come first. The sort is stable, so the others
                // keep the order of the table.
                assumptions.sort_by_key(|assumption| !assumption.decides);
                Claim { holds: state.decided(), state: Some(state), assumptions, ..self }
            }
            _ if stopped => self.undecided("stopped before assumed values were varied"),
            _ => self.undecided("assumed values were not varied"),
        }
    }

    /// Undecided for want of runs: `why`.
    fn undecided(self, why: &str) -> Claim {
        let evidence = format!("{}; {why}", self.evidence);
        Claim { holds: None, state: Some(ClaimState::Undecided), evidence, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_has_a_check_and_each_check_a_statement() {
        let text = "[b]\ntext = 'B.'\nabout = ['table1']\n[a]\ntext = 'A.'\n";
        let read =
            |checks: &[(&'static str, u8)]| Claims::read("S9", ("claims.toml", text), checks);
        let claims = read(&[("a", 1), ("b", 2)]).unwrap();
        let titles: Vec<String> = claims.titles().map(|(id, text)| id + " " + &text).collect();
        assert_eq!(titles, ["S9/claims/a A.", "S9/claims/b B."], "in the order of the checks");
        let selector = "S9/table1".parse().unwrap();
        let beside: Vec<&str> = claims.selected(&selector).map(|check| check.name).collect();
        assert_eq!((beside, claims.named(&selector).count()), (vec!["b"], 0));
        let refused = |checks| read(checks).unwrap_err().to_string();
        assert!(refused(&[("a", 1)]).contains("nothing checks b"));
        assert!(refused(&[("a", 1), ("b", 2), ("c", 3)]).contains("there is no statement c"));
    }
}
