//! The iSCSI initiator, against the target of this project and against servers that behave badly.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use ssdyno_iscsi::{BlockUnits, DiskOptions, IscsiServer, IscsiTarget, UnitOptions};
use ssdyno_safety::Consent;
use ssdyno_ssd::{Config, Ssd};

use super::*;
use crate::{RealTarget, inspect_export};

const TARGET: &str = "iqn.2026-01.org.ssdyno:test";

/// A small SSD that trims, as a unit.
fn serve(unit: UnitOptions) -> IscsiServer {
    let config = Config::parse(include_str!("../../../../ssd/tests/small_nvme.toml")).unwrap();
    let ssd = Ssd::new(&config, 7).unwrap();
    let serial = "0001".to_owned();
    let options = DiskOptions { product: "TEST".to_owned(), serial, unit };
    let units = BlockUnits::over(ssd, &options).unwrap();
    let target = IscsiTarget::new(TARGET, Box::new(units)).unwrap();
    IscsiServer::start("127.0.0.1:0", Arc::new(target)).unwrap()
}

fn uri(server: &IscsiServer) -> String {
    format!("iscsi://{}/{TARGET}/0", server.address())
}

fn permit_for(name: &str) -> Access {
    let found = inspect_export(name).unwrap().unwrap();
    let typed = Some("iqn.2026-01.org.ssdyno:test/0");
    Access::Write(found.permit(Consent { typed, overwrite: false }).unwrap())
}

fn network_error(target: &str) -> (String, String) {
    match refusal(&run(target, "requests = 10\n")) {
        error @ BenchError::Network { .. } => (error.to_string(), error.help()),
        other => panic!("{other}"),
    }
}

/// The target takes 64 commands of a session: the others wait, and all are answered, for each job on a session of
/// its own.
#[test]
fn more_requests_than_the_window_are_all_answered() {
    let server = serve(UnitOptions::default());
    let mut reads = run(&uri(&server), "depth = 300\nrequests = 3000\n");
    reads.options.jobs = 2;
    let result = measure(&reads).result;
    assert_eq!((result.requests, result.errors), (3000, 0), "{:?}", result.notes);
    assert_eq!(result.method.as_ref().unwrap().engine, "iscsi");
    let window = "accepts 64 outstanding commands";
    assert!(result.notes.iter().any(|note| note.contains(window)), "{:?}", result.notes);
}

/// From one block to longer than the first burst, a burst of the target, and a segment: what is written is what is
/// read back, by other sessions too.
#[test]
fn what_is_written_is_read_back_whatever_its_length() {
    let server = serve(UnitOptions::default());
    let name = uri(&server);
    let target = RealTarget::open(&name, &permit_for(&name)).unwrap();
    let file = target.to_remote_file().unwrap();
    for (number, length) in [4096_usize, 262_144, 266_240, 1 << 20, 3 << 20].into_iter().enumerate()
    {
        let data: Vec<u8> = (0..length).map(|i| (i / 7 + i / 4096 + number) as u8).collect();
        let at = 4096 * number as u64;
        file.write_all_at(&data, at).unwrap();
        file.flush().unwrap();
        let mut back = vec![0; length];
        file.read_exact_at(&mut back, at).unwrap();
        assert!(back == data, "{length} B differ");
        let other = RealTarget::open(&name, &Access::ReadOnly).unwrap();
        back.fill(0);
        other.to_remote_file().unwrap().read_exact_at(&mut back, at).unwrap();
        assert!(back == data, "{length} B differ in another session");
    }
    assert!(file.write_all_at(&[0; 100], 0).is_err(), "no whole block");
}

/// Long and short ones, with trims, many at once: nothing fails.
#[test]
fn mixed_loads_are_carried_out() {
    let server = serve(UnitOptions::default());
    let workload = "depth = 16\nrequests = 400\nread_percent = 40\ntrim_percent = 10\n\
        block_sizes = [{ size = \"4KiB\", weight = 3 }, { size = \"512KiB\", weight = 1 }]\n";
    let mut mixed = run(&uri(&server), workload);
    mixed.access = permit_for(&uri(&server));
    let result = measure(&mixed).result;
    assert_eq!((result.requests, result.errors), (400, 0), "{:?}", result.notes);
}

#[test]
fn nothing_is_written_without_consent() {
    let server = serve(UnitOptions::default());
    let writes = run(&uri(&server), "read_percent = 0\nrequests = 10\n");
    assert!(matches!(refusal(&writes), BenchError::ReadOnly { .. }));
    let found = inspect_export(&uri(&server)).unwrap().unwrap();
    let refused = found.permit(Consent { typed: Some("x"), overwrite: true }).unwrap_err();
    assert!(refused.help().contains(&format!("--destroy={TARGET}/0")), "{}", refused.help());
    let closed = serve(UnitOptions { read_only: true, ..UnitOptions::default() });
    assert_eq!(measure(&run(&uri(&closed), "requests = 10\n")).result.requests, 10);
    let found = inspect_export(&uri(&closed)).unwrap().unwrap();
    let typed = Some("iqn.2026-01.org.ssdyno:test/0");
    let refused = found.permit(Consent { typed, overwrite: true }).unwrap_err();
    assert!(refused.to_string().contains("read-only"), "{refused}");
}

#[test]
fn names_that_are_not_there_are_told_with_those_that_are() {
    let server = serve(UnitOptions::default());
    let at = server.address();
    let (what, help) = network_error(&format!("iscsi://{at}/{TARGET}2/0"));
    assert!(what.contains("no target") && help.contains(TARGET), "{what} {help}");
    let (what, help) = network_error(&format!("iscsi://{at}/{TARGET}/5"));
    assert!(what.contains("no unit 5") && help.contains("units: 0"), "{what} {help}");
    let (what, help) = network_error(&format!("iscsi://{at}/{TARGET}"));
    assert!(what.contains("unit number") && help.contains("IQN/LUN"), "{what} {help}");
}

/// Beyond the end of the unit: the target refuses it, in words.
#[test]
fn a_check_condition_is_told_in_words() {
    let closed = serve(UnitOptions { read_only: true, ..UnitOptions::default() });
    let link = crate::network::Remote::open(&uri(&closed)).unwrap();
    let size = link.facts().size_bytes;
    let remote = Arc::new(link);
    for (request, words, kind) in [
        (ssdyno_block::Request::read(size, 4096), "(5/21/00)", std::io::ErrorKind::InvalidInput),
        (
            ssdyno_block::Request::write(0, 4096),
            "write protected (7/27/",
            std::io::ErrorKind::PermissionDenied,
        ),
    ] {
        let connection = crate::engine::network::Network::new(
            Arc::clone(&remote),
            remote.link().unwrap(),
            (1, 4096),
            None,
            false,
        );
        let (data, mut place) = ([0; 4096], [0; 4096]);
        let patience = Duration::from_secs(10);
        let failed = connection.unwrap().call(&request, &data, &mut place, patience).unwrap_err();
        assert!(failed.to_string().contains(words) && failed.kind() == kind, "{failed}");
    }
}

/// A server that answers each connection with `answer`, and then closes it or is silent.
fn answering(answer: impl Fn(&mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            answer(&mut stream);
        }
    });
    format!("iscsi://{address}/{TARGET}/0")
}

/// A login answer with this status and text.
fn login_answer(stream: &mut TcpStream, (class, detail): (u8, u8), text: &[u8]) {
    let mut request = [0; 48];
    stream.read_exact(&mut request).unwrap();
    let bytes = u32::from_be_bytes([0, request[5], request[6], request[7]]) as usize;
    stream.read_exact(&mut vec![0; bytes.next_multiple_of(4)]).unwrap();
    let mut answer = vec![0_u8; 48];
    (answer[0], answer[1]) = (0x23, 0x81);
    answer[5..8].copy_from_slice(&(text.len() as u32).to_be_bytes()[1..]);
    (answer[36], answer[37]) = (class, detail);
    answer.extend(text);
    answer.resize(answer.len().next_multiple_of(4), 0);
    stream.write_all(&answer).unwrap();
    // What is unread would reset the connection.
    let _ = stream.read(&mut [0; 512]);
}

#[test]
fn targets_that_want_what_is_not_supported_are_told() {
    let told = |status, text: &'static [u8]| {
        network_error(&answering(move |stream| login_answer(stream, status, text)))
    };
    for (what, help) in [told((2, 1), b""), told((0, 0), b"AuthMethod=CHAP\0")] {
        assert!(what.contains("CHAP") && help.contains("without authentication"), "{what} {help}");
    }
    let (what, help) = told((1, 1), b"TargetAddress=192.0.2.7:3260,1\0");
    assert!(what.contains("moved to 192.0.2.7") && help.contains("192.0.2.7"), "{what} {help}");
    let (what, help) = told((2, 2), b"");
    assert!(what.contains("does not accept") && help.contains("initiator="), "{what} {help}");
    let (what, _) = told((0, 0), b"HeaderDigest=CRC32C\0");
    assert!(what.contains("HeaderDigest=CRC32C"), "{what}");
    let (what, help) = network_error(&answering(|stream| {
        stream.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian, and whatever else comes\r\n").unwrap();
    }));
    assert!(what.contains("does not speak iSCSI") && help.contains("3260"), "{what} {help}");
}

/// A relay between initiator and target that closes a connection, goes silent, or corrupts the target's bytes after a
/// given number of bytes.
fn relayed(server: &IscsiServer, bytes: usize, how: fn(&mut TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, target) = (listener.local_addr().unwrap(), server.address());
    std::thread::spawn(move || {
        for initiator in listener.incoming().flatten() {
            let to = TcpStream::connect(target).unwrap();
            let (mut from, mut back) = (to.try_clone().unwrap(), initiator.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut &initiator, &mut &to));
            std::thread::spawn(move || {
                let (mut passed, mut buffer) = (0, [0; 4096]);
                while let Ok(read @ 1..) = from.read(&mut buffer) {
                    passed += read;
                    if passed > bytes {
                        how(&mut back);
                        return;
                    }
                    if back.write_all(&buffer[..read]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("iscsi://{address}/{TARGET}/0")
}

/// What was measured until then is kept.
#[test]
fn connections_that_end_end_the_run() {
    let server = serve(UnitOptions::default());
    let cut: fn(&mut TcpStream) = |stream| {
        stream.shutdown(std::net::Shutdown::Both).unwrap();
    };
    let spoil: fn(&mut TcpStream) = |stream| {
        let _ = stream.write_all(&[0xee; 100_000]);
    };
    for how in [cut, spoil] {
        let name = relayed(&server, 2_000_000, how);
        let began = Instant::now();
        let long = run(&name, "depth = 8\nduration = \"60s\"\n");
        let measured = long.execute(&mut |_| KeepGoing::Continue).unwrap();
        assert!(began.elapsed() < Duration::from_secs(30));
        let failure = measured.failure.unwrap();
        assert!(matches!(failure, BenchError::Network { .. }), "{failure}");
        assert!(measured.result.partial && measured.result.requests > 100);
    }
}

/// A target that never answers is given up after the timeout.
#[test]
fn a_target_that_goes_silent_is_given_up() {
    let server = serve(UnitOptions::default());
    let name = relayed(&server, 1_000_000, |_| std::thread::sleep(Duration::from_secs(30)));
    let mut hangs = run(&name, "depth = 4\nduration = \"60s\"\n");
    hangs.options.timeout = Duration::from_millis(500);
    let began = Instant::now();
    let measured = hangs.execute(&mut |_| KeepGoing::Continue).unwrap();
    assert!(matches!(measured.failure, Some(BenchError::Hang { .. })), "{:?}", measured.failure);
    assert!(measured.result.requests > 50 && began.elapsed() < Duration::from_secs(10));
}

/// What passes between initiators and a target.
#[derive(Default)]
struct Relay {
    streams: Mutex<Vec<TcpStream>>,
    silent: AtomicBool,
    /// Each so many reads end with TASK SET FULL instead of their status.
    full_each: Option<u32>,
}

impl Relay {
    fn start(self, server: &IscsiServer) -> (Arc<Relay>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, target) = (listener.local_addr().unwrap(), server.address());
        let relay = Arc::new(self);
        let of_thread = Arc::clone(&relay);
        std::thread::spawn(move || {
            for initiator in listener.incoming().flatten() {
                let to = TcpStream::connect(target).unwrap();
                let (from, back) = (to.try_clone().unwrap(), initiator.try_clone().unwrap());
                of_thread.streams.lock().unwrap().push(initiator.try_clone().unwrap());
                of_thread.silent.store(false, Ordering::SeqCst);
                std::thread::spawn(move || std::io::copy(&mut &initiator, &mut &to));
                let relay = Arc::clone(&of_thread);
                std::thread::spawn(move || relay.answers(from, back));
            }
        });
        (relay, format!("iscsi://{address}/{TARGET}/0"))
    }

    /// Passes on messages of the target, as they come.
    fn answers(&self, mut from: TcpStream, mut back: TcpStream) {
        let (mut header, mut reads) = ([0; 48], 0);
        while from.read_exact(&mut header).is_ok() {
            let bytes = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
            let mut data = vec![0; bytes.next_multiple_of(4)];
            from.read_exact(&mut data).unwrap();
            // Data-In of 4 KiB with a status: the loads of the tests, and not the questions about the unit.
            if header[0] & 0x3f == 0x25 && header[1] & 1 != 0 && bytes == 4096 {
                reads += 1;
                if self.full_each.is_some_and(|each| reads % each == 0) {
                    header[3] = 0x28;
                }
            }
            let is_passed = !self.silent.load(Ordering::SeqCst);
            if is_passed && back.write_all(&[&header[..], &data].concat()).is_err() {
                return;
            }
        }
    }
}

/// A unit that has no room now and then: nothing fails, and the result says how often.
#[test]
fn requests_for_which_the_unit_has_no_room_are_sent_again() {
    let server = serve(UnitOptions::default());
    let (_relay, name) = Relay { full_each: Some(10), ..Relay::default() }.start(&server);
    let result = measure(&run(&name, "depth = 4\nrequests = 200\n")).result;
    assert_eq!((result.requests, result.errors), (200, 0), "{:?}", result.notes);
    // Of 222 answers each tenth is refused: 22.
    let told = |note: &String| note.contains("task set is full") && note.contains("(22 times");
    assert!(result.notes.iter().any(told), "{:?}", result.notes);
}

/// A session that ended, or went silent, while nobody used it is not used again.
#[test]
fn idle_sessions_are_checked_before_they_are_used() {
    let server = serve(UnitOptions::default());
    let (relay, name) = Relay::default().start(&server);
    let target = RealTarget::open(&name, &Access::ReadOnly).unwrap();
    let file = target.to_remote_file().unwrap();
    let sessions = || relay.streams.lock().unwrap().len();
    let mut block = [0; 4096];
    file.read_exact_at(&mut block, 0).unwrap();
    file.read_exact_at(&mut block, 0).unwrap();
    let before = sessions();
    std::thread::sleep(Duration::from_millis(1100));
    file.read_exact_at(&mut block, 0).unwrap();
    assert_eq!(sessions(), before, "one that answers is used again");
    for stream in relay.streams.lock().unwrap().iter() {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
    std::thread::sleep(Duration::from_millis(50));
    file.read_exact_at(&mut block, 0).unwrap();
    assert_eq!(sessions(), before + 1, "one that was ended is not");
    std::thread::sleep(Duration::from_millis(1100));
    relay.silent.store(true, Ordering::SeqCst);
    file.read_exact_at(&mut block, 0).unwrap();
    assert_eq!(sessions(), before + 2, "one that is silent is not");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// For any bytes that a server sends instead of login responses, the result is an error, and
    /// nothing hangs.
    #[test]
    fn no_bytes_are_taken_for_a_login(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        kind in prop::sample::select(vec![0x23_u8, 0x24, 0x3f, 0xff]),
        is_short: bool,
    ) {
        let mut bytes = bytes;
        if bytes.len() > 8 && kind != 0xff {
            bytes[0] = kind;
            if is_short {
                (bytes[4], bytes[5], bytes[6]) = (0, 0, 0);
            }
        }
        let began = Instant::now();
        let name = answering(move |stream| {
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read(&mut [0; 4096]);
        });
        let opened = RealTarget::open(&name, &Access::ReadOnly);
        prop_assert!(opened.is_err());
        prop_assert!(began.elapsed() < Duration::from_secs(8));
    }
}
