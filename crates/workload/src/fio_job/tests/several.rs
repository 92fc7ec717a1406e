//! Several files in a job, and jobs that end one another. The expected values come from fio 3.33's log of requests
//! (`write_iolog`) for the same options with its null engine.

use super::*;

/// File and offset in KiB of each request of a job with two or three files of `step` KiB.
fn visited(text: &str, step: u64) -> Vec<(u64, u64)> {
    offsets(text).into_iter().map(|offset| (offset / step, offset % step)).collect()
}

#[test]
fn files_are_visited_as_in_fio() {
    // 13653 bytes each: three blocks and a rest that nobody asks for.
    let three = [(0, 0), (1, 0), (2, 0), (0, 4), (1, 4), (2, 4), (0, 8), (1, 8), (2, 8)];
    assert_eq!(visited("rw=read\nnrfiles=3\nsize=40k\n", 16), three);
    let sequential = "rw=read\nnrfiles=3\nsize=40k\nfile_service_type=sequential\n";
    let one_by_one = [(0, 0), (0, 4), (0, 8), (1, 0), (1, 4), (1, 8), (2, 0), (2, 4), (2, 8)];
    assert_eq!(visited(sequential, 16), one_by_one);
    let twice = "rw=read\nnrfiles=2\nsize=24k\nfile_service_type=roundrobin:2\n";
    assert_eq!(visited(twice, 12), [(0, 0), (0, 4), (1, 0), (1, 4), (0, 8), (1, 8)]);
    let part = "rw=read\nnrfiles=2\nfilesize=16k\nsize=24k\n";
    assert_eq!(visited(part, 16), [(0, 0), (1, 0), (0, 4), (1, 4), (0, 8), (1, 8)]);
    let again = "rw=read\nnrfiles=2\nsize=16k\nio_size=40k\n";
    let pass = [(0, 0), (1, 0), (0, 4), (1, 4)];
    assert_eq!(visited(again, 8), [&pass[..], &pass, &pass[..2]].concat());
    assert_eq!(visited("rw=read\nnrfiles=2\nsize=16k\nloops=2\n", 8), [pass, pass].concat());
    let holes = [(0, 0), (1, 0), (0, 8), (1, 8)];
    assert_eq!(visited("rw=read:4k\nnrfiles=2\nsize=32k\n", 16), [holes, holes].concat());
    let blocks = [(0, 0), (1, 0), (0, 8), (1, 8), (0, 16), (1, 16)];
    assert_eq!(visited("rw=read\nbs=8k\nnrfiles=2\nsize=50k\n", 28), blocks);
    let five = "rw=read\nnrfiles=2\nsize=32k\nnumber_ios=5\n";
    assert_eq!(visited(five, 16), [(0, 0), (1, 0), (0, 4), (1, 4), (0, 8)]);
}

#[test]
fn random_files_are_gone_through_once_and_by_chance() {
    for service in ["roundrobin", "random", "random:3"] {
        let text = format!("rw=randread\nnrfiles=4\nsize=4m\nfile_service_type={service}\n");
        let all = visited(&text, 1024);
        let mut once = all.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!((all.len(), once.len()), (1024, 1024), "{service}");
        let first = all.iter().take(512).filter(|(file, _)| *file == 0).count();
        let range = if service == "roundrobin" { 128..=128 } else { 80..=176 };
        assert!(range.contains(&first), "{service}: {first}");
    }
    // Time decides: each file begins again by itself, and none is left out.
    let timed = "rw=randread\nnrfiles=3\nsize=12k\ntime_based\nruntime=1ms\n";
    let all = visited(timed, 4);
    assert!(all.len() > 90, "{}", all.len());
    assert!(
        all.iter().enumerate().all(|(at, (file, offset))| (*file, *offset) == (at as u64 % 3, 0))
    );
}

#[test]
fn files_of_their_own_have_addresses_behind_one_another() {
    let file = |name: &str, start_bytes, length_bytes| FioFile {
        name: name.to_owned(),
        start_bytes,
        length_bytes,
    };
    let files = FioFiles::several(vec![file("/a", 0, 16_384), file("/b", 16_384, 8_192)]);
    let text =
        "[both]\nrw=write\nfilename=/a:/b\nfsync=2\nend_fsync=1\n[b]\nfilename=/b\nrw=read\n";
    let facts = TargetFacts { capacity_bytes: 24_576, sector_bytes: 512 };
    let streams = fio_streams(&jobs(text).unwrap(), &files, 1);
    let ranges: Vec<_> =
        streams[1].ranges.iter().map(|r| (r.start_bytes, r.length_bytes)).collect();
    assert_eq!(ranges, [(16_384, 8_192)]);
    let mut workload = streams[0].build(&facts).unwrap();
    let mut seen = Vec::new();
    while let WorkloadStep::Issue { request, .. } = workload.next(Time::ZERO) {
        workload.completed(crate::Finished::UNKNOWN, Time::ZERO);
        seen.push((request.op == Op::Flush, request.offset_bytes / 1024));
    }
    // A flush is for the file that was written last; at the end each has one.
    let (write, flush) = (|at| (false, at), |at| (true, at));
    let begun = [write(0), write(16), flush(16), write(4), write(20), flush(20)];
    let ended = [write(8), write(12), flush(16), flush(0)];
    assert_eq!(seen, [&begun[..], &ended].concat());
    let missing = FioFiles::several(vec![file("/a", 0, 4096), file("/b", 4096, 4096)]);
    let small = fio_streams(&jobs("[x]\nfilename=/a:/b\nbs=8k\n").unwrap(), &missing, 1);
    assert!(small[0].build(&facts).is_err());
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let of = |text: &str| run_together(vec![stream(text)], &FACTS).err().map(|e| e.to_string());
    assert!(of("nrfiles=4\nfilesize=512m\n").unwrap().contains("4 files of 536870912 B"));
    assert_eq!(of("nrfiles=4\nsize=1g\n"), None);
    assert_eq!(of("nrfiles=4\n"), None);
    assert_eq!(of("nrfiles=4\nsize=50%\noffset=50%\n"), None);
}

/// With sizes that differ the rest of a file is gone through by those that fit.
#[test]
fn the_rest_of_a_file_is_for_short_blocks() {
    let moved = |text: &str| issued(text).into_iter().map(|(_, length)| length).sum::<u64>();
    // 33 % of 1 GiB is 346030 KiB and a rest; fio cuts it to 4 KiB.
    let sizes = "rw=read\nbssplit=4k/50:64k/50\nsize=33%\n";
    assert_eq!(moved(sizes), 346_028);
    assert_eq!(moved("rw=read\nbs=64k\nsize=33%\n"), 345_984);
    let end = "rw=read\nbssplit=4k/50:64k/50\noffset=1048508k\n";
    assert_eq!(moved(end), (1 << 20) - 1_048_508);
}

#[test]
fn flows_keep_jobs_in_proportion() {
    let text = "[global]\nrw=randread\nnorandommap\nioengine=libaio\niodepth=4\nruntime=20ms\n\
                time_based\n[a]\nflow=8\n[b]\nflow=2\n[c]\nflow=1\n";
    let [a, b, c] = counts(text).map(|count| count as f64);
    assert!(c > 100.0 && (a / c - 8.0).abs() < 0.5 && (b / c - 2.0).abs() < 0.2, "{a} {b} {c}");
    // The others do not wait for a job that has ended, however it ended; other flows are not
    // affected.
    let ends = "[global]\nrw=read\n[a]\nflow=1\nnumber_ios=10\n[b]\nflow=1\nsize=1m\n[c]\nflow=5\n\
                flow_id=7\nsize=1m\n";
    assert_eq!(counts(ends), [10, 256, 256]);
    let ended = "[global]\nrw=read\nexitall\n[a]\nnumber_ios=10\n[b]\nflow=1\nsize=1m\n\
                 [c]\nnew_group\nflow=5\nsize=1m\n";
    let [a, b, c] = counts(ended);
    assert!(a == 10 && b <= 12 && c == 256, "{a} {b} {c}");
}

/// Requests of a rate begin at once: in 2 s at 10 a second there are 20, of each direction its own number.
#[test]
fn a_rate_begins_with_its_first_request() {
    let timed = "bs=4k\nruntime=2\ntime_based\nnorandommap\n";
    for (text, count) in [
        ("rw=read\nrate_iops=10\n", 20),
        ("rw=read\nrate=40k\n", 20),
        ("rw=randrw\nrate_iops=50,20\n", 140),
    ] {
        let all = play(&format!("[a]\n{text}{timed}"), Time::from_us(10));
        assert_eq!((all.len(), all[0].0), (count, Time::ZERO), "{text}");
    }
    let poisson = format!("[a]\nrw=read\nrate_iops=10\nrate_process=poisson\n{timed}");
    assert_eq!(play(&poisson, Time::from_us(10))[0].0, Time::ZERO);
}

/// How many requests each of three jobs issues.
fn counts(text: &str) -> [usize; 3] {
    let all = play(text, Time::from_us(10));
    [0, 1, 2].map(|job| all.iter().filter(|(_, _, stream)| *stream == job).count())
}

#[test]
fn the_end_of_a_job_ends_others() {
    let jobs = |exit: &str, wall: &str| {
        format!("[global]\nrw=read\nsize=1m\n{exit}\n[short]\nsize=64k\n[long]\n[other]\n{wall}\n")
    };
    assert_eq!(counts(&jobs("", "")), [16, 256, 256]);
    assert_eq!(counts(&jobs("exitall=0", "")), [16, 256, 256]);
    let [short, long, other] = counts(&jobs("exitall", ""));
    assert_eq!(short, 16);
    assert!((16..=18).contains(&long) && (16..=18).contains(&other), "{long} {other}");
    // Another set goes on, unless it runs and all that run are meant.
    let [_, long, other] = counts(&jobs("exitall", "new_group"));
    assert!((16..=18).contains(&long) && other == 256, "{long} {other}");
    let [_, long, other] = counts(&jobs("exitall\nexit_what=stonewall", "new_group"));
    assert!((16..=18).contains(&long) && (16..=18).contains(&other), "{long} {other}");
    // What has not begun never does where all are meant.
    assert_eq!(counts(&jobs("exitall\nexit_what=stonewall", "stonewall"))[2], 256);
    assert_eq!(counts(&jobs("exitall\nexit_what=all", "stonewall"))[2], 0);
    // Jobs without `exitall` are ended by it as well: it is for the whole file.
    let late = "[long]\nrw=read\nsize=1m\n[short]\nrw=read\nsize=64k\nexitall\n";
    assert!(counts(late)[0] <= 18);
}

proptest! {
    /// Any jobs on any files: every request lies within one file of its job, the end is reached, and the
    /// same comes out again.
    #[test]
    fn requests_stay_within_files(
        parts in prop::collection::vec(
            (
                (1u64..6, 0usize..4, 0usize..5, 1u64..9, 0usize..4),
                (0u64..40, 0u64..3, 1u64..3, prop::option::of(1u64..9), any::<bool>()),
            ),
            1..4,
        ),
        exits in any::<bool>(),
    ) {
        let mut text = String::from("[global]\nioengine=libaio\n");
        text.push_str(if exits { "exitall\n" } else { "" });
        for (number, part) in parts.iter().enumerate() {
            let ((files, rw, service, depth, size), (more, offset, loops, flow, wall)) = part;
            let rw = ["read", "randwrite", "randrw", "write:12k"][*rw];
            let service = ["roundrobin", "random", "sequential", "roundrobin:3", "random:2"][*service];
            let size = match size {
                0 => String::from("filesize=100k"),
                1 => String::from("size=200k\nio_size=300k"),
                2 => format!("size={}", 131_072 + 512 * more),
                _ => format!("size={}k\nbssplit=4k/50:12k/50", 128 + more),
            };
            text.push_str(&format!(
                "[j{number}]\nrw={rw}\nnrfiles={files}\nfile_service_type={service}\niodepth={depth}\n\
                 {size}\noffset={}k\nloops={loops}\nstonewall={}\n",
                4 * offset, u8::from(*wall)
            ));
            flow.iter().for_each(|weight| text.push_str(&format!("flow={weight}\n")));
        }
        let streams = fio_streams(&jobs(&text).unwrap(), &FioFiles::one(CAPACITY), 1);
        let all = play(&text, Time::from_us(20));
        for (_, request, stream) in &all {
            let end = request.offset_bytes + u64::from(request.length_bytes);
            let inside = |range: &FioRange| {
                range.start_bytes <= request.offset_bytes && end <= range.file_end_bytes
            };
            prop_assert!(streams[*stream as usize].ranges.iter().any(inside), "{text}{request:?}");
        }
        prop_assert!(!all.is_empty());
        prop_assert_eq!(&all, &play(&text, Time::from_us(20)));
    }
}
