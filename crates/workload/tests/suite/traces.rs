//! Traces: every format, every fault, every option.
use crate::common;

use std::fmt::Write as _;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use common::{DEVICE, Issued, play};
use proptest::prelude::*;
use ssdyno_block::{Op, Request, Time};
use ssdyno_workload::{
    BeyondEnd, BlkEvent, Format, TargetFacts, TraceOptions, TraceOrigin, TraceTiming, Workload,
    WorkloadError, open_trace, read_trace,
};

type Opened = Result<Box<dyn Workload + Send>, WorkloadError>;

fn open(bytes: impl Into<Vec<u8>>, options: &TraceOptions) -> Opened {
    let reader: Box<dyn Read + Send> = Box::new(Cursor::new(bytes.into()));
    read_trace(reader, Path::new("some.trace"), options, &DEVICE)
}

/// Plays to the end; the error that ended it, if one did, and the notes.
fn run(text: &str, options: &TraceOptions) -> (Vec<Issued>, Option<WorkloadError>, String) {
    let mut workload = match open(text, options) {
        Ok(workload) => workload,
        Err(error) => return (Vec::new(), Some(error), String::new()),
    };
    let all = play(workload.as_mut(), &DEVICE, Time::from_us(10), 1_000_000);
    let notes = workload.notes().join("\n");
    (all, workload.error(), notes)
}

fn good(text: &str, options: &TraceOptions) -> Vec<Issued> {
    let (all, error, _) = run(text, options);
    assert_eq!(error, None, "{text}");
    all
}

fn refused(bytes: impl Into<Vec<u8>>, options: &TraceOptions) -> WorkloadError {
    match open(bytes, options) {
        Ok(_) => panic!("must be refused"),
        Err(error) => error,
    }
}

fn times_us(all: &[Issued]) -> Vec<u64> {
    all.iter().map(|issued| issued.intended.as_ns() / 1000).collect()
}

fn requests(all: &[Issued]) -> Vec<Request> {
    all.iter().map(|issued| issued.request).collect()
}

fn of(format: Format) -> TraceOptions {
    TraceOptions { format: Some(format), ..TraceOptions::default() }
}

/// One trace in every format: a write of 4 KiB at 1 MiB at 1 ms, a read of 8 KiB at 0 at 3 ms.
const SAME: &[(Format, &str)] = &[
    (Format::DiskSim, "1.000000 0 2048 8 0\n3.000000 0 0 16 1\n"),
    (Format::MqSim, "1000000 0 2048 8 0\n3000000 0 0 16 1\n"),
    (
        Format::Msr,
        "128166372003061000,usr,0,Write,1048576,4096,100\n128166372003081000,usr,0,Read,0,8192,5\n",
    ),
    (
        Format::Blkparse,
        "  8,0    1        1     0.001000000   697  Q   W 2048 + 8 [dd]\n\
         \x20 8,0    1        2     0.001000900   697  D   W 2048 + 8 [dd]\n\
         \x20 8,0    1        3     0.003000000   697  Q  RA 0 + 16 [dd]\n\
         \x20 8,0    1        0     0.003000001     0  m   N cfq697 insert\n\
         CPU1 (8,0):\n Reads Queued:           1,        8KiB\n",
    ),
    (
        Format::Fio,
        "fio version 3 iolog\n0 /dev/a add\n0 /dev/a open\n1000 /dev/a write 1048576 4096\n\
         3000 /dev/a read 0 8192\n3100 /dev/a close\n",
    ),
    (
        Format::Csv,
        "\u{feff}time_us,op,offset_bytes,length_bytes\r\n1000,write,1048576,4096\r\n3000,R,0,8192\r\n",
    ),
];

#[test]
fn all_formats_say_the_same() {
    for (format, text) in SAME {
        let (all, error, notes) = run(text, &TraceOptions::default());
        assert_eq!(error, None, "{format}");
        let expected = [Request::write(1 << 20, 4096), Request::read(0, 8192)];
        assert_eq!(requests(&all), expected, "{format}");
        assert_eq!(times_us(&all), [0, 2000], "{format}");
        assert!(notes.contains(format.name()), "{format} must be detected: {notes}");
        let fixed = good(text, &of(*format));
        assert_eq!(requests(&fixed), expected);
        assert_eq!(times_us(&fixed), [0, 2000], "{format}: one rule for all");
        assert!(
            notes.contains("time 0 is the time of the first replayed request"),
            "{format}: {notes}"
        );
        let absolute = TraceOptions { origin: TraceOrigin::Absolute, ..TraceOptions::default() };
        let (all, error, notes) = run(text, &absolute);
        if matches!(format, Format::Msr) {
            assert!(error.unwrap().to_string().contains("`trace.origin=first`"));
        } else {
            assert_eq!((times_us(&all), error), (vec![1000, 3000], None), "{format}");
            assert!(notes.contains("the first replayed request is at 0.001 s"), "{notes}");
        }
        assert_eq!(format.name().parse::<Format>().unwrap(), *format);
    }
    assert!("ascii".parse::<Format>().is_err());
}

#[test]
fn blkparse_knows_flushes_discards_and_events() {
    let text = "8,0 1 1 0.000000000 6 Q FWS 0 + 0 [a]\n8,0 1 2 0.1 6 Q FWFS 8 + 8 [a]\n\
                8,0 1 3 0.2 6 Q DS 800 + 80 [a]\n8,0 1 4 0.3 6 D R 36 (12 00 00) [b]\n\
                8,0 1 5 0.4 6 D RSM 16 + 8 [a]\n8,0 1 6 0.5 6 D N 0 (00 ..) [b]\n";
    let expected = [
        Request::flush(),
        Request::flush(),
        Request::write(4096, 4096),
        Request::trim(800 * 512, 80 * 512),
    ];
    assert_eq!(requests(&good(text, &of(Format::Blkparse))), expected);
    let dispatched = TraceOptions { event: Some(BlkEvent::Dispatch), ..TraceOptions::default() };
    let (all, error, notes) = run(text, &dispatched);
    assert_eq!((requests(&all), error), (vec![Request::read(8192, 4096)], None));
    assert!(notes.contains("2 trace lines skipped"), "{notes}");
    let queued = TraceOptions { event: Some(BlkEvent::Queue), ..TraceOptions::default() };
    let error = refused("8,0 1 5 0.4 6 D R 16 + 8 [a]\n", &queued);
    assert!(error.to_string().contains("event (Q or D)"), "{error}");
}

/// As blkparse prints it (`process_default` of its source): input files are named before the first
/// event, requests without data have neither sector nor size, and `-t` adds the time elapsed.
#[test]
fn blkparse_prints_more_than_requests() {
    let text = "Input file sda.blktrace.0 added\nInput file sda.blktrace.1 added\n  \
                8,0    3        1     0.000000000   697  Q   W 80 + 8 [fio (a b)]\n  \
                8,0    1       12     0.002000000   697  Q FWS [jbd2/sda1-8]\n  \
                8,0    1       13     0.003000000   697  Q  WS (    1234) [jbd2/sda1-8]\n  \
                8,0    1       14     0.004000000   697  Q   R 160 + 8 (    1234) [fio]\n  \
                8,0    1       15     0.005000000   697  Q   R 36 [udisksd]\n  \
                8,0    1       16     0.006000000   697  Q WBS 0 + 0 [jbd2]\n\
                CPU0 (sda):\n Reads Queued:           1,        4KiB\n";
    let (all, error, notes) = run(text, &TraceOptions::default());
    assert_eq!(error, None);
    let expected = [
        Request::write(40960, 4096),
        Request::flush(),
        Request::read(81920, 4096),
        Request::flush(),
    ];
    assert_eq!(requests(&all), expected);
    assert!(notes.contains("1 trace line skipped: commands without data"), "{notes}");
    let issued = text.replace(" Q ", " D ");
    let (all, error, notes) = run(&issued, &TraceOptions::default());
    assert_eq!((requests(&all), error), (expected.to_vec(), None));
    assert!(notes.contains("no event Q"), "{notes}");
}

#[test]
fn fio_version_2_waits_and_has_no_times() {
    let text = "fio version 2 iolog\n/a add\n/a open\n/a write 0 4096\n/a wait 99 0\n/a sync 0 0\n\
                /a wait 500 0\n/a trim 4096 4096\n/a datasync\n/a close\n";
    let (all, error, notes) = run(text, &TraceOptions::default());
    assert_eq!(error, None);
    let expected =
        [Request::write(0, 4096), Request::flush(), Request::trim(4096, 4096), Request::flush()];
    assert_eq!(requests(&all), expected);
    assert_eq!(times_us(&all), [0, 10, 500, 510], "one outstanding, and a wait of 500 us");
    assert!(notes.contains("no times"), "{notes}");
    let deep = TraceOptions { depth_limit: Some(2), ..TraceOptions::default() };
    assert_eq!(times_us(&good(text, &deep)), [0, 0, 500, 500]);
    let error = refused("fio version 1 iolog\n", &TraceOptions::default());
    assert!(error.to_string().contains("version 1"), "{error}");
}

#[test]
fn csv_columns_have_any_order_and_units() {
    let text = "# made by hand\ndevice;length_sectors;op;offset_sectors;time_s;other\n\
                a;8;\"trim\";16;0.5;x\nb;1;flush;;0.6;\n";
    let all = good(text, &TraceOptions { devices: vec!["a".into()], ..TraceOptions::default() });
    assert_eq!(requests(&all), [Request::trim(8192, 4096)]);
    let (all, _, notes) = run(text, &TraceOptions::default());
    assert_eq!(requests(&all)[1], Request::flush());
    assert!(notes.contains("several devices"), "{notes}");
    let untimed = "op,offset_bytes,length_bytes\nread,0,512\nread,512,512\n";
    assert_eq!(times_us(&good(untimed, &TraceOptions::default())), [0, 10]);
    // The rows of `requests.parquet`.
    let rows = "issue_ns,latency_ns,op,offset_bytes,length_bytes,status\n\
                5000,83000,write,0,4096,ok\n9000,1,flush,0,0,ok\n";
    let all = good(rows, &TraceOptions::default());
    assert_eq!(
        (requests(&all), times_us(&all)),
        (vec![Request::write(0, 4096), Request::flush()], vec![0, 4])
    );
    // As they are they are not text; what to do about it is said.
    let parquet = b"PAR1\x15\x00\xff\xfe\n\x00PAR1".as_slice();
    let error = refused(parquet, &TraceOptions::default());
    assert!(error.to_string().contains("Parquet"), "{error}");
    assert!(error.help.is_some_and(|help| help.contains("rows as CSV")));
    let tabs = "op\toffset_bytes\tlength_bytes\nread\t0\t512\nflush\t\t\n";
    let expected = [Request::read(0, 512), Request::flush()];
    assert_eq!(requests(&good(tabs, &TraceOptions::default())), expected);
    for header in ["time,op,offset_bytes,length_bytes", "op,length_bytes", "op,offset_bytes"] {
        refused(format!("{header}\n1,read,0,512\n"), &TraceOptions::default());
    }
}

#[test]
fn devices_are_told_apart() {
    let text = "1,hm,0,Read,0,512,1\n2,hm,1,Read,512,512,1\n3,prn,1,Read,1024,512,1\n";
    for (device, offsets) in
        [("hm", vec![0, 512]), ("1", vec![512, 1024]), ("hm.1", vec![512]), ("prn.1", vec![1024])]
    {
        let options = TraceOptions { devices: vec![device.to_owned()], ..of(Format::Msr) };
        let got: Vec<u64> =
            good(text, &options).iter().map(|issued| issued.request.offset_bytes).collect();
        assert_eq!(got, offsets, "{device}");
    }
    let error = refused(text, &TraceOptions { devices: vec!["x".into()], ..of(Format::Msr) });
    assert!(error.to_string().contains("3 trace lines skipped"), "{error}");
}

#[test]
fn times_scale_or_do_not_matter() {
    let text = "0.0 0 0 1 1\n1.0 0 8 1 1\n2.0 0 16 1 1\n3.0 0 24 1 1\n";
    let timed = |timing| TraceOptions { timing, ..TraceOptions::default() };
    assert_eq!(times_us(&good(text, &timed(TraceTiming::Scaled(0.5)))), [0, 500, 1000, 1500]);
    let fast = good(text, &timed(TraceTiming::AsFastAsPossible { depth: 2 }));
    assert_eq!(times_us(&fast), [0, 0, 10, 10]);
    let limited = TraceOptions {
        timing: TraceTiming::Scaled(1e-6),
        depth_limit: Some(1),
        ..TraceOptions::default()
    };
    let all = good(text, &limited);
    let at: Vec<u64> = all.iter().map(|issued| issued.at.as_ns()).collect();
    assert_eq!(at, [0, 10_000, 20_000, 30_000]);
    assert_eq!(all[3].intended, Time::from_ns(3), "latency counts from the recorded time");
    for timing in [
        TraceTiming::Scaled(0.0),
        TraceTiming::Scaled(f64::NAN),
        TraceTiming::Scaled(-1.0),
        TraceTiming::AsFastAsPossible { depth: 0 },
    ] {
        assert!(refused(text, &timed(timing)).key.is_some());
    }
    let few = TraceOptions { requests: Some(2), ..TraceOptions::default() };
    assert_eq!(good(text, &few).len(), 2);
    let short = TraceOptions { duration: Some(Time::from_ms(2)), ..TraceOptions::default() };
    assert_eq!(good(text, &short).len(), 2);
}

#[test]
fn late_lines_start_with_the_one_before() {
    let absolute = TraceOptions { origin: TraceOrigin::Absolute, ..of(Format::DiskSim) };
    let text = "5.0 0 0 1 1\n1.0 0 8 1 1\n6.0 0 16 1 1\n";
    let (all, error, notes) = run(text, &absolute);
    assert_eq!((times_us(&all), error), (vec![5000, 5000, 6000], None));
    assert!(notes.contains("1 request is earlier"), "{notes}");
    assert_eq!(times_us(&good(text, &of(Format::DiskSim))), [0, 0, 1000]);
}

#[test]
fn requests_beyond_the_end_fail_wrap_or_go() {
    let sectors = DEVICE.capacity_bytes / 512;
    let text = format!("0.5 0 0 8 1\n1.0 0 {} 8 0\n2.0 0 {} 8 1\n", sectors - 3, sectors + 10);
    let with = |beyond_end| TraceOptions { beyond_end, ..TraceOptions::default() };
    let (all, error, _) = run(&text, &with(BeyondEnd::Fail));
    let error = error.unwrap();
    assert_eq!((all.len(), error.at.as_ref().unwrap().number), (1, 2), "{error}");
    assert!(error.to_string().starts_with("some.trace:2: "), "{error}");
    let (all, error, notes) = run(&text, &with(BeyondEnd::Skip));
    assert_eq!((all.len(), error), (1, None));
    assert!(notes.contains("2 requests were left out"), "{notes}");
    let (all, error, notes) = run(&text, &with(BeyondEnd::Wrap));
    assert_eq!(error, None);
    let expected = [
        Request::read(0, 4096),
        Request::write((sectors - 3) * 512, 3 * 512),
        Request::write(0, 5 * 512),
        Request::read(5120, 4096),
    ];
    assert_eq!(requests(&all), expected);
    assert!(notes.contains("2 requests ended beyond") && notes.contains("1 request was split"));
    let text = format!("1.5 0 0 {} 0\n", sectors + 1);
    assert!(open(text, &with(BeyondEnd::Wrap)).is_err());
    let error = refused(format!("1.5 0 {sectors} 8 0\n"), &with(BeyondEnd::Skip));
    assert!(error.to_string().contains("1 request lies beyond"), "{error}");
}

#[test]
fn long_requests_are_split() {
    let text = "op,offset_bytes,length_bytes\ntrim,4096,10000000001\n";
    let options = TraceOptions { depth_limit: Some(9), ..TraceOptions::default() };
    let (all, error, notes) = run(text, &options);
    assert_eq!(error, None);
    assert_eq!(all.len(), 5);
    assert_eq!(all.iter().map(|i| u64::from(i.request.length_bytes)).sum::<u64>(), 10_000_000_512);
    let contiguous =
        |pair: &[Issued]| pair[0].request.end_bytes() == Some(pair[1].request.offset_bytes);
    assert!(all.windows(2).all(contiguous));
    assert!(notes.contains("1 request was split") && notes.contains("1 request was widened"));
}

#[test]
fn odd_ranges_are_widened_to_sectors() {
    let device = TargetFacts { capacity_bytes: 1 << 20, sector_bytes: 4096 };
    let reader = Box::new(Cursor::new("1.5 0 7 2 0\n"));
    let mut workload =
        read_trace(reader, Path::new("t"), &TraceOptions::default(), &device).unwrap();
    let all = play(workload.as_mut(), &device, Time::from_us(1), 10);
    assert_eq!(requests(&all), [Request::write(0, 8192)]);
}

/// Text after a good first line, and words of the message.
const WRONG: &[(Format, &str, &str)] = &[
    (Format::DiskSim, "2.0 0 55", "cut short"),
    (Format::DiskSim, "2.0 0 0 0 0", "zero length"),
    (Format::DiskSim, "NaN 0 0 8 0", "not a time"),
    (Format::DiskSim, "inf 0 0 8 0", "not a time"),
    (Format::DiskSim, "-1 0 0 8 0", "negative"),
    (Format::DiskSim, "2.0 0 -5 8 0", "not a whole number"),
    (Format::DiskSim, "2.0 0 99999999999999999999 8 0", "64 bits"),
    (Format::DiskSim, "2.0 0 18446744073709551615 8 0", "beyond any device"),
    (Format::DiskSim, "2.0 0 0 8 zz", "hexadecimal"),
    (Format::DiskSim, "2.0 0 0 8 0 9", "after the last field"),
    (Format::DiskSim, "99999999999999 0 0 8 0", "213"),
    (Format::DiskSim, "hello", "cut short"),
    (Format::MqSim, "2000000 0 0 8 2", "type is `2`"),
    (Format::MqSim, "2000000 0 0 8", "cut short"),
    (Format::Msr, "128166372003061629,usr,0,Erase,0,512,1", "Erase"),
    (Format::Msr, "128166372003061629,usr,0,Read,0,0,1", "zero length"),
    (Format::Msr, "128166372003061629,usr,0,Read,0", "cut short"),
    (Format::Blkparse, "8,0 1 1 0.1 6 Q R 16 + 0 [a]", "zero length"),
    (Format::Blkparse, "8,0 1 1 0.1 6 Q R 16", "cut short"),
    (Format::Blkparse, "8,0 1 1 0.1 6 Q R 16 8 [a]", "`+`"),
    (Format::Blkparse, "8,0 1 1 0.1 6 Q X 16 + 8 [a]", "rwbs"),
    (Format::Blkparse, "garbage", "the device is"),
    (Format::Fio, "7 /dev/a explode 0 512", "explode"),
    (Format::Fio, "7 /dev/a read 0", "cut short"),
    (Format::Fio, "7 /dev/a read 0 512 7", "after the last"),
    (Format::Csv, "5,jump,0,512", "jump"),
    (Format::Csv, "5,read,0", "cut short"),
    (Format::Csv, "5,read,,512", "not a whole number"),
];

#[test]
fn faults_name_the_line_and_end_the_run() {
    for (format, line, words) in WRONG {
        let good_part = SAME.iter().find(|(same, _)| same == format).unwrap().1;
        let good_part = good_part.split("CPU1").next().unwrap();
        let text = format!("{good_part}{line}\n");
        for options in [of(*format), TraceOptions::default()] {
            let (all, error, _) = run(&text, &options);
            let error = error.unwrap_or_else(|| panic!("{format}: `{line}` must be refused"));
            assert_eq!(all.len(), 2, "{line}: what came before is played");
            assert!(error.to_string().contains(words), "{line}: {error}");
            let at = error.at.unwrap();
            assert_eq!(at.number as usize, text.lines().count(), "{line}");
            assert_eq!(at.text.trim_end(), *line);
            assert!(error.help.is_some());
        }
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    let plain = TraceOptions::default();
    assert!(refused("", &plain).to_string().contains("empty"));
    assert!(refused("\n# nothing\n\n", &plain).to_string().contains("no line with content"));
    assert!(refused("once upon a time\n", &plain).to_string().contains("once upon"));
    let error = refused(b"\xff\xfe1.0 0 0 8 0\n".to_vec(), &of(Format::DiskSim));
    assert!(error.to_string().contains("UTF-8"), "{error}");
    let error = refused("1".repeat(200_000), &of(Format::DiskSim));
    assert!(error.to_string().contains("longer than"), "{error}");
    assert!(refused("", &of(Format::Csv)).to_string().contains("empty"));
    assert!(refused("fio version 3 iolog\n", &plain).to_string().contains("no request"));
    let missing = open_trace(Path::new("no/such.trace"), &plain, &DEVICE);
    assert!(missing.err().unwrap().to_string().contains("cannot be opened"));
    let directory = tempfile::tempdir().unwrap();
    assert!(open_trace(directory.path(), &plain, &DEVICE).is_err());
}

/// A file beside the checkout; prints why where it is missing.
fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces").join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn the_iozone_trace_of_s3() {
    let Some(path) = shared("iozone.trace.gz") else { return };
    let device = TargetFacts { capacity_bytes: 32 << 30, sector_bytes: 512 };
    let absolute = TraceOptions { origin: TraceOrigin::Absolute, ..TraceOptions::default() };
    let mut workload = open_trace(&path, &absolute, &device).unwrap();
    let all = play(workload.as_mut(), &device, Time::from_ms(1), 100_000);
    assert_eq!(workload.error(), None);
    assert_eq!(workload.notes().len(), 2, "{:?}", workload.notes());
    assert!(workload.notes()[0].contains("disksim"));
    // S3-24, S3-40: 100000 writes, last at 941714 ms, 360 KiB on average, 4 MiB at most.
    assert_eq!(all.len(), 100_000);
    assert!(all.iter().all(|issued| issued.request.op == Op::Write));
    assert_eq!(all[99_999].intended.as_ns() / 1_000_000, 941_714);
    let bytes: u64 = all.iter().map(|issued| u64::from(issued.request.length_bytes)).sum();
    assert_eq!((bytes as f64 / 1e5 / 1024.0).round(), 360.0);
    assert_eq!(all.iter().map(|issued| issued.request.length_bytes).max(), Some(4 << 20));
}

#[test]
fn the_mqsim_trace() {
    let Some(path) = shared("wsrch-small.mqsim.gz") else { return };
    let device = TargetFacts { capacity_bytes: 64 << 30, sector_bytes: 512 };
    let mut workload = open_trace(&path, &TraceOptions::default(), &device).unwrap();
    let all = play(workload.as_mut(), &device, Time::from_ms(1), 100_000);
    // The last of its 24783 lines has no line end.
    assert_eq!((all.len(), workload.error()), (24_783, None));
    assert_eq!(all[0].intended, Time::ZERO, "its own time is 11.413 ms");
    assert_eq!(all[24_782].intended, Time::from_ns(60_066_625_000 - 11_413_000));
    assert_eq!(all[0].request, Request::read(657_728 * 512, 16 * 512));
    let notes = workload.notes().join("\n");
    assert!(notes.contains("first replayed request: 0.011413 s on the trace's clock"), "{notes}");
    assert!(notes.contains("mqsim") && notes.contains("several devices"), "{notes}");
}

fn op_name(op: Op) -> &'static str {
    op.name()
}

/// Formats of text whose times have microseconds.
const TEXT: [Format; 7] = [
    Format::DiskSim,
    Format::MqSim,
    Format::Msr,
    Format::Blkparse,
    Format::Fio,
    Format::Csv,
    Format::Alibaba,
];

/// Writes the records as `format` has them; times in whole us.
fn render(format: Format, records: &[(u64, Op, u64, u64)]) -> String {
    let mut text = match format {
        Format::Fio => "fio version 3 iolog\n0 /f add\n0 /f open\n".to_owned(),
        Format::Csv => "time_us,op,offset_bytes,length_bytes\n".to_owned(),
        _ => String::new(),
    };
    for &(us, op, sector, sectors) in records {
        let read = u32::from(op == Op::Read);
        let name = op_name(op);
        let (offset, length) = (sector * 512, sectors * 512);
        let (ms, rest) = (us / 1000, us % 1000);
        match format {
            Format::DiskSim => writeln!(text, "{ms}.{rest:03} 0 {sector} {sectors} {read}"),
            Format::MqSim => writeln!(text, "{}000 0 {sector} {sectors} {read}", us),
            Format::Msr => {
                let ticks = 128_166_372_000_000_000 + us * 10;
                writeln!(text, "{ticks},host,0,{name},{offset},{length},1")
            }
            Format::Blkparse => {
                let rwbs = ["R", "WS", "D"][op as usize];
                let (s, us) = (us / 1_000_000, us % 1_000_000);
                writeln!(text, "8,0 0 1 {s}.{us:06}000 9 Q {rwbs} {sector} + {sectors} [x]")
            }
            Format::Fio => writeln!(text, "{us} /f {name} {offset} {length}"),
            Format::Alibaba => {
                let op = if op == Op::Read { "R" } else { "W" };
                writeln!(text, "419,{op},{offset},{length},{}", 1_577_808_000_000_000 + us)
            }
            _ => writeln!(text, "{us},{name},{offset},{length}"),
        }
        .unwrap();
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What is rendered is read back, in every format, detected or named.
    #[test]
    fn rendered_traces_are_read_back(
        format in proptest::sample::select(TEXT.to_vec()),
        named: bool,
        gaps in proptest::collection::vec((0_u64..5000, 0..3_usize, 0_u64..1 << 24, 1_u64..5000), 1..60),
    ) {
        let only_two = matches!(format, Format::DiskSim | Format::MqSim | Format::Alibaba);
        let mut us = 0;
        let records: Vec<(u64, Op, u64, u64)> = gaps.iter().map(|&(gap, op, sector, sectors)| {
            us += gap;
            let op = Op::ALL[if only_two { op % 2 } else { op }];
            (us, op, sector, sectors)
        }).collect();
        let text = render(format, &records);
        let options = TraceOptions {
            format: named.then_some(format),
            ..TraceOptions::default()
        };
        let (all, error, notes) = run(&text, &options);
        prop_assert_eq!(error, None);
        prop_assert!(named || notes.contains(format.name()), "{}", notes);
        let first = records[0].0;
        let expected: Vec<(Time, Request)> = records.iter().map(|&(us, op, sector, sectors)| {
            let length_bytes = (sectors * 512) as u32;
            (Time::from_us(us - first), Request { op, offset_bytes: sector * 512, length_bytes })
        }).collect();
        let got: Vec<(Time, Request)> = all.iter().map(|i| (i.intended, i.request)).collect();
        prop_assert_eq!(got, expected);
    }

    /// No reader panics or hangs, whatever it is given.
    #[test]
    fn arbitrary_bytes_are_harmless(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        format in proptest::option::of(proptest::sample::select(Format::ALL.to_vec())),
    ) {
        harmless(bytes, format);
    }

    /// The same with what looks like a trace but is damaged.
    #[test]
    fn damaged_traces_are_harmless(
        which in 0..SAME.len(),
        named: bool,
        damage in proptest::collection::vec((any::<usize>(), any::<u8>(), 0..3_u8), 1..8),
        beyond_end in proptest::sample::select(vec![BeyondEnd::Fail, BeyondEnd::Wrap, BeyondEnd::Skip]),
    ) {
        let (format, text) = SAME[which];
        let mut bytes = text.as_bytes().to_vec();
        for (at, byte, how) in damage {
            let at = at % (bytes.len() + 1);
            match how {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => bytes.insert(at, b'0' + byte % 10),
                _ if at < bytes.len() => { bytes.remove(at); }
                _ => {}
            }
        }
        let options = TraceOptions { format: named.then_some(format), beyond_end, ..TraceOptions::default() };
        if let Ok(mut workload) = open(bytes, &options) {
            play(workload.as_mut(), &DEVICE, Time::from_us(10), 10_000);
        }
    }
}

fn harmless(bytes: Vec<u8>, format: Option<Format>) {
    let options = TraceOptions { format, beyond_end: BeyondEnd::Skip, ..TraceOptions::default() };
    if let Ok(mut workload) = open(bytes, &options) {
        play(workload.as_mut(), &DEVICE, Time::from_us(10), 100_000);
    }
}
