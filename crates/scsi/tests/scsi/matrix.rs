//! Tests every field of every command at 0, 1, the last valid value, the value after it and the largest, and every bit
//! by itself, against the rows of the standards. The data of REPORT SUPPORTED OPERATION CODES for each must agree with
//! the actual checks.

use ssdyno_scsi::{ControllerFacts, TranslatorConfig, UnmapBy, lun_field};

use crate::common::{Answer, Host, able, namespace, plain};
use crate::rows::{Field, LIMIT, Row, rows};

/// Blocks of the unit.
const BLOCKS: u64 = 1024;

fn host(controller: ControllerFacts) -> Host {
    let config = TranslatorConfig {
        transfer_blocks_max: LIMIT,
        write_same_blocks_max: LIMIT,
        power_on_attention: false,
        ..TranslatorConfig::default()
    };
    Host::new(controller, namespace(BLOCKS, 512), config)
}

/// Sends a command with as many zeroes as it takes, and makes good what it may have done.
fn send(host: &mut Host, cdb: &[u8]) -> Answer {
    let length = host.translator.data_out_bytes(lun_field(0), cdb).min(1 << 20);
    let answer = host.send(cdb, &vec![0; length as usize]);
    match cdb[0] {
        0x16 | 0x56 => drop(host.send(&[0x17, 0, 0, 0, 0, 0], &[])),
        0x1b => drop(host.send(&[0x1b, 0, 0, 0, 1, 0], &[])),
        _ => {}
    }
    answer
}

/// Byte and bit that the sense data point at in the CDB (SPC-4, table 38); `None` where the command
/// was not refused with INVALID FIELD IN CDB.
fn refused_field(answer: &Answer) -> Option<(u16, u8)> {
    if answer.sense != Some((5, 0x2400)) {
        return None;
    }
    let bytes = &answer.sense_bytes;
    assert_eq!(bytes[15] & 0xc8, 0xc8, "SKSV, C/D and BPV are set");
    Some((u16::from_be_bytes([bytes[16], bytes[17]]), bytes[15] & 7))
}

/// 0, 1, each value at an edge, its neighbours, the largest, and each bit.
fn interesting(field: &Field) -> Vec<u64> {
    let max = field.max();
    let mut values: Vec<u64> = vec![0, 1, max];
    for &(low, high) in &field.values {
        values.extend([low.saturating_sub(1), low, high, high.saturating_add(1)]);
    }
    values.extend((0..field.bits).map(|bit| 1 << bit));
    if field.bits <= 8 {
        values.extend(0..=max);
    }
    values.retain(|&value| value <= max);
    values.sort_unstable();
    values.dedup();
    values
}

/// Fields that a controller without the optional commands does not know: UNMAP of WRITE SAME, and SP.
fn absent(controller: &ControllerFacts, row: &Row, field: &Field) -> bool {
    let optional = controller.optional;
    match (row.opcode, field.name.as_str()) {
        (0x41 | 0x93, "UNMAP") => !(optional.write_zeroes && optional.dataset_management),
        (0x15 | 0x55, "SP") => !optional.saveable_cache,
        _ => false,
    }
}

fn there(controller: &ControllerFacts, row: &Row) -> bool {
    match row.opcode {
        0x04 => controller.optional.format,
        0x42 => controller.optional.dataset_management,
        0x48 => match row.action {
            Some(1) => controller.optional.sanitize_overwrite,
            Some(2) => controller.optional.sanitize_block_erase,
            Some(3) => controller.optional.sanitize_crypto_erase,
            _ => controller.optional.sanitize_block_erase,
        },
        _ => true,
    }
}

/// A controller that can some of it.
fn controllers() -> [ControllerFacts; 3] {
    let mut some = able();
    some.optional.write_zeroes = false;
    some.optional.compare = false;
    some.optional.saveable_cache = false;
    some.optional.sanitize_overwrite = false;
    [able(), plain(), some]
}

/// SAM-5, 5.3 and SPC-4, 4.2.5: what is reserved or not there is refused, and pointed at (4.5.2.4.2); all
/// else is not refused for that field alone.
#[test]
fn every_field_takes_what_it_may_and_nothing_else() {
    let mut wrong = Vec::new();
    for controller in controllers() {
        for row in rows().iter().filter(|row| there(&controller, row)) {
            let mut host = host(controller.clone());
            for field in &row.fields {
                let mut field = field.clone();
                if (row.opcode, field.name.as_str()) == (0x89, "LENGTH") {
                    // MAXIMUM COMPARE AND WRITE LENGTH depends on the controller (SBC-3, 6.6.4).
                    let limits = host.send(&[0x12, 1, 0xb0, 0, 64, 0], &[]).good();
                    field.values = vec![(0, u64::from(limits[5]))];
                }
                for value in interesting(&field) {
                    let mut cdb = row.usual();
                    field.put(&mut cdb, value);
                    let answer = send(&mut host, &cdb);
                    let known = !absent(&controller, row, &field) || value == 0;
                    // Saved values need a cache that can be switched for good.
                    let saved = field.name == "PC" && value == 3 && row.opcode != 0x4d;
                    if saved && !controller.optional.saveable_cache {
                        answer.check(5, 0x3900);
                        continue;
                    }
                    let expected = (!(field.takes(value) && known)).then(|| field.pointer());
                    // More blocks than one command may move may also be more than there are.
                    if field.name == "LENGTH" && value > BLOCKS && answer.sense == Some((5, 0x2100))
                    {
                        continue;
                    }
                    let refused = refused_field(&answer);
                    if refused != expected {
                        let what = format!("{}: {} {value}", row.name, field.name);
                        wrong.push(format!("{what}: {refused:?}, not {expected:?}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// SPC-4, 6.35: exactly the commands of the rows, and for each the usage map that says which bits are
/// looked at, all bits of a field alike.
#[test]
fn usage_maps_agree_with_what_is_checked() {
    let mut wrong = Vec::new();
    for controller in controllers() {
        let mut host = host(controller.clone());
        let all = host.send(&[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0], &[]).good();
        let mut told: Vec<(u8, u16, u16)> = all[4..]
            .chunks_exact(8)
            .map(|row| (row[0], u16::from(row[3]), u16::from(row[7])))
            .collect();
        told.sort_unstable();
        let rows = rows();
        let rows: Vec<&Row> = rows.iter().filter(|row| there(&controller, row)).collect();
        let mut expected: Vec<_> = rows
            .iter()
            .map(|row| (row.opcode, u16::from(row.action.unwrap_or(0)), row.bytes as u16))
            .collect();
        expected.sort_unstable();
        assert_eq!(told, expected);
        for row in rows {
            let options = if row.action.is_some() { 2 } else { 1 };
            let action = row.action.unwrap_or(0);
            let ask = [0xa3, 0x0c, options, row.opcode, 0, action, 0, 0, 0xff, 0xff, 0, 0];
            let one = host.send(&ask, &[]).good();
            let mut map = vec![0; row.bytes];
            (map[0], map[1]) = (row.opcode, action);
            for field in &row.fields {
                let known = !field.refused && !absent(&controller, row, field);
                field.put(&mut map, if known { field.max() } else { 0 });
            }
            if (one[1], &one[4..]) != (3, &map[..]) {
                wrong.push(format!("{}: {:x?}, not {map:x?}", row.name, &one[4..]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// SPC-4, 4.2.5.6: the answer is cut, whatever the allocation length; its own lengths stay.
#[test]
fn every_allocation_length_cuts_the_answer() {
    let mut seen = 0;
    for row in rows() {
        let Some(field) = row.field("ALLOCATION") else { continue };
        let mut host = host(able());
        let whole = send(&mut host, &row.usual()).good();
        let length = whole.len() as u64;
        assert!(length < field.usual || field.usual == length, "{}", row.name);
        for bytes in [0, 1, 3, length - 1, length, length + 1, field.max()] {
            if bytes > field.max() {
                continue;
            }
            let mut cdb = row.usual();
            field.put(&mut cdb, bytes);
            let answer = send(&mut host, &cdb).good();
            assert_eq!(answer, whole[..bytes.min(length) as usize], "{} {bytes}", row.name);
        }
        seen += 1;
    }
    assert_eq!(seen, 16);
}

/// SBC-3, 4.6 and clause 5: the last block, one behind it, and sums that overflow.
#[test]
fn every_range_ends_within_the_capacity() {
    for controller in controllers() {
        for row in rows().iter().filter(|row| there(&controller, row)) {
            let (Some(lba), length) =
                (row.field("LBA"), row.field("LENGTH").or(row.field("COUNT")))
            else {
                continue;
            };
            let mut host = host(controller.clone());
            let mut at = |block: u64, count: u64| {
                let mut cdb = row.usual();
                lba.put(&mut cdb, block);
                if let Some(length) = length {
                    length.put(&mut cdb, count);
                }
                send(&mut host, &cdb)
            };
            at(BLOCKS - 1, 1).good();
            for block in [BLOCKS, BLOCKS + 1, lba.max()] {
                at(block, 1).check(5, 0x2100);
            }
            let Some(length) = length else { continue };
            at(BLOCKS - 1, 2).check(5, 0x2100);
            let most = if length.takes(0) { length.values[0].1.min(255) } else { 255 };
            at(BLOCKS - most, most).good();
            at(BLOCKS - most + 1, most).check(5, 0x2100);
            match length.name.as_str() {
                // 0 stands for 256 (SBC-2, 5.5).
                "COUNT" => {
                    at(BLOCKS - 256, 0).good();
                    at(BLOCKS - 255, 0).check(5, 0x2100);
                }
                // Nothing is moved, but there is no such block.
                _ if length.takes(0) => {
                    at(BLOCKS, 0).good();
                    at(BLOCKS + 1, 0).check(5, 0x2100);
                }
                _ => {}
            }
        }
    }
}

/// SAM-5, 5.11: a LUN without unit accepts three commands; their other fields are ignored.
#[test]
fn a_wrong_unit_answers_three_commands() {
    let mut host = host(able());
    // Another unit, another bus, the well known unit of REPORT LUNS, a second level.
    let luns = [lun_field(1), lun_field(300), 0x0100 << 48, 0xc101 << 48, lun_field(0) | 1 << 32];
    for lun in luns {
        for row in rows() {
            let answer = host.send_as(ssdyno_scsi::Nexus::LOCAL, lun, &row.usual(), &[]);
            match row.opcode {
                0x03 => assert_eq!(answer.good()[12..14], [0x25, 0]),
                0x12 => assert_eq!(answer.good()[0], 0x7f),
                0xa0 => assert_eq!(answer.good()[..4], [0, 0, 0, 8]),
                _ => answer.check(5, 0x2500),
            }
        }
    }
}

/// SPC-4, 4.2.5.1 and 4.2.5.2: operation codes and service actions that are not there.
#[test]
fn unknown_commands_are_refused() {
    for controller in controllers() {
        let rows: Vec<Row> = rows().into_iter().filter(|row| there(&controller, row)).collect();
        let mut host = host(controller);
        for opcode in 0..=255 {
            let actions: Vec<Option<u8>> =
                rows.iter().filter(|row| row.opcode == opcode).map(|row| row.action).collect();
            let mut cdb = [0; 16];
            cdb[0] = opcode;
            if actions.is_empty() {
                host.send(&cdb, &[]).check(5, 0x2000);
                continue;
            }
            for action in (0..32).filter(|_| actions[0].is_some()) {
                cdb[1] = action;
                if !actions.contains(&Some(action)) {
                    assert_eq!(refused_field(&host.send(&cdb, &[])), Some((1, 4)), "{cdb:x?}");
                }
            }
        }
    }
}

/// With UNMAP done by Write Zeroes, the usage maps follow that.
#[test]
fn unmap_follows_how_it_is_done() {
    let mut controller = plain();
    controller.optional.write_zeroes = true;
    let config = TranslatorConfig { unmap_by: UnmapBy::WriteZeroes, ..TranslatorConfig::default() };
    let mut host = Host::new(controller, namespace(BLOCKS, 512), config);
    host.send(&[0; 6], &[]).check(6, 0x2900);
    let map = host.send(&[0xa3, 0x0c, 1, 0x41, 0, 0, 0, 0, 0, 255, 0, 0], &[]).good();
    assert_eq!(map[5], 0x08);
    let map = host.send(&[0xa3, 0x0c, 1, 0x42, 0, 0, 0, 0, 0, 255, 0, 0], &[]).good();
    assert_eq!(map[1], 3);
}
