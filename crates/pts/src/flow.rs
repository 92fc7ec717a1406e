//! Purge, preconditioning, rounds.

use ssdyno_block::counted;
use ssdyno_figures::{
    ByOp, KeepGoing, LatencyBin, RunProgress, RunResult, Warning, WarningKind, significant,
};
use ssdyno_session::{Failure, FailureKind, KeptTarget, Observer, Stage, look_at_the_log};

use crate::doubt::Doubt;
use crate::plan::{Load, PartPlan, PtsPlan};
use crate::result::{PtsCell, PtsHistogram, PtsPart, PtsResult, PtsStep, Round, Settings, Tracked};
use crate::rule::Window;
use crate::target::purge;

const SPECIFICATION: &str = "SNIA Solid State Storage Performance Test Specification 2.0.2";

/// Version of the shape of [`PtsResult`].
const SCHEMA_VERSION: u32 = 1;

impl PtsPlan {
    /// Carries the test out. An error before the first load is returned; a later one comes with
    /// the partial result.
    ///
    /// # Errors
    /// The plan does not suit the target, or the target cannot be used.
    pub fn execute(
        &self,
        target: &mut KeptTarget,
        observer: &mut dyn Observer<PtsResult>,
    ) -> Result<(PtsResult, Option<Failure>), Failure> {
        let facts = target.facts();
        let mut notes = Vec::new();
        let parts = self.parts(&facts, &mut notes)?;
        let active = (facts.capacity_bytes as f64 * self.active_range_percent / 100.0) as u64;
        let result = PtsResult {
            schema_version: SCHEMA_VERSION,
            target: self.target.clone(),
            test: self.test,
            specification: SPECIFICATION.to_owned(),
            seed: self.seed,
            partial: true,
            steady: false,
            settings: Settings {
                round_seconds: self.round.as_s_f64(),
                rounds_max: self.rounds_max,
                histogram_seconds: self.histogram().map_or(0.0, |length| length.as_s_f64()),
                outstanding: self.outstanding(),
                precondition_times: self.precondition,
                capacity_bytes: facts.capacity_bytes,
                active_range_bytes: active,
                sector_bytes: facts.sector_bytes,
            },
            parts: Vec::new(),
            warnings: Vec::new(),
            notes,
        };
        // The total is what the test takes without a steady state. Rounds that were not needed
        // count as done later, so that the progress never goes back.
        let rounds: u64 =
            parts.iter().map(|p| u64::from(self.rounds_max) * p.loads.len() as u64).sum();
        let stage = Stage { what: String::new(), done: 0, of: rounds + 3 * parts.len() as u64 };
        let mut flow = Run { plan: self, target, observer, result, stage, doubts: Vec::new() };
        // An error after the first load does not cost the rounds before it. The partial result
        // and the error are returned together.
        let failure = flow.parts(&parts).err().map(early_end);
        let (mut result, doubts) = (flow.result, flow.doubts);
        let machine = flow.target.machine_warning();
        // The result was marked partial from the start. A checkpoint that outlives a crash of
        // the machine is then partial without further work.
        result.partial = failure.is_some();
        self.remark(&mut result, &doubts, flow.target.slows_with_writes());
        result.steady = failure.is_none() && result.parts.iter().all(PtsPart::is_steady);
        result.warnings.extend(machine);
        Ok((result, failure))
    }
}

/// Told to stop.
fn interrupted() -> Failure {
    Failure::new(FailureKind::Interrupted, "interrupted")
        .with_help("the completed rounds are in the result")
}

/// Why the test ended under way: because of the target, whatever kind of failure it told of.
fn early_end(failure: Failure) -> Failure {
    match failure.kind {
        // A load that was interrupted before it began is not a failure of the target. Rounds
        // before it may have measured something.
        FailureKind::Interrupted => interrupted(),
        _ => Failure { kind: FailureKind::Failed, ..failure },
    }
}

struct Run<'a> {
    plan: &'a PtsPlan,
    target: &'a mut KeptTarget,
    observer: &'a mut dyn Observer<PtsResult>,
    result: PtsResult,
    stage: Stage,
    /// The doubt about the last tracked load of each part.
    doubts: Vec<Option<Doubt>>,
}

impl Run<'_> {
    fn parts(&mut self, parts: &[PartPlan]) -> Result<(), Failure> {
        for part in parts {
            let (figure, ..) = self.plan.test.tracked();
            let tracked = Tracked {
                figure: figure.to_owned(),
                load: part.tracked.name(),
                ..Tracked::default()
            };
            self.result.parts.push(PtsPart {
                name: part.name.clone(),
                tracked,
                ..PtsPart::default()
            });
            self.doubts.push(None);
            let ended =
                self.prepare().and_then(|()| self.rounds(part)).and_then(|()| self.histogram(part));
            // The averages are computed before the error leaves the function. A test that was
            // interrupted then has the averages of its finished rounds.
            if let Some(last) = self.result.parts.last_mut() {
                last.average(part.loads.len());
            }
            ended?;
        }
        Ok(())
    }

    /// What comes before the rounds.
    fn prepare(&mut self) -> Result<(), Failure> {
        if self.plan.purge {
            self.stage.what = "purge".to_owned();
            let (stage, observer) = (&self.stage, &mut *self.observer);
            let mut is_stopped = false;
            let detail = purge(self.target, &mut |progress| {
                let flow = observer.under_way(stage, progress);
                is_stopped |= flow == KeepGoing::Stop;
                flow
            })?;
            // The purge of a real target is a load of discards and has no cell. An interrupt
            // ends the test here; a half purge is not a step of it.
            if is_stopped {
                return Err(interrupted());
            }
            self.step("purge", detail, 0.0, 0);
        }
        self.stage.done += 1;
        let facts = self.target.facts();
        if let Some(config) = self.plan.precondition(&facts) {
            let times = self.plan.precondition;
            self.stage.what = format!("overwriting the device {times} times{}", self.left());
            let result = self.load(&config, None, "preconditioning")?;
            let written = result.throughput_bytes_per_second * result.simulated_seconds;
            let share = written / facts.capacity_bytes.max(1) as f64;
            let times = match result.partial {
                true => format!("{} instead of {times}", significant(share, 2)),
                false => times.to_string(),
            };
            let detail = format!("sequential writes of 128 KiB, {times} times the capacity");
            let name = "workload_independent_preconditioning";
            self.step(name, detail, result.simulated_seconds, written.round() as u64);
            if result.partial {
                return Err(interrupted());
            }
        }
        self.stage.done += 1;
        Ok(())
    }

    /// `, then at most 1400 s`: how long the loads of the remaining rounds take if no steady state is found. Empty on a
    /// simulated target, where a second of the device is no second of the user.
    fn left(&self) -> String {
        if !self.target.is_real() {
            return String::new();
        }
        let loads = self.stage.of.saturating_sub(self.stage.done);
        let most = loads as f64 * self.plan.round.as_s_f64();
        format!("; the rounds take at most {} more", ssdyno_figures::seconds(most))
    }

    fn step(&mut self, step: &str, detail: String, seconds: f64, written_bytes: u64) {
        if let Some(part) = self.result.parts.last_mut() {
            part.steps.push(PtsStep { step: step.to_owned(), detail, seconds, written_bytes });
        }
    }

    fn rounds(&mut self, part: &PartPlan) -> Result<(), Failure> {
        for round in 1..=self.plan.rounds_max {
            let mut tracked = 0.0;
            if let Some(part) = self.result.parts.last_mut() {
                part.rounds.push(Round { round, cells: Vec::new() });
            }
            for load in &part.loads {
                self.stage.what = format!("round {round}, {}{}", load.name(), self.left());
                let config = self.plan.config(load);
                let result = self.load(&config, Some(self.plan.round), &load.name())?;
                // A load that was cut short is no cell. Its mean would be of another length
                // than those of the other rounds, and the window would compare both.
                if result.partial {
                    return Err(interrupted());
                }
                let cell = cell(load, &result);
                if *load == part.tracked {
                    let (_, figure, ..) = self.plan.test.tracked();
                    tracked = figure(&cell).unwrap_or(0.0);
                    let doubt = Doubt::of(&result, cell.written_bytes);
                    if let Some(part) = self.result.parts.last_mut() {
                        part.tracked.doubt = doubt.as_ref().map(|doubt| doubt.text(&load.name()));
                    }
                    if let Some(last) = self.doubts.last_mut() {
                        *last = doubt;
                    }
                }
                let rounds = self.result.parts.last_mut().and_then(|part| part.rounds.last_mut());
                if let Some(rounds) = rounds {
                    rounds.cells.push(cell);
                }
                self.stage.done += 1;
            }
            let Some(now) = self.result.parts.last_mut() else { return Ok(()) };
            now.tracked.values.push(tracked);
            now.tracked.window = Window::last(&now.tracked.values);
            now.average(part.loads.len());
            // A doubt does not go on to more rounds: its remedy is a longer round, and the rounds that follow are as short.
            let steady = now.is_constant();
            self.observer.checkpoint(&self.result);
            if steady {
                // The progress was planned for the greatest number of rounds. The rounds that
                // are not needed count as done, so that it reaches its end.
                let left = u64::from(self.plan.rounds_max - round);
                self.stage.done += left * part.loads.len() as u64;
                break;
            }
        }
        Ok(())
    }

    /// The tracked load once more, for long, with every answer.
    fn histogram(&mut self, part: &PartPlan) -> Result<(), Failure> {
        if let Some(length) = self.plan.histogram() {
            let name = part.tracked.name();
            self.stage.what = format!("response time histogram, {name}");
            let config = self.plan.config(&part.tracked);
            let result = self.load(&config, Some(length), &name)?;
            // The histogram must have the length that the plan says. A load that was cut short
            // shows fewer of the rare long latencies.
            if result.partial {
                return Err(interrupted());
            }
            let histogram = histogram(name, &result, cell(&part.tracked, &result));
            if let Some(last) = self.result.parts.last_mut() {
                last.histogram = Some(histogram);
            }
            self.observer.checkpoint(&self.result);
        }
        self.stage.done += 1;
        Ok(())
    }

    /// Partial where it was told to stop.
    fn load(
        &mut self,
        config: &ssdyno_workload::WorkloadConfig,
        length: Option<ssdyno_block::Time>,
        name: &str,
    ) -> Result<RunResult, Failure> {
        let (stage, observer) = (&self.stage, &mut *self.observer);
        // Each load has its own seed, which follows from the seed of the plan and the progress.
        // Equal addresses in all rounds could be served from a cache.
        let seed = self.plan.seed.wrapping_mul(1_000_003).wrapping_add(stage.done);
        let mut is_stopped = false;
        let mut watch = |progress: &RunProgress| {
            let flow = observer.under_way(stage, progress);
            is_stopped |= flow == KeepGoing::Stop;
            flow
        };
        // The observer is asked once more after the load. A load may be shorter than the time
        // between two reports of progress, and the interrupt would be lost.
        let mut result = self.target.load(config, seed, length, &mut watch)?;
        result.partial |= watch(&RunProgress::default()) == KeepGoing::Stop || is_stopped;
        keep_warnings(&mut self.result.warnings, &result);
        // Latencies and rates leave failed requests out, so a failing device would look
        // healthy. The test ends here, and the finished rounds stay in the result.
        match result.errors {
            0 => Ok(result),
            errors => {
                // Its figures would be those of an unwell device.
                let (errors, look) =
                    (counted(errors, "request", "requests"), look_at_the_log(&self.plan.target));
                Err(Failure::failed(format!("{errors} ended in an error ({name})"))
                    .with_help(format!("{look}; a worn or failing device cannot be tested")))
            }
        }
    }
}

/// Keeps what a load says of a target in memory: the table is of that then, whatever load it was.
fn keep_warnings(kept: &mut Vec<Warning>, load: &RunResult) {
    for warning in load.warnings.iter().filter(|one| one.kind == WarningKind::Memory) {
        // Each load repeats the warning about the same target. A test of 56 loads a round would
        // have hundreds of them.
        if !kept.contains(warning) {
            kept.push(warning.clone());
        }
    }
}

fn cell(load: &Load, result: &RunResult) -> PtsCell {
    let latency = result.latency_ns.as_ref().map(|latency| latency.all);
    PtsCell {
        read_percent: load.read_percent,
        block_bytes: load.block_bytes,
        iops: result.iops,
        throughput_bytes_per_second: result.throughput_bytes_per_second,
        latency_ns_mean: latency.map(|latency| latency.mean),
        latency_ns_p99_999: five_nines(&result.latency_distribution)
            .map(|upper| latency.map_or(upper, |latency| upper.min(latency.max))),
        latency_ns_max: latency.map(|latency| latency.max),
        written_bytes: result.series.iter().map(|point| point.write_bytes).sum(),
    }
}

fn histogram(load: String, result: &RunResult, cell: PtsCell) -> PtsHistogram {
    // Reads and writes have bins at the same places. Bins of one place become one, because the
    // histogram is that of all requests.
    let mut bins: Vec<LatencyBin> = Vec::new();
    for bin in sorted(&result.latency_distribution) {
        match bins.last_mut() {
            Some(last) if (last.from_ns, last.to_ns) == (bin.from_ns, bin.to_ns) => {
                last.count += bin.count;
            }
            _ => bins.push(*bin),
        }
    }
    PtsHistogram {
        load,
        seconds: result.simulated_seconds,
        requests: bins.iter().map(|bin| bin.count).sum(),
        latency_ns_mean: cell.latency_ns_mean,
        latency_ns_p99_999: cell.latency_ns_p99_999,
        latency_ns_max: cell.latency_ns_max,
        bins,
    }
}

/// All bins, by their upper ends.
fn sorted(distribution: &ByOp<Vec<LatencyBin>>) -> Vec<&LatencyBin> {
    let mut bins: Vec<&LatencyBin> = distribution.iter().flat_map(|(_, bins)| bins).collect();
    bins.sort_by_key(|bin| (bin.to_ns, bin.from_ns));
    bins
}

/// The 99.999th percentile: the middle of its bin, which is at most 1/32 wide; `None` where less than one request in all
/// would lie above.
fn five_nines(distribution: &ByOp<Vec<LatencyBin>>) -> Option<f64> {
    let bins = sorted(distribution);
    let total: u64 = bins.iter().map(|bin| bin.count).sum();
    // With fewer than 100 000 requests less than one request lies above the percentile. The
    // largest latency would then pose as the percentile.
    let above = total / 100_000;
    if above == 0 {
        return None;
    }
    let mut below = 0;
    let bin = bins.into_iter().find(|bin| {
        below += bin.count;
        below >= total - above
    })?;
    // The upper end would be up to 3.1 % too high: bins divide an octave evenly, so the first
    // ones of an octave are the widest by their latency.
    Some((bin.from_ns + bin.to_ns) as f64 / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_nines_need_a_hundred_thousand() {
        let bin = |from_ns, to_ns, count| LatencyBin { from_ns, to_ns, count };
        let of = |read, write| ByOp { read, write, ..ByOp::default() };
        assert_eq!(five_nines(&of(vec![bin(100, 102, 99_999)], vec![])), None);
        let most = vec![bin(100, 102, 150_000), bin(900, 910, 1)];
        assert_eq!(five_nines(&of(most.clone(), vec![])), Some(101.0));
        assert_eq!(five_nines(&of(most, vec![bin(500, 510, 2)])), Some(505.0));
        // The widest bin by its latency, wherever in it the percentile lies.
        let widest = five_nines(&of(vec![bin(1_024, 1_056, 200_000)], vec![])).unwrap();
        assert!([1_024.0, 1_055.0].iter().all(|truth: &f64| (widest / truth - 1.0).abs() < 0.02));
    }

    /// Every load of a test warns of the page cache and of its own troubles; the test says the first once.
    #[test]
    fn warnings_of_memory_are_kept_once() {
        let memory = Warning::new(WarningKind::Memory, "requests go through the page cache");
        let warnings = vec![memory.clone(), Warning::new(WarningKind::WarmUp, "a warm-up")];
        let load = RunResult { warnings, ..RunResult::default() };
        let mut kept = Vec::new();
        keep_warnings(&mut kept, &load);
        keep_warnings(&mut kept, &load);
        assert_eq!(kept, [memory]);
    }
}
