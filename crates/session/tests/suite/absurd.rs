//! Every number of every device file at values that nobody means: refused by its key, or a device that
//! works. Never a panic, nor a device that answers no more.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use ssdyno_block::{ConfigError, Request, Time, Token};
use ssdyno_controller_ring::{RingCard, RingConfig};
use ssdyno_device::{Device, DeviceReport};
use ssdyno_energy::{DeviceMeter, Facts, Meter};
use ssdyno_session::DEVICE_KINDS;
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
fn works(device: &mut dyn Device) {
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

/// `None`: `text` does not even parse.
fn tried(text: &str) -> Option<Result<(), ConfigError>> {
    let spec = DEVICE_KINDS.parse(text).ok()?;
    if let Some(card) = spec.get::<RingConfig>() {
        // It takes requests from its own driver only, and has no other way to be built.
        let facts = Facts { dies_per_package: 1, ..Facts::default() };
        let metered = || Meter::new(&card.energy, &facts).map(|_| ());
        return Some(RingCard::fresh(card, 1).and_then(|_| metered()));
    }
    let built = spec.build(1).and_then(|device| {
        let report = DeviceReport::of(device.as_ref());
        let units = report.units().iter();
        DeviceMeter::new(units.map(|unit| (unit.path.as_str(), unit.key.as_str(), &unit.power)))?;
        Ok(device)
    });
    Some(built.map(|mut device| works(device.as_mut())))
}

#[test]
fn absurd_numbers_are_refused_by_their_key_or_work() {
    let mut wrong = Vec::new();
    for preset in DEVICE_KINDS.presets() {
        let full = DEVICE_KINDS.parse(preset.text).unwrap().to_toml();
        let mut good: Value = toml::from_str(&full).unwrap();
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
                let key =
                    path.iter().fold(String::new(), |key, part| match part.parse::<usize>() {
                        Ok(place) => format!("{key}[{place}]"),
                        Err(_) if key.is_empty() => part.clone(),
                        Err(_) => format!("{key}.{part}"),
                    });
                // Of lists the error names the list.
                let names = |told: &str| {
                    key.strip_prefix(told)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                };
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

/// A card takes requests from a driver of its own kind only, so nothing is made of cards.
#[test]
fn a_card_is_no_member() {
    for (text, key) in [
        ("[volume]\ndevice = \"zc706-ring\"", "volume.device"),
        ("[array]\nmembers = [\"zc706-ring\"]", "array.members[0]"),
    ] {
        let spec = DEVICE_KINDS.parse(text).unwrap();
        let error = spec.build(1).map(|_| ()).unwrap_err();
        assert_eq!(error.key, key, "{error}");
    }
}
