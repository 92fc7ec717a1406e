//! Reads a file at random, which it makes first, and prints how fast: `cargo run -p ssdyno-session --example
//! load_a_file`.

use ssdyno_block::units::Bytes;
use ssdyno_rig::Flow;
use ssdyno_session::{Failure, RunSpec, Unattended, WriteSpec, resolve};

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
    let measured = resolve(&spec, &mut Unattended)
        .and_then(|prepared| prepared.execute(None, &mut |_| Flow::Continue));
    // It is only in the way now, and may be gone.
    let _ = std::fs::remove_file(&place);
    let measured = measured?;
    print!("{}", ssdyno_result::summary_text(&measured.result));
    measured.failure.map_or(Ok(()), Err)
}
