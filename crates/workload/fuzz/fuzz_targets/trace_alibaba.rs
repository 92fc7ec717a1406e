//! Any bytes as a trace: Alibaba.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdyno_workload::Format;

#[path = "../play.rs"]
mod play;

fuzz_target!(|data: &[u8]| play::trace(data, Some(Format::Alibaba)));
