//! Which block a random request goes to (fio: `random_distribution`).

use ssdyno_engine::{Rng, Scatter};

use super::values;
use crate::generator::zipf::Zipf;
use crate::hot::HotPart;
use crate::written_places;

/// Most zones of a distribution, as in fio.
const ZONES_MAX: usize = 256;
/// Most blocks of a sequence, as in fio.
const SEQUENCE_MAX: usize = 64;

/// A part of the range and the share of the requests that go to it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Zone {
    /// Share of the requests, of the sum of all.
    pub(super) weight: f64,
    /// Length in percent of the range, or in bytes.
    pub(super) length: f64,
}

/// How a block is chosen.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) enum Distribution {
    /// All alike.
    #[default]
    Uniform,
    /// By rank, with this exponent.
    Zipf(f64),
    /// Self-similar: a share 1 - h of the requests goes to a share h of the blocks.
    Pareto(f64),
    /// The mean of twelve uniform numbers, and one more of this width in percent of the range.
    Normal(f64),
    /// By part, in percent of the range.
    Zoned(Vec<Zone>),
    /// By part, in bytes.
    ZonedBytes(Vec<Zone>),
    /// These blocks, repeatedly; or, if the flag is set, these blocks of each group with as many
    /// blocks as the list, one group after the other.
    Sequence(Vec<u64>, bool),
}

impl Distribution {
    /// This number of places of a range of `range_bytes`, by how likely each is; `None` of a sequence.
    pub(super) fn classes(&self, places: u64, range_bytes: f64) -> Option<Vec<HotPart>> {
        Some(match self {
            Distribution::Uniform => written_places::uniform(),
            Distribution::Zipf(theta) => written_places::zipf(places, *theta),
            Distribution::Pareto(h) => written_places::self_similar(places, *h),
            // The variance of the mean of twelve uniform numbers, and of the further one.
            Distribution::Normal(width) => {
                written_places::normal((1.0 / 12.0 + (width / 100.0).powi(2)) / 12.0)
            }
            Distribution::Zoned(zones) => in_zones(zones, 100.0),
            Distribution::ZonedBytes(zones) => in_zones(zones, range_bytes),
            Distribution::Sequence(..) => return None,
        })
    }
}

/// The classes of `zones`, whose lengths are parts of `whole`.
pub(super) fn in_zones(zones: &[Zone], whole: f64) -> Vec<HotPart> {
    let all: f64 = zones.iter().map(|zone| zone.weight).sum();
    let used = zones.iter().filter(|zone| zone.weight > 0.0 && zone.length > 0.0);
    used.map(|zone| HotPart { space: zone.length / whole, access: zone.weight / all }).collect()
}

/// Reads the option for reads, writes and trims. `Err` says what to write instead.
pub(super) fn parse(text: &str, strides: bool) -> Result<[Distribution; 3], (String, String)> {
    let wrong = |what: String, help: &str| Err((what, help.to_owned()));
    let (name, rest) = text.split_once([':', '=']).unwrap_or((text, ""));
    let number = || rest.parse::<f64>().ok().filter(|n| n.is_finite());
    let same = |one: Distribution| Ok([one.clone(), one.clone(), one]);
    // The centre is rejected and not ignored: a user who sets it expects hot blocks at a known
    // place. Scattered blocks would measure another locality.
    if matches!(name, "zipf" | "pareto" | "normal" | "gauss") && rest.contains(':') {
        let what = "the centre of a distribution is not supported: fio scatters the blocks anyway";
        return wrong(what.to_owned(), "leave out what follows the second colon");
    }
    match (name, number()) {
        ("random", None) if rest.is_empty() => same(Distribution::Uniform),
        ("zipf", Some(theta)) if theta > 0.0 && theta <= 10.0 => same(Distribution::Zipf(theta)),
        ("zipf", _) => wrong(
            "zipf needs an exponent greater than 0 and at most 10".into(),
            "use the form zipf:1.2",
        ),
        ("pareto", Some(h)) if h > 0.0 && h < 1.0 => same(Distribution::Pareto(h)),
        ("pareto", _) => {
            wrong("pareto needs a power between 0 and 1".into(), "use the form pareto:0.2")
        }
        ("normal" | "gauss", Some(width)) if (0.0..=100.0).contains(&width) => {
            same(Distribution::Normal(width))
        }
        ("normal" | "gauss", _) => {
            wrong("normal needs a deviation of 0 to 100".into(), "use the form normal:20")
        }
        ("sequence", _) => match sequence(rest) {
            Some(blocks) => same(Distribution::Sequence(blocks, strides)),
            None => wrong(
                format!("`{rest}` is not a list of 1 to {SEQUENCE_MAX} blocks"),
                "use the form sequence:2,0,1",
            ),
        },
        ("zoned" | "zoned_abs", _) => {
            let in_bytes = name == "zoned_abs";
            let mut all = Vec::new();
            for part in rest.split(',') {
                let zones = zones(part, in_bytes)?;
                all.push(match in_bytes {
                    true => Distribution::ZonedBytes(zones),
                    false => Distribution::Zoned(zones),
                });
            }
            let of = |direction: usize| all[direction.min(all.len() - 1)].clone();
            Ok([of(0), of(1), of(2)])
        }
        _ => wrong(
            format!("fio's distribution `{name}` is not supported"),
            "use random, zipf:1.2, pareto:0.2, normal:20, zoned:60/10:40/90, zoned_abs or sequence",
        ),
    }
}

fn sequence(text: &str) -> Option<Vec<u64>> {
    let blocks: Option<Vec<u64>> = text.split(',').map(|n| n.trim().parse().ok()).collect();
    blocks.filter(|blocks| blocks.len() <= SEQUENCE_MAX)
}

/// `60/10:30/20:10/`: shares of the requests and lengths; lengths that are left out have what is
/// left, in equal parts.
fn zones(text: &str, in_bytes: bool) -> Result<Vec<Zone>, (String, String)> {
    let wrong = |what: String| {
        let help = if in_bytes {
            "use the form zoned_abs:60/20g:40/100g"
        } else {
            "use the form zoned:60/10:40/90"
        };
        Err((what, help.to_owned()))
    };
    let (mut zones, mut open) = (Vec::new(), Vec::new());
    for part in text.split(':') {
        let (weight, length) = part.split_once('/').unwrap_or((part, ""));
        let weight = weight.trim().parse::<f64>().ok().filter(|w| (0.0..=100.0).contains(w));
        let length = match length.trim() {
            "" if !in_bytes => {
                open.push(zones.len());
                Some(0.0)
            }
            length if in_bytes => values::bytes(length).map(|bytes| bytes as f64),
            length => length.parse().ok().filter(|percent| (0.0..=100.0).contains(percent)),
        };
        let (Some(weight), Some(length)) = (weight, length) else {
            return wrong(format!("`{part}` is not a share of the requests and a length"));
        };
        zones.push(Zone { weight, length });
    }
    if zones.len() > ZONES_MAX {
        return wrong(format!("{} zones; the limit is {ZONES_MAX}", zones.len()));
    }
    let requests: f64 = zones.iter().map(|zone| zone.weight).sum();
    // The tolerance allows for decimal fractions such as 33.3 + 33.3 + 33.4, whose sum as binary
    // numbers can exceed 100 by a rounding error.
    if requests <= 0.0 || requests > 100.001 {
        return wrong(format!("the shares of the requests sum to {requests} %"));
    }
    let given: f64 = zones.iter().map(|zone| zone.length).sum();
    if !in_bytes && given > 100.001 {
        return wrong(format!("the zones are {given} % of the range"));
    }
    for at in &open {
        zones[*at].length = (100.0 - given) / open.len() as f64;
    }
    Ok(zones)
}

/// A distribution over the blocks of a target.
#[derive(Clone, Debug)]
pub(super) enum Picker {
    Uniform {
        blocks: u64,
    },
    Zipf {
        zipf: Zipf,
        scatter: Scatter,
    },
    Pareto {
        blocks: u64,
        power: f64,
        scatter: Scatter,
    },
    Normal {
        blocks: u64,
        width: u64,
        scatter: Scatter,
    },
    /// First block, blocks, and the upper end of the share of the requests, of 1.
    Zones(Vec<(u64, u64, f64)>),
    Sequence {
        list: Vec<u64>,
        strides: bool,
        blocks: u64,
        drawn: u64,
    },
}

impl Picker {
    /// Over `blocks` (1 or more) of `block_bytes`, scattered by `rng`. `Err` says what does not fit.
    pub(super) fn new(
        how: &Distribution,
        blocks: u64,
        block_bytes: u64,
        rng: &mut Rng,
    ) -> Result<Picker, String> {
        Ok(match how {
            Distribution::Uniform => Picker::Uniform { blocks },
            Distribution::Zipf(theta) => {
                Picker::Zipf { zipf: Zipf::new(blocks, *theta), scatter: Scatter::new(blocks, rng) }
            }
            Distribution::Pareto(h) => {
                // fio's form: with this power, a share h of the blocks receives a share 1 - h of
                // the requests, such as 20 % of the blocks for 80 % of the requests with
                // pareto:0.2.
                let power = h.ln() / (1.0 - h).ln();
                Picker::Pareto { blocks, power, scatter: Scatter::new(blocks, rng) }
            }
            Distribution::Normal(width) => {
                let width = ((blocks as f64 * width / 100.0).ceil() as u64).min(blocks / 2);
                Picker::Normal { blocks, width, scatter: Scatter::new(blocks, rng) }
            }
            Distribution::Zoned(zones) => {
                let scale = blocks as f64 / 100.0;
                Picker::Zones(ends(zones, scale, blocks)?)
            }
            Distribution::ZonedBytes(zones) => {
                Picker::Zones(ends(zones, 1.0 / block_bytes as f64, blocks)?)
            }
            Distribution::Sequence(list, strides) => {
                if let Some(beyond) = list.iter().find(|block| **block >= blocks) {
                    return Err(format!("block {beyond} of the sequence lies beyond the range"));
                }
                let list = list.clone();
                Picker::Sequence { list, strides: *strides, blocks, drawn: 0 }
            }
        })
    }

    /// The next block; `None` at the end of strides.
    pub(super) fn draw(&mut self, rng: &mut Rng) -> Option<u64> {
        Some(match self {
            Picker::Uniform { blocks } => rng.below(*blocks),
            Picker::Zipf { zipf, scatter } => scatter.map(zipf.draw(rng)),
            Picker::Pareto { blocks, power, scatter } => {
                scatter.map(((*blocks - 1) as f64 * rng.unit().powf(*power)) as u64)
            }
            Picker::Normal { blocks, width, scatter } => {
                // The sum of 12 uniform numbers has a variance of exactly 1 in units of their
                // range, which approximates a normal distribution. fio draws it in the same way.
                let sum: u64 = (0..12).map(|_| rng.below(*blocks)).sum();
                let shifted = sum.div_ceil(12) + rng.below((*width).max(1));
                let at = shifted.saturating_sub(*width / 2).min(*blocks - 1);
                scatter.map(at)
            }
            Picker::Zones(zones) => {
                let at = rng.unit();
                let zone = zones.iter().find(|(.., upto)| at < *upto).or(zones.last())?;
                zone.0 + rng.below(zone.1)
            }
            Picker::Sequence { list, strides, blocks, drawn } => {
                let length = list.len() as u64;
                // A stride repeats the pattern on the next group of blocks and ends after the last
                // group. Without strides the pattern stays on the same blocks and never ends.
                let group = if *strides { *drawn / length * length } else { 0 };
                let block = group + list[(*drawn % length) as usize];
                *drawn += 1;
                return (block < *blocks).then_some(block);
            }
        })
    }

    /// Begins a sequence again; all other distributions have no position.
    pub(super) fn restart(&mut self) {
        if let Picker::Sequence { drawn, .. } = self {
            *drawn = 0;
        }
    }
}

/// The starts and lengths of zones in blocks; zones without requests are omitted.
fn ends(zones: &[Zone], scale: f64, blocks: u64) -> Result<Vec<(u64, u64, f64)>, String> {
    let sum: f64 = zones.iter().map(|zone| zone.weight).sum();
    let (mut first, mut upto, mut all) = (0.0, 0.0, Vec::new());
    for zone in zones {
        let end: f64 = first + zone.length * scale;
        upto += zone.weight / sum;
        // Both ends are rounded from the running sum and not each length by itself. The zones then
        // neither overlap nor leave a block out.
        let (from, to) = (first.floor() as u64, end.floor() as u64);
        first = end;
        if zone.weight == 0.0 {
            continue;
        }
        if to > blocks {
            return Err("the zones are longer than the range".to_owned());
        }
        if to <= from {
            return Err(format!("a zone with {} % of the requests has no block", zone.weight));
        }
        all.push((from, to - from, upto));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WrittenPlaces;

    fn picker(text: &str, blocks: u64) -> Picker {
        let [reads, ..] = parse(text, false).unwrap();
        Picker::new(&reads, blocks, 4096, &mut Rng::new(5, "scatter")).unwrap()
    }

    /// Share of `draws` that `wanted` counts.
    fn share(text: &str, blocks: u64, wanted: impl Fn(u64) -> bool) -> f64 {
        let (mut picker, mut rng) = (picker(text, blocks), Rng::new(3, "draws"));
        let draws = 100_000;
        let hits = (0..draws).filter_map(|_| picker.draw(&mut rng)).filter(|block| {
            assert!(*block < blocks);
            wanted(*block)
        });
        hits.count() as f64 / f64::from(draws)
    }

    #[test]
    fn zones_have_their_shares() {
        // JESD219: half of the requests to the first 5 %, 30 % to the next 15 %.
        let text = "zoned:50/5:30/15:20/80";
        assert!((share(text, 10_000, |b| b < 500) - 0.5).abs() < 0.01);
        assert!((share(text, 10_000, |b| (500..2_000).contains(&b)) - 0.3).abs() < 0.01);
        assert_eq!(parse("zoned:50/5:30/15:20/", false), parse(text, false));
        let text = "zoned_abs:60/400k:40/4m";
        assert!((share(text, 10_000, |b| b < 100) - 0.6).abs() < 0.01);
        assert_eq!(share(text, 10_000, |b| b >= 1_124), 0.0);
        let [reads, writes, trims] = parse("zoned:100/10,100/20", false).unwrap();
        assert!(reads != writes && writes == trims);
    }

    /// Of 1000 blocks, the first zone has 50 with 10 of 1000 writes each, the others 19 in 20 blocks with 500 in 950.
    #[test]
    fn zones_are_overwritten_by_their_share() {
        let [writes, ..] = parse("zoned:50/5:50/95", false).unwrap();
        let classes = |places| writes.classes(places, 4_096_000.0);
        let of = WrittenPlaces::new(4_096_000.0, [4096.0; 2], classes).unwrap();
        let by_hand = 1.0 - 0.05 * (-10f64).exp() - 0.95 * (-500.0 / 950.0f64).exp();
        assert!((of.overwritten(1_000.0 * 4096.0) - by_hand).abs() < 1e-9, "{by_hand}");
        let [sequence, ..] = parse("sequence:2,0,1", false).unwrap();
        assert_eq!(sequence.classes(8, 0.0), None);
    }

    #[test]
    fn pareto_is_self_similar() {
        // 80 % of the requests go to 20 % of the blocks, which lie anywhere.
        let (mut picker, mut rng) = (picker("pareto:0.2", 1_000), Rng::new(3, "draws"));
        let mut seen = vec![0u32; 1_000];
        (0..200_000).for_each(|_| seen[picker.draw(&mut rng).unwrap() as usize] += 1);
        seen.sort_unstable_by(|a, b| b.cmp(a));
        let hot = seen[..200].iter().sum::<u32>() as f64 / 200_000.0;
        assert!((hot - 0.8).abs() < 0.01, "{hot}");
    }

    #[test]
    fn normal_draws_gather() {
        // The mean of twelve uniform numbers has a standard deviation of a twelfth of the range.
        let (mut picker, mut rng) = (picker("normal:0", 12_000), Rng::new(3, "draws"));
        let mut seen = vec![0u32; 12_000];
        (0..200_000).for_each(|_| seen[picker.draw(&mut rng).unwrap() as usize] += 1);
        seen.sort_unstable_by(|a, b| b.cmp(a));
        let within_one = seen[..2_000].iter().sum::<u32>() as f64 / 200_000.0;
        assert!((within_one - 0.683).abs() < 0.03, "{within_one}");
    }

    #[test]
    fn sequences_repeat_or_stride() {
        let blocks = |strides: bool| -> Vec<Option<u64>> {
            let [reads, ..] = parse("sequence:2,0,1", strides).unwrap();
            let mut rng = Rng::new(1, "none");
            let mut picker = Picker::new(&reads, 7, 4096, &mut rng).unwrap();
            (0..7).map(|_| picker.draw(&mut rng)).collect()
        };
        assert_eq!(blocks(false), [2, 0, 1, 2, 0, 1, 2].map(Some));
        assert_eq!(blocks(true)[..6], [2, 0, 1, 5, 3, 4].map(Some));
        assert_eq!(blocks(true)[6], None);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for text in [
            "zipf",
            "zipf:0",
            "zipf:1.2:0.5",
            "pareto:1",
            "normal:101",
            "zoned:",
            "zoned:60/80:40/30",
            "zoned:80/10:80/20",
            "zoned_abs:50/",
            "sequence:",
            "sequence:a",
            "gauss",
            "nothing:1",
        ] {
            assert!(parse(text, false).is_err(), "{text}");
        }
        let [reads, ..] = parse("zoned_abs:100/1m", false).unwrap();
        assert!(Picker::new(&reads, 10, 4096, &mut Rng::new(1, "none")).is_err());
    }
}
