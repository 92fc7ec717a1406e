//! All pages: vital product data, mode and log pages with every page control and subpage, and the power
//! conditions with what REQUEST SENSE tells of them.

use ssdyno_scsi::TranslatorConfig;

use crate::common::{Answer, Host, able, cdb10, namespace, plain};

const INVALID_FIELD: u16 = 0x2400;

/// Refused, with the field pointer at a byte and bit of the CDB.
#[track_caller]
fn points_at(answer: Answer, byte: u8, bit: u8) {
    assert_eq!(answer.sense_bytes[15..18], [0xc8 | bit, 0, byte]);
    answer.check(5, INVALID_FIELD);
}

/// SPC-4, 6.6.1 and 7.8: of 256 pages those that page 0 lists, each with its code and length.
#[test]
fn vital_product_data() {
    for controller in [able(), plain()] {
        let mut host = Host::small(controller);
        let list = host.send(&[0x12, 1, 0, 0xff, 0xff, 0], &[]).good()[4..].to_vec();
        assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "ascending");
        for page in 0..=255 {
            let answer = host.send(&[0x12, 1, page, 0xff, 0xff, 0], &[]);
            if !list.contains(&page) {
                points_at(answer, 2, 7);
                continue;
            }
            let data = answer.good();
            assert_eq!(data[..2], [0, page]);
            assert_eq!(usize::from(u16::from_be_bytes([data[2], data[3]])), data.len() - 4);
            for bytes in [0, 1, 3, 4, data.len() - 1, data.len(), data.len() + 1] {
                let cut = host.send(&[0x12, 1, page, 0, bytes as u8, 0], &[]).good();
                assert_eq!(cut, data[..bytes.min(data.len())]);
            }
        }
    }
}

/// SPC-4, 6.13, 6.14 and 7.5.1.
#[test]
fn mode_pages() {
    const PAGES: [u8; 5] = [0x01, 0x08, 0x0a, 0x1a, 0x1c];
    for controller in [able(), plain()] {
        let saved = controller.optional.saveable_cache;
        let mut host = Host::small(controller);
        for control in 0..4_u8 {
            for page in 0..64_u8 {
                for subpage in 0..=255 {
                    let code = control << 6 | page;
                    let ten = [0x5a, 0, code, subpage, 0, 0, 0, 0xff, 0xff, 0];
                    let ten = host.send(&ten, &[]);
                    let six = host.send(&[0x1a, 0, code, subpage, 255, 0], &[]);
                    if control == 3 && !saved {
                        six.check(5, 0x3900);
                        ten.check(5, 0x3900);
                        continue;
                    }
                    // Page 0 without page control is header and descriptor alone.
                    let empty = page == 0 && control == 0;
                    if !(empty || page == 0x3f || PAGES.contains(&page)) {
                        points_at(six, 2, 5);
                        points_at(ten, 2, 5);
                        continue;
                    }
                    if subpage != 0 && (subpage != 0xff || empty) {
                        points_at(six, 3, 7);
                        points_at(ten, 3, 7);
                        continue;
                    }
                    let (six, ten) = (six.good(), ten.good());
                    assert_eq!(usize::from(six[0]), six.len() - 1);
                    assert_eq!(usize::from(ten[0]) << 8 | usize::from(ten[1]), ten.len() - 2);
                    assert_eq!((six[1], six[3], ten[2], &ten[4..8]), (0, 8, 0, &[0, 0, 0, 8][..]));
                    assert_eq!(six[2], ten[3]);
                    assert_eq!(six[4..], ten[8..]);
                    assert_eq!(six[4..12], [0, 0, 4, 0, 0, 0, 2, 0], "1024 blocks of 512 bytes");
                    let mut found = Vec::new();
                    let mut rest = &six[12..];
                    while let [code, length, ..] = *rest {
                        assert_eq!(code & 0x40, 0, "SPF");
                        found.push(code & 0x3f);
                        rest = &rest[usize::from(length) + 2..];
                    }
                    let expected = PAGES.iter().copied();
                    let expected: Vec<u8> =
                        expected.filter(|&p| page == 0x3f || page == p).collect();
                    assert_eq!(found, expected, "ascending");
                }
            }
        }
    }
}

/// SPC-4, 6.8 and 7.3.
#[test]
fn log_pages() {
    let mut host = Host::small(able());
    let list = host.send(&cdb_log(0x40, 0, 0), &[]).good()[4..].to_vec();
    for control in 0..4_u8 {
        for page in 0..64_u8 {
            for subpage in 0..=255 {
                let answer = host.send(&cdb_log(control << 6 | page, subpage, 0), &[]);
                match (control, list.contains(&page), page, subpage) {
                    (0 | 2 | 3, ..) => points_at(answer, 2, 7),
                    (_, false, ..) => points_at(answer, 2, 5),
                    (_, _, _, 0) | (_, _, 0, 0xff) => {
                        let data = answer.good();
                        let spf = if subpage == 0 { 0 } else { 0x40 };
                        assert_eq!(data[..2], [spf | page, subpage]);
                        let length = u16::from_be_bytes([data[2], data[3]]);
                        assert_eq!(usize::from(length), data.len() - 4);
                    }
                    _ => points_at(answer, 3, 7),
                }
            }
        }
    }
    // Parameters in ascending order, from the pointer on; behind the last one it is refused.
    for &page in &list[1..] {
        let mut last = None;
        for pointer in 0..=0xff_u16 {
            let answer = host.send(&cdb_log(0x40 | page, 0, pointer), &[]);
            if answer.status != 0 {
                last = last.or(Some(pointer));
                points_at(answer, 5, 7);
                continue;
            }
            assert_eq!(last, None, "refused before, page {page:#x}");
            let data = answer.good();
            let codes: Vec<u16> =
                parameters(&data).iter().map(|p| u16::from_be_bytes([p[0], p[1]])).collect();
            assert!(codes.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(codes.iter().all(|&code| code >= pointer) && !codes.is_empty());
        }
        assert!(last.is_some());
    }
}

fn cdb_log(code: u8, subpage: u8, pointer: u16) -> [u8; 10] {
    let [high, low] = pointer.to_be_bytes();
    [0x4d, 0, code, subpage, 0, high, low, 0xff, 0xff, 0]
}

/// The log parameters of a page.
fn parameters(data: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut all) = (&data[4..], Vec::new());
    while !rest.is_empty() {
        let (one, next) = rest.split_at(4 + usize::from(rest[3]));
        all.push(one.to_vec());
        rest = next;
    }
    all
}

/// SPC-4, 7.3.20 and 7.3.2.2.2: dates are ASCII lists (01b), counts binary ones (11b).
#[test]
fn dates_are_text() {
    let mut host = Host::small(able());
    let data = host.send(&cdb_log(0x4e, 0, 0), &[]).good();
    let control: Vec<u8> = parameters(&data).iter().map(|p| p[2] & 3).collect();
    assert_eq!(control, [1, 1, 3, 3]);
}

/// SBC-3, 5.25 and SPC-4, 5.12: all power conditions with all modifiers; what REQUEST SENSE says of
/// them until a command needs the medium.
#[test]
fn power_conditions() {
    let mut host = Host::small(able());
    for condition in 0..16_u8 {
        for modifier in 0..16_u8 {
            for low in [0, 1, 2, 3, 4, 5, 6, 7] {
                let (start, eject) = (low & 1 == 1, low & 2 != 0);
                let cdb = [0x1b, 0, 0, modifier, condition << 4 | low, 0];
                let answer = host.send(&cdb, &[]);
                let told = match (condition, modifier) {
                    (0, _) if eject => {
                        points_at(answer, 4, 1);
                        continue;
                    }
                    (0, 0) if start => (0, 0),
                    (0, 0) => (2, 0x0402),
                    (1 | 7, 0) => (0, 0),
                    (2, 0) => (0, 0x5e03),
                    (2, 1) => (0, 0x5e06),
                    (2, 2) => (0, 0x5e08),
                    (3, 0) => (0, 0x5e04),
                    (3, 1) => (0, 0x5e0a),
                    (0..=3 | 7, _) => {
                        points_at(answer, 3, 3);
                        continue;
                    }
                    _ => {
                        points_at(answer, 4, 7);
                        continue;
                    }
                };
                answer.good();
                // Commands that do not need the medium leave the condition as it is.
                host.send(&[0x12, 0, 0, 0, 96, 0], &[]).good();
                for _ in 0..2 {
                    assert_eq!(sense(&mut host), told, "{cdb:x?}");
                }
                let stopped = told.0 == 2;
                let read = host.send(&cdb10(0x28, 0, 0, 1), &[]);
                if stopped {
                    read.check(2, 0x0402)
                } else {
                    drop(read.good())
                }
                assert_eq!(sense(&mut host), if stopped { told } else { (0, 0) });
                host.send(&[0x1b, 0, 0, 0, 1, 0], &[]).good();
            }
        }
    }
}

/// Key and additional sense that REQUEST SENSE returns, in both formats.
fn sense(host: &mut Host) -> (u8, u16) {
    let fixed = host.send(&[3, 0, 0, 0, 252, 0], &[]).good();
    let descriptors = host.send(&[3, 1, 0, 0, 252, 0], &[]).good();
    assert_eq!((fixed[0], descriptors[0]), (0x70, 0x72));
    let told = (fixed[2], u16::from_be_bytes([fixed[12], fixed[13]]));
    assert_eq!(told, (descriptors[1], u16::from_be_bytes([descriptors[2], descriptors[3]])));
    told
}

/// SPC-4, 7.5.11: MRIE 6 reports a predicted failure when it is asked for with REQUEST SENSE; a device
/// that does not answer is not a reason to refuse.
#[test]
fn a_predicted_failure_is_reported_on_request() {
    let mut host = Host::small(able());
    assert_eq!(host.send(&[0x1a, 8, 0x1c, 0, 255, 0], &[]).good()[7] & 0xf, 6);
    assert_eq!(sense(&mut host), (0, 0));
    host.device.smart[0] = 0x04;
    assert_eq!(sense(&mut host), (0, 0x5d00));
    host.device.smart[0] = 0x02;
    assert_eq!(sense(&mut host), (0, 0), "a warm device is none that fails");
    host.device.faults.extend([ssdyno_spec::nvme::NvmeStatus::INVALID_OPCODE; 2]);
    assert_eq!(sense(&mut host), (0, 0));
    // What is pending comes first.
    host.device.smart[0] = 0x04;
    host.translator.logical_unit_reset(ssdyno_scsi::lun_field(0));
    let fixed = host.send(&[3, 0, 0, 0, 252, 0], &[]).good();
    assert_eq!((fixed[2], fixed[12], fixed[13]), (6, 0x29, 3));
    assert_eq!(sense(&mut host), (0, 0x5d00));
}

/// SBC-3, 5.16.2: LOGICAL BLOCKS PER PHYSICAL BLOCK EXPONENT.
#[test]
fn physical_blocks_are_told() {
    for (physical, logical, exponent) in [
        (0, 512, 0),
        (512, 512, 0),
        (4096, 512, 3),
        (4096, 4096, 0),
        (512, 4096, 0),
        (32768, 4096, 3),
    ] {
        let config = TranslatorConfig {
            power_on_attention: false,
            physical_block_bytes: physical,
            ..TranslatorConfig::default()
        };
        let mut host = Host::new(able(), namespace(64, logical), config);
        let data = host.send(&[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0], &[]).good();
        assert_eq!(data[13], exponent, "{physical} {logical}");
    }
}
