//! The cost of making one request. Target: below 40 ns, so that 2.5 million simulated requests a
//! second leave nine tenths of the time to the device.

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use ssdyno_block::Time;
use ssdyno_workload::{TargetFacts, Workload, WorkloadConfig, WorkloadStep, presets};

/// Runs until `count` requests were issued; each completes at once.
fn drive(workload: &mut (dyn Workload + Send), count: u64) {
    let mut now = Time::ZERO;
    let mut issued = 0;
    while issued < count {
        match black_box(workload.next(now)) {
            WorkloadStep::Issue { .. } => {
                workload.completed(ssdyno_workload::Finished::UNKNOWN, now);
                issued += 1;
            }
            WorkloadStep::NotBefore(time) => now = time,
            WorkloadStep::Wait | WorkloadStep::Done => return,
        }
    }
}

fn generators(criterion: &mut Criterion) {
    let device = TargetFacts { capacity_bytes: 1 << 40, sector_bytes: 512 };
    let mut group = criterion.benchmark_group("request");
    for name in presets::names() {
        let text = presets::text(name).unwrap_or_default();
        let mut config = WorkloadConfig::from_toml(text).expect("a preset parses");
        config.requests = Some(u64::MAX / 2);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|count| {
                let mut workload = config.build(&device, 1).expect("a preset builds");
                let start = Instant::now();
                drive(workload.as_mut(), count);
                start.elapsed()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, generators);
criterion_main!(benches);
