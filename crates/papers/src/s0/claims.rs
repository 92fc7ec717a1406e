//! What the paper says in words, checked over all seeds.

use ssdyno_driver_ring::ResponseMode;

use super::arithmetic::link_bounds;
use super::data::{Case, Plan, RESPONSES, WAYS};
use super::simulate::Measured;
use super::stall;
use crate::claims::{ClaimCheck, Claims, Verdict};
use crate::{Claim, Selector};

/// What a claim is checked against.
pub(super) struct Evidence<'a> {
    plan: &'a Plan,
    measured: &'a Measured,
}

type Check = fn(&Evidence<'_>) -> Verdict;

/// All of them.
pub(super) const CLAIMS: Claims<Check> = Claims { paper: "S0", checks: CHECKS };

const CHECKS: &[ClaimCheck<Check>] = &[
    ClaimCheck {
        name: "reads_are_faster_than_writes",
        text: "\"The maximum I/O throughput can be achieved when the user performs only read operations\": a user's write reads host memory, which takes more packets (S0-23).",
        about: &["figure5"],
        check: reads_are_faster,
    },
    ClaimCheck {
        name: "more_transactions_are_slower",
        text: "\"As the number of PCIe transactions needed ... increases, the total exchange rate decreases\": smaller blocks, same responses (S0-25).",
        about: &["figure5"],
        check: more_transactions_are_slower,
    },
    ClaimCheck {
        name: "one_engine_is_held_up",
        text: "One by one with one DMA engine is slower than the complete block, at every block size above 1 (S0-20).",
        about: &["figure5"],
        check: one_engine_is_held_up,
    },
    ClaimCheck {
        name: "a_second_engine_helps",
        text: "\"This situation can be avoided by using a separate DMA engine\": with it, one by one is within 3 % of the complete block or above it (S0-20).",
        about: &["figure5"],
        check: a_second_engine_helps,
    },
    ClaimCheck {
        name: "maximum_is_largest_block_complete",
        text: "\"The maximum I/O rate is achieved by maximizing the block size and by answering all commands as a single block\" (S0-43).",
        about: &["figure5"],
        check: maximum_is_largest_block,
    },
    ClaimCheck {
        name: "least_latency_is_block_of_one",
        text: "\"The lowest latency can be achieved with the smallest block size\": with as many threads as descriptors in a block (S0-43).",
        about: &["figure6"],
        check: least_latency,
    },
    ClaimCheck {
        name: "below_the_link",
        text: "No run carries more pages than the link can: 411 184 a second with 128 B packets (S0-48).",
        about: &["figure5", "figure6", "figure7"],
        check: below_the_link,
    },
    ClaimCheck {
        name: "more_threads_do_not_help",
        text: "\"Any increase in the number of threads ... does not further improve throughput\": from 2 B threads on it stays within 2 % (S0-37).",
        about: &["figure6"],
        check: more_threads_do_not_help,
    },
    ClaimCheck {
        name: "larger_blocks_raise_throughput_and_latency",
        text: "\"Although the throughput is improving significantly for larger descriptors' block sizes, the latency also increases\" (S0-37).",
        about: &["figure6"],
        check: larger_blocks_raise_both,
    },
    ClaimCheck {
        name: "more_threads_than_a_block_suffice",
        text: "\"This can only be achieved if the number of threads ... is greater than that particular size\": more than B threads give full throughput. With one block outstanding a full next block is pending only with 2 B (S0-50).",
        about: &["figure6"],
        check: more_threads_than_a_block,
    },
    ClaimCheck {
        name: "twice_the_block_suffices",
        text: "2 B threads give full throughput, within 2 % (S0-50).",
        about: &["figure6"],
        check: twice_the_block,
    },
    ClaimCheck {
        name: "too_few_threads_are_found_out",
        text: "No points where there are fewer threads than descriptors in a block: the driver says that it is stalled, and nothing hangs (S0-36).",
        about: &["figure6"],
        check: |evidence| stall::check(evidence.plan),
    },
    ClaimCheck {
        name: "dynamic_reaches_the_maximum",
        text: "\"The maximum achievable throughput is achieved for all cases\": with the most threads, dynamic blocks are within 1 % of the best static ones (S0-39).",
        about: &["figure6", "figure7"],
        check: dynamic_reaches_the_maximum,
    },
    ClaimCheck {
        name: "dynamic_is_never_behind",
        text: "At every number of threads dynamic blocks carry as much as the best static ones, within 1 %.",
        about: &["figure6", "figure7"],
        check: dynamic_is_never_behind,
    },
    ClaimCheck {
        name: "dynamic_is_faster_under_light_load",
        text: "\"Minimum latency is observed when light workloads are applied\": one thread is as fast as with blocks of one, and no static block that runs at all is faster by more than 1 % (S0-39).",
        about: &["figure6", "figure7"],
        check: dynamic_is_fast_under_light_load,
    },
    ClaimCheck {
        name: "ssd_answers_in_tens_of_microseconds",
        text: "A solid state drive's latency is \"tens of microseconds\": one thread waits between 10 and 100 us (S0-45).",
        about: &["figure7"],
        check: ssd_latency,
    },
    ClaimCheck {
        name: "disk_answers_in_tens_of_milliseconds",
        text: "A hard disk's is \"tens of milliseconds\" (S0-45).",
        about: &["figure7"],
        check: |_| None,
    },
    ClaimCheck {
        name: "latency_rises_exponentially",
        text: "\"As the offered load exceeds the system's storage capability, the latency, as expected, increases exponentially\": from the threads of saturation on, each further thread adds more than the one before (S0-49).",
        about: &["figure7"],
        check: latency_rises_exponentially,
    },
    ClaimCheck {
        name: "littles_law",
        text: "Threads are throughput times latency, within 1 %, in every run: a closed loop (S0-49).",
        about: &["figure5", "figure6", "figure7"],
        check: littles_law,
    },
    ClaimCheck {
        name: "large_requests_raise_throughput_and_latency",
        text: "\"When a single-threaded user-space application uses data requests of large block sizes, a better throughput can be achieved, but at the same time the latency also increases\" (S0-40).",
        about: &["figure8"],
        check: large_requests,
    },
    ClaimCheck {
        name: "mixed_lies_between",
        text: "\"Mixed workloads will achieve a performance between the all-read and the all-write\" (S0-41).",
        about: &["mixed"],
        check: mixed_lies_between,
    },
    ClaimCheck {
        name: "prefetch_pays_more_on_gen3",
        text: "Prefetch \"can further improve the interface's efficiency, especially when Gen-3 PCIe technology is used\" (S0-26): writes, whose transfers the link limits.",
        about: &["prefetch"],
        check: |evidence| prefetch_pays_more(evidence, 0),
    },
    ClaimCheck {
        name: "prefetch_pays_more_on_gen3_for_reads",
        text: "The same for reads; the card's processor limits those on both links.",
        about: &["prefetch"],
        check: |evidence| prefetch_pays_more(evidence, 100),
    },
];

/// Figures whose points the claims need that are named as such.
pub(super) fn needs(selector: &Selector) -> impl Iterator<Item = &'static str> {
    CLAIMS.named(selector).flat_map(|check| check.about.iter().copied())
}

/// The selected claims, and those beside the selected figures.
pub(super) fn check(selector: &Selector, plan: &Plan, measured: &Measured) -> Vec<Claim> {
    let evidence = Evidence { plan, measured };
    let claims = CLAIMS.selected(selector);
    let unknown = |check: &ClaimCheck<Check>| match check.name.starts_with("disk_") {
        true => "needs a hard disk, which waits for the disk model",
        false => "not run",
    };
    claims.map(|check| CLAIMS.report(check, (check.check)(&evidence), unknown(check))).collect()
}

/// `Some(true)` if `test` holds for all; `None` if it cannot be said for one.
fn all<T>(items: impl IntoIterator<Item = T>, test: impl Fn(T) -> Option<bool>) -> Option<bool> {
    items.into_iter().try_fold(true, |so_far, item| Some(test(item)? && so_far))
}

impl Evidence<'_> {
    fn kiops(&self, case: &Case) -> Option<f64> {
        Some(self.measured.kiops(case)?.mean)
    }

    fn latency(&self, case: &Case) -> Option<f64> {
        Some(self.measured.latency_us(case)?.mean)
    }

    fn fed(&self, size: u32, percent: u32, response: usize) -> Option<f64> {
        self.kiops(&self.plan.fed(size, percent, RESPONSES[response]))
    }

    /// Block size and direction of each point of figure 5.
    fn sizes(&self) -> Vec<(u32, u32)> {
        let sizes = self.plan.block_sizes.iter();
        sizes.flat_map(|size| WAYS.map(|(_, percent)| (*size, percent))).collect()
    }

    /// Static block size and direction.
    fn blocks(&self) -> Vec<(u32, u32)> {
        let sizes = self.plan.static_blocks.iter();
        sizes.flat_map(|size| WAYS.map(|(_, percent)| (*size, percent))).collect()
    }

    /// Full throughput of static blocks of `size`.
    fn saturated(&self, size: u32, percent: u32) -> Option<f64> {
        self.kiops(&Case::fixed(size, *self.plan.threads.last()?, percent))
    }

    /// The best static block for so many threads: throughput and size.
    fn best_static(&self, threads: u32, percent: u32) -> Option<(f64, u32)> {
        let sizes = self.plan.static_blocks.iter().filter(|size| **size <= threads);
        let rates =
            sizes.map(|size| Some((self.kiops(&Case::fixed(*size, threads, percent))?, *size)));
        rates.collect::<Option<Vec<_>>>()?.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))
    }
}

fn reads_are_faster(e: &Evidence<'_>) -> Verdict {
    let most = *e.plan.block_sizes.last()?;
    let holds = all(0..RESPONSES.len(), |response| {
        all(&e.plan.block_sizes, |b| Some(e.fed(*b, 100, response)? > e.fed(*b, 0, response)?))
    })?;
    let (read, write) = (e.fed(most, 100, 0)?, e.fed(most, 0, 0)?);
    Some((holds, format!("blocks of {most}: {read:.1} read, {write:.1} kIOPS written")))
}

fn more_transactions_are_slower(e: &Evidence<'_>) -> Verdict {
    let rises = |percent, response| {
        let rates: Option<Vec<f64>> =
            e.plan.block_sizes.iter().map(|b| e.fed(*b, percent, response)).collect();
        Some(rates?.windows(2).all(|two| two[0] < two[1]))
    };
    let holds = all(WAYS, |(_, percent)| all(0..RESPONSES.len(), |r| rises(percent, r)))?;
    let (first, last) = (*e.plan.block_sizes.first()?, *e.plan.block_sizes.last()?);
    let (least, most) = (e.fed(first, 100, 0)?, e.fed(last, 100, 0)?);
    Some((holds, format!("reads: {least:.1} kIOPS with blocks of {first}, {most:.1} with {last}")))
}

/// Least and most of a response's rate over that of the complete block, over sizes above 1 and both
/// directions, and where they are.
fn over_complete(e: &Evidence<'_>, response: usize) -> Option<([f64; 2], String)> {
    let sizes = e.sizes().into_iter().filter(|(size, _)| *size > 1);
    let ratio = |(b, way)| Some((e.fed(b, way, response)? / e.fed(b, way, 0)?, b, way));
    let mut all = sizes.map(ratio).collect::<Option<Vec<(f64, u32, u32)>>>()?;
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let shown = |(ratio, block, percent): &(f64, u32, u32)| {
        let way = WAYS.iter().find(|(_, reads)| reads == percent).map_or("", |(way, _)| way);
        format!("{ratio:.3} ({way}, blocks of {block})")
    };
    let (least, most) = (all.first()?, all.last()?);
    let text = format!("{} to {} of the complete block", shown(least), shown(most));
    Some(([least.0, most.0], text))
}

fn one_engine_is_held_up(e: &Evidence<'_>) -> Verdict {
    let ([_, most], mut text) = over_complete(e, 1)?;
    if most >= 1.0 {
        text += "; in short blocks the interrupt of the first return brings the host to the last one, too";
    }
    Some((most < 1.0, text))
}

fn a_second_engine_helps(e: &Evidence<'_>) -> Verdict {
    let ([least, _], text) = over_complete(e, 2)?;
    Some((least > 0.97, text))
}

fn maximum_is_largest_block(e: &Evidence<'_>) -> Verdict {
    let largest = *e.plan.block_sizes.last()?;
    let mut text = Vec::new();
    let holds = WAYS.into_iter().try_fold(true, |so_far, (way, percent)| {
        let candidates =
            e.plan.block_sizes.iter().flat_map(|b| (0..RESPONSES.len()).map(|r| (*b, r)));
        let rates = candidates.map(|(b, r)| Some((e.fed(b, percent, r)?, b, r)));
        let rates = rates.collect::<Option<Vec<_>>>()?;
        let (rate, block, response) = rates.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        text.push(format!("{way}: {rate:.1} kIOPS, blocks of {block}, {}", RESPONSES[response].0));
        Some(so_far && block == largest && RESPONSES[response].1 == ResponseMode::Block)
    })?;
    let mut text = text.join("; ");
    if !holds {
        text +=
            "; a second engine holds nothing up, and the first returns wake the host for the last";
    }
    Some((holds, text))
}

fn least_latency(e: &Evidence<'_>) -> Verdict {
    let latencies = |percent| {
        let sizes = e.plan.static_blocks.iter().filter(|b| e.plan.threads.contains(b));
        sizes.map(|b| e.latency(&Case::fixed(*b, *b, percent))).collect::<Option<Vec<f64>>>()
    };
    let (reads, writes) = (latencies(100)?, latencies(0)?);
    let rises = |all: &[f64]| all.windows(2).all(|two| two[0] < two[1]);
    let (one, most) = (reads.first()?, reads.last()?);
    Some((rises(&reads) && rises(&writes), format!("reads: {one:.1} us up to {most:.1} us")))
}

fn below_the_link(e: &Evidence<'_>) -> Verdict {
    let bound = link_bounds().ok()?.1;
    let gen2 = e.measured.all().filter(|(case, _)| case.generation == 2);
    let pages = gen2.map(|(case, run)| run.iops * f64::from(case.size_kib) / 4.0);
    let most = pages.fold(0.0, f64::max);
    Some((most > 0.0 && most < bound, format!("{most:.0} at most, of {bound:.0}")))
}

fn more_threads_do_not_help(e: &Evidence<'_>) -> Verdict {
    let mut worst: f64 = 0.0;
    for (size, percent) in e.blocks() {
        let full = e.saturated(size, percent)?;
        for threads in e.plan.threads.iter().filter(|n| **n >= 2 * size) {
            let rate = e.kiops(&Case::fixed(size, *threads, percent))?;
            worst = worst.max((rate / full - 1.0).abs());
        }
    }
    Some((worst < 0.02, format!("{:.2} % off at most", worst * 100.0)))
}

fn larger_blocks_raise_both(e: &Evidence<'_>) -> Verdict {
    let most = *e.plan.threads.last()?;
    let rates = |way| -> Option<Vec<f64>> {
        let sizes = e.plan.static_blocks.iter();
        sizes.map(|b| e.kiops(&Case::fixed(*b, most, way))).collect()
    };
    // Latency where the block is just full: with many threads they wait outside it.
    let latencies = |way| -> Option<Vec<f64>> {
        let sizes = e.plan.static_blocks.iter();
        sizes.map(|b| e.latency(&Case::fixed(*b, *b, way))).collect()
    };
    let rises = |all: Vec<f64>| all.windows(2).all(|two| two[0] < two[1]);
    let holds = all(WAYS, |(_, way)| Some(rises(rates(way)?) && rises(latencies(way)?)))?;
    let (rate, latency) = (rates(100)?, latencies(100)?);
    let last = rate.len() - 1;
    let text = format!(
        "reads: {:.1} to {:.1} kIOPS saturated, {:.1} to {:.1} us with as many threads as fill a block",
        rate[0], rate[last], latency[0], latency[last]
    );
    Some((holds, text))
}

/// Throughput with the next larger number of threads than B, as a share of the full one.
fn more_threads_than_a_block(e: &Evidence<'_>) -> Verdict {
    let (mut holds, mut text) = (true, Vec::new());
    for size in e.plan.static_blocks.iter().copied().filter(|size| *size > 1) {
        let between = |n: &&u32| **n > size && **n < 2 * size;
        let Some(threads) = e.plan.threads.iter().find(between) else { continue };
        let share = e.kiops(&Case::fixed(size, *threads, 100))? / e.saturated(size, 100)?;
        holds &= share > 0.98;
        text.push(format!("B = {size}, N = {threads}: {:.1} %", share * 100.0));
    }
    (!text.is_empty()).then(|| (holds, format!("of the full throughput, {}", text.join("; "))))
}

fn twice_the_block(e: &Evidence<'_>) -> Verdict {
    let (mut holds, mut text) = (true, Vec::new());
    for size in e.plan.static_blocks.iter().copied() {
        if !e.plan.threads.contains(&(2 * size)) {
            continue;
        }
        let share = e.kiops(&Case::fixed(size, 2 * size, 100))? / e.saturated(size, 100)?;
        holds &= share > 0.98;
        text.push(format!("B = {size}: {:.1} %", share * 100.0));
    }
    Some((holds, format!("of the full throughput, {}", text.join("; "))))
}

fn dynamic_reaches_the_maximum(e: &Evidence<'_>) -> Verdict {
    let most = *e.plan.threads.last()?;
    let mut text = Vec::new();
    let holds = WAYS.into_iter().try_fold(true, |so_far, (way, percent)| {
        let ours = e.kiops(&Case::dynamic(most, percent))?;
        let (best, size) = e.best_static(most, percent)?;
        text.push(format!("{way}: {ours:.1} kIOPS, static blocks of {size} {best:.1}"));
        Some(so_far && ours > 0.99 * best)
    })?;
    Some((holds, text.join("; ")))
}

fn dynamic_is_never_behind(e: &Evidence<'_>) -> Verdict {
    let mut behind = Vec::new();
    for threads in e.plan.threads.iter().copied() {
        let ours = e.kiops(&Case::dynamic(threads, 100))?;
        let (best, size) = e.best_static(threads, 100)?;
        if ours < 0.99 * best {
            behind
                .push(format!("N = {threads}: {ours:.1}, static blocks of {size} {best:.1} kIOPS"));
        }
    }
    let why = "; an idle card gets the first descriptor alone, which splits the threads in two";
    let text = if behind.is_empty() { "nowhere behind".into() } else { behind.join("; ") + why };
    Some((behind.is_empty(), text))
}

fn dynamic_is_fast_under_light_load(e: &Evidence<'_>) -> Verdict {
    let ours = e.latency(&Case::dynamic(1, 100))?;
    let one = e.latency(&Case::fixed(1, 1, 100))?;
    Some((ours < 1.01 * one, format!("one thread: {ours:.2} us, static blocks of one {one:.2} us")))
}

fn ssd_latency(e: &Evidence<'_>) -> Verdict {
    let latency = |percent| e.latency(&Case::dynamic(1, percent));
    let (read, write) = (latency(100)?, latency(0)?);
    let tens = |us: &f64| (10.0..100.0).contains(us);
    Some((tens(&read) && tens(&write), format!("read {read:.1} us, write {write:.1} us")))
}

fn latency_rises_exponentially(e: &Evidence<'_>) -> Verdict {
    let largest = *e.plan.static_blocks.last()?;
    let saturated: Vec<u32> =
        e.plan.threads.iter().copied().filter(|n| *n >= 2 * largest).collect();
    let latency = |n: &u32| e.latency(&Case::dynamic(*n, 100));
    let slopes: Option<Vec<f64>> = saturated
        .windows(2)
        .map(|two| Some((latency(&two[1])? - latency(&two[0])?) / f64::from(two[1] - two[0])))
        .collect();
    let slopes = slopes.filter(|slopes| slopes.len() > 1)?;
    let holds = slopes.windows(2).all(|two| two[1] > 1.02 * two[0]);
    let text: Vec<String> = slopes.iter().map(|slope| format!("{slope:.3}")).collect();
    Some((holds, format!("{} us for each further thread: a line, N / X", text.join(", "))))
}

fn littles_law(e: &Evidence<'_>) -> Verdict {
    let product = |(case, run): (&Case, &ssdyno_result::RunResult)| {
        let latency = run.latency_ns.as_ref()?.all.mean / 1e9;
        Some(run.iops * latency / f64::from(case.threads) - 1.0)
    };
    let errors = e.measured.all().map(product).collect::<Option<Vec<f64>>>()?;
    let worst = errors.iter().map(|error| error.abs()).fold(0.0, f64::max);
    let text = format!("R X / N is {:.2} % off at most, {} runs", worst * 100.0, errors.len());
    (!errors.is_empty()).then_some((worst < 0.01, text))
}

fn large_requests(e: &Evidence<'_>) -> Verdict {
    let rises = |all: Option<Vec<f64>>| Some(all?.windows(2).all(|two| two[0] < two[1]));
    let one = |size: &u32, way| e.plan.large(*size, way)[0].clone();
    let sizes = &e.plan.sizes_kib;
    let holds = all(WAYS, |(_, way)| {
        let rates = sizes.iter().map(|s| Some(e.measured.megabytes(&one(s, way))?.mean)).collect();
        let latencies = sizes.iter().map(|s| e.latency(&one(s, way))).collect();
        Some(rises(rates)? && rises(latencies)?)
    })?;
    let (small, large) = (sizes.first()?, sizes.last()?);
    let rate = |size| Some(e.measured.megabytes(&one(size, 100))?.mean);
    Some((
        holds,
        format!(
            "reads of {small} KiB: {:.1} MB/s, of {large} KiB: {:.1} MB/s",
            rate(small)?,
            rate(large)?
        ),
    ))
}

fn mixed_lies_between(e: &Evidence<'_>) -> Verdict {
    let case = |percent| Case::dynamic(e.plan.mixed_threads, percent);
    let (read, write) = (e.kiops(&case(100))?, e.kiops(&case(0))?);
    let mixed: Vec<u32> =
        e.plan.read_percents.iter().copied().filter(|p| (1..100).contains(p)).collect();
    let holds = all(&mixed, |percent| {
        let rate = e.measured.kiops(&case(*percent))?;
        Some(rate.mean + rate.half < read && rate.mean - rate.half > write)
    })?;
    let rates: Option<Vec<String>> = mixed
        .iter()
        .map(|p| Some(format!("{p} % {}", e.measured.kiops(&case(*p))?.text(1))))
        .collect();
    Some((holds, format!("reads {read:.1}, {}, writes {write:.1} kIOPS", rates?.join(", "))))
}

fn prefetch_pays_more(e: &Evidence<'_>, percent: u32) -> Verdict {
    let gain = |generation: &u32| {
        let [without, with] = e.plan.prefetched(*generation, percent);
        Some(e.kiops(&with)? / e.kiops(&without)? - 1.0)
    };
    let gains: Vec<f64> = e.plan.generations.iter().map(gain).collect::<Option<_>>()?;
    let holds = gains.first()? > &0.0 && gains.windows(2).all(|two| two[0] < two[1]);
    let each: Vec<String> = e
        .plan
        .generations
        .iter()
        .zip(&gains)
        .map(|(generation, gain)| format!("Gen{generation} {:+.2} %", gain * 100.0))
        .collect();
    Some((holds, each.join(", ")))
}
