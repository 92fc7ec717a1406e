//! Every number of every device file at values that nobody means: refused by its key, or a device that
//! works. Never a panic, nor a device that answers no more.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use ssdyno_block::{BlockTarget, ConfigError, Request, Time, Token};
use ssdyno_device::delay::{DelayConfig, DelayDevice};
use ssdyno_device::ring::{RingCard, RingConfig};
use ssdyno_device::volume::{self, Volume, VolumeConfig};
use ssdyno_device::{Config, DeviceKind, DeviceKinds, Ssd, presets};
use ssdyno_energy::{EnergyConfig as Energy, Facts, Meter};
use toml::Value;

/// All values that could be written for a number, by what stands there now.
fn absurd(now: &Value) -> Vec<Value> {
    match now {
        Value::Integer(_) => [0, -1, i64::from(u32::MAX), i64::MAX].map(Value::Integer).to_vec(),
        Value::Float(_) => [0.0, -1.0, 1e300, f64::NAN, f64::INFINITY].map(Value::Float).to_vec(),
        Value::String(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
            let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || ".,_".contains(c));
            let nines = "9".repeat(300);
            ["0", "-1", "0.000000001", "1000000000000000000", "nan", &nines]
                .map(|number| Value::String(format!("{number}{unit}")))
                .to_vec()
        }
        _ => Vec::new(),
    }
}

/// The paths of all values that have absurd ones.
fn leaves(value: &Value, path: &[String], found: &mut Vec<Vec<String>>) {
    let below = |key: &str| [path, &[key.to_owned()]].concat();
    match value {
        Value::Table(table) => table.iter().for_each(|(k, v)| leaves(v, &below(k), found)),
        Value::Array(array) => {
            array.iter().enumerate().for_each(|(n, v)| leaves(v, &below(&n.to_string()), found));
        }
        value if !absurd(value).is_empty() => found.push(path.to_vec()),
        _ => {}
    }
}

fn at<'a>(value: &'a mut Value, path: &[String]) -> &'a mut Value {
    path.iter().fold(value, |value, key| match value {
        Value::Array(array) => &mut array[key.parse::<usize>().unwrap()],
        other => &mut other[key.as_str()],
    })
}

/// A few requests of each kind, all answered within a year of the device.
fn works(device: &mut dyn BlockTarget) {
    let mut done = Vec::new();
    let mut now = Time::ZERO;
    for n in 0..24 {
        let request = match n % 3 {
            0 => Request::write(n * 4096, 4096),
            1 => Request::read(n * 4096, 4096),
            _ => Request::write(n * 4096, 512),
        };
        // A queue that is full may refuse it.
        if device.submit(now, request, Token(n as u32)).is_err() {
            continue;
        }
        let before = done.len();
        while done.len() == before {
            now = device.next_event().expect("a request is under way");
            device.reap(now, &mut done);
        }
    }
    assert!(now < Time::from_s(1_000_000), "{now}");
}

fn metered(energy: &Energy) -> Result<(), ConfigError> {
    Meter::new(energy, &Facts { dies_per_package: 1, ..Facts::default() }).map(|_| ())
}

/// The kinds of which volumes are made, and themselves.
const KINDS: DeviceKinds = DeviceKinds::new(&[
    DeviceKind::of::<Config>(presets::ALL),
    DeviceKind::of::<DelayConfig>(presets::DELAYS),
    DeviceKind::of::<VolumeConfig>(volume::presets::VOLUMES),
]);

/// `None`: `text` does not even parse.
fn tried(text: &str) -> Option<Result<(), ConfigError>> {
    if text.contains("[card]") {
        let config = RingConfig::parse(text).ok()?;
        return Some(RingCard::fresh(&config, 1).and_then(|_| metered(&config.energy)));
    }
    if text.contains("[volume]") {
        let spec = KINDS.parse(text).ok()?;
        let config = spec.get::<VolumeConfig>().unwrap();
        return Some(Volume::new(config, 1).map(|mut device| works(&mut device)));
    }
    if text.contains("[delay]") {
        let config = DelayConfig::parse(text).ok()?;
        let built = DelayDevice::new(&config, 1).and_then(|device| {
            metered(&config.energy)?;
            Ok(device)
        });
        return Some(built.map(|mut device| works(&mut device)));
    }
    let config = Config::parse(text).ok()?;
    let built = Ssd::fresh(&config, 1).and_then(|device| {
        metered(&config.energy)?;
        Ok(device)
    });
    Some(built.map(|mut device| works(&mut device)))
}

#[test]
fn absurd_numbers_are_refused_by_their_key_or_work() {
    let mut wrong = Vec::new();
    for preset in presets::every() {
        let mut good: Value = toml::from_str(&full(preset.text)).unwrap();
        if good.get("flash").is_some() {
            good["flash"]["blocks_per_plane"] = Value::Integer(32);
            good["ftl"]["over_provisioning"] = Value::Float(0.5);
        }
        let sound = tried(&toml::to_string(&good).unwrap());
        assert_eq!(sound, Some(Ok(())), "{}", preset.name);
        let mut paths = Vec::new();
        leaves(&good, &[], &mut paths);
        assert!(paths.len() >= 8, "{}: {paths:?}", preset.name);
        for path in paths {
            for value in absurd(at(&mut good, &path)) {
                let mut changed = good.clone();
                *at(&mut changed, &path) = value.clone();
                let text = toml::to_string(&changed).unwrap();
                let key = path.join(".");
                // Of lists the error names the list.
                let names = |told: &str| key == told || key.starts_with(&format!("{told}."));
                if let Some(Err(error)) = tried(&text)
                    && !names(&error.key)
                    && !(error.key == "ftl.over_provisioning" && key.starts_with("flash."))
                {
                    wrong.push(format!("{}: {key} = {value}: {error}", preset.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The resolved form, with every key that has a default.
fn full(text: &str) -> String {
    if text.contains("[card]") {
        RingConfig::parse(text).unwrap().to_toml()
    } else if text.contains("[volume]") {
        KINDS.parse(text).unwrap().to_toml()
    } else if text.contains("[delay]") {
        DelayConfig::parse(text).unwrap().to_toml()
    } else {
        Config::parse(text).unwrap().to_toml()
    }
}
