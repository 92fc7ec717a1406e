//! Imports the output of `nvme id-ctrl` of a real controller, for a simulated controller with the
//! same Identify data.
//!
//! [`IdCtrl::parse`] reads its three forms; [`IdCtrl::settings`] are the keys of a device file that
//! follow from it, [`IdCtrl::notes`] what does not.

mod parse;

pub use parse::IdCtrlError;

use ssdyno_spec::nvme::oncs;

use super::subsystem::{OPTIONAL, Version};

/// Most data of a command that a device file can say.
const MDTS_MAX: u8 = 10;

/// ONCS of the simulated controller, but for Compare, which comes with `nvme.contents`.
fn ours(version: Version) -> u16 {
    let there = OPTIONAL.into_iter().filter(|(part, _)| version.has(*part));
    there.fold(0, |bits, (_, bit)| bits | bit) & !oncs::COMPARE
}

/// Bits of ONCS (base 2.0c, figure 275) by name.
const COMMANDS: [(u16, &str); 9] = [
    (1 << 0, "Compare"),
    (1 << 1, "Write Uncorrectable"),
    (1 << 2, "Dataset Management"),
    (1 << 3, "Write Zeroes"),
    (1 << 4, "saved features"),
    (1 << 5, "reservations"),
    (1 << 6, "Timestamp"),
    (1 << 7, "Verify"),
    (1 << 8, "Copy"),
];

/// A controller as it describes itself; `None` where the dump does not say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IdCtrl {
    /// VID: PCI vendor.
    pub vendor: Option<u16>,
    /// SN, without blanks at the ends.
    pub serial: Option<String>,
    /// MN, without blanks at the ends.
    pub model: Option<String>,
    /// FR, without blanks at the ends.
    pub firmware: Option<String>,
    /// RAB: recommended arbitration burst, a power of two; 7 is no limit.
    pub arbitration_burst: Option<u8>,
    /// MDTS: most data of a command, in 4 KiB, a power of two; 0 is no limit.
    pub max_transfer: Option<u8>,
    /// VER: major, minor, tertiary in bits 31:16, 15:8, 7:0; 0 before 1.2.
    pub version: Option<u32>,
    /// ONCS: optional commands.
    pub commands: Option<u16>,
    /// NN: namespaces at most.
    pub namespaces: Option<u32>,
    /// VWC: bit 0, there is a volatile write cache.
    pub write_cache: Option<u8>,
    /// APSTA: bit 0, it changes power states by itself.
    pub autonomous_power: Option<u8>,
    /// TNVMCAP: capacity, in bytes.
    pub capacity_bytes: Option<u128>,
    /// Power states from 0 on.
    pub power_states: Vec<PowerStateFacts>,
    /// Texts that are not ASCII.
    pub not_ascii: Vec<NotAscii>,
}

/// A text of a controller that is not ASCII, as it must be (base 2.0c, clause 1.4.2 and figure 275: SN, MN
/// and FR are ASCII strings).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotAscii {
    /// The field, as nvme-cli calls it.
    pub field: String,
    /// The line of the dump, from 1; 0 in JSON and in the structure.
    pub line: usize,
    /// What the dump says.
    pub said: String,
    /// What is simulated.
    pub shown: String,
}

/// A power state (base 2.0c, figure 276).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PowerStateFacts {
    /// MP: most power, in 0.1 mW, the finest unit that the structure has.
    pub power_100uw: u32,
    /// I/O commands are processed in it.
    pub operational: bool,
    /// ENLAT: most time to enter, in microseconds.
    pub entry_us: u32,
    /// EXLAT: most time to leave, in microseconds.
    pub exit_us: u32,
}

impl IdCtrl {
    /// Reads what `nvme id-ctrl` printed: as text, with `-o json`, or with `-b` (4096 bytes). A text may be truncated;
    /// missing fields keep their values.
    ///
    /// # Errors
    /// [`IdCtrlError`] names what is wrong, with the line.
    pub fn parse(dump: &[u8]) -> Result<IdCtrl, IdCtrlError> {
        parse::any(dump)
    }

    /// `KEY=VALUE` for a device file, in the form of `--set`.
    pub fn settings(&self) -> Vec<String> {
        let mut settings = Vec::new();
        let mut set = |key: &str, value: Option<String>| {
            settings.extend(value.map(|value| format!("{key}={value}")));
        };
        set("nvme.version", self.version.map(|version| quoted(known_version(version).0)));
        set("nvme.pci_vendor", self.vendor.map(|vendor| vendor.to_string()));
        set("nvme.model", self.model.as_deref().map(quoted));
        set("nvme.serial", self.serial.as_deref().map(quoted));
        set("nvme.firmware", self.firmware.as_deref().map(quoted));
        set(
            "nvme.max_transfer",
            self.max_transfer.map(|mdts| {
                let mdts = if mdts == 0 { MDTS_MAX } else { mdts.min(MDTS_MAX) };
                quoted(&format!("{}KiB", 4 << mdts))
            }),
        );
        set(
            "nvme.arbitration_burst",
            self.arbitration_burst.map(|rab| match rab {
                0..=6 => (1 << rab).to_string(),
                _ => quoted("unlimited"),
            }),
        );
        set("nvme.namespaces_max", self.namespaces.map(|nn| nn.clamp(1, 1024).to_string()));
        set("buffer.protected", self.write_cache.map(|vwc| (vwc & 1 == 0).to_string()));
        if self.power_states.iter().any(|state| state.operational) {
            set("nvme.operational_states", Some(self.operational()));
            set("power.states", Some(self.low_power()));
        }
        settings
    }

    /// `nvme.operational_states`: those that process commands.
    fn operational(&self) -> String {
        let states = self.power_states.iter().filter(|state| state.operational).take(16);
        list(states.map(|state| format!("{{ {} }}", state.keys())))
    }

    /// `power.states`: the others, with an idleness before each, which is the host's choice.
    fn low_power(&self) -> String {
        let mut after_us = 0_u64;
        let states = self.power_states.iter().filter(|state| !state.operational).take(16);
        list(states.map(|state| {
            // As Linux does: fifty times what entering and leaving cost; an hour at most.
            let both = u64::from(state.entry_us) + u64::from(state.exit_us);
            let idle_us = if self.sleeps_alone() { both * 50 } else { HOUR_US };
            after_us = after_us.max(idle_us.min(HOUR_US));
            format!("{{ idle_after = \"{after_us}us\", {} }}", state.keys())
        }))
    }

    fn sleeps_alone(&self) -> bool {
        self.autonomous_power.is_none_or(|apsta| apsta & 1 == 1)
    }

    /// The values that the simulated controller does not take over, or takes from elsewhere, in
    /// sentences.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "id-ctrl does not contain the PCI device number, queues, interrupts and doorbells: the values of the preset are kept"
                .to_owned(),
        ];
        let mut note = |applies: bool, text: String| notes.extend(applies.then_some(text));
        for NotAscii { field, line, said, shown } in &self.not_ascii {
            let place = if *line > 0 { format!(" in line {line}") } else { String::new() };
            let text = format!(
                "`{field}`{place} is `{}`, which is not ASCII as NVM Express requires (base 2.0c, \
                 clause 1.4.2): `{shown}` is simulated",
                said.escape_debug()
            );
            note(true, text);
        }
        if let Some(capacity) = self.capacity_bytes.filter(|capacity| *capacity > 0) {
            note(
                true,
                format!(
                    "the drive's capacity of {capacity} bytes is not simulated: the preset's flash stays"
                ),
            );
        }
        if let Some(version) = self.version {
            let (known, exact) = known_version(version);
            note(!exact, format!("version {version:#x} is shown as {known}"));
        }
        if let Some(mdts) = self.max_transfer {
            let text = if mdts == 0 { "no limit" } else { "more than 4 MiB" };
            note(
                mdts == 0 || mdts > MDTS_MAX,
                format!("{text} for a command is simulated as 4 MiB"),
            );
        }
        if let Some(commands) = self.commands {
            let named = |bits: u16| {
                let names = COMMANDS.iter().filter(|(bit, _)| bits & bit != 0);
                names.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
            };
            let version = self.version.map(|version| known_version(version).0);
            let ours = ours(version.and_then(Version::parse).unwrap_or(Version::LATEST));
            let (more, less) = (ours & !commands, commands & !ours & !oncs::COMPARE);
            note(
                more != 0,
                format!(
                    "features of the simulated controller that the drive lacks: {}",
                    named(more)
                ),
            );
            note(
                less != 0,
                format!(
                    "features of the drive that the simulated controller lacks: {}",
                    named(less)
                ),
            );
        }
        let asleep = self.power_states.iter().any(|state| !state.operational);
        let whose = if self.sleeps_alone() {
            "power.states: idle_after is assumed, 50 times entry and exit latency as Linux sets it"
        } else {
            "power.states: the drive does not sleep by itself (APSTA), so idle_after is an hour"
        };
        note(asleep, whose.to_owned());
        let sorted = self.power_states.is_sorted_by_key(|state| !state.operational);
        note(!sorted, "operational power states are numbered before the others".to_owned());
        notes
    }
}

/// The longest time that a device file can say.
const HOUR_US: u64 = 3_600_000_000;

impl PowerStateFacts {
    /// The common keys of both kinds of state.
    fn keys(&self) -> String {
        let watts = format!("{}.{:04}", self.power_100uw / 10_000, self.power_100uw % 10_000);
        let watts = watts.trim_end_matches('0').trim_end_matches('.');
        let limited = |us: u32| u64::from(us).min(HOUR_US);
        format!(
            "power = \"{watts}W\", entry_latency = \"{}us\", exit_latency = \"{}us\"",
            limited(self.entry_us),
            limited(self.exit_us)
        )
    }
}

/// The nearest version that a device file can say, and whether it is that very one.
fn known_version(version: u32) -> (&'static str, bool) {
    match (version >> 16, version >> 8 & 0xff) {
        // Not reported before 1.2.
        (0, _) => ("1.1", true),
        (1, 0) => ("1.0", true),
        (1, 1) => ("1.1", true),
        (1, 2) => ("1.2", version & 0xff == 0),
        (1, 3) => ("1.3", true),
        (1, minor) => ("1.4", minor == 4),
        (major, minor) => ("2.0", (major, minor) == (2, 0)),
    }
}

/// As TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;
