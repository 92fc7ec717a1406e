//! The simulator's cost of the NVMe controller for a 4-KiB read: doorbell, fetch, decode, completion entry and
//! interrupt, in front of a device that takes a fixed time. Aim: 200 ns (issue B).

#![allow(missing_docs, reason = "made by criterion's macros")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ssdyno_controller_nvme::NvmeController;
use ssdyno_pci::PciDevice;
use ssdyno_spec::nvme::registers;

#[path = "../tests/nvme/support.rs"]
#[expect(dead_code, reason = "the tests of the controller use all of it")]
mod support;

use support::{FixedTime, Host, LATENCY, config, read};

const COMMANDS: u64 = 20_000;
const DEPTH: u32 = 32;

fn ready() -> Host<FixedTime> {
    let mut config = config("", &[]);
    config.queue.depth = 64;
    let device = FixedTime { latency: LATENCY, ..FixedTime::default() };
    let Some(setup) = config.nvme_setup() else { unreachable!() };
    let Ok(controller) = NvmeController::in_front_of(device, setup) else { unreachable!() };
    let mut host = Host::new(controller);
    host.enable();
    for queue in 1..=4 {
        host.create_pair(queue, 64);
    }
    host
}

/// Keeps [`DEPTH`] commands outstanding; the host takes what has come at each event.
fn run(host: &mut Host<FixedTime>) {
    let mut left = COMMANDS;
    for number in 0..DEPTH {
        host.push(1 + (number % 4) as u16, read(u64::from(number) * 8));
    }
    (1..=4).for_each(|queue| host.ring(queue));
    left -= u64::from(DEPTH);
    while let Some(at) = host.controller.next_event() {
        host.now = at;
        host.controller.advance(at, &mut host.bus);
        host.bus.reads.clear();
        host.bus.touched.clear();
        host.controller.device_mut().seen.clear();
        while let Some((_, queue)) = host.bus.interrupts.pop() {
            let ended = host.reap(queue).len() as u64;
            let again = ended.min(left);
            left -= again;
            for number in 0..again {
                host.push(queue, read(number * 8));
            }
            if again > 0 {
                host.write(
                    registers::submission_doorbell(queue, 0),
                    host.pairs[usize::from(queue)].map_or(0, |pair| pair.tail),
                );
            }
        }
    }
    assert_eq!(left, 0);
}

fn controller(c: &mut Criterion) {
    let mut group = c.benchmark_group("nvme controller");
    group.throughput(Throughput::Elements(COMMANDS));
    let mut host = ready();
    group.bench_function("4 KiB reads, four queues, depth 32", |b| b.iter(|| run(&mut host)));
    group.finish();
}

criterion_group!(benches, controller);
criterion_main!(benches);
