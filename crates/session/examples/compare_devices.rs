//! Compares two simulated devices under the same load, side by side: `cargo run -p ssdyno-session --example
//! compare_devices`.

use ssdyno_session::{Failure, RunSpec, Unattended, resolve, side_by_side};

fn main() -> Result<(), Failure> {
    let spec = |target: &str| RunSpec {
        target: Some(target.to_owned()),
        workload: Some("randread".to_owned()),
        requests: Some(5000),
        ..RunSpec::default()
    };
    let specs = ["sim:config-a", "sim:s3-nand1"].map(spec);
    let run = |spec: &RunSpec, stop: &ssdyno_session::StopFlag| {
        resolve(spec, &mut Unattended)?.execute(None, &mut |_| stop.flow())
    };
    let progress = &mut |_| ssdyno_rig::Flow::Continue;
    let measured = side_by_side(&specs, None, run, progress)?;
    let results: Vec<_> = measured.into_iter().flatten().map(|measured| measured.result).collect();
    let comparison = ssdyno_result::compare(&results[0], &results[1]);
    for figure in &comparison.figures {
        println!("{:<24} {}", figure.figure, figure.text);
    }
    Ok(())
}
