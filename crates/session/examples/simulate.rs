//! Simulates an SSD under a load and prints what it did: `cargo run -p ssdyno-session --example simulate`.

use ssdyno_rig::Flow;
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
    let measured = prepared.execute(None, &mut |_| Flow::Continue)?;
    print!("{}", ssdyno_result::summary_text(&measured.result));
    // What is in the result repeats it.
    println!("{}", prepared.resolved().to_toml());
    measured.failure.map_or(Ok(()), Err)
}
