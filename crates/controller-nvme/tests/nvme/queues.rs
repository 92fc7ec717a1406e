//! Creating, filling and deleting queues (base 2.0c, clauses 3.3 and 5.4 to 5.7; S1-26, S1-27).

use ssdyno_block::Time;
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry, admin, feature, registers};

use crate::support::{
    BASE, FixedTime, Host, create_completion, create_submission, entry, host, read, set_feature,
};

const PLACE: u64 = BASE + 0x9_0000;

fn status(host: &mut Host<FixedTime>, command: SubmissionEntry) -> NvmeStatus {
    let status = host.admin(command).status();
    assert!(status.is_success() || status.do_not_retry(), "{status:?}");
    status.kind()
}

/// Base 2.0c, clauses 5.4 and 5.5.
#[test]
fn creating_completion_queues_checks_everything() {
    let mut host = host("io_queues = 4\nqueue_entries = 64\nmsix_vectors = 3");
    let create = |id, entries, vector| create_completion(id, entries, vector, PLACE);
    let cases = [
        (create(0, 8, 0), NvmeStatus::QUEUE_ID_INVALID),
        (create(5, 8, 0), NvmeStatus::QUEUE_ID_INVALID),
        (create(1, 1, 0), NvmeStatus::QUEUE_SIZE_INVALID),
        (create(1, 65, 0), NvmeStatus::QUEUE_SIZE_INVALID),
        (create(1, 8, 3), NvmeStatus::INTERRUPT_VECTOR_INVALID),
        (create_completion(1, 8, 0, PLACE + 8), NvmeStatus::PRP_OFFSET_INVALID),
        // Not contiguous, which CAP.CQR rules out.
        (SubmissionEntry { dword11: 2.into(), ..create(1, 8, 0) }, NvmeStatus::INVALID_FIELD),
        (SubmissionEntry { flags: 0x40, ..create(1, 8, 0) }, NvmeStatus::INVALID_FIELD),
        (create(1, 64, 2), NvmeStatus::SUCCESS),
        (create(1, 8, 0), NvmeStatus::QUEUE_ID_INVALID),
        (create(4, 2, 0), NvmeStatus::SUCCESS),
    ];
    for (command, expected) in cases {
        assert_eq!(status(&mut host, command), expected, "{command:?}");
    }
}

/// Base 2.0c, figure 158: with the pin there is vector 0 alone, with MSI what was granted.
#[test]
fn vectors_that_the_host_did_not_grant_are_refused() {
    for (granted, good) in [(1, 1), (2, 2), (u16::MAX, 4)] {
        let mut host = host("io_queues = 4\nmsix_vectors = 4");
        host.bus.vectors = granted;
        for vector in 0..6u16 {
            let create = create_completion(1, 8, vector.into(), PLACE);
            let expected = if vector < good {
                NvmeStatus::SUCCESS
            } else {
                NvmeStatus::INTERRUPT_VECTOR_INVALID
            };
            assert_eq!(status(&mut host, create), expected, "{vector} of {granted}");
            let delete = entry(admin::DELETE_COMPLETION_QUEUE, 0, [1, 0, 0]);
            status(&mut host, delete);
            // Without interrupts the vector means nothing.
            let silent =
                SubmissionEntry { dword11: (u32::from(vector) << 16 | 1).into(), ..create };
            assert_eq!(status(&mut host, silent), NvmeStatus::SUCCESS);
            status(&mut host, delete);
        }
    }
}

/// Base 2.0c, clauses 5.5 and 5.7: completion queues come first and go last.
#[test]
fn submission_queues_need_their_completion_queue() {
    let mut host = host("io_queues = 4\nqueue_entries = 64");
    let create = |id, entries, to| create_submission(id, entries, to, 0, PLACE + 0x1000);
    let delete = |opcode, id: u32| entry(opcode, 0, [id, 0, 0]);
    let (sub, comp) = (admin::DELETE_SUBMISSION_QUEUE, admin::DELETE_COMPLETION_QUEUE);
    let cases = [
        (create(1, 8, 1), NvmeStatus::COMPLETION_QUEUE_INVALID),
        (create_completion(1, 8, 1, PLACE), NvmeStatus::SUCCESS),
        (create(1, 8, 0), NvmeStatus::QUEUE_ID_INVALID),
        (create(1, 8, 9), NvmeStatus::QUEUE_ID_INVALID),
        (create(0, 8, 1), NvmeStatus::QUEUE_ID_INVALID),
        (create(1, 1, 1), NvmeStatus::QUEUE_SIZE_INVALID),
        (create(3, 8, 1), NvmeStatus::SUCCESS),
        (create(3, 8, 1), NvmeStatus::QUEUE_ID_INVALID),
        (create(4, 8, 1), NvmeStatus::SUCCESS),
        (delete(comp, 1), NvmeStatus::QUEUE_DELETION_INVALID),
        (delete(sub, 3), NvmeStatus::SUCCESS),
        (delete(sub, 3), NvmeStatus::QUEUE_ID_INVALID),
        (delete(comp, 1), NvmeStatus::QUEUE_DELETION_INVALID),
        (delete(sub, 4), NvmeStatus::SUCCESS),
        (delete(comp, 1), NvmeStatus::SUCCESS),
        (delete(comp, 1), NvmeStatus::QUEUE_ID_INVALID),
        (delete(comp, 0), NvmeStatus::QUEUE_ID_INVALID),
        (delete(sub, 0), NvmeStatus::QUEUE_ID_INVALID),
    ];
    for (command, expected) in cases {
        assert_eq!(status(&mut host, command), expected, "{command:?}");
    }
}

/// Base 2.0c, clause 3.3.3: entry sizes that nobody offers make no queue.
#[test]
fn entry_sizes_must_be_set() {
    let mut host = host("");
    host.write(registers::CC, 0);
    host.enable_with(registers::CC_ENABLE);
    host.settle();
    let create = create_completion(1, 8, 0, PLACE);
    assert_eq!(host.admin(create).status().kind(), NvmeStatus::QUEUE_SIZE_INVALID);
}

/// Base 2.0c, clauses 5.4 and 5.5 (Invalid Queue Size): each kind of queue needs the size of its own entries, which a host
/// may set just before.
#[test]
fn entry_sizes_are_needed_one_by_one() {
    let mut host = host("");
    host.write(registers::CC, 0);
    let completion_size = registers::CC_ENTRY_SIZES & 0xf << 20;
    host.enable_with(registers::CC_ENABLE | completion_size);
    host.settle();
    assert_eq!(status(&mut host, create_completion(1, 8, 0, PLACE)), NvmeStatus::SUCCESS);
    let create = create_submission(1, 8, 1, 0, PLACE + 0x1000);
    assert_eq!(status(&mut host, create), NvmeStatus::QUEUE_SIZE_INVALID);
    host.write(registers::CC, registers::CC_ENABLE | registers::CC_ENTRY_SIZES);
    assert_eq!(status(&mut host, create), NvmeStatus::SUCCESS);
    // A size that no entry has.
    let odd = (registers::CC_ENTRY_SIZES + (1 << 20)) | registers::CC_ENABLE;
    host.write(registers::CC, odd);
    let create = create_completion(2, 8, 0, PLACE + 0x2000);
    assert_eq!(status(&mut host, create), NvmeStatus::QUEUE_SIZE_INVALID);
}

/// Base 2.0c, clause 5.27.1.5: numbers are less one, and granted once.
#[test]
fn the_number_of_queues_is_negotiated() {
    let mut host = host("io_queues = 7");
    let ask = |submission: u32, completion: u32| {
        set_feature(feature::NUMBER_OF_QUEUES, completion << 16 | submission)
    };
    assert_eq!(host.admin(ask(100, 3)).dword0.get(), 3 << 16 | 6);
    assert_eq!(status(&mut host, ask(0xffff, 1)), NvmeStatus::INVALID_FIELD);
    assert_eq!(host.admin(ask(1, 1)).dword0.get(), 1 << 16 | 1);
    let create = |id| create_completion(id, 8, 0, PLACE);
    assert_eq!(status(&mut host, create(3)), NvmeStatus::QUEUE_ID_INVALID, "two are granted");
    assert_eq!(status(&mut host, create(2)), NvmeStatus::SUCCESS);
    assert_eq!(status(&mut host, ask(3, 3)), NvmeStatus::SEQUENCE_ERROR);
    // The numbers stay until the next reset, also without a queue.
    let delete = entry(admin::DELETE_COMPLETION_QUEUE, 0, [2, 0, 0]);
    assert_eq!(status(&mut host, delete), NvmeStatus::SUCCESS);
    assert_eq!(status(&mut host, ask(3, 3)), NvmeStatus::SEQUENCE_ERROR);
    host.write(registers::CC, 0);
    host.enable();
    assert_eq!(host.admin(ask(3, 3)).dword0.get(), 3 << 16 | 3);
}

/// Base 2.0c, clause 3.3.3.2: the phase tag turns with each wrap, and entries tell the head.
#[test]
fn queues_wrap() {
    let mut host = host("");
    host.create_pair(1, 5);
    let mut heads = Vec::new();
    for _ in 0..13 {
        let completion = host.command(1, read(0));
        assert!(completion.status().is_success());
        heads.push(completion.submission_head.get());
        assert_eq!(completion.submission_queue.get(), 1);
    }
    assert_eq!(heads, [1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3]);
    assert!(host.pairs[1].unwrap().phase);
}

/// Base 2.0c, clause 3.3.1.2.1: a full completion queue holds completions back.
#[test]
fn a_full_completion_queue_waits_for_the_host() {
    let mut host = host("");
    host.create_pair(1, 16);
    // A completion queue of four entries takes three.
    let (small, submission) = (BASE + 0x9_0000, BASE + 0xa_0000);
    host.admin(create_completion(2, 4, 2, small));
    host.admin(create_submission(2, 16, 2, 0, submission));
    let mut pair = host.pairs[1].unwrap();
    (pair.submission, pair.completion) = (submission, small);
    host.pairs[2] = Some(pair);
    let ids: Vec<u16> = (0..10).map(|block| host.push(2, read(block * 8))).collect();
    host.ring(2);
    host.settle();
    host.pairs[2].as_mut().unwrap().entries = 4;
    let mut taken = Vec::new();
    for expected in [3, 3, 3, 1] {
        let some = host.reap(2);
        assert_eq!(some.len(), expected);
        taken.extend(some.iter().map(|c| c.command_id.get()));
        host.settle();
    }
    assert_eq!(taken, ids, "in their order");
    assert_eq!(host.controller.commands_in_flight(), 0);
}

/// Base 2.0c, clause 5.6: what cannot be aborted completes; then nothing follows.
#[test]
fn deleting_a_submission_queue_waits_for_its_commands() {
    let mut host = host("");
    host.create_pair(1, 16);
    for block in 0..4 {
        host.push(1, read(block * 8));
    }
    host.ring(1);
    host.run_until(host.now + Time::from_us(3));
    assert_eq!(host.controller.device().seen.len(), 4);
    // The last two are not fetched when the deletion arrives.
    let deleted = host.admin(entry(admin::DELETE_SUBMISSION_QUEUE, 0, [1, 0, 0]));
    assert!(deleted.status().is_success());
    assert_eq!(host.take(1).len(), 4, "all that were begun");
    host.ring(1);
    assert_eq!(host.controller.counters().bad_doorbells, 1);
    assert!(host.admin(entry(admin::DELETE_COMPLETION_QUEUE, 0, [1, 0, 0])).status().is_success());
    host.create_pair(1, 4);
    assert!(host.command(1, read(0)).status().is_success());
}

/// Base 2.0c, figure 94: the identifier of an outstanding command may not be used again.
#[test]
fn identifiers_are_unique_in_a_queue() {
    let mut host = host("");
    host.create_pair(1, 16);
    host.create_pair(2, 16);
    let same = SubmissionEntry { command_id: 77.into(), ..read(0) };
    for queue in [1, 1, 2] {
        host.push(queue, same);
    }
    host.ring(1);
    host.ring(2);
    host.settle();
    let ends: Vec<NvmeStatus> = host.reap(1).iter().map(|c| c.status()).collect();
    assert_eq!(ends, [NvmeStatus::COMMAND_ID_CONFLICT.with_do_not_retry(), NvmeStatus::SUCCESS]);
    assert!(host.reap(2)[0].status().is_success(), "another queue");
    assert!(host.command(1, same).status().is_success(), "afterwards it is free");
}
