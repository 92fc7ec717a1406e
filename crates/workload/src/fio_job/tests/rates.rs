//! What ends a job by its rate, how its queue is filled, and how requests reach the target.

use super::*;

/// Plays one job against a target that answers one request after the other, each `service` long: number of
/// requests, when the last was issued, why it ended, and notes.
fn ended(text: &str, service: Time) -> (usize, Time, Option<String>, String) {
    let streams = fio_streams(&jobs(&format!("[a]\n{text}")).unwrap(), &FioFiles::one(CAPACITY), 1);
    let mut workload = run_together(streams, &FACTS).unwrap();
    let (mut now, mut count, mut last, mut free) = (Time::ZERO, 0, Time::ZERO, Time::ZERO);
    let mut under_way: VecDeque<Time> = VecDeque::new();
    loop {
        if under_way.front().is_some_and(|at| *at <= now) {
            under_way.pop_front();
            workload.completed(crate::Finished::UNKNOWN, now);
            continue;
        }
        match workload.next(now) {
            WorkloadStep::Issue { .. } => {
                (count, last) = (count + 1, now);
                free = free.max(now) + service;
                under_way.push_back(free);
            }
            WorkloadStep::NotBefore(at) => now = under_way.front().map_or(at, |due| at.min(*due)),
            WorkloadStep::Wait => now = *under_way.front().expect("waits for nothing"),
            WorkloadStep::Done if under_way.is_empty() => {
                let error = workload.error().map(|error| error.to_string());
                return (count, last, error, workload.notes().join("\n"));
            }
            WorkloadStep::Done => now = under_way[0],
        }
        assert!(count < 1_000_000);
    }
}

/// 1000 requests a second, 4 KiB each: 4 096 000 bytes a second.
#[test]
fn a_job_that_is_too_slow_ends_with_an_error() {
    let job = |rate: &str| format!("rw=randread\nbs=4k\nruntime=20\ntime_based\n{rate}\n");
    let play = |rate: &str| ended(&job(rate), Time::from_ms(1));
    for slow in ["rate_iops_min=1010", "rate_min=4100000", "ratemin=4m", "rate_min=4100000,1,1"] {
        let (count, _, error, _) = play(slow);
        // fio judges the first cycle after two seconds: from 2 s to 3 s.
        assert!((2999..=3002).contains(&count), "{slow}: {count}");
        let error = error.unwrap();
        assert!(error.contains("from 2.0 s to 3.0 s") && error.contains("[a]"), "{error}");
    }
    let (count, _, error, _) = play("rate_iops_min=1010\nrate_cycle=5000");
    assert!((6999..=7002).contains(&count) && error.is_some(), "{count}");
    for fast in ["rate_iops_min=990", "rate_min=4000000", "rate_min=0"] {
        let (count, _, error, _) = play(fast);
        assert_eq!((count, error), (20_000, None), "{fast}");
    }
    assert!(refused("rw=randrw\nrate_min=1m\n").1.contains("each direction"));
    assert!(refused("rate_min=1m\nrate_iops_min=5\n").1.contains("exclude"));
}

/// Each direction keeps its own rate exactly, as in fio; Poisson arrivals keep it on average.
#[test]
fn each_direction_has_its_own_rate() {
    for (rates, seconds, [reads, writes]) in
        [("900,100", 2, [1_800, 200]), ("1000,50", 2, [2_000, 100]), ("333,667", 3, [999, 2_001])]
    {
        for seed in 1..4 {
            let text =
                format!("[a]\nrw=randrw\nbs=4k\nrate_iops={rates}\nruntime={seconds}\ntime_based");
            let streams = fio_streams(&jobs(&text).unwrap(), &FioFiles::one(CAPACITY), seed);
            let mut workload = run_together(streams, &FACTS).unwrap();
            let (mut now, mut found) = (Time::ZERO, [0_u64, 0]);
            loop {
                match workload.next(now) {
                    WorkloadStep::Issue { request, .. } => {
                        found[usize::from(request.op == Op::Write)] += 1;
                        workload.completed(crate::Finished::UNKNOWN, now);
                    }
                    WorkloadStep::NotBefore(at) => now = at,
                    _ => break,
                }
            }
            assert!(
                found[0].abs_diff(reads) <= 1 && found[1].abs_diff(writes) <= 1,
                "{rates}: {found:?}"
            );
        }
    }
}

#[test]
fn a_steady_job_ends_in_good_order() {
    let job = "rw=randread\nbs=4k\nruntime=60\ntime_based\n";
    for (rule, most) in [
        ("iops:1%\nsteadystate_duration=5", 5),
        ("bw_slope:1%\nss_dur=5\nss_ramp=3", 8),
        ("bw:1m\nsteadystate_duration=5", 5),
    ] {
        let (count, last, error, notes) =
            ended(&format!("{job}steadystate={rule}\n"), Time::from_ms(1));
        assert_eq!(error, None);
        assert!(last <= Time::from_ms(1000 * most + 20) && count > 4900, "{rule}: {last:?}");
        assert!(notes.contains("[a]: steady at") && notes.contains("by fio's rule"), "{notes}");
    }
    // It never is: every second request of a second one has a pause.
    let swings =
        format!("{job}steadystate=iops:1%\nss_dur=4\nthinktime=1500ms\nthinktime_blocks=700\n");
    let (_, last, error, notes) = ended(&swings, Time::from_ms(1));
    assert!(last > Time::from_s(55) && error.is_none() && !notes.contains("steady"), "{last:?}");
    assert!(refused("steadystate=iops:1%\n").1.contains("steadystate_duration"));
    assert!(refused("steadystate=lat:1%\nss_dur=5\n").1.contains("iops_slope"));
    assert!(refused("steadystate=iops:1%\nss_dur=5\nnumjobs=2\n").1.contains("together"));
}

/// fio documentation, `iodepth_low`: at 16 and 4 the queue of 16 drains to 4 before it is filled again.
#[test]
fn a_queue_drains_to_its_low_mark() {
    let text = "[a]\nrw=read\nbs=4k\nioengine=io_uring\niodepth=16\niodepth_low=4\nsize=1m\n";
    let streams = fio_streams(&jobs(text).unwrap(), &FioFiles::one(CAPACITY), 1);
    let mut workload = streams[0].build(&FACTS).unwrap();
    let now = Time::ZERO;
    let fill = |workload: &mut dyn crate::Workload| {
        let issues = std::iter::from_fn(|| match workload.next(now) {
            WorkloadStep::Issue { .. } => Some(()),
            _ => None,
        });
        issues.count()
    };
    assert_eq!(fill(workload.as_mut()), 16);
    for left in (5..16).rev() {
        workload.completed(crate::Finished::UNKNOWN, now);
        assert_eq!(fill(workload.as_mut()), 0, "{left} left");
    }
    workload.completed(crate::Finished::UNKNOWN, now);
    assert_eq!(fill(workload.as_mut()), 12);
    // Usually it is kept full.
    let usual = text.replace("iodepth_low=4\n", "");
    let streams = fio_streams(&jobs(&usual).unwrap(), &FioFiles::one(CAPACITY), 1);
    let mut workload = streams[0].build(&FACTS).unwrap();
    assert_eq!(fill(workload.as_mut()), 16);
    workload.completed(crate::Finished::UNKNOWN, now);
    assert_eq!(fill(workload.as_mut()), 1);
}

#[test]
fn a_pause_may_follow_a_time_of_work() {
    // 1 ms of work in requests of 100 us, then 5 ms of rest.
    let times = |text: &str| -> Vec<u64> {
        let text = format!("[a]\nrw=read\nbs=4k\nsize=128k\nthinktime=5ms\n{text}");
        play(&text, Time::from_us(100)).iter().map(|(at, ..)| at.as_ns() / 1000).collect()
    };
    let cycle = times("thinktime_iotime=1ms\n");
    let expected: Vec<u64> = (0..32).map(|at| at / 10 * 6000 + at % 10 * 100).collect();
    assert_eq!(cycle, expected);
    // Whichever comes first.
    let both = times("thinktime_iotime=1ms\nthinktime_blocks=4\n");
    assert_eq!(both[..6], [0, 100, 200, 300, 5400, 5500]);
    assert!(refused("thinktime_iotime=1s\n").1.contains("needs a thinktime"));
}

#[test]
fn how_requests_reach_the_target_is_read() {
    let job = |text: &str| one(&format!("ioengine=io_uring\niodepth=16\n{text}"));
    let batch = |text: &str| job(text).batch.map(|batch| (batch.complete, batch.submit));
    assert_eq!(batch(""), None);
    assert_eq!(batch("iodepth_batch=8\n"), Some((1, 8)));
    assert_eq!(batch("iodepth_batch_submit=0\n"), Some((1, u32::MAX)));
    assert_eq!(batch("iodepth_batch_complete_min=4\n"), Some((4, 1)));
    assert!(
        refused("iodepth_batch_complete_min=2\n").1.contains("more completions than the iodepth")
    );
    assert!(refused("iodepth_batch_complete_min=0\n").1.contains("--wait spin"));
    let cached = |text: &str| (job(text).buffered, job(text).invalidate);
    assert_eq!(cached(""), (false, true));
    assert!(job("").warnings[0].contains("direct=1"), "{:?}", job("").warnings);
    assert_eq!(cached("direct=0\n"), (true, true));
    assert_eq!(cached("buffered=1\ninvalidate=0\n"), (true, false));
    assert_eq!(cached("direct=1\n"), (false, true));
    assert!(job("direct=0\n").notes[0].contains("fadvise_hint"));
    assert!(
        job("direct=0\nfadvise_hint=0\n").notes.is_empty()
            || !job("direct=0\nfadvise_hint=0\n").notes[0].contains("no hint")
    );
    assert!(refused("direct=0\nfadvise_hint=1\n").1.contains("fadvise_hint=0"));
    assert!(job("nowait\n").nowait && !job("nowait=0\n").nowait);
    assert_eq!(one("ioengine=io_uring_cmd\ncmd_type=nvme\n").engine, FioEngine::Passthrough);
    assert!(refused("ioengine=io_uring_cmd\ncmd_type=other\n").1.contains("nvme"));
}

/// Each of these changes the load: each is refused at its line, with the remedy.
#[test]
fn what_changes_the_load_and_is_not_offered_is_refused() {
    for option in [
        "create_only=1",
        "prio=3",
        "prioclass=2",
        "cmdprio_percentage=10",
        "cmdprio=1",
        "max_latency=10ms",
        "file_append=1",
        "pre_read=1",
        "force_async=4",
        "uncached=1",
        "sync_file_range=write:8",
        "verify=crc32c",
    ] {
        let (line, text) = refused(&format!("rw=read\n{option}\n"));
        let name = option.split('=').next().unwrap();
        assert!(line == 3 && text.contains(&format!("`{name}`")), "{text}");
        // Switched off is as good as not written.
        assert!(jobs(&format!("[a]\nrw=read\n{name}=0\n")).is_ok(), "{name}");
    }
    assert!(refused("verify=md5\n").1.contains("ssdyno verify"));
    assert!(refused("prio=3\n").1.contains("ionice"));
}

#[test]
fn a_recording_takes_the_place_of_a_load() {
    let replay = |text: &str| one(&format!("read_iolog=a.log\n{text}")).replay.unwrap();
    assert_eq!(replay("").path, PathBuf::from("a.log"));
    assert_eq!(replay("").timing, TraceTiming::Original);
    assert_eq!(replay("replay_time_scale=200\n").timing, TraceTiming::Scaled(0.5));
    assert_eq!(replay("replay_time_scale=100\n").timing, TraceTiming::Original);
    let fast = "ioengine=io_uring\niodepth=9\nreplay_no_stall=1\n";
    assert_eq!(replay(fast).timing, TraceTiming::AsFastAsPossible { depth: 9 });
    assert!(refused("read_iolog=a:b\n").1.contains("one file"));
    assert!(refused("read_iolog=a\nnumjobs=2\n").1.contains("copies"));
    assert!(refused("read_iolog=a\nreplay_scale=2\n").1.contains("replay_scale"));
}
