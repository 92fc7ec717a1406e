//! Commands that are not done stay pending, by the target's clock, and others go on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ssdyno_block::Time;
use ssdyno_iscsi::{Framing, IscsiTarget, Pdu, ServedClock, opcode};

use crate::device::{self, NAME};
use crate::initiator::{Initiator, connection, login};

/// SANITIZE, block erase, without IMMED: 224 ms of the small drive's time.
const ERASE: [u8; 10] = [0x48, 0x02, 0, 0, 0, 0, 0, 0, 0, 0];
const ERASE_MS: u64 = 224;
const TEST_UNIT_READY: [u8; 6] = [0; 6];
/// NOT READY, SANITIZE IN PROGRESS.
const IN_PROGRESS: Option<(u8, u16)> = Some((2, 0x041b));
const READS: u8 = 0x80 | 0x40;
const WRITES: u8 = 0x80 | 0x20;
const ABORT_TASK: u8 = 1;
/// Task attributes in byte 1 of SCSI Command.
const SIMPLE: u8 = 1;
const ORDERED: u8 = 2;
const HEAD_OF_QUEUE: u8 = 3;

/// A target, and the hand of its clock.
struct Bench {
    target: Arc<IscsiTarget>,
    hand: Arc<AtomicU64>,
}

impl Bench {
    fn new(keys: &str) -> Bench {
        let hand = Arc::new(AtomicU64::new(0));
        Bench { target: Arc::new(device::target(keys, ServedClock::Set(hand.clone()))), hand }
    }

    /// An initiator that has heard of the power on.
    fn initiator(&self, isid: u8) -> Initiator {
        Initiator::new(&self.target, isid, &[("InitialR2T", "No")])
    }

    /// Lets time go on.
    fn wait(&self, time: Time) {
        self.hand.fetch_add(time.as_ps(), Ordering::AcqRel);
        while self.target.run() == Some(Duration::ZERO) {}
    }

    /// As long as a command takes that needs no medium, or little of it.
    fn wait_a_little(&self) {
        self.wait(Time::from_ms(2));
    }
}

fn ten(opcode: u8, lba: u8, blocks: u8) -> [u8; 10] {
    [opcode, 0, 0, 0, 0, lba, 0, 0, blocks, 0]
}

/// Tag and status of the commands that these PDUs end, in their order.
fn ends(pdus: &[Pdu]) -> Vec<(u32, u8)> {
    let is_end = |pdu: &&Pdu| match pdu.opcode() {
        opcode::SCSI_RESPONSE => true,
        opcode::DATA_IN => pdu.header[1] & 1 != 0,
        _ => false,
    };
    pdus.iter().filter(is_end).map(|pdu| (pdu.task_tag(), pdu.header[3])).collect()
}

/// Sends a command without data-out, which is answered later; its tag.
fn begin(initiator: &mut Initiator, cdb: &[u8], expected: u32) -> u32 {
    let pdu = initiator.command(cdb, READS, expected, &[]);
    let tag = pdu.task_tag();
    assert_eq!(initiator.send(pdu), [], "it takes time");
    tag
}

/// A command that ends while others are pending: its sense data.
fn ask(bench: &Bench, initiator: &mut Initiator, cdb: &[u8]) -> Option<(u8, u16)> {
    let pdu = initiator.command(cdb, READS, 252, &[]);
    let tag = pdu.task_tag();
    let mut out = initiator.send(pdu);
    if out.is_empty() {
        bench.wait_a_little();
        out = initiator.completed();
    }
    assert_eq!(ends(&out).first().map(|end| end.0), Some(tag));
    initiator.finish(out, &[]).sense
}

/// SBC-4, 5.32: without IMMED the command ends with the operation; meanwhile SPC-5, 5.14 and SBC-4, 4.11.2
/// have what other commands get, and REQUEST SENSE the progress.
#[test]
fn a_sanitize_is_pending_while_others_are_answered() {
    let bench = Bench::new("");
    let (mut initiator, mut other) = (bench.initiator(1), bench.initiator(2));
    let erase = begin(&mut initiator, &ERASE, 0);
    let mut progress = Vec::new();
    for _ in 0..4 {
        bench.wait(Time::from_ms(ERASE_MS / 5));
        assert_eq!(initiator.completed(), []);
        assert_eq!(ask(&bench, &mut initiator, &TEST_UNIT_READY), IN_PROGRESS);
        assert_eq!(ask(&bench, &mut other, &ten(0x28, 0, 1)), IN_PROGRESS);
        assert_eq!(ask(&bench, &mut other, &[0x12, 0, 0, 0, 36, 0]), None, "INQUIRY");
        let pdu = initiator.command(&[3, 0, 0, 0, 252, 0], READS, 252, &[]);
        assert_eq!(initiator.send(pdu), []);
        bench.wait_a_little();
        let data = initiator.completed().remove(0).data;
        assert_eq!((data[2] & 0xf, data[12], data[13]), (2, 0x04, 0x1b));
        // SKSV, and how far it is of 65536.
        assert_eq!(data[15] & 0x80, 0x80);
        progress.push(u16::from_be_bytes([data[16], data[17]]));
    }
    assert!(progress.windows(2).all(|pair| pair[0] < pair[1]), "{progress:?}");
    // It is looked at as often as a quarter of what is left, and once more.
    bench.wait(Time::from_ms(ERASE_MS));
    assert_eq!(ends(&initiator.completed()), [(erase, 0)]);
    assert_eq!(ask(&bench, &mut initiator, &TEST_UNIT_READY), None);
}

/// SAM-5, 7.2: an aborted command is not answered; SBC-4, 4.11: the operation goes on.
#[test]
fn an_aborted_sanitize_goes_on_without_its_command() {
    let bench = Bench::new("");
    let mut initiator = bench.initiator(1);
    for function in [ABORT_TASK, 2, 5, 6] {
        let erase = begin(&mut initiator, &ERASE, 0);
        bench.wait(Time::from_ms(20));
        // Its next look at the controller is in the future: nothing is to be waited for.
        assert_eq!(initiator.manage(function, erase), 0);
        assert_eq!(initiator.manage(ABORT_TASK, erase), 1, "it is gone");
        if function >= 5 {
            assert_eq!(ask(&bench, &mut initiator, &TEST_UNIT_READY), Some((6, 0x2903)));
        }
        assert_eq!(ask(&bench, &mut initiator, &TEST_UNIT_READY), IN_PROGRESS);
        bench.wait(Time::from_ms(2 * ERASE_MS));
        assert_eq!(initiator.completed(), []);
        assert_eq!(ask(&bench, &mut initiator, &TEST_UNIT_READY), None);
    }
}

/// SAM-5, 7.2: the function is answered when nothing of the command can happen any more.
#[test]
fn a_function_waits_for_what_the_controller_does() {
    let bench = Bench::new("");
    let (mut initiator, mut other) = (bench.initiator(1), bench.initiator(2));
    for (function, by_other) in [(ABORT_TASK, false), (2, false), (5, false), (6, false), (5, true)]
    {
        let write = initiator.command(&ten(0x2a, 0, 1), WRITES, 512, &[7; 512]);
        let tag = write.task_tag();
        assert_eq!(initiator.send(write), []);
        let manager = if by_other { &mut other } else { &mut initiator };
        assert_eq!(manager.ask_to_manage(function, tag), [], "function {function}");
        bench.wait_a_little();
        let manager = if by_other { &mut other } else { &mut initiator };
        let out = manager.completed();
        assert_eq!(out.len(), 1, "one answer, that of the function: {out:?}");
        assert_eq!((out[0].opcode(), out[0].header[2]), (opcode::TASK_MANAGEMENT_RESPONSE, 0));
        assert_eq!(initiator.completed(), []);
        if function >= 5 {
            let reset = Some((6, 0x2903));
            assert_eq!(ask(&bench, &mut initiator, &TEST_UNIT_READY), reset);
            assert_eq!(ask(&bench, &mut other, &TEST_UNIT_READY), reset);
        }
    }
    // What ended before it was aborted is answered, before the function is.
    let read = begin(&mut initiator, &ten(0x28, 0, 1), 512);
    bench.wait_a_little();
    let out = initiator.ask_to_manage(ABORT_TASK, read);
    assert_eq!(ends(&out), [(read, 0)]);
    let last = out.last().unwrap();
    assert_eq!((last.opcode(), last.header[2]), (opcode::TASK_MANAGEMENT_RESPONSE, 1));
}

/// The loss of the nexus ends what is pending, and nobody is answered (SAM-5, 6.3.4).
#[test]
fn a_lost_session_leaves_nothing_behind() {
    let bench = Bench::new("");
    let mut other = bench.initiator(2);
    for _ in 0..3 {
        let mut initiator = bench.initiator(1);
        let _reads: Vec<u32> =
            (0..20).map(|lba| begin(&mut initiator, &ten(0x28, lba, 1), 512)).collect();
        let write = initiator.command(&ten(0x2a, 40, 1), WRITES, 512, &[7; 512]);
        assert_eq!(initiator.send(write), []);
        // Logged in again while all of that is pending; it hears of the loss, as it must.
        let mut again = Initiator::new(&bench.target, 1, &[]);
        drop(initiator);
        bench.wait_a_little();
        assert_eq!(again.completed(), []);
        assert_eq!(ask(&bench, &mut again, &ten(0x28, 0, 1)), None);
        drop(again);
    }
    assert_eq!(ask(&bench, &mut other, &ten(0x28, 0, 1)), None);
}

/// RFC 7143, 4.2.2.1: what is pending takes room in the window, and gives it back.
#[test]
fn the_window_bounds_what_is_pending() {
    let bench = Bench::new("");
    let mut initiator = bench.initiator(1);
    let mut tags: Vec<u32> =
        (0..64).map(|lba| begin(&mut initiator, &ten(0x28, lba, 1), 512)).collect();
    let mut ping = Pdu::new(opcode::NOP_OUT | 0x40);
    ping.set_word(16, 7);
    let pong = initiator.send(ping).remove(0);
    let room = pong.word(32).wrapping_sub(pong.word(28)).wrapping_add(1);
    assert!(room <= 1, "{room} more, but 64 are pending");
    // Beyond the window: not there.
    let far = initiator.command(&TEST_UNIT_READY, READS, 0, &[]);
    initiator.command -= 1;
    let mut beyond = far.clone();
    beyond.set_word(24, far.word(24) + 1);
    assert_eq!(initiator.send(beyond), []);
    // An immediate one has no number, and no place.
    let mut immediate = Pdu::new(opcode::SCSI_COMMAND | 0x40);
    immediate.header[1] = READS;
    immediate.set_word(16, 5000);
    let out = initiator.send(immediate);
    assert_eq!((out[0].opcode(), out[0].header[2]), (opcode::REJECT, 0x06));
    bench.wait(Time::from_ms(50));
    let out = initiator.completed();
    let mut ended: Vec<u32> = ends(&out).into_iter().map(|end| end.0).collect();
    assert_ne!(ended, tags, "planes are as fast as they are: out of order");
    ended.sort_unstable();
    tags.sort_unstable();
    assert_eq!(ended, tags);
    let last = out.last().unwrap();
    assert_eq!(last.word(32).wrapping_sub(last.word(28)), 63, "all of the window again");
}

/// SAM-5, 8.9: an ordered task begins after all before it, and before all after it.
#[test]
fn ordered_tasks_are_barriers() {
    let bench = Bench::new("");
    let mut initiator = bench.initiator(1);
    let mut send = |attribute: u8, cdb: &[u8], write: bool| {
        let (flags, data) = if write { (WRITES, &[9; 512][..]) } else { (READS, &[][..]) };
        let pdu = initiator.command(cdb, flags | attribute, 512, data);
        let tag = pdu.task_tag();
        assert_eq!(initiator.send(pdu), []);
        tag
    };
    let tags = [
        send(SIMPLE, &ten(0x2a, 0, 1), true),
        send(ORDERED, &ten(0x28, 0, 1), false),
        send(ORDERED, &ten(0x2a, 1, 1), true),
        send(SIMPLE, &ten(0x28, 1, 1), false),
    ];
    let urgent = send(HEAD_OF_QUEUE, &ten(0x28, 60, 1), false);
    let mut out = Vec::new();
    for _ in 0..400 {
        bench.wait(Time::from_us(20));
        out.extend(initiator.completed());
    }
    let mut order: Vec<u32> = ends(&out).into_iter().map(|end| end.0).collect();
    let place = order.iter().position(|tag| *tag == urgent).unwrap();
    assert!(place <= 1, "at once: {order:?}");
    order.remove(place);
    assert_eq!(order, tags);
    let data = |tag| out.iter().find(|pdu| pdu.task_tag() == tag).unwrap().data.clone();
    assert_eq!((data(tags[1]), data(tags[3])), (vec![9; 512], vec![9; 512]));
}

/// Over a socket by the clock on the wall: an erase takes the initiator as long as the drive, and does not
/// keep others from their answers.
#[test]
fn the_wall_sees_how_long_a_drive_takes() {
    let server = device::serve("");
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let names = [("InitiatorName", "iqn.2026-01.org.ssdyno:x"), ("TargetName", NAME)];
    let framing = connection(server.target()).framing();
    let mut heard = stream.try_clone().unwrap();
    let mut send = |pdus: &[Pdu]| {
        let mut bytes = Vec::new();
        pdus.iter().for_each(|pdu| pdu.write(framing, &mut bytes));
        stream.write_all(&bytes).unwrap();
    };
    let mut number = 0;
    let mut command = |cdb: &[u8]| {
        number += 1;
        let mut pdu = Pdu::new(opcode::SCSI_COMMAND);
        pdu.header[1] = 0x80;
        pdu.set_word(16, number);
        pdu.set_word(24, number);
        pdu.header[32..32 + cdb.len()].copy_from_slice(cdb);
        pdu
    };
    send(&[login(1, 1, &names)]);
    assert_eq!(receive(&mut heard, framing).word(36), 0);
    // Power on.
    send(&[command(&TEST_UNIT_READY)]);
    assert_eq!(receive(&mut heard, framing).header[3], 2);
    let began = Instant::now();
    send(&[command(&ERASE), command(&TEST_UNIT_READY)]);
    // The unit may not know yet that it is being sanitized; it answers all the same.
    let early = receive(&mut heard, framing);
    assert_eq!(early.task_tag(), 3, "while the erase is pending");
    let late = receive(&mut heard, framing);
    assert_eq!((late.task_tag(), late.header[3]), (2, 0));
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(ERASE_MS), "{took:?}");
}

fn receive(stream: &mut TcpStream, framing: Framing) -> Pdu {
    let mut header = [0; 48];
    stream.read_exact(&mut header).unwrap();
    let mut rest = vec![0; Pdu::rest_bytes(&header, framing).unwrap()];
    stream.read_exact(&mut rest).unwrap();
    Pdu::parse(&header, &rest, framing).unwrap()
}
