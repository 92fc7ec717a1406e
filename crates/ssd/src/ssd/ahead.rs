//! Prefetches the table entries of coming requests from memory.

use std::ops::Range;

use ssdyno_block::{Op, Request};

use super::flash_side::FlashSide;
use super::pages::Pages;

/// Pages of a request that are looked up ahead: more than a processor fetches at a time are not use.
const PAGES_FETCHED: u32 = 8;

impl Pages {
    /// The first of the pages that `request` touches, for fetching ahead; none if it is not inside
    /// the device.
    fn fetched(&self, request: &Request) -> Range<u32> {
        if request.end_bytes().is_none_or(|end| end > self.capacity_bytes) {
            return 0..0;
        }
        let Range { start, end } = self.touched(request.offset_bytes, request.length_bytes);
        start..end.min(start + PAGES_FETCHED)
    }
}

impl FlashSide {
    /// See [`Device::expect`](ssdyno_device::Device::expect).
    #[inline(always)]
    pub(super) fn look_ahead(&self, pages: &Pages, upcoming: &[Request]) {
        let (near, new) = upcoming.split_at(upcoming.len() / 2);
        for request in new {
            for page in pages.fetched(request) {
                self.ftl.prefetch(page);
            }
        }
        // For the others the table has arrived: now what it leads to.
        for request in near {
            if request.op != Op::Write && !self.array.is_worth_a_prefetch() {
                continue;
            }
            for page in pages.fetched(request) {
                let Some(physical) = self.ftl.locate(page) else { continue };
                self.array.prefetch(physical);
                if request.op == Op::Write {
                    self.ftl.prefetch_place(physical);
                }
            }
        }
    }
}
