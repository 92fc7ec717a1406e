//! fio's `t/io_uring`: the loop that its author shows the kernel with. It prints whole thousands of
//! requests a second and no cost; so the device's own counter tells.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::{Figures, child, costs};

/// Runs `program` on the block device `target` with batches as deep as the queue; `None`, with a
/// word, where that fails.
pub(crate) fn run(program: &Path, target: &str, depth: u32, seconds: u64) -> Option<Figures> {
    let (before, began) = (reads(target)?, Instant::now());
    let mut command = Command::new(program);
    command
        .args(["-p0", "-B1", "-F1", "-n1"])
        .args([format!("-d{depth}"), format!("-s{depth}"), format!("-c{depth}")])
        .args([format!("-r{seconds}"), target.to_owned()]);
    // It ends by its own alarm, with whatever code.
    let ended = child::run(command)?;
    let requests = (reads(target)? - before) as f64;
    Some(costs(&ended, requests, requests / began.elapsed().as_secs_f64()))
}

/// Reads that the block device has completed (Linux, Documentation/block/stat.rst); `None` for a
/// file.
fn reads(target: &str) -> Option<u64> {
    let name = target.strip_prefix("/dev/")?;
    let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}
