//! The requirements of RFC 7143 on a target, clause by clause, over the whole path down to the
//! medium.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use ssdyno_iscsi::{
    Connection, ConnectionFlow, IscsiTarget, LogicalUnits, Pdu, Portal, ServedClock, opcode,
};

use crate::device::{self, NAME};
use crate::initiator::{Initiator, NO_TAG, connection, data_out, login, text};

const WRITE: u8 = 0x80 | 0x20;

fn target() -> Arc<IscsiTarget> {
    Arc::new(device::target("", ServedClock::Device))
}

fn ten(opcode: u8, lba: u8, blocks: u8) -> [u8; 10] {
    [opcode, 0, 0, 0, 0, lba, 0, 0, blocks, 0]
}

/// A namespace is a logical unit whatever version its controller reports; PS of the caching page is what
/// the controller does (SPC-4, 7.5.1): it saves nothing.
#[test]
fn controllers_of_every_version_are_served() {
    for version in ["1.0", "1.1", "1.2", "1.3", "1.4", "2.0"] {
        let cached =
            format!("version = \"{version}\"\n[buffer]\npolicy = \"lru\"\nsize = \"1MiB\"\n");
        let mut units = device::units(&cached);
        let nexus = units.attach(b"port").unwrap();
        let mut send = |cdb: &[u8], data_out: &[u8]| {
            let (answer, data_in) = device::execute(&mut units, nexus, cdb, data_out);
            (answer.status, answer.sense.summary().map(|(key, more)| (key, more.0)), data_in)
        };
        assert_eq!(send(&[0; 6], &[]).1, Some((6, 0x2900)), "power on");
        assert_eq!(send(&ten(0x2a, 3, 1), &[7; 512]).0, 0, "{version}");
        assert_eq!(send(&ten(0x28, 3, 1), &[]), (0, None, vec![7; 512]), "{version}");
        let (status, _, page) = send(&[0x1a, 8, 0x08, 0, 255, 0], &[]);
        assert_eq!((status, page[4]), (0, 0x08), "PS is clear");
        assert_eq!(send(&[0x1a, 8, 0xc8, 0, 255, 0], &[]).1, Some((5, 0x3900)), "saved values");
        let list = [&[0; 4], &page[4..]].concat();
        let select = |flags| [0x15, flags, 0, 0, list.len() as u8, 0];
        assert_eq!(send(&select(0x11), &list).1, Some((5, 0x2400)), "SP");
        assert_eq!(send(&select(0x10), &list).0, 0);
        // FORMAT UNIT with the blocks that there are changes nothing that anybody must hear of.
        assert_eq!(send(&[0x04, 0, 0, 0, 0, 0], &[]).0, 0);
        assert_eq!(send(&[0; 6], &[]), (0, None, Vec::new()), "{version}");
    }
}

/// Clauses 6.3.1 and 11.13.5: who may not log in is told why.
#[test]
fn logins_are_refused_with_the_reason() {
    let name = ("InitiatorName", "iqn.2026-01.org.ssdyno:initiator");
    let other = ("TargetName", "iqn.2026-01.org.ssdyno:other");
    let ours = ("TargetName", NAME);
    let mut version = login(1, 0, &[name, ours]);
    version.header[3] = 1;
    let mut joins = login(1, 0, &[name, ours]);
    joins.header[15] = 1;
    for (pdu, status) in [
        (login(1, 0, &[ours]), 0x0207),
        (login(1, 0, &[name]), 0x0207),
        (login(1, 0, &[name, other]), 0x0203),
        (login(0, 0, &[name, ours, ("AuthMethod", "CHAP")]), 0x0201),
        (login(1, 0, &[name, ("SessionType", "Odd")]), 0x0209),
        (login(2, 0, &[name, ours]), 0x0200),
        (version, 0x0205),
        (joins, 0x020a),
        (Pdu::new(opcode::NOP_OUT), 0x020b),
    ] {
        let mut out = Vec::new();
        let mut connection = connection(&target());
        assert_eq!(connection.receive(pdu, &mut out), ConnectionFlow::Ends);
        assert_eq!(out[0].word(36) >> 16, status);
        assert_eq!(connection.receive(Pdu::new(opcode::NOP_OUT), &mut out), ConnectionFlow::Ends);
    }
}

/// A discovery session, and its list of all targets.
fn discovered(connection: &mut Connection) -> Vec<Pdu> {
    let mut out = Vec::new();
    let keys = [("InitiatorName", "iqn.2026-01.org.ssdyno:x"), ("SessionType", "Discovery")];
    assert_eq!(connection.receive(login(1, 0, &keys), &mut out), ConnectionFlow::Goes);
    let mut ask = Pdu::new(opcode::TEXT);
    ask.header[1] = 0x80;
    ask.set_word(24, 1);
    ask.data = text(&[("SendTargets", "All")]);
    out.clear();
    assert_eq!(connection.receive(ask, &mut out), ConnectionFlow::Goes);
    out
}

/// Appendix C: an address that the initiator can reach, or none, which means the address of this session.
#[test]
fn discovery_behind_a_translation_gives_what_it_is_told_to() {
    for (portal, expected) in [
        (Portal::Fixed("10.0.2.2:3260".to_owned()), "TargetAddress=10.0.2.2:3260,1\0"),
        (Portal::WhereAsked, ""),
    ] {
        let target = Arc::into_inner(target()).unwrap().with_portal(portal);
        let out = discovered(&mut connection(&Arc::new(target)));
        let said = String::from_utf8(out[0].data.clone()).unwrap();
        assert_eq!(said, format!("TargetName={NAME}\0{expected}"));
    }
}

/// Appendix C: a discovery session learns the target's name, and can do no more.
#[test]
fn discovery_names_the_target() {
    let mut connection = connection(&target());
    let mut out = discovered(&mut connection);
    let said = String::from_utf8(out[0].data.clone()).unwrap();
    assert_eq!(said, format!("TargetName={NAME}\0TargetAddress=192.0.2.1:3260,1\0"));
    let mut command = Pdu::new(opcode::SCSI_COMMAND);
    command.set_word(24, 2);
    assert_eq!(connection.receive(command, &mut out), ConnectionFlow::Goes);
    assert_eq!((out[1].opcode(), out[1].header[2]), (opcode::REJECT, 0x04));
}

/// Clauses 11.7 and 11.8: data in bursts in both directions, and what was written is read.
#[test]
fn data_go_and_come_back() {
    let keys =
        [("MaxBurstLength", "4096"), ("MaxRecvDataSegmentLength", "1536"), ("InitialR2T", "Yes")];
    let mut initiator = Initiator::new(&target(), 1, &keys);
    let data: Vec<u8> = (0..10_240_u32).map(|i| (i / 3) as u8).collect();
    let written = initiator.scsi(&ten(0x2a, 5, 20), 0, &data);
    assert_eq!((written.status, written.residual, written.bursts), (0, 0, 3));
    let read = initiator.scsi(&ten(0x28, 5, 20), 10_240, &[]);
    assert_eq!((read.status, read.residual), (0, 0));
    assert!(read.data == data);
}

/// Clause 4.2.5.3: residuals in all directions.
#[test]
fn residuals_are_told() {
    let mut initiator = Initiator::new(&target(), 1, &[]);
    let over = initiator.scsi(&ten(0x28, 0, 2), 600, &[]);
    assert_eq!((over.status, over.residual, over.data.len()), (0, 424, 600));
    let under = initiator.scsi(&ten(0x28, 0, 1), 2000, &[]);
    assert_eq!((under.status, under.residual, under.data.len()), (0, -1488, 512));
    let long = initiator.scsi(&ten(0x2a, 0, 1), 0, &[7; 1024]);
    assert_eq!((long.status, long.residual), (0, -512));
    let short = initiator.scsi(&ten(0x2a, 2, 2), 0, &[8; 512]);
    assert_eq!((short.status, short.residual), (0, 512));
    let read = initiator.scsi(&ten(0x28, 0, 4), 2048, &[]);
    assert_eq!(read.data, [[7; 512], [0; 512], [8; 512], [0; 512]].concat());
    let refused = initiator.scsi(&ten(0x28, 0, 1).map(|b| b | 4), 512, &[]);
    assert_eq!((refused.status, refused.residual), (2, -512), "nothing came");
}

/// Clause 4.2.5.2: unsolicited data in the command and after it.
#[test]
fn unsolicited_data_are_taken_where_agreed() {
    let keys = [("InitialR2T", "No"), ("FirstBurstLength", "1024")];
    let mut initiator = Initiator::new(&target(), 1, &keys);
    let command = initiator.command(&ten(0x2a, 0, 4), 0x20, 2048, &[1; 500]);
    assert_eq!(initiator.send(command.clone()), []);
    let mut out = initiator.send(data_out(&command, 0, 500, &[2; 524], true));
    assert_eq!((out[0].opcode(), out[0].word(40), out[0].word(44)), (0x31, 1024, 1024));
    out = initiator.send(data_out(&out[0], 0, 1024, &[3; 1024], true));
    assert_eq!((out[0].opcode(), out[0].header[3]), (opcode::SCSI_RESPONSE, 0));
    let read = initiator.scsi(&ten(0x28, 0, 4), 2048, &[]).data;
    assert_eq!(read, [&[1; 500][..], &[2; 524], &[3; 1024]].concat());
}

#[test]
fn unsolicited_data_are_refused_where_not_agreed() {
    let keys = [("InitialR2T", "Yes"), ("ImmediateData", "No")];
    let mut initiator = Initiator::new(&target(), 1, &keys);
    for (flags, data) in [(0x20, &[][..]), (WRITE, &[1; 512][..])] {
        let command = initiator.command(&ten(0x2a, 0, 1), flags, 512, data);
        let out = initiator.send(command.clone());
        let ended = initiator.finish(out, &[]);
        assert_eq!((ended.status, ended.sense), (2, Some((0x0b, 0x0c0c))));
        // What follows all the same is thrown away.
        assert_eq!(initiator.send(data_out(&command, 0, 0, &[1; 512], true)), []);
    }
    assert_eq!(initiator.scsi(&ten(0x28, 0, 1), 512, &[]).data, [0; 512]);
}

/// Clause 4.2.2.1: commands in the order of CmdSN; what is outside the window is not there.
#[test]
fn commands_are_done_in_their_order() {
    let mut initiator = Initiator::new(&target(), 1, &[]);
    let first = initiator.command(&ten(0x2a, 0, 1), WRITE, 512, &[1; 512]);
    let second = initiator.command(&ten(0x2a, 0, 1), WRITE, 512, &[2; 512]);
    assert_eq!(initiator.send(second.clone()), []);
    assert_eq!(initiator.send(second), [], "twice is once");
    let out = initiator.send(first.clone());
    assert_eq!(out.len(), 2);
    assert_eq!(initiator.send(first), [], "done already");
    let mut far = initiator.command(&[0; 6], 0x80, 0, &[]);
    far.set_word(24, far.word(24) + 500);
    assert_eq!(initiator.send(far), []);
    initiator.command -= 1;
    assert_eq!(initiator.scsi(&ten(0x28, 0, 1), 512, &[]).data, [2; 512]);
}

/// Clause 11.5: what is aborted is not done and not answered.
#[test]
fn aborted_writes_do_nothing() {
    let target = target();
    let mut initiator = Initiator::new(&target, 1, &[]);
    let mut other = Initiator::new(&target, 2, &[]);
    for function in [1, 2, 5, 6] {
        let command = initiator.command(&ten(0x2a, 0, 1), WRITE, 512, &[]);
        let ready = initiator.send(command).remove(0);
        assert_eq!(ready.opcode(), opcode::READY_TO_TRANSFER);
        assert_eq!(initiator.manage(function, ready.task_tag()), 0);
        assert_eq!(initiator.send(data_out(&ready, 0, 0, &[9; 512], true)), []);
    }
    // A reset by somebody else, too.
    let _heard = initiator.scsi(&[0; 6], 0, &[]);
    let command = initiator.command(&ten(0x2a, 0, 1), WRITE, 512, &[]);
    let ready = initiator.send(command).remove(0);
    assert_eq!(other.manage(5, NO_TAG), 0);
    assert_eq!(initiator.send(data_out(&ready, 0, 0, &[9; 512], true)), []);
    let reset = initiator.scsi(&ten(0x28, 0, 1), 512, &[]);
    assert_eq!((reset.status, reset.sense), (2, Some((0x06, 0x2903))));
    assert_eq!(initiator.scsi(&ten(0x28, 0, 1), 512, &[]).data, [0; 512]);
    assert_eq!(initiator.manage(1, 12345), 1, "no such task");
    assert_eq!(initiator.manage(8, 12345), 4, "no reassignment");
    assert_eq!(initiator.manage(3, 12345), 5, "no auto contingent allegiance");
}

/// Clause 6.3.5: a port that logs in again ends its old session; clause 11.5.1: so does a cold
/// reset with all.
#[test]
fn sessions_are_replaced_and_reset() {
    let target = target();
    let mut old = Initiator::new(&target, 1, &[]);
    let other = Initiator::new(&target, 2, &[]);
    assert_eq!(target.sessions(), 2);
    let mut new = Initiator::new(&target, 1, &[]);
    assert_eq!(target.sessions(), 2);
    let mut out = Vec::new();
    let late = old.command(&[0; 6], 0x80, 0, &[]);
    assert_eq!(old.connection.receive(late, &mut out), ConnectionFlow::Ends);
    assert_eq!(new.manage(7, 0), 0);
    assert_eq!(target.sessions(), 0);
    drop((old, other, new));
    // It heard of the reset when it logged in; the loss of its nexus is next.
    let mut back = Initiator::new(&target, 1, &[]);
    assert_eq!(back.scsi(&[0; 6], 0, &[]).sense, Some((0x06, 0x2907)));
    assert_eq!(back.scsi(&[0; 6], 0, &[]).status, 0);
}

/// SBC-3, 5.3: MODE SELECT chooses the block size, FORMAT UNIT brings it, and initiators hear of it.
#[test]
fn a_format_changes_the_blocks() {
    let target = target();
    let mut initiator = Initiator::new(&target, 1, &[]);
    let mut other = Initiator::new(&target, 2, &[]);
    let capacity = |initiator: &mut Initiator| {
        let data = initiator.scsi(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], 8, &[]).data;
        let word = |at: usize| u32::from_be_bytes(data[at..at + 4].try_into().unwrap());
        (word(0), word(4))
    };
    let (last, bytes) = capacity(&mut initiator);
    assert_eq!(bytes, 512);
    assert_eq!(initiator.scsi(&ten(0x2a, 0, 1), 0, &[7; 512]).status, 0);
    let list = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0x10, 0];
    assert_eq!(initiator.scsi(&[0x15, 0x10, 0, 0, 12, 0], 0, &list).status, 0);
    assert_eq!(initiator.scsi(&[0x04, 0, 0, 0, 0, 0], 0, &[]).status, 0);
    // The others hear of the new capacity; who formatted knows.
    assert_eq!(other.scsi(&[0; 6], 0, &[]).sense, Some((0x06, 0x2a09)));
    assert_eq!(initiator.scsi(&[0; 6], 0, &[]).sense, None);
    assert_eq!(capacity(&mut initiator), ((last + 1) / 8 - 1, 4096));
    let read = initiator.scsi(&ten(0x28, 0, 1), 4096, &[]);
    assert_eq!((read.status, read.data), (0, vec![0; 4096]), "the data are gone");
    assert_eq!(initiator.scsi(&ten(0x2a, 1, 2), 0, &[9; 8192]).status, 0);
    assert_eq!(other.scsi(&ten(0x28, 2, 1), 4096, &[]).data, [9; 4096]);
}

/// SBC-3, 5.25: a stopped unit does nothing until it is started.
#[test]
fn a_stopped_unit_is_started_again() {
    let mut initiator = Initiator::new(&target(), 1, &[]);
    assert_eq!(initiator.scsi(&[0x1b, 0, 0, 0, 0, 0], 0, &[]).status, 0);
    assert_eq!(initiator.scsi(&ten(0x28, 0, 1), 512, &[]).sense, Some((0x02, 0x0402)));
    assert_eq!(initiator.scsi(&[0x1b, 0, 0, 0, 1, 0], 0, &[]).status, 0);
    assert_eq!(initiator.scsi(&ten(0x28, 0, 1), 512, &[]).status, 0);
}

/// SPC-4, 6.6.1: INQUIRY of a LUN that is not there; SAM-5, 4.7: nothing else.
#[test]
fn absent_units_are_told() {
    let mut initiator = Initiator::new(&target(), 1, &[]);
    let mut at = |lun: u8, cdb: &[u8], expected| {
        let mut pdu = initiator.command(cdb, 0x80 | 0x40, expected, &[]);
        pdu.header[9] = lun;
        let out = initiator.send(pdu);
        initiator.finish(out, &[])
    };
    let inquiry = [0x12, 0, 0, 0, 36, 0];
    assert_eq!(at(0, &inquiry, 36).data[0], 0);
    let absent = at(7, &inquiry, 36);
    assert_eq!((absent.status, absent.data[0]), (0, 0x7f));
    let luns = at(7, &[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0], 16).data;
    assert_eq!(luns, [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(at(7, &[0; 6], 0).sense, Some((0x05, 0x2500)));
    let extended = Pdu {
        additional: vec![0, 5, 1, 0, 0, 0, 0, 0],
        ..initiator.command(&[0; 6], 0x80, 0, &[])
    };
    let out = initiator.send(extended);
    assert_eq!(initiator.finish(out, &[]).sense, Some((0x05, 0x0e03)));
}

/// Clause 11.17: what is not a request is rejected, with its header.
#[test]
fn nonsense_is_rejected() {
    let mut initiator = Initiator::new(&target(), 1, &[]);
    for (code, reason) in [(opcode::SNACK, 3), (0x1c | 0x40, 5), (opcode::LOGIN | 0x40, 4)] {
        let mut pdu = Pdu::new(code);
        pdu.set_word(16, 77);
        let out = initiator.send(pdu.clone());
        assert_eq!((out[0].opcode(), out[0].header[2]), (opcode::REJECT, reason));
        assert_eq!(out[0].data, pdu.header);
    }
    let mut ping = Pdu::new(opcode::NOP_OUT | 0x40);
    ping.set_word(16, 78);
    ping.data = vec![5; 9];
    let out = initiator.send(ping);
    assert_eq!((out[0].opcode(), out[0].task_tag(), &out[0].data[..]), (0x20, 78, &[5; 9][..]));
}

/// Over a socket, with digests; a damaged header ends the connection, and nothing else.
#[test]
fn sockets_carry_digests() {
    let server = device::serve("");
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let mut bytes = Vec::new();
    let names = [("InitiatorName", "iqn.2026-01.org.ssdyno:x"), ("TargetName", NAME)];
    let digests = [("HeaderDigest", "CRC32C"), ("DataDigest", "CRC32C")];
    let pdu = login(1, 1, &[names, digests].concat());
    let mut framing = connection(server.target()).framing();
    pdu.write(framing, &mut bytes);
    stream.write_all(&bytes).unwrap();
    let answer = receive(&mut stream, framing);
    assert_eq!((answer.header[1], answer.word(36)), (0x87, 0));
    (framing.header_digest, framing.data_digest) = (true, true);
    let mut ping = Pdu::new(opcode::NOP_OUT | 0x40);
    ping.data = vec![5; 9];
    bytes.clear();
    ping.write(framing, &mut bytes);
    stream.write_all(&bytes).unwrap();
    assert_eq!(receive(&mut stream, framing).data, [5; 9]);
    // Flip a bit of the data: rejected; of the header: the end.
    bytes[52] ^= 1;
    stream.write_all(&bytes).unwrap();
    let rejected = receive(&mut stream, framing);
    assert_eq!((rejected.opcode(), rejected.header[2]), (opcode::REJECT, 0x02));
    bytes[20] ^= 1;
    stream.write_all(&bytes).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    let again = TcpStream::connect(server.address()).unwrap();
    drop(server);
    drop(again);
}

fn receive(stream: &mut TcpStream, framing: ssdyno_iscsi::Framing) -> Pdu {
    let mut header = [0; 48];
    stream.read_exact(&mut header).unwrap();
    let mut rest = vec![0; Pdu::rest_bytes(&header, framing).unwrap()];
    stream.read_exact(&mut rest).unwrap();
    Pdu::parse(&header, &rest, framing).unwrap()
}
