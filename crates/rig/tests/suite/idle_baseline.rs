//! *Above idle* is what the work cost: the baseline is the same device, with the same slow mode and the same
//! low-power states, without a request. So no load of any preset is below it.

use ssdyno_block::Time;
use ssdyno_device::DeviceSpec;
use ssdyno_device::delay::DelayConfig;
use ssdyno_driver_nvme::{Feature, NvmeConfig};
use ssdyno_rig::{HostOptions, KeepGoing, SimMeasured, SimRun};
use ssdyno_ssd::{Config, presets};

use crate::common;

/// One request at a time; a database with few customers; bursts with pauses in which CPU and device fall
/// asleep; some requests with seconds between them; a ramp-up before; many at once.
const LOADS: [&str; 7] = [
    "block_size = \"4KiB\"\nrequests = 400",
    "write_percent = 100\nblock_size = \"4KiB\"\nrequests = 400",
    "read_percent = 67\nblock_size = \"8KiB\"\ndepth = 64\nrequests = 400\n[arrivals]\nkind = \"poisson\"\nrate = 1500",
    "write_percent = 30\nblock_size = \"16KiB\"\ndepth = 32\nrequests = 320\n[arrivals]\nkind = \"bursts\"\nlength = 16\ninterval = \"150ms\"",
    "write_percent = 20\nblock_size = \"4KiB\"\nrequests = 12\n[arrivals]\nkind = \"poisson\"\nmean_gap = \"1s\"",
    "block_size = \"4KiB\"\nrequests = 30\nramp_up = 10\n[arrivals]\nkind = \"poisson\"\nrate = 20",
    "write_percent = 50\nblock_size = \"16KiB\"\ndepth = 64\nrequests = 600",
];

fn direct(device: DeviceSpec, load: &str) -> SimRun {
    SimRun { seed: 5, ..common::direct(device, load) }
}

fn nvme(device: &Config, load: &str, state: Option<u8>) -> SimRun {
    let features = state.map(Feature::PowerState).into_iter().collect();
    let driver = NvmeConfig { features, ..NvmeConfig::default() };
    common::run(device.clone(), driver, ("server", &HostOptions::default()), load, 5)
}

/// Joules above idle as in the result, and at least 0.
fn above(run: &SimRun, what: &str) -> f64 {
    let SimMeasured { result, energy, .. } = run.execute(&mut |_| KeepGoing::Continue).unwrap();
    let above = result.energy_joules.unwrap().above_idle;
    assert!((above - energy.above_idle_joules).abs() <= f64::EPSILON, "{what}");
    let sum = energy.idle_joules + above;
    assert!((sum - energy.total_joules).abs() <= 1e-9 * energy.total_joules, "{what}");
    assert!(above > 0.0, "{what}: {above} J above {} J idle", energy.idle_joules);
    above
}

#[test]
fn no_load_of_any_preset_is_below_idle() {
    for preset in presets::SSDS {
        for load in LOADS {
            let what = format!("{}: {load}", preset.name);
            if let Ok(mut device) = Config::parse(preset.text) {
                device.flash.blocks_per_plane = device.flash.blocks_per_plane.min(64);
                device.ftl.over_provisioning = 0.25;
                let states = device.nvme.as_ref().map(|nvme| nvme.operational_states.len() as u8);
                match states {
                    None => _ = above(&direct(DeviceSpec::new(device), load), &what),
                    // Free, limited to its least power (the governor), and put to sleep by the host.
                    Some(states) => {
                        let sleeping = states + device.power.states.len() as u8;
                        for state in 0..sleeping.max(1) {
                            above(&nvme(&device, load, (state > 0).then_some(state)), &what);
                        }
                    }
                }
            } else if let Ok(device) = DelayConfig::parse(preset.text) {
                above(&direct(DeviceSpec::new(device), load), &what);
            }
        }
    }
}

/// A device that sleeps between requests is measured against one that sleeps all the time: what a request
/// adds by waking it is there, and small against the idleness in between.
#[test]
fn a_request_a_second_adds_what_waking_costs() {
    let device = Config::parse(presets::find("nvme-tlc").unwrap().text).unwrap();
    let run = nvme(&device, LOADS[4], None);
    let added = above(&run, "a request a second");
    let SimMeasured { energy, .. } = run.execute(&mut |_| KeepGoing::Continue).unwrap();
    let awake = energy.idle_watts * energy.seconds;
    assert!(energy.idle_joules < 0.3 * awake, "{} J asleep, {awake} J awake", energy.idle_joules);
    // Each request keeps it awake for 100 ms, until the first state, at its idle power at most.
    assert!(added < 12.0 * 0.13 * energy.idle_watts + 0.3 * energy.idle_joules, "{added} J");
    assert!(energy.seconds > Time::from_s(3).as_s_f64());
}
