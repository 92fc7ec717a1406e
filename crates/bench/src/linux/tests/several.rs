//! Jobs on several files, jobs that end others, and the written data.

use ssdyno_figures::WarningKind;

use super::*;

/// Files of `sizes` bytes in `directory`, full of 0xA5.
fn files(directory: &Path, sizes: &[usize]) -> Vec<String> {
    let named = |(at, bytes): (usize, &usize)| {
        let path = directory.join(format!("file{at}"));
        std::fs::write(&path, vec![0xA5; *bytes]).unwrap();
        path.to_str().unwrap().to_owned()
    };
    sizes.iter().enumerate().map(named).collect()
}

/// A run of the job file `text` on `names`, of which those in `written` may be.
fn on_files(text: &str, names: &[String], written: &[usize]) -> BenchRun {
    let access = |at: usize| match written.contains(&at) {
        true => permit(&names[at]),
        false => Access::ReadOnly,
    };
    let more = (1..names.len()).map(|at| (names[at].clone(), access(at))).collect();
    with_jobs(BenchRun { access: access(0), more, ..run(&names[0], "") }, text)
}

/// Blocks of 4 KiB that are not as the file was made.
fn changed(name: &str) -> usize {
    let content = std::fs::read(name).unwrap();
    content.chunks(4096).filter(|block| block.iter().any(|byte| *byte != 0xA5)).count()
}

#[test]
fn jobs_reach_the_files_that_they_name_and_no_others() {
    let directory = tempfile::tempdir().unwrap();
    let names = files(directory.path(), &[1 << 20, 512 << 10, 256 << 10]);
    let text = format!(
        "[global]\nbs=4k\nioengine=libaio\niodepth=4\n\
         [both]\nrw=randwrite\nfilename={}:{}\nfsync=32\n[r]\nrw=randread\nfilename={}\n",
        names[1], names[2], names[0]
    );
    for engine in [EngineKind::Auto, EngineKind::Threads] {
        let mut run = on_files(&text, &names, &[1, 2]);
        run.options.engine = engine;
        let BenchMeasured { result, recording, failure } = measure(&run);
        assert!(failure.is_none() && result.errors == 0, "{failure:?} {:?}", result.notes);
        assert_eq!(result.target, names.join(" + "));
        // 128 and 64 blocks are written, 256 read; each file keeps its size.
        assert_eq!((result.requests_by_op.write, result.requests_by_op.read), (192, 256));
        assert_eq!([0, 1, 2].map(|at: usize| changed(&names[at])), [0, 128, 64]);
        let rows = recording.rows().unwrap().to_vec().unwrap();
        let start = |op: Op| rows.iter().filter(move |r| r.request.op == op);
        assert!(start(Op::Write).all(|row| row.request.offset_bytes >= 1 << 20));
        assert!(start(Op::Read).all(|row| row.request.offset_bytes < 1 << 20));
        let sizes = names.iter().map(|name| std::fs::metadata(name).unwrap().len());
        assert_eq!(sizes.collect::<Vec<_>>(), [1 << 20, 512 << 10, 256 << 10]);
        assert!(result.notes.iter().any(|note| note.contains("from byte 1572864")));
        names.iter().for_each(|name| {
            let bytes = std::fs::metadata(name).unwrap().len() as usize;
            std::fs::write(name, vec![0xA5; bytes]).unwrap();
        });
    }
    // A permit for one file does not cover another, and one file cannot be two files.
    let refused = refusal(&on_files(&text, &names, &[0, 1]));
    assert!(matches!(refused, BenchError::ReadOnlyJob { .. }), "{refused}");
    let twice = [names[0].clone(), names[1].clone(), names[0].clone()];
    assert!(matches!(refusal(&on_files(&text, &twice, &[])), BenchError::Busy { .. }));
}

#[test]
fn the_end_of_a_job_ends_the_others() {
    let text = |exit: &str| {
        format!(
            "[global]\nioengine=libaio\nnorandommap\nrw=randread\n{exit}\n\
             [short]\nruntime=100ms\ntime_based\n[long]\nruntime=20\ntime_based\n\
             [never]\nstonewall\nruntime=20\ntime_based\n"
        )
    };
    let run = with_jobs(run("null:", ""), &text("exitall\nexit_what=all"));
    let BenchMeasured { result, failure, .. } = measure(&BenchRun { keep: Keep::Summary, ..run });
    assert!(failure.is_none() && !result.partial, "{failure:?}");
    assert!(result.wall_seconds < 5.0, "{} s", result.wall_seconds);
    let requests: Vec<u64> = result.jobs.iter().map(|job| job.requests).collect();
    assert!(requests[0] > 0 && requests[1] > 0 && requests[2] == 0, "{requests:?}");
}

/// The run must not read the file that it writes.
#[test]
fn what_is_written_is_not_what_was_read() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 1 << 20);
    std::fs::write(&name, vec![0; 1 << 20]).unwrap();
    for engine in [EngineKind::Auto, EngineKind::Threads] {
        for mix in ["rw=write", "rw=randrw\nio_size=4m"] {
            let text = format!("[w]\n{mix}\nbs=4k\nioengine=libaio\niodepth=16\nnorandommap\n");
            let mut run = on_files(&text, std::slice::from_ref(&name), &[0]);
            run.options.engine = engine;
            let written = measure(&run).result.requests_by_op.write;
            let content = std::fs::read(&name).unwrap();
            let filled = content.chunks(4096).filter(|block| block.iter().any(|byte| *byte != 0));
            let filled = filled.count() as f64;
            // Of 256 blocks so many are hit by writes to random places; all of them in sequence.
            let hit = if mix == "rw=write" {
                256.0
            } else {
                256.0 * (1.0 - (-(written as f64) / 256.0).exp())
            };
            assert!(filled >= 0.85 * hit, "{engine:?} {mix}: {filled} of {hit:.0}");
            std::fs::write(&name, vec![0; 1 << 20]).unwrap();
        }
    }
}

/// The ranges of a load are those of its addresses; of a job file they are those of each copy of a job that reads.
#[test]
fn reads_have_the_ranges_of_their_load() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 1 << 20);
    let target = crate::target::RealTarget::open(&name, &Access::ReadOnly).unwrap();
    let of = |run: &BenchRun| -> Vec<(Option<String>, u64, u64)> {
        let ranges = crate::ranges::of_reads(run, &target, 1).into_iter();
        ranges.map(|read| (read.job, read.bytes.start, read.bytes.end)).collect()
    };
    assert_eq!(of(&run(&name, "")), [(None, 0, 1 << 20)]);
    let address = "address = { start = \"64KiB\", length_percent = 25.0 }";
    assert_eq!(of(&run(&name, address)), [(None, 64 << 10, 320 << 10)]);
    let text = "[w]\nrw=write\n[r]\nrw=randread\nbs=4k\noffset=256k\nsize=128k\nnumjobs=2\n";
    let read = (Some("r".to_owned()), 256 << 10, 384 << 10);
    assert_eq!(of(&with_jobs(run(&name, ""), text)), [read.clone(), read]);
}

/// The closed job has a hundred times as many requests, none of which is late. The open job is always some ns late.
#[test]
fn the_issue_delay_is_that_of_open_jobs() {
    let text = "[global]\nbs=4k\nioengine=libaio\niodepth=4\nrw=randread\nnorandommap\nsize=4m\n\
                time_based\nruntime=100ms\n[closed]\n[open]\nrate_iops=1000\n";
    let result = measure(&with_jobs(run("null:", ""), text)).result;
    let [closed, open] = [&result.jobs[0], &result.jobs[1]].map(|job| job.requests);
    assert!(closed > 100 * open && open > 10, "{closed} {open}");
    assert!(result.issue_delay_ns.unwrap().p50 > 0.0);
}

/// 1024 reads arrive within 20 us, and four outstanding reads never reach 50 million per second. The closed job beside has
/// no arrivals of its own, and the requests of both jobs together look like no overload.
#[test]
fn a_job_that_falls_behind_its_rate_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let names = files(directory.path(), &[1 << 20]);
    let text = "[global]\nbs=4k\nioengine=libaio\niodepth=4\nrw=randread\nnorandommap\nsize=1m\n\
                [closed]\ntime_based\nruntime=200ms\n[rated]\nrate_iops=50000000\nio_size=4m\n";
    let warnings = measure(&on_files(text, &names, &[])).result.warnings;
    let told = warnings.iter().filter(|one| one.kind == WarningKind::Overloaded);
    let told: Vec<_> = told.collect();
    assert_eq!(told.len(), 1, "{warnings:?}");
    assert!(told[0].message.starts_with("[rated]: overloaded "), "{warnings:?}");
    assert!(told[0].help.as_ref().unwrap().starts_with("lower the arrival rate"), "{warnings:?}");
    assert!(!warnings.iter().any(|one| one.kind.is_unsteady()), "{warnings:?}");
}
