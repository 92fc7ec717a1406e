//! A drive held against service times that were measured on a real one.
//!
//! The figure is DiskSim's: the root of the mean square of the horizontal distance between the two
//! distributions of service times (Ruemmler and Wilkes, *An introduction to disk drive modeling*,
//! IEEE Computer 27(3), 1994). It does not compare request by request: nobody measured the angle of the
//! spindle.

use ssdyno_block::{BlockTarget, ConfigError, Op, Request, Time, Token};

use crate::{Disk, DiskConfig};

/// One measured request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeasuredRequest {
    /// Read or write.
    pub op: Op,
    /// First sector of 512 B.
    pub block: u64,
    /// Sectors.
    pub blocks: u32,
    /// From the command to its completion.
    pub service: Time,
    /// From its completion to the next command.
    pub gap: Time,
}

/// An invalid line of a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {problem}; a line is `R|W Hit|Miss sector sectors service_us gap_us`")]
pub struct MeasuredError {
    /// Counted from 1.
    pub line: usize,
    /// Its error.
    pub problem: String,
}

/// Reads a trace in the format of DiskSim's validation traces: `R|W Hit|Miss sector sectors
/// service_us gap_us`. Whether the request hit is not used. Empty lines are skipped.
///
/// # Errors
/// The first line that is not such a line.
pub fn measured_requests(text: &str) -> Result<Vec<MeasuredRequest>, MeasuredError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(index, line): (usize, &str)| {
        request(line).map_err(|problem| MeasuredError { line: index + 1, problem })
    };
    lines.map(read).collect()
}

fn request(line: &str) -> Result<MeasuredRequest, String> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [op, _, block, blocks, service, gap] = fields[..] else {
        return Err(format!("has {} fields", fields.len()));
    };
    let op = match op {
        "R" => Op::Read,
        "W" => Op::Write,
        other => return Err(format!("`{other}` is neither R nor W")),
    };
    let block = block.parse().map_err(|_| format!("`{block}` is not a sector"))?;
    let blocks = blocks.parse().ok().filter(|n| (1..=1 << 22).contains(n));
    let blocks =
        blocks.ok_or_else(|| "the number of sectors is outside 1 to 4194304".to_owned())?;
    let time = |text: &str| {
        let us = text.parse::<f64>().ok().filter(|us| (0.0..=1e9).contains(us));
        us.map(|us| Time::from_s_f64(us / 1e6))
            .ok_or_else(|| format!("`{text}` is not a time in us"))
    };
    Ok(MeasuredRequest { op, block, blocks, service: time(service)?, gap: time(gap)? })
}

/// The service times of the drive for `requests`, one at a time, each after the gap that was measured.
///
/// # Errors
/// A key of the drive file is wrong, or the trace goes beyond the drive (key `disk.blocks`).
pub fn replay(
    config: &DiskConfig,
    seed: u64,
    requests: &[MeasuredRequest],
) -> Result<Vec<Time>, ConfigError> {
    let mut disk = Disk::new(config, seed)?;
    let (mut now, mut out) = (Time::from_s(1), Vec::new());
    let mut times = Vec::with_capacity(requests.len());
    for (index, request) in requests.iter().enumerate() {
        let (at, bytes) = (request.block.saturating_mul(512), request.blocks * 512);
        let block = Request { op: request.op, offset_bytes: at, length_bytes: bytes };
        if let Err(refused) = disk.submit(now, block, Token(0)) {
            let problem = format!("request {} of the trace does not fit: {refused}", index + 1);
            return Err(ConfigError::new("disk.blocks", problem, "use a trace of this drive"));
        }
        out.clear();
        while out.is_empty() {
            let Some(next) = disk.next_event() else { break };
            disk.reap(next, &mut out);
        }
        let end = out.first().map_or(now, |completion| completion.completed);
        times.push(end - now);
        // The drive's own work in the gap continues.
        let then = end + request.gap;
        while let Some(next) = disk.next_event().filter(|next| *next <= then) {
            disk.reap(next, &mut out);
        }
        now = then;
    }
    Ok(times)
}

/// The distance between the distributions of `measured` and `simulated` service times in milliseconds, with one
/// quantile per measured time; 0 if there is nothing to compare.
pub fn rms_ms(measured: &[Time], simulated: &[Time]) -> f64 {
    let sorted = |times: &[Time]| {
        let mut ms: Vec<f64> = times.iter().map(|time| time.as_s_f64() * 1e3).collect();
        ms.sort_by(f64::total_cmp);
        ms
    };
    let (measured, simulated) = (sorted(measured), sorted(simulated));
    if measured.is_empty() || simulated.is_empty() {
        return 0.0;
    }
    let quantile = |index: usize| {
        let place = (index as f64 + 0.5) / measured.len() as f64 * simulated.len() as f64;
        simulated[(place as usize).min(simulated.len() - 1)]
    };
    let squares = measured.iter().enumerate().map(|(index, ms)| (ms - quantile(index)).powi(2));
    (squares.sum::<f64>() / measured.len() as f64).sqrt()
}
