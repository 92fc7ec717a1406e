//! The cost of the driver alone: submission and completion of one page, over a card that completes
//! at once.

#[path = "../tests/common/instant.rs"]
mod instant;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use instant::Instant;
use ssdyno_block::{Request, Time, Token};
use ssdyno_driver_ring::{RingDriver, RingDriverOptions, Submission};

fn submit_complete(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("submit_complete");
    for depth in [1u32, 32] {
        let mut driver =
            RingDriver::new(Instant::new(), RingDriverOptions::default()).expect("it starts");
        let mut done = Vec::with_capacity(64);
        group.throughput(Throughput::Elements(depth.into()));
        group.bench_function(format!("depth_{depth}"), |bencher| {
            bencher.iter(|| {
                let now = Time::ZERO;
                for token in 0..depth {
                    let request = Request::read(u64::from(token) * 4096, 4096);
                    let token = Token(token);
                    let submission = Submission { request, token, address: None, urgent: false };
                    driver.submit(now, submission).expect("there is room");
                }
                while driver.in_flight() > 0 {
                    driver.on_interrupt(now);
                    driver.poll(now, &mut done);
                }
                let completed = done.len();
                done.clear();
                completed
            });
        });
    }
    group.finish();
}

criterion_group!(benches, submit_complete);
criterion_main!(benches);
