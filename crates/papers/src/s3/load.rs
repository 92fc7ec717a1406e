//! What a load asks for, found by walking through it without a device.

use ssdyno_block::{Op, SECTOR_BYTES, Time};
use ssdyno_workload::{Finished, Workload, WorkloadStep};

/// Sums over a load, for pages of one size striped over packages.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Load {
    pub(super) requests: u64,
    pub(super) reads: u64,
    pub(super) last_arrival: Time,
    pub(super) sectors: u64,
    pub(super) pages_read: u64,
    pub(super) pages_written: u64,
    /// Pages that the busiest package has to read, summed over the requests: how often one page
    /// time passes where nothing ever waits.
    pub(super) rounds_read: u64,
    pub(super) rounds_written: u64,
    /// One past the highest address, in bytes.
    pub(super) end_bytes: u64,
}

impl Load {
    /// Walks through `workload` until it is done.
    pub(super) fn survey(workload: &mut dyn Workload, page_bytes: u32, packages: u32) -> Load {
        let mut load = Load::default();
        let mut now = Time::ZERO;
        loop {
            match workload.next(now) {
                WorkloadStep::Issue { request, intended } => {
                    workload.completed(Finished::of(&request, Time::ZERO), now);
                    load.requests += 1;
                    load.last_arrival = load.last_arrival.max(intended);
                    load.sectors += u64::from(request.length_bytes / SECTOR_BYTES);
                    let end = request.offset_bytes + u64::from(request.length_bytes);
                    load.end_bytes = load.end_bytes.max(end);
                    let page = u64::from(page_bytes);
                    // Unaligned requests touch one page more at each end. This is why 8 KiB pages
                    // cost more than the closed form without it (S3-33).
                    let pages = end.div_ceil(page) - request.offset_bytes / page;
                    // A page stripe of 1 spreads a request over 8 packages (S3-26), so the busiest
                    // package has a ceiling of one eighth of the pages. No queue makes a request
                    // faster than this.
                    let rounds = pages.div_ceil(u64::from(packages));
                    if request.op == Op::Read {
                        load.reads += 1;
                        load.pages_read += pages;
                        load.rounds_read += rounds;
                    } else {
                        load.pages_written += pages;
                        load.rounds_written += rounds;
                    }
                }
                WorkloadStep::NotBefore(at) => now = at,
                // Nothing is ever outstanding here.
                WorkloadStep::Wait | WorkloadStep::Done => return load,
            }
        }
    }
}
