//! The named workloads of the product: the files of `presets/workloads`, part of the program.

use ssdyno_block::{Preset, presets};

// The texts are compiled into the program. A path to files would break an installed program, and a
// changed file would change the meaning of a name in old results.
/// All, in the order of a listing.
pub const ALL: &[Preset] = presets!["../presets/workloads":
    "randread",
    "randwrite",
    "mixed",
    "quick",
    "latency",
    "throughput",
    "spek",
    "seqread",
    "seqwrite",
    "zipf",
    "hotcold",
    "oltp",
    "s3-seq-read",
    "s3-seq-write",
    "s3-rand-read",
    "s3-rand-write",
];

/// The names, in the order of a listing.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|preset| preset.name)
}

/// The TOML text of the preset `name`, with comments and sources.
pub fn text(name: &str) -> Option<&'static str> {
    Preset::find(ALL, name).map(|preset| preset.text)
}

/// The purpose of the preset `name`: its first comment line.
pub fn summary(name: &str) -> Option<&'static str> {
    text(name)?.lines().next().map(|line| line.trim_start_matches(['#', ' ']))
}
