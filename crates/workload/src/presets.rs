//! The named workloads of the product: the files of `presets/workloads`, part of the program.

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../presets/workloads/", $name, ".toml")))),*]
    };
}

/// Name and text, in the order of a listing.
const PRESETS: &[(&str, &str)] = presets![
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
    PRESETS.iter().map(|(name, _)| *name)
}

/// The TOML text of the preset `name`, with comments and sources.
pub fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// What the preset `name` is for: its first comment line.
pub fn summary(name: &str) -> Option<&'static str> {
    text(name)?.lines().next().map(|line| line.trim_start_matches(['#', ' ']))
}
