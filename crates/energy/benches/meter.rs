//! Cost of one event: a device reports several for each request.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ssdyno_block::Time;
use ssdyno_block::units::{Amperes, Volts, Watts};
use ssdyno_energy::{
    BusPower, CpuPower, CpuRule, DramPower, EnergyConfig, Facts, FlashPower, Meter,
};
use ssdyno_engine::Rng;
use ssdyno_engine::events::{Activity, Busy, EventReader, FlashCause, PartEvent, PartKind};

fn config() -> EnergyConfig {
    let active_current = Amperes(0.015);
    EnergyConfig {
        flash: FlashPower {
            voltage: Volts(3.3),
            read_current: active_current,
            program_current: active_current,
            erase_current: active_current,
            transfer_current: Amperes(0.005),
            idle_current: Amperes(0.001),
            idle_during_cleaning: false,
        },
        cpu: CpuPower {
            rule: CpuRule::Cores,
            normal_power: Watts(0.259),
            idle_power: Watts(0.124),
            slow_power: None,
            slow_when_idle_after: None,
        },
        dram: DramPower { active_power: Watts(0.878), idle_power: Watts(0.08) },
        bus: BusPower {
            voltage: Volts(3.3),
            channel_current: Amperes(0.005),
            host_link_current: Amperes(0.005),
        },
    }
}

/// The mix of a buffered random write on 64 dies: transfers, programs and a core's commands.
fn events(count: usize) -> Vec<Busy> {
    let mut rng = Rng::new(1, "bench");
    let mut now = Time::ZERO;
    let mut events = Vec::with_capacity(count);
    while events.len() < count {
        let die = rng.below(64) as u16;
        now += Time::from_ns(rng.below(2000));
        let mut push = |kind, index, activity, length| {
            let part = PartEvent::new(kind, index);
            let (from, to) = (now, now + Time::from_us(length));
            events.push(Busy { part, activity, cause: FlashCause::Host, operations: 1, from, to });
        };
        push(PartKind::Core, die % 4, Activity::Execute, 1);
        push(PartKind::Die, die, Activity::Transfer, 12);
        push(PartKind::Channel, die / 8, Activity::Transfer, 12);
        push(PartKind::Die, die, Activity::Program, 500);
    }
    events
}

fn read(c: &mut Criterion) {
    let facts = Facts { channels: 8, dies: 64, dies_per_package: 2, cores: 4, ..Facts::default() };
    let events = events(1 << 20);
    let mut group = c.benchmark_group("meter");
    group.throughput(Throughput::Elements(events.len() as u64));
    group.sample_size(20);
    for told in [true, false] {
        let name = if told { "advanced" } else { "not_advanced" };
        group.bench_function(name, |b| {
            b.iter(|| {
                let Ok(mut meter) = Meter::new(&config(), &facts) else { return };
                for batch in events.chunks(1024) {
                    if told {
                        meter.advance(batch[0].from);
                    }
                    meter.read(batch);
                }
                std::hint::black_box(meter.finish(Time::from_s(10)));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
