//! Certificates that a controller takes back.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Barrier};

use ssdyno_cluster::{CertificateState, enrolled_workers, renew_controller, revoke_worker};
use ssdyno_session::FailureKind;

use crate::enrolment::{Place, Running, enrolled, enrolled_as, run, text};

const DAY_S: i64 = 86_400;

fn names(place: &Place) -> Vec<(Vec<String>, bool)> {
    let list = enrolled_workers(&place.controller()).unwrap();
    let is_valid = |state| state == CertificateState::Valid;
    list.into_iter().map(|one| (one.names, is_valid(one.state))).collect()
}

#[test]
fn a_revoked_worker_is_refused_by_name_until_it_enrols_again() {
    let place = Place::new();
    enrolled_as(&place, &["b.example", "127.0.0.1"]);
    let running = Running::new(&place.worker());
    let host = format!("tls://{}", running.address);
    run(&host, &place.controller()).unwrap();
    let revoked = revoke_worker(&place.controller(), "B.example").unwrap();
    assert_eq!(revoked.len(), 1);
    assert_eq!(revoked[0].names, ["b.example", "127.0.0.1"]);
    let failure = run(&host, &place.controller()).unwrap_err();
    assert!(failure.message.contains(&host) && failure.message.contains("revoked"), "{failure:?}");
    assert!(text(&failure).contains("new invitation"), "{failure:?}");
    assert!(running.refusal().contains("revoked the certificate"), "{}", running.refusal());
    drop(running);
    // A new certificate for the same names counts; the old one does not.
    enrolled_as(&place, &["b.example", "127.0.0.1"]);
    let running = Running::new(&place.worker());
    run(&format!("tls://{}", running.address), &place.controller()).unwrap();
    let both = vec!["b.example".to_owned(), "127.0.0.1".to_owned()];
    assert_eq!(names(&place), [(both.clone(), false), (both, true)]);
}

#[test]
fn the_list_has_names_dates_and_numbers() {
    let place = Place::new();
    enrolled_as(&place, &["a.example"]);
    enrolled_as(&place, &["b.example"]);
    let list = enrolled_workers(&place.controller()).unwrap();
    assert_eq!(list.len(), 2);
    assert_ne!(list[0].serial, list[1].serial);
    for one in &list {
        assert_eq!(one.state, CertificateState::Valid);
        let days = (one.ends_unix_s - one.enrolled_unix_s) as f64 / DAY_S as f64;
        assert!((364.9..=365.1).contains(&days), "{one:?}");
    }
    // One certificate, by its number.
    let revoked = revoke_worker(&place.controller(), &list[1].serial.to_uppercase()).unwrap();
    assert_eq!(revoked[0].names, ["b.example"]);
    let valid: Vec<bool> = names(&place).into_iter().map(|(_, valid)| valid).collect();
    assert_eq!(valid, [true, false]);
}

#[test]
fn what_cannot_be_revoked_is_told() {
    let place = Place::new();
    let failure = revoke_worker(&place.controller(), "a").unwrap_err();
    assert!(text(&failure).contains("invite a worker first"), "{failure:?}");
    assert!(enrolled_workers(&place.controller()).is_err());
    assert!(!place.controller().exists(), "nothing is made by a question");
    enrolled_as(&place, &["a.example"]);
    let failure = revoke_worker(&place.controller(), "b.example").unwrap_err();
    assert_eq!(failure.kind, FailureKind::Usage);
    assert!(failure.message.contains("`b.example`"), "{failure:?}");
    assert!(text(&failure).contains("enrolled workers: a.example"), "{failure:?}");
    revoke_worker(&place.controller(), "a.example").unwrap();
    let before = fs::read(place.controller().join("revoked.pem")).unwrap();
    let failure = revoke_worker(&place.controller(), "a.example").unwrap_err();
    assert!(failure.message.contains("was already revoked on"), "{failure:?}");
    assert_eq!(fs::read(place.controller().join("revoked.pem")).unwrap(), before);
}

/// Whoever reads it must not take a damaged list for an empty one.
#[test]
fn a_damaged_list_lets_nobody_in() {
    let (place, other) = (Place::new(), Place::new());
    enrolled(&place);
    enrolled_as(&other, &["c.example"]);
    revoke_worker(&other.controller(), "c.example").unwrap();
    let running = Running::new(&place.worker());
    let host = format!("tls://{}", running.address);
    run(&host, &place.controller()).unwrap();
    let revoked = place.controller().join("revoked.pem");
    let refused = |why: &str| {
        let failure = run(&host, &place.controller()).unwrap_err();
        let told = text(&failure);
        assert!(
            told.contains(&host) && told.contains("revoked.pem") && told.contains(why),
            "{told}"
        );
        assert!(enrolled_workers(&place.controller()).unwrap_err().message.contains(why));
        assert!(revoke_worker(&place.controller(), "127.0.0.1").unwrap_err().message.contains(why));
    };
    fs::write(&revoked, "garbage").unwrap();
    refused("is not a list of revoked certificates");
    // A list of another authority does not concern this worker.
    fs::copy(other.controller().join("revoked.pem"), &revoked).unwrap();
    refused("did not sign it");
    fs::remove_file(&revoked).unwrap();
    revoke_worker(&place.controller(), "127.0.0.1").unwrap();
    cut(&revoked);
    refused("is not a list of revoked certificates");
    // The list of workers.
    fs::remove_file(&revoked).unwrap();
    cut(&place.controller().join("enrolled.jsonl"));
    let failure = revoke_worker(&place.controller(), "127.0.0.1").unwrap_err();
    assert!(failure.message.contains("enrolled.jsonl is damaged: line 1"), "{failure:?}");
}

/// Leaves the first half of a file.
fn cut(file: &Path) {
    let text = fs::read(file).unwrap();
    fs::write(file, &text[..text.len() / 2]).unwrap();
}

#[test]
fn none_is_lost_where_several_are_revoked_at_once() {
    const WORKERS: usize = 6;
    let place = Place::new();
    for number in 0..WORKERS {
        enrolled_as(&place, &[&format!("w{number}.example")]);
    }
    let start = Arc::new(Barrier::new(WORKERS));
    let revoke = |number: usize| {
        let (directory, start) = (place.controller(), Arc::clone(&start));
        std::thread::spawn(move || {
            start.wait();
            revoke_worker(&directory, &format!("w{number}.example")).unwrap();
        })
    };
    let threads: Vec<_> = (0..WORKERS).map(revoke).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(names(&place).iter().all(|(_, valid)| !valid), "{:?}", names(&place));
}

/// A copy of the directory of the controller, as a thief has it: its own certificate, and the list as it was.
fn stolen(place: &Place) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    fs::copy(place.controller().join("controller.pem"), copy.path().join("controller.pem"))
        .unwrap();
    copy
}

#[test]
fn a_stolen_certificate_of_a_controller_is_refused_once_the_worker_has_the_list() {
    let place = Place::new();
    enrolled(&place);
    let thief = stolen(&place);
    let running = Running::new(&place.worker());
    let host = format!("tls://{}", running.address);
    run(&host, thief.path()).unwrap();
    let serial = renew_controller(&place.controller()).unwrap();
    assert!(serial.len() >= 32, "{serial}");
    // Connecting brings the list to the worker, which has it after a restart, too.
    run(&host, &place.controller()).unwrap();
    let refused = |host: &str, running: &Running| {
        let failure = run(host, thief.path()).unwrap_err();
        let told = text(&failure);
        assert!(told.contains(host) && told.contains("was revoked"), "{told}");
        assert!(running.refusal().contains("was revoked"), "{}", running.refusal());
    };
    refused(&host, &running);
    drop(running);
    let running = Running::new(&place.worker());
    refused(&format!("tls://{}", running.address), &running);
    run(&format!("tls://{}", running.address), &place.controller()).unwrap();
}

/// A controller with an old list, such as a copy on another machine, does not bring back what was revoked.
#[test]
fn a_worker_never_forgets_what_was_revoked() {
    let place = Place::new();
    enrolled(&place);
    let first = stolen(&place);
    renew_controller(&place.controller()).unwrap();
    let copy = stolen(&place);
    fs::copy(place.controller().join("revoked.pem"), copy.path().join("revoked.pem")).unwrap();
    enrolled_as(&place, &["other.example"]);
    enrolled(&place);
    revoke_worker(&place.controller(), "other.example").unwrap();
    let running = Running::new(&place.worker());
    let host = format!("tls://{}", running.address);
    run(&host, &place.controller()).unwrap();
    let known = fs::read(place.worker().join("revoked.pem")).unwrap();
    run(&host, copy.path()).unwrap();
    assert_eq!(fs::read(place.worker().join("revoked.pem")).unwrap(), known);
    // Enrolling brought the list before the controller ever connected: the first certificate never counted here.
    assert!(text(&run(&host, first.path()).unwrap_err()).contains("was revoked"));
}

/// A stolen authority: a new directory is a new authority, which the workers take when they enrol again, and the old one counts no
/// more. The list of the old authority does not stay in the way.
#[test]
fn workers_that_enrol_with_a_new_authority_leave_the_old_one() {
    let place = Place::new();
    enrolled(&place);
    renew_controller(&place.controller()).unwrap();
    let running = Running::new(&place.worker());
    run(&format!("tls://{}", running.address), &place.controller()).unwrap();
    assert!(place.worker().join("revoked.pem").exists());
    drop(running);
    let thief = stolen(&place);
    fs::remove_dir_all(place.controller()).unwrap();
    enrolled(&place);
    let running = Running::new(&place.worker());
    let host = format!("tls://{}", running.address);
    run(&host, &place.controller()).unwrap();
    let failure = run(&host, thief.path()).unwrap_err();
    assert!(text(&failure).contains("authority"), "{failure:?}");
}
