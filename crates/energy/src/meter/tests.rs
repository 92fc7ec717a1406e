//! The meter against the tables of S3, and against its own rules.

use ssdyno_engine::events::{Activity, FlashCause, PartEvent};

use super::*;
use crate::Component;

mod sweep;

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
    near(got.joules(Component::Flash), 0.5 * 0.010 + 0.5 * 0.100, 1e-15, "flash");
    assert_eq!(got.flash_operations.get(Activity::Program, FlashCause::Cleaning), 1);
    assert_eq!(got.flash_operations.total(Activity::Program), 1);
    assert_eq!(got.flash_operations.total(Activity::InService), 0);
    near(got.power_series.points[0].watts[Component::Flash as usize], 0.010, 1e-15, "before");
    near(got.power_series.points[300].watts[Component::Flash as usize], 0.100, 1e-15, "during");
    got.check().unwrap();

    config.flash.idle_during_cleaning = true;
    let mut meter = Meter::new(&config, &facts).unwrap();
    meter.read(&[cleaning]);
    let got = meter.finish(Time::from_s(1));
    near(got.joules(Component::Flash), 0.010 + 0.5 * 0.100, 1e-15, "the rule of S3");
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

/// A rounding residue of a difference is not idleness.
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
    near(
        got.joules(Component::Flash),
        3.3e-3 * idle + 49.5e-3 * 30e-6 + 16.5e-3 * 40e-6,
        1e-15,
        "flash",
    );
    got.check().unwrap();
}

/// Data goes in while the array programs, of which the log hears when it ends. The part of it outside the array phase
/// is an ordinary transfer.
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
    near(got.joules(Component::Flash), idle + 49.5e-3 * 60e-6 + 16.5e-3 * 55e-6, 1e-15, "flash");
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

/// A core that is told what it does far ahead, and later what it does soon: what is held back is not overtaken by
/// what can be entered at once.
#[test]
fn what_a_part_does_is_entered_in_its_order() {
    let mut config = s3();
    config.cpu.rule = CpuRule::Cores;
    config.cpu.slow_when_idle_after = Some("10us".parse().unwrap());
    let core = |from, to| event(PartKind::Core, 0, Activity::Execute, us(from), us(to));
    let events = [core(0, 100), core(100, 200), core(300, 310)];
    let whole = |turns: &[(u64, &[Busy])]| {
        let mut meter = Meter::new(&config, &s3_facts()).unwrap();
        for (now, events) in turns {
            meter.advance(us(*now));
            meter.read(events);
        }
        let got = meter.finish(us(400));
        got.check().unwrap();
        got
    };
    let at_once = whole(&[(400, &events)]);
    let ahead = whole(&[(50, &events[..2]), (350, &events[2..])]);
    // Slow from 210 to 300 and from 320 to 400 us.
    near(ahead.slow_saved_joules, (0.124 - 0.033) * 170e-6, 1e-15, "saved");
    assert_eq!(ahead, at_once);
}

/// A long array phase that is held back, two transfers in it and what comes after: they displace idleness once,
/// whatever was entered first.
#[test]
fn what_a_die_does_is_entered_in_its_order() {
    let die = |activity, from, to| event(PartKind::Die, 0, activity, us(from), us(to));
    let events = [
        die(Activity::Program, 0, 100),
        die(Activity::Transfer, 10, 20),
        die(Activity::Transfer, 30, 40),
        die(Activity::Read, 120, 130),
    ];
    let mut config = s3();
    config.flash.idle_during_cleaning = false;
    for (early, late) in [(5, 60), (5, 150), (150, 150), (25, 110)] {
        let mut meter = Meter::new(&config, &s3_facts()).unwrap();
        meter.advance(us(early));
        meter.read(&events[..1]);
        meter.advance(us(late));
        meter.read(&events[1..]);
        let got = meter.finish(us(200));
        let idle = 3.3e-3 * (7.0 * 200e-6 + 90e-6);
        let flash = idle + 49.5e-3 * 110e-6 + 16.5e-3 * 20e-6;
        near(got.joules(Component::Flash), flash, 1e-15, &format!("shown at {early} and {late}"));
        got.check().unwrap();
    }
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

/// What sleep saves is the difference between the energy of the same events without it and with it. The patience of the
/// CPU ends before, within or after the sleep, or the CPU has no slow mode.
#[test]
fn sleep_saves_what_an_awake_device_would_have_drawn() {
    for patience in [Some("100us"), Some("500us"), Some("800us"), None] {
        let mut config = s3();
        config.cpu.slow_when_idle_after = patience.map(|text| text.parse().unwrap());
        let facts = Facts { power_states: vec![Watts(0.02), Watts(0.001)], ..s3_facts() };
        let measured = |sleeps: bool| {
            let mut meter = Meter::new(&config, &facts).unwrap();
            for (state, from, to) in [(0, 300, 600), (1, 600, 900)] {
                if sleeps {
                    let slept = Activity::LowPower(state);
                    meter.read(&[event(PartKind::Controller, 0, slept, us(from), us(to))]);
                }
            }
            meter.finish(us(1000))
        };
        let (awake, asleep) = (measured(false), measured(true));
        let saved = awake.total_joules - asleep.total_joules;
        near(asleep.low_power_saved_joules, saved, 1e-12, &format!("{patience:?}"));
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
    near(got.joules(Component::Cpu), 0.1 * 400e-6, 1e-15, "nothing to share it by: the controller");
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

/// Takes time and energy from the CPU's row of `activity` until it lacks `joules`, and gives it to another one.
fn move_between(rows: &mut [crate::BreakdownRow], activity: &str, joules: f64) {
    let row =
        rows.iter().position(|row| row.component == Component::Cpu && row.activity == activity);
    let row = row.unwrap();
    let moved = (rows[row].joules + joules, rows[row].seconds * 2.0);
    (rows[row].joules, rows[row].seconds) = (rows[row].joules - moved.0, -rows[row].seconds);
    let other = usize::from(row == 0);
    (rows[other].joules, rows[other].seconds) =
        (rows[other].joules + moved.0, rows[other].seconds + moved.1);
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
        |b| b.power_series.points[2].watts[Component::Cpu as usize] += 1e-6,
        |b| b.rows[0].joules = f64::NAN,
    ];
    let moved: [fn(&mut Breakdown, f64); 2] = [
        // From one state of a part to another, which leaves every sum as it was.
        |b, joules| move_between(&mut b.rows, "idle", joules),
        |b, joules| b.packages[3].idle_joules -= b.packages[3].idle_joules + joules,
    ];
    for shift in moved {
        let mut bad = good.clone();
        shift(&mut bad, 1e-3);
        assert!(bad.check().is_err());
    }
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
