//! Any text as a workload file: read and played, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdyno_workload::{WorkloadConfig, TargetFacts};

#[path = "../play.rs"]
mod play;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(config) = WorkloadConfig::from_toml(text) else { return };
    for capacity_bytes in [512, 1 << 20, 1 << 44] {
        let device = TargetFacts { capacity_bytes, sector_bytes: 512 };
        if let Ok(mut workload) = config.build(&device, 1) {
            play::some(workload.as_mut(), &device);
        }
    }
});
