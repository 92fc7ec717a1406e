//! Parameter lists of every malformed kind, and the lists that must be taken, after the clauses of
//! SPC-4 and SBC-3.

use ssdyno_scsi::TranslatorConfig;
use ssdyno_spec::nvme::{NvmeStatus, nvm};

use crate::common::{Answer, Host, able, cdb10, cdb16, namespace, plain};

/// INVALID FIELD IN PARAMETER LIST that points at `byte` of the list (SPC-4, table 38).
#[track_caller]
fn points_at(answer: Answer, byte: usize) {
    assert_eq!(answer.sense_bytes[15] & 0xc0, 0x80, "SKSV, and not in the CDB");
    let field = u16::from_be_bytes([answer.sense_bytes[16], answer.sense_bytes[17]]);
    answer.check(5, 0x2600);
    assert_eq!(usize::from(field), byte);
}

/// UNMAP with both lengths of the header and some descriptors; CDB length as it comes.
fn unmap(host: &mut Host, lengths: (u16, u16), ranges: &[(u64, u32)], cut: usize) -> Answer {
    let mut list = Vec::new();
    list.extend_from_slice(&lengths.0.to_be_bytes());
    list.extend_from_slice(&lengths.1.to_be_bytes());
    list.extend_from_slice(&[0; 4]);
    for (lba, blocks) in ranges {
        list.extend_from_slice(&lba.to_be_bytes());
        list.extend_from_slice(&blocks.to_be_bytes());
        list.extend_from_slice(&[0; 4]);
    }
    list.truncate(cut);
    host.device.bytes.fill(0xff);
    host.send(&cdb10(0x42, 0, 0, list.len() as u16), &list)
}

/// Blocks that read as zeroes.
fn unmapped(host: &mut Host) -> Vec<usize> {
    let zero = |(index, block): (usize, &[u8])| block.iter().all(|&b| b == 0).then_some(index);
    host.device.bytes.chunks(512).enumerate().filter_map(zero).collect()
}

/// SBC-3, 5.28.2: a truncated descriptor of any length is ignored; only an incomplete header is an error.
#[test]
fn unmap_ignores_descriptors_that_are_cut_off() {
    let mut host = Host::small(able());
    let two = [(3, 1), (9, 1)];
    // (UNMAP DATA LENGTH, UNMAP BLOCK DESCRIPTOR DATA LENGTH, PARAMETER LIST LENGTH): blocks.
    let cases: &[(u16, u16, usize, &[usize])] = &[
        (38, 32, 40, &[3, 9]),
        (38, 32, 39, &[3]),
        (38, 32, 24, &[3]),
        (38, 32, 23, &[]),
        (38, 32, 8, &[]),
        (38, 31, 40, &[3]),
        (38, 16, 40, &[3]),
        (38, 15, 40, &[]),
        (38, 0, 40, &[]),
        (38, 33, 40, &[3, 9]),
        (38, 0xffff, 40, &[3, 9]),
        (0xffff, 0xffff, 40, &[3, 9]),
        (37, 32, 40, &[3]),
        (22, 32, 40, &[3]),
        (6, 32, 40, &[]),
        (0, 32, 40, &[]),
        (0, 0, 8, &[]),
    ];
    for &(data, descriptors, cut, expected) in cases {
        unmap(&mut host, (data, descriptors), &two, cut).good();
        assert_eq!(unmapped(&mut host), expected, "{data} {descriptors} {cut}");
    }
    for cut in 1..8 {
        unmap(&mut host, (38, 32), &two, cut).check(5, 0x1a00);
    }
    host.device.seen.clear();
    unmap(&mut host, (0, 0), &[], 0).good();
    assert!(host.device.seen.is_empty());
    // The initiator sends less than the CDB says.
    host.send(&cdb10(0x42, 0, 0, 24), &[0; 23]).check(5, 0x1a00);
}

/// SBC-3, 5.28.3 and 6.6.4.
#[test]
fn unmap_checks_all_ranges_first() {
    let mut host = Host::small(able());
    let all = |ranges: &[(u64, u32)]| {
        let bytes = 16 * ranges.len() as u16;
        ((bytes + 6, bytes), usize::from(bytes) + 8)
    };
    for bad in [(1024, 1), (1023, 2), (1025, 0), (u64::MAX, 1), (u64::MAX, 0), (0, u32::MAX)] {
        let ranges = [(3, 1), bad];
        let (lengths, bytes) = all(&ranges);
        unmap(&mut host, lengths, &ranges, bytes).check(5, 0x2100);
        assert!(unmapped(&mut host).is_empty(), "{bad:?}");
    }
    // Overlaps, in any order; no blocks.
    let ranges = [(9, 2), (8, 2), (1024, 0), (0, 0)];
    let (lengths, bytes) = all(&ranges);
    unmap(&mut host, lengths, &ranges, bytes).good();
    assert_eq!(unmapped(&mut host), [8, 9, 10]);
    let many: Vec<(u64, u32)> = (0..257).map(|lba| (lba, 1)).collect();
    let (lengths, bytes) = all(&many[1..]);
    unmap(&mut host, lengths, &many[1..], bytes).good();
    assert_eq!(unmapped(&mut host).len(), 256);
    let (lengths, bytes) = all(&many);
    points_at(unmap(&mut host, lengths, &many, bytes), 2);
    assert!(unmapped(&mut host).is_empty());
}

/// SBC-3, 5.3.2: the headers of FORMAT UNIT.
#[test]
fn format_unit_reads_its_header() {
    let mut host = Host::small(able());
    let mut send = |flags: u8, list: &[u8]| host.send(&[4, flags, 0, 0, 0, 0], list);
    for length in 0..4 {
        send(0x10, &[0; 4][..length]).check(5, 0x1a00);
    }
    for length in 0..8 {
        send(0x30, &[0; 8][..length]).check(5, 0x1a00);
    }
    // FOV 80, DPRY 40, DCRT 20, STPF 10, IP 08, IMMED 02.
    for flags in 0..=255_u8 {
        let options = flags & 0x78;
        let wrong = options & 0x08 != 0 || flags & 0x80 == 0 && options != 0;
        for (cdb, list) in [(0x10, &mut [0; 4][..]), (0x38, &mut [0; 8][..])] {
            list[1] = flags;
            let answer = send(cdb, list);
            if wrong { points_at(answer, 1) } else { drop(answer.good()) }
        }
    }
    // PROTECTION FIELDS USAGE.
    for usage in 1..8 {
        points_at(send(0x10, &[usage, 0, 0, 0]), 0);
    }
    // DEFECT LIST LENGTH: no list is taken.
    points_at(send(0x10, &[0, 0, 1, 0]), 2);
    points_at(send(0x10, &[0, 0, 0, 8]), 2);
    for at in 4..8 {
        let mut list = [0; 8];
        list[at] = 8;
        points_at(send(0x30, &list), 4);
    }
    // P_I_INFORMATION and PROTECTION INTERVAL EXPONENT.
    points_at(send(0x30, &[0, 0, 0, 0x10, 0, 0, 0, 0]), 3);
    points_at(send(0x30, &[0, 0, 0, 0x01, 0, 0, 0, 0]), 3);
}

/// SPC-4, 6.16.3: what the flags of the list mean depends on the service action.
#[test]
fn persistent_reserve_out_ignores_flags_of_other_actions() {
    for action in 0..7 {
        let mut host = Host::small(able());
        let mut send = |action: u8, key: u8, new: u8, flags: u8, bytes: u32| {
            let mut list = [0; 24];
            (list[7], list[15], list[20]) = (key, new, flags);
            let mut cdb = [0x5f, action, 1, 0, 0, 0, 0, 0, 0, 0];
            cdb[5..9].copy_from_slice(&bytes.to_be_bytes());
            host.send(&cdb, &list)
        };
        send(6, 0, 1, 0, 24).good();
        let registers = matches!(action, 0 | 6);
        for (flag, taken) in [(0x01, !registers), (0x04, !registers), (0x08, false)] {
            let answer = send(action, 1, 1, flag, 24);
            if taken {
                answer.good();
                send(6, 0, 1, 0, 24).good();
            } else {
                points_at(answer, 20);
            }
        }
        for bytes in [0, 1, 23, 25, 48, u32::MAX] {
            send(action, 1, 1, 0, bytes).check(5, 0x1a00);
        }
    }
}

/// The list of MODE SELECT (6) or (10): header, descriptor, pages.
fn mode_list(ten: bool, header: [u8; 4], pages: &[u8]) -> Vec<u8> {
    let [medium, device, descriptor, long] = header;
    let mut list = if ten {
        vec![0, 0, medium, device, long, 0, 0, descriptor]
    } else {
        vec![0, medium, device, descriptor]
    };
    list.extend_from_slice(pages);
    list
}

fn mode_select(host: &mut Host, ten: bool, list: &[u8]) -> Answer {
    let length = list.len() as u16;
    if ten {
        host.send(&cdb10(0x55, 0x10, 0, length), list)
    } else {
        host.send(&[0x15, 0x10, 0, 0, length as u8, 0], list)
    }
}

/// SPC-4, 6.11 and 7.5.4; SBC-3, 6.4.1 and 6.4.2.
#[test]
fn mode_select_reads_header_and_descriptor() {
    for (ten, header) in [(false, 4), (true, 8)] {
        let mut host = Host::small(able());
        let whole = mode_list(ten, [0; 4], &[]);
        mode_select(&mut host, ten, &[]).good();
        for cut in 1..header {
            mode_select(&mut host, ten, &whole[..cut]).check(5, 0x1a00);
        }
        mode_select(&mut host, ten, &whole).good();
        // MEDIUM TYPE is zero for direct access; WP and DPOFUA are reserved here.
        let answer = mode_select(&mut host, ten, &mode_list(ten, [1, 0, 0, 0], &[]));
        points_at(answer, if ten { 2 } else { 1 });
        mode_select(&mut host, ten, &mode_list(ten, [0, 0x90, 0, 0], &[])).good();
        // Descriptors of other lengths; those that the list cuts off.
        for length in 1..=40_u8 {
            let answer = mode_select(&mut host, ten, &mode_list(ten, [0, 0, length, 0], &[0; 40]));
            if length == 8 {
                // 32 zeroes are no page.
                points_at(answer, header + 8);
            } else {
                points_at(answer, if ten { 6 } else { 3 });
            }
            let cut = mode_list(ten, [0, 0, length, 0], &[0; 40][..usize::from(length) - 1]);
            mode_select(&mut host, ten, &cut).check(5, 0x1a00);
        }
        // (Blocks, bytes of a block).
        let mut block = |blocks: u32, bytes: u32| {
            let descriptor = [blocks.to_be_bytes(), bytes.to_be_bytes()].concat();
            mode_select(&mut host, ten, &mode_list(ten, [0, 0, 8, 0], &descriptor))
        };
        for blocks in [0, 1024, u32::MAX] {
            block(blocks, 512).good();
            points_at(block(blocks, 520), header + if blocks == 1024 { 0 } else { 5 });
        }
        for blocks in [1, 1023, 1025] {
            points_at(block(blocks, 512), header);
        }
        let refused = if ten {
            host.send(&cdb10(0x55, 0, 0, 8), &whole)
        } else {
            host.send(&[0x15, 0, 0, 0, 4, 0], &whole)
        };
        assert_eq!(refused.sense_bytes[15..18], [0xcc, 0, 1], "PF");
        refused.check(5, 0x2400);
    }
}

/// SPC-4, 7.5.2: LONGLBA.
#[test]
fn mode_select_reads_long_descriptors() {
    let mut host = Host::small(able());
    let mut block = |blocks: u64, bytes: u32| {
        let mut descriptor = blocks.to_be_bytes().to_vec();
        descriptor.extend_from_slice(&u64::from(bytes).to_be_bytes());
        mode_select(&mut host, true, &mode_list(true, [0, 0, 16, 1], &descriptor))
    };
    for blocks in [0, 1024, u64::MAX] {
        block(blocks, 512).good();
    }
    for blocks in [1, 1025, u64::from(u32::MAX), 1 << 40] {
        points_at(block(blocks, 512), 8);
    }
    points_at(block(0, 4096), 8 + 12);
    let short = mode_list(true, [0, 0, 8, 1], &[0; 8]);
    points_at(mode_select(&mut host, true, &short), 6);
}

/// SPC-4, 6.11: each bit of each page that MODE SENSE does not call changeable must be as it is.
#[test]
fn mode_select_changes_only_what_is_changeable() {
    for (controller, ten) in [(able(), false), (able(), true), (plain(), false), (plain(), true)] {
        let mut host = Host::small(controller);
        let start = if ten { 8 } else { 4 };
        let mut all = Vec::new();
        for page in [0x01, 0x08, 0x0a, 0x1a, 0x1c] {
            let current = host.send(&[0x1a, 8, page, 0, 255, 0], &[]).good()[4..].to_vec();
            let mask = host.send(&[0x1a, 8, 0x40 | page, 0, 255, 0], &[]).good()[4..].to_vec();
            assert_eq!((current.len(), current[0] & 0x3f), (usize::from(current[1]) + 2, page));
            all.extend_from_slice(&current);
            let mut select =
                |bytes: &[u8]| mode_select(&mut host, ten, &mode_list(ten, [0; 4], bytes));
            select(&current).good();
            for cut in 1..current.len() {
                select(&current[..cut]).check(5, 0x1a00);
            }
            for length in [0, current[1] - 1, current[1] + 1, 255] {
                let mut wrong = current.clone();
                wrong[1] = length;
                points_at(select(&wrong), start + 1);
            }
            // SPF: there are no subpages.
            let mut subpage = current.clone();
            subpage[0] |= 0x40;
            points_at(select(&subpage), start);
            for at in 2..current.len() {
                for bit in 0..8 {
                    let mut changed = current.clone();
                    changed[at] ^= 1 << bit;
                    let answer = select(&changed);
                    if mask[at] >> bit & 1 == 1 {
                        answer.good();
                        // With D_SENSE on, that is how the next refusal looks.
                        select(&current).good();
                    } else {
                        points_at(answer, start + at);
                    }
                }
            }
        }
        let mut select = |bytes: &[u8]| mode_select(&mut host, ten, &mode_list(ten, [0; 4], bytes));
        select(&all).good();
        // All pages that there are not.
        for page in (0..0x3f).filter(|page| ![0x01, 0x08, 0x0a, 0x1a, 0x1c].contains(page)) {
            points_at(select(&[page, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), start);
        }
        // The first page stays as it was when the second is wrong.
        let mut two = all[12 + 20..][..12].to_vec();
        two[4] ^= 8;
        two.extend_from_slice(&[0x3e, 0]);
        points_at(select(&two), start + 12);
        host.send(&cdb10(0x2a, 0, 0, 1), &[1; 512]).good();
    }
}

/// SBC-3, 5.45 and 5.46: whatever the way, the block is what is read afterwards.
#[test]
fn write_same_writes_the_same() {
    let mut some = able();
    some.optional.dataset_management = false;
    for controller in [able(), plain(), some] {
        let unmaps = controller.optional.write_zeroes && controller.optional.dataset_management;
        let mut host = Host::small(controller);
        for byte in [0, 0xa5] {
            for (flags, sixteen) in
                [(0, false), (8, false), (0, true), (8, true), (1, true), (9, true)]
            {
                host.device.bytes.fill(0x77);
                let block = [byte; 512];
                let data = if flags & 1 == 1 { &[][..] } else { &block[..] };
                let answer = if sixteen {
                    host.send(&cdb16(0x93, flags, 5, 300), data)
                } else {
                    host.send(&cdb10(0x41, flags, 5, 300), data)
                };
                if flags & 8 != 0 && !unmaps {
                    assert_eq!(answer.sense_bytes[15..18], [0xcb, 0, 1], "UNMAP");
                    answer.check(5, 0x2400);
                    continue;
                }
                answer.good();
                let written = if flags & 1 == 1 { 0 } else { byte };
                let bytes = &host.device.bytes;
                assert!(bytes[5 * 512..305 * 512].iter().all(|&b| b == written), "{flags} {byte}");
                assert!(bytes[..5 * 512].iter().chain(&bytes[305 * 512..]).all(|&b| b == 0x77));
            }
        }
        // One block, not less and not more.
        for bytes in [0, 1, 511, 513, 1024] {
            host.send(&cdb10(0x41, 0, 5, 2), &vec![0; bytes]).check(5, 0x0e03);
        }
    }
}

/// SBC-3, 5.45 and 6.6.4: without a limit there is no WSNZ, and no length means to the end.
#[test]
fn write_same_of_no_blocks_goes_to_the_end() {
    for limit in [0, 32768] {
        let config = TranslatorConfig {
            power_on_attention: false,
            write_same_blocks_max: limit,
            ..TranslatorConfig::default()
        };
        for controller in [able(), plain()] {
            let mut host = Host::new(controller, namespace(1024, 512), config);
            let limits = host.send(&[0x12, 1, 0xb0, 0, 64, 0], &[]).good();
            assert_eq!(
                (limits[4] & 1, &limits[36..44]),
                (u8::from(limit > 0), &u64::from(limit).to_be_bytes()[..])
            );
            for data in [[0xa5; 512], [0; 512]] {
                host.device.bytes.fill(0x77);
                let answer = host.send(&cdb10(0x41, 0, 1000, 0), &data);
                if limit > 0 {
                    answer.check(5, 0x2400);
                    continue;
                }
                answer.good();
                let (before, after) = host.device.bytes.split_at(1000 * 512);
                assert!(before.iter().all(|&b| b == 0x77) && after.iter().all(|&b| b == data[0]));
                // At the end there is nothing to write; beyond it is out of range.
                host.send(&cdb16(0x93, 0, 1024, 0), &data).good();
                host.send(&cdb16(0x93, 0, 1025, 0), &data).check(5, 0x2100);
            }
        }
    }
}

/// The verified data is on the medium (SBC-3, 4.5): nothing is compared with a volatile cache.
#[test]
fn verification_reaches_the_medium() {
    const FUA: u32 = 1 << 30;
    let mut some = able();
    some.optional.verify = false;
    some.optional.compare = false;
    for controller in [able(), some] {
        let mut host = Host::new(
            controller,
            namespace(1024, 512),
            TranslatorConfig { power_on_attention: false, ..TranslatorConfig::default() },
        );
        for (opcode, check) in [(0x2e, 0), (0x2e, 2), (0x2f, 0), (0x2f, 2), (0x2f, 6)] {
            host.device.seen.clear();
            host.send(&cdb10(opcode, check, 5, 1), &[0; 512]).good();
            assert!(!host.device.seen.is_empty());
            for command in &host.device.seen {
                assert!(!command.admin && command.opcode != nvm::FLUSH);
                assert_eq!(command.dwords[2] & FUA, FUA, "{opcode:x} {check}: {command:?}");
            }
        }
    }
}

/// SBC-3, 5.2 and 5.31: INFORMATION is the offset of the first byte that does not match, also if the controller, which
/// does not report it, has compared; nothing is written.
#[test]
fn a_miscompare_says_where() {
    let (mut short, mut some) = (able(), able());
    short.transfer_bytes_max = 4096;
    short.compare_write_blocks_max = 64;
    some.optional.fused_compare_write = false;
    for controller in [able(), plain(), short, some] {
        let mut host = Host::small(controller);
        for (blocks, wrong) in [(1_usize, 0_usize), (1, 511), (8, 700), (8, 4095)] {
            let old: Vec<u8> = (0..blocks * 512).map(|at| (at / 3) as u8).collect();
            host.send(&cdb16(0x8a, 0, 7, blocks as u32), &old).good();
            let mut expected = old.clone();
            expected[wrong] ^= 0x40;
            let last = expected.len() - 1;
            expected[last] ^= 0x80;
            let mut compare_and_write = cdb16(0x89, 0, 7, 0);
            compare_and_write[13] = blocks as u8;
            let both = [expected.clone(), vec![0xee; blocks * 512]].concat();
            for (cdb, data) in [
                (cdb10(0x2f, 2, 7, blocks as u16).to_vec(), &expected),
                (cdb16(0x8f, 2, 7, blocks as u32).to_vec(), &expected),
                (compare_and_write.to_vec(), &both),
            ] {
                let answer = host.send(&cdb, data);
                let bytes = &answer.sense_bytes;
                assert_eq!(bytes[0], 0xf0, "VALID: {:x}, {blocks} blocks", cdb[0]);
                let told = u32::from_be_bytes([bytes[3], bytes[4], bytes[5], bytes[6]]);
                assert_eq!(told as usize, wrong, "{:x}, {blocks} blocks", cdb[0]);
                answer.check(0xe, 0x1d00);
            }
            assert_eq!(host.send(&cdb16(0x88, 0, 7, blocks as u32), &[]).good(), old);
        }
    }
}

/// Where the blocks cannot be read again, or are by now what was expected, it is said without an offset.
#[test]
fn a_miscompare_that_cannot_be_found_is_still_one() {
    let mut host = Host::small(able());
    for again in [NvmeStatus::from_bits(0x281), NvmeStatus::SUCCESS] {
        let differs = NvmeStatus::COMPARE_FAILURE.with_do_not_retry();
        host.device.faults.extend([differs, again]);
        let answer = host.send(&cdb10(0x2f, 2, 7, 1), &[0; 512]);
        assert_eq!(answer.sense_bytes[0], 0x70);
        answer.check(0xe, 0x1d00);
        assert!(host.device.faults.is_empty(), "the blocks were read again");
    }
}
