//! The search for the fastest method (`--tune`): short runs of the load itself before the run.
//!
//! With a given number outstanding, a closed loop is as fast as its mean latency is low (Little's
//! invariant), waits for the rest of a batch included. So the method with the highest rate is the honest
//! one, and among those that are as fast the one that takes most at a time costs least: fewer system calls
//! and switches.
//! A device that completes many requests at once gets as many back at once, and has nothing to do until the
//! last of them is prepared; submitted in pairs, the first ones are under way by then. One that
//! completes with threads of the kernel, such as a loop device, is kept at work best by requests that come
//! one by one.
//! Who sleeps has to be woken, which takes as long as a fast device takes to complete (in virtual machines
//! longer), is in every latency, and keeps the device waiting for the next request. With few outstanding it
//! can pay to spin, though that takes a core: it must be worth [`CORE`](race::CORE).
//!
//! Each trial is the whole load - its reads and its writes, its jobs - for [`ROUND`], which is long
//! against what a scheduler and an idle core take to settle. The search never writes where the run
//! may not.

mod candidate;
mod race;

use std::sync::Arc;
use std::time::Duration;

use candidate::Candidate;
use race::Race;
use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_figures::{Keep, KeepGoing, RunLimits, RunProgress, TunedMethod};
use ssdyno_workload::Source;

use crate::error::BenchError;
use crate::measure::measure;
use crate::method::{ALL, Method, PAIR, ReapWait, SubmitStrategy};
use crate::options::{BenchOptions, Probing};
use crate::pinning::{self, Interrupts};
use crate::plan::{LoadPlan, Means};
use crate::run::BenchRun;
use crate::target::RealTarget;

/// The time of one trial of a method.
const ROUND: Duration = Duration::from_millis(if cfg!(test) { 5 } else { 200 });
/// The first load, with which device and machine settle.
const WARM_UP: Duration = Duration::from_millis(if cfg!(test) { 5 } else { 1_000 });
/// The rate in requests per second below which our part of each request is far below a hundredth of
/// it.
const SLOW_IOPS: f64 = if cfg!(test) { 0.0 } else { 2_000.0 };

/// What the search found.
#[derive(Clone, Debug)]
pub(crate) struct Tuned {
    /// The options of the run, with the fastest method instead of the search.
    pub(crate) options: BenchOptions,
    /// Each method with its rate.
    pub(crate) tried: Vec<TunedMethod>,
    /// The note about it.
    pub(crate) note: String,
}

/// Finds the fastest method for `run`, whose target is open.
pub(crate) fn search(
    run: &BenchRun,
    target: &Arc<RealTarget>,
    progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
) -> Result<Tuned, BenchError> {
    let plan = LoadPlan::new(run, target)?;
    let depth = plan.jobs.iter().map(|job| job.slots).max().unwrap_or(1);
    let (alone, free) = (plan.jobs.len() == 1, run.options.stay && run.options.cores.is_empty());
    searchable(&plan)?;
    if plan.jobs.iter().any(|job| !job.workload.depth_searches().is_empty()) {
        let why = "latency_target: the depth changes during the search; search for the method at the depth that was found";
        return Err(BenchError::option("tune", why));
    }
    // A core for each spinning job: it is unknown whether they are free. Polling, the kernel spins.
    let ladder = ladder(depth, alone && plan.means.may_spin());
    drop(plan);
    let mut trials = Trials { run, target, progress, done: 0.0, of: ladder.len() };
    let default = Candidate { strategy: Method::Default.strategy(), core: None };
    let disk = target.disk_name();
    let interrupts = disk.as_deref().and_then(Interrupts::of_disk);
    let before = interrupts.as_ref().map(Interrupts::counts);
    // The first load also lets caches, clocks and the scheduler settle. Its rate decides whether
    // a search is worth its time at all.
    let settled = trials.rate(default, 0, WARM_UP)?;
    if settled < SLOW_IOPS {
        let note = format!(
            "tuned: no search, since at {settled:.0} IOPS the method does not matter; the default method is used"
        );
        let options = BenchOptions { tune: false, ..run.options.clone() };
        return Ok(Tuned { options, tried: Vec::new(), note });
    }
    let interrupted =
        interrupts.zip(before).and_then(|(all, before)| before.core_until(&all.counts()));
    let mut race = Race::new(ladder);
    race.run(|candidate, round| trials.rate(candidate, round, ROUND))?;
    let mut best = race.choice();
    let mut tried = race.tried();
    // On a loop device the job stays where it starts in any case.
    let stays = disk.is_some_and(|disk| disk.starts_with("loop"));
    if alone && free && !stays {
        // Cores are tried with the best method only. Trying every method on every core would
        // take many times longer.
        let pinned = |core| Candidate { core: Some(core), ..best };
        let cores = pinning::worth_binding(interrupted);
        // To be bound costs freedom: it is tried as if it cost more than not to be.
        let mut race = Race::new([best].into_iter().chain(cores.into_iter().map(pinned)).collect());
        if !race.is_one() {
            race.run(|candidate, round| trials.rate(candidate, round, ROUND))?;
            best = race.choice();
            tried.extend(race.tried().into_iter().filter(|tried| tried.settings.pin.is_some()));
        }
    }
    Ok(Tuned { options: best.applied(&run.options), note: note(best, &tried), tried })
}

/// Whether there is anything to search for.
fn searchable(plan: &LoadPlan) -> Result<(), BenchError> {
    let why = match plan.means {
        Means::Null => "null: completes everything at once with every method",
        Means::Threads => "the engine `threads` has one method: each thread waits in its own call",
        Means::Uring(_) | Means::Passthrough(_) | Means::Network { .. } if !plan.closed => {
            "in an open loop, arrival times decide when requests start, for every method"
        }
        Means::Uring(_) | Means::Passthrough(_) | Means::Network { .. } => return Ok(()),
    };
    Err(BenchError::option("tune", why))
}

/// Methods worth trying, cheapest first. The second largest batch leaves the device something to do while
/// the next one is prepared.
fn ladder(depth: u32, may_spin: bool) -> Vec<Candidate> {
    let of = |complete: u32, submit, waiting| {
        // A strategy is cut to the depth of the job. Several of them may become the same, and
        // duplicates are removed below.
        let strategy = SubmitStrategy { complete, submit, waiting }.of_job(depth, true);
        Candidate { strategy, core: None }
    };
    let mut all = Vec::new();
    for complete in [depth, depth - depth / 10, depth / 2, depth / 4, depth / 8] {
        all.push(of(complete, ALL, ReapWait::Sleep));
    }
    all.push(of(depth / 2, PAIR, ReapWait::Sleep));
    all.push(of(1, ALL, ReapWait::Sleep));
    all.push(of(1, PAIR, ReapWait::Sleep));
    // Each by itself, for two completions - waking up for one costs as much as for two - and for each one: fio's
    // way where nothing else is said.
    all.push(of(2, 1, ReapWait::Sleep));
    all.push(of(1, 1, ReapWait::Sleep));
    if may_spin {
        all.push(of(depth / 2, PAIR, ReapWait::Spin));
        all.push(of(1, ALL, ReapWait::Spin));
        all.push(of(1, 1, ReapWait::Spin));
    }
    all.retain(|candidate| candidate.strategy.complete > 0);
    let mut ladder: Vec<Candidate> = Vec::new();
    for candidate in all {
        if !ladder.contains(&candidate) {
            ladder.push(candidate);
        }
    }
    ladder
}

/// Loads of the target for a while.
struct Trials<'a> {
    run: &'a BenchRun,
    target: &'a Arc<RealTarget>,
    progress: &'a mut dyn FnMut(&RunProgress) -> KeepGoing,
    /// Rounds so far, for the viewer.
    done: f64,
    of: usize,
}

impl Trials<'_> {
    /// Requests a second with `candidate` in a load of `length`.
    fn rate(
        &mut self,
        candidate: Candidate,
        round: usize,
        length: Duration,
    ) -> Result<f64, BenchError> {
        let trial = self.trial(candidate, round, length);
        self.done += 1.0;
        // How long it takes in all is not known: it gets slower towards the end.
        let least = (self.of * race::ROUNDS_LEAST) as f64;
        let preparing = Some(self.done / (self.done + least));
        let mut tell = |_: &RunProgress| match (self.progress)(&RunProgress {
            preparing,
            ..RunProgress::default()
        }) {
            KeepGoing::Stop => KeepGoing::Stop,
            KeepGoing::Continue | KeepGoing::LiveSnapshot => KeepGoing::Continue,
        };
        let measured = measure(&trial, self.target, &mut tell)?;
        match measured.failure {
            Some(BenchError::Interrupted) => Err(BenchError::Unprepared),
            Some(failure) => Err(failure),
            None => Ok(measured.result.iops),
        }
    }

    /// The load of the run for `length`, on other addresses: what the run begins with must not be cached.
    fn trial(&self, candidate: Candidate, round: usize, length: Duration) -> BenchRun {
        let time = Time::from_ns(length.as_nanos() as u64);
        let mut source = self.run.source.clone();
        match &mut source {
            Source::Generator(config) => {
                (config.requests, config.ramp_up, config.duration) = (None, 0, Some(Span(time)));
            }
            Source::Jobs { jobs, .. } => jobs.iter_mut().for_each(|job| {
                (job.start_delay, job.ramp) = (Time::ZERO, Time::ZERO);
                job.end_after(time);
            }),
            Source::Trace { .. } => {}
        }
        let BenchRun { seed, options, .. } = self.run;
        let options = BenchOptions { probing: Probing::Off, ..candidate.applied(options) };
        BenchRun {
            source,
            // Other addresses than those of the run: blocks that a trial has read would be in a
            // cache of the device when the run begins with them.
            seed: !seed ^ (round as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            limits: RunLimits { duration: Some(time), ..RunLimits::default() },
            keep: Keep::Summary,
            rows_in: None,
            interval: None,
            ..self.run.read_only_with(options)
        }
    }
}

/// The result, in words.
fn note(best: Candidate, tried: &[TunedMethod]) -> String {
    let rate = |tried: &TunedMethod| {
        let (rate, spread) = (tried.iops / 1e3, tried.iops_spread / 1e3);
        let digits = if rate < 100.0 { 1 } else { 0 };
        format!("{} {rate:.digits$} ± {spread:.digits$}", tried.settings)
    };
    let rounds = || tried.iter().map(|tried| tried.rounds);
    let each: Vec<String> = tried.iter().map(rate).collect();
    format!(
        "tuned: `{}` is the cheapest of the fastest methods; the replay command uses it (k IOPS in {} to {} \
         rounds of {} ms: {})",
        best.settings(),
        rounds().min().unwrap_or(0),
        rounds().max().unwrap_or(0),
        ROUND.as_millis(),
        each.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(ladder: &[Candidate]) -> Vec<String> {
        let short = |text: String| {
            text.replace("batch ", "").replace("submit ", "").replace("wait ", "").replace(',', "")
        };
        ladder.iter().map(|candidate| short(candidate.settings().to_string())).collect()
    }

    #[test]
    fn the_ladder_has_every_named_method() {
        for depth in [1, 2, 4, 8, 32, 128] {
            let ladder = ladder(depth, true);
            for method in Method::ALL {
                let strategy = method.strategy().of_job(depth, true);
                assert!(ladder.contains(&Candidate { strategy, core: None }), "{method:?} {depth}");
            }
        }
    }

    #[test]
    fn small_depths_have_few_methods() {
        assert_eq!(options(&ladder(1, false)), ["1 all sleep"]);
        assert_eq!(options(&ladder(1, true)), ["1 all sleep", "1 all spin"]);
        assert_eq!(
            options(&ladder(2, false)),
            ["2 all sleep", "1 all sleep", "2 1 sleep", "1 1 sleep"]
        );
        let four = options(&ladder(4, false));
        assert_eq!(four[..3], ["4 all sleep", "2 all sleep", "1 all sleep"]);
        assert_eq!(four[3..], ["2 2 sleep", "1 2 sleep", "2 1 sleep", "1 1 sleep"]);
        let deep = options(&ladder(32, true));
        assert_eq!(deep[..4], ["32 all sleep", "29 all sleep", "16 all sleep", "8 all sleep"]);
        assert_eq!(deep[10..], ["16 2 spin", "1 all spin", "1 1 spin"]);
    }

    #[test]
    fn what_is_printed_pins_what_was_found() {
        let strategy = SubmitStrategy { complete: 16, submit: 2, waiting: ReapWait::Spin };
        let found = Candidate { strategy, core: Some(1) };
        assert_eq!(found.settings().to_string(), "batch 16, submit 2, wait spin, pin 1");
        let applied = found.applied(&BenchOptions { tune: true, ..BenchOptions::default() });
        assert_eq!((applied.strategy(), applied.cores, applied.tune), (strategy, vec![1], false));
    }
}
