//! Network targets, against a small server of its own that can be told to behave badly.

mod server;

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ssdyno_block::Request;
use ssdyno_safety::Consent;

use self::server::{Behaviour, Server};
use super::*;
use crate::engine::Engine as _;
use crate::engine::network::Network;
use crate::network::Remote;
use crate::{RealTarget, inspect_export};

/// The permit to write to an export called `x`.
fn permit_for(name: &str) -> Access {
    let found = inspect_export(name).unwrap().unwrap();
    Access::Write(found.permit(Consent { typed: Some("x"), overwrite: false }).unwrap())
}

fn network_error(run: &BenchRun) -> (String, String) {
    match refusal(run) {
        error @ BenchError::Network { .. } => (error.to_string(), error.help()),
        other => panic!("{other}"),
    }
}

/// Each answer comes 1 ms after its request, which is alone: no latency is shorter, and there are no more than 1000
/// in a second. This side can only add to that.
#[test]
fn a_fixed_delay_is_in_every_latency() {
    let server =
        Server::start(Behaviour { delay: Duration::from_millis(1), ..Behaviour::default() });
    let measured = measure(&run(&server.uri("x"), "depth = 1\nrequests = 200\n"));
    let result = &measured.result;
    assert!(measured.failure.is_none() && result.requests == 200, "{:?}", result.notes);
    let rows = measured.recording.rows().unwrap().to_vec().unwrap();
    assert!(rows.iter().all(|row| row.latency_ns >= 1_000_000));
    assert!(200.0 / result.simulated_seconds <= 1000.0, "{}", result.simulated_seconds);
    let method = result.method.as_ref().unwrap();
    assert_eq!((method.engine.as_str(), method.wait.as_str()), ("nbd", "sleep"));
    assert_eq!(result.target, server.uri("x"));
}

/// Answers to sixteen requests come together after 5 ms, the last one first: were they not on their way together, 320
/// requests would take at least 1.6 s; together they take 20 rounds, 0.1 s at least.
#[test]
fn requests_are_on_their_way_together_and_answered_in_any_order() {
    let behaviour = Behaviour {
        delay: Duration::from_millis(5),
        reversed: 16,
        segments: Some(7),
        ..Behaviour::default()
    };
    let server = Server::start(behaviour);
    let measured = measure(&run(&server.uri("x"), "depth = 16\nrequests = 320\n"));
    assert_eq!((measured.result.requests, measured.result.errors), (320, 0));
    let seconds = measured.result.simulated_seconds;
    assert!((0.1..1.6).contains(&seconds), "{seconds}");
}

/// The server's data afterwards equals the data sent, in short and in long writes, also over a local socket.
#[test]
fn what_is_written_is_what_the_server_holds_and_what_is_read_back() {
    let server = Server::start(Behaviour { segments: Some(1000), ..Behaviour::default() });
    for name in [server.uri("x"), server.local_uri("x")] {
        server.fill(0);
        let workload = "depth = 8\nrequests = 300\nread_percent = 30\ntrim_percent = 5\n\
            block_sizes = [{ size = \"4KiB\", weight = 3 }, { size = \"256KiB\", weight = 1 }]\n";
        let mut writes = run(&name, workload);
        writes.access = permit_for(&name);
        let BenchMeasured { result, failure, recording } = measure(&writes);
        assert!(failure.is_none() && result.errors == 0, "{failure:?} {:?}", result.notes);
        assert_eq!(result.requests, 300);
        let held = server.contents();
        let mut written = 0;
        let rows = recording.rows().unwrap().to_vec().unwrap();
        for (block, bytes) in held.chunks(4096).enumerate() {
            let at = block as u64 * 4096;
            let touched = rows.iter().map(|row| row.request).any(|request| {
                let ends = request.offset_bytes + u64::from(request.length_bytes);
                request.op == Op::Write && (request.offset_bytes..ends).contains(&at)
            });
            let trimmed = rows.iter().any(|row| row.request.op == Op::Trim);
            assert!(touched || bytes.iter().all(|byte| *byte == 0), "{at}: never written");
            assert!(!touched || trimmed || bytes.iter().any(|byte| *byte != 0), "{at}: lost");
            written += u64::from(bytes.iter().any(|byte| *byte != 0));
        }
        assert!(written > 50, "{written}");
        let target = RealTarget::open(&name, &Access::ReadOnly).unwrap();
        let file = target.to_remote_file().unwrap();
        let mut read = vec![0; held.len()];
        file.read_exact_at(&mut read, 0).unwrap();
        assert!(read == held, "what is read is not what is held");
        let mut part = [0; 700];
        file.read_exact_at(&mut part, 3900).unwrap();
        assert_eq!(part[..], held[3900..4600], "not in whole blocks");
    }
}

/// Written through the calls that a check of a target uses, and read back.
#[test]
fn blocks_are_verified() {
    let server = Server::start(Behaviour::default());
    let name = server.uri("x");
    let target = RealTarget::open(&name, &permit_for(&name)).unwrap();
    let file = target.to_remote_file().unwrap();
    let data: Vec<u8> = (0..8192_u32).map(|i| (i / 3) as u8).collect();
    file.write_all_at(&data, 12_288).unwrap();
    file.flush().unwrap();
    assert_eq!(server.contents()[12_288..20_480], data);
    let mut back = vec![0; 8192];
    file.read_exact_at(&mut back, 12_288).unwrap();
    assert_eq!(back, data);
    assert!(file.write_all_at(&data[..100], 0).is_err(), "no whole block");
}

#[test]
fn nothing_is_written_without_consent_for_this_export() {
    let server = Server::start(Behaviour::default());
    let mut writes = run(&server.uri("x"), "read_percent = 0\nrequests = 10\n");
    assert!(matches!(refusal(&writes), BenchError::ReadOnly { .. }));
    let found = inspect_export(&server.uri("x")).unwrap().unwrap();
    assert_eq!((found.confirmation(), found.confirmed_by()), (Some("x"), "name"));
    for typed in [None, Some("y")] {
        let refused = found.permit(Consent { typed, overwrite: true }).unwrap_err();
        assert!(refused.help().contains("--destroy=x"), "{}", refused.help());
    }
    writes.access = permit_for(&server.local_uri("x"));
    assert!(matches!(refusal(&writes), BenchError::Permit { .. }));
    assert!(server.contents().iter().all(|byte| *byte == server::CONTENT));
    let closed = Server::start(Behaviour { read_only: true, ..Behaviour::default() });
    assert_eq!(measure(&run(&closed.uri("x"), "requests = 10\n")).result.requests, 10);
    let found = inspect_export(&closed.uri("x")).unwrap().unwrap();
    let refused = found.permit(Consent { typed: Some("x"), overwrite: true }).unwrap_err();
    assert!(refused.to_string().contains("read-only"), "{refused}");
}

#[test]
fn servers_that_cannot_be_used_are_told_with_what_to_do() {
    let server = Server::start(Behaviour::default());
    let (what, help) = network_error(&run(&server.uri("nope"), ""));
    assert!(what.contains("no export `nope`") && help.contains("`x`, `y`"), "{what} {help}");
    let told = |behaviour| {
        let server = Server::start(behaviour);
        network_error(&run(&server.uri("x"), ""))
    };
    let secret = told(Behaviour { tls_only: true, ..Behaviour::default() });
    assert!(secret.0.contains("TLS"), "{secret:?}");
    let other =
        told(Behaviour { greeting: Some(b"SSH-2.0-OpenSSH_9.2p1 Debian"), ..Behaviour::default() });
    assert!(other.0.contains("does not speak NBD"), "{other:?}");
    let odd = told(Behaviour { blocks: Some((3000, 4096, 1 << 20)), ..Behaviour::default() });
    assert!(odd.0.contains("3000"), "{odd:?}");
    // Bound, and nobody listens.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let (what, help) = network_error(&run(&format!("nbd://127.0.0.1:{port}/x"), ""));
    assert!(what.contains("refused") && help.contains("start it"), "{what} {help}");
    let (what, _) = network_error(&run("nbd+unix:///x?socket=/no/such/socket", ""));
    assert!(what.contains("/no/such/socket"), "{what}");
    let (what, help) = network_error(&run("nbds://h/x", ""));
    assert!(what.contains("TLS") && help.contains("nbd://"), "{what} {help}");
}

/// A server from before 2015: the client uses the older option, and assumes the values that it does
/// not report.
#[test]
fn a_connection_that_the_server_closed_while_idle_is_made_again() {
    let server = Server::start(Behaviour { leaves_after: Some(1), ..Behaviour::default() });
    let target = crate::RealTarget::open(&server.uri("x"), &Access::ReadOnly).unwrap();
    let file = target.to_remote_file().unwrap();
    for _ in 0..3 {
        let mut block = [0; 4096];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut block, 0).unwrap();
        assert_eq!(block, [server::CONTENT; 4096]);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn servers_without_the_option_go_are_used() {
    let server = Server::start(Behaviour { old: true, ..Behaviour::default() });
    let measured = measure(&run(&server.uri("x"), "depth = 4\nrequests = 100\n"));
    assert_eq!((measured.result.requests, measured.result.errors), (100, 0));
    let (what, _) = network_error(&run(&server.uri("nope"), ""));
    assert!(what.contains("closed the connection when asked for the export `nope`"), "{what}");
}

#[test]
fn block_sizes_are_obeyed() {
    let server =
        Server::start(Behaviour { blocks: Some((4096, 8192, 65_536)), ..Behaviour::default() });
    let name = server.uri("x");
    let target = RealTarget::open(&name, &Access::ReadOnly).unwrap();
    assert_eq!(target.facts().sector_bytes, 4096);
    drop(target);
    let long = refusal(&run(&name, "block_size = \"128KiB\"\n"));
    assert!(
        matches!(&long, BenchError::Workload(_)) && long.to_string().contains("65536"),
        "{long}"
    );
    assert!(matches!(refusal(&run(&name, "block_size = \"1KiB\"\n")), BenchError::Workload(_)));
    let fits = measure(&run(&name, "block_size = \"64KiB\"\nrequests = 20\n")).result;
    assert_eq!((fits.requests, fits.errors), (20, 0));
    // The server accepts whole blocks only, and the rest at the end is less than a block.
    let odd = Server::start(Behaviour { size_bytes: 1_000_003, ..Behaviour::default() });
    let target = RealTarget::open(&odd.uri("x"), &Access::ReadOnly).unwrap();
    assert_eq!(target.facts().capacity_bytes, 1_000_003 / 512 * 512);
    assert!(target.notes.iter().any(|note| note.contains("67 B")), "{:?}", target.notes);
}

/// Errors of the server are those of the system, and the run goes on.
#[test]
fn failed_requests_are_counted_by_their_error() {
    let server = Server::start(Behaviour { fails: Some((10, 28)), ..Behaviour::default() });
    let BenchMeasured { result, failure, recording } =
        run(&server.uri("x"), "depth = 4\nrequests = 100\n")
            .execute(&mut |_| KeepGoing::Continue)
            .unwrap();
    assert!(failure.is_none() && result.errors == 10, "{failure:?} {}", result.errors);
    let rows = recording.rows().unwrap().to_vec().unwrap();
    assert_eq!(rows.iter().filter(|row| row.errno == libc::ENOSPC as u16).count(), 10);
    assert!(result.notes.iter().any(|note| note.contains("No space left")), "{:?}", result.notes);
}

/// A server that goes, or sends nonsense: what was outstanding failed, what was measured is kept.
#[test]
fn connections_that_end_end_the_run_with_what_was_measured() {
    for (behaviour, says) in [
        (Behaviour { closes_after: Some(50), ..Behaviour::default() }, "closed the connection"),
        (Behaviour { bad_magic_after: Some(50), ..Behaviour::default() }, "magic number 0xbad"),
        (Behaviour { bad_cookie_after: Some(50), ..Behaviour::default() }, "was not sent"),
    ] {
        let server = Server::start(behaviour);
        let run = run(&server.uri("x"), "depth = 8\nduration = \"60s\"\n");
        let began = Instant::now();
        let measured = run.execute(&mut |_| KeepGoing::Continue).unwrap();
        assert!(began.elapsed() < Duration::from_secs(20));
        let failure = measured.failure.unwrap();
        assert!(matches!(failure, BenchError::Network { .. }), "{failure}");
        // A socket that is closed while it has something unread is reset, and replies on their way
        // are lost (RFC 9293, 3.6.1).
        let told = failure.to_string();
        let reset = told.contains("connection broke");
        assert!(reset || told.contains(says), "{told}");
        let result = measured.result;
        let least = if reset { 1 } else { 50 };
        assert!(result.partial && (least..=50).contains(&result.requests), "{}", result.requests);
        assert!((1..=8).contains(&result.errors), "{}", result.errors);
    }
}

/// A send that fails with a reset takes the error of the socket with it, and the receive after it sees an end. The
/// connection was reset all the same: replies may be lost, and the message says so.
#[test]
fn a_reset_seen_by_a_send_is_told_as_a_reset() {
    // The server reads one of the requests and closes with the others unread, which is a reset.
    let behaviour = Behaviour {
        closes_after: Some(0),
        delay: Duration::from_millis(50),
        ..Behaviour::default()
    };
    let server = Server::start(behaviour);
    let remote = Arc::new(Remote::open(&server.uri("x")).unwrap());
    let link = remote.link().unwrap();
    let mut connection = Network::new(remote, link, (8, 4096), None, false).unwrap();
    for slot in 0..7 {
        connection.push(slot, &Request::read(u64::from(slot) * 4096, 4096));
    }
    connection.turn(0, Some(Duration::ZERO)).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    connection.push(7, &Request::read(0, 4096));
    connection.turn(8, Some(Duration::from_secs(5))).unwrap();
    let told = connection.trouble().unwrap();
    assert!(told.contains("connection broke") && told.contains("reset"), "{told}");
    connection.end();
}

/// Told to stop, a run waits for what is outstanding no longer than its timeout, and nothing is left behind that
/// waits for the server.
#[test]
fn a_server_that_never_answers_is_given_up() {
    let server = Server::start(Behaviour { silent_after: Some(20), ..Behaviour::default() });
    let mut hangs = run(&server.uri("x"), "depth = 4\nduration = \"60s\"\n");
    hangs.options.timeout = Duration::from_millis(300);
    let began = Instant::now();
    let measured = hangs.execute(&mut |_| KeepGoing::Continue).unwrap();
    assert!(matches!(measured.failure, Some(BenchError::Hang { outstanding: 4, .. })));
    assert_eq!((measured.result.requests, measured.result.unanswered), (20, 4));
    let notes = measured.result.notes.join("\n");
    assert!(
        notes.contains("4 requests had not completed when the run ended: the server"),
        "{notes}"
    );
    assert!(!notes.contains("kernel"), "{notes}");
    let stopped = hangs.execute(&mut |progress| match progress.completed {
        0 => KeepGoing::Continue,
        _ => KeepGoing::Stop,
    });
    assert!(stopped.unwrap().result.partial);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    // Jobs that were given up close their connections.
    while server.connections() > 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "{}", server.connections());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// With FUA where writes are to be durable, and without it such writes are refused.
#[test]
fn durable_writes_carry_the_flag() {
    let text = "[a]\nrw=write\nbs=4k\nsync=1\nsize=64k\nnumber_ios=8\n";
    for has_fua in [true, false] {
        let server = Server::start(Behaviour { no_fua: !has_fua, ..Behaviour::default() });
        let name = server.uri("x");
        let mut durable = with_jobs(run(&name, ""), text);
        durable.access = permit_for(&name);
        if has_fua {
            let result = measure(&durable).result;
            assert_eq!((result.requests, server.durable_writes()), (8, 8), "{:?}", result.notes);
        } else {
            assert!(matches!(refusal(&durable), BenchError::Option { option: "sync", .. }));
        }
    }
}

#[test]
fn jobs_have_connections_of_their_own_and_options_that_mean_nothing_are_refused() {
    let server = Server::start(Behaviour::default());
    let name = server.uri("x");
    let mut three = run(&name, "depth = 6\nrequests = 600\n");
    three.options.jobs = 3;
    assert_eq!(measure(&three).result.requests, 600);
    assert_eq!(server.connections_most(), 3, "the first is used for the load, too");
    let option = |change: fn(&mut BenchOptions)| {
        let mut run = run(&name, "");
        change(&mut run.options);
        match refusal(&run) {
            BenchError::Option { option, .. } => option,
            other => panic!("{other}"),
        }
    };
    assert_eq!(option(|o| o.engine = EngineKind::Uring), "engine");
    assert_eq!(option(|o| o.engine = EngineKind::Threads), "engine");
    assert_eq!(option(|o| o.page_cache = crate::PageCache::Kept), "buffered");
    let mut spins = run(&name, "depth = 2\nrequests = 200\n");
    spins.options.waiting = Some(ReapWait::Spin);
    let result = measure(&spins).result;
    assert_eq!((result.requests, result.method.unwrap().wait.as_str()), (200, "spin"));
}
