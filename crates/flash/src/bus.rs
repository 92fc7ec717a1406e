//! The bus between controller and flash packages.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ssdyno_block::Time;
use ssdyno_block::units::{Bandwidth, Span, UnitError};

/// A timing mode of an ONFI data interface.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OnfiMode {
    /// Name in configuration files, such as `onfi-nv-ddr-5`.
    pub name: &'static str,
    /// Time per byte on an eight-bit bus, in picoseconds: tRC/tWC (SDR) or tCK / 2 (NV-DDR).
    pub byte_ps: u64,
}

macro_rules! modes {
    ($($name:literal $ps:literal),* $(,)?) => { [$(OnfiMode { name: $name, byte_ps: $ps }),*] };
}

/// ONFI timing modes on a bus of eight bits. SDR: the longer of tRC and tWC (ONFI 4.2, table 4-5);
/// NV-DDR: two bytes a clock tCK; NV-DDR2/3: by their data rate (ONFI 4.2, clause 4.3).
const ONFI_MODES: [OnfiMode; 24] = modes![
    "onfi-sdr-0" 100_000, "onfi-sdr-1" 50_000, "onfi-sdr-2" 35_000,
    "onfi-sdr-3" 30_000, "onfi-sdr-4" 25_000, "onfi-sdr-5" 20_000,
    "onfi-nv-ddr-0" 25_000, "onfi-nv-ddr-1" 15_000, "onfi-nv-ddr-2" 10_000,
    "onfi-nv-ddr-3" 7_500, "onfi-nv-ddr-4" 6_000, "onfi-nv-ddr-5" 5_000,
    "onfi-nv-ddr2-0" 15_000, "onfi-nv-ddr2-1" 12_500, "onfi-nv-ddr2-2" 7_500,
    "onfi-nv-ddr2-3" 6_000, "onfi-nv-ddr2-4" 5_000, "onfi-nv-ddr2-5" 3_750,
    "onfi-nv-ddr2-6" 3_000, "onfi-nv-ddr2-7" 2_500, "onfi-nv-ddr3-8" 1_875,
    "onfi-nv-ddr3-9" 1_500, "onfi-nv-ddr3-10" 1_250, "onfi-nv-ddr3-12" 833,
];

/// How fast a byte crosses the bus, kept in the form in which it was written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bus {
    /// A bandwidth: `"333MB/s"`.
    Bandwidth(Bandwidth),
    /// A time for each byte: `"25ns/B"`.
    PerByte(Span),
    /// An ONFI mode: `"onfi-nv-ddr-5"`.
    Onfi(OnfiMode),
}

impl Bus {
    /// The time that `bytes` need.
    pub fn time_for(&self, bytes: u64) -> Time {
        match self {
            Bus::Bandwidth(bandwidth) => bandwidth.time_for(bytes),
            Bus::PerByte(span) => span.0.checked_mul(bytes).unwrap_or(Time::MAX),
            Bus::Onfi(mode) => Time::from_ps(mode.byte_ps).checked_mul(bytes).unwrap_or(Time::MAX),
        }
    }
}

const EXPECTED: &str =
    "a bus such as \"333MB/s\", \"25ns/B\" or an ONFI mode (\"onfi-sdr-0\" … \"onfi-nv-ddr3-12\")";

impl FromStr for Bus {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Bus, UnitError> {
        let error = |_| UnitError { text: text.to_owned(), expected: EXPECTED };
        if let Some(mode) = ONFI_MODES.iter().find(|mode| mode.name == text) {
            return Ok(Bus::Onfi(*mode));
        }
        match text.strip_suffix("/B") {
            Some(span) => span.parse().map(Bus::PerByte).map_err(error),
            None => text.parse().map(Bus::Bandwidth).map_err(error),
        }
    }
}

impl fmt::Display for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bus::Bandwidth(bandwidth) => bandwidth.fmt(f),
            Bus::PerByte(span) => write!(f, "{span}/B"),
            Bus::Onfi(mode) => f.write_str(mode.name),
        }
    }
}

impl<'de> Deserialize<'de> for Bus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bus, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Bus;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bus, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Serialize for Bus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Bus {
    fn schema_name() -> Cow<'static, str> {
        "Bus".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": EXPECTED })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_gives_a_time_and_comes_back() {
        for (text, ns) in [
            ("333MB/s", 12_300),
            ("25ns/B", 102_400),
            ("onfi-sdr-5", 81_920),
            ("onfi-nv-ddr-5", 20_480),
        ] {
            let bus: Bus = text.parse().unwrap();
            assert_eq!(bus.to_string(), text);
            assert_eq!(bus.time_for(4096).as_ns(), ns);
        }
        assert!("25ns".parse::<Bus>().is_err());
        assert!("onfi-nv-ddr-9".parse::<Bus>().is_err());
    }
}
