//! The series of a run, as the page draws it: bounded, whatever the length of the run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use ssdyno_cluster::ClusterProgress;
use ssdyno_figures::{Histogram, LiveSnapshot};
use ssdyno_record::Recording;
use ssdyno_session::RunPhase;

/// Points that are kept at most: more than a screen has columns.
pub(crate) const POINTS_MAX: usize = 1024;

/// How long a point waits for the last host: they tell ten times a second, each at its own moment, and a point without one
/// of them would show a dip that is none.
const WAIT_FOR_ALL: Duration = Duration::from_millis(500);

/// Bins of the heat map to an octave of latency.
const BINS_PER_OCTAVE: u64 = 4;

/// The figures of a host within a point.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Done {
    seconds: f64,
    requests: u64,
    bytes: u64,
    errors: u64,
}

/// All hosts within a stretch of time.
#[derive(Clone, PartialEq, Debug, Default)]
struct Point {
    /// Seconds on the clock of the run.
    from: f64,
    to: f64,
    /// `None`: nothing was heard of the host.
    hosts: Vec<Option<Done>>,
    /// First latency of a bin, one past its last, count: those that hold something, ascending.
    latencies: Vec<(u64, u64, u64)>,
}

impl Point {
    /// Both stretches as one. Counts are added, so nothing is lost but the moment.
    fn join(mut self, later: &Point) -> Point {
        for (mine, theirs) in self.hosts.iter_mut().zip(&later.hosts) {
            *mine = match (*mine, *theirs) {
                (Some(mine), Some(theirs)) => Some(Done {
                    seconds: mine.seconds + theirs.seconds,
                    requests: mine.requests + theirs.requests,
                    bytes: mine.bytes + theirs.bytes,
                    errors: mine.errors + theirs.errors,
                }),
                (one, other) => one.or(other),
            };
        }
        self.latencies.extend_from_slice(&later.latencies);
        // Both lists are sorted by latency. Equal bins are neighbours after
        // the sort, and their counts are added.
        self.latencies.sort_unstable();
        self.latencies.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.2 += if is_same { next.2 } else { 0 };
            is_same
        });
        Point { to: later.to, ..self }
    }

    fn percentile_ns(&self, share: f64) -> Option<f64> {
        let total: u64 = self.latencies.iter().map(|(.., count)| count).sum();
        let rank = ((share * total as f64).ceil() as u64).max(1);
        let mut below = 0;
        self.latencies.iter().find_map(|(low, past, count)| {
            // The middle of a bin is the value with the smallest possible error. The bins are fine, so
            // the error is far below one column of the screen.
            below += count;
            (below >= rank).then(|| (*low as f64 + (*past - 1) as f64) / 2.0)
        })
    }

    fn view(&self) -> PointView {
        let done = |done: &Done| (done.seconds, done.requests, done.bytes, done.errors);
        let percentiles = [0.5, 0.99, 0.999].map(|share| self.percentile_ns(share));
        let mut heat: Vec<(u64, u64)> = Vec::new();
        for (low, _, count) in &self.latencies {
            let bin = heat_bin(*low);
            match heat.last_mut() {
                Some((last, sum)) if *last == bin => *sum += count,
                _ => heat.push((bin, *count)),
            }
        }
        PointView {
            from: self.from,
            to: self.to,
            hosts: self.hosts.iter().map(|host| host.as_ref().map(done)).collect(),
            p: match percentiles {
                [Some(a), Some(b), Some(c)] => Some([a, b, c]),
                _ => None,
            },
            heat,
        }
    }
}

/// Octave and quarter of a latency, as one number.
fn heat_bin(ns: u64) -> u64 {
    let octave = u64::from(ns.max(1).ilog2());
    // The product needs more than 64 bits for the largest
    // latencies, so it is computed in 128.
    let quarter = ((ns.max(1) - (1 << octave)) as u128 * u128::from(BINS_PER_OCTAVE)) >> octave;
    octave * BINS_PER_OCTAVE + quarter as u64
}

/// A point as the page gets it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct PointView {
    from: f64,
    to: f64,
    /// Of each host: seconds, requests, bytes, errors.
    hosts: Vec<Option<(f64, u64, u64, u64)>>,
    /// p50, p99, p99.9 of all hosts together.
    p: Option<[f64; 3]>,
    /// Bin and count: four to an octave, from 1 ns on.
    heat: Vec<(u64, u64)>,
}

/// How far a viewer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    epoch: u64,
    points: usize,
}

/// The points that a viewer has not seen yet.
pub(crate) enum News {
    /// In place of what it has: points were joined.
    Whole(Vec<PointView>),
    /// In addition.
    More(Vec<PointView>),
}

/// The series of one run.
#[derive(Debug)]
pub(crate) struct LiveSeries {
    hosts: Vec<Told>,
    points: Vec<Point>,
    /// Rises when points are joined.
    epoch: u64,
    /// When the first of the hosts had news.
    news_since: Option<Instant>,
    /// Points that a new one is joined from: a power of two, so that all are of the same length.
    share: u32,
    /// The one that is being joined, and of how many it is.
    open: Option<(Point, u32)>,
}

/// The last report of a host.
#[derive(Clone, Debug, Default)]
struct Told {
    /// That is in a point.
    counted: Option<Arc<LiveSnapshot>>,
    /// That is not yet.
    newest: Option<Arc<LiveSnapshot>>,
    is_over: bool,
}

impl Told {
    fn has_news(&self) -> bool {
        // Before its first request a host has reported nothing. Both times
        // are zero then, and there is no news.
        let now = |glance: &Option<Arc<LiveSnapshot>>| {
            glance.as_ref().map_or(0, |glance| glance.now.as_ps())
        };
        now(&self.newest) > now(&self.counted)
    }
}

impl LiveSeries {
    pub(crate) fn new(hosts: usize) -> LiveSeries {
        let hosts = vec![Told::default(); hosts];
        LiveSeries { hosts, points: Vec::new(), epoch: 0, news_since: None, share: 1, open: None }
    }

    /// An empty series of this number of hosts, which replaces this series at the viewers.
    pub(crate) fn anew(&self, hosts: usize) -> LiveSeries {
        LiveSeries { epoch: self.epoch + 1, ..LiveSeries::new(hosts) }
    }

    /// In place of what was seen of a run that was here, what its recording knows, if that is more: a simulation can end
    /// before anybody looks twice.
    pub(crate) fn complete(&mut self, recording: &mut Recording) {
        let mut whole = LiveSeries { epoch: self.epoch + 1, ..LiveSeries::new(1) };
        recording.snapshots(&mut |snapshot| {
            whole.hosts[0].newest = Some(Arc::new(snapshot.clone()));
            whole.close();
        });
        // A live series with more points is kept: it was drawn already, and replacing
        // it by fewer points would look like a loss.
        if whole.points.len() > self.points.len() {
            *self = whole;
        }
    }

    /// Number of the present form of the series.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Takes in how far the hosts are at `now`.
    pub(crate) fn add(&mut self, progress: &ClusterProgress, now: Instant) {
        for (told, (_, snapshot, silent)) in self.hosts.iter_mut().zip(&progress.hosts) {
            if snapshot.progress.glance.is_some() {
                told.newest.clone_from(&snapshot.progress.glance);
            }
            // A host that is cut off counts as over. The points of the others would
            // otherwise wait half a second for it each time.
            told.is_over = snapshot.phase == RunPhase::Ended || silent.is_some();
        }
        let have_news = self.hosts.iter().filter(|told| told.has_news()).count();
        if have_news == 0 {
            self.news_since = None;
            return;
        }
        let since = *self.news_since.get_or_insert(now);
        let all = self.hosts.iter().all(|told| told.has_news() || told.is_over);
        if all || now.duration_since(since) >= WAIT_FOR_ALL {
            self.news_since = None;
            self.close();
        }
    }

    /// Makes a point of the news.
    fn close(&mut self) {
        let (mut from, mut to, mut latencies) = (f64::MAX, 0.0f64, Histogram::default());
        let mut hosts = Vec::with_capacity(self.hosts.len());
        for told in &mut self.hosts {
            let Some(newest) = told.newest.clone().filter(|_| told.has_news()) else {
                hosts.push(None);
                continue;
            };
            let zero = LiveSnapshot::default();
            let before = told.counted.as_deref().unwrap_or(&zero);
            let news = newest.since(before);
            from = from.min(before.now.as_s_f64());
            to = to.max(newest.now.as_s_f64());
            latencies.merge(&news.histogram);
            hosts.push(Some(Done {
                seconds: news.now.as_s_f64(),
                requests: news.completed,
                bytes: news.bytes,
                errors: news.errors,
            }));
            told.counted = Some(newest);
        }
        // Hosts report at slightly different moments. Each point begins where the last
        // one ended, so that points never overlap.
        let last = self.open.as_ref().map(|(open, _)| open).or(self.points.last());
        let from = last.map_or(from, |last| last.to);
        let point = Point { from, to: to.max(from), hosts, latencies: latencies.bins(128) };
        self.push(point);
    }

    fn push(&mut self, point: Point) {
        let (open, parts) = match self.open.take() {
            Some((open, parts)) => (open.join(&point), parts + 1),
            None => (point, 1),
        };
        if parts < self.share {
            self.open = Some((open, parts));
            return;
        }
        self.points.push(open);
        // When there are too many points, neighbours are joined. The epoch rises, and every
        // viewer gets the whole series in its new form.
        if self.points.len() > POINTS_MAX {
            let pairs = self.points.chunks(2).map(|pair| match pair {
                [one, other] => one.clone().join(other),
                rest => rest[0].clone(),
            });
            self.points = pairs.collect();
            self.share = self.share.saturating_mul(2);
            self.epoch += 1;
        }
    }

    /// The points that are new to a viewer at position `seen`, which is advanced.
    pub(crate) fn news(&self, seen: &mut Option<Seen>) -> News {
        let view = |points: &[Point]| points.iter().map(Point::view).collect();
        let before = seen.replace(Seen { epoch: self.epoch, points: self.points.len() });
        match before {
            Some(before) if before.epoch == self.epoch => {
                News::More(view(self.points.get(before.points..).unwrap_or_default()))
            }
            _ => News::Whole(view(&self.points)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ssdyno_figures::RunProgress;
    use ssdyno_session::RunSnapshot;

    use super::*;

    /// Hosts that have told `glances`.
    fn told(glances: &[LiveSnapshot]) -> ClusterProgress {
        let host = |glance: &LiveSnapshot| {
            let glance = Some(Arc::new(glance.clone()));
            let progress = RunProgress { glance, ..RunProgress::default() };
            let snapshot =
                RunSnapshot { phase: RunPhase::Loaded, progress, ..RunSnapshot::default() };
            ("h".to_owned(), snapshot, None)
        };
        ClusterProgress { hosts: glances.iter().map(host).collect(), ..ClusterProgress::default() }
    }

    fn requests(series: &LiveSeries) -> u64 {
        let all = series.points.iter().chain(series.open.iter().map(|(open, _)| open));
        all.flat_map(|point| point.hosts.iter().flatten()).map(|done| done.requests).sum()
    }

    proptest! {
        /// However many points there were, they are few, they follow each other, and no request is lost or doubled.
        #[test]
        fn joined_points_keep_every_request(
            steps in prop::collection::vec((1u64..50, 1u64..2_000_000, 0usize..2), 1..40),
            repeat in 1usize..200,
        ) {
            let mut series = LiveSeries::new(2);
            let mut glances = [LiveSnapshot::default(), LiveSnapshot::default()];
            let mut at = Instant::now();
            let mut seen = None;
            let mut viewed = 0;
            for (count, ns, behind) in steps.iter().cycle().take(steps.len() * repeat) {
                for (host, glance) in glances.iter_mut().enumerate() {
                    if host == 1 && *behind == 1 {
                        continue;
                    }
                    glance.now += time(*count);
                    glance.completed += count;
                    glance.bytes += count * 4096;
                    (0..*count).for_each(|_| glance.histogram.add(*ns));
                }
                at += WAIT_FOR_ALL;
                series.add(&told(&glances), at);
                at += WAIT_FOR_ALL;
                series.add(&told(&glances), at);
                match series.news(&mut seen) {
                    News::Whole(points) => viewed = points.len(),
                    News::More(points) => viewed += points.len(),
                }
                prop_assert_eq!(viewed, series.points.len());
            }
            let told: u64 = glances.iter().map(|glance| glance.completed).sum();
            prop_assert_eq!(requests(&series), told);
            prop_assert!(series.points.len() <= POINTS_MAX);
            for pair in series.points.windows(2) {
                prop_assert!(pair[0].to <= pair[1].to && pair[1].from == pair[0].to);
            }
            let latencies: u64 = series.points.iter().chain(series.open.iter().map(|(open, _)| open))
                .flat_map(|point| &point.latencies).map(|(.., count)| count).sum();
            prop_assert_eq!(latencies, told);
        }
    }

    fn time(ms: u64) -> ssdyno_block::Time {
        ssdyno_block::Time::from_ns(ms * 1_000_000)
    }

    #[test]
    fn percentiles_are_those_of_the_requests_in_the_point() {
        let mut series = LiveSeries::new(1);
        let mut glance =
            LiveSnapshot { now: time(100), completed: 1000, ..LiveSnapshot::default() };
        (0..989).for_each(|_| glance.histogram.add(100));
        (0..11).for_each(|_| glance.histogram.add(100_000));
        series.add(&told(&[glance]), Instant::now());
        let view = series.points[0].view();
        let [p50, p99, p999] = view.p.unwrap();
        assert!((p50 / 100.0 - 1.0).abs() < 0.01, "{p50}");
        assert!((p99 / 100_000.0 - 1.0).abs() < 0.01 && p99 == p999, "{p99}");
        // 100 ns lies in the third quarter of the octave from 64 ns; 100 000 in the third of that from 65 536.
        assert_eq!(view.heat, [(6 * 4 + 2, 989), (16 * 4 + 2, 11)]);
    }

    /// A host that is silent for a moment does not hold up the others for long, and its news come later.
    #[test]
    fn a_silent_host_has_no_figures_in_the_point() {
        let mut series = LiveSeries::new(2);
        let glance = |ms: u64, completed| LiveSnapshot {
            now: time(ms),
            completed,
            histogram: Histogram::default(),
            ..LiveSnapshot::default()
        };
        let start = Instant::now();
        series.add(&told(&[glance(100, 10), LiveSnapshot::default()]), start);
        assert!(series.points.is_empty());
        series.add(&told(&[glance(700, 70), LiveSnapshot::default()]), start + WAIT_FOR_ALL);
        assert_eq!(series.points[0].hosts[1], None);
        series.add(&told(&[glance(800, 80), glance(800, 5)]), start + WAIT_FOR_ALL * 2);
        assert_eq!(series.points[1].hosts[1].unwrap().requests, 5);
        assert_eq!(requests(&series), 85);
    }
}
