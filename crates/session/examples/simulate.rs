//! Simulates an SSD under a load and prints what it did: `cargo run -p ssdyno-session --example simulate`.

use ssdyno_session::{Failure, RunSpec, Unattended, resolve};

fn main() -> Result<(), Failure> {
    let spec = RunSpec {
        target: Some("sim:config-a".to_owned()),
        workload: Some("mixed".to_owned()),
        requests: Some(5000),
        set: vec!["workload.depth=8".to_owned()],
        ..RunSpec::default()
    };
    let prepared = resolve(&spec, &mut Unattended)?;
    // Everything that decides the run; it is in the result, too, and repeats it.
    println!("{}", prepared.resolved().to_toml());
    let measured = prepared.start()?.result()?;
    print!("{}", ssdyno_report::summary_text(&measured.result));
    measured.failure.map_or(Ok(()), Err)
}
