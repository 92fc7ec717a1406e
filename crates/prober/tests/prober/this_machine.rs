//! The machine on which the tests run.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ssdyno_prober::{Prober, ProberOptions, Sources, SystemCounters};

/// Burns CPU in a thread of its own; gives its CPU time in seconds.
fn burn(time: Duration) -> f64 {
    let burning = std::thread::spawn(move || {
        let (began, before) = (Instant::now(), cpu_seconds());
        let mut sum = 0u64;
        while began.elapsed() < time {
            for number in 0..1000 {
                sum = black_box(sum + number);
            }
        }
        cpu_seconds() - before
    });
    burning.join().unwrap()
}

fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[test]
fn cpu_that_a_thread_burns_is_seen() {
    let before = SystemCounters::read(&Sources::default());
    let burnt = burn(Duration::from_millis(300));
    let after = SystemCounters::read(&Sources::default());
    assert_eq!(after.errors(), []);
    let sample = after.since(&before);
    let cpu = sample.cpu.unwrap();
    // All cores had the interval. The kernel may count in ticks of 10 ms, of each core once at each end.
    let cores = std::fs::read_to_string("/proc/stat").unwrap();
    let cores = cores.lines().filter(|line| line.starts_with("cpu")).count() as f64 - 1.0;
    let seconds = sample.interval_ns as f64 / 1e9;
    let busy = (cpu.user_fraction + cpu.nice_fraction + cpu.system_fraction) * cores * seconds;
    assert!(busy >= burnt - 0.02 * cores, "{burnt} s were burnt, {busy} s seen: {cpu:?}");
    assert!(busy <= cores * seconds * 1.01, "{busy} s");
    let sum: f64 = [
        cpu.user_fraction,
        cpu.nice_fraction,
        cpu.system_fraction,
        cpu.idle_fraction,
        cpu.iowait_fraction,
        cpu.irq_fraction,
        cpu.softirq_fraction,
        cpu.steal_fraction,
    ]
    .iter()
    .sum();
    assert!((sum - 1.0).abs() < 1e-9);
    assert!(sample.interfaces.contains_key("lo"));
    assert!(sample.memory.unwrap().total_bytes >= sample.memory.unwrap().available_bytes);
    assert!(sample.activity.unwrap().context_switches_per_second > 0.0);
}

#[test]
fn a_prober_samples_on_a_timeline_without_gaps() {
    let interval = Duration::from_millis(20);
    let options = ProberOptions { interval, keep: 8, ..ProberOptions::default() };
    let prober = Prober::start(options).unwrap();
    while prober.latest().is_none_or(|sample| sample.sequence < 12) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let samples = prober.since(0);
    let later = prober.since(samples[4].sequence);
    assert_eq!(later[0].sequence, 6);
    let series = prober.stop();
    assert!(series.points.len() <= 8 && series.samples_per_point == 2, "{series:?}");
    assert_eq!(series.points.iter().map(|point| point.samples).sum::<u64>(), series.samples);
    assert_eq!(series.errors, [""; 0]);
    // One sample after the other, from the start on.
    let mut end = series.start_monotonic_ns;
    for point in &series.points {
        assert_eq!(point.mean.monotonic_ns - point.mean.interval_ns, end);
        end = point.mean.monotonic_ns;
        // The last sample may be too short for a tick of any core.
        if let Some((mean, max)) = point.mean.cpu.zip(point.max().cpu) {
            assert!(mean.idle_fraction <= max.idle_fraction);
        }
    }
    // No sample is early, however late others are: the thread never runs ahead of its multiples.
    for sample in &samples {
        let since_start = sample.monotonic_ns - series.start_monotonic_ns;
        assert!(since_start >= sample.sequence * 20_000_000, "{sample:?}");
    }
    assert!(series.points.iter().any(|point| point.mean.cpu.is_some()));
    let mean = series.own_cpu_ns_per_sample_mean.unwrap();
    assert!(mean > 1e3 && mean < 1e8, "{mean} ns");
    assert!(series.own_cpu_ns_per_sample_max.unwrap() as f64 >= mean);
    let text = serde_json::to_string(&series).unwrap();
    assert_eq!(serde_json::from_str::<ssdyno_prober::SystemSeries>(&text).unwrap(), series);
}

#[test]
fn a_prober_without_sources_says_so_and_goes_on() {
    let sources = Sources { proc: "/no/such/proc".into(), sys: "/no/such/sys".into() };
    let interval = Duration::from_millis(10);
    let prober = Prober::start(ProberOptions { interval, sources, keep: 4 }).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let series = prober.stop();
    assert!(series.samples >= 1);
    assert_eq!(series.errors.len(), 5, "{:?}", series.errors);
    assert!(series.errors[0].starts_with("/no/such/proc/diskstats: "), "{:?}", series.errors);
    assert_eq!(series.points[0].mean.cpu, None);
}

#[test]
#[ignore = "prints what a sample of this machine costs: cargo test --workspace --test prober -- --ignored --nocapture"]
fn cost_of_a_sample() {
    let interval = Duration::from_millis(10);
    let prober = Prober::start(ProberOptions { interval, ..ProberOptions::default() }).unwrap();
    std::thread::sleep(Duration::from_secs(10));
    let series = prober.stop();
    println!(
        "{} samples ({} missed): {:?} ns CPU a sample, greatest {:?}; a sample is {} bytes of JSON",
        series.samples,
        series.samples_missed,
        series.own_cpu_ns_per_sample_mean,
        series.own_cpu_ns_per_sample_max,
        serde_json::to_string(&series.points[0].mean).unwrap().len(),
    );
    assert!(series.samples > 0);
}
