//! Commands and their data (S1-27, S1-29 to S1-31, S1-44).

use ssdyno_block::Token;
use ssdyno_driver_nvme::{DataBuffer, HeadDoorbell, IoCommand, IoError, IoResult, NvmeConfig};
use ssdyno_pci::PciFunction;
use ssdyno_spec::nvme::{DatasetRange, NvmeStatus, dataset, nvm};

use crate::double::{Double, Mishap, Nature, namespace};
use crate::rig::{Rig, config, double, logging};

/// The data that the controller received, as one range of bytes if it is contiguous.
fn stretches(rig: &mut Rig<Double>) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for (address, bytes) in rig.device().log.iter().flat_map(|(_, _, pieces)| pieces.clone()) {
        match all.last_mut() {
            Some((start, length)) if *start + *length == address => *length += bytes,
            _ => all.push((address, bytes)),
        }
    }
    all
}

/// One less than the entries; the ring wraps many times, the phase tag with it.
#[test]
fn ring_holds_one_less_than_it_has() {
    let mut rig = Rig::ready(double(Nature::default()), config());
    for _ in 0..50 {
        for i in 0..15 {
            rig.read(1, i, 1).unwrap();
        }
        assert_eq!(rig.read(1, 0, 1), Err(IoError::Full));
        assert_eq!(rig.nvme.driver.outstanding(1), 15);
        rig.drain();
    }
    assert_eq!(rig.done.len(), 750);
    rig.check_double();
}

/// S1-29: PRP1 alone, PRP1 and PRP2, a list; with offsets; from pages and from a stretch.
#[test]
fn pages_are_told_as_they_are() {
    for offset in [0, 4, 512, 4092] {
        for blocks in [1, 7, 8, 9, 15, 16, 17, 64, 255, 256] {
            let mut rig = logging(Nature::default(), config());
            let bytes = u64::from(blocks) * 512;
            let at = rig.buffer.address;
            let stretch = DataBuffer::Contiguous(at + u64::from(offset));
            rig.submit(1, &IoCommand::write(1, 3, blocks, stretch)).unwrap();
            rig.drain();
            assert_eq!(stretches(&mut rig), [(at + u64::from(offset), bytes)]);
            rig.device().log.clear();
            // Every second page, backwards.
            let pages: Vec<u64> = (0..40).rev().map(|page| at + page * 8192).collect();
            let data = DataBuffer::Pages { pages: &pages, offset };
            rig.submit(1, &IoCommand::read(1, 3, blocks, data)).unwrap();
            rig.drain();
            let told: Vec<_> =
                rig.device().log.iter().flat_map(|(_, _, pieces)| pieces.clone()).collect();
            assert_eq!(told[0].0, pages[0] + u64::from(offset));
            assert!(told[1..].iter().zip(&pages[1..]).all(|(piece, page)| piece.0 == *page));
            assert_eq!(told.iter().map(|piece| piece.1).sum::<u64>(), bytes);
            rig.check_double();
        }
    }
}

/// A list longer than a page goes on in the next one.
#[test]
fn lists_are_chained() {
    for pages in [512, 513, 514, 1023, 1024] {
        let nature =
            Nature { max_transfer: 10, namespaces: vec![namespace(2048, 12)], ..Nature::default() };
        let wanted = NvmeConfig { transfer_bytes_max: 4 << 20, entries: 4, ..config() };
        let mut rig = logging(nature, wanted);
        for offset in [0, 2048] {
            let data = DataBuffer::Contiguous(rig.buffer.address + offset);
            rig.submit(1, &IoCommand::write(1, 0, pages, data)).unwrap();
            rig.drain();
            let bytes = u64::from(pages) * 4096;
            assert_eq!(stretches(&mut rig), [(rig.buffer.address + offset, bytes)]);
            assert_eq!(rig.device().log.len(), 1);
            rig.device().log.clear();
        }
        rig.check_double();
    }
}

#[test]
fn long_requests_are_split_and_answered_once() {
    let mut rig = logging(Nature::default(), config());
    // MDTS 128 KiB: 1000 blocks are four commands.
    let data = DataBuffer::Contiguous(rig.buffer.address + 512);
    let token = rig.submit(1, &IoCommand::write(1, 100, 1000, data)).unwrap();
    rig.drain();
    assert_eq!(rig.done.len(), 1);
    assert!(rig.done[0].is_success() && rig.done[0].token == token);
    assert_eq!(stretches(&mut rig), [(rig.buffer.address + 512, 512_000)]);
    let blocks: Vec<_> =
        rig.device().log.iter().map(|(_, e, _)| (e.dword10.get(), e.dword12.get() + 1)).collect();
    assert_eq!(blocks, [(100, 256), (356, 256), (612, 256), (868, 232)]);
    assert_eq!(rig.nvme.driver.counters().commands, 4);
    // 15 commands at most: what takes more is refused for good, what takes them all waits.
    let too_long = rig.read(1, 0, 256 * 15 + 1);
    assert_eq!(too_long, Err(IoError::TooLarge { commands: 16, slots: 15 }));
    rig.read(1, 0, 1).unwrap();
    assert_eq!(rig.read(1, 0, 256 * 15), Err(IoError::Full));
    rig.drain();
    rig.read(1, 0, 256 * 15).unwrap();
    rig.drain();
    rig.check_double();
}

#[test]
fn split_request_fails_if_any_part_does() {
    for bad in 0..4 {
        let mut rig = logging(Nature::default(), config());
        rig.device().mishaps.insert(bad, Mishap::Fails);
        rig.read(1, 0, 1000).unwrap();
        rig.read(1, 0, 8).unwrap();
        rig.drain();
        let failed: Vec<_> = rig.done.iter().filter(|done| !done.is_success()).collect();
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].token, Token(0));
        assert_eq!(failed[0].result, IoResult::Completed(NvmeStatus::UNRECOVERED_READ));
        rig.check_double();
    }
}

/// S1-44.
#[test]
fn ranges_carry_their_hints() {
    let mut rig = logging(Nature::default(), config());
    let range = |i: u32| DatasetRange {
        attributes: (i | 1 << 8).into(),
        blocks: 8.into(),
        first: (u64::from(i) * 16).into(),
    };
    let ranges: Vec<_> = (0..40).map(range).collect();
    let told = IoCommand::dataset(1, &ranges, dataset::INTEGRAL_READ);
    rig.submit(1, &told).unwrap();
    rig.drain();
    assert_eq!(rig.done.len(), 1);
    let log = rig.device().log.clone();
    let counts: Vec<_> =
        log.iter().map(|(_, e, _)| (e.dword10.get() + 1, e.dword11.get())).collect();
    assert_eq!(counts, [(16, 1), (16, 1), (8, 1)], "a list of 256 bytes has room for 16");
    assert!(log.iter().all(|(_, e, _)| e.opcode == nvm::DATASET_MANAGEMENT));
    rig.check_double();
}

#[test]
fn other_commands() {
    let mut rig = logging(Nature::default(), config());
    let data = DataBuffer::Contiguous(rig.buffer.address);
    rig.submit(1, &IoCommand::flush(1)).unwrap();
    rig.submit(1, &IoCommand::write_zeroes(1, 5, 10_000)).unwrap();
    rig.submit(1, &IoCommand::compare(1, 5, 8, data)).unwrap();
    let durable = IoCommand { force_unit_access: true, ..IoCommand::write(1, 7, 1, data) };
    rig.submit(1, &durable).unwrap();
    rig.drain();
    let log = rig.device().log.clone();
    let told: Vec<_> = log.iter().map(|(_, e, _)| (e.opcode, e.dword12.get())).collect();
    let access = 1 << 30;
    let expected =
        [(nvm::FLUSH, 0), (nvm::WRITE_ZEROES, 9999), (nvm::COMPARE, 7), (nvm::WRITE, access)];
    assert_eq!(told, expected);
    assert_eq!(
        rig.submit(1, &IoCommand::verify(1, 0, 1)),
        Err(IoError::Unsupported { opcode: nvm::VERIFY })
    );
    rig.check_double();
}

#[test]
fn metadata_lies_apart() {
    let mut with = namespace(4096, 9);
    with.lba_format[0].metadata_bytes = 8.into();
    let mut rig = logging(Nature { namespaces: vec![with], ..Nature::default() }, config());
    let data = DataBuffer::Contiguous(rig.buffer.address);
    let metadata = rig.buffer.address + (4 << 20);
    let command = IoCommand { metadata, ..IoCommand::read(1, 0, 600, data) };
    rig.submit(1, &command).unwrap();
    rig.drain();
    let told: Vec<_> = rig.device().log.iter().map(|(_, e, _)| e.metadata.get()).collect();
    assert_eq!(told, [metadata, metadata + 256 * 8, metadata + 512 * 8]);
    assert_eq!(rig.read(1, 0, 8), Err(IoError::BadBuffer));
}

#[test]
fn bad_commands_leave_no_trace() {
    let mut rig = logging(Nature::default(), config());
    let at = rig.buffer.address;
    let good = DataBuffer::Contiguous(at);
    let size = IoError::OutOfRange { blocks: 1 << 14 };
    let pages = [at, at + 4096 + 512];
    let cases = [
        (IoCommand::read(1, (1 << 14) - 7, 8, good), size),
        (IoCommand::read(1, u64::MAX, 8, good), size),
        (IoCommand::read(1, 0, 0, good), size),
        (IoCommand::deallocate(1, &[]), size),
        (IoCommand::read(2, 0, 8, good), IoError::NoSuchNamespace { namespace: 2 }),
        (IoCommand::read(1, 0, 8, DataBuffer::None), IoError::BadBuffer),
        (IoCommand::read(1, 0, 8, DataBuffer::Contiguous(at + 2)), IoError::BadBuffer),
        (IoCommand::read(1, 0, 8, DataBuffer::Contiguous(!3)), IoError::BadBuffer),
        (
            IoCommand::read(1, 0, 16, DataBuffer::Pages { pages: &pages, offset: 0 }),
            IoError::BadBuffer,
        ),
        (
            IoCommand::read(1, 0, 8, DataBuffer::Pages { pages: &pages[..1], offset: 4 }),
            IoError::BadBuffer,
        ),
        (
            IoCommand::read(1, 0, 1, DataBuffer::Pages { pages: &pages, offset: 4096 }),
            IoError::BadBuffer,
        ),
    ];
    for (command, error) in cases {
        assert_eq!(rig.submit(1, &command), Err(error), "{command:?}");
    }
    assert_eq!(rig.read(0, 0, 8), Err(IoError::NoSuchQueue { queue: 0 }));
    assert_eq!(rig.read(9, 0, 8), Err(IoError::NoSuchQueue { queue: 9 }));
    assert_eq!((rig.nvme.driver.outstanding(1), rig.nvme.driver.counters().commands), (0, 0));
}

/// S1-31, and one tail doorbell for many commands.
#[test]
fn doorbells_are_counted() {
    let writes = |head_doorbell, batch: bool| {
        let mut rig =
            Rig::ready(double(Nature::default()), NvmeConfig { head_doorbell, ..config() });
        let data = DataBuffer::Contiguous(rig.buffer.address);
        let before = rig.nvme.pci.counters().mmio_writes;
        let commands: Vec<_> =
            (0..10).map(|i| (IoCommand::read(1, i, 1, data), Token(i as u32))).collect();
        let (driver, pci, now) = (&mut rig.nvme.driver, &mut rig.nvme.pci, rig.nvme.now);
        for (command, token) in &commands {
            match batch {
                true => driver.stage(pci, now, 1, command, *token).unwrap(),
                false => driver.submit(pci, now, 1, command, *token).unwrap(),
            }
        }
        if batch {
            driver.ring_doorbell(pci, 1);
        }
        let mut out = Vec::new();
        while let Some(at) = rig.nvme.pci.next_event() {
            rig.nvme.pci.advance(at);
            rig.nvme.pci.take_interrupts(at, &mut Vec::new());
        }
        rig.nvme.driver.poll_queue(&mut rig.nvme.pci, 1, &mut out);
        assert_eq!(out.len(), 10);
        let counted = rig.nvme.driver.counters();
        let all = rig.nvme.pci.counters().mmio_writes - before;
        assert_eq!(all, counted.submission_doorbells + counted.completion_doorbells);
        (counted.submission_doorbells, counted.completion_doorbells)
    };
    assert_eq!(writes(HeadDoorbell::PerBatch, true), (1, 1));
    assert_eq!(writes(HeadDoorbell::PerBatch, false), (10, 1));
    assert_eq!(writes(HeadDoorbell::PerCompletion, true), (1, 10));
}

#[test]
fn batch_ends_where_the_queue_is_full() {
    let mut rig = Rig::ready(double(Nature::default()), config());
    let data = DataBuffer::Contiguous(rig.buffer.address);
    let commands: Vec<_> =
        (0..20).map(|i| (IoCommand::read(1, i, 1, data), Token(i as u32))).collect();
    let (driver, pci, now) = (&mut rig.nvme.driver, &mut rig.nvme.pci, rig.nvme.now);
    for (at, (command, token)) in commands.iter().enumerate() {
        let taken = if at < 15 { Ok(()) } else { Err(IoError::Full) };
        assert_eq!(driver.stage(pci, now, 1, command, *token), taken, "{at}");
    }
    driver.ring_doorbell(pci, 1);
    // Memory of the data is the caller's; the driver never touches it.
    let mut first = [0; 4];
    rig.nvme.pci.dma_read(&rig.buffer, 0, &mut first);
    assert_eq!(first, [0; 4]);
}
