//! Each cost by itself: its charges, and its effect on the rate (S0-34).

use super::*;

/// A run of `total` reads at `depth` over `port`: its end, and its charges.
fn run(
    config: &HostConfig,
    plan: HostUse,
    port: FixedPort,
    depth: u32,
    total: u64,
) -> (Time, Account) {
    let mut host = Target(Host::new(config, plan, port, 1).unwrap());
    let (end, _) = load(&mut host, READ, depth, total);
    (end, account(&host).clone())
}

/// S1-4: a core stalls for each register that it reads. With AHCI's four a command a core that has no
/// time to spare does so many less; with NVMe's none nothing is charged.
#[test]
fn register_reads_stall_the_core_that_makes_them() {
    let mut config = config();
    config.costs.register_read = "750cycles".parse().unwrap();
    let busy = |reads| {
        let port = FixedPort { reads, ..FixedPort::new(1, 1, false, 64, 64) };
        run(&config, plan(1, ThreadMode::Sync), port, 32, 10_000)
    };
    let ((nvme_end, nvme), (ahci_end, ahci)) = (busy(0), busy(4));
    assert_eq!((nvme.register_reads, ahci.register_reads), (0, 40_000));
    let of = |account: &Account, writes| {
        account.cpu.of(CpuCause::Registers) - Time::from_ns(60) * writes
    };
    assert_eq!(of(&nvme, nvme.register_writes), Time::ZERO);
    assert_eq!(of(&ahci, ahci.register_writes), Time::from_us(3) * 10_000);
    // A core that takes longer for a command finds more of them done at an interrupt.
    let each = (ahci_end - nvme_end).as_ns_f64() / 10_000.0;
    assert!((2_400.0..=3_000.0).contains(&each), "{each} ns");
}

/// S0-34, S1-34, S1-39: a lock that is free costs its instruction; one that is not costs the wait, and
/// the way of the cache line to the next core.
#[test]
fn locks_cost_what_they_are_said_to() {
    let free = |shared| {
        let port = FixedPort::new(1, 1, shared, 64, 1);
        run(&config(), plan(1, ThreadMode::Sync), port, 1, 100)
    };
    let ((with, locked), (without, unlocked)) = (free(true), free(false));
    let all = Time::from_ns(20 * 100);
    assert_eq!((locked.cpu.of(CpuCause::Lock), with - without), (all, all));
    assert_eq!((locked.locks_contended, locked.lock_wait), (0, Time::ZERO));
    // The same is charged where the policy needs no lock: none is taken, so nothing.
    assert_eq!(unlocked.cpu.of(CpuCause::Lock), Time::ZERO);
    let port = FixedPort::new(8, 1, true, 4096, 4096);
    let plan = HostUse { threads: 8, ..plan(8, ThreadMode::Async) };
    let (_, contended) = run(&config(), plan, port, 512, 20_000);
    assert!(contended.locks_contended > 1_000, "{}", contended.locks_contended);
    let handed_over = Time::from_ns(80) * contended.locks_contended;
    let taken = Time::from_ns(20) * 20_000;
    assert_eq!(contended.cpu.of(CpuCause::Lock), contended.lock_wait + handed_over + taken);
}

/// S1-51: through the SCSI translation each command costs its share more, and nothing else.
#[test]
fn the_scsi_translation_is_charged_by_command() {
    let with = |scsi| {
        let port = FixedPort::new(1, 1, false, 64, 1);
        run(&config(), HostUse { scsi, ..plan(1, ThreadMode::Sync) }, port, 1, 100)
    };
    let ((scsi_end, scsi), (direct_end, direct)) = (with(true), with(false));
    let all = Time::from_ns(300 * 100);
    assert_eq!((scsi.cpu.of(CpuCause::Scsi), scsi_end - direct_end), (all, all));
    assert_eq!(scsi.cpu.total() - direct.cpu.total(), all);
}

/// However saturated cores are, by whatever mode, order of locks and way of waiting: none works longer
/// than there is time ([`settled`] looks). A lock that is handed to a core inside an interrupt once
/// counted both at the same time.
#[test]
fn saturated_cores_work_no_longer_than_there_is_time() {
    for order in [LockOrder::Fifo, LockOrder::Random] {
        for waiting in [CompletionWait::Interrupt, CompletionWait::Poll, CompletionWait::Hybrid] {
            for mode in [ThreadMode::Sync, ThreadMode::Async, ThreadMode::Batch] {
                for (shared, depth) in [(true, 4096), (true, 16), (false, 64)] {
                    let mut config = config();
                    config.lock.order = order;
                    let queues = if shared { 1 } else { 8 };
                    let port = FixedPort::new(8, queues, shared, depth, 4096);
                    let plan = HostUse { threads: 12, waiting, ..plan(8, mode) };
                    let (end, account) = run(&config, plan, port, 240, 6_000);
                    let busy: Time = (0..8).map(|core| account.cpu.of_core(core)).sum();
                    assert!(busy > end * 2, "{order:?} {waiting:?} {mode:?}: nearly idle");
                }
            }
        }
    }
}
