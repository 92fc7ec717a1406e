//! The pattern `random-once`: every block of a range once a pass, in random order.
use crate::common;

use common::{DEVICE, play};
use ssdyno_block::Time;
use ssdyno_workload::WorkloadConfig;

/// As a random test of IOzone (S2-7): a pass takes every block once, and the next pass another order.
#[test]
fn random_once_takes_every_block_once_a_pass() {
    let text = "block_size = \"8KiB\"\nrequests = 2000\naddress.pattern = \"random-once\"\n\
                address.start = \"64KiB\"\naddress.length = \"8000KiB\"";
    let mut workload = WorkloadConfig::from_toml(text).unwrap().build(&DEVICE, 5).unwrap();
    let issued = play(workload.as_mut(), &DEVICE, Time::from_us(100), 10_000);
    let pass = |from: usize| -> Vec<u64> {
        issued[from..from + 1000].iter().map(|one| one.request.offset_bytes).collect()
    };
    let (first, second) = (pass(0), pass(1000));
    assert_ne!(first, second);
    let every: Vec<u64> = (0..1000).map(|block| (64 << 10) + block * 8192).collect();
    for mut pass in [first, second] {
        // A block follows its neighbour once in a thousand, give or take five standard deviations.
        let followers = pass.windows(2).filter(|two| two[1] == two[0] + 8192).count();
        assert!(followers <= 6, "{followers}");
        pass.sort_unstable();
        assert_eq!(pass, every);
    }
    for wrong in [
        "sequential_percent = 10",
        "block_sizes = [{ size = \"4KiB\", weight = 1 }, { size = \"8KiB\", weight = 1 }]",
    ] {
        let text = format!("{wrong}\naddress.pattern = \"random-once\"");
        let config = WorkloadConfig::from_toml(&text).unwrap();
        assert!(config.build(&DEVICE, 1).is_err(), "{wrong}");
    }
}
