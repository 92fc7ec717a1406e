//! How far a run is, on standard error; and the interrupt that stops it.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ssdyno_figures::{nanoseconds, rate, seconds};
use ssdyno_rig::{KeepGoing, RunProgress};
use ssdyno_session::{Failure, FailureKind, Goal, RunPhase};
use ssdyno_task::{TaskOutcome, TaskRunner};

use crate::output::{Output, abandon, tell};
use crate::screen::{self, Screen};

/// When the first interrupt came.
static FIRST: OnceLock<Instant> = OnceLock::new();

/// What comes so soon after the first interrupt is the same one: timeout(1), for one, sends its signal to the
/// program and then to the group that it is in, and what was measured must not be lost by that.
const SAME: Duration = Duration::from_millis(250);

/// Without a terminal: a line this often, from the first such moment on.
const LINE_EVERY: Duration = Duration::from_secs(3);

/// How often a run is asked how far it is.
pub(crate) const POLL_EVERY: Duration = Duration::from_millis(25);

/// Lines after which they come more and more seldom, so that a run of a day does not fill a log.
const LINES_AT_FIRST: u32 = 20;

/// The whole length of a bar.
const STEPS: u64 = 1000;

/// The first Ctrl-C, SIGTERM or SIGHUP stops the run, another Ctrl-C or SIGTERM ends the program. A terminal
/// that is closed may send SIGHUP several times (the kernel does, and the shell in it): that never ends the
/// program before it has written what it has.
#[cfg(unix)]
pub(crate) fn watch_interrupts(output: Output) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let mut wanted = vec![SIGINT, SIGTERM];
    // Started with nohup(1), the run is to outlive its terminal.
    if !is_ignored(SIGHUP) {
        wanted.push(SIGHUP);
    }
    let (ready, registered) = std::sync::mpsc::channel::<()>();
    let watch = move || {
        let Ok(mut signals) = Signals::new(wanted) else { return };
        drop(ready);
        for signal in signals.forever() {
            interrupt(signal != SIGHUP, output);
        }
    };
    // Without a thread for it an interrupt ends the program at once, which is safe too.
    if std::thread::Builder::new().name("signals".to_owned()).spawn(watch).is_ok() {
        // Nothing is sent: it ends when signals are watched.
        let _ = registered.recv();
    }
}

/// As there, of systems that know Ctrl-C only.
#[cfg(not(unix))]
pub(crate) fn watch_interrupts(output: Output) {
    // Without a handler an interrupt ends the program at once, which is safe too.
    let _ = ctrlc::set_handler(move || interrupt(true, output));
}

/// Whether this program was started with `signal` ignored, where the system says so (proc_pid_status(5)).
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// The effect of an interrupt: the first stops the run, a later one that `may_end` the program ends it. Calls never
/// overlap.
fn interrupt(may_end: bool, output: Output) {
    match FIRST.get() {
        Some(first) if first.elapsed() < SAME || !may_end => {}
        Some(_) => {
            screen::leave();
            let message = "interrupted twice: ended at once, without a result";
            let help = "interrupt once, and wait until the requests in flight complete";
            abandon(&Failure::new(FailureKind::Interrupted, message).with_help(help), output)
        }
        None => {
            let _ = FIRST.set(Instant::now());
            // The owner of the live view removes it before printing.
            if !screen::is_active() {
                tell_stopping();
            }
        }
    }
}

/// After the first interrupt.
pub(crate) fn tell_stopping() {
    tell("\nstopping after the requests in flight, if any; interrupt again to end at once\n");
}

/// True after the first interrupt.
pub(crate) fn interrupted() -> bool {
    FIRST.get().is_some()
}

/// What to do next.
pub(crate) fn flow() -> KeepGoing {
    if interrupted() { KeepGoing::Stop } else { KeepGoing::Continue }
}

/// The progress of one run.
pub(crate) struct Meter {
    bar: Option<ProgressBar>,
    goal: Goal,
    name: String,
    started: Instant,
    /// When the load was first seen.
    loaded: Option<Instant>,
    lines: u32,
}

impl Meter {
    /// With a bar where `bar` allows it and there is a terminal, otherwise in lines.
    fn new(name: &str, goal: Goal, bar: bool) -> Meter {
        let bar = (bar && std::io::stderr().is_terminal()).then(|| {
            let known = goal.requests.is_some() || goal.duration.is_some();
            let template = match known {
                true => "{prefix} [{bar:30}] {percent:>3} % {msg}",
                false => "{prefix} {spinner} {msg}",
            };
            let style = ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(Some(STEPS), target);
            let bar = bar.with_style(style.progress_chars("=> "));
            bar.set_prefix(name.to_owned());
            bar.set_message("preparing the device");
            bar.tick();
            bar
        });
        let (name, started) = (name.to_owned(), Instant::now());
        Meter { bar, goal, name, started, loaded: None, lines: 0 }
    }

    /// To be called as the runner does.
    pub(crate) fn update(&mut self, progress: &RunProgress) -> KeepGoing {
        let share = progress.preparing.or_else(|| self.goal.share(progress));
        let message = match progress.preparing {
            Some(_) => "preparing the device".to_owned(),
            None => self.message(progress),
        };
        if let Some(bar) = &self.bar {
            if let Some(share) = share {
                bar.set_position((share * STEPS as f64) as u64);
            } else {
                bar.tick();
            }
            bar.set_message(message);
        } else if self.started.elapsed() >= due(self.lines) {
            self.lines += 1;
            let percent = share.map(|s| format!("{:.0} %, ", s * 100.0)).unwrap_or_default();
            tell(&format!("{}: {percent}{message}\n", self.name));
        }
        flow()
    }

    fn message(&mut self, progress: &RunProgress) -> String {
        // The speed is that of the load, without the preparation before it.
        let loaded = self.loaded.get_or_insert_with(Instant::now).elapsed().as_secs_f64();
        // Before the first recorded request, a ramp-up for example, there is no latency. Zero would look like one.
        let latency = match progress.latency_ns_mean {
            mean if mean > 0.0 => format!(", mean latency {}", nanoseconds(mean)),
            _ => String::new(),
        };
        format!(
            "{} of device time, {} requests/s{latency}",
            seconds(progress.now.as_s_f64()),
            rate(progress.completed as f64 / loaded.max(1e-3)),
        )
    }

    /// Takes the bar away.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// When the next line is due after `lines` of them: each 3 s in the first minute, then a twentieth of the
/// time so far apart.
fn due(lines: u32) -> Duration {
    match lines.checked_sub(LINES_AT_FIRST) {
        None => LINE_EVERY * (lines + 1),
        Some(more) => {
            let first = LINE_EVERY.as_secs_f64() * f64::from(LINES_AT_FIRST);
            let growth = 1.0 + 1.0 / f64::from(LINES_AT_FIRST);
            Duration::from_secs_f64(first * growth.powi(more.min(400) as i32 + 1))
        }
    }
}

/// How one run is watched.
pub(crate) enum Watch {
    /// Live, on the whole terminal.
    Screen(Box<Screen>),
    /// In lines or with a bar.
    Meter(Meter),
}

impl Watch {
    /// The live view where the terminal and `live` allow it. `real`: the clock is the wall's.
    pub(crate) fn new(name: &str, workload: &str, goal: Goal, live: bool, real: bool) -> Watch {
        let plain = || std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
        let screen = live.then(|| Screen::open(name, workload, goal, real)).flatten();
        match screen {
            Some(screen) => Watch::Screen(Box::new(screen)),
            None => Watch::Meter(Meter::new(name, goal, live && !plain())),
        }
    }

    /// Watches `runner` to its end, with a look `every` so long; an interrupt stops it.
    pub(crate) fn watch(
        mut self,
        runner: TaskRunner,
        every: Duration,
    ) -> Result<TaskOutcome, Failure> {
        let (mut snapshot, mut stopped) = (runner.poll(), false);
        while snapshot.phase != RunPhase::Ended {
            // The message about the end stays on the screen.
            let flow = if stopped { KeepGoing::Continue } else { self.update(&snapshot.progress) };
            match flow {
                KeepGoing::Continue => {}
                KeepGoing::LiveSnapshot => runner.look(),
                KeepGoing::Stop => {
                    stopped = true;
                    runner.stop();
                }
            }
            snapshot = runner.wait(snapshot.phase, every);
        }
        self.finish();
        runner.result()
    }

    /// Shows `progress`; says what to do next.
    pub(crate) fn update(&mut self, progress: &RunProgress) -> KeepGoing {
        match self {
            Watch::Screen(screen) => screen.update(progress),
            Watch::Meter(meter) => meter.update(progress),
        }
    }

    /// The terminal is restored.
    pub(crate) fn finish(self) {
        match self {
            Watch::Screen(screen) => drop(screen),
            Watch::Meter(meter) => meter.finish(),
        }
    }
}

/// How often the progress of several hosts is put together: that is most of what a controller of many hosts does.
pub(crate) const TOGETHER_EVERY: Duration = Duration::from_millis(100);

/// The progress of work that is counted: the simulations of a paper, the blocks of a verification.
pub(crate) struct CountMeter {
    bar: Option<ProgressBar>,
    started: Instant,
    lines: u32,
}

impl CountMeter {
    pub(crate) fn new() -> CountMeter {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("[{bar:30}] {percent:>3} % {wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(1).with_style(style.progress_chars("=> "))
        });
        CountMeter { bar, started: Instant::now(), lines: 0 }
    }

    /// `done` of `of`, and the work in progress.
    pub(crate) fn update(&mut self, done: u64, of: u64, message: String) -> KeepGoing {
        if let Some(bar) = &self.bar {
            bar.set_length(of.max(1));
            bar.set_position(done);
            bar.set_message(message);
        } else if self.started.elapsed() >= due(self.lines) {
            self.lines += 1;
            let percent = done as f64 / of.max(1) as f64 * 100.0;
            tell(&format!("{percent:.0} %: {message}\n"));
        }
        flow()
    }

    /// Takes the bar away.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every few seconds from the first on, and yet no more than some hundred lines in a week.
    #[test]
    fn lines_come_often_at_first_and_never_flood() {
        assert_eq!(due(0), Duration::from_secs(3));
        let times: Vec<f64> = (0..400).map(|lines| due(lines).as_secs_f64()).collect();
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 2.999), "{times:?}");
        assert!(times.iter().all(|time| time.is_finite()));
        let week = times.iter().filter(|time| **time < 7.0 * 86_400.0).count();
        assert!((100..300).contains(&week), "{week}");
    }
}
