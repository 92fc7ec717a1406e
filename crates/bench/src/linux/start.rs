//! When a run that is ready begins: at once, or at a moment that was given, so that several of them, in several
//! processes, begin together.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ssdyno_block::Time;
use ssdyno_figures::{KeepGoing, LoadWindow, RunProgress, RunStart, Supervisor, nanoseconds};

use crate::clock::Clock;
use crate::error::BenchError;
use crate::run::BenchRun;
use crate::worker::{JobReport, Message};

/// How often progress is reported.
pub(crate) const WATCH: Duration = Duration::from_millis(50);

/// Jobs are woken this long before the moment; each then waits for it by itself. An idle core takes less to wake up.
const LEAD: Duration = Duration::from_millis(5);

/// A run that began later than this after the moment that was given did not begin with the others.
const LATE_NS: u64 = 1_000_000;

/// Waits until all `jobs` are ready. They try the target first, which may never answer: then the
/// threads are left behind.
pub(crate) fn wait_ready(
    messages: &Receiver<Message>,
    jobs: usize,
    run: &BenchRun,
    progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
) -> Result<(), BenchError> {
    let began = Instant::now();
    let mut ready = 0;
    while ready < jobs {
        match messages.recv_timeout(WATCH) {
            Ok(Message::Ready(outcome)) => {
                outcome?;
                ready += 1;
            }
            Err(RecvTimeoutError::Timeout) => {
                let preparing = Some(ready as f64 / jobs as f64);
                if progress(&RunProgress { preparing, ..RunProgress::default() }) == KeepGoing::Stop
                {
                    return Err(BenchError::Unprepared);
                }
                // A job that opens a target of a dead server waits in the kernel. The run must
                // not wait for it without end.
                if began.elapsed() >= run.options.timeout {
                    let (target, waited) = (run.name(), run.options.timeout);
                    return Err(BenchError::Silent { target, waited });
                }
            }
            _ => return Err(BenchError::Lost { job: ready }),
        }
    }
    // Told to stop by now, the target is not to be loaded at all.
    match progress(&RunProgress { preparing: Some(1.0), ..RunProgress::default() }) {
        KeepGoing::Stop => Err(BenchError::Unprepared),
        KeepGoing::Continue | KeepGoing::LiveSnapshot => Ok(()),
    }
}

/// Asks when to begin, and waits until shortly before.
pub(crate) fn wait_for(supervisor: &mut dyn Supervisor) -> Result<RunStart, BenchError> {
    let start = supervisor.ready();
    let moment = match start {
        RunStart::Never => return Err(BenchError::Unprepared),
        RunStart::Now => return Ok(start),
        RunStart::At(moment) => moment,
    };
    // The wait is cut into short sleeps, so that an interrupt is heard. The jobs themselves wait
    // for the exact moment.
    while let Some(left) = moment.checked_duration_since(Instant::now() + LEAD) {
        if supervisor.report(&RunProgress::preparing(1.0)) == KeepGoing::Stop {
            return Err(BenchError::Unprepared);
        }
        std::thread::sleep(left.min(WATCH));
    }
    Ok(start)
}

/// The clock of a run that begins at `start`.
pub(crate) fn clock(start: RunStart) -> Clock {
    match start {
        RunStart::At(moment) => Clock::start_at(moment),
        RunStart::Now | RunStart::Never => Clock::start(),
    }
}

/// When a run began, by the clocks as they were then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began {
    /// The start of the run's own clock, in nanoseconds since 1970.
    start_unix_ns: u64,
    /// How long after the moment that was given; `None` where none was.
    behind: Option<Duration>,
}

impl Began {
    /// For a run with the start time `start`, whose `clock` begins now or in a moment.
    pub(crate) fn new(start: RunStart, clock: Clock) -> Began {
        let behind = match start {
            // A moment that was over when the run was ready is not that of its clock.
            RunStart::At(moment) => Some(clock.start_after(moment)),
            RunStart::Now | RunStart::Never => None,
        };
        Began { start_unix_ns: clock.start_unix_ns(), behind }
    }

    /// The note about it: the recording began at `recorded_from` of the run. With a remark where the run began too
    /// late.
    pub(crate) fn window(
        &self,
        recorded_from: Time,
        reports: &[JobReport],
    ) -> (LoadWindow, Option<String>) {
        let jobs_ns = reports.iter().filter_map(|report| report.late_ns).max().unwrap_or(0);
        let late_ns = self.behind.unwrap_or_default().as_nanos() as u64 + jobs_ns;
        let note = (self.behind.is_some() && late_ns > LATE_NS).then(|| {
            format!(
                "the run began {} after the given start time: the target was not ready, or the \
                 machine was busy",
                nanoseconds(late_ns as f64)
            )
        });
        let start_unix_ns = self.start_unix_ns + recorded_from.as_ns();
        (LoadWindow { start_unix_ns, late_ns, ..LoadWindow::default() }, note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdyno_safety::Access;

    /// Sets the start, and counts the progress reports.
    struct At(RunStart, u32, KeepGoing);

    impl Supervisor for At {
        fn ready(&mut self) -> RunStart {
            self.0
        }

        fn report(&mut self, _: &RunProgress) -> KeepGoing {
            self.1 += 1;
            self.2
        }
    }

    #[test]
    fn a_run_waits_for_its_moment() {
        let moment = Instant::now() + Duration::from_millis(120);
        let mut supervisor = At(RunStart::At(moment), 0, KeepGoing::Continue);
        let start = wait_for(&mut supervisor).unwrap();
        assert!(Instant::now() + LEAD >= moment && supervisor.1 >= 2, "{}", supervisor.1);
        let clock = clock(start);
        clock.wait_for_start();
        assert!(Instant::now() >= moment);
        let (window, _) = Began::new(start, clock).window(Time::from_ns(7), &[]);
        // Two readings of the clock lie between the requested start and the actual start.
        assert!(window.late_ns < 1_000_000_000, "{window:?}");
    }

    #[test]
    fn a_moment_that_is_over_is_now_and_is_told() {
        let moment = Instant::now();
        std::thread::sleep(Duration::from_millis(3));
        let start = wait_for(&mut At(RunStart::At(moment), 0, KeepGoing::Continue)).unwrap();
        let (window, note) = Began::new(start, clock(start)).window(Time::ZERO, &[]);
        assert!(window.late_ns >= 3_000_000, "{window:?}");
        assert!(note.is_some_and(|note| note.contains("after the given start time")));
    }

    #[test]
    fn who_is_stopped_meanwhile_never_begins() {
        let later = RunStart::At(Instant::now() + Duration::from_secs(3600));
        for mut supervisor in
            [At(RunStart::Never, 0, KeepGoing::Continue), At(later, 0, KeepGoing::Stop)]
        {
            assert!(matches!(wait_for(&mut supervisor), Err(BenchError::Unprepared)));
        }
    }

    /// Jobs that never come back from their first request.
    #[test]
    fn a_target_that_does_not_answer_before_the_load_ends_the_run_in_time() {
        let (_tell, messages) = std::sync::mpsc::channel();
        let run = BenchRun {
            target: "/dev/hung".to_owned(),
            access: Access::ReadOnly,
            more: Vec::new(),
            workload: "test".to_owned(),
            source: ssdyno_workload::Source::Generator(ssdyno_workload::WorkloadConfig::default()),
            seed: 1,
            limits: ssdyno_figures::RunLimits::default(),
            keep: ssdyno_figures::Keep::Summary,
            rows_in: None,
            interval: None,
            options: crate::BenchOptions {
                timeout: Duration::from_millis(200),
                ..crate::BenchOptions::default()
            },
        };
        let began = Instant::now();
        let mut told = 0;
        let silent = wait_ready(&messages, 2, &run, &mut |_| {
            told += 1;
            KeepGoing::Continue
        });
        assert!(matches!(silent, Err(BenchError::Silent { .. })), "{silent:?}");
        assert!(told >= 2 && began.elapsed() < Duration::from_secs(2), "{told}");
        let stopped = wait_ready(&messages, 2, &run, &mut |_| KeepGoing::Stop);
        assert!(matches!(stopped, Err(BenchError::Unprepared)), "{stopped:?}");
    }
}
