//! Adaptive profiles of writes against whole tests, with caches that hold much of the span.

use std::collections::BTreeMap;

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_figures::{KeepGoing, RunProgress};
use ssdyno_profile::{
    Method, ProfileOp, ProfilePlan, ProfileResult, Ratio, SizeInterval, default_sizes,
};
use ssdyno_session::{FileContents, Observer, RunSpec, Stage, Unattended};

/// Two disks behind a controller that writes back, as in `presets/devices/s2-suno.toml`.
fn array(cache: &str) -> RunSpec {
    let text = format!(
        "[array]\nstripe = \"64KiB\"\nmembers = [\"st9300653ss\", \"st9300653ss\"]\n\
         [array.controller]\ndepth = 128\nlatency = \"50us\"\ncores = 1\ncache = \"{cache}\"\n\
         write_back = true\nread_ahead = \"adaptive\"\nidle_power = \"14W\"\n\
         link = {{ kind = \"pcie\", generation = 1, lanes = 8 }}\n"
    );
    let device = Some(toml::from_str(&text).unwrap());
    RunSpec { contents: FileContents { device, ..FileContents::default() }, ..RunSpec::default() }
}

struct Quiet;

impl<R> Observer<R> for Quiet {
    fn under_way(&mut self, _: &Stage, _: &RunProgress) -> KeepGoing {
        KeepGoing::Continue
    }
}

fn profile(method: Method, sizes: Vec<SizeInterval>, cache: &str, seed: u64) -> ProfileResult {
    let plan = ProfilePlan {
        ops: vec![ProfileOp::Write],
        sizes,
        span: Some(Bytes(400 << 20)),
        // The default of `ssdyno profile`; whole tests need what they need.
        time: matches!(method, Method::Adaptive { .. }).then(|| Time::from_s(180)),
        seed,
        ..ProfilePlan::new("sim:array", method)
    };
    let mut target = plan.open(&array(cache), &mut Unattended).unwrap();
    let (result, failure) = plan.execute(&mut target, &mut Quiet).unwrap();
    assert!(failure.is_none(), "{failure:?}");
    result
}

/// A cache of a third, two thirds and more than all of the span, four seeds each. The truth is the mean of eight whole tests
/// of the same array in different orders; its own interval is added to ours in squares. With searches of a quarter of the
/// span, the median error was 12 % with a cache of two thirds, and intervals covered 3 % of the ratios.
#[test]
fn a_cache_of_much_of_the_span_is_seen_to_its_end() {
    let some = "32KiB..64KiB/32KiB,128KiB..4MiB/496KiB".split(',');
    let some: Vec<SizeInterval> = some.map(|one| one.parse().unwrap()).collect();
    for cache in ["128MiB", "256MiB", "512MiB"] {
        let (mut errors, mut covered) = (Vec::new(), 0.0);
        for seed in 1..=4 {
            let every = Method::Serra { points: u32::MAX, repeat: 8 };
            let truth = profile(every, some.clone(), cache, seed);
            let truths: BTreeMap<u64, &Ratio> =
                truth.write_ratio.iter().map(|one| (one.size_bytes, one)).collect();
            let ours = profile(Method::Adaptive { error: 0.05 }, default_sizes(), cache, seed);
            for one in &ours.write_ratio {
                let Some(truth) = truths.get(&one.size_bytes) else { continue };
                let error = (one.estimate - truth.estimate).abs();
                errors.push(error / truth.estimate);
                let half = |one: &Ratio| (one.high.unwrap() - one.low.unwrap()) / 2.0;
                covered += f64::from(error <= half(one).hypot(half(truth)));
            }
        }
        errors.sort_by(f64::total_cmp);
        let covered = covered / errors.len() as f64;
        let (median, p95) = (errors[errors.len() / 2], errors[errors.len() * 19 / 20]);
        println!("cache {cache}: median {median:.4}, p95 {p95:.4}, covered {covered:.3}");
        assert!(median <= 0.025 && p95 <= 0.1, "{cache}: {median} {p95}");
        assert!(covered >= 0.85, "{cache}: {covered}");
    }
}
