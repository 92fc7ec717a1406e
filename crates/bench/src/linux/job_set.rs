//! The jobs of a run, and their supervisor.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ssdyno_block::Time;
use ssdyno_figures::probe::Moved;
use ssdyno_figures::{
    JobResult, KeepGoing, LiveSnapshot, Precision, RunProgress, RunStart, Warning,
};
use ssdyno_record::{Evidence, Precise, RatedJob, Recording, Tape, overloads_of_jobs};
use ssdyno_workload::{FioEntry, FioExit};

use crate::clock::Clock;
use crate::error::BenchError;
use crate::job::JobFailure;
use crate::machine::moved;
use crate::member::Member;
use crate::network::protocol::Trouble;
use crate::plan::LoadPlan;
use crate::pulse::{Pulse, Shared};
use crate::ramp::Ramp;
use crate::run::BenchRun;
use crate::spool::Spooled;
use crate::start::{self, WATCH};
use crate::target::RealTarget;
use crate::worker::{Go, JobReport, Message, Worker};

/// The longest time that a stopped run waits for outstanding requests.
// A user who interrupts a run wants it to end. Requests that take longer count as unanswered,
// and the figures say how many they were.
const DRAIN: Duration = Duration::from_secs(5);

/// Rows that memory is got ready for before the run, of all jobs: 16 MiB.
// A million rows are those of some seconds on a fast device. More of them would delay the start
// of every short run.
const ROWS_PREPARED: usize = 1 << 20;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All jobs of a run, and their supervisor.
pub(crate) struct JobSet {
    members: Vec<Member>,
    /// The group at work.
    group: u32,
    messages: Receiver<Message>,
    ramp: Arc<Ramp>,
    /// All jobs were told to stop.
    stopping: bool,
    /// Somebody outside told the run to stop.
    pub(crate) stopped: bool,
    /// The next report of progress is to have a glance.
    look: bool,
    precise: Option<Precise>,
    /// Requests without an answer, of jobs that were given up.
    pub(crate) hung: u64,
    lost: Option<usize>,
    /// Where rows go while the run goes on.
    spool: Option<Spooled>,
}

impl JobSet {
    /// Starts the threads and waits until each is ready.
    pub(crate) fn set_up(
        run: &BenchRun,
        plan: LoadPlan,
        target: &Arc<RealTarget>,
        spool: Option<Spooled>,
        progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
    ) -> Result<JobSet, BenchError> {
        let (tell, messages) = mpsc::channel();
        let ramp = Arc::new(Ramp::new(plan.ramp_up));
        let jobs = plan.jobs.len();
        // Several jobs that each stay where they start could share one core while others are
        // idle. The scheduler keeps the right to move them. The jobs of several workers of one
        // machine are the same case: two workers that stayed got 160 k IOPS from a loop device, and
        // 212 k without (five rounds in turn, 4 KiB random reads at depth 4, two cores).
        let may_stay = jobs == 1 && run.options.stay && !run.options.shared;
        let mut members = Vec::with_capacity(jobs);
        for (index, job) in plan.jobs.into_iter().enumerate() {
            let ramps_up = plan.ramp_up > 0 || job.ramp_ns.is_some();
            let mut tape = Tape::new(run.keep, run.interval, ramps_up);
            tape = tape.of_job(index as u32, jobs as u32);
            if let Some(spool) = &spool {
                tape = tape.spooled(spool.file());
            }
            let shared = Shared {
                stop: Arc::new(AtomicBool::new(false)),
                ramp: Arc::clone(&ramp),
                pulse: Arc::new(Pulse::default()),
                tape: Arc::new(Mutex::new(Some(tape))),
            };
            let worker = Worker {
                index,
                plan: job,
                means: plan.means,
                target: Arc::clone(target),
                block_bytes: plan.block_bytes,
                may_stay,
                rows_prepared: ROWS_PREPARED / jobs,
                // The end is a moment of the run's clock, which all jobs share. It holds for
                // jobs that begin later, too.
                end_ns: run.limits.duration.map_or(u64::MAX, Time::as_ns),
                origin_ns: plan.origin_ns,
                shared: shared.clone(),
            };
            let (go, gone) = mpsc::channel();
            let member = Member::new(shared, go, &worker.plan);
            let tell = tell.clone();
            let named = std::thread::Builder::new().name(format!("job {index}"));
            named.spawn(move || worker.run(&tell, &gone)).map_err(|source| BenchError::Engine {
                what: "starting a thread for a job",
                source,
            })?;
            members.push(member);
        }
        // A failure here leaves the threads that are ready without a sender. They end when they
        // see that, and the run never starts.
        start::wait_ready(&messages, members.len(), run, progress)?;
        let group = members.iter().map(|member| member.group).min().unwrap_or(0);
        let precise = run.limits.until.map(Precise::new);
        Ok(JobSet {
            members,
            group,
            messages,
            ramp,
            stopping: false,
            stopped: false,
            precise,
            look: false,
            hung: 0,
            lost: None,
            spool,
        })
    }

    /// Starts the clock and the jobs of the first group.
    pub(crate) fn start(&mut self, start: RunStart) -> Clock {
        let clock = start::clock(start);
        self.start_group(Go { clock, start_ns: 0 });
        clock
    }

    /// Starts the jobs of the present group.
    fn start_group(&mut self, go: Go) {
        for member in self.members.iter_mut().filter(|member| member.group == self.group) {
            member.moved = Instant::now();
            // A job that died meanwhile is found missing later.
            let _ = member.go.send(go);
        }
    }

    /// Starts the next group when the present one has ended.
    fn go_on(&mut self, clock: Clock) {
        let at_work = |m: &Member| m.group == self.group && m.report.is_none() && !m.abandoned;
        if self.members.iter().any(at_work) {
            return;
        }
        let groups = self.members.iter().map(|member| member.group);
        if let Some(group) = groups.filter(|group| *group > self.group).min() {
            self.group = group;
            self.start_group(Go { clock, start_ns: clock.now_ns() });
        }
    }

    /// Until every job has ended or was given up.
    pub(crate) fn watch(
        &mut self,
        clock: Clock,
        timeout: Duration,
        progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
    ) {
        let mut told_at = Instant::now();
        while self.members.iter().any(|m| m.report.is_none() && !m.abandoned) {
            // The wait is shortened by the time since the last report. A run whose jobs end one
            // by one would otherwise report, and look for hangs, ever later.
            match self.messages.recv_timeout(WATCH.saturating_sub(told_at.elapsed())) {
                Ok(Message::Ended(index, report)) => {
                    // A job that ended early ends the run.
                    if report.ended.failure.is_some() || report.trace_error.is_some() {
                        self.stop_all();
                    }
                    self.members[index].report = Some(*report);
                    // Jobs of a job file may end others (`exitall`). This happens before the
                    // next group starts, so that a stopped job does not begin.
                    self.end_with(self.members[index].exit);
                    self.go_on(clock);
                }
                Ok(Message::Ready(_)) => {}
                Err(RecvTimeoutError::Timeout) => {
                    told_at = Instant::now();
                    if !self.stopped {
                        let flow = progress(&self.progress(clock));
                        self.obey(flow);
                    }
                    self.look();
                    self.hand_over();
                    // A run that was told to stop waits less. A device that hangs would
                    // otherwise keep the user waiting for the whole timeout.
                    self.give_up(if self.stopped { timeout.min(DRAIN) } else { timeout });
                    self.go_on(clock);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let missing = |m: &Member| m.report.is_none() && !m.abandoned;
                    // All senders are gone although a job has not reported: its thread has
                    // panicked. The error names the job.
                    self.lost = self.members.iter().position(missing);
                    return;
                }
            }
        }
    }

    /// Nothing more is issued.
    fn stop_all(&mut self) {
        self.stopping = true;
        self.members.iter().for_each(Member::stop);
    }

    /// Ends the jobs that the end of a job ends; a job that has not begun ends when it begins.
    fn end_with(&self, exit: FioExit) {
        let ended = |m: &&Member| exit.ends(m.exit, m.group <= self.group);
        self.members.iter().filter(ended).for_each(Member::stop);
    }

    fn obey(&mut self, flow: KeepGoing) {
        self.look = flow == KeepGoing::LiveSnapshot;
        if self.look {
            self.members.iter().for_each(|m| m.shared.pulse.asked.store(true, Ordering::Relaxed));
        }
        if flow == KeepGoing::Stop {
            self.stopped = true;
            self.stop_all();
        }
    }

    /// Ends the run where its figures are known as well as was asked for.
    fn look(&mut self) {
        let Some(precise) = &self.precise else { return };
        let completed = |m: &Member| m.shared.pulse.completed.load(Ordering::Relaxed);
        let completed = self.members.iter().map(completed).sum();
        // Working out the precision costs more than reading counters. It is due ever more rarely
        // as requests add up.
        if self.stopping || !precise.due(completed) {
            return;
        }
        if self
            .evidence()
            .is_some_and(|e| self.precise.as_mut().is_some_and(|p| p.look(completed, &e)))
        {
            self.stop_all();
        }
    }

    /// The precision of the figures of all jobs so far. A job waits for its tape a moment then; looks are rare.
    fn evidence(&self) -> Option<Evidence> {
        Evidence::merge(self.members.iter().filter_map(|member| {
            let tape = member.shared.tape.lock().unwrap_or_else(PoisonError::into_inner);
            tape.as_ref().and_then(Tape::evidence)
        }))
    }

    /// Sees to it that hardly a row is only in memory for longer than a second. A job waits for its tape a
    /// moment then, if it is so slow that none of its chunks was full.
    fn hand_over(&mut self) {
        let Some(spool) = &mut self.spool else { return };
        spool.look(self.members.iter().map(|member| &*member.shared.tape));
    }

    /// The result of the requested precision; after the run.
    pub(crate) fn precision(&mut self) -> Option<Precision> {
        let evidence = self.evidence();
        let precise = self.precise.as_mut()?;
        evidence.iter().for_each(|evidence| precise.end(evidence));
        Some(precise.precision())
    }

    /// The last reports of all jobs; a job that waits for its target reports later.
    fn glance(&self, now: Time, completed: u64) -> Arc<LiveSnapshot> {
        let mut all = LiveSnapshot::default();
        for member in &self.members {
            all.merge(&member.shared.pulse.glance.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Arc::new(LiveSnapshot { now, completed, ..all })
    }

    /// Gives up jobs that got no completion for `timeout`, and ends the others.
    fn give_up(&mut self, timeout: Duration) {
        let now = Instant::now();
        for member in self.members.iter_mut().filter(|m| m.report.is_none() && !m.abandoned) {
            if member.stuck_for(now) >= timeout {
                // The thread cannot be ended: it hangs in the kernel. Its tape is taken away, so
                // that the figures up to now are not lost.
                member.abandoned = true;
                self.hung += member.outstanding();
                self.stopping = true;
            }
        }
        if self.stopping {
            self.stop_all();
        }
    }

    fn progress(&self, clock: Clock) -> RunProgress {
        let sum = |pick: fn(&Pulse) -> &std::sync::atomic::AtomicU64| -> u64 {
            self.members.iter().map(|m| pick(&m.shared.pulse).load(Ordering::Relaxed)).sum()
        };
        // The counters are read without a lock and may be some requests apart. For a display
        // this is exact enough; the figures of the result come from the tapes.
        let completed = sum(|pulse| &pulse.completed);
        let now = Time::from_ns(clock.now_ns());
        RunProgress {
            preparing: None,
            now,
            issued: sum(|pulse| &pulse.issued),
            completed,
            latency_ns_mean: sum(|pulse| &pulse.latency_ns) as f64 / completed.max(1) as f64,
            glance: self.look.then(|| self.glance(now, completed)),
        }
    }

    /// Why the run ended early, the weightiest reason first.
    pub(crate) fn failure(&mut self, run: &BenchRun, target: &RealTarget) -> Option<BenchError> {
        for report in self.members.iter_mut().filter_map(|m| m.report.as_mut()) {
            if let Some(error) = report.trace_error.take() {
                return Some(BenchError::Workload(error));
            }
            match report.ended.failure.take() {
                Some(JobFailure::Gone { .. }) if report.trouble.is_some() => {
                    let what = report.trouble.take().unwrap_or_default();
                    let help =
                        "look at the server's log; the figures cover the requests up to that point";
                    return Some(Trouble::new(what, help).of(&target.name));
                }
                Some(JobFailure::Gone { request, count, source }) => {
                    let target = target.name_at(request.offset_bytes).to_owned();
                    return Some(BenchError::Gone { target, count, request, source });
                }
                Some(JobFailure::ReadOnly(op)) => {
                    return Some(BenchError::ReadOnly { target: run.name(), op });
                }
                Some(JobFailure::Memory) => return Some(BenchError::Memory),
                Some(JobFailure::Engine(source)) => {
                    return Some(BenchError::Engine { what: "submitting requests", source });
                }
                None => {}
            }
        }
        // The order of these reasons matters: a trace error or a target that went away explains
        // the interruption that follows from it, and not the other way round.
        if let Some(job) = self.lost {
            return Some(BenchError::Lost { job });
        }
        if self.stopped {
            return Some(BenchError::Interrupted);
        }
        let (outstanding, waited) = (self.hung, run.options.timeout);
        (outstanding > 0).then(|| BenchError::Hang { target: run.name(), outstanding, waited })
    }

    /// Closes the file of rows, and sums up what the jobs did; `streams` is the number of streams that they carried.
    pub(crate) fn recording(
        self,
        clock: Clock,
        entries: &[FioEntry],
        streams: usize,
    ) -> Result<Recorded, BenchError> {
        let ends = self.members.iter().filter_map(|m| m.report.as_ref()).map(|r| r.ended.end_ns);
        let given_up = self.members.iter().any(|m| m.report.is_none());
        // A job that was given up has no end of its own. Its requests are outstanding until now,
        // and they count as long as they were waited for.
        let end_ns = if given_up { clock.now_ns() } else { ends.max().unwrap_or(0) };
        let mut tapes: Vec<Option<Tape>> =
            self.members.iter().map(|member| locked(&member.shared.tape).take()).collect();
        tapes.iter_mut().flatten().for_each(|tape| tape.end(end_ns));
        // From here on rows are read.
        // The file of rows is closed before the first row is read. A row that was still in the
        // writer's queue would be missing.
        let writer_ns = self.spool.map_or(0.0, Spooled::close);
        let mut recordings: Vec<Vec<Recording>> = Vec::new();
        recordings.resize_with(entries.len().max(1), Vec::new);
        let mut reports = Vec::with_capacity(self.members.len());
        let mut by_stream = vec![Moved::default(); streams];
        for (member, tape) in self.members.into_iter().zip(tapes) {
            if let Some(mut tape) = tape {
                // A job may have ended before another one ended the ramp-up, if they share one.
                let shared = self.ramp.start_ns().filter(|start_ns| *start_ns > 0);
                if let (true, true, Some(start_ns)) =
                    (tape.ramping_up(), entries.is_empty(), shared)
                {
                    tape.start_at(start_ns);
                }
                // Jobs that are reported apart have an end of their own.
                let own = member.report.as_ref().filter(|_| !entries.is_empty());
                let end_ns = own.map_or(end_ns, |report| report.ended.end_ns);
                let recording = tape.finish(end_ns);
                by_stream[member.stream].merge(&moved(&recording, member.report.as_ref()));
                recordings[member.entry].push(recording);
            }
            reports.extend(member.report);
        }
        let merged: Vec<_> = recordings.into_iter().map(Recording::merge).collect();
        let (jobs, overloads) = apart(entries, &merged);
        let merged: Vec<Recording> = merged.into_iter().flatten().collect();
        let recording = match <[Recording; 1]>::try_from(merged) {
            Ok([one]) => one,
            Err(several) => Recording::merge(several).ok_or(BenchError::Lost { job: 0 })?,
        };
        Ok(Recorded { recording, jobs, overloads, by_stream, reports, writer_ns })
    }
}

/// `figures` as those of `entry`.
pub(crate) fn named(entry: &FioEntry, figures: JobResult) -> JobResult {
    JobResult { name: entry.name.clone(), group: entry.group, copies: entry.copies, ..figures }
}

/// The figures of each of `entries`, which recorded `merged`, and the warnings about overloaded ones.
fn apart(entries: &[FioEntry], merged: &[Option<Recording>]) -> (Vec<JobResult>, Vec<Warning>) {
    let starts = merged.iter().flatten().filter(|part| part.has_started());
    let start = starts.map(Recording::start).min().unwrap_or_default();
    let figures = |(entry, recording): (&FioEntry, &Option<Recording>)| {
        let figures = recording.as_ref().map(|recording| recording.job_result(start));
        named(entry, figures.unwrap_or_default())
    };
    let rated = entries.iter().zip(merged).map(|(entry, recording)| RatedJob {
        name: &entry.name,
        depth: entry.rated_depth,
        pauses: entry.pauses,
        recording: recording.as_ref(),
    });
    let overloads = overloads_of_jobs(&rated.collect::<Vec<_>>());
    (entries.iter().zip(merged).map(figures).collect(), overloads)
}

/// The results after a run.
pub(crate) struct Recorded {
    /// What all jobs recorded.
    pub(crate) recording: Recording,
    /// The figures of the jobs that are reported separately.
    pub(crate) jobs: Vec<JobResult>,
    /// The warnings about overloaded jobs.
    pub(crate) overloads: Vec<Warning>,
    /// What each stream moved, with the ramp-up.
    pub(crate) by_stream: Vec<Moved>,
    pub(crate) reports: Vec<JobReport>,
    /// CPU time of another thread that wrote a row to a file.
    pub(crate) writer_ns: f64,
}
