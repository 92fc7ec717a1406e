//! Limits from outside the file.

use super::*;

/// Requests and notes of a job of 16 blocks in 10 us each, ended after `limit`.
fn ended(options: &str, limit: Time) -> (usize, Vec<String>) {
    let text = format!("[a]\nrw=read\nbs=4k\nsize=64k\n{options}");
    let mut jobs = jobs(&text).unwrap();
    let before = jobs[0].notes.len();
    jobs[0].end_after(limit);
    let notes = jobs[0].notes.split_off(before);
    (play_jobs(&jobs, Time::from_us(10)).len(), notes)
}

#[test]
fn a_job_ends_after_the_time_that_is_given_at_the_latest() {
    let notes = |text: &str| vec![text.to_owned()];
    assert_eq!(ended("", Time::from_us(80)), (8, notes("[a]: ends after 80us at the latest")));
    // It has no more to do.
    assert_eq!(ended("", Time::from_ms(1)).0, 16);
    let (requests, told) = ended("runtime=1h\ntime_based\n", Time::from_us(400));
    assert_eq!(
        (requests, told),
        (40, notes("[a]: ends after 400us at the latest instead of 3600s"))
    );
    // Its own time is shorter, and holds.
    assert_eq!(ended("runtime=50us\ntime_based\n", Time::from_us(400)), (5, Vec::new()));
}

/// An error that only the target reveals points at the line of the option, also in `global`; it points at the section
/// if the file does not contain the option.
#[test]
fn what_does_not_fit_the_target_points_at_its_own_line() {
    let facts = TargetFacts { capacity_bytes: CAPACITY, sector_bytes: 4096 };
    for (text, line, shown) in [
        ("[a]\nrw=randread\nbs=512\nsize=1g\n", 3, "bs=512"),
        ("[global]\nblocksize=4k,1k\n[a]\nrw=randrw\n", 2, "blocksize=4k,1k"),
        ("[a]\nrw=randread\nbssplit=4k/50:6k/50\n", 3, "bssplit=4k/50:6k/50"),
        ("[a]\nrw=randread\nba=512\nnorandommap\n", 3, "ba=512"),
        ("[a]\nrw=read:512\n", 2, "rw=read:512"),
        ("[a]\nrw=read\noffset=512\nsize=1m\n", 3, "offset=512"),
        ("[a]\nrw=read\nsize=2g\n", 3, "size=2g"),
        ("[a]\nrw=read\nbs=1m\nsize=64k\n", 3, "bs=1m"),
    ] {
        let jobs = jobs(text).unwrap();
        let streams = fio_streams(&jobs, &FioFiles::one(CAPACITY), 1);
        let error = streams[0].build(&facts).err().unwrap_or_else(|| panic!("{text}"));
        let at = error.at.unwrap();
        assert_eq!((at.number, at.text.as_str()), (line, shown), "{text}");
    }
}
