//! An SSD as a member of an array, beside members of another kind.

use ssdyno_block::conformance::check_target;
use ssdyno_device::array::{ArrayConfig, StripedArray};
use ssdyno_device::delay::DelayConfig;
use ssdyno_device::{DeviceConfig, DeviceKind, DeviceKinds, DeviceReport};
use ssdyno_ssd::{Config, presets};

const KINDS: DeviceKinds = DeviceKinds::new(&[
    DeviceKind::of::<Config>(presets::SSDS),
    DeviceKind::of::<DelayConfig>(&[]),
    DeviceKind::of::<ArrayConfig>(&[]),
]);

const DELAY: &str = r#"{ delay = { capacity = "1MiB", read = "100us", write = "100us" } }"#;

fn array(members: &[&str]) -> StripedArray {
    let text = format!("[array]\nstripe = \"16KiB\"\nmembers = [{}]\n", members.join(", "));
    let spec = KINDS.parse(&text).unwrap();
    StripedArray::new(spec.get::<ArrayConfig>().unwrap(), 1).unwrap()
}

/// Flash of a few megabytes.
fn ssd() -> String {
    let table: toml::Table = toml::from_str(include_str!("../small_nvme.toml")).unwrap();
    toml::Value::Table(table).to_string()
}

#[test]
fn an_array_with_an_ssd_keeps_the_contract_of_targets() {
    check_target(|| array(&[&ssd(), DELAY]));
}

/// The flash belongs to the member: the whole has none.
#[test]
fn the_report_of_an_array_has_the_flash_of_its_member() {
    let report = DeviceReport::of(&array(&[DELAY, &ssd()]));
    let named: Vec<_> =
        report.units().iter().map(|unit| (unit.path.as_str(), unit.flash.is_some())).collect();
    assert_eq!(named, [("array", false), ("array.delay[0]", false), ("array.ssd[1]", true)]);
    assert!(report.flash().is_none());
}

/// A file without the table of any kind is that of an SSD, and a member may be named.
#[test]
fn members_are_ssds_by_default_and_by_name() {
    let read = |member: &str| {
        KINDS.parse(&format!("[array]\nstripe = \"16KiB\"\nmembers = [{member}]\n")).unwrap_err()
    };
    assert!(read("{}").to_string().contains("missing field `flash`"));
    assert!(read("\"nvme-tcl\"").to_string().contains("no device \"nvme-tcl\""));
    let named = KINDS.find("nvme-tlc").unwrap();
    assert_eq!(KINDS.parse(named.text).unwrap().what(), Config::WHAT);
}
