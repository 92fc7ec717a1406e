//! Compares two simulated devices under the same load, side by side: `cargo run -p ssdyno-session --example
//! compare_devices`.

use ssdyno_result::Flow;
use ssdyno_session::{Failure, RunList, RunSpec, Unattended, resolve};

fn main() -> Result<(), Failure> {
    let spec = |target: &str| RunSpec {
        target: Some(target.to_owned()),
        workload: Some("randread".to_owned()),
        requests: Some(5000),
        ..RunSpec::default()
    };
    let specs = ["sim:config-a", "sim:s3-nand1"].map(spec);
    let prepare = |spec: &RunSpec| resolve(spec, &mut Unattended);
    let runs = RunList::new(specs.iter().map(prepare).collect::<Result<_, _>>()?);
    let measured = runs.execute(|_, measured| Ok(measured.result), &mut |_| Flow::Continue)?;
    let results: Vec<_> = measured.into_iter().flatten().collect();
    let comparison = ssdyno_result::compare(&results[0], &results[1]);
    for figure in &comparison.figures {
        println!("{:<24} {}", figure.figure, figure.text);
    }
    Ok(())
}
