//! Any bytes as a trace: format and compression told from the content.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../play.rs"]
mod play;

fuzz_target!(|data: &[u8]| play::trace(data, None));
