//! The reports of one nexus' actions to others, and the interaction of two kinds of reservation.

use ssdyno_scsi::{Nexus, TranslatorConfig, lun_field};

use crate::common::{Answer, Host, able, namespace};

const LUN: u64 = lun_field(0);
const RESERVE: &[u8] = &[0x16, 0, 0, 0, 0, 0];
const RELEASE: &[u8] = &[0x17, 0, 0, 0, 0, 0];
const RESERVE_10: &[u8] = &[0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const RELEASE_10: &[u8] = &[0x57, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Three initiators without pending reports.
fn three() -> (Host, [Nexus; 3]) {
    let config = TranslatorConfig { power_on_attention: false, ..TranslatorConfig::default() };
    let mut facts = namespace(1024, 512);
    facts.formats[0] = Some((0, 512));
    facts.formats[1] = Some((1, 4096));
    let mut host = Host::new(able(), facts, config);
    let nexuses = [&b"one"[..], b"two", b"three"];
    let nexuses = nexuses.map(|port| host.translator.attach(port).expect("room"));
    (host, nexuses)
}

/// PERSISTENT RESERVE OUT with the key of the nexus and another one.
fn out(host: &mut Host, nexus: Nexus, action: u8, kind: u8, keys: [u8; 2]) -> Answer {
    let mut list = [0; 24];
    (list[7], list[15]) = (keys[0], keys[1]);
    host.send_as(nexus, LUN, &[0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0], &list)
}

fn select(host: &mut Host, nexus: Nexus, flags: u8, pages: &[u8]) -> Answer {
    let list = [&[0; 4], pages].concat();
    host.send_as(nexus, LUN, &[0x15, flags, 0, 0, list.len() as u8, 0], &list)
}

/// The caching page with and without WCE.
fn caching(on: bool) -> [u8; 20] {
    let mut page = [0; 20];
    (page[0], page[1], page[2]) = (0x08, 0x12, u8::from(on) << 2);
    page
}

/// The unit attention that is pending for each nexus.
fn pending(host: &mut Host, nexuses: [Nexus; 3]) -> [Option<u16>; 3] {
    nexuses.map(|nexus| {
        let sense = host.send_as(nexus, LUN, &[3, 0, 0, 0, 18, 0], &[]).good();
        (sense[2] == 6).then(|| u16::from_be_bytes([sense[12], sense[13]]))
    })
}

/// SPC-2, 5.5.1; SPC-3, 5.6.3 with CRH = 0: the two ways of reserving are not mixed, whoever asks.
#[test]
fn reserve_and_persistent_reservations_exclude_each_other() {
    let (mut host, [one, two, three]) = three();
    out(&mut host, one, 6, 0, [0, 1]).good();
    for nexus in [one, two] {
        for cdb in [RESERVE, RELEASE, RESERVE_10, RELEASE_10] {
            host.send_as(nexus, LUN, cdb, &[]).conflict();
        }
    }
    // A reservation on top changes nothing; the last registration that goes does.
    out(&mut host, one, 1, 1, [1, 0]).good();
    host.send_as(one, LUN, RELEASE, &[]).conflict();
    host.send_as(two, LUN, RELEASE_10, &[]).conflict();
    out(&mut host, one, 0, 0, [1, 0]).good();
    host.send_as(two, LUN, RELEASE, &[]).good();
    host.send_as(two, LUN, RESERVE, &[]).good();
    for nexus in [one, two, three] {
        for action in [0, 6] {
            out(&mut host, nexus, action, 0, [0, 9]).conflict();
        }
        out(&mut host, nexus, 3, 0, [1, 0]).conflict();
        for action in 0..4 {
            host.send_as(nexus, LUN, &[0x5e, action, 0, 0, 0, 0, 0, 0, 64, 0], &[]).conflict();
        }
    }
    host.send_as(one, LUN, RESERVE_10, &[]).conflict();
    host.send_as(one, LUN, RELEASE, &[]).good();
    out(&mut host, two, 6, 0, [0, 9]).conflict();
    host.send_as(two, LUN, RELEASE_10, &[]).good();
    out(&mut host, two, 6, 0, [0, 9]).good();
}

/// SBC-3, 4.7 and 5.3: a new number or size of blocks is reported to all initiators except the one that caused it;
/// without a change there is no report.
#[test]
fn a_format_is_told_to_the_others_where_the_capacity_changes() {
    let (mut host, nexuses @ [one, ..]) = three();
    host.send_as(one, LUN, &[0x04, 0, 0, 0, 0, 0], &[]).good();
    assert!(host.translator.replace_namespace(namespace(1024, 512), Some(one)).unwrap());
    assert_eq!(pending(&mut host, nexuses), [None; 3]);
    for (blocks, bytes) in [(128, 4096), (64, 4096)] {
        let facts = namespace(blocks, bytes);
        assert!(host.translator.replace_namespace(facts, Some(one)).unwrap());
        assert_eq!(pending(&mut host, nexuses), [None, Some(0x2a09), Some(0x2a09)]);
    }
    // Nobody here: a host that formats beside the translator.
    assert!(host.translator.replace_namespace(namespace(1024, 512), None).unwrap());
    assert_eq!(pending(&mut host, nexuses), [Some(0x2a09); 3]);
}

/// SPC-4, 6.11: changed mode parameters are reported to all initiators except the one that changed
/// them.
#[test]
fn a_mode_select_is_told_to_the_others_where_it_changes_something() {
    let (mut host, nexuses @ [one, two, _]) = three();
    select(&mut host, one, 0x10, &caching(true)).good();
    assert_eq!(pending(&mut host, nexuses), [None; 3], "it was on");
    select(&mut host, one, 0x10, &caching(false)).good();
    assert!(!host.device.cache_on);
    assert_eq!(pending(&mut host, nexuses), [None, Some(0x2a01), Some(0x2a01)]);
    select(&mut host, two, 0x11, &caching(false)).good();
    assert_eq!(pending(&mut host, nexuses), [None; 3], "only saved");
    // A controller that refuses has changed nothing.
    host.device.faults.extend([ssdyno_spec::nvme::NvmeStatus::SUCCESS]);
    host.device.faults.extend([ssdyno_spec::nvme::NvmeStatus::INTERNAL_ERROR]);
    select(&mut host, one, 0x10, &caching(true)).check(4, 0x4400);
    assert_eq!(pending(&mut host, nexuses), [None; 3]);
}

/// SPC-4, 5.13.11: what a change of persistent reservations means for the others.
#[test]
fn changes_of_reservations_are_told() {
    const RELEASED: Option<u16> = Some(0x2a04);
    const PREEMPTED: Option<u16> = Some(0x2a03);
    const REMOVED: Option<u16> = Some(0x2a05);
    // The type of one initiator's reservation; the sender, its action, type and keys; the receivers
    // of reports.
    for (held, sender, action, kind, keys, heard) in [
        (5, 0, 2, 5, [1, 0], [None, RELEASED, RELEASED]),
        (6, 0, 2, 6, [1, 0], [None, RELEASED, RELEASED]),
        (7, 1, 2, 7, [2, 0], [RELEASED, None, RELEASED]),
        (1, 0, 2, 1, [1, 0], [None, None, None]),
        (5, 0, 0, 0, [1, 0], [None, RELEASED, RELEASED]),
        (3, 0, 0, 0, [1, 0], [None, None, None]),
        (7, 0, 0, 0, [1, 0], [None, None, None]),
        (1, 1, 3, 0, [2, 0], [PREEMPTED, None, PREEMPTED]),
        (1, 1, 4, 1, [2, 1], [REMOVED, None, None]),
        (1, 1, 4, 5, [2, 1], [REMOVED, None, RELEASED]),
        (1, 0, 4, 1, [1, 3], [None, None, REMOVED]),
        (7, 1, 4, 1, [2, 0], [REMOVED, None, REMOVED]),
    ] {
        let (mut host, nexuses) = three();
        for (nexus, key) in nexuses.into_iter().zip(1..) {
            out(&mut host, nexus, 6, 0, [0, key]).good();
        }
        out(&mut host, nexuses[0], 1, held, [1, 0]).good();
        assert_eq!(pending(&mut host, nexuses), [None; 3]);
        out(&mut host, nexuses[sender], action, kind, keys).good();
        let case = format!("type {held}, action {action}, type {kind}, keys {keys:?}");
        assert_eq!(pending(&mut host, nexuses), heard, "{case}");
    }
}

/// SAM-5, 6.3: resets are reported to all initiators, the loss of a nexus to its initiator; aborts of an initiator's
/// own tasks are not reported.
#[test]
fn resets_and_losses_are_told() {
    let (mut host, nexuses @ [one, ..]) = three();
    assert!(host.translator.abort_task_set(one, LUN));
    assert_eq!(pending(&mut host, nexuses), [None; 3]);
    host.translator.nexus_lost(one);
    assert_eq!(pending(&mut host, nexuses), [Some(0x2907), None, None]);
    assert!(host.translator.logical_unit_reset(LUN));
    assert_eq!(pending(&mut host, nexuses), [Some(0x2903); 3]);
    host.translator.target_reset();
    assert_eq!(pending(&mut host, nexuses), [Some(0x2903); 3]);
}

/// SPC-4, 6.11 and 7.5: what MODE SENSE says of saving is what MODE SELECT does.
#[test]
fn saving_is_said_as_it_is_done() {
    for saves in [true, false] {
        let mut controller = able();
        controller.optional.saveable_cache = saves;
        let mut host = Host::small(controller);
        let current = host.send(&[0x1a, 8, 0x08, 0, 255, 0], &[]).good();
        assert_eq!(current[4] & 0x80 != 0, saves, "PS");
        let saved = host.send(&[0x1a, 8, 0xc8, 0, 255, 0], &[]);
        let select = select(&mut host, Nexus::LOCAL, 0x11, &caching(false));
        // REPORT SUPPORTED OPERATION CODES tells SP, too.
        let told = host.send(&[0xa3, 0x0c, 1, 0x15, 0, 0, 0, 0, 0, 64, 0, 0], &[]).good();
        assert_eq!(told[5] & 1 == 1, saves);
        if saves {
            saved.good();
            select.good();
            let command = host.device.seen.last().unwrap();
            assert_eq!((command.dwords[0], command.dwords[1]), (1 << 31 | 6, 0), "SV");
        } else {
            saved.check(5, 0x3900);
            select.check(5, 0x2400);
        }
    }
}
