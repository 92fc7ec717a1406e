//! Several jobs as one: what each of them did, in common stretches of time.
//!
//! A rate of several jobs is the rate of the sum of their completions, and batch means of a rate are the amounts in
//! equal stretches of time (Law, *Simulation Modeling and Analysis*, 5th ed., section 9.5.3). Jobs share a target, so
//! their completions are correlated; a sum over all jobs in each stretch contains that, a sum of variances by job
//! does not. Batches cannot be put in order and joined instead: a batch of a slow job covers more time than several of
//! a fast job, so its amounts would arrive in lumps, or in no batch at all.
//!
//! Batches have no times of their single completions. They are taken to be spread evenly from the end of the batch
//! before. That moves amounts between neighbouring stretches only and leaves their sums, so what the variance of a
//! stretch loses becomes correlation of neighbours, which intervals allow for
//! ([`statistics::ratio`](crate::statistics::ratio)). Other jobs hide that correlation, so groups are no shorter than
//! the batches of the slowest job ([`Batches::GROUPS_LEAST`] groups at least). A job with fewer than [`FEW`] batches
//! does not show its variation: it counts as independent completions, whose number has the variance of a Poisson
//! process. The test `intervals_of_unlike_jobs_cover_the_truth` measures the coverage.

use ssdyno_block::Time;

use crate::batches::{Batch, Batches, Unseen};
use crate::slices::{self, Slice, Slices};

/// Most stretches of several jobs: as many as a run of one job has batches at least.
const MOST: usize = Batches::MOST / 2;

/// A job with fewer batches does not show how its completions vary.
// From four batches on, the correlation of the groups makes the interval wide enough.
const FEW: usize = 4;

/// The batches of `jobs`, each with the start of its window, in equal stretches from `from` to `to`. The part outside
/// is cut off.
pub(crate) fn batches(jobs: &[(Time, &Batches)], from: Time, to: Time) -> Batches {
    let inside = |start: Time, batches: &Batches| {
        let mut sum = [Batch::default()];
        spread(&mut sum, (from, to), start, batches);
        sum[0].count
    };
    let counts: Vec<f64> = jobs.iter().map(|(start, job)| inside(*start, job)).collect();
    let all: f64 = counts.iter().sum();
    let mut stretches = ((all / Batches::FIRST as f64) as usize).min(MOST);
    // Groups of equal length, where there are enough stretches for groups at all.
    if stretches > Batches::GROUPS {
        stretches -= stretches % Batches::GROUPS;
    }
    if to <= from || stretches == 0 {
        return Batches::default();
    }
    let mut done = vec![Batch::default(); stretches];
    let mut unseen = Unseen::default();
    let mut groups = Batches::GROUPS;
    for (start, job) in jobs {
        let batches_of_job = job.all().take(Batches::GROUPS).count();
        let bytes_before: f64 = done.iter().map(|batch| batch.bytes as f64).sum();
        spread(&mut done, (from, to), *start, job);
        let known = job.unseen();
        unseen.count += known.count;
        unseen.bytes += known.bytes;
        let count = inside(*start, job);
        if batches_of_job >= FEW {
            groups = groups.min(job.group_count()).min(batches_of_job);
        } else if known == Unseen::default() && count > 0.0 {
            let bytes = done.iter().map(|batch| batch.bytes as f64).sum::<f64>() - bytes_before;
            unseen.count += count;
            unseen.bytes += bytes * bytes / count;
        }
    }
    let length = to.saturating_sub(from).as_ps();
    for (at, batch) in done.iter_mut().enumerate() {
        batch.end = end_of(at, stretches, from, length);
    }
    Batches::of_stretches(done, groups.max(Batches::GROUPS_LEAST), unseen)
}

/// The slices of `jobs`, each with the start of its window, in equal stretches from `from` to `to`. The part outside is
/// cut off.
pub(crate) fn slices(jobs: &[(Time, &Slices)], from: Time, to: Time) -> Slices {
    let mut sum = vec![Slice::default()];
    jobs.iter().for_each(|(start, job)| spread_slices(&mut sum, (from, to), *start, job));
    let whole = sum.remove(0);
    if to <= from || whole.all().count < Slices::COMPLETIONS_LEAST {
        return Slices::default();
    }
    let mut stretches = Slices::OF_JOBS;
    let mut unseen = slices::Unseen::default();
    for (_, job) in jobs {
        unseen.merge(job.unseen());
        let slices = job.all().count();
        if slices >= FEW {
            stretches = stretches.min(slices);
        } else if *job.unseen() == slices::Unseen::default() {
            job.all().for_each(|slice| unseen.add(slice, &whole));
        }
    }
    let stretches = stretches.max(Slices::OF_JOBS / 4);
    let mut done = vec![Slice::default(); stretches];
    jobs.iter().for_each(|(start, job)| spread_slices(&mut done, (from, to), *start, job));
    let length = to.saturating_sub(from).as_ps();
    for (at, slice) in done.iter_mut().enumerate() {
        slice.end = end_of(at, stretches, from, length);
    }
    // A silent stretch holds no latency, and would look as if it agreed with all others.
    done.retain(|slice| slice.all().count > 0);
    Slices::of_stretches(done, unseen)
}

/// Adds the slices of a job, as [`spread`] does its batches.
fn spread_slices(stretches: &mut [Slice], (from, to): (Time, Time), start: Time, slices: &Slices) {
    let place = places(from, to, stretches.len());
    let mut begin = place(start);
    for slice in slices.all() {
        let end = place(slice.end).max(begin);
        for_each_share(begin, end, stretches.len(), |at, share| {
            stretches[at].add_share(slice, share);
        });
        begin = end;
    }
}

/// Where a moment lies, in stretches.
fn places(from: Time, to: Time, stretches: usize) -> impl Fn(Time) -> f64 {
    let length = to.saturating_sub(from).as_ps() as f64 / stretches as f64;
    move |at| (at.as_ps() as f64 - from.as_ps() as f64) / length
}

/// The end of stretch number `at` of this number of stretches, which are `length_ps` long in total.
fn end_of(at: usize, stretches: usize, from: Time, length_ps: u64) -> Time {
    let past = u128::from(length_ps) * (at as u128 + 1) / stretches as u128;
    from.saturating_add(Time::from_ps(past as u64))
}

/// Adds the batches of a job whose window began at `start` to equal `stretches` between two moments.
fn spread(stretches: &mut [Batch], (from, to): (Time, Time), start: Time, batches: &Batches) {
    let place = places(from, to, stretches.len());
    let mut begin = place(start);
    for batch in batches.all() {
        let end = place(batch.end).max(begin);
        for_each_share(begin, end, stretches.len(), |at, share| {
            let stretch = &mut stretches[at];
            stretch.count += batch.count * share.len();
            stretch.latency_ps += share.of(batch.latency_ps as f64) as u128;
            stretch.bytes += share.of(batch.bytes as f64) as u64;
        });
        begin = end;
    }
}

/// A part of the time of a batch, 0 to 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Share {
    fn len(self) -> f64 {
        self.to - self.from
    }

    /// That part of `amount`. Parts of one amount add up to it: each ends where the next begins.
    pub(crate) fn of(self, amount: f64) -> f64 {
        (amount * self.to).floor() - (amount * self.from).floor()
    }
}

/// Shows `take` each of `count` stretches of length 1 that holds a part of what lies between `begin` and `end`, and the part.
pub(crate) fn for_each_share(
    begin: f64,
    end: f64,
    count: usize,
    mut take: impl FnMut(usize, Share),
) {
    let most = count as f64;
    if end <= begin {
        // All at one moment. The window contains its end, and each stretch does.
        if (0.0..=most).contains(&end) {
            take((end.ceil() as usize).saturating_sub(1), Share { from: 0.0, to: 1.0 });
        }
        return;
    }
    let (first, last) = (begin.max(0.0), end.min(most));
    let share = |at: f64| if at >= end { 1.0 } else { ((at - begin) / (end - begin)).max(0.0) };
    let mut at = first;
    while at < last {
        let next = (at.floor() + 1.0).min(last);
        take((at.floor() as usize).min(count - 1), Share { from: share(at), to: share(next) });
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::{Histogram, Interval};

    use super::*;
    use crate::confidence;
    use crate::draw::Draw;
    use crate::slices::{Part, View};

    const SECONDS: f64 = 4.0;

    /// A job with completions of `bytes` at `moments` in seconds.
    fn job(bytes: u64, moments: impl Iterator<Item = f64>) -> (Batches, f64) {
        let (mut batches, mut last, mut moved) = (Batches::default(), Time::ZERO, 0.0);
        for moment in moments {
            last = Time::from_ns((moment * 1e9) as u64);
            batches.add(1_000_000, bytes, 1, last);
            moved += bytes as f64;
        }
        batches.end(last);
        (batches, moved)
    }

    fn steady(per_second: f64) -> impl Iterator<Item = f64> {
        (1..=(SECONDS * per_second) as u64).map(move |at| at as f64 / per_second)
    }

    fn throughput(jobs: &[(Batches, f64)]) -> Option<Interval> {
        let parts: Vec<_> = jobs.iter().map(|(batches, _)| (Time::ZERO, batches)).collect();
        let end = Time::from_ns((SECONDS * 1e9) as u64);
        let all = batches(&parts, Time::ZERO, end);
        let moved: f64 = jobs.iter().map(|(_, moved)| moved).sum();
        let counted: f64 = all.all().map(|batch| batch.bytes as f64).sum();
        assert!((counted / moved - 1.0).abs() < 1e-9, "{counted} of {moved} bytes");
        all.groups(Time::ZERO)?.throughput(moved / SECONDS)
    }

    /// A slow job that moves most of the bytes is in the interval, and its steady load makes no wide one.
    #[test]
    fn a_slow_job_with_large_requests_counts() {
        for (bytes, per_second) in [(8 << 20, 75.0), (1 << 20, 1_000.0)] {
            let jobs = [job(4096, steady(50_000.0)), job(bytes, steady(per_second))];
            let interval = throughput(&jobs).unwrap();
            assert!(interval.relative_half_width().unwrap() < 0.005, "{interval:?}");
            let swings = steady(per_second).map(|at| at + (3.0 * at).sin() / 8.0);
            let swings = swings.filter(|at| *at < SECONDS);
            let jobs = [job(4096, steady(50_000.0)), job(bytes, swings)];
            let interval = throughput(&jobs).unwrap();
            assert!(interval.relative_half_width().unwrap() > 0.05, "{interval:?}");
        }
    }

    /// How many of 200 runs have the true throughput in their interval, and the mean half width of it divided by the
    /// figure. Gaps are exponential. If the target `stalls`, all jobs wait for it half of the time.
    fn covered(jobs: &[(u64, f64)], stalls: bool) -> (u32, f64) {
        let (mut covered, mut widths) = (0, 0.0);
        for seed in 0..200 {
            let mut draw = Draw(seed);
            let mut pauses = Vec::new();
            let mut at = draw.exponential() / 100.0;
            while stalls && at < SECONDS {
                let length = draw.exponential() / 100.0;
                pauses.push((at, length));
                at += length + draw.exponential() / 100.0;
            }
            let runs: Vec<_> = jobs
                .iter()
                .map(|(bytes, per_second)| {
                    let (mut now, mut next) = (0.0, pauses.iter().peekable());
                    let moments = std::iter::from_fn(|| {
                        now += draw.exponential() / per_second;
                        while let Some((_, length)) = next.next_if(|(at, _)| *at < now) {
                            now += length;
                        }
                        (now < SECONDS).then_some(now)
                    });
                    job(*bytes, moments)
                })
                .collect();
            let share = if stalls { 0.5 } else { 1.0 };
            let truth: f64 = jobs.iter().map(|(bytes, rate)| *bytes as f64 * rate * share).sum();
            if let Some(interval) = throughput(&runs) {
                covered += u32::from(interval.low <= truth && truth <= interval.high);
                widths += interval.relative_half_width().unwrap() / 200.0;
            }
        }
        (covered, widths)
    }

    /// 190 of 200 at 95 %, with three standard deviations (9) below; wide intervals cover more.
    #[test]
    fn intervals_of_unlike_jobs_cover_the_truth() {
        for (jobs, stalls) in [
            (&[(4096, 2_000.0), (8 << 20, 75.0)][..], false),
            (&[(4096, 2_000.0), (8 << 20, 15.0)], false),
            (&[(4096, 2_000.0), (8 << 20, 5.0)], false),
            (&[(4096, 2_000.0), (8 << 20, 2.5)], false),
            (&[(65_536, 1_000.0), (2 << 20, 30.0), (8 << 20, 7.0)], false),
            (&[(4096, 1_000.0); 3], false),
            (&[(4096, 2_000.0), (1 << 20, 75.0)], true),
        ] {
            let (covered, width) = covered(jobs, stalls);
            assert!(covered >= 181, "{jobs:?}: {covered} of 200, ± {width}");
        }
    }

    /// A job with exponential gaps and latencies of `mean_ns`.
    fn latencies(draw: &mut Draw, per_second: f64, mean_ns: f64) -> Slices {
        fn lane(histogram: &Histogram, ps: u128, ps_max: u64) -> View<'_> {
            View { histograms: vec![histogram], sums: crate::sums::Sums { ps, ps_min: 0, ps_max } }
        }
        let (mut slices, mut histogram) = (Slices::default(), Histogram::default());
        let none = Histogram::default();
        let (mut now, mut sum, mut count, mut most) = (0.0, 0, 0, 0);
        loop {
            let empty = || lane(&none, 0, 0);
            now += draw.exponential() / per_second;
            if now > SECONDS {
                let lanes = [lane(&histogram, sum, most), empty(), empty(), empty(), empty()];
                slices.end(Time::from_ns((SECONDS * 1e9) as u64), lanes);
                return slices;
            }
            let ns = (draw.exponential() * mean_ns) as u64;
            histogram.add(ns);
            (sum, count, most) = (sum + u128::from(ns) * 1_000, count + 1, most.max(ns * 1_000));
            if slices.due(count) {
                let lanes = [lane(&histogram, sum, most), empty(), empty(), empty(), empty()];
                slices.close(count, Time::from_ns((now * 1e9) as u64), lanes);
            }
        }
    }

    /// As above, for the mean latency: a job of few slow requests is in it, and in its interval.
    #[test]
    fn intervals_of_the_mean_latency_cover_the_truth() {
        for jobs in [
            &[(1_000.0, 1e5), (1_000.0, 1e5)][..],
            &[(1_000.0, 1e5), (150.0, 1e6)],
            &[(1_000.0, 1e5), (30.0, 1e7)],
            &[(1_000.0, 1e5), (5.0, 1e8)],
            &[(300.0, 1e5), (300.0, 2e5), (20.0, 1e6), (10.0, 1e7)],
        ] {
            let weight: f64 = jobs.iter().map(|(rate, _)| rate).sum();
            let truth = jobs.iter().map(|(rate, mean)| rate * mean).sum::<f64>() / weight;
            let (mut covered, mut width) = (0, 0.0);
            for seed in 0..100 {
                let mut draw = Draw(seed);
                let runs: Vec<Slices> =
                    jobs.iter().map(|(rate, mean)| latencies(&mut draw, *rate, *mean)).collect();
                let parts: Vec<_> = runs.iter().map(|run| (Time::ZERO, run)).collect();
                let all = slices(&parts, Time::ZERO, Time::from_ns((SECONDS * 1e9) as u64));
                let counted: u64 = all.all().map(|slice| slice.all().count).sum();
                let recorded = runs.iter().flat_map(Slices::all).map(|slice| slice.all().count);
                assert_eq!(counted, recorded.sum::<u64>(), "nothing is lost");
                let parts: Vec<Part> = all.enough().unwrap().iter().map(Slice::all).collect();
                let interval = confidence::own_mean_interval(&parts, all.unseen().all).unwrap();
                covered += u32::from(interval.low <= truth && truth <= interval.high);
                width += interval.relative_half_width().unwrap() / 100.0;
            }
            // 95 of 100, with three standard deviations (6.5) below.
            assert!(covered >= 88, "{jobs:?}: {covered} of 100, ± {width}");
        }
    }
}
