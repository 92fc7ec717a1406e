//! A simulated drive and its data behind a socket, as a server of any protocol would have them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use ssdyno_block::{BlockTarget, Completion, Request, Status, Time, Token};
use ssdyno_device::Contents;
use ssdyno_serve::{Paced, Served, ServedClock, Shared, TcpService};
use ssdyno_ssd::{Config, Ssd};

const SECTOR: usize = 512;
/// A wait that lasts so long is a hang.
const HANGS: Duration = Duration::from_secs(60);

/// A drive, its data, and who waits for which completion.
struct Drive {
    ssd: Ssd,
    contents: Contents,
    waiting: BTreeMap<u32, Sender<Completion>>,
    next: u32,
    /// Times at which it was looked after by itself or by a client.
    looks: u64,
}

impl Drive {
    fn new() -> Drive {
        let file = include_str!("../../ssd/tests/small_nvme.toml");
        let config = Config::parse(file).unwrap();
        let ssd = Ssd::new(&config, 7).unwrap();
        let (contents, waiting) = (Contents::default(), BTreeMap::new());
        Drive { ssd, contents, waiting, next: 0, looks: 0 }
    }

    fn submit(&mut self, now: Time, request: Request, to: Sender<Completion>) {
        let token = Token(self.next);
        self.next += 1;
        self.ssd.submit(now, request, token).unwrap();
        self.waiting.insert(token.0, to);
    }
}

impl Served for Drive {
    fn advance(&mut self, now: Time) {
        self.looks += 1;
        let mut done = Vec::new();
        while let Some(at) = self.ssd.next_event().filter(|at| *at <= now) {
            self.ssd.reap(at, &mut done);
        }
        self.ssd.reap(now, &mut done);
        for completion in done {
            // A client that has left does not wait.
            let _left = self.waiting.remove(&completion.token.0).unwrap().send(completion);
        }
    }

    fn next_event(&self) -> Option<Time> {
        self.ssd.next_event()
    }
}

#[test]
fn what_is_overdue_happened_at_its_own_time() {
    let hand = Arc::new(AtomicU64::new(0));
    let run = |steps: &[u64]| {
        hand.store(0, Ordering::Release);
        let mut drive = Paced::new(Drive::new(), ServedClock::Set(hand.clone()));
        let (sender, done) = channel();
        drive.served.submit(Time::ZERO, Request::read(0, 4096), sender);
        for us in steps {
            hand.store(Time::from_us(*us).as_ps(), Ordering::Release);
            drive.catch_up();
        }
        assert_eq!(drive.now(), Time::from_us(*steps.last().unwrap()));
        done.try_recv().unwrap().completed
    };
    let often: Vec<u64> = (0..5000).collect();
    let seldom = run(&[5000]);
    assert!(seldom > Time::from_us(1) && seldom < Time::from_us(4000), "{seldom:?}");
    assert_eq!(run(&often), seldom);
}

#[test]
fn settled_device_is_as_far_as_its_last_completion() {
    let mut drive = Paced::new(Drive::new(), ServedClock::Device);
    let (sender, done) = channel();
    drive.served.submit(Time::ZERO, Request::read(0, 4096), sender);
    drive.catch_up();
    assert!(done.try_recv().is_err(), "its own clock does not go on by itself");
    drive.settle(|drive| !drive.waiting.is_empty());
    assert_eq!(done.try_recv().unwrap().completed, drive.now());
}

/// A completion comes though no client calls: the keeper wakes up for it, also where it was asleep forever
/// when the request came.
#[test]
fn keeper_wakes_up_for_what_is_due() {
    let drive = Arc::new(Shared::new(Drive::new(), ServedClock::wall()));
    let keeper = drive.keep_time("test-clock").unwrap();
    for _ in 0..20 {
        let (sender, done) = channel();
        let begun = Instant::now();
        let submitted = drive.with(|drive, now| {
            drive.submit(now, Request::read(0, 4096), sender);
            now
        });
        let completed = done.recv_timeout(HANGS).expect("nobody woke up").completed;
        let took = (completed - submitted).as_ps() / 1000;
        assert!(begun.elapsed() >= Duration::from_nanos(took), "it came before its time");
    }
    drop(keeper);
    let before = drive.lock().served.looks;
    drive.wake();
    assert_eq!(drive.lock().served.looks, before, "the keeper has ended");
}

/// `R` or `W`, a sector number, and 512 bytes for a write; the answer is 512 bytes.
fn serve(stream: &TcpStream, drive: &Shared<Drive>) -> std::io::Result<()> {
    let mut stream = stream;
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let sector = u64::from(u32::from_le_bytes(head[1..].try_into().unwrap()));
        let offset = sector * SECTOR as u64;
        let mut data = [0; SECTOR];
        let (sender, done) = channel();
        if head[0] == b'W' {
            stream.read_exact(&mut data)?;
            drive.with(|drive, now| {
                drive.contents.write(offset, &data);
                drive.submit(now, Request::write(offset, SECTOR as u32), sender);
            });
        } else {
            drive.with(|drive, now| {
                drive.submit(now, Request::read(offset, SECTOR as u32), sender);
            });
        }
        let Ok(completion) = done.recv() else { return Ok(()) };
        assert_eq!(completion.status, Status::Ok);
        drive.with(|drive, _| drive.contents.read(offset, &mut data));
        stream.write_all(&data)?;
    }
}

#[test]
fn many_clients_share_a_drive_until_an_orderly_end() {
    let drive = Arc::new(Shared::new(Drive::new(), ServedClock::wall()));
    let keeper = drive.keep_time("test-clock").unwrap();
    let served = drive.clone();
    let service = TcpService::start("127.0.0.1:0", "test", 5, move |s| serve(s, &served)).unwrap();
    let connect = || {
        let stream = TcpStream::connect(service.address()).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        stream
    };
    let ask = |stream: &mut TcpStream, write: Option<[u8; SECTOR]>, sector: u32| {
        let mut message = vec![if write.is_some() { b'W' } else { b'R' }];
        message.extend(sector.to_le_bytes());
        message.extend(write.into_iter().flatten());
        stream.write_all(&message).unwrap();
        let mut answer = [0; SECTOR];
        stream.read_exact(&mut answer).unwrap();
        answer
    };
    std::thread::scope(|scope| {
        for client in 0..4_u8 {
            let (connect, ask) = (&connect, &ask);
            scope.spawn(move || {
                let mut stream = connect();
                for round in 0..30 {
                    let sector = u32::from(client) * 8 + u32::from(round % 8);
                    let data = [client * 50 + round; SECTOR];
                    assert_eq!(ask(&mut stream, Some(data), sector), data);
                    assert_eq!(ask(&mut stream, None, sector), data);
                }
            });
        }
    });
    let mut last = connect();
    assert_eq!(ask(&mut last, None, 9), [50 + 25; SECTOR], "what another client wrote last");
    drop(service);
    assert_eq!(last.read(&mut [0]).unwrap_or(0), 0, "its connection was closed");
    drop(keeper);
    // The threads have let go of the drive.
    assert_eq!(Arc::strong_count(&drive), 1);
}
