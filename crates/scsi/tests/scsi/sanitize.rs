//! SANITIZE (SBC-4, 4.11 and 5.30): the translation of its CDBs and parameters, its end, and the effect on other
//! commands meanwhile.

use ssdyno_scsi::{JobProgress, NamespaceFacts, ScsiJob, ScsiRequest, Translator, cdb};
use ssdyno_spec::nvme::{admin, sanitize};
use ssdyno_spec::scsi::opcode as op;

use crate::common::{Answer, Host, INVALID_FIELD, able, cdb10, plain};

/// SANITIZE IN PROGRESS, SANITIZE COMMAND FAILED.
const IN_PROGRESS: (u8, u16) = (2, 0x041b);
const FAILED: (u8, u16) = (3, 0x3103);
const PARAMETER: (u8, u16) = (5, 0x2600);

const OVERWRITE: u8 = 1;
const BLOCK_ERASE: u8 = 2;
const CRYPTO_ERASE: u8 = 3;
const EXIT: u8 = 0x1f;
const IMMED: u8 = 0x80;
const AUSE: u8 = 0x20;

fn sanitize_cdb(action: u8, length: u16) -> [u8; 10] {
    let [high, low] = length.to_be_bytes();
    [op::SANITIZE, action, 0, 0, 0, 0, 0, high, low, 0]
}

/// A parameter list: flags and count, then the pattern.
fn list(first: u8, pattern: &[u8]) -> Vec<u8> {
    let [high, low] = (pattern.len() as u16).to_be_bytes();
    [&[first, 0, high, low], pattern].concat()
}

impl Host {
    #[track_caller]
    fn sanitize(&mut self, action: u8, data: &[u8]) -> Answer {
        self.send(&sanitize_cdb(action, data.len() as u16), data)
    }
    /// Dwords 10 and 11 of the last NVMe Sanitize.
    fn sent(&self) -> Option<(u32, u32)> {
        let last = self.device.seen.iter().rev().find(|c| c.opcode == admin::SANITIZE)?;
        Some((last.dwords[0], last.dwords[1]))
    }
    /// SANITIZE IN PROGRESS with the progress indication in the sense key specific bytes.
    #[track_caller]
    fn busy(&mut self, cdb: &[u8], data: &[u8]) -> u16 {
        let answer = self.send(cdb, data);
        let bytes = answer.sense_bytes.clone();
        answer.check(IN_PROGRESS.0, IN_PROGRESS.1);
        assert_eq!(bytes[15], 0x80, "SKSV");
        u16::from_be_bytes([bytes[16], bytes[17]])
    }
}

/// Each service action is one of NVMe, and ends with the operation.
#[test]
fn service_actions_are_those_of_nvme() {
    let keep = sanitize::NO_DEALLOCATION;
    for (action, data, expected) in [
        (BLOCK_ERASE, vec![], (2, 0)),
        (BLOCK_ERASE | AUSE, vec![], (2 | 8, 0)),
        (CRYPTO_ERASE, vec![], (4, 0)),
        (OVERWRITE, list(1, &[1, 2, 3, 4]), (3 | 1 << 4 | keep, 0x0403_0201)),
        (OVERWRITE | AUSE, list(15, &[0xaa]), (3 | 8 | 15 << 4 | keep, 0xaaaa_aaaa)),
        // Sixteen passes are 0.
        (OVERWRITE, list(16, &[1, 2]), (3 | keep, 0x0201_0201)),
        // Inverted between passes: the first has the pattern here, the last in NVMe.
        (OVERWRITE, list(0x80 | 3, &[0x0f]), (3 | 3 << 4 | 1 << 8 | keep, 0x0f0f_0f0f)),
        (OVERWRITE, list(0x80 | 2, &[0x0f]), (3 | 2 << 4 | 1 << 8 | keep, 0xf0f0_f0f0)),
        (OVERWRITE, list(1, &[7; 512]), (3 | 1 << 4 | keep, 0x0707_0707)),
        (OVERWRITE, list(1, &[1, 2, 3, 4].repeat(64)), (3 | 1 << 4 | keep, 0x0403_0201)),
    ] {
        let mut host = Host::small(able());
        let before = host.device.sanitize.now_ms;
        assert!(host.sanitize(action, &data).good().is_empty());
        assert_eq!(host.sent(), Some(expected), "{action:#x} {data:x?}");
        let took = host.device.sanitize.now_ms - before;
        assert!((1000..1050).contains(&took), "it ends with the operation: {took} ms");
    }
    let mut host = Host::small(able());
    host.sanitize(EXIT, &[]).good();
    assert_eq!(host.sent(), Some((1, 0)));
}

/// A long operation is looked at some tens of times, not millions, and its end is seen at once.
#[test]
fn waiting_costs_little_however_long_it_takes() {
    for seconds in [0, 1, 60, 3_600, 100_000_u64] {
        let mut host = Host::small(able());
        host.device.sanitize.takes_ms = seconds * 1000;
        host.sanitize(BLOCK_ERASE, &[]).good();
        let late = host.device.sanitize.now_ms - seconds * 1000;
        let looks = host.device.seen.len() as u64;
        // A look a minute at most, and a progress of 65536ths.
        assert!(looks < 40 + seconds / 60 * 2, "{seconds} s: {looks} looks");
        assert!(late <= 10 + seconds * 1000 / 20_000, "{seconds} s: {late} ms late");
    }
}

/// An impossible operation is refused, and nothing begins.
#[test]
fn bad_parameters_are_refused() {
    let block = list(1, &[7; 512]);
    for (action, data, expected) in [
        (0, vec![], INVALID_FIELD),
        (4, vec![], INVALID_FIELD),
        (0x1e, vec![], INVALID_FIELD),
        // ZNR: there are no zones.
        (BLOCK_ERASE | 0x40, vec![], INVALID_FIELD),
        (BLOCK_ERASE, vec![0; 8], INVALID_FIELD),
        (CRYPTO_ERASE, vec![0; 8], INVALID_FIELD),
        (EXIT, vec![0; 8], INVALID_FIELD),
        (OVERWRITE, vec![], INVALID_FIELD),
        (OVERWRITE, vec![1, 0, 0, 4], INVALID_FIELD),
        (OVERWRITE, [&block[..], &[0]].concat(), INVALID_FIELD),
        // Count; test; pattern length 0, longer than what is there, longer than a block.
        (OVERWRITE, list(0, &[1]), PARAMETER),
        (OVERWRITE, list(17, &[1]), PARAMETER),
        (OVERWRITE, list(31, &[1]), PARAMETER),
        (OVERWRITE, list(0x21, &[1]), PARAMETER),
        (OVERWRITE, vec![1, 0, 0, 0, 9], PARAMETER),
        (OVERWRITE, vec![1, 0, 0, 2, 9], PARAMETER),
        (OVERWRITE, vec![1, 0, 2, 1, 9], PARAMETER),
        // NVMe has 32 bits.
        (OVERWRITE, list(1, &[1, 2, 3]), PARAMETER),
        (OVERWRITE, list(1, &[1, 2, 3, 4, 5]), PARAMETER),
        (OVERWRITE, list(1, &[1, 2, 3, 4, 1, 2, 3, 5]), PARAMETER),
    ] {
        let mut host = Host::small(able());
        host.sanitize(action, &data).check(expected.0, expected.1);
        assert_eq!(host.sent(), None, "{action:#x} {data:x?}");
    }
    let mut host = Host::small(able());
    for byte in 2..7 {
        let mut cdb = sanitize_cdb(BLOCK_ERASE, 0);
        cdb[byte] = 1;
        host.send(&cdb, &[]).check(INVALID_FIELD.0, INVALID_FIELD.1);
    }
    // Fewer parameters than the CDB says.
    host.send(&sanitize_cdb(OVERWRITE, 8), &[1, 0, 0, 4, 1]).check(5, 0x1a00);
}

/// IMMED: it ends when the operation has begun; REQUEST SENSE reports the progress.
#[test]
fn others_hear_how_far_it_is() {
    let mut host = Host::small(able());
    host.sanitize(BLOCK_ERASE | IMMED, &[]).good();
    assert!(host.translator.is_sanitizing());
    host.device.sanitize.now_ms = 250;
    let read_capacity = [op::READ_CAPACITY_10, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let select = [op::MODE_SELECT_6, 0x10, 0, 0, 0, 0];
    let write_same = cdb10(op::WRITE_SAME_10, 0, 0, 1);
    let unmap = cdb::unmap(24);
    let refused: [(&[u8], &[u8]); 14] = [
        (&[op::TEST_UNIT_READY, 0, 0, 0, 0, 0], &[]),
        (&[op::START_STOP_UNIT, 0, 0, 0, 1, 0], &[]),
        (&read_capacity, &[]),
        (&select, &[]),
        (&[op::RESERVE_6, 0, 0, 0, 0, 0], &[]),
        (&[op::RELEASE_6, 0, 0, 0, 0, 0], &[]),
        (&cdb10(op::READ_10, 0, 0, 1), &[]),
        (&cdb10(op::WRITE_10, 0, 0, 1), &[1; 512]),
        (&cdb10(op::VERIFY_10, 0, 0, 1), &[]),
        (&cdb10(op::SYNCHRONIZE_CACHE_10, 0, 0, 0), &[]),
        (&write_same, &[1; 512]),
        (unmap.as_bytes(), &ssdyno_scsi::unmap_list(0, 8)),
        (&sanitize_cdb(CRYPTO_ERASE, 0), &[]),
        (&sanitize_cdb(EXIT, 0), &[]),
    ];
    for (cdb, data) in refused {
        assert_eq!(host.busy(cdb, data), 0x4000, "{cdb:x?}");
    }
    let allowed: [&[u8]; 5] = [
        &[op::INQUIRY, 0, 0, 0, 36, 0],
        &[op::REPORT_LUNS, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0],
        &[op::LOG_SENSE, 0, 0x40 | 0x0d, 0, 0, 0, 0, 0, 64, 0],
        &[op::MODE_SENSE_6, 0, 0x08, 0, 64, 0],
        &[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0],
    ];
    for cdb in allowed {
        assert!(!host.send(cdb, &[]).good().is_empty(), "{cdb:x?}");
    }
    // REQUEST SENSE: pollable sense data, in either format.
    host.device.sanitize.now_ms = 500;
    let sense = host.send(&[op::REQUEST_SENSE, 0, 0, 0, 252, 0], &[]).good();
    assert_eq!((sense[2], sense[12], sense[13]), (2, 0x04, 0x1b));
    assert_eq!(sense[15..18], [0x80, 0x80, 0x00]);
    let sense = host.send(&[op::REQUEST_SENSE, 1, 0, 0, 252, 0], &[]).good();
    assert_eq!(sense[..4], [0x72, 2, 0x04, 0x1b]);
    assert_eq!(sense[8..15], [2, 6, 0, 0, 0x80, 0x80, 0x00]);
    // The end is seen by whoever comes next, and his command is done.
    host.device.sanitize.now_ms = 1000;
    let capacity = host.send(&read_capacity, &[]).good();
    assert_eq!(capacity, [0, 0, 3, 0xff, 0, 0, 2, 0]);
    assert!(!host.translator.is_sanitizing());
    let sense = host.send(&[op::REQUEST_SENSE, 0, 0, 0, 252, 0], &[]).good();
    assert_eq!(sense[2], 0);
}

/// The end is seen by a command that goes to the medium, too; and one with parameters is done with them.
#[test]
fn the_first_command_after_the_end_is_done() {
    for way in 0..3 {
        let mut host = Host::small(able());
        host.device.range(0, 1).expect("a block").fill(9);
        host.sanitize(CRYPTO_ERASE | IMMED, &[]).good();
        host.device.sanitize.now_ms = 2000;
        match way {
            0 => assert_eq!(host.send(&cdb10(op::READ_10, 0, 0, 1), &[]).good(), [0; 512]),
            1 => {
                // Control mode page: SWP.
                let page = [0, 0, 0, 0, 0x0a, 10, 2, 0x10, 8, 0, 0, 0, 0xff, 0xff, 0, 0];
                host.send(&[op::MODE_SELECT_6, 0x10, 0, 0, 16, 0], &page).good();
                host.send(&cdb10(op::WRITE_10, 0, 0, 1), &[1; 512]).check(7, 0x2702);
                host.sanitize(BLOCK_ERASE, &[]).check(7, 0x2702);
            }
            _ => assert!(host.send(&[op::TEST_UNIT_READY, 0, 0, 0, 0, 0], &[]).good().is_empty()),
        }
    }
}

/// Another host of the controller has begun it: the controller says so.
#[test]
fn an_operation_of_somebody_else_is_found() {
    let mut host = Host::small(able());
    let mut other = Host::small(able());
    other.sanitize(BLOCK_ERASE | IMMED, &[]).good();
    host.device.sanitize = other.device.sanitize;
    host.device.sanitize.now_ms = 750;
    assert_eq!(host.busy(&cdb10(op::READ_10, 0, 0, 1), &[]), 0xc000);
    assert_eq!(host.busy(&[op::TEST_UNIT_READY, 0, 0, 0, 0, 0], &[]), 0xc000);
}

/// SBC-4, 4.11.4: failure, with AUSE and without.
#[test]
fn failures_are_left_or_mended() {
    for (ause, left) in [(AUSE, true), (0, false)] {
        let mut host = Host::small(able());
        host.device.sanitize.fails = true;
        host.sanitize(BLOCK_ERASE | ause, &[]).check(FAILED.0, FAILED.1);
        host.send(&[op::TEST_UNIT_READY, 0, 0, 0, 0, 0], &[]).check(FAILED.0, FAILED.1);
        host.send(&cdb10(op::READ_10, 0, 0, 1), &[]).check(FAILED.0, FAILED.1);
        let sense = host.send(&[op::REQUEST_SENSE, 0, 0, 0, 252, 0], &[]).good();
        assert_eq!((sense[2], sense[12], sense[13]), (3, 0x31, 0x03));
        if left {
            host.sanitize(EXIT, &[]).good();
            host.send(&cdb10(op::READ_10, 0, 0, 1), &[]).good();
            host.send(&[op::TEST_UNIT_READY, 0, 0, 0, 0, 0], &[]).good();
        } else {
            host.sanitize(EXIT, &[]).check(INVALID_FIELD.0, INVALID_FIELD.1);
            host.sanitize(BLOCK_ERASE | AUSE, &[]).check(INVALID_FIELD.0, INVALID_FIELD.1);
        }
        host.device.sanitize.fails = false;
        host.sanitize(CRYPTO_ERASE, &[]).good();
        host.send(&cdb10(op::READ_10, 0, 0, 1), &[]).good();
    }
}

/// GET LBA STATUS: all blocks are unmapped after an operation that deallocates, until something is written.
#[test]
fn sanitized_blocks_are_unmapped() {
    let mut get = [0; 16];
    (get[0], get[1], get[13]) = (0x9e, 0x12, 64);
    let status = |host: &mut Host| {
        let data = host.send(&get, &[]).good();
        assert_eq!(data[8..20], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0], "all 1024 blocks");
        data[20]
    };
    for (action, data, unmapped) in
        [(BLOCK_ERASE, vec![], 1), (CRYPTO_ERASE, vec![], 1), (OVERWRITE, list(1, &[0]), 0)]
    {
        let mut host = Host::small(able());
        assert_eq!(status(&mut host), 0, "never sanitized");
        host.sanitize(action, &data).good();
        assert_eq!(status(&mut host), unmapped);
        host.send(&cdb10(op::WRITE_10, 0, 5, 1), &[1; 512]).good();
        assert_eq!(status(&mut host), 0);
        host.sanitize(action | IMMED, &data).good();
        assert_eq!(host.busy(&get, &[]), 0);
    }
}

/// It is there as far as the controller can do it, and only where it hits no other unit: REPORT SUPPORTED
/// OPERATION CODES, WABEREQ and WACEREQ say the same.
#[test]
fn what_is_offered() {
    let report = |translator: &mut Translator, action: u8| {
        let cdb = [0xa3, 0x0c, 2, op::SANITIZE, 0, action, 0, 0, 0, 64, 0, 0];
        let mut job = ScsiJob::new();
        let _done = translator.begin(&mut job, &ScsiRequest::local(0, &cdb));
        job.data_in().to_vec()
    };
    let requirements = |translator: &mut Translator| {
        let mut job = ScsiJob::new();
        let inquiry = ScsiRequest::local(0, &[op::INQUIRY, 1, 0xb1, 0, 64, 0]);
        assert_eq!(translator.begin(&mut job, &inquiry), JobProgress::Done);
        job.data_in()[7]
    };
    let mut host = Host::small(able());
    for action in [OVERWRITE, BLOCK_ERASE, CRYPTO_ERASE, EXIT] {
        let usage = [op::SANITIZE, 0xa0 | action, 0, 0, 0, 0, 0, 0xff, 0xff, 0];
        assert_eq!(report(&mut host.translator, action), [&[0, 3, 0, 10], &usage[..]].concat());
    }
    assert_eq!(requirements(&mut host.translator), 0x50);

    let mut facts = able();
    facts.optional.sanitize_block_erase = false;
    let mut host = Host::small(facts);
    assert_eq!(report(&mut host.translator, BLOCK_ERASE)[1], 1);
    assert_eq!(report(&mut host.translator, EXIT)[1], 3);
    assert_eq!(requirements(&mut host.translator), 0x10);
    host.sanitize(BLOCK_ERASE, &[]).check(INVALID_FIELD.0, INVALID_FIELD.1);

    let mut host = Host::small(plain());
    assert_eq!(report(&mut host.translator, EXIT)[1], 1);
    assert_eq!(requirements(&mut host.translator), 0);
    host.sanitize(BLOCK_ERASE, &[]).check(5, 0x2000);

    let two = [NamespaceFacts::plain(1, 8, 512), NamespaceFacts::plain(2, 8, 512)];
    let config = ssdyno_scsi::TranslatorConfig { power_on_attention: false, ..Default::default() };
    let mut both = Translator::new(able(), &two, config).expect("good facts");
    assert_eq!(report(&mut both, BLOCK_ERASE)[1], 1, "it would destroy the other unit's data");
    assert_eq!(requirements(&mut both), 0);
}
