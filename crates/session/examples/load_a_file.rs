//! Reads a file at random, which it makes first, and prints how fast: `cargo run -p ssdyno-session --example
//! load_a_file`.

use std::time::{Duration, SystemTime};

use ssdyno_block::units::Bytes;
use ssdyno_session::{BeginAt, Failure, Measured, Prepared, RunPhase, RunSpec, Runner};
use ssdyno_session::{Unattended, WriteSpec, resolve};

fn main() -> Result<(), Failure> {
    let place = std::env::temp_dir().join(format!("ssdyno-example-{}", std::process::id()));
    let size = Some(Bytes(16 << 20));
    let spec = RunSpec {
        target: Some(place.display().to_string()),
        workload: Some("randread".to_owned()),
        requests: Some(5000),
        write: WriteSpec { size, ..WriteSpec::default() },
        ..RunSpec::default()
    };
    let measured = resolve(&spec, &mut Unattended).and_then(Prepared::start).and_then(watch);
    // It is only in the way now, and may be gone.
    let _ = std::fs::remove_file(&place);
    let measured = measured?;
    print!("{}", ssdyno_report::summary_text(&measured.result));
    measured.failure.map_or(Ok(()), Err)
}

/// Says how far it is, and gives what it measured.
fn watch(runner: Runner) -> Result<Measured, Failure> {
    runner.begin(BeginAt::Moment(SystemTime::now() + Duration::from_millis(50)));
    let mut now = runner.poll();
    while now.phase != RunPhase::Ended {
        println!("{:?}: {} requests", now.phase, now.progress.completed);
        now = runner.wait(now.phase, Duration::from_millis(100));
    }
    runner.result()
}
