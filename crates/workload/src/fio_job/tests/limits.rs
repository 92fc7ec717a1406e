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
