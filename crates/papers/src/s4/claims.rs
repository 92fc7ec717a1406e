//! What the paper says in words, checked over several seeds.

use ssdyno_session::Failure;

use super::data::{Case, FILE_SYSTEMS, LOADS, Plan, QUICK, SUITES, one_after_another};
use super::figures::{Sweep, client_case, seconds, series_case, sweep, sweeps, worker_case};
use super::simulate::Measured;
use crate::answer::{Answer, more, no_less, rising, same};
use crate::claims::{Claims, Verdict};
use crate::mean::Mean;

/// How a claim is checked.
pub(super) type Check = fn(&Plan, &Measured) -> Verdict;

/// All of them.
pub(super) fn all() -> Result<Claims<Check>, Failure> {
    let text = include_str!("../../papers/s4/claims.toml");
    Claims::read("S4", ("papers/s4/claims.toml", text), CHECKS)
}

/// How the statements of the file are checked, in the order of a report.
const CHECKS: &[(&str, Check)] = &[
    ("file_systems_differ", file_systems_differ),
    ("spek_is_steady", spek_is_steady),
    ("iometer_swings", iometer_swings),
    ("iometer_is_slower_on_random_writes", |plan, m| {
        let at = |stack| m.iops(&series_case(plan, stack));
        let (spek, iometer) = (at("spek")?, at("iometer")?);
        Some((more(spek, iometer), both("SPEK", spek, "IoMeter", iometer, "IOPS")))
    }),
    ("random_write_bound", |_, m| {
        let through = m.iops(&one_after_another())?;
        let back = m.iops(&Case::new("seagate", "spek", "random-write", 16, 1))?;
        let off = (through.mean / 153.0 - 1.0).abs();
        let answer = no_more_off(off, 0.03) & more(back, Mean::exact(153.0));
        let [through, back] = [through, back].map(|iops| iops.text(1));
        Some((answer, format!("{through} and {back} IOPS, printed 240")))
    }),
    ("sequential_reads_pay_for_the_cache", |plan, m| {
        let size = *plan.figure5.sizes_kib.last()?;
        let (spek, iometer) = tools(m, "seagate", LOADS[0].1, size)?;
        Some((more(spek, iometer), both("SPEK", spek, "IoMeter", iometer, "MB/s")))
    }),
    ("small_sequential_writes_gain", small_sequential_writes_gain),
    ("random_reads_are_close", random_reads_are_close),
    ("hits_are_few", |plan, m| {
        let size = *plan.figure5.sizes_kib.first()?;
        let case = Case::new("seagate", "iometer", "random-read", size, 1);
        let hits = m.host(&case, |host| {
            host.cache.and_then(|cache| cache.hit_ratio).unwrap_or(f64::NAN) * 100.0
        })?;
        Some((no_less(Mean::exact(1.4), hits), format!("{} %", hits.text(3))))
    }),
    ("random_writes_differ", |_, m| {
        let (spek, iometer) = tools(m, "seagate", "random-write", 16)?;
        Some((!same(spek, iometer), both("SPEK", spek, "IoMeter", iometer, "MB/s")))
    }),
    ("off_by_600_percent", off_by_600_percent),
    ("spek_is_ahead_on_fast_storage", spek_is_ahead_on_fast_storage),
    ("two_spek_workers_saturate", |plan, m| {
        let iops = m.iops(&worker_case("figure7a", plan, "spek", 2))?;
        Some((no_less(iops, SATURATED), format!("{} IOPS", iops.text(0))))
    }),
    ("five_iometer_workers_are_needed", |plan, m| {
        let at = |n| m.iops(&worker_case("figure7a", plan, "iometer", n));
        let (two, four) = (at(2)?, at(4)?);
        let text = format!("two {}, four {} IOPS", two.text(0), four.text(0));
        Some((!no_less(four, SATURATED), text))
    }),
    ("iometer_needs_no_fewer_workers", |plan, m| {
        let (mut answer, mut worst) = (Answer::Yes, f64::INFINITY);
        for figure in ["figure7a", "figure7b"] {
            for n in &plan.figure7.workers {
                let at = |stack| m.iops(&worker_case(figure, plan, stack, *n));
                let (spek, iometer) = (at("spek")?, at("iometer")?);
                answer = answer & no_less(spek, iometer);
                worst = worst.min(spek.mean / iometer.mean);
            }
        }
        Some((answer, format!("least ratio {worst:.3}")))
    }),
    ("spek_switches_twice", |_, m| {
        let (mut answer, mut off, mut calls) = (Answer::Yes, 0.0f64, 0.0);
        for load in QUICK {
            let case = Case::new("delay-100us", "spek", load, 4, 1);
            let switches = m.switches(&case)?;
            answer = answer & same(switches, Mean::exact(2.0));
            off = off.max((switches.mean / 2.0 - 1.0).abs());
            calls += m.host(&case, |h| h.system_calls_per_request.unwrap_or(f64::NAN))?.mean;
        }
        let text = format!("at most {:.2} % off two, {calls} system calls", 100.0 * off);
        Some((answer & (calls == 0.0).into(), text))
    }),
    ("switches_explain_little", switches_explain_little),
    ("iscsi_rises_then_falls", |plan, m| rises_then_falls(plan, m, "assumed")),
    ("iscsi_falls_by_a_fifth_when_fitted", |plan, m| {
        let (shape, text) = rises_then_falls(plan, m, "fitted")?;
        let printed = [18.012, 29.007, 23.214];
        let mut ours = [Mean::exact(f64::NAN); 3];
        for (at, total) in printed.into_iter().enumerate() {
            let mean = m.megabytes(&client_case(plan, "fitted", at as u16 + 1))?;
            ours[at] = mean.over(Mean::exact(total));
        }
        let off = ours.map(|ratio| (ratio.mean - 1.0).abs());
        let saturated = ours[1..].iter().map(|ratio| Some(same(*ratio, Mean::exact(1.0))));
        let near = no_more_off(off[0], 0.15) & Answer::all(saturated)?;
        let [one, two, three] = off.map(|off| 100.0 * off);
        let text = format!("{text}; {one:.1}, {two:.1}, {three:.1} % off");
        Some((shape & near, text))
    }),
    ("iscsi_target_is_the_bottleneck", |plan, m| {
        let at = |n| {
            m.host(&client_case(plan, "assumed", n), |host| {
                100.0 * host.network.as_ref().map_or(f64::NAN, |net| net.target_cpu_share)
            })
        };
        let (two, three) = (at(2)?, at(3)?);
        let text = format!("{} and {} %", two.text(1), three.text(1));
        // "Near 100 %" is read as 100 % within the slack of 3 %. A share cannot exceed 100 %,
        // so a test for more would never hold.
        let near_all = no_less(three, Mean::exact(100.0));
        Some((more(two, Mean::exact(90.0)) & near_all, text))
    }),
    ("zones", zones),
];

fn both(a: &str, mean_a: Mean, b: &str, mean_b: Mean, unit: &str) -> String {
    format!("{a} {}, {b} {} {unit}", mean_a.text(2), mean_b.text(2))
}

/// What a device of 100 us does in a second.
const SATURATED: Mean = Mean { mean: 10_000.0, half: 0.0 };

/// A share by which something is off is no more than `limit`.
fn no_more_off(off: f64, limit: f64) -> Answer {
    no_less(Mean::exact(limit), Mean::exact(off))
}

/// MB/s of SPEK and IoMeter.
fn tools(m: &Measured, device: &str, load: &str, size: u32) -> Option<(Mean, Mean)> {
    let at = |stack| m.megabytes(&Case::new(device, stack, load, size, 1));
    Some((at("spek")?, at("iometer")?))
}

fn file_systems_differ(_: &Plan, m: &Measured) -> Verdict {
    let (mut answer, mut text) = (Answer::Yes, Vec::new());
    for (load, size) in SUITES {
        let mut all = Vec::new();
        for stack in FILE_SYSTEMS {
            all.push(m.megabytes(&Case::new("seagate", stack, load, size, 1))?);
        }
        // S4-24 says that results differ widely and not which file system is the fastest. The ratio
        // of the extremes therefore decides, with at least 2.
        all.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        let ratio = all.last()?.over(*all.first()?);
        answer = answer & no_less(ratio, Mean::exact(2.0));
        text.push(format!("{load} {:.1} times", ratio.mean));
    }
    Some((answer, text.join(", ")))
}

fn zones(plan: &Plan, m: &Measured) -> Verdict {
    let near = |ours: f64, printed: f64| no_more_off((ours / printed - 1.0).abs(), 0.05);
    let (mut answer, mut text) = (Answer::Yes, Vec::new());
    for case in sweeps(plan) {
        let mean = m.megabytes(&case)?.mean;
        let Sweep { outer, inner, period_seconds } = Sweep::of(&sweep(m, &case))?;
        // S4-27: the period is compared in bytes, 18 GB, and not in seconds. The seconds depend on
        // the rate, which is part of the claim already.
        let period = period_seconds? * mean / 1e3;
        answer = answer & near(outer, 55.0) & near(inner, 39.0) & near(period, 18.0);
        text.push(format!("{} {outer:.1} to {inner:.1} MB/s every {period:.1} GB", case.load));
    }
    Some((answer, text.join(", ")))
}

fn spek_is_steady(plan: &Plan, m: &Measured) -> Verdict {
    let case = series_case(plan, "spek");
    let mean = m.iops(&case)?.mean;
    // S4-25: steady is judged by the worst second. A standard deviation would hide one stop of a
    // second in a run of minutes.
    let off = seconds(m, &case).iter().map(|(_, v)| (v / mean - 1.0).abs()).fold(0.0, f64::max);
    let text = format!("at most {:.1} % off {mean:.1} IOPS", 100.0 * off);
    Some((no_more_off(off, 0.05), text))
}

fn iometer_swings(plan: &Plan, m: &Measured) -> Verdict {
    let points = seconds(m, &series_case(plan, "iometer"));
    if points.is_empty() {
        return None;
    }
    // Both extremes must occur: S4-25 has a curve that swings between 0 and 300. A steady 300 or a
    // single pause would not be this curve.
    let at_zero = points.iter().filter(|(_, v)| *v < 1.0).count();
    let high = points.iter().filter(|(_, v)| *v > 300.0).count();
    let text = format!("{at_zero} seconds at zero, {high} above 300, of {}", points.len());
    Some(((at_zero > 0 && high > 0).into(), text))
}

fn small_sequential_writes_gain(plan: &Plan, m: &Measured) -> Verdict {
    let mut ratios = Vec::new();
    for size in &plan.figure5.sizes_kib {
        let (spek, iometer) = tools(m, "seagate", "sequential-write", *size)?;
        ratios.push(iometer.over(spek));
    }
    let (first, last) = (*ratios.first()?, *ratios.last()?);
    let text: Vec<String> = ratios.iter().map(|ratio| format!("{:.2}", ratio.mean)).collect();
    // The claim is that the gain diminishes with the size (S4-29), so the reversed series must
    // rise. The last ratio must also be near 1.
    ratios.reverse();
    let diminishing = rising(&ratios)? & no_more_off((last.mean - 1.0).abs(), 0.15);
    let answer = diminishing & more(first, Mean::exact(1.0));
    Some((answer, format!("IoMeter / SPEK by size: {}", text.join(", "))))
}

fn random_reads_are_close(plan: &Plan, m: &Measured) -> Verdict {
    let (mut answer, mut off) = (Answer::Yes, 0.0f64);
    for size in &plan.figure5.sizes_kib {
        let (spek, iometer) = tools(m, "seagate", "random-read", *size)?;
        answer = answer & same(iometer, spek);
        off = off.max((iometer.mean / spek.mean - 1.0).abs());
    }
    Some((answer, format!("at most {:.2} % apart", 100.0 * off)))
}

fn off_by_600_percent(_: &Plan, m: &Measured) -> Verdict {
    let (mut answer, mut text) = (Answer::No, Vec::new());
    for (_, load) in LOADS {
        let (spek, iometer) = tools(m, "ibm", load, 16)?;
        // S4-33 prints a difference without its direction. The larger mean is divided by the
        // smaller one, so either tool may be ahead.
        let ratio = if spek.mean > iometer.mean { spek.over(iometer) } else { iometer.over(spek) };
        // "Up to 600 %" holds if one load reaches it. The answers are therefore joined by OR,
        // beginning with No.
        answer = answer | no_less(ratio, Mean::exact(6.0));
        text.push(format!("{load} {:.2}", ratio.mean));
    }
    Some((answer, text.join(", ")))
}

fn spek_is_ahead_on_fast_storage(plan: &Plan, m: &Measured) -> Verdict {
    let ratio = |figure| {
        let at = |stack| m.iops(&worker_case(figure, plan, stack, 1));
        let (spek, iometer) = (at("spek")?, at("iometer")?);
        Some(spek.over(iometer))
    };
    let (slow, fast) = (ratio("figure7a")?, ratio("figure7b")?);
    let text = format!("{:.3} times at 100 us, {:.3} times at 10 us", slow.mean, fast.mean);
    // A fixed overhead is a larger share of a shorter request, so the lead must grow from 100 us to
    // 10 us (S4-35).
    Some((more(slow, Mean::exact(1.0)) & more(fast, slow), text))
}

fn switches_explain_little(_: &Plan, m: &Measured) -> Verdict {
    let by = |stack: &str, causes: &'static [&'static str]| {
        let case = Case::new("delay-100us", stack, "quick-random-read", 4, 1);
        m.host(&case, move |host| {
            let causes = causes.iter().filter_map(|c| host.cpu_ns_per_request_by_cause.get(*c));
            causes.sum::<f64>() / 1e3
        })
    };
    let two = &["switch", "system_call"];
    let (iometer, spek) = (by("iometer", two)?, by("spek", two)?);
    // The half widths of a difference are added. Both tools use the same seeds, so their errors
    // need not be independent.
    let half = iometer.half + spek.half;
    let extra = Mean { mean: iometer.mean - spek.mean, half };
    let text = format!("{:.2} us; by hand 18.29, printed approximately 19", extra.mean);
    // S4-41: (4.85 - 2.01) x 4.27 + 14 x 0.440 = 18.29 us. The printed 19 is not exact, so the
    // comparison uses the sum.
    Some((same(extra, Mean::exact(18.29)), text))
}

fn rises_then_falls(plan: &Plan, m: &Measured, variant: &'static str) -> Verdict {
    let at = |n| m.megabytes(&client_case(plan, variant, n));
    let (one, two, three) = (at(1)?, at(2)?, at(3)?);
    let text = format!(
        "{}, {}, {} MB/s ({:+.1} % with the third); printed 18.012, 29.007, 23.214",
        one.text(2),
        two.text(2),
        three.text(2),
        100.0 * (three.mean / two.mean - 1.0)
    );
    // S4-46 asks for the shape of 18/29/23 MB/s: a rise and then a fall. The values themselves
    // depend on costs that the paper does not print.
    Some((more(two, one) & more(two, three), text))
}
