//! An initiator that says anything: nothing panics, and every task is answered at most once.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use ssdyno_iscsi::{ConnectionFlow, Pdu, ServedClock, opcode};

use crate::device;
use crate::initiator::{Initiator, NO_TAG, connection};

/// What a PDU is made of: operation code, byte 1, tag, words that are often right, CDB, data.
type Made = (u8, u8, u32, [u32; 4], Vec<u8>, usize, bool);

fn made() -> impl Strategy<Value = Made> {
    let codes = prop_oneof![
        4 => Just(opcode::SCSI_COMMAND),
        4 => Just(opcode::DATA_OUT),
        1 => Just(opcode::TASK_MANAGEMENT),
        1 => Just(opcode::TEXT),
        1 => Just(opcode::NOP_OUT),
        1 => any::<u8>().prop_filter("logout ends", |code| code & 0x3f != opcode::LOGOUT),
    ];
    let word = || prop_oneof![3 => 0..4_u32, 1 => Just(NO_TAG), 1 => (0..5_u32).prop_map(|n| n * 512), 1 => any::<u32>()];
    let words = (word(), word(), word(), word()).prop_map(|(a, b, c, d)| [a, b, c, d]);
    let cdb = prop_oneof![
        (0..4_u8, 0..4_u8).prop_map(|(lba, blocks)| vec![0x2a, 0, 0, 0, 0, lba, 0, 0, blocks, 0]),
        (0..4_u8, 0..4_u8).prop_map(|(lba, blocks)| vec![0x28, 0, 0, 0, 0, lba, 0, 0, blocks, 0]),
        prop::collection::vec(any::<u8>(), 16),
    ];
    (codes, any::<u8>(), 0..4_u32, words, cdb, 0..1100_usize, any::<bool>())
}

fn pdu((code, flags, tag, words, cdb, data, immediate): Made, command: u32) -> Pdu {
    let mut pdu = Pdu::new(code | if immediate { 0x40 } else { 0 });
    pdu.header[1] = flags;
    pdu.header[32..32 + cdb.len().min(16)].copy_from_slice(&cdb[..cdb.len().min(16)]);
    if pdu.opcode() == opcode::DATA_OUT {
        pdu.set_word(36, words[1] % 4);
        pdu.set_word(40, words[2]);
    }
    // Cold resets end all sessions; that is another test.
    if pdu.opcode() == opcode::TASK_MANAGEMENT && flags & 0x7f == 7 {
        pdu.header[1] = 0x81;
    }
    pdu.set_word(16, tag);
    pdu.set_word(20, words[0]);
    pdu.set_word(24, if words[3] == 1 { words[3] } else { command });
    pdu.data = vec![tag as u8; data];
    pdu
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn anything_may_be_said(all in prop::collection::vec(made(), 1..60), unsolicited: bool) {
        let target = Arc::new(device::target("", ServedClock::Device));
        let keys = [("InitialR2T", if unsolicited { "No" } else { "Yes" }), ("FirstBurstLength", "1024")];
        let mut initiator = Initiator::new(&target, 1, &keys);
        // Commands that were taken, less those that were answered, by tag.
        let mut open: BTreeMap<u32, i32> = BTreeMap::new();
        let mut expected = initiator.command;
        let mut number = None;
        for made in all {
            let pdu = pdu(made, expected);
            if pdu.opcode() == opcode::SCSI_COMMAND {
                *open.entry(pdu.task_tag()).or_default() += 1;
            }
            let mut out = Vec::new();
            let flow = initiator.connection.receive(pdu, &mut out);
            for answer in out {
                expected = answer.word(28);
                prop_assert!(answer.word(32).wrapping_sub(expected) < 64, "the window");
                let ends = match answer.opcode() {
                    opcode::DATA_IN => answer.header[1] & 1 != 0,
                    opcode::SCSI_RESPONSE => true,
                    _ => false,
                };
                if ends {
                    let left = open.entry(answer.task_tag()).or_default();
                    *left -= 1;
                    prop_assert!(*left >= 0, "answered twice");
                }
                let counts = answer.opcode() != opcode::READY_TO_TRANSFER
                    && (answer.opcode() != opcode::DATA_IN || ends);
                if counts {
                    let before = number.replace(answer.word(24));
                    prop_assert!(before.is_none_or(|b: u32| b.wrapping_add(1) == answer.word(24)));
                }
            }
            if flow == ConnectionFlow::Ends {
                break;
            }
        }
        // It still serves.
        drop(initiator);
        let mut next = Initiator::new(&target, 9, &[]);
        prop_assert_eq!(next.scsi(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0], 512, &[]).data.len(), 512);
    }

    #[test]
    fn any_login_is_answered(
        pdus in prop::collection::vec((any::<u8>(), any::<u8>(), "[ -~\0]{0,120}"), 1..6),
    ) {
        let target = Arc::new(device::target("", ServedClock::Device));
        let mut connection = connection(&target);
        for (code, flags, text) in pdus {
            let mut pdu = Pdu::new(if code < 200 { opcode::LOGIN | 0x40 } else { code });
            pdu.header[1] = flags;
            pdu.data = text.into_bytes();
            let mut out = Vec::new();
            let logging_in = connection.is_logging_in();
            let flow = connection.receive(pdu, &mut out);
            prop_assert_eq!(out.len(), usize::from(logging_in));
            if flow == ConnectionFlow::Ends {
                break;
            }
        }
    }
}
