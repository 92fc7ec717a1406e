//! How the statements of [`super::claims`] are checked.

use super::arithmetic::link_bounds;
use super::data::{Case, Plan, RESPONSES, WAYS};
use super::simulate::Measured;
use crate::answer::{Answer, more, no_less, rising, same};
use crate::claims::Verdict;
use crate::mean::Mean;

/// What a claim is checked against.
pub(super) struct Evidence<'a> {
    pub(super) plan: &'a Plan,
    pub(super) measured: &'a Measured,
}

/// A figure for each of `items`; `None` where one was not run.
fn each<T>(
    items: impl IntoIterator<Item = T>,
    figure: impl Fn(T) -> Option<Mean>,
) -> Option<Vec<Mean>> {
    items.into_iter().map(figure).collect()
}

/// All of `items` are answered by `test`.
fn all<T>(
    items: impl IntoIterator<Item = T>,
    test: impl Fn(T) -> Option<Answer>,
) -> Option<Answer> {
    Answer::all(items.into_iter().map(test))
}

impl Evidence<'_> {
    fn kiops(&self, case: &Case) -> Option<Mean> {
        self.measured.kiops(case)
    }

    fn latency(&self, case: &Case) -> Option<Mean> {
        self.measured.latency_us(case)
    }

    fn fed(&self, size: u32, percent: u32, response: usize) -> Option<Mean> {
        self.kiops(&self.plan.fed(size, percent, RESPONSES[response]))
    }

    /// Block size and direction of each point of figure 5, but for blocks of one.
    fn blocks_of_many(&self) -> Vec<(u32, u32)> {
        let sizes = self.plan.block_sizes.iter().filter(|size| **size > 1);
        sizes.flat_map(|size| WAYS.map(|(_, percent)| (*size, percent))).collect()
    }

    /// Static block size and direction.
    fn blocks(&self) -> Vec<(u32, u32)> {
        let sizes = self.plan.static_blocks.iter();
        sizes.flat_map(|size| WAYS.map(|(_, percent)| (*size, percent))).collect()
    }

    /// Full throughput of static blocks of `size`.
    fn saturated(&self, size: u32, percent: u32) -> Option<Mean> {
        self.kiops(&Case::fixed(size, *self.plan.threads.last()?, percent))
    }

    /// The best static block for so many threads: throughput and size.
    fn best_static(&self, threads: u32, percent: u32) -> Option<(Mean, u32)> {
        let sizes = self.plan.static_blocks.iter().filter(|size| **size <= threads);
        let rates =
            sizes.map(|size| Some((self.kiops(&Case::fixed(*size, threads, percent))?, *size)));
        let rates = rates.collect::<Option<Vec<_>>>()?;
        rates.into_iter().max_by(|a, b| a.0.mean.total_cmp(&b.0.mean))
    }
}

pub(super) fn reads_are_faster(e: &Evidence<'_>) -> Verdict {
    let most = *e.plan.block_sizes.last()?;
    let answer = all(0..RESPONSES.len(), |response| {
        all(&e.plan.block_sizes, |b| Some(more(e.fed(*b, 100, response)?, e.fed(*b, 0, response)?)))
    })?;
    let (read, write) = (e.fed(most, 100, 0)?.mean, e.fed(most, 0, 0)?.mean);
    Some((answer, format!("blocks of {most}: reads {read:.1} kIOPS, writes {write:.1} kIOPS")))
}

pub(super) fn more_transactions_are_slower(e: &Evidence<'_>) -> Verdict {
    let rises =
        |percent, response| rising(&each(&e.plan.block_sizes, |b| e.fed(*b, percent, response))?);
    let answer = all(WAYS, |(_, percent)| all(0..RESPONSES.len(), |r| rises(percent, r)))?;
    let (first, last) = (*e.plan.block_sizes.first()?, *e.plan.block_sizes.last()?);
    let (least, most) = (e.fed(first, 100, 0)?.mean, e.fed(last, 100, 0)?.mean);
    Some((answer, format!("reads: {least:.1} kIOPS with blocks of {first}, {most:.1} with {last}")))
}

/// Least and most of a response's rate over that of the complete block, over sizes above 1 and both
/// directions.
fn over_complete(e: &Evidence<'_>, response: usize) -> Option<String> {
    let ratio = |(b, way)| Some((e.fed(b, way, response)?.over(e.fed(b, way, 0)?).mean, b, way));
    let ratios = e.blocks_of_many().into_iter().map(ratio);
    let mut all = ratios.collect::<Option<Vec<(f64, u32, u32)>>>()?;
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let shown = |(ratio, block, percent): &(f64, u32, u32)| {
        let way = WAYS.iter().find(|(_, reads)| reads == percent).map_or("", |(way, _)| way);
        format!("{ratio:.3} ({way}, blocks of {block})")
    };
    Some(format!("{} to {} of the complete block", shown(all.first()?), shown(all.last()?)))
}

pub(super) fn one_engine_is_held_up(e: &Evidence<'_>) -> Verdict {
    let answer =
        all(e.blocks_of_many(), |(b, way)| Some(more(e.fed(b, way, 0)?, e.fed(b, way, 1)?)))?;
    let mut text = over_complete(e, 1)?;
    if answer != Answer::Yes {
        text +=
            "; in short blocks, the host handles the last response in the interrupt of the first";
    }
    Some((answer, text))
}

pub(super) fn a_second_engine_helps(e: &Evidence<'_>) -> Verdict {
    let answer =
        all(e.blocks_of_many(), |(b, way)| Some(no_less(e.fed(b, way, 2)?, e.fed(b, way, 0)?)))?;
    Some((answer, over_complete(e, 2)?))
}

pub(super) fn maximum_is_largest_block(e: &Evidence<'_>) -> Verdict {
    let largest = *e.plan.block_sizes.last()?;
    let ways = |b: &u32| (0..RESPONSES.len()).map(|r| (*b, r)).collect::<Vec<_>>();
    let others: Vec<_> = e.plan.block_sizes.iter().flat_map(ways).collect();
    let (mut answer, mut text) = (Answer::Yes, Vec::new());
    for (way, percent) in WAYS {
        let whole = e.fed(largest, percent, 0)?;
        let rates = others.iter().filter(|other| **other != (largest, 0));
        let rates = rates.map(|(b, r)| Some((e.fed(*b, percent, *r)?, *b, *r)));
        // One missing run makes the maximum unknown. A maximum over the others could be below the
        // true one, and the claim would hold by an omission.
        let rates = rates.collect::<Option<Vec<_>>>()?;
        answer = rates.iter().fold(answer, |so_far, (rate, ..)| so_far & more(whole, *rate));
        let (best, block, response) =
            rates.into_iter().max_by(|a, b| a.0.mean.total_cmp(&b.0.mean))?;
        text.push(format!(
            "{way}: {:+.1} % of the best of the others, {:.1} kIOPS with blocks of {block}, {}",
            100.0 * (whole.over(best).mean - 1.0),
            best.mean,
            RESPONSES[response].0
        ));
    }
    let mut text = text.join("; ");
    if answer != Answer::Yes {
        text += "; a second engine causes no delay, and the first responses wake the host for \
                 the last response";
    }
    Some((answer, text))
}

pub(super) fn least_latency(e: &Evidence<'_>) -> Verdict {
    let latencies = |percent| {
        let sizes = e.plan.static_blocks.iter().filter(|b| e.plan.threads.contains(b));
        each(sizes, |b| e.latency(&Case::fixed(*b, *b, percent)))
    };
    let (reads, writes) = (latencies(100)?, latencies(0)?);
    // S0-43: the least latency is expected at B = 1. The comparison is at N = B, because with fewer
    // threads a static block is never sent (S0-36).
    let first_is_least =
        |all_of: &[Mean]| all(&all_of[1..], |larger| Some(more(*larger, *all_of.first()?)));
    let answer = first_is_least(&reads)? & first_is_least(&writes)?;
    let (one, most) = (reads.first()?.mean, reads.last()?.mean);
    Some((answer, format!("reads: {one:.1} to {most:.1} us")))
}

/// A bound, without slack.
pub(super) fn below_the_link(e: &Evidence<'_>) -> Verdict {
    // The tighter bound is used: it includes packet headers, which no driver can avoid (S0-48).
    // Only Gen2 cases are compared, since the bound belongs to the link of the paper's card.
    let bound = link_bounds().ok()?.1;
    let gen2 = e.measured.all().filter(|(case, _)| case.generation == 2);
    let pages = gen2.map(|(case, run)| run.iops * f64::from(case.size_kib) / 4.0);
    let most = pages.fold(0.0, f64::max);
    Some(((most > 0.0 && most < bound).into(), format!("at most {most:.0} of {bound:.0}")))
}

pub(super) fn more_threads_do_not_help(e: &Evidence<'_>) -> Verdict {
    let (mut answer, mut worst) = (Answer::Yes, 0.0f64);
    for (size, percent) in e.blocks() {
        let full = e.saturated(size, percent)?;
        // Saturation begins at N = 2B and not at N = B (S0-50). A comparison from N > B on would
        // mix the rising part of the curve into the claim about its flat part.
        for threads in e.plan.threads.iter().filter(|n| **n >= 2 * size) {
            let rate = e.kiops(&Case::fixed(size, *threads, percent))?;
            answer = answer & same(rate, full);
            worst = worst.max((rate.over(full).mean - 1.0).abs());
        }
    }
    Some((answer, format!("at most {:.2} % off", worst * 100.0)))
}

pub(super) fn larger_blocks_raise_both(e: &Evidence<'_>) -> Verdict {
    let most = *e.plan.threads.last()?;
    let sizes = || &e.plan.static_blocks;
    let rates = |way| each(sizes(), |b| e.kiops(&Case::fixed(*b, most, way)));
    // Latency where the block is just full: with many threads they wait outside it.
    let latencies = |way| each(sizes(), |b| e.latency(&Case::fixed(*b, *b, way)));
    let answer = all(WAYS, |(_, way)| Some(rising(&rates(way)?)? & rising(&latencies(way)?)?))?;
    let (rate, latency) = (rates(100)?, latencies(100)?);
    let last = rate.len() - 1;
    let text = format!(
        "reads: {:.1} to {:.1} kIOPS saturated, {:.1} to {:.1} us with as many threads as fill a block",
        rate[0].mean, rate[last].mean, latency[0].mean, latency[last].mean
    );
    Some((answer, text))
}

/// Static blocks of a size with so many threads reach the full throughput: the answer, and the share.
fn full(e: &Evidence<'_>, size: u32, threads: u32) -> Option<(Answer, f64)> {
    let (rate, full) = (e.kiops(&Case::fixed(size, threads, 100))?, e.saturated(size, 100)?);
    Some((no_less(rate, full), 100.0 * rate.over(full).mean))
}

/// Throughput with the next larger number of threads than B, as a share of the full one.
pub(super) fn more_threads_than_a_block(e: &Evidence<'_>) -> Verdict {
    let (mut answer, mut text) = (Answer::Yes, Vec::new());
    for size in e.plan.static_blocks.iter().copied().filter(|size| *size > 1) {
        let between = |n: &&u32| **n > size && **n < 2 * size;
        // S0-50: for B < N < 2B the next block is not full at the interrupt, because the other
        // requests belong to the block at the device. The card then waits for the threads.
        let Some(threads) = e.plan.threads.iter().find(between) else { continue };
        let (reached, share) = full(e, size, *threads)?;
        answer = answer & reached;
        text.push(format!("B = {size}, N = {threads}: {share:.1} %"));
    }
    (!text.is_empty()).then(|| (answer, format!("of the full throughput, {}", text.join("; "))))
}

pub(super) fn twice_the_block(e: &Evidence<'_>) -> Verdict {
    let (mut answer, mut text) = (Answer::Yes, Vec::new());
    for size in e.plan.static_blocks.iter().copied() {
        if !e.plan.threads.contains(&(2 * size)) {
            continue;
        }
        let (reached, share) = full(e, size, 2 * size)?;
        answer = answer & reached;
        text.push(format!("B = {size}: {share:.1} %"));
    }
    Some((answer, format!("of the full throughput, {}", text.join("; "))))
}

pub(super) fn dynamic_reaches_the_maximum(e: &Evidence<'_>) -> Verdict {
    let most = *e.plan.threads.last()?;
    let (mut answer, mut text) = (Answer::Yes, Vec::new());
    for (way, percent) in WAYS {
        let ours = e.kiops(&Case::dynamic(most, percent))?;
        let (best, size) = e.best_static(most, percent)?;
        answer = answer & no_less(ours, best);
        let (ours, best) = (ours.mean, best.mean);
        text.push(format!("{way}: {ours:.1} kIOPS, static blocks of {size} {best:.1}"));
    }
    Some((answer, text.join("; ")))
}

pub(super) fn dynamic_is_never_behind(e: &Evidence<'_>) -> Verdict {
    let (mut answer, mut behind) = (Answer::Yes, Vec::new());
    for threads in e.plan.threads.iter().copied() {
        let ours = e.kiops(&Case::dynamic(threads, 100))?;
        let (best, size) = e.best_static(threads, 100)?;
        let here = no_less(ours, best);
        answer = answer & here;
        if here != Answer::Yes {
            let (ours, best) = (ours.mean, best.mean);
            behind
                .push(format!("N = {threads}: {ours:.1}, static blocks of {size} {best:.1} kIOPS"));
        }
    }
    let why =
        "; an idle card gets the first descriptor alone, which splits the threads into two groups";
    let text = if behind.is_empty() { "nowhere behind".into() } else { behind.join("; ") + why };
    Some((answer, text))
}

pub(super) fn dynamic_is_fast_under_light_load(e: &Evidence<'_>) -> Verdict {
    let ours = e.latency(&Case::dynamic(1, 100))?;
    let one = e.latency(&Case::fixed(1, 1, 100))?;
    let text = format!("one thread: {:.2} us, static blocks of one {:.2} us", ours.mean, one.mean);
    Some((no_less(one, ours), text))
}

pub(super) fn ssd_latency(e: &Evidence<'_>) -> Verdict {
    let latency = |percent| e.latency(&Case::dynamic(1, percent));
    let (read, write) = (latency(100)?, latency(0)?);
    let tens = |us| more(us, Mean::exact(10.0)) & more(Mean::exact(100.0), us);
    let text = format!("read {:.1} us, write {:.1} us", read.mean, write.mean);
    Some((tens(read) & tens(write), text))
}

/// Of three loads with equal distances an exponential has the last latency at (second / first) times the
/// second; a line is below that.
pub(super) fn latency_rises_exponentially(e: &Evidence<'_>) -> Verdict {
    let largest = *e.plan.static_blocks.last()?;
    let saturated: Vec<u32> =
        e.plan.threads.iter().copied().filter(|n| *n >= 2 * largest).collect();
    let latencies = each(&saturated, |n| e.latency(&Case::dynamic(*n, 100)))?;
    // The test of exponential growth compares ratios of neighbours, which needs equal steps in the
    // number of threads. With uneven steps, a straight line could pass as an exponential.
    let evenly = saturated.windows(3).all(|three| three[1] - three[0] == three[2] - three[1]);
    if latencies.len() < 3 || !evenly {
        return None;
    }
    let answer = all(latencies.windows(3), |three| {
        // An exponential multiplies the latency by the same factor in each equal step. A line gives
        // a smaller factor each time, so the third value separates both.
        let growth = three[1].over(three[0]).mean;
        Some(no_less(three[2], three[1].times(growth)))
    })?;
    let slope = |at: usize| {
        (latencies[at + 1].mean - latencies[at].mean) / f64::from(saturated[at + 1] - saturated[at])
    };
    let slopes: Vec<String> =
        (0..latencies.len() - 1).map(|at| format!("{:.3}", slope(at))).collect();
    let last = latencies.len() - 1;
    let before = latencies[last - 1];
    Some((
        answer,
        format!(
            "{} us for each further thread: a line, N / X; {} threads wait {:.1} us, with an exponential {:.1} us",
            slopes.join(", "),
            saturated[last],
            latencies[last].mean,
            before.mean * before.over(latencies[last - 2]).mean
        ),
    ))
}

/// An invariant: what is off is noise of the ends of a run, which 1 % is ample for.
pub(super) fn littles_law(e: &Evidence<'_>) -> Verdict {
    let product = |(case, run): (&Case, &ssdyno_figures::RunResult)| {
        let latency = run.latency_ns.as_ref()?.all.mean / 1e9;
        Some(run.iops * latency / f64::from(case.threads) - 1.0)
    };
    let errors = e.measured.all().map(product).collect::<Option<Vec<f64>>>()?;
    let worst = errors.iter().map(|error| error.abs()).fold(0.0, f64::max);
    let text = format!("R X / N is at most {:.2} % off, {} runs", worst * 100.0, errors.len());
    (!errors.is_empty()).then_some(((worst < 0.01).into(), text))
}

pub(super) fn large_requests(e: &Evidence<'_>) -> Verdict {
    let one = |size: &u32, way| e.plan.large(*size, way)[0].clone();
    let sizes = &e.plan.sizes_kib;
    let rates = |way| each(sizes, |size| e.measured.megabytes(&one(size, way)));
    let answer = all(WAYS, |(_, way)| {
        let latencies = each(sizes, |size| e.latency(&one(size, way)))?;
        Some(rising(&rates(way)?)? & rising(&latencies)?)
    })?;
    let reads = rates(100)?;
    let text = format!(
        "reads of {} KiB: {:.1} MB/s, of {} KiB: {:.1} MB/s",
        sizes.first()?,
        reads.first()?.mean,
        sizes.last()?,
        reads.last()?.mean
    );
    Some((answer, text))
}

pub(super) fn mixed_lies_between(e: &Evidence<'_>) -> Verdict {
    let case = |percent| Case::dynamic(e.plan.mixed_threads, percent);
    let (read, write) = (e.kiops(&case(100))?, e.kiops(&case(0))?);
    let mixed: Vec<u32> =
        e.plan.read_percents.iter().copied().filter(|p| (1..100).contains(p)).collect();
    let rates = each(&mixed, |percent| e.kiops(&case(*percent)))?;
    // S0-41: a mixed load must lie between the pure ones within the slack. The pure loads must
    // differ as well, or every mix would lie between them.
    let between = |rate: &Mean| Some(no_less(read, *rate) & no_less(*rate, write));
    let answer = all(&rates, between)? & more(read, write);
    let told = mixed.iter().zip(&rates).map(|(p, rate)| format!("{p} % {}", rate.text(1)));
    let told = told.collect::<Vec<_>>().join(", ");
    Some((answer, format!("reads {:.1}, {told}, writes {:.1} kIOPS", read.mean, write.mean)))
}

pub(super) fn prefetch_pays_more(e: &Evidence<'_>, percent: u32) -> Verdict {
    let gain = |generation: &u32| {
        let [without, with] = e.plan.prefetched(*generation, percent);
        Some(e.kiops(&with)?.over(e.kiops(&without)?))
    };
    let gains = each(&e.plan.generations, gain)?;
    // S0-26 claims more gain on Gen3. The gain itself must not be negative: a loss that becomes
    // smaller would otherwise count as paying more.
    let pays_more = all(gains.windows(2), |two| Some(more(two[1], two[0])))?;
    let answer = pays_more & no_less(*gains.first()?, Mean::exact(1.0));
    let told =
        e.plan.generations.iter().zip(&gains).map(|(generation, gain)| {
            format!("Gen{generation} {:+.2} %", 100.0 * (gain.mean - 1.0))
        });
    Some((answer, told.collect::<Vec<_>>().join(", ")))
}
