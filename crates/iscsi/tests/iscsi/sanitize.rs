//! SANITIZE over the whole path: translation, driver, controller, flash, and the clock between commands.

use ssdyno_block::Time;
use ssdyno_iscsi::{LogicalUnits, TaskResponse};
use ssdyno_scsi::{Nexus, cdb};

use crate::device::{self, Blocks};

/// NOT READY, SANITIZE IN PROGRESS.
const IN_PROGRESS: Option<(u8, u16)> = Some((2, 0x041b));

fn execute(units: &mut dyn LogicalUnits, cdb: &[u8], data: &[u8]) -> (TaskResponse, Vec<u8>) {
    let (answer, read) = device::execute(units, Nexus::LOCAL, cdb, data);
    match answer.sense.summary() {
        // Power on, or a reset.
        Some((6, _)) => device::execute(units, Nexus::LOCAL, cdb, data),
        _ => (answer, read),
    }
}

fn sense(answer: &TaskResponse) -> Option<(u8, u16)> {
    answer.sense.summary().map(|(key, additional)| (key, additional.0))
}

/// The small device of `controller-nvme/tests/nvme/sanitize.rs`: 0.224 s for an erase of everything, 2.149 s for a pass, and
/// the logical pages once more, which are two thirds of all.
#[test]
fn it_ends_with_the_operation_and_nothing_is_left() {
    for (blocks, bytes) in [(Blocks::Small, 512), (Blocks::Large, 4096)] {
        let mut units = device::units(blocks.keys());
        let pattern = vec![0x5a; bytes];
        let list = [&[1, 0, (bytes >> 8) as u8, bytes as u8], &pattern[..]].concat();
        let length = (list.len() as u16).to_be_bytes();
        let overwrite = [0x48, 0x01, 0, 0, 0, 0, 0, length[0], length[1], 0];
        for (cdb, data, left, least_ms, most_ms) in [
            (&[0x48, 0x02, 0, 0, 0, 0, 0, 0, 0, 0], &[][..], 0, 224, 240),
            (&[0x48, 0x03, 0, 0, 0, 0, 0, 0, 0, 0], &[][..], 0, 100, 115),
            (&overwrite, &list[..], 0x5a, 3_900, 4_200),
        ] {
            let write = cdb::write16(7, 1, false);
            let (answer, _) = execute(&mut units, write.as_bytes(), &vec![1; bytes]);
            assert_eq!(sense(&answer), None);
            let before = units.now();
            let (answer, _) = execute(&mut units, cdb, data);
            assert_eq!((answer.status, sense(&answer)), (0, None));
            let took = units.now() - before;
            let expected = Time::from_ms(least_ms)..Time::from_ms(most_ms);
            assert!(expected.contains(&took), "{blocks} {cdb:x?}: {took}");
            for lba in [7, 0] {
                let (_, read) = execute(&mut units, cdb::read16(lba, 1).as_bytes(), &[]);
                assert_eq!(read, vec![left; bytes], "{blocks} {cdb:x?}");
            }
        }
    }
}

/// SBC-4, 4.11: neither resets nor the loss of the nexus end it. It takes the controller 224 ms of its time,
/// whatever is asked meanwhile.
#[test]
fn it_goes_on_over_resets_and_ends_by_itself() {
    let mut units = device::units("");
    let (answer, _) = execute(&mut units, &[0x48, 0x80 | 0x02, 0, 0, 0, 0, 0, 0, 0, 0], &[]);
    assert_eq!((answer.status, sense(&answer)), (0, None));
    let began = units.now();
    let ready = [0; 6];
    let resets: [fn(&mut dyn LogicalUnits); 4] = [
        |units| assert!(units.abort_task_set(Nexus::LOCAL, 0)),
        |units| assert!(units.logical_unit_reset(0)),
        |units| units.target_reset(),
        |units| units.nexus_lost(Nexus::LOCAL),
    ];
    for reset in resets {
        units.advance(units.now() + Time::from_ms(40));
        reset(&mut units);
        let (answer, _) = execute(&mut units, &ready, &[]);
        assert_eq!(sense(&answer), IN_PROGRESS);
    }
    let ended = loop {
        let (answer, _) = execute(&mut units, &ready, &[]);
        if sense(&answer) != IN_PROGRESS {
            assert_eq!((answer.status, sense(&answer)), (0, None));
            break units.now() - began;
        }
        units.advance(units.now() + Time::from_ms(1));
    };
    assert!((Time::from_ms(224)..Time::from_ms(240)).contains(&ended), "{ended}");
}
