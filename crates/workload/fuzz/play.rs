//! Shared by the targets: plays a while and checks what a workload owes.

use std::io::Cursor;
use std::path::Path;

use ssdyno_block::{Op, Time};
use ssdyno_workload::{
    BeyondEnd, TargetFacts, Finished, Format, ObjectIds, WorkloadStep, TraceOptions, Workload, read_trace,
};

/// Plays up to 2000 steps; every request completes at once.
pub fn some(workload: &mut dyn Workload, device: &TargetFacts) {
    let mut now = Time::ZERO;
    for _ in 0..2000 {
        match workload.next(now) {
            WorkloadStep::Issue { request, intended } => {
                assert!(intended <= now);
                assert!((request.length_bytes == 0) == (request.op == Op::Flush));
                assert!(request.end_bytes().is_some_and(|end| end <= device.capacity_bytes));
                workload.completed(Finished::of(&request, Time::ZERO), now);
            }
            WorkloadStep::NotBefore(time) => {
                assert!(time > now);
                now = time;
            }
            WorkloadStep::Wait => panic!("waits with nothing outstanding"),
            WorkloadStep::Done => {
                assert_eq!(workload.next(now), WorkloadStep::Done);
                workload.error();
                break;
            }
        }
    }
    workload.notes();
}

/// Reads `data` as a trace.
#[allow(dead_code, reason = "each fuzz target uses one of these")]
pub fn trace(data: &[u8], format: Option<Format>) {
    let device = TargetFacts { capacity_bytes: 1 << 30, sector_bytes: 4096 };
    for (beyond_end, object_ids, slot_bytes) in [
        (BeyondEnd::Fail, ObjectIds::Sector, None),
        (BeyondEnd::Wrap, ObjectIds::Hash, None),
        (BeyondEnd::Skip, ObjectIds::Byte, Some(1 << 20)),
    ] {
        let options =
            TraceOptions { format, beyond_end, object_ids, slot_bytes, ..TraceOptions::default() };
        let reader = Box::new(Cursor::new(data.to_vec()));
        if let Ok(mut workload) = read_trace(reader, Path::new("fuzz"), &options, &device) {
            some(workload.as_mut(), &device);
        }
    }
}
