//! `nbd://` as a target of the verbs, over a server in this process.

use std::time::Duration;

use crate::common::Place;
use crate::nbd_server::{Behaviour, CONTENT, Server};

fn with(behaviour: Behaviour) -> (Place, Server) {
    (Place::new(), Server::start(behaviour))
}

#[test]
fn an_export_is_read_over_tcp_and_over_a_local_socket() {
    let (place, server) = with(Behaviour::default());
    for target in [server.uri("x"), server.local_uri("y")] {
        let result =
            place.json(&["run", &target, "-w", "randread", "-d", "8", "--requests", "500"]);
        assert_eq!((&result["requests"], &result["errors"]), (&500.into(), &0.into()), "{target}");
        assert_eq!(result["method"]["engine"], "nbd");
        assert_eq!(result["target"], target.as_str());
    }
    assert!(server.contents().iter().all(|byte| *byte == CONTENT));
}

#[test]
fn an_export_is_written_to_only_with_its_name_typed() {
    let (place, server) = with(Behaviour::default());
    let target = server.uri("x");
    let write = ["run", &target, "-w", "randwrite", "--requests", "200"];
    let told = place.fails(2, &write);
    assert!(told.contains("--write"), "{told}");
    let told = place.fails(2, &[&write[..], &["--write", "--destroy=other"]].concat());
    assert!(told.contains("--destroy=x"), "{told}");
    assert!(server.contents().iter().all(|byte| *byte == CONTENT), "nothing was written");
    let consent = ["--write", "--destroy=x"];
    let result = place.json(&[&write[..], &consent].concat());
    assert_eq!((&result["requests"], &result["errors"]), (&200.into(), &0.into()));
    assert!(server.contents().iter().any(|byte| *byte != CONTENT));
    // The data read back equals the data written.
    let verified = place.ok(&[&["verify", &target, "--threads", "2"][..], &consent].concat());
    assert!(!verified.is_empty());
    let (place, closed) = with(Behaviour { read_only: true, ..Behaviour::default() });
    let write = ["run", &closed.uri("x"), "-w", "randwrite", "--requests", "200"];
    let told = place.fails(2, &[&write[..], &consent].concat());
    assert!(told.contains("read-only"), "{told}");
}

#[test]
fn servers_that_cannot_be_used_are_told() {
    let (place, server) = with(Behaviour::default());
    let told = place.fails(2, &["run", &server.uri("z"), "--requests", "10"]);
    assert!(told.contains('z') && told.contains("export"), "{told}");
    let told = place.fails(2, &["run", "nbd://127.0.0.1:1/x", "--requests", "10"]);
    assert!(told.contains("no server listens there"), "{told}");
    let told = place.fails(2, &["run", "nbds://127.0.0.1/x", "--requests", "10"]);
    assert!(told.contains("TLS"), "{told}");
    let (place, server) = with(Behaviour { tls_only: true, ..Behaviour::default() });
    let told = place.fails(2, &["run", &server.uri("x"), "--requests", "10"]);
    assert!(told.contains("TLS"), "{told}");
}

/// What was measured until the server went is kept, and one that is slow is measured as slow.
#[test]
fn a_server_that_goes_ends_the_run_and_keeps_its_figures() {
    let (place, server) = with(Behaviour { closes_after: Some(100), ..Behaviour::default() });
    let output = place.call(&["run", &server.uri("x"), "--for", "20s", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let why = result["error"]["message"].as_str().unwrap();
    // A server that closes with requests unread resets the connection (RFC 9293, 3.6.1), and replies on their way are lost.
    let reset = why.contains("connection broke");
    assert!(reset || why.contains("closed the connection"), "{why}");
    assert_eq!(result["partial"], true);
    let least = if reset { 1 } else { 90 };
    assert!(result["requests"].as_u64().unwrap() >= least, "{}", result["requests"]);
    let delay = Duration::from_millis(5);
    let (place, slow) = with(Behaviour { delay, ..Behaviour::default() });
    let result = place.json(&["run", &slow.uri("x"), "-d", "1", "--requests", "40"]);
    let mean = result["latency_ns"]["mean"].as_f64();
    assert!(mean.unwrap() >= 5e6, "{}", result["latency_ns"]);
}
