//! Injected faults of a drive that is served: its table `[faults]` holds behind the target as in a run.

use ssdyno_block::Time;
use ssdyno_controller_nvme::NvmeController;
use ssdyno_iscsi::{LogicalUnits, NvmeUnits};
use ssdyno_pci::FaultyDevice;
use ssdyno_scsi::{Nexus, cdb};
use ssdyno_ssd::Ssd;

use crate::device;

/// UNRECOVERED READ ERROR, MEDIUM ERROR.
const MEDIUM_ERROR: Option<(u8, u16)> = Some((3, 0x1100));

/// The drive after its first command, which is told that the power is on.
fn drive(faults: &str) -> NvmeUnits<NvmeController<Ssd>> {
    let mut units = device::units(&format!("\n[faults]\n{faults}"));
    device::execute(&mut units, Nexus::LOCAL, &[0; 6], &[]);
    units
}

/// A read: how it ended, and what it took.
fn read(units: &mut NvmeUnits<NvmeController<Ssd>>) -> (Option<(u8, u16)>, Time) {
    let before = units.now();
    let (answer, _) = device::execute(units, Nexus::LOCAL, cdb::read16(7, 1).as_bytes(), &[]);
    let sense = answer.sense.summary().map(|(key, additional)| (key, additional.0));
    (sense, units.now() - before)
}

#[test]
fn errors_and_delays_reach_the_initiator() {
    let (none, took) = read(&mut drive(""));
    assert_eq!(none, None);
    assert_eq!(read(&mut drive("error = 1.0")), (MEDIUM_ERROR, took));
    let late = took + Time::from_ms(3);
    assert_eq!(read(&mut drive("delay = 1.0\ndelay_by = \"3ms\"")), (None, late));
}

/// The driver's timeout is 30 s; then it aborts, and in the end resets the controller.
#[test]
fn a_drive_that_hangs_is_reset_and_goes_on() {
    let mut units = drive("hang_at = \"1ms\"");
    assert_eq!(read(&mut units).0, None);
    units.advance(Time::from_ms(2));
    let (ended, took) = read(&mut units);
    assert!(ended.is_some() && took >= Time::from_s(30), "{ended:?} after {took}");
    assert_eq!(read(&mut units).0, None);
}

#[test]
fn a_drive_that_is_removed_fails_every_command() {
    let mut units = drive("remove_at = \"1ms\"");
    assert_eq!(read(&mut units).0, None);
    units.advance(Time::from_ms(2));
    for _ in 0..3 {
        assert!(read(&mut units).0.is_some());
    }
    let injected = units.pci().device().fault_plan().unwrap().injected;
    assert!(injected.removed_at.is_some() && injected.hung_at.is_none());
}
