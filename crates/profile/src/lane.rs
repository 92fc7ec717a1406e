//! The tests at one depth, one after the other.

use std::time::Instant;

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_figures::{RunResult, Warning, seconds as duration};
use ssdyno_session::{Failure, KeptTarget, Observer, Stage};
use ssdyno_workload::WorkloadConfig;

use crate::credits::{credits_of, credits_text};
use crate::error::{interrupted, requests_failed};
use crate::loads::watched;
use crate::measure::{Measurement, Measurements, ProfileOp, ProfileTest};
use crate::plan::ProfilePlan;
use crate::recency::{PLACES, Place, Recency};
use crate::result::{
    Advice, ByTest, ProfileResult, ProfileSummary, RatioSummary, pays_from, ratios,
};
use crate::resume::sessions;
use crate::session::{PlanRecord, ProfileSession};
use crate::settle;
use crate::sizes::Sizes;
use crate::stopped::StoppedBecause;
use crate::strategy::{NextTest, Slice, Strategy, tail};

/// A test that the time limit ended counts with this many requests or more: fewer are mostly the way to the first
/// record.
const CUT_REQUESTS_MIN: u64 = 8;

/// Slices with failed requests, one after another, that end a profile. A device that fails 1 % of its requests has about
/// four such slices of 16 to 256 requests in a row; one that is gone has nothing else.
const FAILED_MAX: u32 = 25;

/// The tests at one depth.
pub(crate) struct Lane {
    plan: ProfilePlan,
    is_real: bool,
    span: u64,
    /// Seconds on the clock of the device that the tests of this session may take; `None`: as long as they need.
    pub(crate) limit: Option<f64>,
    /// Why there are no more tests.
    pub(crate) ended: Option<StoppedBecause>,
    strategy: Box<dyn Strategy>,
    measurements: Measurements,
    /// Sessions before this one, the tests that they began, and how many measurements they gave.
    before: Vec<ProfileSession>,
    before_tests: u64,
    /// Seconds on the wall of these sessions.
    before_wall: f64,
    held: usize,
    record: Option<PlanRecord>,
    /// Whether the state that whole tests need is there: after a break it may not be.
    settled: bool,
    /// What this session did so far.
    pub(crate) session: ProfileSession,
    /// Slices with failed requests, one after another.
    failed_in_a_row: u32,
    /// What the last test that used burst credits says of them.
    credits: Option<Warning>,
    notes: Vec<String>,
    began: Instant,
}

/// What all lanes share.
pub(crate) struct Shared<'a> {
    pub(crate) target: &'a mut KeptTarget,
    pub(crate) observer: &'a mut dyn Observer<ProfileResult>,
    /// The accesses of all depths: they share the span.
    pub(crate) recency: Recency,
    /// Tests begun in this session.
    pub(crate) tests: u64,
    /// Tests that the other lanes have left.
    pub(crate) others_left: u64,
    /// Whether there are several depths.
    pub(crate) several: bool,
}

impl Lane {
    /// The lane of `plan`, which has one depth; `before` is what earlier sessions measured at it.
    pub(crate) fn new(
        plan: ProfilePlan,
        span: u64,
        mut strategy: Box<dyn Strategy>,
        before: Option<&ProfileResult>,
        is_real: bool,
    ) -> Lane {
        let mut measurements = Measurements::default();
        let mut sessions_before = Vec::new();
        if let Some(result) = before {
            strategy.resume(&sessions(result));
            result.measurements.iter().for_each(|one| measurements.add(*one));
            sessions_before.clone_from(&result.sessions);
        }
        Lane {
            plan,
            is_real,
            span,
            limit: None,
            ended: None,
            strategy,
            held: measurements.all().len(),
            measurements,
            record: None,
            before_tests: sessions_before.iter().map(|one| one.tests).sum(),
            before_wall: before.map_or(0.0, |result| result.wall_seconds),
            // The order of the tests writes the span before the random tests. Only a later
            // session may begin in the middle of that order.
            settled: sessions_before.is_empty(),
            before: sessions_before,
            session: ProfileSession::default(),
            failed_in_a_row: 0,
            credits: None,
            notes: Vec::new(),
            began: Instant::now(),
        }
    }

    /// The lane whose result can be resumed, and has the notes of all.
    pub(crate) fn leads(&mut self, record: PlanRecord, notes: Vec<String>) {
        (self.record, self.notes) = (Some(record), notes);
    }

    /// Whether nothing was measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.measurements.all().is_empty()
    }

    pub(crate) fn tests_left(&self) -> u64 {
        if self.ended.is_some() { 0 } else { self.strategy.tests_left(&self.measurements) }
    }

    /// The next test; sets `ended` if there is none.
    pub(crate) fn step(&mut self, shared: &mut Shared<'_>) -> Result<(), Failure> {
        // The number is read before `next`, which counts the coming test as begun. The share of
        // the time must include that test.
        let left = self.strategy.tests_left(&self.measurements);
        let (test, size, slice) = match self.strategy.next(&self.measurements) {
            NextTest::Measure { test, size_bytes, slice } => {
                (test, size_bytes, slice.map(|slice| slice.at_depth(self.plan.depth)))
            }
            NextTest::Done(because) => {
                self.ended = Some(because);
                return Ok(());
            }
        };
        self.settle(test, size, slice, left, shared)?;
        let length = self.length(left);
        // `spent` is a sum of floating-point seconds, so a used-up limit seldom leaves exactly
        // zero. A rest below one microsecond is the rounding of that sum.
        if length.is_some_and(|length| length < Time::from_us(1)) {
            self.ended = Some(StoppedBecause::TimeLimit);
            return Ok(());
        }
        let stage = self.stage(&format!("{test}, {}", Bytes(size)), left, shared);
        self.measure((test, size, slice), length, &stage, shared)?;
        self.session.tests += 1;
        shared.tests += 1;
        Ok(())
    }

    fn stage(&self, what: &str, left: u64, shared: &Shared<'_>) -> Stage {
        let what = match shared.several {
            true => format!("{what}, depth {}", self.plan.depth),
            false => what.to_owned(),
        };
        Stage { what, done: shared.tests, of: shared.tests + left.max(1) + shared.others_left }
    }

    /// How long the next test may take.
    fn length(&self, left: u64) -> Option<Time> {
        let remaining = self.limit? - self.session.seconds_spent;
        // A whole test of a large span takes long. Without shares the first tests of `serra`
        // would use all of the time, and the other sizes would have no access time.
        let share = if self.strategy.shares_time() { left.max(1) as f64 } else { 1.0 };
        Some(Time::from_ns(((remaining / share).max(0.0) * 1e9) as u64))
    }

    /// Before the first whole test after a break: the write over the span in order that comes before such a test without
    /// one. A simulated device has lost it, and the cache of a real one may be empty. Slices have a lead of their own.
    fn settle(
        &mut self,
        test: ProfileTest,
        size: u64,
        slice: Option<Slice>,
        left: u64,
        shared: &mut Shared<'_>,
    ) -> Result<(), Failure> {
        let needs = slice.is_none() && test != ProfileTest::SequentialWrite;
        // The first test sets the flag, whatever it is. A sequential write restores the state
        // itself, and a slice has a lead. Every later test follows a test of this session.
        let settled = std::mem::replace(&mut self.settled, true);
        if settled || !needs || !self.plan.ops.contains(&ProfileOp::Write) {
            return Ok(());
        }
        let stage = self.stage(&format!("writing the span, {}", Bytes(size)), left, shared);
        let load = self.plan.load(ProfileTest::SequentialWrite, size, self.span);
        let result = self.load(&load, self.plan.seed, self.length(left), &stage, shared)?;
        self.session.settling_seconds = result.simulated_seconds;
        Ok(())
    }

    /// Loads the target; its time is spent.
    fn load(
        &mut self,
        load: &WorkloadConfig,
        seed: u64,
        length: Option<Time>,
        stage: &Stage,
        shared: &mut Shared<'_>,
    ) -> Result<RunResult, Failure> {
        let (result, is_stopped) =
            watched(shared.target, shared.observer, stage, load, seed, length)?;
        // The time of an interrupted load counts as well. The device was loaded during that
        // time, and the result says how long the session took.
        self.session.seconds_spent += result.simulated_seconds;
        self.credits = credits_of(&result).or(self.credits.take());
        if is_stopped { Err(interrupted()) } else { Ok(result) }
    }

    /// One test, once.
    fn measure(
        &mut self,
        (test, size_bytes, slice): (ProfileTest, u64, Option<Slice>),
        length: Option<Time>,
        stage: &Stage,
        shared: &mut Shared<'_>,
    ) -> Result<(), Failure> {
        // The seed of a test follows from the seed of the plan and the number of the test, so a
        // profile repeats exactly. Tests of earlier sessions count: a resumed profile must not
        // draw their orders again.
        let tests = self.before_tests.wrapping_add(self.session.tests);
        let seed = self.plan.seed.wrapping_mul(1_000_003).wrapping_add(tests);
        let (load, seed) = match slice {
            Some(slice) => self.place(test, size_bytes, slice, seed, shared),
            None => (self.plan.load(test, size_bytes, self.span), seed),
        };
        let result = self.load(&load, seed, length, stage, shared)?;
        // A failed request may end at once or after a long timeout. Neither time says how fast
        // the device is, so the whole slice is left out.
        if result.errors > 0 {
            return self.fail(result.errors, slice, stage);
        }
        self.failed_in_a_row = 0;
        let (requests, seconds) = (result.requests, result.simulated_seconds);
        let (complete, records) = (Some(requests) == load.requests, self.span / size_bytes);
        let whole = complete && requests == records;
        let all = Measurement { test, size_bytes, requests, seconds, whole, lead: 0, burst: None };
        let counted = match slice {
            // In a small span a slice may be a whole test. The burst is part of the time that a
            // test of the whole span takes, so all of its requests count.
            Some(_) if whole => Some(settle::of_whole(&all, &result.series)),
            Some(slice) => {
                let whole = (records, tail(self.plan.depth));
                settle::settled(&all, slice, &result.series, whole)
            }
            // A test that the time limit cut short counts: a time from the records so
            // far is better than none. Below the minimum the way to the first record
            // dominates that time.
            None => Some(all).filter(|_| complete || requests >= CUT_REQUESTS_MIN),
        };
        match counted {
            Some(measurement) => {
                self.session.cut += u64::from(!complete);
                self.measurements.add(measurement);
            }
            None => self.session.dropped += 1,
        }
        Ok(())
    }

    /// Takes in a slice with failed requests. It does not count: a failed request may take no time, or very long. A whole
    /// test takes too long to be tried again: it ends the profile at once.
    fn fail(&mut self, errors: u64, slice: Option<Slice>, stage: &Stage) -> Result<(), Failure> {
        self.session.failed_slices += 1;
        self.session.failed_requests += errors;
        self.failed_in_a_row += 1;
        // A failed slice costs about 0.1 s, and the next place of the span may be sound. A
        // device that was removed fails every slice, so the number in a row has a limit.
        if slice.is_some() && self.failed_in_a_row < FAILED_MAX {
            return Ok(());
        }
        Err(requests_failed(self.session.failed_requests, &stage.what, &self.plan.target))
    }

    /// The load of a slice and its seed, at the place of the span that was accessed least lately.
    fn place(
        &self,
        test: ProfileTest,
        size_bytes: u64,
        slice: Slice,
        seed: u64,
        shared: &mut Shared<'_>,
    ) -> (WorkloadConfig, u64) {
        let facts = shared.target.facts();
        let load = |seed| (self.plan.slice(test, size_bytes, self.span, slice, seed), seed);
        // Seeds of consecutive tests differ by one. The number of the place is in the upper 32
        // bits, so that a place of one test never has the seed of another test.
        let seeds = (0..PLACES).map(|place| seed.wrapping_add(place << 32));
        let places = seeds.map(load).filter_map(|(load, seed)| Place::new(load, seed, &facts));
        let Some(place) = shared.recency.coldest(places) else { return load(seed) };
        shared.recency.accessed(&place);
        (place.load, place.seed)
    }

    /// What is known; `open` says why a lane that did not end has no more tests.
    pub(crate) fn result(&self, open: StoppedBecause) -> ProfileResult {
        let stopped_because = self.ended.unwrap_or(open);
        let findings = self.strategy.findings(&self.measurements);
        let plan = &self.plan;
        let tests = ProfileTest::of(&plan.ops);
        let curves = ByTest::from_fn(|test| match tests.contains(&test) {
            true => self.strategy.curve(test, &self.measurements),
            false => Vec::new(),
        });
        let ratio = |op| {
            let (sequential, random) = ProfileTest::pair(op);
            ratios(curves.of(sequential), curves.of(random))
        };
        let (read_ratio, write_ratio) = (ratio(ProfileOp::Read), ratio(ProfileOp::Write));
        let advice = |op, all| {
            let threshold = plan.threshold.filter(|_| plan.ops.contains(&op))?;
            Some(Advice { op, threshold, sizes_bytes: pays_from(all, threshold) })
        };
        let advice = [advice(ProfileOp::Read, &read_ratio), advice(ProfileOp::Write, &write_ratio)];
        let sizes = Sizes::new(&plan.sizes);
        let mut sessions = self.before.clone();
        sessions.push(self.session(stopped_because));
        let mut result = ProfileResult {
            span_bytes: self.span,
            seconds_spent: sessions.iter().map(|one| one.seconds_spent).sum(),
            wall_seconds: self.before_wall + self.began.elapsed().as_secs_f64(),
            sizes_bytes: sizes.distinct().to_vec(),
            summary: ProfileSummary {
                read: RatioSummary::of(&read_ratio),
                write: RatioSummary::of(&write_ratio),
            },
            read_ratio,
            write_ratio,
            curves,
            verdict: findings.verdict,
            breakpoints: findings.breakpoints,
            lack_of_fit: findings.lack_of_fit,
            noise_floor: self.strategy.noise_floor(&self.measurements),
            advice: advice.into_iter().flatten().collect(),
            measurements: self.measurements.all().to_vec(),
            plan: self.record.clone(),
            sessions,
            notes: self.notes.clone(),
            ..ProfileResult::empty(plan, stopped_because)
        };
        self.remark(&mut result);
        result
    }

    fn session(&self, stopped_because: StoppedBecause) -> ProfileSession {
        ProfileSession {
            measurements: (self.measurements.all().len() - self.held) as u64,
            stopped_because,
            ..self.session
        }
    }

    fn remark(&self, result: &mut ProfileResult) {
        result.notes.extend(
            self.credits
                .iter()
                .map(|one| credits_text(one, "the volume does not sustain these access times")),
        );
        result.notes.extend(self.strategy.notes(&self.measurements));
        let sum = |of: fn(&ProfileSession) -> u64| {
            result.sessions.iter().map(of).fold(0, u64::saturating_add)
        };
        let (tests, cut, dropped) =
            (sum(|one| one.tests), sum(|one| one.cut), sum(|one| one.dropped));
        let (slices, requests) = (sum(|one| one.failed_slices), sum(|one| one.failed_requests));
        if cut > 0 {
            result.notes.push(format!(
                "the time limit ended {cut} of {tests} tests before their last record: their access times cover the records up to that point (`time`; `whole` in `measurements`)"
            ));
        }
        if dropped > 0 {
            result.notes.push(format!(
                "the time limit ended {dropped} of {tests} tests before {CUT_REQUESTS_MIN} requests; they do not count; a longer `time` measures them"
            ));
        }
        if result.sessions.len() > 1 {
            result.notes.push(self.remark_sessions(&result.sessions));
        }
        if slices > 0 {
            result.notes.push(format!(
                "{} ended in an error: the {}",
                ssdyno_block::counted(requests, "request", "requests"),
                ssdyno_block::counted(
                    slices,
                    "slice with them does not count",
                    "slices with them do not count"
                )
            ));
        }
        for (op, ratios) in
            [(ProfileOp::Read, &result.read_ratio), (ProfileOp::Write, &result.write_ratio)]
        {
            let missing = result.sizes_bytes.len() - ratios.len();
            if self.plan.ops.contains(&op) && missing > 0 {
                result.notes.push(format!(
                    "{missing} of {} request sizes have no {op} ratio: too few of their tests were completed",
                    result.sizes_bytes.len()
                ));
            }
        }
    }

    /// How the sessions follow each other.
    fn remark_sessions(&self, sessions: &[ProfileSession]) -> String {
        let of = |one: &ProfileSession| {
            format!("{} measurements in {}", one.measurements, duration(one.seconds_spent))
        };
        let texts: Vec<String> = sessions.iter().map(of).collect();
        let state = match self.is_real {
            true => "the device continued from its present state",
            false => "each began with a new device, preconditioned like the first device",
        };
        format!("measured in {} sessions ({}); {state}", sessions.len(), texts.join("; "))
    }
}
