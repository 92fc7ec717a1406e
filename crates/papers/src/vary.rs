//! Whether a claim holds because of what was assumed: its runs again with other values.
//!
//! Each assumed value is varied alone: to both ends of its plausible range and to its neutral value. Where
//! the answer at an end is another one, values between are tried, so that the range in which the claim
//! holds is known to some per cent of itself.

use std::collections::{BTreeMap, BTreeSet};

use ssdyno_session::Failure;

use crate::answer::Answer;
use crate::assumptions::{AssumedValue, Changes, Level};
use crate::{Assumption, ClaimState, Trial, Vary};

// Each step halves the distance as a factor. Three steps give an eighth of the range for three runs
// per claim; more would cost time for digits that an assumed range does not have.
/// Values tried between the assumed one and an end of its range.
const STEPS: usize = 3;

/// Answers of claims, by name; those of claims that could not be checked are missing.
pub(crate) type Answers = BTreeMap<&'static str, Answer>;

/// A step of the variation: which claims, with what changed, and what a reader is told about it.
pub(crate) struct Step<'a> {
    pub(crate) claims: &'a BTreeSet<&'static str>,
    pub(crate) changes: Changes<'a>,
    /// `favoured core at 1`.
    pub(crate) told: String,
}

/// Runs the points of some claims with something changed.
pub(crate) type Rerun<'a> = dyn FnMut(Step<'_>) -> Result<Answers, Failure> + 'a;

/// What became of a claim at the values of one assumption that were tried.
#[derive(Clone, Debug)]
pub(crate) struct Varied {
    value: AssumedValue,
    /// By rising value; what is not a number comes first.
    tried: Vec<(Level, Answer)>,
}

/// One value with the claims that may depend on it.
struct Search<'a> {
    value: &'a AssumedValue,
    base: Answers,
    /// By claim: what was tried.
    tried: BTreeMap<&'static str, Vec<(Level, Answer)>>,
}

impl Search<'_> {
    fn at(
        &mut self,
        level: &Level,
        claims: &BTreeSet<&'static str>,
        rerun: &mut Rerun<'_>,
    ) -> Result<(), Failure> {
        if claims.is_empty() {
            return Ok(());
        }
        let told = format!("{} at {}", self.value.name, self.value.shown(level));
        let changes = Changes::one(self.value, level);
        for (claim, answer) in rerun(Step { claims, changes, told })? {
            self.tried.entry(claim).or_default().push((level.clone(), answer));
        }
        Ok(())
    }

    fn answer(&self, claim: &str, at: f64) -> Option<Answer> {
        if at == self.value.assumed {
            return self.base.get(claim).copied();
        }
        let tried = self.tried.get(claim)?;
        tried.iter().find(|(level, _)| *level == Level::Number(at)).map(|(_, answer)| *answer)
    }

    /// Looks between the assumed value and `end` for where answers change.
    fn narrow(&mut self, end: f64, rerun: &mut Rerun<'_>) -> Result<(), Failure> {
        // By claim: a value with the answer at the assumed one, and one with another answer.
        let mut open: BTreeMap<&'static str, (f64, f64)> = BTreeMap::new();
        for claim in self.base.keys() {
            if self.answer(claim, end).is_some_and(|answer| Some(&answer) != self.base.get(claim)) {
                open.insert(claim, (self.value.assumed, end));
            }
        }
        for _ in 0..STEPS {
            let mut wanted: Vec<(f64, BTreeSet<&'static str>)> = Vec::new();
            for (claim, (same, other)) in &open {
                // The search is a bisection between an answer like the base and another one. It
                // finds one change; a second change within the interval stays unseen.
                let Some(middle) = self.value.between(*same, *other) else { continue };
                // Claims that need the same value share its runs. Most claims change near the same
                // value, so this saves the larger part of the simulations.
                match wanted.iter_mut().find(|(level, _)| *level == middle) {
                    Some((_, claims)) => drop(claims.insert(claim)),
                    None => wanted.push((middle, BTreeSet::from([*claim]))),
                }
            }
            for (middle, claims) in wanted {
                self.at(&Level::Number(middle), &claims, rerun)?;
                for claim in claims {
                    let same = self.answer(claim, middle) == self.base.get(claim).copied();
                    if let Some(ends) = open.get_mut(claim) {
                        *(if same { &mut ends.0 } else { &mut ends.1 }) = middle;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Varies all of `values` for the claims whose answers with everything as assumed are `base`.
pub(crate) fn vary(
    values: &[AssumedValue],
    base: &Answers,
    how: Vary,
    rerun: &mut Rerun<'_>,
) -> Result<BTreeMap<&'static str, Vec<Varied>>, Failure> {
    let mut all: BTreeMap<&'static str, Vec<Varied>> = BTreeMap::new();
    for value in values.iter().filter(|_| how != Vary::None) {
        let concerned = base.iter().filter(|(claim, _)| value.bears_on(claim, how));
        let base: Answers = concerned.map(|(claim, answer)| (*claim, *answer)).collect();
        let claims: BTreeSet<&'static str> = base.keys().copied().collect();
        let mut search = Search { value, base, tried: BTreeMap::new() };
        let mut levels: Vec<Level> = value.range.map(Level::Number).to_vec();
        levels.extend(
            value.neutral().filter(|neutral| !value.range.map(Level::Number).contains(neutral)),
        );
        // The assumed value is the base, which was already run. Its answer is entered below, so the
        // list of tried values is complete.
        levels.retain(|level| *level != Level::Number(value.assumed));
        for level in levels {
            search.at(&level, &claims, rerun)?;
        }
        for end in value.range {
            search.narrow(end, rerun)?;
        }
        for claim in claims {
            let mut tried = search.tried.remove(claim).unwrap_or_default();
            tried.extend(search.base.get(claim).map(|a| (Level::Number(value.assumed), *a)));
            tried.sort_by(|(one, _), (other, _)| place(one).total_cmp(&place(other)));
            all.entry(claim).or_default().push(Varied { value: value.clone(), tried });
        }
    }
    Ok(all)
}

/// Where a level stands among others.
fn place(level: &Level) -> f64 {
    match level {
        Level::Number(number) => *number,
        Level::Other(_) => f64::NEG_INFINITY,
    }
}

impl Varied {
    fn at(&self, level: &Level) -> Option<Answer> {
        self.tried.iter().find(|(tried, _)| tried == level).map(|(_, answer)| *answer)
    }

    /// Whether the answer at the assumed value is put in by it: it is yes, and is not at the neutral one.
    fn puts_in(&self, base: Answer) -> bool {
        let neutral = self.value.neutral().and_then(|neutral| self.at(&neutral));
        // A claim that vanishes when its assumed cause is removed shows only that we put the cause
        // in. It is called assumed even if it holds in the whole range.
        base == Answer::Yes && neutral.is_some_and(|answer| answer != Answer::Yes)
    }

    /// Whether the answer is another one within the plausible range.
    fn changes(&self, base: Answer) -> bool {
        let [least, most] = self.value.range;
        // The neutral value may lie outside of the plausible range. It decides whether a claim is
        // assumed but not whether it is undecided.
        let inside = |level: &Level| (least..=most).contains(&place(level));
        self.tried.iter().any(|(level, answer)| inside(level) && *answer != base)
    }

    /// What a reader is told.
    fn told(&self, base: Answer) -> Assumption {
        let value = &self.value;
        let shown = |level: f64| value.shown(&Level::Number(level));
        let tried = self.tried.iter().map(|(level, answer)| Trial {
            value: value.shown(level),
            state: ClaimState::from(*answer),
        });
        Assumption {
            name: value.name.clone(),
            keys: value.keys.clone(),
            assumed: shown(value.assumed),
            low: shown(value.range[0]),
            high: shown(value.range[1]),
            neutral: value.neutral().map(|neutral| value.shown(&neutral)),
            reason: value.reason.clone(),
            decides: self.puts_in(base) || self.changes(base),
            tried: tried.collect(),
        }
    }
}

/// The state of a claim, by the rule, and the values that were varied for it.
pub(crate) fn judge(base: Answer, varied: &[Varied]) -> (ClaimState, Vec<Assumption>) {
    // Assumed is stronger than undecided: if the effect itself was put in, the range in which it
    // holds no longer matters.
    let state = if varied.iter().any(|one| one.puts_in(base)) {
        ClaimState::Assumed
    } else if varied.iter().any(|one| one.changes(base)) {
        ClaimState::Undecided
    } else {
        ClaimState::from(base)
    };
    (state, varied.iter().map(|one| one.told(base)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lock with a favoured core: the claim *favoured* is true of what it is given above 1.3, *loaded*
    /// does not depend on it, *half* changes at 3 and has nothing put in.
    fn value(more: &str) -> AssumedValue {
        let text = format!(
            "name = \"favoured core\"\nkeys = [\"host.lock.weight\"]\nassumed = 2.5\nunit = \"\"\nrange = [1, 5]\nreason = \"r\"\n{more}"
        );
        toml::from_str(&text).unwrap()
    }

    fn rerun(runs: &mut Vec<String>) -> impl FnMut(Step<'_>) -> Result<Answers, Failure> {
        |step| {
            runs.push(step.told.clone());
            let text = step.changes.applied("f", "host", "[lock]\nweight = 2.5\n")?;
            let weight = text.parse::<toml::Table>().unwrap()["lock"]["weight"].as_float().unwrap();
            let answers = step.claims.iter().map(|claim| {
                let answer = match *claim {
                    "favoured" => Answer::from(weight > 1.3),
                    "half" => Answer::from(weight < 3.0),
                    _ => Answer::Yes,
                };
                (*claim, answer)
            });
            Ok(answers.collect())
        }
    }

    #[test]
    fn what_is_gone_at_the_neutral_value_is_assumed() {
        let values = [value("neutral = 1\nclaims = [\"favoured\", \"loaded\"]")];
        let base: Answers =
            ["favoured", "loaded", "other"].map(|claim| (claim, Answer::Yes)).into();
        let mut runs = Vec::new();
        let varied = vary(&values, &base, Vary::Listed, &mut rerun(&mut runs)).unwrap();
        assert!(!varied.contains_key("other"), "no value bears on it");
        let (state, told) = judge(Answer::Yes, &varied["favoured"]);
        assert_eq!(state, ClaimState::Assumed);
        let tried: Vec<(&str, ClaimState)> =
            told[0].tried.iter().map(|trial| (trial.value.as_str(), trial.state)).collect();
        use ClaimState::{DoesNotHold, Holds};
        let expected = [
            ("1", DoesNotHold),
            ("1.3", DoesNotHold),
            ("1.4", Holds),
            ("1.6", Holds),
            ("2.5", Holds),
            ("5", Holds),
        ];
        assert_eq!(tried, expected);
        assert!(told[0].decides);
        let (state, told) = judge(Answer::Yes, &varied["loaded"]);
        assert_eq!((state, told[0].decides), (Holds, false));
        // Both ends, of which one is neutral, once for both claims; then between for the one that changes.
        assert_eq!(runs.len(), 2 + 3, "{runs:?}");
    }

    #[test]
    fn what_changes_within_the_range_is_undecided_and_what_does_not_stays() {
        let values = [value("claims = [\"half\", \"loaded\"]")];
        let base: Answers = ["half", "loaded"].map(|claim| (claim, Answer::Yes)).into();
        let varied = vary(&values, &base, Vary::Listed, &mut rerun(&mut Vec::new())).unwrap();
        assert_eq!(judge(Answer::Yes, &varied["half"]).0, ClaimState::Undecided);
        assert_eq!(judge(Answer::Yes, &varied["loaded"]).0, ClaimState::Holds);
        // Without a value that bears on it a claim stays what its runs say.
        assert_eq!(judge(Answer::No, &[]).0, ClaimState::DoesNotHold);
        assert_eq!(judge(Answer::Near, &[]).0, ClaimState::Undecided);
    }

    /// Beyond the range the neutral value says nothing of what is undecided, only of what is put in.
    #[test]
    fn a_neutral_value_may_lie_beyond_the_range() {
        let mut beyond = value("neutral = 1\nclaims = [\"favoured\"]");
        beyond.range = [2.0, 4.0];
        let base: Answers = [("favoured", Answer::Yes)].into();
        let varied = vary(&[beyond], &base, Vary::Listed, &mut rerun(&mut Vec::new())).unwrap();
        assert_eq!(judge(Answer::Yes, &varied["favoured"]).0, ClaimState::Assumed);
        assert_eq!(judge(Answer::No, &varied["favoured"]).0, ClaimState::Undecided);
    }
}
