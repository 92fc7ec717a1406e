//! The meter against a sweep through time, over random lives of a device.

use proptest::prelude::*;
use ssdyno_engine::events::{Activity, FlashCause, PartKind};

use super::*;

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

    /// Consecutive measurements contain the same as a single measurement over all of them.
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
