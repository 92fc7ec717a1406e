//! Which queue is served (base 2.0c, clause 3.4.4; S1-40, S1-41).

use ssdyno_block::Time;
use ssdyno_spec::nvme::{feature, registers};

use crate::support::{FixedTime, Host, host_with, read, set_feature};

/// One command at a time inside the device, so that arbitration decides about everything.
fn narrow(nvme: &str, depth: u32, weighted: bool) -> Host<FixedTime> {
    let mut config = crate::support::config(nvme, &[]);
    config.queue.depth = depth;
    let mut host = host_with(&config);
    if weighted {
        host.write(registers::CC, 0);
        host.enable_with(
            registers::CC_ENTRY_SIZES | registers::CC_ENABLE | registers::CC_ARBITRATION_WEIGHTED,
        );
        host.settle();
    }
    host
}

/// The queues whose entries were fetched, in order, from `reads` of the bus.
fn fetched(host: &Host<FixedTime>) -> Vec<(u16, usize)> {
    let queue = |at: u64| {
        (1..64u16).find(|id| {
            host.pairs[usize::from(*id)].is_some_and(|pair| {
                (pair.submission..pair.submission + u64::from(pair.entries) * 64).contains(&at)
            })
        })
    };
    host.bus.reads.iter().filter_map(|(at, bytes)| Some((queue(*at)?, bytes / 64))).collect()
}

fn fill(host: &mut Host<FixedTime>, queues: &[u16], count: u64) {
    for queue in queues {
        for block in 0..count {
            host.push(*queue, read(block * 8));
        }
    }
    host.bus.reads.clear();
    // All doorbells at one time, before anything is fetched.
    let now = host.now;
    for queue in queues {
        let tail = host.pairs[usize::from(*queue)].unwrap().tail;
        use ssdyno_pci::PciDevice;
        host.controller.bar_write(now, 0, registers::submission_doorbell(*queue, 0), tail);
    }
    host.write(registers::CSTS, 0);
}

/// Base 2.0c, clause 3.4.4.1.
#[test]
fn round_robin_takes_bursts_of_the_set_length() {
    for (burst, exponent) in [(1, 0), (2, 1), (8, 3), (64, 6)] {
        let mut host = narrow("fetch_entries = 64", 256, false);
        host.create_pair(1, 128);
        host.create_pair(2, 128);
        host.admin(set_feature(feature::ARBITRATION, exponent));
        fill(&mut host, &[1, 2], 64);
        host.settle();
        let order = fetched(&host);
        let expected: Vec<_> = (0..128 / burst).map(|n| (1 + n as u16 % 2, burst)).collect();
        assert_eq!(order, expected, "burst {burst}");
    }
    let mut host = narrow("arbitration_burst = \"unlimited\"\nfetch_entries = 64", 64, false);
    host.create_pair(1, 128);
    host.create_pair(2, 128);
    fill(&mut host, &[1, 2], 50);
    host.settle();
    let order = fetched(&host);
    assert_eq!(order[..2], [(1, 50), (2, 14)], "as many as there are, or fit");
    assert_eq!(
        order[2..].iter().map(|(queue, count)| usize::from(*queue) / 2 * count).sum::<usize>(),
        36
    );
}

/// Base 2.0c, clause 3.4.4: a burst that is longer than a read goes on with the next read.
#[test]
fn a_burst_may_take_several_reads() {
    let mut host = narrow("fetch_entries = 4\narbitration_burst = 16", 64, false);
    host.create_pair(1, 64);
    host.create_pair(2, 64);
    fill(&mut host, &[1, 2], 20);
    host.settle();
    let queues: Vec<u16> = fetched(&host).iter().map(|(queue, _)| *queue).collect();
    assert_eq!(queues, [1, 1, 1, 1, 2, 2, 2, 2, 1, 2]);
}

/// Base 2.0c, clause 3.4.4.2: exact shares while all classes have work.
#[test]
fn weights_are_shares() {
    let mut host = narrow("arbitration_burst = 1", 1, true);
    for (queue, priority) in [(1, 1), (2, 2), (3, 3), (4, 3)] {
        host.create_pair_of(queue, 256, priority);
    }
    // High 6, medium 3, low 2.
    host.admin(set_feature(feature::ARBITRATION, 5 << 24 | 2 << 16 | 1 << 8));
    fill(&mut host, &[1, 2, 3, 4], 200);
    while fetched(&host).len() < 110 {
        assert!(host.step(Time::MAX));
    }
    let order = &fetched(&host)[..110];
    let share = |queue| order.iter().filter(|(q, _)| *q == queue).count();
    assert_eq!([1, 2, 3, 4].map(share), [60, 30, 10, 10]);
}

/// Base 2.0c, clause 3.4.4.2: urgent goes before weighted, admin before urgent (S1-41).
#[test]
fn urgent_starves_the_rest_and_admin_passes_it() {
    let mut host = narrow("arbitration_burst = 4", 1, true);
    host.create_pair_of(1, 64, 1);
    host.create_pair_of(2, 64, 0);
    fill(&mut host, &[1, 2], 40);
    host.admin(set_feature(feature::WRITE_ATOMICITY, 0));
    host.settle();
    let order: Vec<u16> = fetched(&host).iter().map(|(queue, _)| *queue).collect();
    assert_eq!(order.len(), 80);
    assert!(order[..40].iter().all(|queue| *queue == 2), "{order:?}");
    let admin = host.bus.reads.iter().position(|(at, _)| *at < crate::support::BASE + 0x1_0000);
    assert_eq!(admin, Some(1), "the admin command is next, whatever waits");
}

/// Base 2.0c, clause 3.4.4.1: priorities mean nothing in round robin.
#[test]
fn priorities_are_ignored_in_round_robin() {
    let mut host = narrow("arbitration_burst = 1", 1, false);
    host.create_pair_of(1, 64, 0);
    host.create_pair_of(2, 64, 3);
    fill(&mut host, &[1, 2], 20);
    host.settle();
    let order: Vec<u16> = fetched(&host).iter().map(|(queue, _)| *queue).collect();
    assert_eq!(order, [1, 2].repeat(20));
}

/// The device holds no more commands than `queue.depth`; the rest waits in host memory.
#[test]
fn the_controller_holds_as_many_commands_as_it_has_places() {
    let mut host = narrow("arbitration_burst = \"unlimited\"", 5, false);
    host.create_pair(1, 64);
    fill(&mut host, &[1], 40);
    let mut most = 0;
    while host.step(Time::MAX) {
        most = most.max(host.controller.commands_in_flight());
    }
    assert_eq!(most, 5);
    assert_eq!(host.take(1).len(), 40);
}
