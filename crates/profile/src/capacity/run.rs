//! Carries a capacity profile out.

use ssdyno_block::units::Bytes;
use ssdyno_engine::Rng;
use ssdyno_session::Failure;
use ssdyno_workload::WorkloadConfig;

use super::levels::{still_falls, window};
use super::load::{CapacityTest, Figure, LARGE_BYTES, LoadSizes, MIDDLE_BYTES, Place, SMALL_BYTES};
use super::report::result_of;
use super::result::{CpuLimit, ModerateLatency};
use super::slice::Slice;
use super::state::{LONG_DEPTH, TestState};
use crate::loads::{Loads, Timed, ended};
use crate::result::ProfileResult;
use crate::stopped::StoppedBecause;

/// Rounds of a figure at least.
pub(crate) const ROUNDS_MIN: usize = 5;
/// Stretches of the long writes that are looked at for the end of a burst.
const BINS: usize = 40;
/// Parts of a long write in which cycles are looked for.
const FINE_BINS: usize = 128;
/// How often long writes are prolonged while their rate falls.
const PROLONGED_MAX: u32 = 1;
/// A write whose round slows down by this share has not settled.
const SETTLED: f64 = 0.1;
/// Times that a ramp is doubled.
const DOUBLED_MAX: u32 = 4;
/// Depths and requests of a slice at least, and units of time at most: in search of a depth, in a round, for latencies.
const SEARCH: (f64, f64, f64) = (5.0, 50.0, 3.0);
/// Units of time before a mix counts at most in search of its depth.
const SEARCH_RAMP_MAX: f64 = 5.0;
const ROUND: (f64, f64, f64) = (20.0, 200.0, UNITS_MAX);
const LATENCY: (f64, f64, f64) = (20.0, 2000.0, UNITS_MAX);
const UNITS_MAX: f64 = 20.0;
/// Share of the sustained rate that counts as a moderate load.
const MODERATE: f64 = 0.8;
/// Rounds after which the sustained rate is known well enough for that.
const MODERATE_ROUNDS: usize = 2;

/// Everything of a capacity profile that is under way.
pub(crate) struct CapacityRun<'a> {
    pub(crate) loads: Loads<'a>,
    pub(crate) error: f64,
    pub(crate) sizes: LoadSizes,
    pub(crate) states: Vec<TestState>,
    /// Latencies at a moderate load, and its requests per second.
    moderate: Option<(ModerateLatency, f64)>,
    /// Seconds over which the rate of long writes is even: the length of a cycle of cleaning, or somewhat more.
    cycle: f64,
    pub(crate) cpu: Option<CpuLimit>,
}

/// Carries the capacity profile out that `loads` belong to.
pub(crate) fn execute(
    loads: Loads<'_>,
    error: f64,
) -> Result<(ProfileResult, Option<Failure>), Failure> {
    let [small, middle, large] =
        [SMALL_BYTES, MIDDLE_BYTES, LARGE_BYTES].map(|bytes| loads.request_bytes(bytes));
    loads.check_span(large)?;
    let sizes = LoadSizes { small, large, middle, span: loads.span };
    let states = CapacityTest::of(&loads.plan.ops).into_iter().map(TestState::new).collect();
    let mut run =
        CapacityRun { loads, error, sizes, states, moderate: None, cycle: 0.0, cpu: None };
    let how = run.phases();
    let (stopped, failure) = ended(how, run.loads.done == 0, run.loads.plan.method.name())?;
    Ok((result_of(&run, stopped), failure))
}

impl CapacityRun<'_> {
    fn phases(&mut self) -> Result<StoppedBecause, Failure> {
        for phase in [CapacityRun::long_writes, CapacityRun::depths] {
            if phase(self)?.is_none() {
                return Ok(StoppedBecause::TimeLimit);
            }
        }
        self.rounds()
    }

    /// The least length of a load: 0.3 s of 3 minutes.
    fn unit(&self) -> f64 {
        self.loads.plan.time.map_or(0.3, |time| (time.as_s_f64() / 600.0).clamp(0.005, 0.3))
    }

    /// The longest round: a slow disk must not use up the time with one.
    fn longest(&self) -> f64 {
        UNITS_MAX * self.unit()
    }

    fn index(&self, test: CapacityTest) -> Option<usize> {
        self.states.iter().position(|state| state.test == test)
    }

    /// Writes until the rate no longer falls: first sequential ones, which fill most in the time, then random ones,
    /// which leave the state that random writes find later.
    fn long_writes(&mut self) -> Timed<()> {
        let mut bursts = false;
        for figure in [Figure::Wbps, Figure::Wseqiops, Figure::Wrandiops] {
            let Some(at) = self.index(CapacityTest::Figure(figure)) else { continue };
            // If large sequential writes have no burst, there is no cache that small sequential
            // writes could fill. Their long write would take 15 s of 3 minutes in vain.
            if figure == Figure::Wseqiops && !bursts {
                continue;
            }
            if self.long_write(at, figure)?.is_none() {
                return Ok(None);
            }
            // The search for the depth follows while the cache is full. Later the cache may be
            // empty, and the search would find the depth that suits the cache.
            bursts |= self.states[at].has_burst();
            if bursts && self.search_depth(at)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// The length of a long write, in seconds.
    fn long(&self) -> f64 {
        50.0 * self.unit()
    }

    fn long_write(&mut self, at: usize, figure: Figure) -> Timed<()> {
        let length = self.long();
        let (mut rates, mut last, mut seconds) = (Vec::new(), Vec::new(), 0.0);
        for turn in 0..=PROLONGED_MAX {
            let mut config = self.config(at, LONG_DEPTH, true);
            // The first write begins at the start of the span, so that `filled` describes one
            // stretch. Reads of parts that were never written do not access the medium.
            if figure == Figure::Wbps && turn == 0 {
                config.address.start = Bytes(0);
                config.address.length =
                    Some(Bytes(self.sizes.span / self.sizes.large * self.sizes.large));
            }
            let Some(slice) = self.load(at, &config, length)? else { return Ok(None) };
            if figure == Figure::Wbps && turn == 0 {
                self.loads.filled = (slice.requests * self.sizes.large).min(self.sizes.span);
            }
            seconds += slice.length;
            rates.extend(slice.rates(BINS));
            last = slice.rates(FINE_BINS);
            // A rate that still falls at the end is no sustained rate. The number of
            // prolongations has a limit, so that a large cache does not use up the time.
            if !still_falls(&rates) {
                break;
            }
        }
        let size = self.states[at].test.size(&self.sizes);
        let (unit, longest) = (self.unit(), self.longest());
        let state = &mut self.states[at];
        state.look_for_burst(&rates, seconds, size);
        state.longest = state.longest.max(seconds);
        // Reads between two rounds give a cache the time to empty, and a short burst comes
        // back. So a round counts only after twice the length of the burst.
        let burst = state.burst(size).map_or(0.0, |burst| burst.seconds);
        state.ramp = unit.max(2.0 * burst).min(longest);
        // The parts of the last load after the burst, whose end is known to a stretch.
        let from = (burst - (seconds - length)).max(0.0) + length / BINS as f64;
        let width = length / last.len().max(1) as f64;
        let first = (from / width).ceil() as usize;
        let sustained = last.get(first..).unwrap_or_default();
        let parts = window(sustained, self.error);
        // Single parts that are even have no cycle. Longer rounds would take time in vain.
        let cycle = if parts > 1 { parts as f64 * width } else { 0.0 };
        self.cycle = self.cycle.max(cycle);
        Ok(Some(()))
    }

    /// Finds the depth of saturation of each load that has none yet. Loads of the same kind share it.
    fn depths(&mut self) -> Timed<()> {
        let random_writes = self.index(CapacityTest::Figure(Figure::Wrandiops));
        let random_writes = random_writes.map(|at| &self.states[at]);
        // A burst of credits is the same for all requests; a longer ramp only lets the credits come back in other loads.
        let of_buffer =
            random_writes.filter(|state| state.has_burst() && self.loads.credits.is_none());
        let burst_ramp = of_buffer.map(|state| state.ramp);
        for at in 0..self.states.len() {
            if !self.states[at].depths.is_empty() {
                continue;
            }
            // A mix fills the same buffer as random writes do, with a part of its requests only. It takes
            // longer, and its rates before that are not sustained.
            let writes = 1.0 - self.states[at].test.read_share();
            let is_mix = self.states[at].test.figure().is_none();
            if let Some(ramp) = burst_ramp.filter(|_| is_mix && writes > 0.0) {
                let least = (ramp / writes).min(SEARCH_RAMP_MAX * self.unit());
                self.states[at].ramp = self.states[at].ramp.max(least);
            }
            let like = match self.states[at].test {
                CapacityTest::CheckReads => CapacityTest::Figure(Figure::Rrandiops),
                CapacityTest::CheckLargeMix => CapacityTest::CheckSmallMix,
                other => other,
            };
            if like != self.states[at].test
                && let Some(like) = self.index(like)
            {
                self.states[at].depth = self.states[like].depth;
                continue;
            }
            if self.search_depth(at)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    fn search_depth(&mut self, at: usize) -> Timed<()> {
        let mut next = Some(1);
        // Random writes have a long write before the search, and mixes have none: the depth of a mix
        // would be searched in the burst of a write buffer.
        let may_fill_buffer =
            self.states[at].test.figure().is_none() && self.loads.credits.is_none();
        let ramp_most = SEARCH_RAMP_MAX * self.unit();
        while let Some(depth) = next {
            // The rate at the depth before says how long a request takes. The ramp and the
            // length of the load at this depth follow from it.
            let (mut ramp, length) = self.times(at, depth, SEARCH);
            if may_fill_buffer {
                ramp = ramp.max(self.states[at].ramp.min(ramp_most));
            }
            // The depths are compared at one place: on a disk, another place has another rate.
            let place = Place::number(0, self.loads.plan.seed);
            let config = self.states[at].test.config(&self.sizes, depth, place);
            let Some(slice) = self.load(at, &config, ramp + length)? else { return Ok(None) };
            if may_fill_buffer && ramp < ramp_most && self.is_unsettled(at, ramp, ramp, &slice) {
                continue;
            }
            let most = self.states[at].test.depth_most(&self.sizes);
            next = self.states[at].next_depth(depth, slice.rate(ramp)).filter(|next| *next <= most);
        }
        Ok(Some(()))
    }

    /// Seconds before a load counts and for which it counts, each at most `most` units: time for `requests`, and for
    /// `times` as many as are outstanding.
    fn times(&self, at: usize, depth: u32, (times, requests, most): (f64, f64, f64)) -> (f64, f64) {
        let (state, unit) = (&self.states[at], self.unit());
        let one = state.rate.map_or(0.0, |rate| 1.0 / rate);
        let queue = f64::from(depth) * one;
        let ramp = state.ramp.max(2.0 * queue).max(unit / 4.0).min(most * unit);
        (ramp, (times * queue).max(requests * one).clamp(unit, most * unit))
    }

    /// The load whose latencies are measured: the small mix, or small random reads if nothing is written.
    fn latency_load(&self) -> Option<usize> {
        let mix = self.index(CapacityTest::CheckSmallMix);
        mix.or_else(|| self.index(CapacityTest::Figure(Figure::Rrandiops)))
    }

    /// The latencies at a moderate load, with those of the rounds at saturation.
    pub(crate) fn latencies(&self) -> Option<ModerateLatency> {
        let ((moderate, iops), at) = (self.moderate?, self.latency_load()?);
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        let rounds = &self.states[at].p99_us;
        Some(ModerateLatency {
            load: iops / self.states[at].estimate()?.mean,
            read_p99_us_saturated: median(rounds.iter().map(|round| round.0).collect()),
            write_p99_us_saturated: median(rounds.iter().filter_map(|round| round.1).collect()),
            ..moderate
        })
    }

    /// Latencies at a moderate load, in relation to the rate that the first rounds sustained: the search for the depth may have
    /// seen a burst, and a share of its rate may be more than the device sustains.
    fn moderate(&mut self) -> Timed<()> {
        let Some(at) = self.latency_load() else { return Ok(Some(())) };
        let state = &self.states[at];
        let most = state.estimate().map(|sustained| MODERATE * sustained.mean);
        let depth = most.and_then(|most| state.depth_below(most));
        let Some(depth) = depth.filter(|_| self.moderate.is_none()) else { return Ok(Some(())) };
        let (ramp, length) = self.times(at, depth, LATENCY);
        let length = ramp + length.max(4.0 * self.unit());
        let config = self.config(at, depth, false);
        let Some(slice) = self.load(at, &config, length)? else { return Ok(None) };
        if let (Some(read_p99_us), write_p99_us) = slice.p99_us {
            let latency = ModerateLatency {
                depth,
                load: 0.0,
                read_p99_us,
                write_p99_us,
                read_p99_us_saturated: None,
                write_p99_us_saturated: None,
            };
            self.moderate = Some((latency, slice.rate(ramp)));
        }
        // Credits and caches recover at a moderate load. The next round would be faster than what is sustained, so a load that
        // does not count uses them up again.
        let config = self.config(at, self.states[at].depth, false);
        if self.load(at, &config, length)?.is_none() {
            return Ok(None);
        }
        Ok(Some(()))
    }

    /// Rounds of all loads in random order, later only of figures that are not known yet.
    fn rounds(&mut self) -> Result<StoppedBecause, Failure> {
        let mut order = Rng::new(self.loads.plan.seed, "capacity rounds");
        loop {
            let mut open: Vec<usize> =
                (0..self.states.len()).filter(|at| !self.is_known(*at)).collect();
            let is_figure = |at: &usize| self.states[*at].test.figure().is_some();
            let is_done = !open.iter().any(is_figure);
            let rounds = self.latency_load().map_or(0, |at| self.states[at].sustained().len());
            if (is_done || rounds >= MODERATE_ROUNDS) && self.moderate()?.is_none() {
                return Ok(StoppedBecause::TimeLimit);
            }
            if is_done {
                return Ok(StoppedBecause::WithinError);
            }
            // Each round has another random order. A drift, or the effect of one load on the
            // next, then does not always meet the same figure.
            for at in (1..open.len()).rev() {
                open.swap(at, order.below(at as u64 + 1) as usize);
            }
            for at in open {
                if self.round(at)?.is_none() {
                    return Ok(StoppedBecause::TimeLimit);
                }
            }
            if self.loads.checkpoint.is_due() {
                let result = result_of(self, StoppedBecause::Interrupted);
                self.loads.observer.checkpoint(&result);
            }
        }
    }

    fn is_known(&self, at: usize) -> bool {
        self.states[at].is_known(self.error, ROUNDS_MIN)
    }

    fn round(&mut self, at: usize) -> Timed<()> {
        let depth = self.states[at].depth;
        // The rounds of this load are in a burst that comes back. Another round would be in it,
        // too, so a long stretch takes its place.
        if self.states[at].refills() {
            let config = self.config(at, depth, true);
            let Some(slice) = self.load(at, &config, self.long())? else { return Ok(None) };
            self.states[at].add_stretch(&slice.rates(BINS));
            return Ok(Some(()));
        }
        let (ramp, length) = self.times(at, depth, ROUND);
        let (start, length) = self.over_cycles(at, ramp, length);
        let config = self.config(at, depth, false);
        let Some(slice) = self.load(at, &config, start + length)? else { return Ok(None) };
        if self.is_unsettled(at, ramp, start, &slice) {
            return Ok(Some(()));
        }
        let state = &mut self.states[at];
        state.add_round(slice.rate(start), self.loads.spent);
        if let (Some(read), write) = slice.p99_us {
            state.p99_us.push((read, write));
        }
        Ok(Some(()))
    }

    /// Where a load with writes begins to count, and for how long it counts: for a whole cycle of cleaning, from a random
    /// place of the cycle on. All loads begin with an empty buffer, so cycles begin at the same time in each of them, and
    /// equal rounds would all meet the same part of a cycle: their mean would be wrong, and their interval narrow.
    fn over_cycles(&self, at: usize, ramp: f64, length: f64) -> (f64, f64) {
        if self.states[at].test.read_share() >= 1.0 {
            return (ramp, length);
        }
        let place = Rng::new(self.loads.seed(), "capacity cycle").unit();
        (ramp + place * self.cycle, length.max(self.cycle))
    }

    /// Whether a load with writes still became slower after its ramp, from `start` on: it does not count, and the next ramp is
    /// twice as long.
    fn is_unsettled(&mut self, at: usize, ramp: f64, start: f64, slice: &Slice) -> bool {
        let (unit, longest) = (self.unit(), self.longest());
        let state = &mut self.states[at];
        let writes = state.test.read_share() < 1.0;
        // During the reads of other loads a buffer emptied, and it fills again now. A longer
        // ramp leaves the filling out.
        let is_unsettled = writes
            && state.doubled < DOUBLED_MAX
            && ramp < longest
            && slice.slows_down(start, SETTLED);
        if is_unsettled {
            state.ramp = (2.0 * ramp).max(unit);
            state.doubled += 1;
        }
        is_unsettled
    }

    fn config(&self, at: usize, depth: u32, is_long: bool) -> WorkloadConfig {
        let place = match is_long {
            true => Place { is_long, ..Place::number(0, self.loads.seed()) },
            false => Place::number(self.states[at].rounds_done(), self.loads.plan.seed),
        };
        self.states[at].test.config(&self.sizes, depth, place)
    }

    /// Loads the target for `length` seconds; nothing where the time limit comes first.
    fn load(&mut self, at: usize, config: &WorkloadConfig, length: f64) -> Timed<Slice> {
        let what = self.states[at].test.words(&self.sizes);
        // The progress needs a total. It assumes the least number of rounds, and about as many
        // loads that search for a depth.
        let of = (2 * ROUNDS_MIN * self.states.len()) as u64;
        let Some(result) = self.loads.carry(what.clone(), of, config, length, 0.0)? else {
            return Ok(None);
        };
        let slice = Slice::new(length, &result);
        self.states[at].saw(&slice);
        if let Some(cpu) = &slice.cpu
            && self.cpu.as_ref().is_none_or(|most| cpu.share > most.share)
        {
            let (share, jobs, cores) = (cpu.share, cpu.jobs, cpu.cores.clone());
            self.cpu = Some(CpuLimit { load: what, share, jobs, cores });
        }
        Ok(Some(slice))
    }
}
