//! The bus between controller and flash packages.

use std::fmt;
use std::str::FromStr;

use ssdyno_block::Time;
use ssdyno_block::units::{Bandwidth, Span, UnitError};

/// A timing mode of an ONFI data interface, on a bus of eight bits. Configuration files name it by
/// both, such as `onfi-nv-ddr-5`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OnfiMode {
    interface: &'static str,
    number: usize,
    /// The time of two bytes: in fast modes, the time of one byte is not a whole number of
    /// picoseconds.
    two_bytes_ps: u64,
}

/// Cycles of NV-DDR2 and what followed it, two bytes each, by mode, in picoseconds: tDSC(avg) and
/// tRC(avg), which are the same. Mode 12 is printed as 1.667 ns, for 600 MHz.
const DDR_PS: [u64; 20] = [
    30_000, 25_000, 15_000, 12_000, 10_000, 7_500, 6_000, 5_000, 3_750, 3_000, 2_500, 1_875, 1_666,
    1_500, 1_364, 1_250, 1_111, 1_000, 909, 833,
];

/// Data interfaces and the time of two bytes in each of their modes, in picoseconds, by ONFI 5.0: which
/// modes there are is in clause 5.7 (parameter page, bytes 116 to 121, 129, 141, 142 and 160 to 162).
///
/// SDR: twice the longer of tRC and tWC (tables 4-70, 4-71); NV-DDR: tCK (table 4-72); NV-DDR2 and
/// NV-DDR3: tables 4-73 to 4-76; NV-LPDDR4: tables 4-77 to 4-80.
const INTERFACES: [(&str, &[u64]); 5] = [
    ("sdr", &[200_000, 100_000, 70_000, 60_000, 50_000, 40_000]),
    ("nv-ddr", &[50_000, 30_000, 20_000, 15_000, 12_000, 10_000]),
    ("nv-ddr2", DDR_PS.split_at(11).0),
    ("nv-ddr3", &DDR_PS),
    ("nv-lpddr4", &DDR_PS),
];

impl OnfiMode {
    /// The mode called `name`, such as `onfi-nv-ddr-5`.
    fn find(name: &str) -> Option<OnfiMode> {
        let (interface, number) = name.strip_prefix("onfi-")?.rsplit_once('-')?;
        let (interface, modes) = INTERFACES.iter().find(|(named, _)| *named == interface)?;
        let mut modes = modes.iter().enumerate();
        // The mode number is compared as text. A parsed number would also accept `onfi-sdr-00`,
        // and the name that is shown later would differ from the name in the file.
        let (number, two_bytes_ps) = modes.find(|(mode, _)| mode.to_string() == number)?;
        Some(OnfiMode { interface, number, two_bytes_ps: *two_bytes_ps })
    }

    fn time_for(&self, bytes: u64) -> Time {
        // The product is halved once, at the end. A rounded time of one byte would be wrong by
        // half a picosecond for each byte: in NV-DDR3 mode 19 that is 0.1 %.
        let twice = self.two_bytes_ps.checked_mul(bytes);
        twice.map_or(Time::MAX, |twice| Time::from_ps(twice.div_ceil(2)))
    }
}

/// How fast a byte crosses the bus, kept in the form in which it was written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FlashChannel {
    /// A bandwidth: `"333MB/s"`.
    Bandwidth(Bandwidth),
    /// A time for each byte: `"25ns/B"`.
    PerByte(Span),
    /// An ONFI mode: `"onfi-nv-ddr-5"`.
    Onfi(OnfiMode),
}

impl FlashChannel {
    /// The time that `bytes` need.
    pub fn time_for(&self, bytes: u64) -> Time {
        match self {
            FlashChannel::Bandwidth(bandwidth) => bandwidth.time_for(bytes),
            FlashChannel::PerByte(span) => span.0.checked_mul(bytes).unwrap_or(Time::MAX),
            FlashChannel::Onfi(mode) => mode.time_for(bytes),
        }
    }
}

const EXPECTED: &str = "a bus such as \"333MB/s\", \"25ns/B\" or an ONFI mode: \"onfi-sdr-0\" to \"-5\", \
    \"onfi-nv-ddr-0\" to \"-5\", \"onfi-nv-ddr2-0\" to \"-10\", \"onfi-nv-ddr3-0\" to \"-19\" or \
    \"onfi-nv-lpddr4-0\" to \"-19\"";

impl FromStr for FlashChannel {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<FlashChannel, UnitError> {
        let error = |_| UnitError { text: text.to_owned(), expected: EXPECTED };
        if let Some(mode) = OnfiMode::find(text) {
            return Ok(FlashChannel::Onfi(mode));
        }
        match text.strip_suffix("/B") {
            Some(span) => span.parse().map(FlashChannel::PerByte).map_err(error),
            None => text.parse().map(FlashChannel::Bandwidth).map_err(error),
        }
    }
}

impl fmt::Display for FlashChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlashChannel::Bandwidth(bandwidth) => bandwidth.fmt(f),
            FlashChannel::PerByte(span) => write!(f, "{span}/B"),
            FlashChannel::Onfi(mode) => write!(f, "onfi-{}-{}", mode.interface, mode.number),
        }
    }
}

ssdyno_block::text_form!(FlashChannel as "Bus", EXPECTED, {
    "type": "string",
    "description": EXPECTED,
});

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
            let bus: FlashChannel = text.parse().unwrap();
            assert_eq!(bus.to_string(), text);
            assert_eq!(bus.time_for(4096).as_ns(), ns);
        }
        assert!("25ns".parse::<FlashChannel>().is_err());
        for wrong in
            ["onfi-nv-ddr-6", "onfi-nv-ddr2-11", "onfi-nv-ddr3-20", "onfi-sdr-05", "onfi-5"]
        {
            assert!(wrong.parse::<FlashChannel>().is_err(), "{wrong}");
        }
    }

    /// Millions of transfers a second, as modes are called by, each of a byte. Cycles are printed
    /// with three or four digits, which is up to 0.1 % off.
    #[test]
    fn onfi_modes_are_as_fast_as_they_are_called() {
        let sdr: &[f64] = &[10.0, 20.0, 28.571, 33.333, 40.0, 50.0];
        let nv_ddr: &[f64] = &[40.0, 66.667, 100.0, 133.333, 166.667, 200.0];
        let ddr: &[f64] = &[
            66.667, 80.0, 133.333, 166.667, 200.0, 266.667, 333.333, 400.0, 533.333, 666.667,
            800.0, 1066.667, 1200.0, 1333.333, 1466.667, 1600.0, 1800.0, 2000.0, 2200.0, 2400.0,
        ];
        let rates = [
            ("sdr", sdr),
            ("nv-ddr", nv_ddr),
            ("nv-ddr2", &ddr[..11]),
            ("nv-ddr3", ddr),
            ("nv-lpddr4", ddr),
        ];
        assert_eq!(
            rates.map(|(name, rates)| (name, rates.len())),
            INTERFACES.map(|(n, m)| (n, m.len()))
        );
        for (interface, rates) in rates {
            for (number, rate) in rates.iter().enumerate() {
                let name = format!("onfi-{interface}-{number}");
                let bus: FlashChannel = name.parse().unwrap();
                assert_eq!(bus.to_string(), name);
                let found = 1.0 / bus.time_for(1_000_000).as_s_f64();
                assert!((found / rate - 1.0).abs() < 0.001, "{name}: {found} and not {rate} MT/s");
            }
        }
    }

    /// The figures of the presets depend on this rate: 833 ps per byte.
    #[test]
    fn the_mode_of_the_presets_is_what_it_was() {
        let bus: FlashChannel = "onfi-nv-ddr3-12".parse().unwrap();
        assert_eq!(bus.time_for(4096).as_ps(), 4096 * 833);
        let odd: FlashChannel = "onfi-nv-ddr3-19".parse().unwrap();
        assert_eq!((odd.time_for(1).as_ps(), odd.time_for(2).as_ps()), (417, 833));
        assert_eq!(bus.time_for(u64::MAX), Time::MAX);
    }
}
