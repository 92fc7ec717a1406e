//! `papers S4 --hosts`: a short measurement over namespaces, and that nothing stays behind, however it ends.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::Place;

/// Three repetitions of six loads of each target.
const TABLE: [&str; 7] =
    ["papers", "S4/hosts/table4", "--hosts", "--for", "300ms", "--keep", "none"];

/// The namespaces of the run of `process`.
fn namespaces(process: u32) -> Vec<String> {
    let Ok(all) = std::fs::read_dir("/run/netns") else { return Vec::new() };
    let names = all.map(|one| one.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("ssdyno-{process}-"))).collect()
}

fn processes_in(namespace: &str) -> String {
    let output = Command::new("ip").args(["netns", "pids", namespace]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A measurement whose servers and workers run.
fn under_way(place: &Place) -> Child {
    let mut command = place.command(&TABLE);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let id = child.id();
    wait_until("workers are started", || {
        !processes_in(&format!("ssdyno-{id}-client-1")).is_empty()
            && !processes_in(&format!("ssdyno-{id}-target")).is_empty()
    });
    child
}

#[test]
fn a_short_measurement_leaves_nothing_behind() {
    let place = Place::new();
    let is_there = |name: &&str| {
        ["/usr/sbin", "/sbin", "/usr/bin"].iter().any(|at| Path::new(at).join(name).is_file())
    };
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout != b"0\n" || !["ip", "tc", "nbd-server"].iter().all(is_there) {
        let told = place.fails(1, &TABLE);
        assert!(told.contains("need root") || told.contains("there is no"), "{told}");
        println!("skipped: {told}");
        return;
    }
    if !Command::new("ip").args(["netns", "list"]).output().unwrap().status.success() {
        println!("skipped: there are no network namespaces here");
        return;
    }

    // Killed, it can remove nothing itself, but its servers and workers end.
    let mut killed = under_way(&place);
    let gone = killed.id();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let left = namespaces(gone);
    assert_eq!(left.len(), 5, "{left:?}");
    wait_until("all processes end", || left.iter().all(|name| processes_in(name).is_empty()));

    let mut interrupted = under_way(&place);
    let own = interrupted.id();
    assert_eq!(namespaces(gone), Vec::<String>::new(), "what was left is removed");
    let signal = Command::new("kill").args(["-INT", &own.to_string()]).status().unwrap();
    assert!(signal.success());
    assert_eq!(interrupted.wait().unwrap().code(), Some(130));
    assert_eq!(namespaces(own), Vec::<String>::new());

    let report = place.json(&TABLE);
    let rows = report["tables"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 18);
    for row in rows {
        // tgt is not everywhere.
        if row[4] == "not measured" && row[0] == "iSCSI, tgt" {
            continue;
        }
        let total: f64 = row[4].as_str().unwrap().parse().unwrap();
        assert!(total > 1.0, "{row}");
        // A link of 1 Gbit/s carries 125 MB/s, and what its burst holds is nothing beside it.
        assert!(row[1] != "1 Gbit/s" || total < 126.0, "{row}");
        let clients: usize = row[2].as_str().unwrap().parse().unwrap();
        assert_eq!(row[6].as_str().unwrap().split(" + ").count(), clients);
    }
    assert_eq!(report["partial"], false);
    // Without a core of the target's own two claims about it have no answer.
    let claims = report["claims"].as_array().unwrap();
    assert!(claims.iter().filter(|claim| !claim["state"].is_null()).count() >= 4, "{claims:?}");
}
