//! Disks read at the rate that their sources state for the outer tracks, skew included.

use ssdyno_session::{DriverSpec, HostSpec, RunSpec, Unattended, resolve};

/// MB/s at the host, from the source in the first lines of each preset. Within 1 %: a sector more or less on a track
/// is 0.2 %, and the run ends in the middle of a track.
#[test]
fn disks_stream_at_the_rates_of_their_sources() {
    for (disk, rate) in [
        ("exos-x20", 285.0),
        ("st3300657ss", 204.0),
        ("st9300653ss", 202.0),
        ("hds721032", 135.0),
        ("st91000640ns", 115.0),
        ("hds722525", 61.4),
        ("st318452lw", 55.0),
    ] {
        let set = ["workload.block_size=1MiB", "workload.depth=4"];
        let spec = RunSpec {
            target: Some(format!("sim:{disk}")),
            workload: Some("seqread".to_owned()),
            requests: Some(1_000),
            host: HostSpec { driver: Some(DriverSpec::Direct), ..HostSpec::default() },
            set: set.map(str::to_owned).to_vec(),
            ..RunSpec::default()
        };
        let prepared = resolve(&spec, &mut Unattended).unwrap_or_else(|error| panic!("{error}"));
        let result = prepared.start().unwrap().result().unwrap().result;
        let read = result.throughput_bytes_per_second / 1e6;
        assert!((read / rate - 1.0).abs() < 0.01, "{disk}: {read} MB/s in place of {rate}");
    }
}
