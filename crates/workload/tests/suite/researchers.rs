//! The trace formats of researchers: libCacheSim's, VMware's, Alibaba's and Tencent's. The layouts are
//! written out here a second time, as their sources give them (docs/traces.md).
use crate::common;

use std::fmt::Write as _;
use std::io::{Cursor, Read};
use std::path::Path;

use common::{DEVICE, Issued, play};
use proptest::prelude::*;
use ssdyno_block::{Op, Request, Time};
use ssdyno_workload::{
    BeyondEnd, Format, ObjectIds, TraceOptions, TraceTiming, Workload, WorkloadError, read_trace,
};

type Opened = Result<Box<dyn Workload + Send>, WorkloadError>;

fn open(bytes: &[u8], options: &TraceOptions) -> Opened {
    let reader: Box<dyn Read + Send> = Box::new(Cursor::new(bytes.to_vec()));
    read_trace(reader, Path::new("some.trace"), options, &DEVICE)
}

fn run(bytes: &[u8], options: &TraceOptions) -> (Vec<Issued>, Option<WorkloadError>, String) {
    let mut workload = match open(bytes, options) {
        Ok(workload) => workload,
        Err(error) => return (Vec::new(), Some(error), String::new()),
    };
    let all = play(workload.as_mut(), &DEVICE, Time::from_us(10), 1_000_000);
    let notes = workload.notes().join("\n");
    (all, workload.error(), notes)
}

fn good(bytes: &[u8], options: &TraceOptions) -> (Vec<Issued>, String) {
    let (all, error, notes) = run(bytes, options);
    assert_eq!(error, None);
    (all, notes)
}

fn refused(bytes: &[u8], options: &TraceOptions) -> WorkloadError {
    open(bytes, options).err().unwrap_or_else(|| panic!("must be refused"))
}

fn of(format: Format) -> TraceOptions {
    TraceOptions { format: Some(format), ..TraceOptions::default() }
}

fn requests(all: &[Issued]) -> Vec<Request> {
    all.iter().map(|issued| issued.request).collect()
}

fn times_us(all: &[Issued]) -> Vec<u64> {
    all.iter().map(|issued| issued.intended.as_ns() / 1000).collect()
}

/// Time in s, object, size.
type Use = (u32, u64, u32);

/// `struct oracleGeneral_req`, packed: u32 time, u64 object, u32 size, i64 position of the next use,
/// from 1, or -1.
fn oracle_general(uses: &[Use]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, (time, object, size)) in uses.iter().enumerate() {
        bytes.extend(time.to_le_bytes());
        bytes.extend(object.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next_use(uses, at).to_le_bytes());
    }
    bytes
}

fn next_use(uses: &[Use], at: usize) -> i64 {
    let later = uses[at + 1..].iter().position(|(_, object, _)| *object == uses[at].1);
    later.map_or(-1, |later| (at + 1 + later + 1) as i64)
}

/// Ten accesses to four objects in three seconds.
fn uses() -> Vec<Use> {
    (0..10).map(|at| (5_633_898 + at / 4, 1000 + u64::from(at % 4) * 8, 4096)).collect()
}

/// SCSI command, block, length, time in us.
type Command = (u16, u64, u32, u64);

/// `trace_v1_record_t`: sn, len, nSG (u32), cmd, ver (u16), lbn, ts (u64).
fn vscsi_1(commands: &[Command]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, (command, block, length, time)) in commands.iter().enumerate() {
        for word in [0x8000_0000 | number as u32, *length, 1] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(command.to_le_bytes());
        bytes.extend(0x0100_u16.to_le_bytes());
        bytes.extend(block.to_le_bytes());
        bytes.extend(time.to_le_bytes());
    }
    bytes
}

/// `trace_v2_record_t`: cmd, ver (u16), sn, len, nSG (u32), lbn, ts, rt (u64).
fn vscsi_2(commands: &[Command]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, (command, block, length, time)) in commands.iter().enumerate() {
        bytes.extend(command.to_le_bytes());
        bytes.extend(0x0200_u16.to_le_bytes());
        for word in [number as u32, *length, 1] {
            bytes.extend(word.to_le_bytes());
        }
        for word in [*block, *time, 500] {
            bytes.extend(word.to_le_bytes());
        }
    }
    bytes
}

fn commands() -> Vec<Command> {
    let codes = [0x2A, 0x28, 0x88, 0x8A, 0x08, 0x0A, 0xA8, 0xAA, 0x12, 0x35];
    let at = |(at, code): (usize, &u16)| (*code, 16 * at as u64, 8192, 9_000_000 + 250 * at as u64);
    codes.iter().enumerate().map(at).collect()
}

#[test]
fn oracle_general_is_told_by_its_links_and_says_what_it_lacks() {
    let bytes = oracle_general(&uses());
    let (all, notes) = good(&bytes, &TraceOptions::default());
    assert_eq!(all.len(), 10);
    assert_eq!(all[1].request, Request::read(1008 * 512, 4096));
    assert_eq!(times_us(&all)[7..], [1_000_000, 2_000_000, 2_000_000]);
    for words in [
        "read as oraclegeneral, which was recognised from its content",
        "no operations: all requests were replayed as reads",
        "objects were read as sectors of 512 B",
        "whole seconds",
        "time 0 is the time of the first replayed request: 5633898 s",
    ] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
    let zstd = ruzstd::encoding::compress_to_vec(
        bytes.as_slice(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    assert_eq!(requests(&good(&zstd, &TraceOptions::default()).0), requests(&all));
    // libCacheSim passes over what has no size.
    let mut empty = uses();
    empty[3].2 = 0;
    let (all, notes) = good(&oracle_general(&empty), &TraceOptions::default());
    assert_eq!(all.len(), 9);
    assert!(notes.contains("1 trace record skipped: objects without a size"), "{notes}");
}

#[test]
fn objects_are_sectors_bytes_or_names() {
    let with = |object_ids| TraceOptions { object_ids, ..TraceOptions::default() };
    let bytes = oracle_general(&uses());
    let (all, notes) = good(&bytes, &with(ObjectIds::Byte));
    // 1008 to 5104, in sectors of 512 B.
    assert_eq!(all[1].request, Request::read(512, 4608));
    assert!(notes.contains("read as byte addresses"), "{notes}");
    let (all, notes) = good(&bytes, &with(ObjectIds::Hash));
    assert_eq!((all[0].request, all[1].request), (all[4].request, all[5].request), "same object");
    assert_ne!(all[0].request, all[1].request);
    assert!(notes.contains("hash of its name"), "{notes}");
    // Names that are hashes already are no addresses: that shows at once.
    let names: Vec<Use> = (0..10).map(|at| (at, u64::MAX - u64::from(at), 4096)).collect();
    let error = refused(&oracle_general(&names), &TraceOptions::default());
    assert!(error.to_string().contains("trace.ids=hash"), "{error}");
    let far: Vec<Use> =
        (0..10).map(|at| (at, DEVICE.capacity_bytes + u64::from(at), 4096)).collect();
    let error = refused(&oracle_general(&far), &TraceOptions::default());
    assert!(error.to_string().contains("trace.ids=byte"), "{error}");
    assert_eq!(good(&oracle_general(&names), &with(ObjectIds::Hash)).0.len(), 10);
}

#[test]
fn vscsi_has_two_versions() {
    for bytes in [vscsi_1(&commands()), vscsi_2(&commands())] {
        let (all, notes) = good(&bytes, &TraceOptions::default());
        let ops: Vec<Op> = all.iter().map(|issued| issued.request.op).collect();
        use Op::{Flush, Read, Write};
        assert_eq!(ops, [Write, Read, Read, Write, Read, Write, Read, Write, Flush]);
        assert_eq!(all[1].request, Request::read(16 * 512, 8192));
        assert_eq!(times_us(&all)[..3], [0, 250, 500]);
        assert!(notes.contains("read as vscsi") && notes.contains("time 0 is the time"), "{notes}");
        assert!(notes.contains("1 trace record skipped: commands that neither"), "{notes}");
    }
    let error = refused(&[0; 400], &of(Format::Vscsi));
    assert!(error.to_string().contains("not a version of vscsi"), "{error}");
}

#[test]
fn alibaba_and_tencent_have_several_devices() {
    let alibaba = "419,W,8192,16384,1577808144360767\n725,R,360448,4096,1577808144360813\n\
                   419,R,0,4096,1577808144361000\n";
    let (all, notes) = good(alibaba.as_bytes(), &TraceOptions::default());
    let expected =
        [Request::write(8192, 16384), Request::read(360_448, 4096), Request::read(0, 4096)];
    assert_eq!((requests(&all), times_us(&all)), (expected.to_vec(), vec![0, 46, 233]));
    assert!(notes.contains("read as alibaba") && notes.contains("several devices (419, 725)"));
    let tencent = "1538323199,105352008,584,1,1576\n1538323200,8,16,0,1576\n1538323200,0,8,0,7\n";
    let (all, notes) = good(tencent.as_bytes(), &TraceOptions::default());
    let expected = [
        Request::write(105_352_008 * 512, 584 * 512),
        Request::read(4096, 8192),
        Request::read(0, 4096),
    ];
    assert_eq!(
        (requests(&all), times_us(&all)),
        (expected.to_vec(), vec![0, 1_000_000, 1_000_000])
    );
    assert!(notes.contains("read as tencent") && notes.contains("whole seconds"), "{notes}");
    // A copy that was given a header.
    let named = format!("device_id,opcode,offset,length,timestamp\n{alibaba}");
    assert_eq!(good(named.as_bytes(), &TraceOptions::default()).0.len(), 3);
    let other = TraceOptions { devices: vec!["725".into(), "3".into()], ..of(Format::Alibaba) };
    let (all, notes) = good(named.as_bytes(), &other);
    assert_eq!((requests(&all).len(), times_us(&all)), (1, vec![0]), "time 0 is the 725's first");
    assert!(notes.contains("names of columns"), "{notes}");
}

#[test]
fn devices_lie_one_after_the_other_where_slots_say_so() {
    let text = "5,R,0,4096,1577808144000000\n9,W,4096,4096,1577808144000001\n\
                5,W,8192,4096,1577808144000002\n9,R,65536,4096,1577808144000003\n";
    let slots = |slot: u64, devices: &[&str], beyond_end| TraceOptions {
        slot_bytes: Some(slot),
        devices: devices.iter().map(|&device| device.to_owned()).collect(),
        beyond_end,
        ..TraceOptions::default()
    };
    let (all, notes) = good(text.as_bytes(), &slots(1 << 20, &[], BeyondEnd::Fail));
    let expected = [
        Request::read(0, 4096),
        Request::write((1 << 20) + 4096, 4096),
        Request::write(8192, 4096),
        Request::read((1 << 20) + 65536, 4096),
    ];
    assert_eq!(requests(&all), expected);
    assert!(notes.contains("2 devices of the trace lie one after the other"), "{notes}");
    // Only replayed devices have a slot.
    let (all, _) = good(text.as_bytes(), &slots(1 << 20, &["9"], BeyondEnd::Fail));
    assert_eq!(requests(&all)[0], Request::write(4096, 4096));
    let (all, error, _) = run(text.as_bytes(), &slots(65536, &[], BeyondEnd::Fail));
    assert_eq!(all.len(), 3);
    assert!(error.unwrap().to_string().contains("ends beyond the 65536 bytes of its slot"));
    let (all, notes) = good(text.as_bytes(), &slots(65536, &[], BeyondEnd::Skip));
    assert_eq!(all.len(), 3);
    assert!(notes.contains("left out: it ends beyond the slot of its device"), "{notes}");
    let error = refused(text.as_bytes(), &slots(0, &[], BeyondEnd::Fail));
    assert_eq!(error.key.as_deref(), Some("slot_bytes"));
}

#[test]
fn libcachesims_text_has_three_forms() {
    let printed = "# time,object,size,next_access_vtime\n5,16,4096,3\n6,8,512,-1\n7,16,4096,-1\n";
    let expected =
        [Request::read(16 * 512, 4096), Request::read(8 * 512, 512), Request::read(16 * 512, 4096)];
    let (all, notes) = good(printed.as_bytes(), &TraceOptions::default());
    assert_eq!(requests(&all), expected);
    assert_eq!(times_us(&all), [0, 1_000_000, 2_000_000]);
    assert!(notes.contains("read as libcachesim") && notes.contains("no operations"), "{notes}");
    // The example that comes with it: of a vSCSI trace.
    let header = "version,time,op,size,lbn\n1,5,2a,8192,16\n1,6,28,512,8\n";
    let (all, notes) = good(header.as_bytes(), &TraceOptions::default());
    assert_eq!(requests(&all), [Request::write(16 * 512, 8192), Request::read(8 * 512, 512)]);
    assert!(notes.contains("read as libcachesim") && !notes.contains("no operations"), "{notes}");
    let (all, error, _) =
        run(format!("{header}1,7,99,512,8\n").as_bytes(), &of(Format::LibCacheSim));
    assert_eq!((all.len(), error.unwrap().at.unwrap().number), (2, 4));
    // Without header or comment only enough lines tell.
    let mut bare = String::new();
    for (at, (time, object, size)) in uses().iter().enumerate() {
        writeln!(bare, "{time},{object},{size},{}", next_use(&uses(), at)).unwrap();
    }
    let (all, notes) = good(bare.as_bytes(), &TraceOptions::default());
    assert!(all.len() == 10 && notes.contains("read as libcachesim"), "{notes}");
}

#[test]
fn columns_are_named_for_a_file_without_header() {
    let text = "7;5.5;16;4096\n7;6.5;24;512\n";
    let columns =
        |names: &str| TraceOptions { columns: Some(names.to_owned()), ..TraceOptions::default() };
    let (all, notes) = good(text.as_bytes(), &columns("x;time_s;object;length_bytes"));
    assert_eq!(requests(&all), [Request::read(16 * 512, 4096), Request::read(24 * 512, 512)]);
    assert_eq!(times_us(&all), [0, 1_000_000]);
    assert!(notes.contains("no operations"), "{notes}");
    // Its own header is passed over, and said to be.
    let named = format!("a;when;what;size\n{text}");
    let (all, notes) = good(named.as_bytes(), &columns("x;time_s;object;length_bytes"));
    assert!(all.len() == 2 && notes.contains("names of columns"), "{notes}");
    let (all, _) = good(text.as_bytes(), &columns("x,time_s,object,length_bytes"));
    assert_eq!(all.len(), 2, "the file's own mark between columns");
    let error = refused(text.as_bytes(), &columns("time_s;length_bytes"));
    assert!(error.to_string().contains("no column `op`"), "{error}");
    let both = TraceOptions { format: Some(Format::Msr), ..columns("op") };
    assert_eq!(refused(text.as_bytes(), &both).key.as_deref(), Some("columns"));
}

/// An ambiguous file asks for the format.
#[test]
fn a_doubtful_file_is_not_read() {
    let oracle = oracle_general(&uses());
    // Too few records, links that lead to another object, times that go back, and a file that begins
    // in the middle of another.
    let mut broken = oracle.clone();
    broken[16..24].copy_from_slice(&4_i64.to_le_bytes());
    let mut backwards = oracle.clone();
    backwards[24..28].copy_from_slice(&1_u32.to_le_bytes());
    for bytes in [&oracle[..24 * 7], &broken, &backwards, &oracle[24..], &vscsi_1(&commands())[1..]]
    {
        let error = refused(bytes, &TraceOptions::default());
        assert!(error.to_string().contains("`trace.format`"), "{error}");
        assert!(error.help.unwrap().contains("oraclegeneral"));
    }
    // Who names it is believed.
    assert_eq!(good(&oracle[..24 * 7], &of(Format::OracleGeneral)).0.len(), 7);
    assert_eq!(good(&oracle[24..], &of(Format::OracleGeneral)).0.len(), 9);
    for text in [
        // Five numbers, the fourth 0 or 1, but no date.
        "17,105352008,584,1,1576\n18,8,16,0,1576\n",
        // Four numbers that are no links.
        "1,100,4096,500000\n2,200,4096,600000\n3,300,4096,700000\n4,100,4096,2\n",
        "1,100,4096\n2,200,4096\n",
    ] {
        let error = refused(text.as_bytes(), &TraceOptions::default());
        assert!(error.to_string().contains("`trace.format`"), "{text}: {error}");
    }
    let lcs = [0xF0, 0xDE, 0xBC, 0x9A, 0x78, 0x56, 0x34, 0x12].repeat(200);
    assert!(refused(&lcs, &TraceOptions::default()).to_string().contains("traceConv"));
    let blktrace = [7, b't', b'a', b'e', 0, 0, 0, 0, 255].repeat(30);
    assert!(refused(&blktrace, &TraceOptions::default()).to_string().contains("blkparse"));
}

#[test]
fn a_time_may_look_like_the_mark_of_compression() {
    // 1F 8B is gzip's, 5D 00 00 LZMA's; both are times, too.
    for time in [0x0055_8B1F_u32, 0x0100_005D] {
        let uses: Vec<Use> = (0..10).map(|at| (time, at % 3, 512)).collect();
        assert_eq!(good(&oracle_general(&uses), &TraceOptions::default()).0.len(), 10, "{time:#x}");
    }
}

#[test]
fn faults_of_records_have_their_byte() {
    let mut bytes = vscsi_1(&commands());
    bytes.truncate(32 * 9 + 7);
    let (all, error, _) = run(&bytes, &TraceOptions::default());
    let text = error.unwrap().to_string();
    assert_eq!(all.len(), 8);
    assert!(text.contains("byte 288 (record 10)") && text.contains("7 bytes of 32"), "{text}");
    let mut bytes = vscsi_1(&commands());
    bytes[32 * 4 + 15] = 7;
    let (all, error, _) = run(&bytes, &of(Format::Vscsi));
    let text = error.unwrap().to_string();
    assert_eq!(all.len(), 4);
    assert!(text.contains("byte 128 (record 5)") && text.contains("0x0700"), "{text}");
    let mut bytes = oracle_general(&uses());
    bytes[24 * 6 + 23] = 0x80;
    let (all, error, _) = run(&bytes, &of(Format::OracleGeneral));
    let text = error.unwrap().to_string();
    assert_eq!(all.len(), 6);
    assert!(text.contains("byte 144 (record 7)") && text.contains("next use"), "{text}");
    for (text, words) in [
        ("5,R,0,4096,1577808144000000\n5,R,0,4096\n", "cut short"),
        ("5,R,0,4096,1577808144000000\n5,X,0,4096,1577808144000000\n", "op is `X`"),
        ("5,R,0,4096,1577808144000000\n5,R,0,4096,1577808144000000,7\n", "6 columns"),
        ("5,R,0,4096,1577808144000000\n5,R,0,0,1577808144000000\n", "zero length"),
        ("1538323199,8,8,1,5\n1538323199,8,8,2,5\n", "0 is a read, 1 a write"),
    ] {
        let format = if text.starts_with('5') { Format::Alibaba } else { Format::Tencent };
        let (all, error, _) = run(text.as_bytes(), &of(format));
        let error = error.unwrap();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!((all.len(), error.at.unwrap().number), (1, 2), "{text}");
    }
}

/// A lead-in of 0.9385 s and 135 ms of load, as MQSim's tpcc-small has them: what is offered is the
/// load, in every format alike.
#[test]
fn a_lead_in_is_no_load() {
    let mut text = String::new();
    for at in 0..1000_u64 {
        writeln!(text, "{} 0 {} 8 1", 938_513_000 + at * 19_500, at * 8).unwrap();
    }
    let (all, _) = good(text.as_bytes(), &TraceOptions::default());
    let offered = 1000.0 / all[999].intended.as_s_f64();
    assert!((offered - 51_333.0).abs() < 1.0, "{offered}");
    let fast = TraceTiming::AsFastAsPossible { depth: 4 };
    let (_, notes) = good(text.as_bytes(), &TraceOptions { timing: fast, ..of(Format::MqSim) });
    assert!(!notes.contains("time 0"), "times do not count: {notes}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rendered_records_are_read_back(
        which in 0..3_usize,
        named: bool,
        records in prop::collection::vec((0_u32..3, 0_u64..40, 1_u32..64, any::<bool>()), 12..200),
    ) {
        let mut time = 1_000;
        let uses: Vec<Use> = records.iter().map(|&(gap, object, sectors, _)| {
            time += gap;
            (time, object * 64, sectors * 512)
        }).collect();
        let commands: Vec<Command> = records.iter().zip(&uses).map(|(record, &(time, block, size))| {
            (if record.3 { 0x28 } else { 0x2A }, block, size, u64::from(time))
        }).collect();
        let (format, bytes) = match which {
            0 => (Format::OracleGeneral, oracle_general(&uses)),
            1 => (Format::Vscsi, vscsi_1(&commands)),
            _ => (Format::Vscsi, vscsi_2(&commands)),
        };
        // Without a second use of anything nothing proves the links, but the last has none.
        let options = TraceOptions { format: named.then_some(format), ..TraceOptions::default() };
        let (all, error, notes) = run(&bytes, &options);
        prop_assert_eq!(error, None);
        prop_assert!(named || notes.contains(format.name()), "{}", notes);
        let unit = if which == 0 { 1_000_000 } else { 1 };
        let got: Vec<_> = all.iter().map(|i| (i.intended, i.request)).collect();
        let expected: Vec<_> = commands.iter().map(|&(code, block, length_bytes, at)| {
            let op = if which > 0 && code == 0x2A { Op::Write } else { Op::Read };
            let since = (at - u64::from(uses[0].0)) * unit;
            (Time::from_us(since), Request { op, offset_bytes: block * 512, length_bytes })
        }).collect();
        prop_assert_eq!(got, expected);
    }

    /// Damage and arbitrary bytes end in an error or a shorter load.
    #[test]
    fn damaged_records_are_harmless(
        which in 0..3_usize,
        format in prop::option::of(prop::sample::select(Format::ALL.to_vec())),
        object_ids in prop::sample::select(vec![ObjectIds::Sector, ObjectIds::Byte, ObjectIds::Hash]),
        slot in prop::option::of(1_u64..1 << 30),
        damage in prop::collection::vec((any::<usize>(), any::<u8>(), 0..3_u8), 0..8),
    ) {
        let mut bytes = match which {
            0 => oracle_general(&uses()),
            1 => vscsi_1(&commands()),
            _ => vscsi_2(&commands()),
        };
        for (at, byte, how) in damage {
            let at = at % (bytes.len() + 1);
            match how {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ if at < bytes.len() => { bytes.remove(at); }
                _ => {}
            }
        }
        let options = TraceOptions {
            format,
            object_ids,
            slot_bytes: slot,
            beyond_end: BeyondEnd::Skip,
            ..TraceOptions::default()
        };
        if let Ok(mut workload) = open(&bytes, &options) {
            play(workload.as_mut(), &DEVICE, Time::from_us(10), 100_000);
        }
    }

    /// Bytes without meaning are no records of any format.
    #[test]
    fn noise_is_not_taken_for_records(bytes in prop::collection::vec(any::<u8>(), 240..2000)) {
        let error = refused(&bytes, &TraceOptions::default());
        prop_assert!(error.help.is_some());
    }
}
