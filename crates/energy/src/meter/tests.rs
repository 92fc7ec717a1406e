//! The meter against the tables of S3, against a sweep through time, and against its own rules.

use proptest::prelude::*;
use ssdyno_engine::events::{Activity, FlashCause, PartEvent};

use super::*;
use crate::Component;

/// S3-16 with the corrections S3-29 and S3-30 and the idle rule of S3-33.
pub(crate) fn s3_text() -> &'static str {
    r#"
    [flash]
    voltage = "3.3V"
    read_current = "15mA"
    program_current = "15mA"
    erase_current = "15mA"
    transfer_current = "5mA"
    idle_current = "1mA"
    idle_during_cleaning = true
    [cpu]
    rule = "in-service"
    normal_power = "259mW"
    idle_power = "124mW"
    slow_power = "33mW"
    [dram]
    active_power = "878mW"
    idle_power = "80mW"
    [bus]
    voltage = "3.3V"
    host_link_current = "5mA"
    "#
}

fn s3() -> EnergyConfig {
    toml::from_str(s3_text()).unwrap()
}

fn s3_facts() -> Facts {
    Facts { channels: 8, dies: 8, dies_per_package: 1, cores: 1, power_states: Vec::new() }
}

const fn event(kind: PartKind, index: u16, activity: Activity, from: Time, to: Time) -> Busy {
    Busy {
        part: PartEvent::new(kind, index),
        activity,
        cause: FlashCause::Host,
        operations: 1,
        from,
        to,
    }
}

fn us(us: u64) -> Time {
    Time::from_us(us)
}

fn near(got: f64, want: f64, tolerance: f64, what: &str) {
    assert!((got - want).abs() <= tolerance, "{what}: {got}, wanted {want}");
}

/// Work of one run of S3: what the meter needs of its 5 000 000 requests.
struct S3Run {
    name: &'static str,
    seconds: f64,
    in_service: f64,
    pieces: f64,
    reads: bool,
    summaries: f64,
    cleans: f64,
    moved: f64,
    printed: [f64; 4],
}

const fn s3_run(
    name: &'static str,
    (seconds, in_service, pieces, reads): (f64, f64, f64, bool),
    [summaries, cleans, moved]: [f64; 3],
    printed: [f64; 4],
) -> S3Run {
    S3Run { name, seconds, in_service, pieces, reads, summaries, cleans, moved, printed }
}

/// Table 3 of S3 with the counts of the runs behind it (S3-23, S3-33, S3-34).
const TABLE_3: [S3Run; 4] = [
    s3_run(
        "sequential read",
        (2_500.271_147_470, 0.247_935, 5_704_304.0, true),
        [0.0; 3],
        [80.54, 393.72, 200.02, 0.179],
    ),
    s3_run(
        "sequential write",
        (2_500.271_147_470, 0.543_208, 5_704_304.0, false),
        [90_543.0, 77_493.0, 0.0],
        [133.27, 493.38, 200.02, 0.179],
    ),
    s3_run(
        "random read",
        (2_499.681_729_596, 0.253_650, 7_913_348.0, true),
        [0.0; 3],
        [86.16, 395.55, 199.97, 0.249],
    ),
    s3_run(
        "random write",
        (2_499.681_729_596, 0.666_022, 7_913_348.0, false),
        [156_227.0, 143_179.0, 1_929_239.0],
        [183.73, 534.71, 199.97, 0.249],
    ),
];

/// The figures of S3 come out of the operation counts alone (S3-29..S3-33): one interval a package
/// and activity, as long as all its operations together. Tolerance: one unit of the last printed
/// digit, because the paper truncates.
#[test]
fn table_3_of_s3_from_its_counts() {
    for run in TABLE_3 {
        let mut meter = Meter::new(&s3(), &s3_facts()).unwrap();
        let mut events = Vec::new();
        for die in 0..8 {
            let mut at = 0.0;
            let mut push = |activity, cause, seconds: f64| {
                let (from, to) = (Time::from_s_f64(at), Time::from_s_f64(at + seconds));
                at += seconds;
                events.push(Busy { cause, ..event(PartKind::Die, die, activity, from, to) });
            };
            let transfers = run.pieces * 105.6e-6 + run.summaries * 13.2e-6;
            push(Activity::Transfer, FlashCause::Host, transfers / 8.0);
            if run.reads {
                push(Activity::Read, FlashCause::Host, run.pieces * 25e-6 / 8.0);
            } else {
                push(
                    Activity::Program,
                    FlashCause::Host,
                    (run.pieces + run.summaries) * 200e-6 / 8.0,
                );
            }
            push(Activity::Erase, FlashCause::Cleaning, run.cleans * 1.5e-3 / 8.0);
            push(Activity::Read, FlashCause::Cleaning, run.moved * 25e-6 / 8.0);
            push(Activity::Program, FlashCause::Cleaning, run.moved * 200e-6 / 8.0);
        }
        let busy = Time::from_s_f64(run.seconds * run.in_service);
        events.push(event(PartKind::Controller, 0, Activity::InService, Time::ZERO, busy));
        let linked = Time::from_s_f64(run.pieces * 8.0 * 0.2384e-6);
        events.push(event(PartKind::HostLink, 0, Activity::Transfer, Time::ZERO, linked));
        let end = Time::from_s_f64(run.seconds);
        meter.advance(end);
        meter.read(&events);
        let got = meter.finish(end);
        got.check().unwrap();
        for ((component, printed), unit) in
            Component::ALL.into_iter().zip(run.printed).zip([0.01, 0.01, 0.01, 0.001])
        {
            let what = format!("{} {}", run.name, component.name());
            near(got.joules(component), printed, unit, &what);
        }
        near(got.idle_watts, 0.2304, 1e-12, "idle floor, S3-42");
        assert_eq!(got.packages.len(), 8);
    }
}

/// One die, by hand: 10 mW idle, 100 mW programming, 1 s.
#[test]
fn one_program_by_hand() {
    let mut config = s3();
    config.flash.voltage.0 = 1.0;
    config.flash.idle_current.0 = 0.010;
    config.flash.program_current.0 = 0.100;
    config.flash.idle_during_cleaning = false;
    let facts = Facts { channels: 1, dies: 1, dies_per_package: 1, ..Facts::default() };
    let mut meter = Meter::new(&config, &facts).unwrap();
    let (from, to) = (Time::from_ms(250), Time::from_ms(750));
    let cleaning = Busy {
        cause: FlashCause::Cleaning,
        ..event(PartKind::Die, 0, Activity::Program, from, to)
    };
    meter.read(&[cleaning]);
    let got = meter.finish(Time::from_s(1));
    near(got.flash_joules, 0.5 * 0.010 + 0.5 * 0.100, 1e-15, "flash");
    assert_eq!(got.flash_operations.get(Activity::Program, FlashCause::Cleaning), 1);
    assert_eq!(got.flash_operations.total(Activity::Program), 1);
    assert_eq!(got.flash_operations.total(Activity::InService), 0);
    near(got.power_series.points[0].flash_watts, 0.010, 1e-15, "before");
    near(got.power_series.points[300].flash_watts, 0.100, 1e-15, "during");
    got.check().unwrap();

    config.flash.idle_during_cleaning = true;
    let mut meter = Meter::new(&config, &facts).unwrap();
    meter.read(&[cleaning]);
    let got = meter.finish(Time::from_s(1));
    near(got.flash_joules, 0.010 + 0.5 * 0.100, 1e-15, "the rule of S3");
    got.check().unwrap();
}

#[test]
fn a_run_of_no_length_costs_nothing() {
    let mut meter = Meter::new(&s3(), &s3_facts()).unwrap();
    meter.reset(us(50));
    meter.read(&[event(PartKind::Die, 0, Activity::Read, us(40), us(60))]);
    let got = meter.finish(us(50));
    assert_eq!(got.total_joules, 0.0);
    assert!(got.power_series.points.is_empty());
    got.check().unwrap();
}

/// What rounding leaves of a difference is no idleness.
#[test]
fn a_cpu_that_never_rests_has_no_idle_row() {
    for n in 0..2_000u64 {
        let end = Time::from_ps(31_150_150_501 + 7_919 * n);
        let mut meter = Meter::new(&s3(), &s3_facts()).unwrap();
        meter.read(&[event(PartKind::Controller, 0, Activity::InService, Time::ZERO, end)]);
        let got = meter.finish(end);
        let idle =
            |row: &&crate::BreakdownRow| row.component == Component::Cpu && row.activity == "idle";
        assert_eq!(got.rows.iter().find(idle), None, "{end:?}");
        got.check().unwrap();
    }
}

#[test]
fn overlapping_activities_of_a_die_displace_idleness_once() {
    let mut meter = Meter::new(&s3(), &s3_facts()).unwrap();
    meter.read(&[
        event(PartKind::Die, 0, Activity::Read, us(0), us(30)),
        event(PartKind::Die, 0, Activity::Transfer, us(20), us(60)),
    ]);
    let got = meter.finish(us(100));
    let idle = 8.0 * 100e-6 - 60e-6;
    near(got.flash_joules, 3.3e-3 * idle + 49.5e-3 * 30e-6 + 16.5e-3 * 40e-6, 1e-15, "flash");
    got.check().unwrap();
}

/// Data goes in while the array programs, of which the log hears when it ends. What of it lies outside the array
/// phase is an ordinary transfer.
#[test]
fn a_die_that_does_two_things_at_a_time_is_busy_once() {
    let mut config = s3();
    config.flash.idle_during_cleaning = false;
    let mut meter = Meter::new(&config, &s3_facts()).unwrap();
    meter.read(&[
        event(PartKind::Die, 0, Activity::Transfer, us(0), us(10)),
        event(PartKind::Die, 0, Activity::CacheTransfer, us(20), us(40)),
        event(PartKind::Die, 0, Activity::CacheTransfer, us(50), us(70)),
        event(PartKind::Die, 0, Activity::Transfer, us(70), us(75)),
        event(PartKind::Die, 0, Activity::Program, us(10), us(70)),
    ]);
    let got = meter.finish(us(100));
    near(got.busy.dies[0], 75e-6, 1e-18, "busy");
    let idle = 3.3e-3 * (7.0 * 100e-6 + 25e-6);
    near(got.flash_joules, idle + 49.5e-3 * 60e-6 + 16.5e-3 * 55e-6, 1e-15, "flash");
    got.check().unwrap();
}

#[test]
fn slow_mode_saves_what_it_says() {
    let mut config = s3();
    config.cpu.slow_when_idle_after = Some("100us".parse().unwrap());
    let events = [
        event(PartKind::Controller, 0, Activity::InService, us(500), us(600)),
        event(PartKind::Controller, 0, Activity::InService, us(650), us(700)),
    ];
    let mut without = Meter::new(&s3(), &s3_facts()).unwrap();
    let mut with = Meter::new(&config, &s3_facts()).unwrap();
    without.read(&events);
    with.read(&events);
    let (without, with) = (without.finish(us(1000)), with.finish(us(1000)));
    // Slow from 100 to 500 and from 800 to 1000 us.
    near(with.slow_saved_joules, (0.124 - 0.033) * 600e-6, 1e-15, "saved");
    near(without.total_joules - with.total_joules, with.slow_saved_joules, 1e-15, "difference");
    with.check().unwrap();
}

/// The idle baseline is what a meter finds for a device that does nothing but follow its policies; seeds
/// of all kinds of windows.
#[test]
fn the_idle_baseline_is_a_device_without_requests() {
    let facts = Facts { power_states: vec![Watts(0.1), Watts(0.01)], ..s3_facts() };
    for patience in [None, Some("20us"), Some("700us"), Some("5ms")] {
        for entered in [vec![], vec![(1, 0)], vec![(0, 300)], vec![(0, 10), (1, 600)]] {
            for (start, end) in [(0, 1000), (0, 5), (250, 900), (650, 4000)] {
                let mut config = s3();
                config.cpu.slow_when_idle_after = patience.map(|text| text.parse().unwrap());
                let mut meter = Meter::new(&config, &facts).unwrap();
                let states: Vec<_> = entered.iter().map(|(state, at)| (*state, us(*at))).collect();
                meter.would_sleep(&states);
                meter.reset(us(start));
                // What a device reports that sleeps to the end.
                for (index, (state, at)) in entered.iter().enumerate() {
                    let to = entered.get(index + 1).map_or(end, |(_, next)| *next).min(end);
                    if *at < to {
                        let slept = Activity::LowPower(*state);
                        meter.read(&[event(PartKind::Controller, 0, slept, us(*at), us(to))]);
                    }
                }
                let got = meter.finish(us(end));
                let what = format!("{patience:?} {entered:?} {start} to {end}");
                near(got.idle_joules, got.total_joules, 1e-15, &what);
                assert_eq!(got.above_idle_joules, 0.0, "{what}");
            }
        }
    }
}

#[test]
fn a_sleeping_device_draws_the_power_of_its_state() {
    let facts = Facts { power_states: vec![Watts(0.1), Watts(0.0)], ..s3_facts() };
    let sleep = |state, from, to| {
        event(PartKind::Controller, 0, Activity::LowPower(state), us(from), us(to))
    };
    let mut meter = Meter::new(&s3(), &facts).unwrap();
    meter.read(&[sleep(0, 0, 400), sleep(1, 400, 1000)]);
    let got = meter.finish(us(1000));
    near(got.total_joules, 0.1 * 400e-6, 1e-15, "total");
    near(got.low_power_saved_joules, 0.2304 * 1000e-6 - got.total_joules, 1e-15, "saved");
    // Without the policy that made it sleep, its idleness is awake.
    near(got.above_idle_joules, -got.low_power_saved_joules, 1e-15, "above idle");
    let mut meter = Meter::new(&s3(), &facts).unwrap();
    meter.would_sleep(&[(0, us(0)), (1, us(400)), (7, us(500))]);
    meter.read(&[sleep(0, 0, 400), sleep(1, 400, 1000)]);
    assert_eq!(meter.finish(us(1000)).above_idle_joules, 0.0);
    got.check().unwrap();

    let mut config = s3();
    config.flash.idle_current.0 = 0.0;
    config.cpu.idle_power = Watts(0.0);
    config.dram.idle_power = Watts(0.0);
    let mut meter = Meter::new(&config, &facts).unwrap();
    meter.read(&[sleep(0, 0, 400)]);
    let got = meter.finish(us(1000));
    near(got.cpu_joules, 0.1 * 400e-6, 1e-15, "nothing to share it by: the controller");
    got.check().unwrap();
}

#[test]
fn undeclared_parts_and_states_are_told() {
    for stray in [
        event(PartKind::Die, 8, Activity::Read, us(0), us(1)),
        event(PartKind::Die, 0, Activity::Execute, us(0), us(1)),
        event(PartKind::Controller, 0, Activity::LowPower(0), us(0), us(1)),
    ] {
        let mut meter = Meter::new(&s3(), &s3_facts()).unwrap();
        meter.read(&[stray]);
        assert!(meter.finish(us(1)).check().is_err(), "{stray:?}");
    }
}

#[test]
fn a_wrong_account_is_found() {
    let mut meter = Meter::new(&s3(), &s3_facts()).unwrap();
    meter.read(&[event(PartKind::Die, 3, Activity::Erase, us(0), us(1500))]);
    let good = meter.finish(us(10_000));
    good.check().unwrap();
    let spoilt: [fn(&mut Breakdown); 4] = [
        |b| b.total_joules *= 1.0 + 1e-8,
        |b| b.packages[3].joules = 0.0,
        |b| b.power_series.points[2].cpu_watts += 1e-6,
        |b| b.rows[0].joules = f64::NAN,
    ];
    for spoil in spoilt {
        let mut bad = good.clone();
        spoil(&mut bad);
        assert!(bad.check().is_err());
    }
}

#[test]
fn refuses_facts_that_cannot_be() {
    let facts = Facts { dies_per_package: 0, ..s3_facts() };
    assert_eq!(Meter::new(&s3(), &facts).unwrap_err().key, "flash.dies_per_chip");
    let facts = Facts { power_states: vec![Watts(0.0); 33], ..s3_facts() };
    assert_eq!(Meter::new(&s3(), &facts).unwrap_err().key, "power.states");
}

const DIES: u16 = 3;
const CORES: u16 = 2;

/// A device's life in units of 100 us: stretches of work with idleness and sleep between them.
/// Per part the intervals are in order and apart; the events are in the order of their begin.
fn life() -> impl Strategy<Value = Vec<Busy>> {
    let interval = (0usize..8, 0u64..6, 1u64..9, 0u8..4);
    let stretch = (prop::collection::vec(interval, 0..12), 0u64..20, 0u64..20);
    prop::collection::vec(stretch, 1..12).prop_map(|stretches| {
        let mut events = Vec::new();
        let mut now = 0;
        for (intervals, idle, asleep) in stretches {
            let mut free = [now; 8];
            for (part, gap, length, what) in intervals {
                let from = free[part] + gap;
                free[part] = from + length;
                events.push(work(part, what, from, from + length));
            }
            let end = free.into_iter().max().unwrap_or(now);
            let serving = event(PartKind::Controller, 0, Activity::InService, unit(now), unit(end));
            events.push(serving);
            let (deeper, woken) = (end + idle + asleep / 2, end + idle + asleep);
            for (state, from, to) in [(0, end + idle, deeper), (1, deeper, woken)] {
                let state = Activity::LowPower(state);
                events.push(event(PartKind::Controller, 0, state, unit(from), unit(to)));
            }
            now = woken;
        }
        events.retain(|event| event.from < event.to);
        events.sort_by_key(|event| event.from);
        events
    })
}

fn unit(n: u64) -> Time {
    us(100 * n)
}

fn work(part: usize, what: u8, from: u64, to: u64) -> Busy {
    let flash = [Activity::Read, Activity::Program, Activity::Erase, Activity::Transfer];
    let what = usize::from(what);
    let (from, to) = (unit(from), unit(to));
    match part {
        0..=2 => Busy {
            cause: if what % 2 == 0 { FlashCause::Host } else { FlashCause::Cleaning },
            ..event(PartKind::Die, part as u16, flash[what], from, to)
        },
        3 | 4 => event(PartKind::Core, part as u16 - 3, Activity::Execute, from, to),
        5 => event(PartKind::Channel, 0, Activity::Transfer, from, to),
        6 => event(PartKind::Dram, 0, Activity::Transfer, from, to),
        _ => event(PartKind::HostLink, 0, Activity::Transfer, from, to),
    }
}

/// Power of the device in the unit of time from `n` on, from the events alone: the oracle.
fn power_at(events: &[Busy], n: u64, config: &EnergyConfig, facts: &Facts) -> f64 {
    let at = |kind: PartKind, index: u16| {
        let mut all = events.iter().filter(move |e| {
            let works = !matches!(e.activity, Activity::LowPower(_));
            e.part == PartEvent::new(kind, index) && works && e.from <= unit(n) && unit(n) < e.to
        });
        all.next()
    };
    let asleep = events.iter().find_map(|e| match e.activity {
        Activity::LowPower(state) if e.from <= unit(n) && unit(n) < e.to => Some(state),
        _ => None,
    });
    if let Some(state) = asleep {
        return facts.power_states[usize::from(state)].0;
    }
    let mut watts = 0.0;
    for die in 0..DIES {
        let flash = &config.flash;
        let busy = at(PartKind::Die, die);
        let current = busy.map_or(0.0, |event| match event.activity {
            Activity::Read => flash.read_current.0,
            Activity::Program => flash.program_current.0,
            Activity::Erase => flash.erase_current.0,
            _ => flash.transfer_current.0,
        });
        let cleaning = busy.is_some_and(|event| event.cause == FlashCause::Cleaning);
        let idle = busy.is_none() || (cleaning && flash.idle_during_cleaning);
        watts += flash.voltage.0 * (current + if idle { flash.idle_current.0 } else { 0.0 });
    }
    let (cpu, patience) = (&config.cpu, config.cpu.slow_when_idle_after);
    let cpus = match cpu.rule {
        CpuRule::Cores => vec![(PartKind::Core, 0), (PartKind::Core, 1)],
        CpuRule::InService => vec![(PartKind::Controller, 0)],
    };
    for (kind, index) in cpus {
        let works = |e: &&Busy| {
            e.part == PartEvent::new(kind, index) && !matches!(e.activity, Activity::LowPower(_))
        };
        let before = events.iter().filter(works).filter(|e| e.to <= unit(n));
        let idle_since = before.map(|e| e.to).max().unwrap_or(Time::ZERO);
        let slow = patience.is_some_and(|patience| unit(n) >= idle_since + patience.0);
        watts += match (at(kind, index), cpu.slow_power) {
            (Some(_), _) => cpu.normal_power.0,
            (None, Some(power)) if slow => power.0,
            (None, _) => cpu.idle_power.0,
        };
    }
    let dram = at(PartKind::Dram, 0).is_some();
    watts += if dram { config.dram.active_power.0 } else { config.dram.idle_power.0 };
    let bus = &config.bus;
    if at(PartKind::Channel, 0).is_some() {
        watts += bus.voltage.0 * bus.channel_current.0;
    }
    if at(PartKind::HostLink, 0).is_some() {
        watts += bus.voltage.0 * bus.host_link_current.0;
    }
    watts
}

fn sweep(events: &[Busy], (start, end): (u64, u64), config: &EnergyConfig, facts: &Facts) -> f64 {
    (start..end).map(|n| power_at(events, n, config, facts) * 100e-6).sum()
}

fn config() -> impl Strategy<Value = EnergyConfig> {
    (any::<bool>(), any::<bool>(), prop::option::of(0u64..15)).prop_map(|(cores, too, patience)| {
        let mut config = s3();
        config.flash.read_current.0 = 0.011;
        config.flash.erase_current.0 = 0.023;
        config.flash.idle_during_cleaning = too;
        config.bus.channel_current.0 = 0.007;
        config.cpu.rule = if cores { CpuRule::Cores } else { CpuRule::InService };
        config.cpu.slow_when_idle_after = patience.map(|n| ssdyno_block::units::Span(unit(n)));
        config
    })
}

fn facts() -> Facts {
    Facts {
        channels: 1,
        dies: u32::from(DIES),
        dies_per_package: 2,
        cores: u32::from(CORES),
        power_states: vec![Watts(0.05), Watts(0.004)],
    }
}

/// Feeds `events` in batches, telling the time before each where `tell`; starts to measure at
/// `start` and stops at each of `ends`, in order.
fn measure(
    events: &[Busy],
    (start, ends): (u64, &[u64]),
    (batch, tell): (usize, bool),
    config: &EnergyConfig,
) -> Vec<Breakdown> {
    let mut meter = Meter::new(config, &facts()).unwrap();
    let mut stops = std::iter::once(start).chain(ends.iter().copied()).map(unit).peekable();
    let mut got = Vec::new();
    let stop = |meter: &mut Meter, at: Time, first: bool| {
        let breakdown = meter.finish(at);
        meter.reset(at);
        (!first).then_some(breakdown)
    };
    let mut first = true;
    for events in events.chunks(batch) {
        // What is reported late would be wrong: an event is reported when it begins.
        while let Some(at) = stops.next_if(|at| events.iter().all(|e| e.from >= *at)) {
            got.extend(stop(&mut meter, at, first));
            first = false;
        }
        if tell && stops.peek().is_some_and(|at| events[0].from <= *at) {
            meter.advance(events[0].from);
        }
        meter.read(events);
    }
    for at in stops {
        got.extend(stop(&mut meter, at, first));
        first = false;
    }
    got
}

proptest! {
    /// Every run's energy is what a sweep through time finds, however the events are reported.
    #[test]
    fn agrees_with_a_sweep_through_time(
        events in life(),
        config in config(),
        start in 0u64..60,
        length in 0u64..300,
        batch in 1usize..20,
        tell in any::<bool>(),
    ) {
        let end = start + length;
        let got = measure(&events, (start, &[end]), (batch, tell), &config).remove(0);
        let want = sweep(&events, (start, end), &config, &facts());
        prop_assert!(
            (got.total_joules - want).abs() <= 1e-12 + 1e-9 * want,
            "{} J, the sweep says {want}", got.total_joules
        );
        prop_assert_eq!(got.check(), Ok(()));
    }

    /// Measurements that follow each other hold together what one over all of it holds.
    #[test]
    fn measurements_tile(
        events in life(),
        config in config(),
        cuts in [0u64..80, 0..80, 0..80],
        batch in 1usize..20,
    ) {
        let mut ends = cuts;
        ends.sort_unstable();
        let parts = measure(&events, (0, &ends), (batch, true), &config);
        let whole = measure(&events, (0, &ends[2..]), (1, true), &config).remove(0);
        let sum: f64 = parts.iter().map(|part| part.total_joules).sum();
        prop_assert!((sum - whole.total_joules).abs() <= 1e-12, "{sum} v. {}", whole.total_joules);
        for activity in [Activity::Read, Activity::Program, Activity::Erase] {
            let sum: u64 = parts.iter().map(|part| part.flash_operations.total(activity)).sum();
            prop_assert_eq!(sum, whole.flash_operations.total(activity));
        }
    }

    /// Doubling every idle power doubles the idle rows and leaves the others (S3-44).
    #[test]
    fn doubling_idle_doubles_the_idle_share(events in life(), config in config()) {
        let mut doubled = config.clone();
        doubled.flash.idle_current.0 *= 2.0;
        doubled.cpu.idle_power.0 *= 2.0;
        doubled.dram.idle_power.0 *= 2.0;
        let run = |config: &EnergyConfig| measure(&events, (0, &[400]), (7, true), config).remove(0);
        let share = |b: &Breakdown, idle: bool| -> f64 {
            let rows = b.rows.iter().filter(|row| (row.activity == "idle") == idle);
            rows.map(|row| row.joules).sum()
        };
        let (one, two) = (run(&config), run(&doubled));
        prop_assert!((2.0 * share(&one, true) - share(&two, true)).abs() < 1e-12);
        prop_assert!((share(&one, false) - share(&two, false)).abs() < 1e-12);
    }
}
