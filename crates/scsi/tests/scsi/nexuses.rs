//! Several initiators: unit attentions, reservations, aborts.

use ssdyno_scsi::{JobProgress, Nexus, ScsiJob, ScsiRequest, TranslatorConfig, lun_field};

use crate::common::{Answer, Host, able, cdb10, namespace, plain};

const LUN: u64 = lun_field(0);

/// Two initiators that have heard of the power on.
fn two() -> (Host, Nexus, Nexus) {
    let mut host = Host::small(able());
    let first = host.translator.attach(b"\x05first initiator port").expect("room");
    let second = host.translator.attach(b"\x05second one").expect("room");
    (host, first, second)
}

/// PERSISTENT RESERVE OUT.
fn out(host: &mut Host, nexus: Nexus, action: u8, kind: u8, key: u64, new_key: u64) -> Answer {
    let mut list = [0; 24];
    list[..8].copy_from_slice(&key.to_be_bytes());
    list[8..16].copy_from_slice(&new_key.to_be_bytes());
    host.send_as(nexus, LUN, &[0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0], &list)
}

/// PERSISTENT RESERVE IN.
fn get(host: &mut Host, nexus: Nexus, action: u8) -> Answer {
    host.send_as(nexus, LUN, &[0x5e, action, 0, 0, 0, 0, 0, 0x40, 0, 0], &[])
}

fn ready(host: &mut Host, nexus: Nexus) -> Answer {
    host.send_as(nexus, LUN, &[0; 6], &[])
}

fn read(host: &mut Host, nexus: Nexus) -> Answer {
    host.send_as(nexus, LUN, &cdb10(0x28, 0, 1, 1), &[])
}

fn write(host: &mut Host, nexus: Nexus) -> Answer {
    host.send_as(nexus, LUN, &cdb10(0x2a, 0, 1, 1), &[1; 512])
}

/// SAM-5, 5.14: once for each nexus; INQUIRY, REPORT LUNS and REQUEST SENSE do not wait for it.
#[test]
fn power_on_is_told_once() {
    let mut host = Host::new(able(), namespace(1024, 512), TranslatorConfig::default());
    let late = host.translator.attach(b"late").unwrap();
    assert_eq!(host.translator.attach(b"late"), Some(late));
    for nexus in [Nexus::LOCAL, late] {
        host.send_as(nexus, LUN, &[0x12, 0, 0, 0, 36, 0], &[]).good();
        host.send_as(nexus, LUN, &[0xff; 10], &[]).check(6, 0x2900);
        ready(&mut host, nexus).good();
    }
    host.translator.logical_unit_reset(LUN);
    let sense = host.send_as(late, LUN, &[3, 0, 0, 0, 18, 0], &[]).good();
    assert_eq!((sense[2], sense[12], sense[13]), (6, 0x29, 3));
    ready(&mut host, late).good();
    ready(&mut host, Nexus::LOCAL).check(6, 0x2903);
}

/// SAM-5, 5.3.3: what a nexus must know of resets and of its own loss it hears before it hears of a
/// reservation; other conditions wait behind the conflict.
#[test]
fn losses_are_told_before_conflicts() {
    let (mut host, first, second) = two();
    out(&mut host, first, 6, 0, 0, 0xa1).good();
    out(&mut host, first, 1, 3, 0xa1, 0).good();
    write(&mut host, second).conflict();
    host.translator.nexus_lost(second);
    write(&mut host, second).check(6, 0x2907);
    write(&mut host, second).conflict();
    host.translator.logical_unit_reset(LUN);
    write(&mut host, second).check(6, 0x2903);
    ready(&mut host, first).check(6, 0x2903);
    let list = [0, 0, 0, 0, 0x0a, 10, 2, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0];
    host.send_as(first, LUN, &[0x15, 0x10, 0, 0, 16, 0], &list).good();
    host.send_as(first, LUN, &[0x15, 0x10, 0, 0, 0, 0], &[]).good();
    write(&mut host, second).conflict();
}

/// SPC-4, 6.11: the others hear of new mode parameters.
#[test]
fn mode_changes_are_told() {
    let (mut host, first, second) = two();
    let list = [0, 0, 0, 0, 0x0a, 10, 2, 0x10, 8, 0, 0, 0, 0xff, 0xff, 0, 0];
    host.send_as(first, LUN, &[0x15, 0x10, 0, 0, 16, 0], &list).good();
    write(&mut host, first).check(7, 0x2702);
    read(&mut host, first).good();
    write(&mut host, second).check(6, 0x2a01);
    write(&mut host, second).check(7, 0x2702);
    for opcode in [0x41, 0x2e] {
        host.send_as(first, LUN, &cdb10(opcode, 0, 0, 1), &[0; 512]).check(7, 0x2702);
    }
}

#[test]
fn keys_are_registered_and_changed() {
    let (mut host, first, second) = two();
    out(&mut host, first, 6, 0, 0, 0xa1).good();
    out(&mut host, second, 0, 0, 0, 0xb2).good();
    let keys = get(&mut host, first, 0).good();
    assert_eq!(
        keys,
        [0, 0, 0, 2, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0xa1, 0, 0, 0, 0, 0, 0, 0, 0xb2]
    );
    // Truncated: the length still tells all.
    let cut = host.send_as(first, LUN, &[0x5e, 0, 0, 0, 0, 0, 0, 0, 8, 0], &[]).good();
    assert_eq!(cut, [0, 0, 0, 2, 0, 0, 0, 16]);
    out(&mut host, first, 0, 0, 0, 0xa2).conflict();
    out(&mut host, first, 0, 0, 0xa1, 0xa2).good();
    out(&mut host, first, 0, 0, 0xa2, 0).good();
    assert_eq!(get(&mut host, first, 0).good()[4..], [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0xb2]);
    assert_eq!(get(&mut host, first, 2).good(), [0, 8, 0, 0x80, 0xea, 1, 0, 0]);
    for action in 4..32 {
        get(&mut host, first, action).check(5, 0x2400);
    }
    out(&mut host, first, 7, 0, 0, 0).check(5, 0x2400);
    out(&mut host, second, 1, 2, 0xb2, 0).check(5, 0x2400);
    out(&mut host, second, 1, 0x11, 0xb2, 0).check(5, 0x2400);
    let mut list = [0; 24];
    list[20] = 1;
    host.send_as(first, LUN, &[0x5f, 6, 0, 0, 0, 0, 0, 0, 24, 0], &list).check(5, 0x2600);
    host.send_as(first, LUN, &[0x5f, 6, 0, 0, 0, 0, 0, 0, 20, 0], &list).check(5, 0x1a00);
}

/// The six types, for a registered and then an unregistered second initiator.
#[test]
fn reservations_keep_others_out() {
    // (type, registrant reads, registrant writes, stranger reads); a stranger never writes.
    for (kind, reads, writes, stranger_reads) in [
        (1, true, false, true),
        (3, false, false, false),
        (5, true, true, true),
        (6, true, true, false),
        (7, true, true, true),
        (8, true, true, false),
    ] {
        let (mut host, first, second) = two();
        out(&mut host, first, 6, 0, 0, 1).good();
        out(&mut host, second, 6, 0, 0, 2).good();
        out(&mut host, first, 1, kind, 1, 0).good();
        let shown = get(&mut host, first, 1).good();
        let key = if kind >= 7 { 0 } else { 1 };
        assert_eq!(shown[4..], [0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, key, 0, 0, 0, 0, 0, kind, 0, 0]);
        read(&mut host, first).good();
        write(&mut host, first).good();
        let check = |answer: Answer, allowed: bool| {
            if allowed { drop(answer.good()) } else { answer.conflict() }
        };
        check(read(&mut host, second), reads);
        check(write(&mut host, second), writes);
        out(&mut host, second, 0, 0, 2, 0).good();
        check(read(&mut host, second), stranger_reads);
        check(write(&mut host, second), false);
        ready(&mut host, second).good();
        out(&mut host, first, 2, kind, 1, 0).good();
        write(&mut host, second).good();
        assert_eq!(get(&mut host, second, 1).good(), [0, 0, 0, 3, 0, 0, 0, 0]);
    }
}

/// SPC-4, table 66: the reports of operation codes and of task management functions are as reads: a nexus
/// that is not registered gets none under Exclusive Access of any kind, one that is registered under its kinds
/// for registrants. The others that the table names are allowed to everybody.
#[test]
fn reports_of_what_is_supported_are_as_reads() {
    const CODES: &[u8] = &[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0];
    const ONE_CODE: &[u8] = &[0xa3, 0x0c, 1, 0x28, 0, 0, 0, 0, 0, 64, 0, 0];
    const FUNCTIONS: &[u8] = &[0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0];
    const INQUIRY: &[u8] = &[0x12, 0, 0, 0, 36, 0];
    const LUNS: &[u8] = &[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0];
    const LOG_SENSE: &[u8] = &[0x4d, 0, 0x40, 0, 0, 0, 0, 0, 64, 0];
    for (kind, registrant, stranger) in [
        (1, true, true),
        (3, false, false),
        (5, true, true),
        (6, true, false),
        (7, true, true),
        (8, true, false),
    ] {
        let (mut host, first, second) = two();
        out(&mut host, first, 6, 0, 0, 1).good();
        out(&mut host, second, 6, 0, 0, 2).good();
        out(&mut host, first, 1, kind, 1, 0).good();
        let check = |host: &mut Host, nexus, allowed: bool| {
            for cdb in [CODES, ONE_CODE, FUNCTIONS] {
                let answer = host.send_as(nexus, LUN, cdb, &[]);
                if allowed { drop(answer.good()) } else { answer.conflict() }
            }
            for cdb in [INQUIRY, LUNS, LOG_SENSE] {
                host.send_as(nexus, LUN, cdb, &[]).good();
            }
        };
        check(&mut host, first, true);
        check(&mut host, second, registrant);
        out(&mut host, second, 0, 0, 2, 0).good();
        check(&mut host, second, stranger);
        out(&mut host, first, 2, kind, 1, 0).good();
        check(&mut host, second, true);
    }
}

/// An initiator that loses something to another nexus receives a report; the initiator that caused
/// it does not.
#[test]
fn losses_are_told() {
    let (mut host, first, second) = two();
    out(&mut host, first, 6, 0, 0, 1).good();
    out(&mut host, second, 6, 0, 0, 2).good();
    out(&mut host, second, 4, 3, 2, 1).good();
    ready(&mut host, first).check(6, 0x2a05);
    ready(&mut host, second).good();
    assert_eq!(get(&mut host, first, 0).good()[..8], [0, 0, 0, 3, 0, 0, 0, 8]);

    let (mut host, first, second) = two();
    out(&mut host, first, 6, 0, 0, 1).good();
    out(&mut host, second, 6, 0, 0, 2).good();
    out(&mut host, first, 1, 6, 1, 0).good();
    out(&mut host, first, 0, 0, 1, 0).good();
    get(&mut host, first, 1).good();
    ready(&mut host, second).check(6, 0x2a04);
    out(&mut host, second, 3, 0, 2, 0).good();
    assert_eq!(get(&mut host, second, 0).good()[4..], [0; 4]);
}

/// SAM-5, 5.3.3: a reset is told before a reservation conflict, a changed mode page after it.
#[test]
fn attentions_and_conflicts_have_their_order() {
    let (mut host, first, second) = two();
    out(&mut host, first, 6, 0, 0, 1).good();
    out(&mut host, first, 1, 3, 1, 0).good();
    assert!(host.translator.logical_unit_reset(LUN));
    read(&mut host, second).check(6, 0x2903);
    read(&mut host, second).conflict();
    ready(&mut host, first).check(6, 0x2903);
    let mut control = [0; 16];
    control[4..].copy_from_slice(&[0x0a, 10, 0x06, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0]);
    host.send_as(first, LUN, &[0x15, 0x10, 0, 0, 16, 0], &control).good();
    read(&mut host, second).conflict();
    ready(&mut host, second).check(6, 0x2a01);
}

/// SPC-4, 6.15.5.
#[test]
fn full_status() {
    let (mut host, first, second) = two();
    out(&mut host, first, 6, 0, 0, 1).good();
    out(&mut host, second, 6, 0, 0, 2).good();
    out(&mut host, second, 1, 5, 2, 0).good();
    let data = get(&mut host, first, 3).good();
    assert_eq!(data[4..8], ((data.len() - 8) as u32).to_be_bytes());
    let (one, rest) = data[8..].split_at(24 + 21);
    assert_eq!(
        one[..24],
        [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 21]
    );
    assert_eq!(one[24..], *b"\x05first initiator port");
    assert_eq!(rest[8..24], [0, 0, 0, 0, 1, 5, 0, 0, 0, 0, 0, 1, 0, 0, 0, 11]);
}

/// SPC-2, 7.20 and 7.16.
#[test]
fn reserve_and_release() {
    for (reserve, release) in [
        (&[0x16, 0, 0, 0, 0, 0][..], &[0x17, 0, 0, 0, 0, 0][..]),
        (&[0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[0x57, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let (mut host, first, second) = two();
        host.send_as(first, LUN, reserve, &[]).good();
        host.send_as(first, LUN, reserve, &[]).good();
        host.send_as(second, LUN, reserve, &[]).conflict();
        host.send_as(second, LUN, release, &[]).good();
        let mode_sense = [0x1a, 0, 0x3f, 0, 255, 0];
        host.send_as(first, LUN, &mode_sense, &[]).good();
        host.send_as(second, LUN, &mode_sense, &[]).conflict();
        ready(&mut host, second).conflict();
        get(&mut host, second, 0).conflict();
        host.send_as(second, LUN, &[0x12, 0, 0, 0, 36, 0], &[]).good();
        host.send_as(first, LUN, release, &[]).good();
        host.send_as(second, LUN, reserve, &[]).good();
        // A lost nexus, or a reset, gives it back.
        host.translator.nexus_lost(second);
        host.send_as(first, LUN, reserve, &[]).good();
        host.translator.logical_unit_reset(LUN);
        ready(&mut host, second).check(6, 0x2903);
        host.send_as(second, LUN, reserve, &[]).good();
    }
}

/// Registrations outlive the nexus (SPC-4, 5.13.1); the same TransportID finds them again.
#[test]
fn registrations_survive_the_loss_of_the_nexus() {
    let (mut host, first, second) = two();
    out(&mut host, first, 6, 0, 0, 1).good();
    out(&mut host, first, 1, 3, 1, 0).good();
    host.translator.nexus_lost(first);
    read(&mut host, second).conflict();
    let again = host.translator.attach(b"\x05first initiator port").unwrap();
    ready(&mut host, again).check(6, 0x2907);
    write(&mut host, again).good();
}

/// SAM-5, 7: an aborted command ends without a response, and frees its resources.
#[test]
fn aborted_commands_get_no_answer() {
    let (mut host, first, second) = two();
    let data = [1; 512];
    let cdb = cdb10(0x2a, 0, 0, 1);
    let request = |nexus| ScsiRequest { nexus, ..ScsiRequest::local(0, &cdb).with_data(&data) };
    let (mut one, mut two) = (ScsiJob::new(), ScsiJob::new());
    let mut buffer = data.to_vec();

    assert_eq!(host.translator.begin(&mut one, &request(first)), JobProgress::Pending);
    assert_eq!(host.translator.begin(&mut two, &request(second)), JobProgress::Pending);
    assert!(host.translator.abort_task_set(first, LUN));
    assert_eq!(host.round(&mut one, &mut buffer), JobProgress::Aborted);
    assert_eq!(host.round(&mut two, &mut buffer), JobProgress::Done);

    assert_eq!(host.translator.begin(&mut one, &request(first)), JobProgress::Pending);
    one.abort();
    assert_eq!(host.round(&mut one, &mut buffer), JobProgress::Aborted);

    assert_eq!(host.translator.begin(&mut one, &request(first)), JobProgress::Pending);
    host.translator.target_reset();
    assert_eq!(host.round(&mut one, &mut buffer), JobProgress::Aborted);
    assert!(!host.translator.logical_unit_reset(lun_field(3)));

    // PREEMPT AND ABORT.
    for nexus in [first, second] {
        ready(&mut host, nexus).check(6, 0x2903);
    }
    out(&mut host, first, 6, 0, 0, 1).good();
    out(&mut host, second, 6, 0, 0, 2).good();
    assert_eq!(host.translator.begin(&mut one, &request(first)), JobProgress::Pending);
    out(&mut host, second, 5, 3, 2, 1).good();
    assert_eq!(host.round(&mut one, &mut buffer), JobProgress::Aborted);
    // Nobody holds the unit any more.
    host.send_as(second, LUN, &[0x8b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], &data).good();
}

/// A nexus that nobody attached cannot break anything.
#[test]
fn an_unknown_nexus_is_refused() {
    let mut host = Host::small(plain());
    let stranger = Host::small(able()).translator.attach(b"elsewhere").unwrap();
    ready(&mut host, stranger).check(0xb, 0x2907);
    host.translator.nexus_lost(stranger);
    assert!(!host.translator.abort_task_set(stranger, LUN));
}
