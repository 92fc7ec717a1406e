//! Asynchronous events (base 2.0c, clause 5.2).

use ssdyno_block::Status as DeviceStatus;
use ssdyno_spec::nvme::{
    AsynchronousEvent, NvmeStatus, SmartLog, SubmissionEntry, admin, feature, page,
};

use crate::admin::{log, structure};
use crate::support::{FixedTime, Host, entry, host, set_feature, write};

#[test]
fn asynchronous_events() {
    let mut host = host("");
    let request = entry(admin::ASYNCHRONOUS_EVENT_REQUEST, 0, [0; 3]);
    for _ in 0..5 {
        host.push(0, request);
    }
    host.ring(0);
    host.settle();
    let limit = NvmeStatus::ASYNCHRONOUS_EVENT_LIMIT_EXCEEDED;
    let ends: Vec<NvmeStatus> = host.reap(0).iter().map(|c| c.status().kind()).collect();
    assert_eq!(ends, [limit], "four may wait");
    assert_eq!(host.controller.commands_in_flight(), 0, "they are nobody's load");
    for _ in 0..3 {
        host.write(0x2000, 1);
    }
    host.settle();
    let event =
        |c: &ssdyno_spec::nvme::CompletionEntry| AsynchronousEvent::from_dword(c.dword0.get());
    let events: Vec<_> = host.reap(0).iter().map(event).collect();
    assert_eq!(events, [AsynchronousEvent::INVALID_DOORBELL], "masked after the first");
    let retained = SubmissionEntry {
        dword10: (u32::from(page::ERROR) | 1 << 15 | 15 << 16).into(),
        ..log(page::ERROR, 64)
    };
    host.admin(retained);
    assert_eq!(host.reap(0), [], "RAE keeps the mask");
    host.push(0, log(page::ERROR, 64));
    host.ring(0);
    host.settle();
    assert_eq!(host.reap(0).iter().map(event).filter(|e| e.page == 1).count(), 1, "the next one");
}

/// Base 2.0c, figure 207: a worn-out device says so, if it is asked to.
#[test]
fn a_read_only_medium_is_an_event() {
    let mut host = host("");
    host.create_pair(1, 8);
    host.admin(set_feature(feature::ASYNCHRONOUS_EVENTS, u32::from(SmartLog::READ_ONLY)));
    host.push(0, entry(admin::ASYNCHRONOUS_EVENT_REQUEST, 0, [0; 3]));
    host.ring(0);
    host.controller.device_mut().status = Some(DeviceStatus::ReadOnly);
    for _ in 0..2 {
        assert_eq!(host.command(1, write(0)).status().kind(), NvmeStatus::WRITE_PROTECTED);
    }
    let events: Vec<_> = host.reap(0).iter().map(|c| c.dword0.get()).collect();
    assert_eq!(events, [AsynchronousEvent::RELIABILITY.dword()]);
}

/// Base 2.0c, clause 5.27.1.3 and figure 207: the temperature (313 K) against thresholds.
#[test]
fn a_temperature_beyond_a_threshold_is_an_event() {
    let mut host = host("");
    let ask = entry(admin::ASYNCHRONOUS_EVENT_REQUEST, 0, [0; 3]);
    let threshold = |value| set_feature(feature::TEMPERATURE_THRESHOLD, value);
    let warned = |host: &mut Host<FixedTime>| {
        structure::<SmartLog>(host, log(page::SMART, 512)).critical_warning & SmartLog::TEMPERATURE
    };
    host.push(0, ask);
    host.admin(threshold(314));
    assert_eq!(warned(&mut host), 0);
    host.admin(threshold(313));
    assert_eq!(warned(&mut host), SmartLog::TEMPERATURE);
    assert_eq!(host.reap(0), [], "nobody wants to know");
    host.push(0, set_feature(feature::ASYNCHRONOUS_EVENTS, u32::from(SmartLog::TEMPERATURE)));
    host.ring(0);
    host.settle();
    let dwords: Vec<u32> = host.reap(0).iter().map(|c| c.dword0.get()).collect();
    assert!(dwords.contains(&AsynchronousEvent::TEMPERATURE.dword()), "{dwords:?}");
    // Under: bits 21:20.
    host.admin(threshold(400));
    assert_eq!(warned(&mut host), 0);
    host.admin(threshold(1 << 20 | 313));
    assert_eq!(warned(&mut host), SmartLog::TEMPERATURE);
}
