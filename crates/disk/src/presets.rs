//! The hard disks that come with the program: TOML files, built in.

use ssdyno_block::{Preset, presets};

/// All of them: files of [`DiskConfig`](crate::DiskConfig).
pub const DISKS: &[Preset] = presets!["../presets/devices":
    "exos-x20",
    "dnes-309170w",
    "st318452lw",
    "st39102lw",
    "st32171w",
    "st973401ss",
    "hds722525",
    "hds721032",
    "st91000640ns",
    "st3300657ss",
    "st9300653ss",
];
