//! Job files as people write them, and invalid ones.

use std::collections::VecDeque;
use std::path::PathBuf;

use proptest::prelude::*;
use ssdyno_block::{Op, Request};

use super::*;
use crate::{ArrivalKind, Finished, TargetFacts, TraceTiming, WorkloadError, WorkloadStep};

mod limits;
mod passes;
mod rates;
mod several;

const CAPACITY: u64 = 1 << 30;
const FACTS: TargetFacts = TargetFacts { capacity_bytes: CAPACITY, sector_bytes: 512 };

fn jobs(text: &str) -> Result<Vec<FioJob>, WorkloadError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    read_fio_jobs(file.path())
}

fn one(text: &str) -> FioJob {
    jobs(&format!("[a]\n{text}")).unwrap().remove(0)
}

fn refused(text: &str) -> (u64, String) {
    let error = jobs(&format!("[a]\n{text}")).unwrap_err();
    assert!(error.help.as_ref().is_some_and(|help| !help.is_empty()), "{error}");
    (error.at.as_ref().map_or(0, |at| at.number), error.to_string())
}

/// The load of the first copy of a job.
fn stream(text: &str) -> FioStream {
    fio_streams(&[one(text)], &FioFiles::one(CAPACITY), 1).remove(0)
}

#[test]
fn a_part_of_a_sector_is_refused_with_the_reason() {
    let error = stream("rw=read\nbs=3000\n").build(&FACTS).err().unwrap().to_string();
    assert!(error.contains("3000 B is not a multiple of the sector"), "{error}");
}

/// What a job issues: offset and length, both in KiB.
fn issued(text: &str) -> Vec<(u64, u64)> {
    let all = play(&format!("[a]\n{text}"), Time::from_us(10));
    let kib = |(_, r, _): &(Time, Request, u32)| {
        (r.offset_bytes / 1024, u64::from(r.length_bytes) / 1024)
    };
    all.iter().map(kib).collect()
}

fn offsets(text: &str) -> Vec<u64> {
    issued(text).into_iter().map(|(offset, _)| offset).collect()
}

/// Everything the jobs issue on a target that answers after `service`: when, what and for which
/// stream.
fn play(text: &str, service: Time) -> Vec<(Time, Request, u32)> {
    play_jobs(&jobs(text).unwrap(), service)
}

fn play_jobs(jobs: &[FioJob], service: Time) -> Vec<(Time, Request, u32)> {
    let streams = fio_streams(jobs, &FioFiles::one(CAPACITY), 1);
    let mut workload = run_together(streams, &FACTS).unwrap();
    let (mut now, mut issued) = (Time::ZERO, Vec::new());
    let mut under_way: VecDeque<(Time, Time, Request, u32)> = VecDeque::new();
    loop {
        let due = under_way.front().map(|(at, ..)| *at);
        if let Some((_, intended, request, stream)) = under_way.pop_front_if(|(at, ..)| *at <= now)
        {
            let finished = Finished::of(&request, now - intended);
            workload.completed(Finished { stream, ..finished }, now);
            continue;
        }
        match workload.next(now) {
            WorkloadStep::Issue { request, intended } => {
                assert!(intended <= now);
                issued.push((now, request, workload.stream()));
                under_way.push_back((now + service, intended, request, workload.stream()));
            }
            WorkloadStep::NotBefore(at) => {
                assert!(at > now);
                now = due.map_or(at, |due| due.min(at));
            }
            WorkloadStep::Wait => now = due.expect("waits for nothing"),
            WorkloadStep::Done => {
                assert!(under_way.is_empty() && workload.next(now) == WorkloadStep::Done);
                return issued;
            }
        }
        assert!(issued.len() < 100_000);
    }
}

#[test]
fn a_usual_job_is_carried_over() {
    let job =
        one("rw=randrw\nrwmixread=70\nbs=16k\niodepth=32\nioengine=io_uring\ndirect=1\nsize=50%\n\
         runtime=30\ntime_based\nnorandommap\ncpus_allowed=0-1\nfilename=/dev/x\nrandseed=9\n");
    assert_eq!((job.files.as_slice(), job.files_are_named), (&["/dev/x".to_owned()][..], true));
    assert_eq!(
        (job.engine, job.seed, job.cores.as_slice()),
        (FioEngine::Asynchronous, Some(9), &[0, 1][..])
    );
    assert_eq!(job.notes, Vec::<String>::new());
    assert!(job.changes_data());
    let stream = fio_streams(&[job], &FioFiles::one(CAPACITY), 1).remove(0);
    assert_eq!((stream.depth, stream.seed, stream.block_bytes_max()), (32, 9, 16_384));
    assert_eq!((stream.ranges[0].start_bytes, stream.ranges[0].length_bytes), (0, CAPACITY / 2));
    assert_eq!((stream.bytes, stream.duration), (None, Some(Time::from_s(30))));
}

#[test]
fn how_much_is_done_follows_size_and_copies() {
    let requests = |text: &str| issued(text).len();
    assert_eq!(requests("rw=read\nbs=1m\nsize=10m\n"), 10);
    assert_eq!(requests("rw=read\nbs=1m\nsize=10m\nio_size=30m\n"), 30);
    assert_eq!(requests("rw=read\nbs=1m\nsize=10m\nloops=3\n"), 30);
    assert_eq!(requests("rw=read\nbs=1m\nnumber_ios=7\n"), 7);
    assert_eq!(requests("rw=read\nbs=1m\nnumber_ios=7\nloops=3\n"), 21);
    // As counted in fio 3.33: how much is moved when passes and bytes are given.
    for (io, loops, blocks) in [
        ("160k", 2, 48),
        ("32k", 3, 24),
        ("96k", 2, 32),
        ("96k", 1, 24),
        ("50%", 1, 8),
        ("100%", 2, 32),
    ] {
        let text = format!("rw=read\nbs=4k\nsize=64k\nio_size={io}\nloops={loops}\n");
        assert_eq!(requests(&text), blocks, "{text}");
    }
    assert_eq!(requests("rw=read\nkb_base=1000\nbs=4kib\nsize=1m\n"), 245);
    // Holes are passed over until all was moved, if the range is the whole target.
    for (text, blocks) in [
        ("rw=read:1m\nbs=1m\n", 1024),
        ("rw=read:1m\nbs=1m\nsize=1g\n", 1024),
        ("rw=read:1m\nbs=1m\nsize=50%\n", 256),
        ("rw=read:1m\nbs=1m\noffset=512m\n", 256),
        ("rw=read:4k\nbs=16k\nsize=300k\nloops=3\n", 45),
        ("rw=read:4k\nbs=16k\nsize=300k\nio_size=300k\nloops=3\n", 45),
        ("rw=read:4k\nbs=16k\nsize=300k\nio_size=400k\n", 25),
        ("rw=read:4k\nbs=16k\nsize=300k\nio_size=200k\n", 13),
        ("rw=read:4k\nbs=16k\nsize=300k\nio_size=1000k\nloops=2\n", 75),
    ] {
        assert_eq!(requests(text), blocks, "{text}");
    }
    assert_eq!(requests("rw=read\nbs=1m\nsize=5m\nnumber_ios=7\n"), 5);
    assert_eq!(requests("rw=read\nbs=1m\n"), (CAPACITY >> 20) as usize);
    // fio 3.33 issues requests until the bytes are moved, and a map has whole blocks only.
    assert_eq!(requests("rw=read\nsize=1m\nio_size=10k\n"), 3);
    assert_eq!(requests("rw=read\nsize=10k\n"), 3);
    assert_eq!(requests("rw=randread\nsize=10k\n"), 2);
}

/// As logged by fio 3.33.
#[test]
fn shares_lead_to_the_next_block_and_backwards_begins_at_the_end() {
    let start = |text: &str| stream(&format!("rw=read\nsize=1m\n{text}")).ranges[0].start_bytes;
    // A third of 1 GiB ends within a block.
    assert_eq!(start("bs=8k\noffset=33%\n"), 43_254 * 8192);
    assert_eq!(start("bs=4k,64k\noffset=33%\n"), 86_508 * 4096);
    assert_eq!(start("bs=8k\noffset=33%\noffset_align=1m\n"), 338 << 20);
    assert_eq!(start("bs=8k\noffset=5000\noffset_align=1m\n"), 5000);
    let back = offsets("rw=read:-8k\nbs=4k\nsize=64k\noffset=1m\n");
    assert_eq!((back[0], back[1], back[14], back[15]), (1080, 1076, 1024, 1080));
    let back = offsets("rw=read:-8k\nbs=4k\nsize=64k\n");
    assert_eq!((back[0], back[1], back[15]), (0, 56, 0));
}

/// fio 3.33 ends such a job where it meets a block that only reads could have.
#[test]
fn sizes_of_a_direction_that_a_job_has_not_count_for_its_map() {
    let blocks = offsets("rw=randwrite\nbs=,8k\nsize=3m\n").len();
    assert!((40..384).contains(&blocks), "{blocks}");
    assert_eq!(offsets("rw=randwrite\nbs=8k\nsize=3m\n").len(), 384);
}

#[test]
fn the_random_map_takes_every_block_once() {
    let mut all = offsets("rw=randread\nsize=1m\noffset=4m\n");
    assert!(all.windows(2).any(|two| two[0] > two[1]), "{all:?}");
    all.sort_unstable();
    assert_eq!(all, (0..256).map(|block| 4096 + block * 4).collect::<Vec<_>>());
    // Reads and writes share the map; a second pass begins when the first is over.
    let mut all = offsets("rw=randrw\nsize=64k\nio_size=100k\n");
    assert_eq!(all.len(), 25);
    all[..16].sort_unstable();
    assert_eq!(all[..16], (0..16).map(|block| block * 4).collect::<Vec<_>>());
    all[16..].sort_unstable();
    assert!(all[16..].windows(2).all(|two| two[0] < two[1]));
    // Without it blocks come again.
    let mut all = offsets("rw=randread\nsize=1m\nnorandommap\n");
    all.sort_unstable();
    all.dedup();
    assert!((140..190).contains(&all.len()), "{} of 256", all.len());
}

#[test]
fn mixed_sizes_cover_the_map_without_overlap() {
    for sizes in ["bssplit=4k/50:16k/30:64k/20", "bsrange=4k-64k", "bssplit=8k/50:16k/50"] {
        let mut all = issued(&format!("rw=randread\nsize=4m\n{sizes}\n"));
        all.sort_unstable();
        let end = all.iter().fold(0, |end, (offset, length)| {
            assert_eq!(*offset, end, "{sizes}");
            end + length
        });
        assert_eq!(end, 4096, "{sizes}");
    }
    // Sequential ones follow one another and end with the range.
    let all = issued("rw=read\nsize=4m\nbssplit=4k/50:64k/50\n");
    assert!(all.windows(2).all(|two| two[1].0 == two[0].0 + two[0].1));
    assert_eq!(all.iter().map(|(_, length)| length).sum::<u64>(), 4096);
}

#[test]
fn holes_and_backwards_and_runs() {
    // As fio 3.33 writes to its log, block by block.
    assert_eq!(offsets("rw=read:4k\nsize=64k\n"), [0, 8, 16, 24, 32, 40, 48, 56]);
    let back = offsets("rw=read:-8k\nsize=128k\n");
    assert_eq!(back[0], 0);
    assert_eq!(back[1..], (0..31).rev().map(|block| block * 4).collect::<Vec<_>>());
    let runs = offsets("rw=randread:4\nnorandommap\nsize=1m\n");
    assert!(runs.chunks(4).all(|run| run.windows(2).all(|two| two[1] == two[0] + 4
        // A run that meets the end goes on elsewhere.
        || two[0] == 1020)));
    let same = offsets("rw=randread:4\nrw_sequencer=identical\nnorandommap\nsize=1m\n");
    assert!(same.chunks(4).all(|run| run.iter().all(|offset| *offset == run[0])));
}

#[test]
fn strides_leave_parts_out() {
    let all = offsets("rw=read\nsize=64k\nzonemode=strided\nzonesize=16k\nzoneskip=32k\n");
    assert_eq!(all, [0, 4, 8, 12, 48, 52, 56, 60, 96, 100, 104, 108, 144, 148, 152, 156]);
    let mut all = offsets("rw=randread\nsize=64k\nzonemode=strided\nzonesize=16k\nzoneskip=32k\n");
    all.chunks_mut(4).for_each(<[u64]>::sort_unstable);
    assert_eq!(all, [0, 4, 8, 12, 48, 52, 56, 60, 96, 100, 104, 108, 144, 148, 152, 156]);
    let twice = "rw=read\nsize=32k\nzonemode=strided\nzonesize=16k\nzonerange=8k\nzoneskip=8k\n";
    assert_eq!(offsets(twice), [0, 4, 0, 4, 16, 20, 16, 20]);
    assert!(refused("zonemode=strided\n").1.contains("zonesize"));
    assert!(refused("zonemode=zbd\nzonesize=1m\n").1.contains("zoned"));
}

#[test]
fn directions_have_sizes_and_places_of_their_own() {
    let all = play("[a]\nrw=rw\nbs=4k,16k\nsize=1m\n", Time::from_us(10));
    for (op, length) in [(Op::Read, 4096), (Op::Write, 16_384)] {
        let mine: Vec<&Request> = all.iter().map(|(_, r, _)| r).filter(|r| r.op == op).collect();
        assert!(mine.len() > 10);
        for (index, request) in mine.iter().enumerate() {
            assert_eq!(
                (request.offset_bytes, request.length_bytes),
                (index as u64 * u64::from(length), length)
            );
        }
    }
    let all = play("[a]\nrw=randrw\nbssplit=4k/100,8k/50:64k/50\nsize=1m\n", Time::from_us(10));
    assert!(all.iter().all(|(_, r, _)| (r.op == Op::Read) == (r.length_bytes == 4096)));
    let half = offsets("rw=randread\npercentage_random=50\nsize=8m\nnorandommap\n");
    let follow = half.windows(2).filter(|two| two[1] == two[0] + 4).count() as f64;
    assert!((follow / half.len() as f64 - 0.5).abs() < 0.05);
}

/// With sizes by direction fio keeps one map, in which a block has the number that it has in its own
/// direction: reads and writes of one number exclude one another, and the job ends when a write would begin
/// beyond the end. fio 3.33 moved 11.2 to 16.6 MB of 16.8 in twelve runs of this job, 14.5 on average.
#[test]
fn sizes_by_direction_share_one_map() {
    let mut moved = Vec::new();
    for seed in 1..=12 {
        let text = format!("[a]\nrw=randrw\nbs=4k,16k\nsize=16m\nrandseed={seed}\n");
        let all = play(&text, Time::from_us(10));
        let number = |request: &Request| request.offset_bytes / u64::from(request.length_bytes);
        let mut numbers: Vec<u64> = all.iter().map(|(_, request, _)| number(request)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all.len(), "no number twice");
        moved.push(all.iter().map(|(_, r, _)| f64::from(r.length_bytes)).sum::<f64>() / 1e6);
    }
    let mean = moved.iter().sum::<f64>() / 12.0;
    assert!((13.0..16.0).contains(&mean), "{mean} MB of {moved:?}");
    // Where more is to be moved than that, it begins anew.
    let all = play("[a]\nrw=randrw\nbs=4k,16k\nsize=1m\nio_size=4m\n", Time::from_us(10));
    let moved: u64 = all.iter().map(|(_, request, _)| u64::from(request.length_bytes)).sum();
    assert!(moved > (4 << 20) - 16_384, "{moved} B");
}

#[test]
fn jobs_wait_for_another() {
    let text = "[w]\nnumber_ios=3\n[r]\nwait_for=w\n[s]\nwait_for=w\n[t]\nwait_for=r\n";
    let error = jobs(text).unwrap_err();
    assert!(error.what.contains("cannot wait for `r` alone"), "{error}");
    let text = &text[..text.find("[t]").unwrap()];
    assert_eq!(jobs(text).unwrap().iter().map(|job| job.group).collect::<Vec<_>>(), [0, 1, 1]);
    assert!(refused("wait_for=later\n").1.contains("later"));
}

#[test]
fn every_copy_does_all_of_the_job() {
    let text = "[a]\nrw=read\nbs=4k\nsize=40k\nnumjobs=3\noffset=1m\noffset_increment=64k\n";
    let all = play(text, Time::from_us(10));
    for copy in 0..3u64 {
        let mine = all.iter().filter(|(_, _, stream)| u64::from(*stream) == copy);
        let offsets: Vec<u64> = mine.map(|(_, request, _)| request.offset_bytes).collect();
        let first = (1 << 20) + copy * 65536;
        assert_eq!(offsets, (0..10).map(|i| first + i * 4096).collect::<Vec<_>>());
    }
    // Copies draw different places.
    let streams = fio_streams(
        &jobs("[a]\nrw=randread\nnumjobs=2\n[b]\n").unwrap(),
        &FioFiles::one(CAPACITY),
        1,
    );
    assert!(streams[0].seed != streams[1].seed && streams[1].seed != streams[2].seed);
    let seeded = "[a]\nrandseed=5\nnumjobs=2\n[b]\nrandseed=5\n";
    let streams = fio_streams(&jobs(seeded).unwrap(), &FioFiles::one(CAPACITY), 1);
    assert!(streams[0].seed == 5 && streams[2].seed == 5 && streams[1].seed != 5);
}

#[test]
fn groups_wait_for_one_another_and_delays_are_kept() {
    let text = "[global]\nrw=read\nbs=4k\n[a]\nnumber_ios=10\nstartdelay=1ms\n[b]\nnumber_ios=2\n\
                [c]\nstonewall\nnumber_ios=3\nramp_time=2ms\nthinktime=4ms\n[d]\nnumber_ios=1\n";
    let all = play(text, Time::from_us(100));
    let of = |stream: u32| -> Vec<Time> {
        all.iter().filter(|(.., s)| *s == stream).map(|(at, ..)| *at).collect()
    };
    assert_eq!((of(0).len(), of(0)[0]), (10, Time::from_ms(1)));
    assert_eq!(of(1), [Time::ZERO, Time::from_us(100)]);
    // The last of the first group completes after 1 ms and ten times 0.1 ms.
    let second = Time::from_ms(2);
    let pause = Time::from_us(4_100);
    assert_eq!(of(2), [second, second + pause, second + pause * 2]);
    assert_eq!(of(3), [second]);
    assert!(matches!(jobs(text).unwrap()[2].ramp, ramp if ramp == Time::from_ms(2)));
}

#[test]
fn flushes_and_pauses_come_after_so_many() {
    let all = play("[a]\nrw=write\nbs=4k\nnumber_ios=100\nfsync=10\n", Time::from_us(1));
    let flushes = all.iter().enumerate().filter(|(_, (_, r, _))| r.op == Op::Flush);
    let at: Vec<usize> = flushes.map(|(at, _)| at).collect();
    // None follows the very last write, as in fio.
    assert_eq!(at, (1..=9).map(|n| n * 11 - 1).collect::<Vec<_>>());
    let text = "[a]\nrw=read\nioengine=libaio\niodepth=4\nnumber_ios=24\nthinktime=1ms\n\
                thinktime_blocks=8\n";
    let all = play(text, Time::from_us(50));
    let starts: Vec<Time> = all.chunks(8).map(|chunk| chunk[0].0).collect();
    // Eight at depth four take twice the time of one; then nothing for a millisecond.
    assert_eq!(starts, [Time::ZERO, Time::from_us(1_100), Time::from_us(2_200)]);
}

#[test]
fn the_later_share_of_a_mix_counts() {
    for (text, share) in [
        ("rwmixread=70\nrwmixwrite=50\n", 0.5),
        ("rwmixwrite=50\nrwmixread=70\n", 0.7),
        ("rwmixwrite=90\n", 0.1),
    ] {
        let text = format!("[a]\nrw=randrw\n{text}bs=4k\nnumber_ios=4000\n");
        let all = play(&text, Time::from_us(1));
        let reads = all.iter().filter(|(_, r, _)| r.op == Op::Read).count() as f64 / 4000.0;
        assert!((reads - share).abs() < 0.04, "{text}: {reads}");
    }
}

#[test]
fn each_direction_has_its_own_rate() {
    let rate = |text: &str| stream(text).arrivals.and_then(|arrivals| arrivals.rate);
    assert_eq!(rate("rw=randrw\nrwmixread=90\nrate_iops=300,100\n"), Some(400.0));
    let text = "[a]\nrw=randrw\nrwmixread=90\nrate_iops=300,100\nnumber_ios=4000\n";
    let all = play(text, Time::from_us(1));
    let reads = all.iter().filter(|(_, r, _)| r.op == Op::Read).count() as f64;
    assert!((reads / 4000.0 - 0.75).abs() < 0.03, "{reads}");
    assert_eq!(rate("rw=rw\nbs=4k\nrate=4m\n"), Some(2048.0));
    assert_eq!(rate("rw=rw\nbs=4k,8k\nrate=4m\n"), Some(1536.0));
    assert!(refused("rw=rw\nrate_iops=100,\n").1.contains("no rate"));
}

#[test]
fn walls_make_groups_and_globals_apply() {
    let all = jobs("[global]\nbs=8k\nstonewall\n[a]\n[b]\nrw=write\nstonewall=0\n[c]\n").unwrap();
    let groups: Vec<u32> = all.iter().map(|job| job.group).collect();
    assert_eq!(groups, [0, 0, 1]);
    let streams = fio_streams(&all, &FioFiles::one(CAPACITY), 1);
    assert!(streams.iter().all(|stream| stream.block_bytes_max() == 8192));
    assert_eq!(all.iter().map(FioJob::changes_data).collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn mixes_of_sizes_and_rates() {
    let all = issued("rw=randread\nbssplit=4k/60:16k/:64k/\nnumber_ios=10000\nnorandommap\n");
    for (length, share) in [(4, 0.6), (16, 0.2), (64, 0.2)] {
        let seen = all.iter().filter(|(_, l)| *l == length).count() as f64 / 10_000.0;
        assert!((seen - share).abs() < 0.02, "{length} KiB: {seen}");
    }
    let arrivals = stream("rw=randread\nrate=4m\nrate_process=poisson\n").arrivals.unwrap();
    assert_eq!((arrivals.kind, arrivals.rate), (ArrivalKind::Poisson, Some(1024.0)));
    // The hot blocks of zipf:1.2 lie anywhere in the range, and are few.
    let mut all = offsets("rw=randread\nrandom_distribution=zipf:1.2\nsize=16m\n");
    all.sort_unstable();
    all.dedup();
    assert!(all.len() < 1_500 && all[all.len() / 2] > 1_000, "{} of 4096", all.len());
}

#[test]
fn what_is_not_carried_over_is_named_by_line() {
    for (text, named) in [
        ("rw=read\nverify=crc32c\n", "`verify`"),
        ("rw=read\nfrobnicate=1\n", "`frobnicate`"),
        ("rw=read\nioengine=rdma\n", "`rdma`"),
        ("bs=4k\nrw=randfoo\n", "`randfoo`"),
        ("rw=read\nbs=4k,8k,1k,2k\n", "`bs`"),
        ("rw=read\nbssplit=4k/60:8k/50\n", "sum to 110"),
        ("bs=4k\nrw=read:x\n", "`x`"),
        ("rw=read\niodepth=0\n", "`iodepth`"),
        ("rw=read\nrandom_distribution=pareto:2\n", "pareto"),
        ("nrfiles=3\nopenfiles=2\n", "2 of 3 files"),
        ("nrfiles=2\nfile_service_type=zipf:1.2\n", "`zipf`"),
        ("filename=a:b\nfile_service_type=random:x\n", "`x`"),
        ("exitall\nexit_what=some\n", "exit_what"),
        ("rw=read\nbsrange=1m-512\n", "`bsrange`"),
    ] {
        let (line, message) = refused(text);
        assert_eq!(line, 3, "{message}");
        assert!(message.contains(named), "{message}");
    }
    assert!(refused("time_based\n").1.contains("runtime"));
    // Switched off, a refused option is harmless.
    let sync = |text: &str| one(&format!("rw=write\n{text}")).sync;
    assert_eq!((sync(""), sync("sync=0\n")), (FioSync::None, FioSync::None));
    assert_eq!((sync("sync\n"), sync("sync=1\n")), (FioSync::Whole, FioSync::Whole));
    assert_eq!(sync("sync=dsync\n"), FioSync::Data);
    let mut durable = one("rw=write\nbs=4k\nsize=16k\nsync=1\n");
    durable.flush_instead_of_sync();
    assert!(durable.sync == FioSync::None && durable.notes[0].starts_with("sync: each write"));
    assert!(jobs("[a]\nrw=read\nverify=0\nfsync=0\nloops=1\n").is_ok());
}

#[test]
fn notes_say_what_is_done_another_way() {
    let job = one("rw=randread\nba=512\niodepth=8\niomem_align=4k\n");
    assert!(job.warnings[0].contains("direct=1"), "{:?}", job.warnings);
    let notes = job.notes.join("\n");
    assert!(notes.contains("blockalign"), "{notes}");
    for part in ["iodepth counts as 1", "iomem_align"] {
        assert!(notes.contains(part), "{notes}");
    }
    let notes = |value: &str| {
        let job = one(&format!("rw=randread\nrandrepeat={value}\n"));
        job.notes.iter().any(|note| note.contains("randrepeat=0"))
    };
    assert!(notes("0") && !notes("1"));
}

proptest! {
    /// For any text in the file, the result is a list of jobs, or an error with a line.
    #[test]
    fn any_file_ends_in_jobs_or_in_a_message(
        lines in prop::collection::vec(
            prop_oneof![
                "\\PC{0,20}",
                "\\[[a-z]{1,5}\\]?",
                ("(rw|bs|size|iodepth|numjobs|bssplit|bsrange|rate|offset|runtime|ba|random_distribution|zonesize|nrfiles|filename|file_service_type|openfiles|exit_what|flow)", "[0-9a-z%:/.,-]{0,8}")
                    .prop_map(|(key, value)| format!("{key}={value}")),
            ],
            0..12,
        ),
    ) {
        let text = format!("[a]\n{}", lines.join("\n"));
        match jobs(&text) {
            Ok(all) => for stream in fio_streams(&all, &FioFiles::one(CAPACITY), 1) {
                // It may still be impossible for this target; that has its own message.
                if let Err(error) = stream.build(&FACTS) {
                    prop_assert!(error.at.is_some_and(|at| at.number > 0));
                }
            },
            Err(error) => prop_assert!(error.at.is_some_and(|at| at.file != PathBuf::new())),
        }
    }
}

proptest! {
    /// Any mix of groups, delays, rates and pauses: everything that is asked for is issued once, in
    /// the order of the groups, and the end is reached.
    #[test]
    fn any_jobs_run_together_to_their_end(
        parts in prop::collection::vec(
            (1u64..20, 1u32..4, 1u32..6, any::<bool>(), 0u64..3, prop::option::of(1u64..4), prop::option::of(500u64..5000)),
            1..5,
        ),
        service in 1u64..2_000,
    ) {
        let mut text = String::from("[global]\nrw=randrw\nioengine=libaio\n");
        let (mut expected, mut groups) = (Vec::new(), Vec::new());
        for (number, (requests, copies, depth, wall, delay, think, rate)) in parts.iter().enumerate() {
            text.push_str(&format!(
                "[j{number}]\nnumber_ios={requests}\nnumjobs={copies}\niodepth={depth}\nstartdelay={delay}ms\n\
                 stonewall={}\n", u8::from(*wall)
            ));
            think.iter().for_each(|n| text.push_str(&format!("thinktime=500\nthinktime_blocks={n}\n")));
            rate.iter().for_each(|n| text.push_str(&format!("rate_iops={n}\n")));
            for _ in 0..*copies {
                expected.push(*requests as usize);
            }
        }
        for job in jobs(&text).unwrap() {
            groups.extend(std::iter::repeat_n(job.group, job.copies as usize));
        }
        let all = play(&text, Time::from_us(service));
        for (stream, expected) in expected.iter().enumerate() {
            prop_assert_eq!(all.iter().filter(|(.., s)| *s == stream as u32).count(), *expected);
        }
        prop_assert!(all.windows(2).all(|two| groups[two[0].2 as usize] <= groups[two[1].2 as usize]));
        prop_assert_eq!(&all, &play(&text, Time::from_us(service)));
    }
}

/// As fio does: the last thing of a job that wrote, when everything else completed.
#[test]
fn a_flush_at_the_end_comes_when_all_is_answered() {
    for option in ["end_fsync=1", "fsync_on_close=1", "end_fsync=1\nfsync_on_close"] {
        let text =
            format!("[a]\nrw=write\nbs=4k\nsize=64k\niodepth=8\nioengine=libaio\n{option}\n");
        let all = play(&text, Time::from_us(10));
        let flushes = all.iter().filter(|(_, request, _)| request.op == Op::Flush).count();
        let (at, last, _) = all.last().unwrap();
        assert_eq!((all.len(), flushes, last.op), (17, 1, Op::Flush), "{option}");
        assert_eq!(*at, all[15].0 + Time::from_us(10), "{option}");
    }
    // By time as well; and with those in between.
    let timed = "[a]\nrw=write\nbs=4k\nruntime=1ms\ntime_based\nend_fsync=1\nfsync=10\n";
    let all = play(timed, Time::from_us(20));
    assert_eq!(all.last().unwrap().1.op, Op::Flush);
    assert!(all.last().unwrap().0 >= Time::from_ms(1));
    let reads = play("[a]\nrw=read\nbs=4k\nsize=64k\nend_fsync=1\n", Time::from_us(10));
    assert_eq!(reads.len(), 16, "nothing was written");
}

/// What fio 3.33 did with a file of 8 MiB (psync; its own log of offsets): KiB moved, first byte and end
/// of what was asked for in sequence, different blocks at random.
#[test]
fn sizes_of_file_range_and_transfer_are_those_of_fio() {
    for (text, moved, first, end, different) in [
        ("size=1m", 1024, 0, 1024, 16),
        ("size=1m\nfilesize=4m", 1024, 0, 1024, 16),
        ("size=4m\nfilesize=1m", 1024, 0, 1024, 16),
        ("filesize=2m", 2048, 0, 2048, 32),
        ("size=1m\nfilesize=4m\noffset=1m", 1024, 1024, 2048, 16),
        ("size=1m\nfilesize=4m\noffset=3584k", 512, 3584, 4096, 8),
        ("filesize=2m\noffset=1m", 1024, 1024, 2048, 16),
        ("size=1m\nfilesize=4m\nio_size=2m", 2048, 0, 2048, 32),
        ("size=4m\nfilesize=1m\nio_size=2m", 2048, 0, 1024, 16),
        ("filesize=1m\nio_size=2m", 2048, 0, 1024, 16),
        ("size=2m\nio_size=512k", 512, 0, 512, 8),
        ("size=1m\nio_size=3m", 3072, 0, 1024, 16),
        ("size=1m\noffset=1m", 1024, 1024, 2048, 16),
        ("size=1m\noffset=1m\nio_size=3m", 3072, 1024, 2048, 16),
        ("size=1m\nfilesize=4m\nloops=2", 2048, 0, 2048, 32),
        ("size=50%\nfilesize=4m", 2048, 0, 2048, 32),
    ] {
        let all = issued(&format!("rw=read\nbs=64k\n{text}\n"));
        let sum: u64 = all.iter().map(|(_, length)| length).sum();
        let ends = all.iter().map(|(offset, length)| offset + length);
        let least = all.iter().map(|(offset, _)| *offset).min().unwrap();
        assert_eq!((sum, least, ends.max().unwrap()), (moved, first, end), "{text}");
        let places = offsets(&format!("rw=randread\nbs=64k\n{text}\n"));
        assert_eq!(places.len() as u64, moved / 64, "{text}");
        let distinct: std::collections::BTreeSet<u64> = places.iter().copied().collect();
        assert_eq!(distinct.len(), different, "{text}");
    }
    // All of the file, not its first part: with 16 of 64 blocks drawn it shows.
    let wide = offsets("rw=randread\nbs=64k\nsize=1m\nfilesize=4m\n");
    assert!(wide.iter().any(|offset| *offset >= 2048), "{wide:?}");
    // A file that is to be made has the size that fio gives it.
    let made = |text: &str| one(text).file_size_bytes;
    assert_eq!(made("size=1m\nfilesize=4m\noffset=1m\n"), Some(4 << 20));
    assert_eq!(made("size=1m\noffset=1m\n"), Some(2 << 20));
    // Copies start apart and end with the file.
    let jobs = jobs("[a]\nrw=read\nnumjobs=2\noffset_increment=1m\nfilesize=4m\n").unwrap();
    let ranges = fio_streams(&jobs, &FioFiles::one(CAPACITY), 1);
    let ranges: Vec<_> =
        ranges.iter().map(|s| (s.ranges[0].start_bytes, s.ranges[0].length_bytes)).collect();
    assert_eq!(ranges, [(0, 4 << 20), (1 << 20, 3 << 20)]);
    assert!(refused("filesize=1m-2m\n").1.contains("filesize"));
    for (text, why) in [("offset=4m\nfilesize=4m\n", "filesize"), ("filesize=2g\n", "filesize")] {
        let streams = fio_streams(&[one(text)], &FioFiles::one(CAPACITY), 1);
        let error = run_together(streams, &FACTS).err().unwrap();
        assert!(error.to_string().contains(why), "{error}");
    }
}
