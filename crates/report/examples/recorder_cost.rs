//! What recording costs on this machine: ns per request, and Parquet rows per second.
//!
//! `cargo run --release -p ssdyno-report --example recorder_cost`

use std::time::{Duration, Instant};

use ssdyno_block::{Completion, Request, Status, Time, Token};
use ssdyno_figures::{Keep, RunResult};
use ssdyno_record::Recorder;
use ssdyno_report::RunDirectory;

const REQUESTS: u64 = 5_000_000;

/// CPU time of this process where the system tells (Linux), wall time elsewhere: other work on the
/// machine then does not count.
struct Clock {
    wall: Instant,
    cpu_ns: Option<u64>,
}

impl Clock {
    fn start() -> Clock {
        Clock { wall: Instant::now(), cpu_ns: cpu_ns() }
    }

    fn elapsed(&self) -> Duration {
        match (self.cpu_ns, cpu_ns()) {
            (Some(from), Some(to)) => Duration::from_nanos(to - from),
            _ => self.wall.elapsed(),
        }
    }
}

/// First field of schedstat: time on the CPU in ns (proc(5)).
fn cpu_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for keep in [Keep::All, Keep::Summary] {
        let mut recorder = Recorder::new(keep, None);
        let begin = Clock::start();
        let mut state = 1u64;
        for i in 0..REQUESTS {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let start = Time::from_ns(400 * i);
            let completed = start + Time::from_ps(60_000_000 + (state >> 38));
            let accepted = start + Time::from_ns(300);
            let completion =
                Completion { token: Token(0), status: Status::Ok, accepted, completed };
            recorder.arrived(start);
            recorder.record(&Request::read(state >> 40 << 12, 4096), start, &completion);
        }
        let each = begin.elapsed().as_nanos() as f64 / REQUESTS as f64;
        println!("{keep:?}: {each:.1} ns per request");
        let begin = Clock::start();
        let mut recording = recorder.finish(Time::ZERO);
        let mut result = RunResult::default();
        recording.fill(&mut result);
        println!("  figures: {:.1} ns per request", begin.elapsed().as_nanos() as f64 / 5e6);
        if let Some(rows) = recording.rows() {
            let base = std::env::temp_dir().join("ssdyno-recorder-cost");
            let directory = RunDirectory::create(&base, "run")?;
            let begin = Clock::start();
            let path = directory.write_parquet(rows)?;
            let rate = REQUESTS as f64 / begin.elapsed().as_secs_f64() / 1e6;
            let size = std::fs::metadata(path)?.len() as f64 / REQUESTS as f64;
            println!("  Parquet: {rate:.1} M rows/s, {size:.1} bytes a row");
            std::fs::remove_dir_all(base)?;
        }
    }
    Ok(())
}
