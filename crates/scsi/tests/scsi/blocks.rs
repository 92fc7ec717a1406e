//! Data land where the CDB says, whatever the controller can do.

use ssdyno_scsi::{
    ControllerFacts, JobProgress, Nexus, ScsiJob, ScsiRequest, TranslatorConfig, UnmapBy, cdb,
    lun_field, unmap_list,
};
use ssdyno_spec::nvme::{NvmeStatus, nvm};

use crate::common::{
    Answer, Host, INVALID_FIELD, OUT_OF_RANGE, able, answer, cdb10, cdb12, cdb16, namespace, plain,
};

/// Blocks of the small host.
const BLOCKS: u64 = 1024;

/// `blocks` blocks, each byte of which depends on its place and `seed`.
fn pattern(blocks: usize, seed: u8) -> Vec<u8> {
    (0..blocks * 512).map(|i| (i as u8).wrapping_mul(7) ^ (i >> 9) as u8 ^ seed).collect()
}

/// Controllers with all optional commands, with none, and with some.
fn controllers() -> Vec<ControllerFacts> {
    let (mut some, mut more) = (able(), able());
    some.optional.compare = false;
    some.optional.fused_compare_write = false;
    more.optional.verify = false;
    more.transfer_bytes_max = 4096;
    more.compare_write_blocks_max = 2;
    vec![able(), plain(), some, more]
}

/// CDBs of all lengths with a range: operation codes of 6, 10, 12 and 16 bytes.
fn forms(opcodes: [u8; 4], lba: u32, blocks: u16) -> Vec<Vec<u8>> {
    let mut all = vec![
        cdb10(opcodes[1], 0, lba, blocks).to_vec(),
        cdb12(opcodes[2], 0, lba, u32::from(blocks)).to_vec(),
        cdb16(opcodes[3], 0, u64::from(lba), u32::from(blocks)).to_vec(),
    ];
    if opcodes[0] != 0 && (1..=256).contains(&blocks) {
        let l = lba.to_be_bytes();
        all.push(vec![opcodes[0], l[1], l[2], l[3], blocks as u8, 0]);
    }
    all
}

const READ: [u8; 4] = [0x08, 0x28, 0xa8, 0x88];
const WRITE: [u8; 4] = [0x0a, 0x2a, 0xaa, 0x8a];
const VERIFY: [u8; 4] = [0, 0x2f, 0xaf, 0x8f];
const WRITE_AND_VERIFY: [u8; 4] = [0, 0x2e, 0xae, 0x8e];

#[test]
fn reads_and_writes_of_all_lengths() {
    for controller in controllers() {
        let mut host = Host::small(controller);
        for blocks in [1, 2, 7, 8, 9, 64, 255, 256] {
            for (seed, write) in forms(WRITE, 1000 - u32::from(blocks), blocks).iter().enumerate() {
                let data = pattern(usize::from(blocks), seed as u8);
                host.send(write, &data).good();
                for read in forms(READ, 1000 - u32::from(blocks), blocks) {
                    assert_eq!(host.send(&read, &[]).good(), data);
                }
            }
        }
        let end = host.device.range(999, 2).unwrap();
        assert!(end[..512].iter().any(|&b| b != 0) && end[512..].iter().all(|&b| b == 0));
    }
}

/// SBC-3: no blocks is not an error; a range that ends behind the last block is.
#[test]
fn ranges_are_checked() {
    for controller in controllers() {
        let mut host = Host::small(controller);
        let (key, additional) = OUT_OF_RANGE;
        let mut opcodes = vec![READ, WRITE, VERIFY, WRITE_AND_VERIFY];
        // PRE-FETCH and SYNCHRONIZE CACHE have two forms.
        opcodes.extend([[0, 0x34, 0, 0x90], [0, 0x35, 0, 0x91]]);
        for opcodes in opcodes {
            let send = |host: &mut Host, lba: u32, blocks: u16| -> Vec<Answer> {
                let forms = forms(opcodes, lba, blocks).into_iter().filter(|form| form[0] != 0);
                let data = vec![0xa6; usize::from(blocks) * 512];
                forms.map(|form| host.send(&form, &data)).collect()
            };
            for answer in send(&mut host, 0, 0).into_iter().chain(send(&mut host, 1024, 0)) {
                answer.good();
            }
            for (lba, blocks) in
                [(1025, 0), (1024, 1), (1023, 2), (769, 256), (1 << 31, 0), (1 << 31, 5)]
            {
                let form6 = |answer: &Answer| answer.status == 0 && lba == 1 << 31;
                for answer in send(&mut host, lba, blocks) {
                    // The 6 byte form has no such block.
                    if !form6(&answer) {
                        answer.check(key, additional);
                    }
                }
            }
        }
        for lba in [1 << 63, u64::MAX] {
            for opcode in [0x88, 0x8a, 0x8b, 0x8e, 0x8f, 0x90] {
                host.send(&cdb16(opcode, 0, lba, 0), &[]).check(key, additional);
                host.send(&cdb16(opcode, 0, lba, 1), &[0; 512]).check(key, additional);
            }
        }
    }
}

/// SBC-3, 6.6.3: MAXIMUM TRANSFER LENGTH.
#[test]
fn long_transfers_are_refused() {
    let config = TranslatorConfig {
        transfer_blocks_max: 100,
        power_on_attention: false,
        ..TranslatorConfig::default()
    };
    let mut host = Host::new(able(), namespace(BLOCKS, 512), config);
    host.send(&cdb10(0x28, 0, 0, 100), &[]).good();
    let answer = host.send(&cdb10(0x28, 0, 0, 101), &[]);
    assert_eq!(answer.sense_bytes[15..18], [0xcf, 0, 7], "points at the length");
    answer.check(5, 0x2400);
    host.send(&cdb16(0x8a, 0, 0, 101), &vec![0; 101 * 512]).check(5, 0x2400);
    // As much as one NVMe command.
    let config = TranslatorConfig { transfer_blocks_max: 0, power_on_attention: false, ..config };
    let mut host = Host::new(able(), namespace(BLOCKS, 512), config);
    host.send(&cdb10(0x28, 0, 0, 256), &[]).good();
    host.send(&cdb10(0x28, 0, 0, 257), &[]).check(5, 0x2400);
}

/// A transfer above MDTS becomes several commands, each inside it.
#[test]
fn transfers_are_split_at_mdts() {
    let mut controller = able();
    controller.transfer_bytes_max = 8192;
    let mut host = Host::small(controller);
    host.send(&cdb16(0x88, 8, 5, 40), &[]).good();
    let seen: Vec<_> = host.device.seen.iter().map(|c| (c.lba(), c.blocks())).collect();
    assert_eq!(seen, [(5, 16), (21, 16), (37, 8)]);
    assert!(host.device.seen.iter().all(|c| c.dwords[2] >> 30 == 1), "FUA");
    assert_eq!(host.translator.counts().nvme_commands, 3);
}

/// RDPROTECT and its kin need protection information, which there is not (S1-46).
#[test]
fn protection_fields_are_refused() {
    let mut host = Host::small(able());
    let (key, additional) = INVALID_FIELD;
    for value in 1..8 {
        for opcode in [0x28, 0x2a, 0x2e, 0x2f, 0x41] {
            let answer = host.send(&cdb10(opcode, value << 5, 0, 1), &[0; 512]);
            answer.check(key, additional);
        }
        for opcode in [0x88, 0x8a, 0x8b, 0x8e, 0x8f, 0x93] {
            let answer = host.send(&cdb16(opcode, value << 5, 0, 1), &[0; 512]);
            answer.check(key, additional);
        }
    }
}

#[test]
fn verify_compares_where_it_is_told() {
    for controller in controllers() {
        let mut host = Host::small(controller);
        for blocks in [1, 9, 256] {
            let mut data = pattern(usize::from(blocks), 9);
            host.send(&cdb10(0x2a, 0, 3, blocks), &data).good();
            let offset = data.len() - 27;
            for form in forms(VERIFY, 3, blocks) {
                let mut compare = form.clone();
                compare[1] |= 2;
                host.send(&compare, &data).good();
                data[offset] ^= 0x55;
                host.send(&compare, &data).check(0xe, 0x1d00);
                data[offset] ^= 0x55;
                host.send(&form, &[]).good();
                compare[1] = 0x10 | 4;
                host.send(&compare, &data).check(5, 0x2400);
            }
        }
        // BYTCHK 3: one block against all.
        host.send(&cdb10(0x2a, 0, 0, 4), &[0x5a; 2048]).good();
        host.send(&cdb10(0x2f, 6, 0, 4), &[0x5a; 512]).good();
        let mut wrong = [0x5a; 512];
        wrong[500] = 0;
        let answer = host.send(&cdb10(0x2f, 6, 0, 4), &wrong);
        assert_eq!(answer.sense_bytes[..7], [0xf0, 0, 0xe, 0, 0, 1, 0xf4], "INFORMATION: 500");
        answer.check(0xe, 0x1d00);
    }
}

#[test]
fn write_and_verify() {
    for controller in controllers() {
        let mut host = Host::small(controller);
        for blocks in [0, 1, 9, 256] {
            for (seed, form) in forms(WRITE_AND_VERIFY, 17, blocks).into_iter().enumerate() {
                let data = pattern(usize::from(blocks), seed as u8);
                let mut compare = form.clone();
                compare[1] = 0x12;
                for form in [form, compare] {
                    host.send(&form, &data).good();
                    let there = host.device.range(17, u64::from(blocks)).unwrap();
                    assert_eq!(there, data);
                }
            }
        }
    }
}

/// A write for which fewer data come than it says: whole blocks are written, parts are refused.
#[test]
fn short_writes() {
    for controller in controllers() {
        let mut host = Host::small(controller);
        for (opcode, flags) in [(0x2a, 0), (0x2e, 0), (0x2e, 2)] {
            host.device.bytes.fill(b'a');
            host.send(&cdb10(opcode, flags, 0, 2), &[b'b'; 512]).good();
            assert!(host.device.bytes[..512].iter().all(|&b| b == b'b'));
            assert!(host.device.bytes[512..].iter().all(|&b| b == b'a'));
            host.send(&cdb10(opcode, flags, 4, 1), &[]).good();
            host.send(&cdb10(opcode, flags, 4, 1), &[b'b'; 200]).check(5, 0x0e03);
            host.send(&cdb10(opcode, flags, 8, 1), &[b'b'; 1024]).good();
            assert!(host.device.bytes[9 * 512..].iter().all(|&b| b == b'a'));
        }
    }
}

#[test]
fn compare_and_write() {
    for controller in controllers() {
        let most = if !controller.optional.fused_compare_write {
            255
        } else {
            controller.compare_write_blocks_max.min(255) as u8
        };
        let mut host = Host::small(controller);
        let limits = host.send(&[0x12, 1, 0xb0, 0, 64, 0], &[]).good();
        assert_eq!(limits[5], most);
        let mut cdb = cdb16(0x89, 0, 6, 0);
        for blocks in [1, 2, 50, 255_usize] {
            cdb[13] = blocks as u8;
            let old = pattern(blocks, 1);
            host.device.range(6, blocks as u64).unwrap().copy_from_slice(&old);
            let mut both = [old.clone(), pattern(blocks, 2)].concat();
            if blocks > usize::from(most) {
                host.send(&cdb, &both).check(5, 0x2400);
                continue;
            }
            both[blocks * 512 - 27] ^= 1;
            host.send(&cdb, &both).check(0xe, 0x1d00);
            assert_eq!(host.device.range(6, blocks as u64).unwrap(), old);
            both[blocks * 512 - 27] ^= 1;
            host.send(&cdb, &both).good();
            assert_eq!(host.device.range(6, blocks as u64).unwrap(), &both[blocks * 512..]);
            host.send(&cdb, &both[512..]).check(5, 0x0e03);
        }
        cdb[13] = 0;
        host.send(&cdb, &[]).good();
        cdb[2..10].copy_from_slice(&BLOCKS.to_be_bytes());
        cdb[13] = 1;
        host.send(&cdb, &[0; 1024]).check(5, 0x2100);
    }
}

#[test]
fn or_write() {
    for controller in controllers() {
        let mut host = Host::small(controller);
        for blocks in [1, 9, 256_u32] {
            let bytes = blocks as usize * 512;
            host.device.bytes.fill(0);
            host.send(&cdb16(0x8b, 0, 2, blocks), &vec![0xa5; bytes]).good();
            assert_eq!(host.device.range(2, u64::from(blocks)).unwrap(), vec![0xa5; bytes]);
            host.send(&cdb16(0x8b, 0x18, 2, blocks), &vec![0x5a; bytes]).good();
            assert_eq!(host.device.range(2, u64::from(blocks)).unwrap(), vec![0xff; bytes]);
        }
        assert!(host.device.range(0, 2).unwrap().iter().all(|&b| b == 0));
    }
}

#[test]
fn write_same() {
    for controller in controllers() {
        let unmaps = controller.optional.write_zeroes;
        let mut host = Host::small(controller);
        let block: Vec<u8> = pattern(1, 3);
        for blocks in [1, 2, 9, 256, 1024_u16] {
            for form in [
                cdb10(0x41, 0, 1024 - u32::from(blocks), blocks).to_vec(),
                cdb16(0x93, 0, 1024 - u64::from(blocks), u32::from(blocks)).to_vec(),
            ] {
                for data in [&block[..], &[0; 512]] {
                    host.device.bytes.fill(0xff);
                    host.send(&form, data).good();
                    let there = host.device.range(1024 - u64::from(blocks), u64::from(blocks));
                    assert!(there.unwrap().chunks(512).all(|one| one == data));
                    let before = 1024 - usize::from(blocks);
                    assert!(host.device.bytes[..before * 512].iter().all(|&b| b == 0xff));
                }
                let mut unmap = form.clone();
                unmap[1] = 8;
                let answer = host.send(&unmap, &[0; 512]);
                if unmaps { drop(answer.good()) } else { answer.check(5, 0x2400) }
            }
        }
        // NDOB: no data; WSNZ: no length; ANCHOR; a block of the wrong size.
        host.device.bytes.fill(0xff);
        host.send(&cdb16(0x93, 1, 0, 3), &[]).good();
        assert!(host.device.bytes[..3 * 512].iter().all(|&b| b == 0));
        assert!(host.device.bytes[3 * 512..].iter().all(|&b| b == 0xff));
        host.send(&cdb16(0x93, 0, 0, 0), &block).check(5, 0x2400);
        host.send(&cdb10(0x41, 0x10, 0, 1), &block).check(5, 0x2400);
        host.send(&cdb10(0x41, 0, 0, 1), &block[..256]).check(5, 0x0e03);
        host.send(&cdb10(0x41, 0, 0, 1), &pattern(2, 0)).check(5, 0x0e03);
        for (lba, blocks) in [(1024, 1), (1023, 2), (1 << 31, 1)] {
            host.send(&cdb10(0x41, 0, lba, blocks), &[0; 512]).check(5, 0x2100);
        }
        let mut long = cdb16(0x93, 0, 0, 1 << 20);
        long[9] = 1;
        host.send(&long, &block).check(5, 0x2100);
    }
}

/// SBC-3, 5.28.
#[test]
fn unmap() {
    let zeroes = TranslatorConfig {
        unmap_by: UnmapBy::WriteZeroes,
        power_on_attention: false,
        ..TranslatorConfig::default()
    };
    let hints = TranslatorConfig { power_on_attention: false, ..TranslatorConfig::default() };
    for config in [hints, zeroes] {
        let mut host = Host::new(able(), namespace(BLOCKS, 512), config);
        host.device.bytes.fill(b'a');
        let mut list = vec![0, 0, 0, 0, 0, 0, 0, 0];
        for index in 0..256_u64 {
            list.extend_from_slice(&(2 * index).to_be_bytes());
            list.extend_from_slice(&1_u32.to_be_bytes());
            list.extend_from_slice(&[0; 4]);
        }
        let bytes = (list.len() - 8) as u16;
        list[..2].copy_from_slice(&(bytes + 6).to_be_bytes());
        list[2..4].copy_from_slice(&bytes.to_be_bytes());
        host.send(cdb::unmap(bytes + 8).as_bytes(), &list).good();
        for (index, block) in host.device.bytes.chunks(512).enumerate() {
            let value = if index < 512 && index % 2 == 0 { 0 } else { b'a' };
            assert!(block.iter().all(|&b| b == value), "block {index}");
        }
        // Nothing, and nothing at the end.
        host.send(cdb::unmap(0).as_bytes(), &[]).good();
        host.send(cdb::unmap(24).as_bytes(), &unmap_list(BLOCKS, 0)).good();
        host.send(cdb::unmap(8).as_bytes(), &[0, 6, 0, 0, 0, 0, 0, 0]).good();
        host.send(cdb::unmap(24).as_bytes(), &unmap_list(BLOCKS, 1)).check(5, 0x2100);
        host.send(cdb::unmap(24).as_bytes(), &unmap_list(0, u32::MAX)).check(5, 0x2100);
        host.send(cdb::unmap(7).as_bytes(), &[0; 7]).check(5, 0x1a00);
        // A descriptor that is cut off is ignored.
        host.send(cdb::unmap(16).as_bytes(), &unmap_list(1, 1)[..16]).good();
        assert_eq!(host.device.bytes[512], b'a');
        list.extend_from_slice(&[0; 16]);
        list[..2].copy_from_slice(&(bytes + 22).to_be_bytes());
        list[2..4].copy_from_slice(&(bytes + 16).to_be_bytes());
        host.send(cdb::unmap(bytes + 24).as_bytes(), &list).check(5, 0x2600);
        let mut anchor = cdb::unmap(24).as_bytes().to_vec();
        anchor[1] = 1;
        host.send(&anchor, &unmap_list(0, 1)).check(5, 0x2400);
    }
    Host::small(plain()).send(cdb::unmap(0).as_bytes(), &[]).check(5, 0x2000);
}

/// SBC-3, 5.4: mapped or unknown, to the end of the unit.
#[test]
fn lba_status() {
    let mut host = Host::small(able());
    let mut cdb = cdb16(0x9e, 0x12, 1000, 24);
    let data = host.send(&cdb, &[]).good();
    let expected = [0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0xe8, 0, 0, 0, 24, 0, 0, 0, 0];
    assert_eq!(data, expected);
    cdb[8] = 4;
    host.send(&cdb, &[]).check(5, 0x2100);
}

#[test]
fn read_defect_data_are_empty() {
    let mut host = Host::small(able());
    assert_eq!(host.send(&cdb10(0x37, 0, 0, 32), &[]).good(), [0; 4]);
    let twelve = [0xb7, 0x0d, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0];
    assert_eq!(host.send(&twelve, &[]).good(), [0, 0x0d, 0, 0, 0, 0, 0, 0]);
}

/// The first failure counts, and nothing more is submitted after it.
#[test]
fn failures_end_the_command() {
    let mut controller = able();
    controller.transfer_bytes_max = 4096;
    let mut host = Host::small(controller);
    host.device.faults.push_back(NvmeStatus::UNRECOVERED_READ);
    let answer = host.send(&cdb10(0x28, 0, 0, 64), &[]);
    answer.check(3, 0x1100);
    host.device.faults.extend([NvmeStatus::SUCCESS, NvmeStatus::WRITE_FAULT]);
    host.send(&cdb10(0x2a, 0, 0, 16), &[0; 8192]).check(3, 0x0300);
    host.device.seen.clear();
    host.device.faults.push_back(NvmeStatus::WRITE_FAULT);
    host.send(&cdb10(0x2e, 2, 0, 1), &[0; 512]).check(3, 0x0300);
    assert_eq!(host.device.seen.len(), 1, "what was not written is not verified");
    // After a failure the unit is free for commands that exclude others.
    host.send(&cdb16(0x8b, 0, 0, 1), &[1; 512]).good();
}

/// ORWRITE, and COMPARE AND WRITE without fused commands, stand against all that writes.
#[test]
fn read_modify_write_excludes_writers() {
    let mut host = Host::small(plain());
    let data = [1; 512];
    let or = cdb16(0x8b, 0, 0, 1);
    let write = cdb10(0x2a, 0, 0, 1);
    let read = cdb10(0x28, 0, 0, 1);
    let (mut first, mut second, mut third) = (ScsiJob::new(), ScsiJob::new(), ScsiJob::new());
    let request = |cdb| ScsiRequest::local(0, cdb).with_data(&data);
    assert_eq!(host.translator.begin(&mut first, &request(&write)), JobProgress::Pending);
    assert_eq!(host.translator.begin(&mut second, &request(&or)), JobProgress::Blocked);
    let mut buffer = data.to_vec();
    assert_eq!(host.round(&mut first, &mut buffer), JobProgress::Done);
    assert_eq!(host.translator.begin(&mut second, &request(&or)), JobProgress::Pending);
    assert_eq!(host.translator.begin(&mut first, &request(&write)), JobProgress::Blocked);
    assert_eq!(
        host.translator.begin(&mut third, &ScsiRequest::local(0, &read)),
        JobProgress::Pending
    );
    assert_eq!(host.round(&mut second, &mut buffer), JobProgress::Pending);
    assert_eq!(host.translator.begin(&mut first, &request(&write)), JobProgress::Blocked);
    assert_eq!(host.round(&mut second, &mut buffer), JobProgress::Done);
    assert_eq!(host.translator.begin(&mut first, &request(&write)), JobProgress::Pending);
    assert_eq!(host.round(&mut first, &mut buffer), JobProgress::Done);
    assert_eq!(host.round(&mut third, &mut buffer), JobProgress::Done);
    assert_eq!(answer(&third, &buffer).data, data);
}

/// Fused commands follow each other, and the compare alone decides.
#[test]
fn fused_pairs() {
    let mut host = Host::small(able());
    let mut cdb = cdb16(0x89, 8, 0, 0);
    cdb[13] = 1;
    host.send(&cdb, &[[0; 512], [9; 512]].concat()).good();
    let seen: Vec<_> = host.device.seen.iter().map(|c| (c.opcode, c.fused as u8)).collect();
    assert_eq!(seen, [(nvm::COMPARE, 1), (nvm::WRITE, 2)]);
    assert_eq!(host.device.seen[0].data.offset, 0);
    assert_eq!(host.device.seen[1].data.offset, 512);
    assert_eq!(host.device.seen[1].dwords[2] >> 30, 1, "FUA");
    assert_eq!(host.device.seen[1].entry().flags, 2);
}

/// S1-47, S1-51, S1-52: the path of a block request, and its counters.
#[test]
fn block_requests_pass_through() {
    for (blocks, cdbs) in [(8, 4), (32, 1)] {
        let mut host = Host::new(
            able(),
            namespace(64, 4096),
            TranslatorConfig { power_on_attention: false, ..TranslatorConfig::default() },
        );
        let data: Vec<u8> = (0..32 * 4096_usize).map(|i| (i / 512) as u8).collect();
        for (lba, part) in (16..).step_by(blocks).zip(data.chunks(blocks * 4096)) {
            host.send(cdb::write16(lba, blocks as u32, false).as_bytes(), part).good();
        }
        let mut read = Vec::new();
        for lba in (16..48).step_by(blocks) {
            read.extend(host.send(cdb::read16(lba, blocks as u32).as_bytes(), &[]).good());
        }
        assert_eq!(read, data);
        host.send(cdb::synchronize_cache16().as_bytes(), &[]).good();
        let counts = host.translator.counts();
        assert_eq!((counts.cdbs, counts.nvme_commands), (2 * cdbs + 1, 2 * cdbs + 1));
        assert_eq!((counts.bytes_copied, counts.steps), (0, 0));
        let list = unmap_list(16, 16);
        host.send_as(Nexus::LOCAL, lun_field(0), cdb::unmap(24).as_bytes(), &list).good();
        assert!(host.device.range(16, 16).unwrap().iter().all(|&b| b == 0));
        assert_eq!(host.device.range(32, 16).unwrap(), &data[16 * 4096..]);
    }
}
