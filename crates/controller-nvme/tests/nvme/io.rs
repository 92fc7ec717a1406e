//! I/O commands and their pages (base 2.0c, clause 4.1.1; NVM 1.0c, clause 3.2).

use ssdyno_block::{Op, Status as DeviceStatus};
use ssdyno_pci::DmaDirection;
use ssdyno_spec::nvme::{DatasetRange, NvmeStatus, SubmissionEntry, dataset, feature, nvm};
use zerocopy::IntoBytes;

use crate::support::{
    DATA, FixedTime, Host, config, entry, host, host_with, ops, read, set_feature, transfer, write,
};

const BLOCKS: u64 = (64 << 20) / 512;

fn ready(nvme: &str) -> Host<FixedTime> {
    let mut host = host(nvme);
    host.create_pair(1, 64);
    host
}
fn status(host: &mut Host<FixedTime>, command: SubmissionEntry) -> NvmeStatus {
    let status = host.command(1, command).status();
    assert!(status.is_success() || status.do_not_retry(), "{status:?}");
    status.kind()
}

/// NVM 1.0c, clauses 3.2.4 and 3.2.6: what a command is refused for; S1-46.
#[test]
fn commands_are_checked() {
    let mut host = ready("max_transfer = \"64KiB\"");
    let with = |change: fn(&mut SubmissionEntry)| {
        let mut command = read(0);
        change(&mut command);
        command
    };
    let cases = [
        (transfer(nvm::READ, BLOCKS - 8, 8), NvmeStatus::SUCCESS),
        (transfer(nvm::READ, BLOCKS - 7, 8), NvmeStatus::LBA_OUT_OF_RANGE),
        (transfer(nvm::WRITE, u64::MAX, 8), NvmeStatus::LBA_OUT_OF_RANGE),
        (transfer(nvm::READ, 0, 128), NvmeStatus::SUCCESS),
        (transfer(nvm::READ, 0, 129), NvmeStatus::INVALID_FIELD),
        (with(|c| c.namespace_id = 0.into()), NvmeStatus::INVALID_NAMESPACE),
        // One that could be there, and one that never can.
        (with(|c| c.namespace_id = 2.into()), NvmeStatus::INVALID_FIELD),
        (with(|c| c.namespace_id = 33.into()), NvmeStatus::INVALID_NAMESPACE),
        (with(|c| c.namespace_id = u32::MAX.into()), NvmeStatus::INVALID_FIELD),
        // Fused, SGL, directive; protection information, which has no effect without protection.
        (with(|c| c.flags = 1), NvmeStatus::INVALID_FIELD),
        (with(|c| c.flags = 0x40), NvmeStatus::INVALID_FIELD),
        (with(|c| c.dword12 = (7 | 1 << 29).into()), NvmeStatus::SUCCESS),
        (with(|c| c.dword12 = (7 | 1 << 20).into()), NvmeStatus::INVALID_FIELD),
        (with(|c| c.opcode = 0x7f), NvmeStatus::INVALID_OPCODE),
        (with(|c| c.opcode = nvm::COMPARE), NvmeStatus::INVALID_OPCODE),
        (entry(nvm::FLUSH, 1, [0; 3]), NvmeStatus::SUCCESS),
        (entry(nvm::FLUSH, u32::MAX, [0; 3]), NvmeStatus::SUCCESS),
        (entry(nvm::FLUSH, 7, [0; 3]), NvmeStatus::INVALID_FIELD),
        (entry(nvm::FLUSH, 0, [0; 3]), NvmeStatus::INVALID_NAMESPACE),
        (transfer(nvm::VERIFY, 16, 200), NvmeStatus::SUCCESS),
        (transfer(nvm::WRITE_ZEROES, 16, 2000), NvmeStatus::SUCCESS),
    ];
    for (command, expected) in cases {
        assert_eq!(status(&mut host, command), expected, "{command:?}");
    }
    let whole = |op, first: u64, blocks: u32| (op, first * 512, blocks * 512);
    let expected = [
        whole(Op::Read, BLOCKS - 8, 8),
        whole(Op::Read, 0, 128),
        whole(Op::Read, 0, 8),
        (Op::Flush, 0, 0),
        (Op::Flush, 0, 0),
        whole(Op::Read, 16, 200),
        whole(Op::Trim, 16, 2000),
    ];
    assert_eq!(ops(&host.controller.device().seen), expected, "only good commands go on");
}

/// Base 2.0c, clause 4.1.1 and figure 86; S1-29.
#[test]
fn pages_are_where_the_entries_say() {
    let mut host = ready("");
    let page = 4096u64;
    let read = |blocks, prp1: u64, prp2: u64| SubmissionEntry {
        prp1: prp1.into(),
        prp2: prp2.into(),
        ..transfer(nvm::READ, 0, blocks)
    };
    let list = DATA + (1 << 20);
    let entries = |host: &mut Host<FixedTime>, at: u64, pages: &[u64]| {
        for (place, entry) in host.data(at, pages.len() * 8).chunks_exact_mut(8).zip(pages) {
            place.copy_from_slice(&entry.to_le_bytes());
        }
    };
    let moved = |host: &mut Host<FixedTime>, command| {
        host.bus.touched.clear();
        assert_eq!(status(host, command), NvmeStatus::SUCCESS);
        let all = std::mem::take(&mut host.bus.touched);
        assert!(all.iter().all(|(_, _, way)| *way == DmaDirection::ToHost));
        all.into_iter().map(|(at, bytes, _)| (at - DATA, bytes)).collect::<Vec<_>>()
    };
    assert_eq!(moved(&mut host, read(8, DATA, 3)), [(0, 4096)], "PRP2 is not looked at");
    assert_eq!(moved(&mut host, read(8, DATA + 4, DATA + 5 * page)), [(4, 4092), (5 * page, 4)]);
    assert_eq!(moved(&mut host, read(16, DATA, DATA + page)), [(0, 8192)], "joined");
    // Three pages with an offset in the first: a list of three.
    entries(&mut host, list + 8, &[DATA + 3 * page, DATA + 4 * page, DATA + 9 * page]);
    let command = read(24, DATA + 512, list + 8);
    assert_eq!(moved(&mut host, command), [(512, 3584), (3 * page, 8192), (9 * page, 512)]);
    // A list that starts two entries before the end of its page goes on in another.
    let chained = list + 4 * page;
    entries(&mut host, list + page - 16, &[DATA + 2 * page, chained]);
    entries(&mut host, chained, &[DATA + 4 * page, DATA + 6 * page]);
    let command = read(32, DATA, list + page - 16);
    let apart = [(0, 4096), (2 * page, 4096), (4 * page, 4096), (6 * page, 4096)];
    assert_eq!(moved(&mut host, command), apart);
    assert_eq!(host.controller.counters().list_reads, 3);

    let offset = NvmeStatus::PRP_OFFSET_INVALID;
    assert_eq!(status(&mut host, read(8, DATA + 2, 0)), offset, "whole dwords");
    assert_eq!(status(&mut host, read(16, DATA, DATA + page + 512)), offset, "second of two");
    assert_eq!(status(&mut host, read(24, DATA, list + 4)), offset, "a list of qwords");
    entries(&mut host, list, &[DATA + page, DATA + 2 * page + 8]);
    assert_eq!(status(&mut host, read(24, DATA, list)), offset, "in a list");
    entries(&mut host, list + page - 16, &[DATA + 2 * page, chained + 8]);
    assert_eq!(status(&mut host, read(32, DATA, list + page - 16)), offset, "a chained list");
}

/// Base 2.0c, figure 94: memory that is not there is a data transfer error, not a crash.
#[test]
fn unreachable_memory_fails_the_command_alone() {
    let mut host = ready("");
    let nowhere = 0xdead_0000u64;
    let commands = [
        SubmissionEntry { prp1: nowhere.into(), ..read(0) },
        SubmissionEntry { prp1: nowhere.into(), ..write(0) },
        SubmissionEntry { prp1: (!0xfff_u64).into(), ..read(0) },
        SubmissionEntry { prp2: nowhere.into(), ..transfer(nvm::READ, 0, 64) },
    ];
    for command in commands {
        let status = host.command(1, command).status();
        assert_eq!(status, NvmeStatus::DATA_TRANSFER_ERROR, "worth another try: no DNR");
    }
    assert!(host.command(1, read(0)).status().is_success());
}

/// Base 2.0c, clause 3.1.3.5: CC.MPS other than 4 KiB.
#[test]
fn larger_host_pages_move_more_with_two_entries() {
    let mut host = host("");
    host.write(ssdyno_spec::nvme::registers::CC, 0);
    let sizes = ssdyno_spec::nvme::registers::CC_ENTRY_SIZES;
    host.enable_with(sizes | 2 << 7 | 1);
    host.settle();
    host.create_pair(1, 8);
    let command = SubmissionEntry { prp2: (DATA + 0x8000).into(), ..transfer(nvm::READ, 0, 64) };
    assert_eq!(status(&mut host, command), NvmeStatus::SUCCESS);
    let touched: Vec<_> =
        host.bus.touched.iter().map(|(at, bytes, _)| (at - DATA, *bytes)).collect();
    assert_eq!(touched, [(0, 16384), (0x8000, 16384)]);
}

fn ranges(host: &mut Host<FixedTime>, list: &[(u32, u32, u64)]) {
    for (number, (attributes, blocks, first)) in list.iter().enumerate() {
        let range = DatasetRange {
            attributes: (*attributes).into(),
            blocks: (*blocks).into(),
            first: (*first).into(),
        };
        host.data(DATA + number as u64 * 16, 16).copy_from_slice(range.as_bytes());
    }
}

/// NVM 1.0c, clause 3.2.3; S1-44.
#[test]
fn dataset_management_deallocates_and_keeps_hints() {
    let mut host = ready("");
    let command = |count: u32, what| entry(nvm::DATASET_MANAGEMENT, 1, [count - 1, what, 0]);
    ranges(&mut host, &[(0x25, 8, 0), (0, 0, 9), (0, 64, 1024), (1 << 9, 1, BLOCKS - 1)]);
    assert_eq!(status(&mut host, command(4, dataset::DEALLOCATE)), NvmeStatus::SUCCESS);
    let expected =
        [(Op::Trim, 0, 4096), (Op::Trim, 1024 * 512, 32768), (Op::Trim, (BLOCKS - 1) * 512, 512)];
    assert_eq!(ops(&host.controller.device().seen), expected);
    let kept: Vec<_> =
        host.controller.hints(1).iter().map(|r| (r.attributes.get(), r.first.get())).collect();
    assert_eq!(kept, [(0x25, 0), (1 << 9, BLOCKS - 1)]);
    // Without AD only the hints count.
    assert_eq!(status(&mut host, command(1, dataset::INTEGRAL_READ)), NvmeStatus::SUCCESS);
    assert_eq!(host.controller.device().seen.len(), 3);
    ranges(&mut host, &[(0, 8, 0), (0, 8, BLOCKS - 7)]);
    assert_eq!(status(&mut host, command(2, dataset::DEALLOCATE)), NvmeStatus::LBA_OUT_OF_RANGE);
    assert_eq!(host.controller.device().seen.len(), 3, "all or nothing");
    for _ in 0..300 {
        ranges(&mut host, &[(7, 1, 5)]);
        assert_eq!(status(&mut host, command(1, 0)), NvmeStatus::SUCCESS);
    }
    assert_eq!(host.controller.hints(1).len(), 256);
}

/// NVM 1.0c, clause 3.2.6 (FUA) and base 2.0c, clause 5.27.1.4.
#[test]
fn forced_writes_flush_a_volatile_cache() {
    let text = "[buffer]\npolicy = \"lru\"\nsize = \"64KiB\"\n[queue]";
    let mut host = host_with(&config("", &[("[queue]", text)]));
    host.create_pair(1, 8);
    let forced = SubmissionEntry { dword12: (7 | 1 << 30).into(), ..write(0) };
    let off = set_feature(feature::VOLATILE_WRITE_CACHE, 0);
    assert_eq!(status(&mut host, write(0)), NvmeStatus::SUCCESS);
    assert_eq!(status(&mut host, forced), NvmeStatus::SUCCESS);
    assert!(host.admin(off).status().is_success());
    assert_eq!(status(&mut host, write(8)), NvmeStatus::SUCCESS);
    let seen: Vec<Op> = host.controller.device().seen.iter().map(|r| r.op).collect();
    assert_eq!(seen, [Op::Write, Op::Write, Op::Flush, Op::Write, Op::Flush]);

    // What reads by force reads what flash has: the cache goes there first (NVM 1.0c, clauses 3.2.1,
    // 3.2.4 and 3.2.5). Zeroes by force are on flash before the completion.
    let forced_to =
        |opcode| SubmissionEntry { dword12: (7 | 1 << 30).into(), ..transfer(opcode, 8, 8) };
    for (opcode, expected) in [
        (nvm::READ, &[Op::Flush, Op::Read][..]),
        (nvm::VERIFY, &[Op::Flush, Op::Read]),
        (nvm::WRITE_ZEROES, &[Op::Trim, Op::Flush]),
    ] {
        host.controller.device_mut().seen.clear();
        assert_eq!(status(&mut host, forced_to(opcode)), NvmeStatus::SUCCESS);
        let seen: Vec<Op> = host.controller.device().seen.iter().map(|r| r.op).collect();
        assert_eq!(seen, expected, "{opcode:#x}");
    }

    // Without a cache there is nothing to force, and the feature does not exist.
    let mut plain = ready("");
    assert_eq!(status(&mut plain, forced), NvmeStatus::SUCCESS);
    assert_eq!(plain.controller.device().seen.len(), 1);
    assert_eq!(plain.admin(off).status().kind(), NvmeStatus::INVALID_FIELD);
}

/// NVM 1.0c, clause 3.2.7.
#[test]
fn uncorrectable_blocks_fail_until_they_are_written() {
    let mut host = ready("");
    assert_eq!(status(&mut host, transfer(nvm::WRITE_UNCORRECTABLE, 10, 2)), NvmeStatus::SUCCESS);
    for (command, expected) in [
        (transfer(nvm::READ, 0, 10), NvmeStatus::SUCCESS),
        (transfer(nvm::READ, 0, 11), NvmeStatus::UNRECOVERED_READ),
        (transfer(nvm::VERIFY, 11, 1), NvmeStatus::UNRECOVERED_READ),
        (transfer(nvm::WRITE, 10, 1), NvmeStatus::SUCCESS),
        (transfer(nvm::READ, 10, 1), NvmeStatus::SUCCESS),
        (transfer(nvm::READ, 10, 2), NvmeStatus::UNRECOVERED_READ),
        (transfer(nvm::WRITE_ZEROES, 11, 1), NvmeStatus::SUCCESS),
        (transfer(nvm::READ, 10, 2), NvmeStatus::SUCCESS),
    ] {
        assert_eq!(status(&mut host, command), expected, "{command:?}");
    }
}

/// Base 2.0c, figure 97, and NVM 1.0c, figure 23: the host's status for a failing medium.
#[test]
fn failures_of_the_device_have_their_status() {
    let mut host = ready("");
    for (failure, command, expected) in [
        (DeviceStatus::Error, read(0), NvmeStatus::UNRECOVERED_READ),
        (DeviceStatus::Error, write(0), NvmeStatus::WRITE_FAULT),
        (DeviceStatus::ReadOnly, write(0), NvmeStatus::WRITE_PROTECTED.with_do_not_retry()),
        (DeviceStatus::Abandoned, read(0), NvmeStatus::INTERNAL_ERROR),
    ] {
        host.controller.device_mut().status = Some(failure);
        assert_eq!(host.command(1, command).status(), expected);
    }
}
