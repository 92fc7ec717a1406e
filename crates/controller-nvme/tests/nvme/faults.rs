//! Injected faults.

use ssdyno_block::{Fault, Time};
use ssdyno_controller_nvme::{ControllerFault, Effect, Stuck};
use ssdyno_device::faults::FaultConfig;
use ssdyno_pci::FaultyDevice;
use ssdyno_spec::nvme::{NvmeStatus, admin, nvm, registers};

use crate::support::{FixedTime, Host, LATENCY, entry, host, read, write};

fn ready() -> Host<FixedTime> {
    let mut host = host("");
    host.create_pair(1, 16);
    host.bus.interrupts.clear();
    host
}
fn fault(effect: Effect, times: u32) -> ControllerFault {
    ControllerFault { opcode: Some(nvm::READ), namespace: 1, blocks: 100..200, times, effect }
}

#[test]
fn a_status_hits_its_blocks_as_often_as_told() {
    let mut host = ready();
    host.controller.inject(fault(Effect::Fail(NvmeStatus::UNRECOVERED_READ), 2));
    for (command, expected) in [
        (read(92), NvmeStatus::SUCCESS),
        (read(93), NvmeStatus::UNRECOVERED_READ),
        (write(100), NvmeStatus::SUCCESS),
        (read(200), NvmeStatus::SUCCESS),
        (read(199), NvmeStatus::UNRECOVERED_READ),
        (read(150), NvmeStatus::SUCCESS),
    ] {
        assert_eq!(host.command(1, command).status(), expected, "{command:?}");
    }
    // A command without a range is hit by its name alone.
    let all = |opcode| ControllerFault {
        opcode,
        blocks: 0..u64::MAX,
        ..fault(Effect::Meet(Fault::Drop), 1)
    };
    host.controller.inject(all(None));
    assert_eq!(host.command(1, entry(nvm::FLUSH, 1, [0; 3])).status(), NvmeStatus::SUCCESS);
    let fails =
        ControllerFault { effect: Effect::Fail(NvmeStatus::WRITE_FAULT), ..all(Some(nvm::FLUSH)) };
    host.controller.inject(fails);
    assert_eq!(host.command(1, entry(nvm::FLUSH, 1, [0; 3])).status(), NvmeStatus::WRITE_FAULT);
}

#[test]
fn a_delay_is_added() {
    let mut host = ready();
    let start = host.now;
    host.command(1, read(100));
    let usual = host.now - start;
    host.controller.inject(fault(Effect::Meet(Fault::Delay(Time::from_ms(3))), 1));
    let start = host.now;
    host.command(1, read(100));
    assert_eq!(host.now - start, usual + Time::from_ms(3));
}

/// A command that is spoilt takes its time, touches the medium, and fails.
#[test]
fn a_spoilt_command_takes_its_time() {
    let mut host = ready();
    let start = host.now;
    host.command(1, read(100));
    let usual = host.now - start;
    host.controller.inject(fault(Effect::Meet(Fault::Error), 1));
    host.controller.inject(ControllerFault {
        opcode: Some(nvm::WRITE),
        ..fault(Effect::Meet(Fault::Error), 1)
    });
    let start = host.now;
    assert_eq!(host.command(1, read(100)).status(), NvmeStatus::UNRECOVERED_READ);
    assert_eq!(host.now - start, usual);
    assert_eq!(host.command(1, write(100)).status(), NvmeStatus::WRITE_FAULT);
    // A reset meanwhile leaves nothing behind.
    host.controller.inject(fault(Effect::Meet(Fault::Error), 1));
    host.push(1, read(100));
    host.ring(1);
    host.run_until(host.now + LATENCY / 2);
    host.write(registers::CC, 0);
    assert_eq!(host.controller.commands_in_flight(), 0);
    host.enable();
    host.create_pair(1, 16);
    assert_eq!(host.command(1, read(100)).status(), NvmeStatus::SUCCESS);
}

/// The lots of a file: 2 000 commands, within five standard deviations, the same for the same seed.
#[test]
fn lots_hit_commands() {
    let config = FaultConfig { error: 0.1, ..FaultConfig::default() };
    let failed = |seed| {
        let mut host = ready();
        assert!(host.controller.fault_plan().is_none());
        host.controller.arm(config.plan(seed, Time::ZERO));
        let failed: Vec<u64> =
            (0..2_000).filter(|n| !host.command(1, read(n % 100)).status().is_success()).collect();
        assert_eq!(host.controller.fault_plan().unwrap().injected.errors, failed.len() as u64);
        failed
    };
    let (first, other) = (failed(1), failed(2));
    assert!(first == failed(1) && first != other);
    for failed in [first, other] {
        assert!((133..267).contains(&failed.len()), "{}", failed.len());
    }
}

#[test]
fn a_lost_command_ends_by_abort_or_reset() {
    let mut host = ready();
    host.controller.inject(fault(Effect::Meet(Fault::Drop), 2));
    let id = host.push(1, read(100));
    host.ring(1);
    host.run_until(host.now + Time::from_s(1));
    assert_eq!((host.take(1), host.controller.commands_in_flight()), (vec![], 1));
    let abort = entry(admin::ABORT, 0, [u32::from(id) << 16 | 1, 0, 0]);
    assert_eq!(host.admin(abort).dword0.get(), 0, "aborted");
    assert_eq!(host.reap(1)[0].status(), NvmeStatus::ABORT_REQUESTED);
    host.push(1, read(100));
    host.ring(1);
    host.settle();
    assert_eq!(host.controller.commands_in_flight(), 1);
    host.write(registers::CC, 0);
    assert_eq!(host.controller.commands_in_flight(), 0);
}

/// Base 2.0c, clause 9.5.
#[test]
fn a_broken_controller_is_repaired_by_a_reset() {
    let mut host = ready();
    host.push(1, read(0));
    host.ring(1);
    host.run_until(host.now + LATENCY / 2);
    host.controller.fail();
    assert!(!host.step(Time::MAX));
    assert_eq!(host.read(registers::CSTS), registers::CSTS_FATAL | registers::CSTS_READY);
    host.write(registers::CC, 0);
    assert_eq!(host.read(registers::CSTS), 0);
    host.run_until(host.now + Time::from_ms(1));
    host.enable();
    host.create_pair(1, 8);
    assert!(host.command(1, read(0)).status().is_success());
}

#[test]
fn a_hanging_controller_may_or_may_not_come_back() {
    let mut host = ready();
    host.controller.hang(Stuck::UntilReset);
    host.push(1, read(0));
    host.ring(1);
    assert!(!host.step(Time::MAX));
    host.write(registers::CC, 0);
    host.enable();
    host.controller.hang(Stuck::ForGood);
    host.write(registers::CC, 0);
    assert_eq!(host.read(registers::CSTS), registers::CSTS_READY, "it does not even reset");
    host.controller.clear_faults();
    host.write(registers::CC, registers::CC_ENTRY_SIZES | registers::CC_ENABLE);
    host.write(registers::CC, 0);
    host.enable();
}

#[test]
fn interrupts_can_be_lost() {
    let mut host = ready();
    host.controller.lose_interrupts(2);
    for _ in 0..3 {
        assert!(host.command(1, read(0)).status().is_success());
    }
    assert_eq!(host.bus.interrupts.len(), 1);
}
