//! Loads that run several times in turn: A B A B.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ssdyno_block::counted;
use ssdyno_figures::{KeepGoing, RepeatedRuns, RunResult};
use ssdyno_report::spread;
use ssdyno_session::{
    Failure, FailureKind, Measured, Prepared, Prompt, RunList, RunListProgress, RunSpec, resolve,
};

/// Is told how far the runs are; says whether to go on.
pub(crate) type Report<'a> = &'a mut dyn FnMut(&RunList, &RunListProgress<'_>) -> KeepGoing;

/// The loads of all rounds, round by round: what drifts while they run meets all sides alike.
#[derive(Debug)]
pub(crate) struct Rounds {
    sides: usize,
    asked: u32,
    runs: Vec<Prepared>,
}

impl Rounds {
    /// Prepares each of `specs` for `asked` runs. Run *i* of each has the seed of the spec plus *i*: the sides draw the same
    /// random numbers in the same round, and other ones in the next.
    pub(crate) fn prepare(
        specs: &[RunSpec],
        asked: u32,
        prompt: &mut dyn Prompt,
    ) -> Result<Rounds, Failure> {
        let (about, told) = (String::new(), BTreeSet::new());
        let mut prompt = AskedOnce { prompt, about, told, answers: BTreeMap::new() };
        let mut runs = Vec::new();
        // The loads alternate (A B A B). A drive that warms up or fills during the hour then affects all sides
        // alike; with A A B B it would look like a difference.
        for round in 0..asked {
            for spec in specs {
                // All sides have the same seed in one round, so they see the same requests. Another seed in
                // the next round shows the spread between requests.
                let seed = spec.seed.wrapping_add(u64::from(round));
                runs.push(resolve(&RunSpec { seed, ..spec.clone() }, &mut prompt)?);
            }
        }
        Ok(Rounds { sides: specs.len(), asked, runs })
    }

    /// Carries the runs out. Gives of each side, called as `names` say, the runs of all rounds that are whole, and what was wrong
    /// with a run. The first run that gives no figures, or ends early, ends the rest.
    ///
    /// # Errors
    /// No round is whole.
    pub(crate) fn carry_out(
        self,
        names: &[String],
        report: Report<'_>,
    ) -> Result<(Vec<RepeatedRuns>, Option<Failure>), Failure> {
        let Rounds { sides, asked, runs } = self;
        let list = RunList::new(runs);
        let (ends, failure) = (AtomicBool::new(false), Mutex::new(None));
        let note = |wrong: Failure| {
            // Only the first failure is kept, with the number of the others. Runs that were stopped because of it may
            // fail as well, and they are not the reason.
            let mut first = failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match &mut *first {
                None => *first = Some((wrong, 0)),
                Some((_, others)) => *others += 1,
            }
        };
        let take = |_: usize, ended: Result<Measured, Failure>| {
            let Measured { result, failure, .. } = match ended {
                Ok(measured) => measured,
                Err(wrong) => {
                    ends.store(true, Ordering::Relaxed);
                    note(wrong);
                    return Ok::<_, Failure>(None);
                }
            };
            // Less than the whole load is another load, so such a run does not count. A run that
            // reached its end with errors counts, as it does alone.
            let whole = !result.partial;
            if !whole {
                ends.store(true, Ordering::Relaxed);
            }
            failure.into_iter().for_each(&note);
            Ok(whole.then_some(result))
        };
        let watch = &mut |progress: &RunListProgress<'_>| {
            let flow = report(&list, progress);
            // The first run that gives no figures, or that ends early, stops the
            // rest: its round can never be complete.
            if ends.load(Ordering::Relaxed) { KeepGoing::Stop } else { flow }
        };
        let ended = list.execute(take, watch)?;
        let ended: Vec<Option<RunResult>> = ended.into_iter().map(Option::flatten).collect();
        // Only whole rounds count. Single runs of a broken round would pair loads
        // that did not meet the same conditions.
        let whole: Vec<&[Option<RunResult>]> =
            ended.chunks(sides).filter(|round| round.iter().all(Option::is_some)).collect();
        let failure = failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let failure = failure.map(|(first, others)| among(first, others));
        let missing =
            (whole.len() < asked as usize).then(|| cut_short(whole.len(), asked, failure.as_ref()));
        if whole.is_empty() {
            let failure = failure.map(Failure::without_figures);
            return Err(failure.unwrap_or_else(|| cut_short(0, asked, None)));
        }
        let side = |at: usize| {
            let runs: Vec<RunResult> = whole.iter().filter_map(|round| round[at].clone()).collect();
            RepeatedRuns { name: names[at].clone(), asked, figures: spread(&runs), runs }
        };
        Ok(((0..sides).map(side).collect(), missing.or(failure)))
    }
}

/// The first failure, with the number of other runs that failed.
fn among(first: Failure, others: u64) -> Failure {
    match others {
        0 => first,
        others => {
            let more = counted(others, "other run", "other runs");
            Failure { message: format!("{}; {more} failed as well", first.message), ..first }
        }
    }
}

/// Why there are fewer rounds than were asked for.
fn cut_short(whole: usize, asked: u32, why: Option<&Failure>) -> Failure {
    let rounds = counted(u64::from(asked), "round", "rounds");
    let message = format!("{whole} of {rounds} ran to the end");
    // An interrupt is the user's own wish and needs no reason. Any other
    // failure is the reason why rounds are missing.
    match why.filter(|why| why.kind != FailureKind::Interrupted) {
        Some(why) => Failure {
            message: format!("{message}: {}", why.message),
            ..why.clone().without_figures()
        },
        None => Failure::new(FailureKind::Interrupted, format!("interrupted: {message}"))
            .with_help("the figures cover the rounds that ran to the end"),
    }
}

/// Asks each question once: the runs of a side all want the same consent.
struct AskedOnce<'a> {
    prompt: &'a mut dyn Prompt,
    /// The last message: the device that the next question is about.
    about: String,
    told: BTreeSet<String>,
    /// By what was told before the question, and the question: two devices are asked about in the same words.
    answers: BTreeMap<(String, String), Option<String>>,
}

impl Prompt for AskedOnce<'_> {
    fn is_attended(&self) -> bool {
        self.prompt.is_attended()
    }

    fn tell(&mut self, text: &str) {
        // The text that was shown before the question names the device. It stays with the next
        // question, because the question itself does not repeat it.
        text.clone_into(&mut self.about);
        if self.told.insert(text.to_owned()) {
            self.prompt.tell(text);
        }
    }

    fn ask(&mut self, question: &str) -> Option<String> {
        // The same question about another device is another question. Consent to overwrite one
        // drive must never be taken for the next drive.
        let key = (self.about.clone(), question.to_owned());
        let prompt = &mut self.prompt;
        self.answers.entry(key).or_insert_with(|| prompt.ask(question)).clone()
    }

    fn is_stopped(&self) -> bool {
        self.prompt.is_stopped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes what it is asked, and answers with the number of the question.
    #[derive(Default)]
    struct Notes(Vec<String>);

    impl Prompt for Notes {
        fn is_attended(&self) -> bool {
            true
        }

        fn tell(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }

        fn ask(&mut self, question: &str) -> Option<String> {
            self.0.push(question.to_owned());
            Some(self.0.len().to_string())
        }
    }

    #[test]
    fn each_device_is_asked_about_once() {
        let mut notes = Notes::default();
        let (about, told) = (String::new(), BTreeSet::new());
        let mut once = AskedOnce { prompt: &mut notes, about, told, answers: BTreeMap::new() };
        let mut ask = |device: &str| {
            once.tell(device);
            once.ask("sure?")
        };
        let answers = ["a", "b", "a", "b", "a"].map(&mut ask).map(Option::unwrap);
        assert_eq!(answers, ["2", "4", "2", "4", "2"]);
        assert_eq!(notes.0, ["a", "sure?", "b", "sure?"]);
    }

    #[test]
    fn runs_that_failed_as_well_are_counted() {
        let first = || Failure::failed("56 requests ended in an error");
        assert_eq!(among(first(), 0).message, "56 requests ended in an error");
        let message = among(first(), 2).message;
        assert_eq!(message, "56 requests ended in an error; 2 other runs failed as well");
    }

    /// Seeds 1 to 500 make a hundred times five runs, 501 to 700 what is true. Intervals that cover with 95 % do so fewer than 90
    /// or more than 99 times of 100 in 2 % of the cases; with these seeds it is 97 (IOPS) and 95 times (latency).
    #[test]
    fn intervals_between_runs_cover_the_mean() {
        let set = ["flash.channels=2", "flash.blocks_per_plane=32", "workload.depth=4"];
        let spec = RunSpec {
            target: Some("sim:config-a".to_owned()),
            workload: Some("randread".to_owned()),
            requests: Some(200),
            set: set.map(str::to_owned).to_vec(),
            keep: ssdyno_figures::Keep::None,
            ..RunSpec::default()
        };
        let rounds = Rounds::prepare(&[spec], 700, &mut ssdyno_session::Unattended).unwrap();
        let on = &mut |_: &RunList, _: &RunListProgress<'_>| KeepGoing::Continue;
        let (sides, failure) = rounds.carry_out(&["a".to_owned()], on).unwrap();
        assert_eq!((failure, sides[0].runs.len()), (None, 700));
        let (short, long) = sides[0].runs.split_at(500);
        for truth in
            spread(long).iter().filter(|f| ["iops", "latency_ns.mean"].contains(&&*f.figure))
        {
            let covers = |five: &&[RunResult]| {
                let all = spread(five);
                let figure = all.iter().find(|one| one.figure == truth.figure).unwrap();
                let interval = figure.interval.unwrap();
                interval.low < interval.high && (interval.low..=interval.high).contains(&truth.mean)
            };
            let covered = short.chunks(5).filter(covers).count();
            assert!((90..=99).contains(&covered), "{}: {covered} of 100", truth.figure);
        }
    }

    #[test]
    fn rounds_are_interleaved_and_pairs_have_the_same_seed() {
        let spec = |target: &str| RunSpec {
            target: Some(target.to_owned()),
            seed: 7,
            requests: Some(10),
            ..RunSpec::default()
        };
        let specs = ["sim:config-a", "sim:delay-10us"].map(spec);
        let rounds = Rounds::prepare(&specs, 3, &mut ssdyno_session::Unattended).unwrap();
        let order: Vec<(&str, u64)> =
            rounds.runs.iter().map(|run| (run.asked().target(), run.asked().seed)).collect();
        let (a, b) = ("sim:config-a", "sim:delay-10us");
        assert_eq!(order, [(a, 7), (b, 7), (a, 8), (b, 8), (a, 9), (b, 9)]);
    }
}
