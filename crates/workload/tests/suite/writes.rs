//! Writes with a size and places of their own (the table `writes`), against closed forms.
use crate::common;

use common::{Issued, play};
use proptest::prelude::*;
use ssdyno_block::units::Bytes;
use ssdyno_block::{Op, Request, Time};
use ssdyno_workload::{AddressPattern, Pattern, TargetFacts, WorkloadConfig, WritesApart};

const SECTOR: u64 = 512;
const REQUESTS: u64 = 400;
const DEVICE: TargetFacts = TargetFacts { capacity_bytes: 1 << 24, sector_bytes: 512 };

/// A range of 1 to `most` blocks of `block` bytes and a rest that is not a block, from a multiple of `block`.
fn range(pattern: Pattern, most: u64) -> impl Strategy<Value = (Bytes, AddressPattern)> {
    (1..20_u64, 0..20_u64, 1..=most, 0..20_u64).prop_map(move |(sectors, start, blocks, rest)| {
        let block = sectors * SECTOR;
        let length = blocks * block + (rest * SECTOR).min(block - SECTOR);
        let (start, length) = (Bytes(start * block), Some(Bytes(length)));
        (Bytes(block), AddressPattern { pattern, start, length, ..AddressPattern::default() })
    })
}

fn config(read_percent: f64, reads: &(Bytes, AddressPattern)) -> WorkloadConfig {
    WorkloadConfig {
        depth: Some(8),
        read_percent: Some(read_percent),
        write_percent: Some(100.0 - read_percent),
        block_size: Some(reads.0),
        address: reads.1.clone(),
        requests: Some(REQUESTS),
        ..WorkloadConfig::default()
    }
}

fn apart((block_size, address): &(Bytes, AddressPattern)) -> Option<WritesApart> {
    Some(WritesApart { block_size: *block_size, address: address.clone() })
}

fn issued(config: &WorkloadConfig, seed: u64) -> Vec<Request> {
    let mut workload = config.build(&DEVICE, seed).unwrap();
    let all = play(workload.as_mut(), &DEVICE, Time::from_us(50), REQUESTS as usize);
    all.into_iter().map(|Issued { request, .. }| request).collect()
}

/// Each request is one block of `place`, in its range and at a multiple of its size.
fn check_places(all: &[Request], op: Op, place: &(Bytes, AddressPattern)) {
    let (Bytes(block), AddressPattern { start, length, .. }) = place;
    for request in all.iter().filter(|request| request.op == op) {
        assert_eq!(u64::from(request.length_bytes), *block, "{request:?}");
        assert!(request.offset_bytes >= start.0 && request.offset_bytes % block == 0);
        assert!(request.end_bytes().unwrap() <= start.0 + length.unwrap().0, "{request:?}");
    }
}

proptest! {
    /// Random or sequential, reads and writes keep to their own sizes and ranges, and the same seed gives the same.
    #[test]
    fn reads_and_writes_have_their_own_sizes_and_places(
        reads in range(Pattern::Random, 300),
        writes in prop_oneof![range(Pattern::Random, 300), range(Pattern::Sequential, 300)],
        read_percent in 0.0..=100.0_f64,
        seed: u64,
    ) {
        let config = WorkloadConfig { writes: apart(&writes), ..config(read_percent, &reads) };
        let all = issued(&config, seed);
        check_places(&all, Op::Read, &reads);
        check_places(&all, Op::Write, &writes);
        prop_assert_eq!(&all, &issued(&config, seed));
        prop_assert_eq!(config.block_bytes_max(), reads.0.0.max(writes.0.0));
        let text = toml::to_string(&config).unwrap();
        prop_assert_eq!(&all, &issued(&WorkloadConfig::from_toml(&text).unwrap(), seed), "{}", text);
    }

    /// Write number n of a sequential range of k whole blocks goes to block n mod k, whatever is read meanwhile.
    #[test]
    fn sequential_writes_follow_each_other(
        reads in range(Pattern::Random, 300),
        writes in range(Pattern::Sequential, 60),
        seed: u64,
    ) {
        let all = issued(&WorkloadConfig { writes: apart(&writes), ..config(50.0, &reads) }, seed);
        let (Bytes(block), AddressPattern { start, length, .. }) = &writes;
        let blocks = length.unwrap().0 / block;
        let found: Vec<u64> =
            all.iter().filter(|one| one.op == Op::Write).map(|one| one.offset_bytes).collect();
        let expected: Vec<u64> =
            (0..found.len() as u64).map(|n| start.0 + n % blocks * block).collect();
        prop_assert_eq!(found, expected);
    }
}

/// Half of 100 000 requests are writes, and random writes take all of 50 blocks equally often: within five standard
/// deviations of the binomial distribution (seed 7).
#[test]
fn shares_and_places_are_uniform() {
    let text = "read_percent = 50\nrequests = 100000\nblock_size = \"4KiB\"\n\
                [writes]\nblock_size = \"128KiB\"\naddress = { start = \"1MiB\", length = \"6400KiB\" }\n";
    let config = WorkloadConfig::from_toml(text).unwrap();
    let mut workload = config.build(&DEVICE, 7).unwrap();
    let all = play(workload.as_mut(), &DEVICE, Time::from_us(50), 100_000);
    let near = |count: usize, n: usize, p: f64| {
        let (count, mean) = (count as f64, n as f64 * p);
        assert!(
            (count - mean).abs() <= 5.0 * (mean * (1.0 - p)).sqrt(),
            "{count}, expected {mean}"
        );
    };
    let mut blocks = [0_usize; 50];
    for one in all.iter().filter(|one| one.request.op == Op::Write) {
        assert_eq!(one.request.length_bytes, 128 << 10);
        blocks[((one.request.offset_bytes - (1 << 20)) >> 17) as usize] += 1;
    }
    let writes = blocks.iter().sum();
    near(writes, all.len(), 0.5);
    blocks.iter().for_each(|count| near(*count, writes, 0.02));
}

#[test]
fn what_the_table_cannot_have_is_refused_with_its_key() {
    for (table, key) in [
        ("block_size = \"0B\"", "writes.block_size"),
        ("block_size = \"1000B\"", "writes.block_size"),
        ("block_size = \"32MiB\"", "writes.block_size"),
        ("block_size = \"8KiB\"\naddress = { start = \"4KiB\" }", "writes.address.start"),
        ("block_size = \"8KiB\"\naddress = { start = \"16MiB\" }", "writes.address.start"),
        ("block_size = \"8KiB\"\naddress = { length = \"17MiB\" }", "writes.address.length"),
        (
            "block_size = \"8KiB\"\naddress = { length_percent = 0 }",
            "writes.address.length_percent",
        ),
    ] {
        let text = format!("read_percent = 50\n[writes]\n{table}\n");
        let config = WorkloadConfig::from_toml(&text).unwrap();
        let error = config.build(&DEVICE, 1).err().unwrap();
        assert_eq!(error.key.as_deref(), Some(key), "{table}: {error}");
    }
    // The number of threads is no key of the table.
    let text = "threads = 3\n[writes]\nblock_size = \"4KiB\"\n\
                address = { pattern = \"sequential\", length = \"8KiB\" }\n";
    let error = WorkloadConfig::from_toml(text).unwrap().build(&DEVICE, 1).err().unwrap();
    assert_eq!(error.key.as_deref(), Some("threads"), "{error}");
}
