//! The cost of the driver itself: submit and complete, with a controller that completes at once.
//! The goal is 60 ns per I/O.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use instant::Instant;
use ssdyno_block::{Time, Token};
use ssdyno_driver_nvme::{DataBuffer, HeadDoorbell, IoCommand, NvmeConfig, NvmeDriver};

mod instant;

/// Commands of one measurement: the figure criterion prints is for all of them.
const BATCH: u32 = 32;

fn command(i: u32) -> IoCommand<'static> {
    let buffer = DataBuffer::Contiguous(1 << 40);
    IoCommand::read(1, u64::from(i.wrapping_mul(2_654_435_761) >> 3), 8, buffer)
}

fn one_by_one(
    function: &mut Instant,
    driver: &mut NvmeDriver,
    out: &mut Vec<ssdyno_driver_nvme::IoCompletion>,
) {
    for i in 0..BATCH {
        let taken = driver.submit(function, Time::from_us(1), 1, &command(i), Token(i));
        black_box(&taken).as_ref().expect("there is room");
        driver.on_interrupt(function, Time::from_us(2), 1, out);
        black_box(&*out);
        out.clear();
    }
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("driver_nvme");
    group.throughput(Throughput::Elements(u64::from(BATCH)));
    for (name, head_doorbell) in
        [("per_batch", HeadDoorbell::PerBatch), ("per_completion", HeadDoorbell::PerCompletion)]
    {
        let config = NvmeConfig { head_doorbell, ..NvmeConfig::default() };
        let (mut function, mut driver) = Instant::ready(config);
        let mut out = Vec::with_capacity(BATCH as usize);
        group.bench_function(format!("submit_complete_4k/{name}"), |b| {
            b.iter(|| one_by_one(&mut function, &mut driver, &mut out));
        });
        group.bench_function(format!("batch_of_32_4k/{name}"), |b| {
            b.iter(|| {
                for i in 0..BATCH {
                    let taken = driver.stage(&mut function, Time::ZERO, 1, &command(i), Token(i));
                    black_box(&taken).as_ref().expect("there is room");
                }
                driver.ring_doorbell(&mut function, 1);
                driver.on_interrupt(&mut function, Time::ZERO, 1, &mut out);
                black_box(&out);
                out.clear();
            });
        });
    }
    // What a core does with a pair of its own.
    let (mut function, driver) = Instant::ready(NvmeConfig::default());
    let (_controller, mut pairs) = driver.into_parts();
    let (pair, mut out) = (&mut pairs[0], Vec::with_capacity(BATCH as usize));
    group.bench_function("submit_complete_4k/own_pair", |b| {
        b.iter(|| {
            for i in 0..BATCH {
                let taken = pair.submit(&mut function, Time::from_us(1), &command(i), Token(i));
                black_box(&taken).as_ref().expect("there is room");
                pair.on_interrupt(&mut function, 1, &mut out);
                black_box(&out);
                out.clear();
            }
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
