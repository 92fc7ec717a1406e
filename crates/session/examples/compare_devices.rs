//! Compares two simulated devices under the same load, side by side: `cargo run -p ssdyno-session --example
//! compare_devices`.

use ssdyno_figures::KeepGoing;
use ssdyno_session::{Failure, RunList, RunSpec, Unattended};

fn main() -> Result<(), Failure> {
    let base = RunSpec {
        workload: Some("randread".to_owned()),
        requests: Some(5000),
        ..RunSpec::default()
    };
    let targets = ["sim:config-a", "sim:s3-nand1"];
    let specs = targets.map(|target| RunSpec { target: Some(target.to_owned()), ..base.clone() });
    let runs = RunList::resolve(&specs, &mut Unattended)?;
    let measured =
        runs.execute(|_, measured| measured.map(|all| all.result), &mut |_| KeepGoing::Continue)?;
    let results: Vec<_> = measured.into_iter().flatten().collect();
    let comparison = ssdyno_report::compare(&results[0], &results[1]);
    for figure in &comparison.figures {
        println!("{:<24} {}", figure.figure, figure.text);
    }
    Ok(())
}
