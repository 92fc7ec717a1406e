//! Interrupts, masks and coalescing (base 2.0c, clauses 3.1.3.3 and 5.27.1.6 to 5.27.1.7).

use ssdyno_block::Time;
use ssdyno_spec::nvme::{NvmeStatus, cns, feature, registers};

use crate::support::{
    BASE, FixedTime, Host, create_completion, create_submission, host, identify, read, set_feature,
};

fn ready() -> Host<FixedTime> {
    let mut host = host("");
    host.create_pair(1, 64);
    host.bus.interrupts.clear();
    host
}
fn submit(host: &mut Host<FixedTime>, count: u64) {
    for block in 0..count {
        host.push(1, read(block * 8));
    }
    host.ring(1);
}
fn vectors(host: &Host<FixedTime>) -> Vec<u16> {
    host.bus.interrupts.iter().map(|(_, vector)| *vector).collect()
}

/// S1-32: vector 0 for the admin queue, each queue its own.
#[test]
fn each_completion_interrupts_by_the_vector_of_its_queue() {
    let mut host = ready();
    submit(&mut host, 3);
    host.settle();
    assert_eq!(vectors(&host), [1, 1, 1]);
    host.admin(set_feature(feature::WRITE_ATOMICITY, 1));
    assert_eq!(vectors(&host), [1, 1, 1, 0]);
}

/// Base 2.0c, clause 5.4: bit IEN off.
#[test]
fn a_queue_without_interrupts_is_silent() {
    let mut host = ready();
    let (completion, submission) = (BASE + 0x9_0000, BASE + 0xa_0000);
    let mut create = create_completion(2, 8, 9, completion);
    create.dword11 = (9 << 16 | 1).into();
    assert!(host.admin(create).status().is_success());
    assert!(host.admin(create_submission(2, 8, 2, 0, submission)).status().is_success());
    let mut pair = host.pairs[1].unwrap();
    (pair.submission, pair.completion, pair.entries) = (submission, completion, 8);
    host.pairs[2] = Some(pair);
    host.bus.interrupts.clear();
    assert!(host.command(2, read(0)).status().is_success());
    assert!(vectors(&host).is_empty());
}

/// Base 2.0c, clause 5.27.1.6: threshold and time; S1-32.
#[test]
fn coalescing_waits_for_company_or_for_its_time() {
    let mut host = ready();
    // Four entries, or 300 us after the first.
    assert!(
        host.admin(set_feature(feature::INTERRUPT_COALESCING, 3 << 8 | 3)).status().is_success()
    );
    host.bus.interrupts.clear();
    submit(&mut host, 9);
    let start = host.now;
    host.settle();
    assert_eq!(vectors(&host), [1, 1, 1]);
    let times: Vec<Time> = host.bus.interrupts.iter().map(|(at, _)| *at - start).collect();
    assert!(times[1] < Time::from_us(20), "{times:?}");
    assert!(times[2] > Time::from_us(300) && times[2] < Time::from_us(320), "{times:?}");
    host.reap(1);
    // The admin queue is not coalesced, nor is a vector that says so.
    host.admin(set_feature(feature::INTERRUPT_VECTOR, 1 << 16 | 1));
    let start = host.now;
    submit(&mut host, 2);
    host.settle();
    assert_eq!(vectors(&host)[3..], [0, 1, 1]);
    assert!(host.now - start < Time::from_us(50));
    let wrong = host.admin(set_feature(feature::INTERRUPT_VECTOR, 500));
    assert_eq!(wrong.status().kind(), NvmeStatus::INVALID_FIELD);
}

/// Base 2.0c, clauses 3.1.3.3 and 3.1.3.4.
#[test]
fn a_mask_holds_messages_back() {
    let mut host = ready();
    host.write(registers::INTMS, 2);
    assert_eq!(host.read(registers::INTMC), 2);
    submit(&mut host, 2);
    host.settle();
    assert!(vectors(&host).is_empty());
    host.write(registers::INTMC, 2);
    assert_eq!(vectors(&host), [1], "once for both");
    host.reap(1);
    // Entries that were taken meanwhile need no message.
    host.write(registers::INTMS, 2);
    submit(&mut host, 1);
    host.settle();
    host.reap(1);
    host.write(registers::INTMC, 2);
    assert_eq!(vectors(&host), [1]);
    submit(&mut host, 1);
    host.settle();
    assert_eq!(vectors(&host), [1, 1]);
}

/// An entry that another vector reports does not cause a message of this vector.
#[test]
fn what_a_mask_held_back_is_judged_by_its_own_vector() {
    let mut host = ready();
    host.push(0, identify(cns::CONTROLLER, 0));
    host.ring(0);
    host.settle();
    assert_eq!(vectors(&host), [0], "the host leaves it where it is");
    host.write(registers::INTMS, 2);
    submit(&mut host, 1);
    host.settle();
    host.reap(1);
    host.write(registers::INTMC, 2);
    assert_eq!(vectors(&host), [0]);
}

/// PCI 3.0, clause 2.2.6: the pin is released once nothing is left to take, and while it is masked.
#[test]
fn the_pin_is_released_when_all_is_taken() {
    let mut host = ready();
    let released = host.bus.released;
    submit(&mut host, 2);
    host.settle();
    let first = {
        let pair = host.pairs[1].as_mut().unwrap();
        pair.head + 1
    };
    host.write(registers::completion_doorbell(1, 0), first);
    assert_eq!(host.bus.released, released, "one entry is left");
    host.take(1);
    host.write(registers::completion_doorbell(1, 0), first + 1);
    assert_eq!(host.bus.released, released + 1);
    submit(&mut host, 1);
    host.settle();
    host.write(registers::INTMS, 1);
    assert_eq!(host.bus.released, released + 2, "masked");
    let sent = host.bus.interrupts.len();
    host.write(registers::INTMC, 1);
    assert_eq!(host.bus.interrupts.len(), sent + 1, "and asserted again");
}
