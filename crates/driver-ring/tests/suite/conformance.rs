//! The target suite, over all kinds of blocks, responses and completions.

use crate::common;

use common::{RingTarget, card, driver};
use ssdyno_block::Time;
use ssdyno_block::conformance::check_target;
use ssdyno_driver_ring::{
    BlockPolicy, CompletionPolicy, IdleDispatch, ResponseMode, RingDriverOptions,
};

#[test]
fn passes_the_target_suite() {
    let small = card(&[("capacity = \"1GiB\"", "capacity = \"1MiB\"")]);
    let base = RingDriverOptions::default();
    let interval = Time::from_ns(500);
    let all = [
        base,
        RingDriverOptions { block: BlockPolicy::Static(4), ..base },
        RingDriverOptions {
            response: ResponseMode::Each,
            completion: CompletionPolicy::PerReturn,
            ..base
        },
        RingDriverOptions {
            response: ResponseMode::Subsets,
            subset: 3,
            completion: CompletionPolicy::Napi { budget: 4 },
            idle_dispatch: IdleDispatch::WholeRequest,
            ..base
        },
        RingDriverOptions {
            response: ResponseMode::Each,
            completion: CompletionPolicy::Calibrated { threshold: 5, timeout: Time::from_us(20) },
            prefetch: 8,
            ..base
        },
        RingDriverOptions {
            completion: CompletionPolicy::HybridPolling { interval },
            queue_depth: 5,
            max_block: Some(2),
            ring_size: Some(4),
            ..base
        },
    ];
    for options in all {
        check_target(|| RingTarget::new(driver(&small, options)));
    }
}
