//! Messages of a session, without sockets.

use std::io::IoSlice;

use proptest::prelude::*;

use super::*;

fn tasks(parameters: Parameters, window: u32) -> Tasks {
    let shape = Shape { block_bytes: 512, long: true };
    let unit = Unit { lun: [0; 8], shape, most_bytes: 1 << 30, unmap_bytes: 1 << 30 };
    let numbers = Numbers { command: 1, command_most: window, status: 5 };
    let mut tasks = Tasks::new(unit, parameters, numbers);
    tasks.prepare(8, false);
    tasks
}

/// All that is to be sent, as bytes.
fn sent(out: &mut Outbox) -> Vec<u8> {
    let data: Vec<u8> = (0..1 << 20).map(|i| (i / 512) as u8).collect();
    let mut bytes = Vec::new();
    while !out.is_empty() {
        let mut parts = [IoSlice::new(&[]); 5];
        let count = out.parts(&mut parts, |_, range| &data[range]);
        let sent: Vec<u8> = parts[..count].iter().flat_map(|part| part.to_vec()).collect();
        out.sent(sent.len());
        bytes.extend(sent);
    }
    bytes
}

/// The messages in `bytes`: header, and data.
fn messages(mut bytes: &[u8]) -> Vec<(Header, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some(head) = bytes.first_chunk::<BHS_BYTES>() {
        let header = Header(*head);
        let from = header.head_bytes();
        found.push((header, bytes[from..from + header.data_bytes()].to_vec()));
        bytes = &bytes[header.whole_bytes()..];
    }
    assert!(bytes.is_empty());
    found
}

fn answer(kind: u8, tag: u32, most: u32) -> Header {
    let mut header = Header::new(kind);
    header.0[1] = FINAL;
    header.set(16, tag);
    header.set(28, 1);
    header.set(32, most);
    header
}

proptest! {
    /// For any negotiated parameters, unsolicited data stays within its limit, and together with the requested data all
    /// of the write is sent once, in segments that the target accepts.
    #[test]
    fn writes_go_whole_and_as_agreed(
        segment in 128_usize..5000,
        first in 128_usize..20_000,
        burst in 512_usize..40_000,
        initial_r2t: bool,
        immediate: bool,
        blocks in 1_u32..200,
    ) {
        let parameters = Parameters {
            segment_bytes: segment * 4,
            first_burst_bytes: (first * 4).min(burst & !3),
            burst_bytes: burst,
            initial_r2t,
            immediate,
        };
        let (mut tasks, mut out) = (tasks(parameters, 10), Outbox::default());
        let length = blocks as usize * 512;
        tasks.encode(3, &Request::write(0, length as u32), &mut out).unwrap();
        let unasked = messages(&sent(&mut out));
        let tag = unasked[0].0.word(16);
        let mut at = 0;
        let mut take = |messages: &[(Header, Vec<u8>)]| {
            for (header, data) in messages {
                if header.opcode() == opcode::DATA_OUT {
                    assert_eq!(header.word(40) as usize, at);
                }
                assert!(data.len() <= segment * 4);
                let wanted = (at..at + data.len()).map(|i| (i / 512) as u8);
                assert!(wanted.eq(data.iter().copied()));
                at += data.len();
            }
            let last = messages.iter().map(|(header, _)| header.flags() & FINAL != 0);
            let last: Vec<bool> = last.collect();
            assert_eq!(last.iter().filter(|last| **last).count(), 1);
            assert_eq!(last.last(), Some(&true));
            at
        };
        let mut at = take(&unasked);
        prop_assert!(at <= parameters.first_burst_bytes);
        prop_assert!(immediate || unasked[0].1.is_empty());
        prop_assert!(!initial_r2t || unasked.len() == 1);
        while at < length {
            let mut r2t = answer(opcode::READY_TO_TRANSFER, tag, 10);
            let bytes = burst.min(length - at);
            r2t.set(20, 77);
            r2t.set(40, at as u32);
            r2t.set(44, bytes as u32);
            let piece = tasks.decode(&r2t.0, &mut out).unwrap().unwrap();
            prop_assert_eq!((piece.header_bytes, piece.ended), (48, None));
            let asked = messages(&sent(&mut out));
            prop_assert!(asked.iter().all(|(header, _)| header.word(20) == 77));
            at = take(&asked);
        }
        let end = answer(opcode::SCSI_RESPONSE, tag, 10);
        let piece = tasks.decode(&end.0, &mut out).unwrap().unwrap();
        prop_assert_eq!(piece.ended, Some((3, length as Outcome)));
        prop_assert!(tasks.decode(&end.0, &mut out).is_err(), "twice");
    }

    /// Any bytes, also such as begin like an answer, are an answer or an error; what they ask for is in bounds.
    #[test]
    fn no_bytes_do_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in prop::sample::select(vec![0x20_u8, 0x21, 0x25, 0x31, 0x32, 0x3f, 0xff]),
        is_known: bool,
    ) {
        let (mut tasks, mut out) = (tasks(Parameters::default(), 10), Outbox::default());
        tasks.encode(0, &Request::write(0, 1 << 20), &mut out).unwrap();
        tasks.encode(1, &Request::read(0, 1 << 20), &mut out).unwrap();
        let tag = messages(&sent(&mut out))[usize::from(kind == 0x25)].0.word(16);
        let mut bytes = bytes;
        if bytes.len() >= 48 && kind != 0xff {
            bytes[0] = kind;
            (bytes[4], bytes[5], bytes[6]) = (0, 0, 0);
            if is_known {
                bytes[16..20].copy_from_slice(&tag.to_be_bytes());
            }
        }
        if let Ok(Some(piece)) = tasks.decode(&bytes, &mut out) {
            let (slot, range) = piece.data.unwrap_or((1, 0..0));
            prop_assert!(slot == 1 && range.end <= 1 << 20);
        }
        sent(&mut out);
    }
}

#[test]
fn commands_wait_for_the_window_and_attentions_are_tried_again() {
    let (mut tasks, mut out) = (tasks(Parameters::default(), 2), Outbox::default());
    for slot in 0..4 {
        tasks.encode(slot, &Request::read(0, 512), &mut out).unwrap();
    }
    let first = messages(&sent(&mut out));
    assert_eq!(first.len(), 2, "CmdSN 1 and 2");
    assert_eq!([first[0].0.word(24), first[1].0.word(24)], [1, 2]);
    // A unit attention: sent again behind those that wait.
    let mut check = answer(opcode::SCSI_RESPONSE, first[0].0.word(16), 5);
    check.0[3] = 2;
    check.set_data_bytes(20);
    let sense = [0, 18, 0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x29, 0, 0, 0, 0, 0];
    let bytes = [&check.0[..], &sense].concat();
    assert_eq!(tasks.decode(&bytes[..60], &mut out), Ok(None), "not whole");
    assert_eq!(tasks.decode(&bytes, &mut out).unwrap().unwrap().ended, None);
    let next = messages(&sent(&mut out));
    let slots: Vec<u32> = next.iter().map(|(header, _)| header.word(16) & 7).collect();
    assert_eq!(slots, [2, 3, 0]);
    assert!(tasks.remarks()[0].contains("power on or reset"));
    // Data with the status in it, in two messages; a hole is none.
    let tag = next[0].0.word(16);
    let mut data = answer(opcode::DATA_IN, tag, 5);
    data.set_data_bytes(256);
    data.0[1] = 0;
    let piece = tasks.decode(&data.0, &mut out).unwrap().unwrap();
    assert_eq!((piece.data, piece.ended), (Some((2, 0..256)), None));
    (data.0[1], data.0[43]) = (FINAL | STATUS, 0);
    data.set(40, 256);
    let piece = tasks.decode(&data.0, &mut out).unwrap().unwrap();
    assert_eq!((piece.data, piece.ended), (Some((2, 256..512)), Some((2, 512))));
    let mut hole = answer(opcode::DATA_IN, next[1].0.word(16), 5);
    hole.set_data_bytes(4);
    hole.set(40, 8);
    assert!(tasks.decode(&hole.0, &mut out).is_err());
}

/// A response with `status` and nothing else.
fn refusal(tag: u32, status: u8) -> Header {
    let mut refused = answer(opcode::SCSI_RESPONSE, tag, 50);
    refused.0[3] = status;
    refused
}

/// A unit without room for a command has it again later, each time after a longer pause, for a while (SAM-5, 5.3.1).
#[test]
fn commands_without_room_are_sent_again_later() {
    for (status, words) in [(0x28, "task set is full"), (0x08, "is busy")] {
        let (mut tasks, mut out) = (tasks(Parameters::default(), 50), Outbox::default());
        tasks.encode(2, &Request::write(0, 512), &mut out).unwrap();
        let tag_of = |out: &mut Outbox| messages(&sent(out))[0].0.word(16);
        let mut tag = tag_of(&mut out);
        let began = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            let piece = tasks.decode(&refusal(tag, status).0, &mut out).unwrap().unwrap();
            assert_eq!(piece.ended, None);
            let (asked, due) = (Instant::now(), tasks.due().unwrap());
            pauses.push(due - asked.min(due));
            tasks.send_again(due - Duration::from_micros(1), &mut out);
            assert!(out.is_empty(), "not before it is due");
            tasks.send_again(due, &mut out);
            let again = messages(&sent(&mut out));
            assert_eq!((again.len(), again[0].1.len()), (1, 512), "with its data");
            assert_eq!(tasks.due(), None);
            tag = again[0].0.word(16);
        }
        assert!(pauses[0] <= PAUSE_FIRST && pauses[11] <= PAUSE_MOST);
        assert!(pauses[11] > PAUSE_MOST / 2 && began.elapsed() < BUSY_MOST, "{pauses:?}");
        // It waited long enough.
        let mut task = tasks.tasks[2].unwrap();
        task.refused = Some((began - BUSY_MOST, PAUSE_MOST));
        tasks.tasks[2] = Some(task);
        let piece = tasks.decode(&refusal(tag, status).0, &mut out).unwrap().unwrap();
        assert_eq!((piece.ended, tasks.due()), (Some((2, -libc::EBUSY)), None));
        let remarks = tasks.remarks();
        assert!(
            remarks.iter().any(|one| one.contains(words) && one.contains("(1 time")),
            "{remarks:?}"
        );
        let again = |one: &&String| one.contains("sent again") && one.contains("(12 times");
        assert_eq!(remarks.iter().filter(again).count(), 1, "{remarks:?}");
    }
}

#[test]
fn pings_are_answered_and_farewells_end_the_connection() {
    let (mut tasks, mut out) = (tasks(Parameters::default(), 2), Outbox::default());
    let mut ping = answer(opcode::NOP_IN, NO_TAG, 2);
    ping.set(20, 9);
    tasks.decode(&ping.0, &mut out).unwrap();
    let (pong, _) = messages(&sent(&mut out))[0];
    assert_eq!((pong.opcode(), pong.word(16), pong.word(20)), (opcode::NOP_OUT, NO_TAG, 9));
    for (code, says) in [(1, "log out"), (2, "drops"), (3, "drops"), (4, "negotiation")] {
        let mut message = answer(opcode::ASYNC_MESSAGE, NO_TAG, 2);
        message.0[36] = code;
        let told = tasks.decode(&message.0, &mut out).unwrap_err();
        assert!(told.contains(says), "{told}");
    }
    tasks.encode(0, &Request::read(0, 512), &mut out).unwrap();
    let command = sent(&mut out);
    let mut reject = answer(opcode::REJECT, NO_TAG, 2);
    reject.0[2] = 5;
    reject.set_data_bytes(48);
    let bytes = [&reject.0[..], &command].concat();
    let piece = tasks.decode(&bytes, &mut out).unwrap().unwrap();
    assert_eq!(piece.ended, Some((0, -libc::EPROTO)));
    assert!(tasks.remarks()[0].contains("command not supported"));
}
