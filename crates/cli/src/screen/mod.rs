//! The live view of a run: IOPS, throughput and percentiles, now and over time, and the cost of the
//! tool itself.
//!
//! Figures are read four times a second from what the jobs count anyway; nothing is added to the way
//! of a request. Drawing happens where progress is reported: for a real target on a thread that
//! carries no load.

mod terminal;
mod view;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use ssdyno_figures::{LiveSnapshot, bytes_per_second, nanoseconds, rate, seconds};
use ssdyno_rig::{KeepGoing, RunProgress};
use ssdyno_session::Goal;
use terminal::Canvas;

use crate::progress::flow;
pub(crate) use terminal::{is_active, leave};
use view::{Figure, View};

/// How often figures are taken and drawn.
const EVERY: Duration = Duration::from_millis(250);

/// The number of samples that count as `now`.
const NOW: usize = 4;

/// Points of a history: wider than terminals are.
const HISTORY: usize = 512;

/// The live view of one run.
pub(crate) struct Screen {
    canvas: Canvas,
    goal: Goal,
    figures: Figures,
    view: View,
    next: Instant,
    /// The time when the load was first seen, and the CPU time of the process then.
    loaded: Option<(Instant, Option<ProcessTime>)>,
    real: bool,
}

impl Screen {
    /// Takes the terminal, if there is one that is fit for it.
    pub(crate) fn open(target: &str, workload: &str, goal: Goal, real: bool) -> Option<Screen> {
        if !terminal::is_fit() {
            return None;
        }
        let view = View {
            target: target.to_owned(),
            workload: workload.to_owned(),
            state: "preparing".to_owned(),
            ..View::default()
        };
        let mut screen = Screen {
            canvas: Canvas::open().ok()?,
            goal,
            figures: Figures::default(),
            view,
            next: Instant::now(),
            loaded: None,
            real,
        };
        screen.draw();
        Some(screen)
    }

    /// To be called as the runner does.
    pub(crate) fn update(&mut self, progress: &RunProgress) -> KeepGoing {
        let flow = flow();
        if flow == KeepGoing::Stop {
            // From here on nobody may call again: the message must be seen.
            leave();
            crate::progress::tell_stopping();
            return flow;
        }
        let now = Instant::now();
        if let Some(share) = progress.preparing {
            if now >= self.next {
                self.next = now + EVERY;
                self.view.state = "preparing the device".to_owned();
                self.view.share = Some(share);
                self.draw();
            }
            return flow;
        }
        self.loaded.get_or_insert_with(|| (now, ProcessTime::try_now().ok()));
        if now < self.next {
            return flow;
        }
        let fresh = progress.glance.as_ref().filter(|glance| !self.figures.has(glance));
        let Some(glance) = fresh else { return KeepGoing::LiveSnapshot };
        self.next = now + EVERY;
        self.figures.add(glance);
        self.fill(progress);
        self.draw();
        flow
    }

    fn draw(&mut self) {
        let view = &self.view;
        self.canvas.draw(|frame| view::draw(view, frame));
    }

    fn fill(&mut self, progress: &RunProgress) {
        let wall = self.loaded.as_ref().map_or(0.0, |(began, _)| began.elapsed().as_secs_f64());
        let now = progress.now.as_s_f64();
        let share = self.goal.share(progress);
        let mut state = seconds(now);
        if let Some(end) = self.goal.duration {
            state.push_str(&format!(" of {}", seconds(end.as_s_f64())));
        }
        if !self.real {
            state.push_str(" of device time");
        }
        // Too early to tell otherwise.
        if let Some(share) = share.filter(|share| *share > 0.02) {
            let left = wall * (1.0 - share) / share;
            state.push_str(&format!(", {left:.0} s left"));
        }
        (self.view.state, self.view.share) = (state, share);
        self.view.figures = self.figures.rows();
        let errors = match self.figures.errors() {
            0 => "no errors".to_owned(),
            n => format!("{n} ERRORS"),
        };
        self.view.counts =
            format!("{} requests completed, {errors}", rate(progress.completed as f64));
        self.view.cost = self.cost(progress.completed, wall);
    }

    fn cost(&self, completed: u64, wall: f64) -> String {
        let began = self.loaded.as_ref().and_then(|(_, cpu)| cpu.as_ref());
        let spent = began.and_then(|cpu| cpu.try_elapsed().ok());
        let (Some(spent), true) = (spent, completed > 0 && wall > 0.0) else {
            return String::new();
        };
        let each = nanoseconds(spent.as_nanos() as f64 / completed as f64);
        if self.real {
            let share = spent.as_secs_f64() / wall * 100.0;
            format!("overhead: {each} CPU per request, {share:.0} % of one CPU")
        } else {
            let speed = rate(completed as f64 / wall);
            format!("simulation: {speed} requests per second of wall time, {each} CPU each")
        }
    }
}

/// The observation, and its consequences.
#[derive(Default)]
struct Figures {
    /// The last ones, oldest first.
    seen: VecDeque<Arc<LiveSnapshot>>,
    iops: VecDeque<Option<u64>>,
    throughput: VecDeque<Option<u64>>,
    percentiles: [VecDeque<Option<u64>>; 3],
}

/// Figures of a stretch of time.
struct Stretch {
    iops: f64,
    throughput: f64,
    percentiles_ns: Option<[f64; 3]>,
}

impl Stretch {
    /// `None` where no time passed.
    fn of(between: &LiveSnapshot) -> Option<Stretch> {
        let length = between.now.as_s_f64();
        if length <= 0.0 {
            return None;
        }
        let iops = between.completed as f64 / length;
        // A job may tell late what it recorded; what it completed is always fresh.
        let each = between.bytes as f64 / between.histogram.total().max(1) as f64;
        let percentiles_ns = between.percentiles_ns();
        Some(Stretch { iops, throughput: iops * each, percentiles_ns })
    }
}

impl Figures {
    /// Whether `glance` was added: a run shows its last one until there is another.
    ///
    /// The snapshots of hosts are merged at each look. Only their contents tell whether one is new.
    fn has(&self, glance: &LiveSnapshot) -> bool {
        let moment = |one: &LiveSnapshot| (one.now, one.completed);
        self.seen.back().is_some_and(|last| moment(last) == moment(glance))
    }

    fn add(&mut self, glance: &Arc<LiveSnapshot>) {
        self.seen.push_back(Arc::clone(glance));
        if self.seen.len() > NOW + 1 {
            self.seen.pop_front();
        }
        let last = self.seen.len().checked_sub(2).and_then(|at| self.stretch(at));
        push(&mut self.iops, last.as_ref().map(|s| s.iops));
        push(&mut self.throughput, last.as_ref().map(|s| s.throughput));
        let percentiles = last.and_then(|s| s.percentiles_ns);
        for (at, history) in self.percentiles.iter_mut().enumerate() {
            push(history, percentiles.map(|all| all[at]));
        }
    }

    fn errors(&self) -> u64 {
        self.seen.back().map_or(0, |glance| glance.errors)
    }

    /// From the one at `from` to the last; `None` where no time passed.
    fn stretch(&self, from: usize) -> Option<Stretch> {
        let (earlier, glance) = (self.seen.get(from)?, self.seen.back()?);
        Stretch::of(&glance.since(earlier))
    }

    /// Over the whole run.
    fn whole(&self) -> Option<Stretch> {
        Stretch::of(self.seen.back()?)
    }

    fn rows(&self) -> Vec<Figure> {
        let (now, whole) = (self.stretch(0), self.whole());
        let text = |stretch: &Option<Stretch>, show: &dyn Fn(&Stretch) -> Option<String>| {
            stretch.as_ref().and_then(show).unwrap_or_else(|| "-".to_owned())
        };
        let row = |name, history: &VecDeque<_>, show: &dyn Fn(&Stretch) -> Option<String>| Figure {
            name,
            now: text(&now, show),
            whole: text(&whole, show),
            history: history.iter().copied().collect(),
        };
        let mut rows = vec![
            row("IOPS", &self.iops, &|s| Some(rate(s.iops))),
            row("Throughput", &self.throughput, &|s| Some(bytes_per_second(s.throughput))),
        ];
        let percentiles = ["p50", "p99", "p99.9"].into_iter().zip(&self.percentiles).enumerate();
        rows.extend(percentiles.map(|(at, (name, history))| {
            row(name, history, &|s| s.percentiles_ns.map(|all| nanoseconds(all[at])))
        }));
        rows
    }
}

fn push(history: &mut VecDeque<Option<u64>>, value: Option<f64>) {
    if history.len() >= HISTORY {
        history.pop_front();
    }
    history.push_back(value.map(|value| value.round() as u64));
}

#[cfg(test)]
mod tests {
    use ssdyno_block::{Request, Status, Time};
    use ssdyno_figures::Keep;
    use ssdyno_record::Tape;

    use super::*;

    #[test]
    fn now_is_the_last_second_and_run_is_all_of_it() {
        let mut figures = Figures::default();
        let mut tape = Tape::new(Keep::Summary, None, false);
        let read = Request::read(0, 4096);
        let mut completed = 0;
        // Ten quarters of a second of 100 requests at 1 ms each, then five of 1000 at 10 µs.
        for quarter in 1..=15u64 {
            let now_ns = quarter * 250_000_000;
            let (count, latency_ns) = if quarter <= 10 { (100, 1_000_000) } else { (1000, 10_000) };
            let start = now_ns - latency_ns;
            tape.issued(start, count);
            let mut reaped = tape.reaped(now_ns);
            (0..count).for_each(|_| reaped.add(&read, start, start, Status::Ok));
            drop(reaped);
            completed += count;
            let now = Time::from_ns(now_ns);
            let glance = Arc::new(LiveSnapshot { now, completed, ..tape.glance() });
            figures.add(&glance);
            assert!(figures.has(&LiveSnapshot::clone(&glance)), "the same one is not added twice");
        }
        let now = figures.stretch(0).unwrap();
        assert_eq!((now.iops, now.throughput), (4000.0, 4000.0 * 4096.0));
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.005;
        let [p50, _, p99_9] = now.percentiles_ns.unwrap();
        assert!(near(p50, 10_000.0) && near(p99_9, 10_000.0), "{p50} {p99_9}");
        let whole = figures.whole().unwrap();
        assert_eq!(whole.iops, 1600.0);
        let [p50, p99, _] = whole.percentiles_ns.unwrap();
        assert!(near(p50, 10_000.0) && near(p99, 1_000_000.0), "{p50} {p99}");
        let rows = figures.rows();
        assert_eq!((rows[0].name, rows[0].now.as_str()), ("IOPS", "4.000 k"));
        assert_eq!(rows[0].history.len(), 15);
        assert_eq!((rows[0].history[0], rows[0].history[1]), (None, Some(400)));
    }

    #[test]
    fn a_target_that_stands_still_shows_nothing_and_breaks_nothing() {
        let mut figures = Figures::default();
        for _ in 0..HISTORY + 9 {
            figures.add(&Arc::new(LiveSnapshot::default()));
        }
        assert_eq!(figures.rows()[0].now, "-");
        assert_eq!(figures.iops.len(), HISTORY);
    }
}
