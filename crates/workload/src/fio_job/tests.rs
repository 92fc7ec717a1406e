//! Job files as people write them, and as nobody should.

use std::path::PathBuf;

use proptest::prelude::*;
use ssdyno_block::units::{Bytes, Span};

use super::*;
use crate::{ArrivalKind, DeviceFacts, WorkloadError};

const CAPACITY: u64 = 1 << 30;

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

#[test]
fn a_usual_job_is_carried_over() {
    let job =
        one("rw=randrw\nrwmixread=70\nbs=16k\niodepth=32\nioengine=io_uring\ndirect=1\nsize=50%\n\
         runtime=30\ntime_based\nnorandommap\ncpus_allowed=0-1\nfilename=/dev/x\nrandseed=9\n");
    assert_eq!(job.file.as_deref(), Some("/dev/x"));
    assert_eq!(
        (job.engine, job.seed, job.cores.as_slice()),
        (FioEngine::Asynchronous, Some(9), &[0, 1][..])
    );
    assert_eq!(job.notes, Vec::<String>::new());
    assert!(job.changes_data());
    let config = job.workload(CAPACITY);
    assert_eq!((config.depth, config.threads), (Some(32), Some(1)));
    assert_eq!((config.read_percent, config.write_percent), (Some(70.0), Some(30.0)));
    assert_eq!(config.block_size, Some(Bytes(16384)));
    assert_eq!(config.address.length, Some(Bytes(CAPACITY / 2)));
    assert_eq!((config.requests, config.duration), (None, Some(Span(Time::from_s(30)))));
}

#[test]
fn how_much_is_done_follows_size_and_copies() {
    let requests = |text: &str| one(text).workload(CAPACITY).requests;
    assert_eq!(requests("rw=read\nbs=1m\nsize=10m\n"), Some(10));
    assert_eq!(requests("rw=read\nbs=1m\nsize=10m\nio_size=30m\n"), Some(30));
    assert_eq!(requests("rw=read\nbs=1m\nsize=10m\nnumjobs=3\n"), Some(30));
    assert_eq!(requests("rw=read\nbs=1m\nnumber_ios=7\n"), Some(7));
    assert_eq!(requests("rw=read\nbs=1m\n"), Some(CAPACITY >> 20));
}

#[test]
fn walls_make_groups_and_globals_apply() {
    let all = jobs("[global]\nbs=8k\nstonewall\n[a]\n[b]\nrw=write\nstonewall=0\n[c]\n").unwrap();
    let groups: Vec<u32> = all.iter().map(|job| job.group).collect();
    assert_eq!(groups, [0, 0, 1]);
    assert!(all.iter().all(|job| job.workload(CAPACITY).block_size == Some(Bytes(8192))));
    assert_eq!(all.iter().map(FioJob::changes_data).collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn mixes_of_sizes_and_rates() {
    let config = one("rw=randread\nbssplit=4k/60:16k/:64k/\n").workload(CAPACITY);
    let sizes: Vec<(u64, f64)> = config.block_sizes.iter().map(|s| (s.size.0, s.weight)).collect();
    assert_eq!(sizes, [(4096, 60.0), (16384, 20.0), (65536, 20.0)]);
    let config = one("rw=randread\nbsrange=4k-16k\n").workload(CAPACITY);
    assert_eq!(config.block_sizes.len(), 4);
    let arrivals = one("rw=randread\nrate=4m\nrate_process=poisson\n").workload(CAPACITY).arrivals;
    let arrivals = arrivals.unwrap();
    assert_eq!((arrivals.kind, arrivals.rate), (ArrivalKind::Poisson, Some(1024.0)));
    let config = one("rw=randread\nrandom_distribution=zipf:1.2\n").workload(CAPACITY);
    assert_eq!((config.address.pattern, config.address.theta), (Pattern::Zipf, 1.2));
}

#[test]
fn what_is_not_carried_over_is_named_by_line() {
    for (text, named) in [
        ("rw=read\nverify=crc32c\n", "`verify`"),
        ("rw=read\nfrobnicate=1\n", "`frobnicate`"),
        ("rw=read\nioengine=rdma\n", "`rdma`"),
        ("bs=4k\nrw=randfoo\n", "`randfoo`"),
        ("rw=read\nbs=4k,8k\n", "differ"),
        ("rw=read\niodepth=0\n", "`iodepth`"),
        ("rw=read\nrandom_distribution=pareto:0.9\n", "`pareto`"),
        ("rw=read\nfilename=/dev/a:/dev/b\n", "several files"),
        ("rw=read\nbsrange=512-1m\n", "2048 sizes"),
    ] {
        let (line, message) = refused(text);
        assert_eq!(line, 3, "{message}");
        assert!(message.contains(named), "{message}");
    }
    assert!(refused("time_based\n").1.contains("runtime"));
    // Switched off, a refused option is harmless.
    assert!(jobs("[a]\nrw=read\nverify=0\nfsync=0\nloops=1\n").is_ok());
}

#[test]
fn notes_say_what_is_done_another_way() {
    let notes = one("rw=randread\niodepth=8\ngroup_reporting\n").notes.join("\n");
    for part in ["norandommap", "iodepth counts as 1", "group_reporting", "direct=1"] {
        assert!(notes.contains(part), "{notes}");
    }
}

proptest! {
    /// Whatever stands in the file: jobs that build, or an error with a line.
    #[test]
    fn any_file_ends_in_jobs_or_in_a_message(
        lines in prop::collection::vec(
            prop_oneof![
                "\\PC{0,20}",
                "\\[[a-z]{1,5}\\]?",
                ("(rw|bs|size|iodepth|numjobs|bssplit|rate|offset|runtime|ba)", "[0-9a-z%:/.,-]{0,8}")
                    .prop_map(|(key, value)| format!("{key}={value}")),
            ],
            0..12,
        ),
    ) {
        let text = format!("[a]\n{}", lines.join("\n"));
        match jobs(&text) {
            Ok(all) => for job in all {
                let facts = DeviceFacts { capacity_bytes: CAPACITY, sector_bytes: 512 };
                // It may still be impossible for this target; that has its own message.
                let _ = job.workload(CAPACITY).build(&facts, 1);
            },
            Err(error) => prop_assert!(error.at.is_some_and(|at| at.file != PathBuf::new())),
        }
    }
}
