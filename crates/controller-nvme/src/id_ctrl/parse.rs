//! The three forms of `nvme id-ctrl`.

use std::borrow::Cow;

use serde_json::Value as Json;
use ssdyno_spec::nvme::{IdentifyController, PowerStateDescriptor};
use zerocopy::FromBytes;

use super::{IdCtrl, NotAscii, PowerStateFacts};

/// Why a dump cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IdCtrlError {
    /// Neither text nor the structure.
    #[error("it is not text, and it has {bytes} bytes, while the structure has 4096")]
    Binary {
        /// Its length.
        bytes: usize,
    },
    /// It begins like JSON, but is not JSON.
    #[error("not the JSON of `nvme id-ctrl -o json`: {0}")]
    Json(String),
    /// A value is not of its kind.
    #[error("line {line}: `{key}` cannot be `{value}`")]
    Value {
        /// From 1; 0 in JSON.
        line: usize,
        /// The field.
        key: String,
        /// What stands there.
        value: String,
    },
    /// More than one controller.
    #[error("line {line}: `{key}` appears twice; save one controller per file")]
    Twice {
        /// From 1; 0 in JSON.
        line: usize,
        /// The field.
        key: String,
    },
    /// No controller told it: the structure reads as zeroes or as ones.
    #[error(
        "this is not the data of a controller: vendor, model and serial number are all {pattern}"
    )]
    Unfilled {
        /// `zeroes` or `ones`.
        pattern: &'static str,
    },
    /// Nothing of a controller.
    #[error("no field of a controller in it, such as `mn` or `mdts`")]
    Empty,
}

pub(super) fn any(dump: &[u8]) -> Result<IdCtrl, IdCtrlError> {
    let id = match decoded(dump) {
        None => binary(dump),
        Some(text) => {
            let text = text.trim_start_matches('\u{feff}');
            if text.trim_start().starts_with('{') { json(text) } else { plain(text) }
        }
    }?;
    match unfilled(&id) {
        Some(pattern) => Err(IdCtrlError::Unfilled { pattern }),
        None => Ok(id),
    }
}

/// The value of an unfilled structure: ones if a device does not respond, zeroes if a buffer was never written. Neither
/// is a vendor (PCI), and a controller has a model. [`tidy`] leaves nothing of either, so a text or JSON made of such a
/// structure shows it, too.
fn unfilled(id: &IdCtrl) -> Option<&'static str> {
    let empty = |text: &Option<String>| text.as_deref() == Some("");
    match id.vendor {
        Some(0) if empty(&id.model) && empty(&id.serial) => Some("zeroes"),
        Some(0xffff) if empty(&id.model) && empty(&id.serial) => Some("ones"),
        _ => None,
    }
}

/// The dump as text: UTF-8; UTF-16 with its mark, which some shells save; or Latin-1, where what `-H`
/// explains has a sign of degrees. `None`: it has zeroes, as the structure does, or its length.
fn decoded(dump: &[u8]) -> Option<Cow<'_, str>> {
    let wide = |order: fn([u8; 2]) -> u16| {
        let (pairs, rest) = dump.as_chunks();
        let units = pairs.iter().map(|pair| order(*pair));
        let text = char::decode_utf16(units).collect::<Result<String, _>>().ok()?;
        (rest.is_empty() && !text.contains('\0')).then_some(Cow::Owned(text))
    };
    match dump {
        [0xff, 0xfe, ..] => return wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => return wide(u16::from_be_bytes),
        _ if dump.contains(&0) => return None,
        _ => {}
    }
    match std::str::from_utf8(dump) {
        Ok(text) => Some(Cow::Borrowed(text)),
        Err(_) if dump.len() == size_of::<IdentifyController>() => None,
        Err(_) => Some(Cow::Owned(dump.iter().map(|&byte| char::from(byte)).collect())),
    }
}

fn binary(dump: &[u8]) -> Result<IdCtrl, IdCtrlError> {
    let wrong = IdCtrlError::Binary { bytes: dump.len() };
    let id = IdentifyController::read_from_bytes(dump).map_err(|_| wrong)?;
    let mut not_ascii = Vec::new();
    let mut text = |field: &str, bytes: &[u8]| {
        let said: String = bytes.iter().map(|&byte| char::from(byte)).collect();
        let said = std::str::from_utf8(bytes).map_or(said, str::to_owned);
        let shown = tidy(&said);
        not_ascii.extend(mangled(field, 0, &said, &shown));
        Some(shown)
    };
    let (serial, model) = (text("sn", &id.serial), text("mn", &id.model));
    let firmware = text("fr", &id.firmware);
    let states = &id.power_state[..=usize::from(id.power_states).min(31)];
    let flag = |state: &PowerStateDescriptor, bit: u8| state.flags & bit != 0;
    let power_states = states.iter().map(|state| PowerStateFacts {
        power_100uw: power(state.max_power.get(), flag(state, PowerStateDescriptor::FINE_POWER)),
        operational: !flag(state, PowerStateDescriptor::NON_OPERATIONAL),
        entry_us: state.entry_latency_us.get(),
        exit_us: state.exit_latency_us.get(),
    });
    Ok(IdCtrl {
        vendor: Some(id.vendor.get()),
        serial,
        model,
        firmware,
        arbitration_burst: Some(id.arbitration_burst),
        max_transfer: Some(id.max_transfer),
        version: Some(id.version.get()),
        commands: Some(id.nvm_commands.get()),
        namespaces: Some(id.namespaces.get()),
        write_cache: Some(id.volatile_write_cache),
        autonomous_power: Some(id.autonomous_power),
        capacity_bytes: Some(id.total_capacity.get()),
        power_states: power_states.collect(),
        not_ascii,
    })
}

/// MP in 0.01 W, or in 0.1 mW where it is `fine`.
fn power(raw: u16, fine: bool) -> u32 {
    u32::from(raw) * if fine { 1 } else { 100 }
}

/// Printable ASCII, without blanks at the ends: what a device file takes.
fn tidy(text: &str) -> String {
    let printable = |c: char| if (' '..='~').contains(&c) { c } else { ' ' };
    text.chars().map(printable).collect::<String>().trim().to_owned()
}

/// The field, if [`tidy`] had to change `said` other than at its ends.
fn mangled(field: &str, line: usize, said: &str, shown: &str) -> Option<NotAscii> {
    let blank = |c: char| c.is_whitespace() || c == '\0';
    let said = said.trim_matches(blank);
    (said != shown).then(|| NotAscii {
        field: field.to_owned(),
        line,
        said: said.to_owned(),
        shown: shown.to_owned(),
    })
}

/// Without what a locale puts between groups of three digits; `None`: there are no such groups.
fn ungrouped(text: &str) -> Option<String> {
    const MARKS: [char; 8] = [',', '.', '\'', '\u{2019}', ' ', '_', '\u{a0}', '\u{202f}'];
    let mark = text.chars().find(|c| MARKS.contains(c))?;
    let mut groups = text.split(mark);
    let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let first = groups.next().filter(|group| (1..=3).contains(&group.len()) && digits(group))?;
    let rest: Vec<&str> = groups.collect();
    let threes = rest.iter().all(|group| group.len() == 3 && digits(group));
    threes.then(|| [&[first], &rest[..]].concat().concat())
}

/// One field of the text or of the JSON.
struct Field<'a> {
    line: usize,
    key: &'a str,
    value: &'a str,
}

impl Field<'_> {
    fn wrong(&self) -> IdCtrlError {
        let (key, value) = (self.key.to_owned(), self.value.to_owned());
        IdCtrlError::Value { line: self.line, key, value }
    }

    /// A number: decimal, or hexadecimal with `0x`, or without where `radix` is 16.
    fn number<T: TryFrom<u128>>(&self, radix: u32) -> Result<T, IdCtrlError> {
        let number = match self.value.strip_prefix("0x") {
            Some(digits) => u128::from_str_radix(digits, 16),
            None => match ungrouped(self.value) {
                Some(digits) => digits.parse(),
                None => u128::from_str_radix(self.value, radix),
            },
        };
        let number = number.ok().and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| self.wrong())
    }

    /// Puts the field where it belongs. `true`: it is one that is used.
    fn put(&self, id: &mut IdCtrl, version_radix: u32) -> Result<bool, IdCtrlError> {
        match self.key {
            "vid" => self.once(&mut id.vendor, self.number(10)?)?,
            "sn" => self.text(&mut id.serial, &mut id.not_ascii)?,
            "mn" => self.text(&mut id.model, &mut id.not_ascii)?,
            "fr" => self.text(&mut id.firmware, &mut id.not_ascii)?,
            "rab" => self.once(&mut id.arbitration_burst, self.number(10)?)?,
            "mdts" => self.once(&mut id.max_transfer, self.number(10)?)?,
            "ver" => self.once(&mut id.version, self.number(version_radix)?)?,
            "oncs" => self.once(&mut id.commands, self.number(10)?)?,
            "nn" => self.once(&mut id.namespaces, self.number(10)?)?,
            "vwc" => self.once(&mut id.write_cache, self.number(10)?)?,
            "apsta" => self.once(&mut id.autonomous_power, self.number(10)?)?,
            "tnvmcap" => self.once(&mut id.capacity_bytes, self.number(10)?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A text, as the controller can say it.
    fn text(
        &self,
        place: &mut Option<String>,
        not_ascii: &mut Vec<NotAscii>,
    ) -> Result<(), IdCtrlError> {
        let shown = tidy(self.value);
        not_ascii.extend(mangled(self.key, self.line, self.value, &shown));
        self.once(place, shown)
    }

    fn once<T>(&self, place: &mut Option<T>, value: T) -> Result<(), IdCtrlError> {
        match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(IdCtrlError::Twice { line: self.line, key: self.key.to_owned() }),
        }
    }
}

/// `key : value` in each line, then the power states. What `-H` and `-v` explain is indented or in
/// brackets and names no field.
fn plain(text: &str) -> Result<IdCtrl, IdCtrlError> {
    let (mut id, mut any) = (IdCtrl::default(), false);
    for (index, line) in text.lines().enumerate() {
        // Marks of a mail that quotes it.
        let line = line.trim_start_matches(['>', ' ']);
        let Some((key, value)) = line.split_once(':') else { continue };
        let field = Field { line: index + 1, key: key.trim(), value: value.trim() };
        if let Some(number) = field.key.strip_prefix("ps ") {
            let state = power_state(&field, number.trim(), id.power_states.len())?;
            id.power_states.push(state);
            any = true;
        } else {
            // Old versions print the version in hexadecimal without saying so.
            any |= field.put(&mut id, 16)?;
        }
    }
    if any { Ok(id) } else { Err(IdCtrlError::Empty) }
}

/// `mp:25.00W operational enlat:0 exlat:0 rrt:0 rrl:0`; the next line has no field of ours.
fn power_state(
    field: &Field<'_>,
    number: &str,
    expected: usize,
) -> Result<PowerStateFacts, IdCtrlError> {
    if number.parse() != Ok(expected) || expected >= 32 {
        return Err(field.wrong());
    }
    let words = || field.value.split_whitespace();
    let after = |name: &str| words().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'));
    let watts = after("mp").and_then(|mp| mp.trim_end_matches('W').parse::<f64>().ok());
    let us = |name| after(name).map_or(Some(0), |us| us.parse().ok());
    let (Some(watts), Some(entry_us), Some(exit_us)) = (watts, us("enlat"), us("exlat")) else {
        return Err(field.wrong());
    };
    if !(0.0..=655.35).contains(&watts) {
        return Err(field.wrong());
    }
    let operational = !words().any(|word| word == "non-operational");
    let power_100uw = (watts * 1e4).round() as u32;
    Ok(PowerStateFacts { power_100uw, operational, entry_us, exit_us })
}

fn json(text: &str) -> Result<IdCtrl, IdCtrlError> {
    let value: Json = serde_json::from_str(text).map_err(|e| IdCtrlError::Json(e.to_string()))?;
    let fields = value.as_object().ok_or(IdCtrlError::Empty)?;
    let (mut id, mut any) = (IdCtrl::default(), false);
    for (key, value) in fields {
        let value = match value {
            Json::String(text) => text.clone(),
            Json::Number(number) => number.to_string(),
            _ => continue,
        };
        any |= Field { line: 0, key, value: value.trim() }.put(&mut id, 10)?;
    }
    let states = fields.get("psds").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    for state in states.iter().take(32) {
        id.power_states.push(json_power_state(state)?);
    }
    // All 32 are printed by some versions; NPSS says how many there are.
    if let Some(last) = fields.get("npss").and_then(Json::as_u64) {
        id.power_states.truncate(last as usize + 1);
    }
    if any { Ok(id) } else { Err(IdCtrlError::Empty) }
}

fn json_power_state(state: &Json) -> Result<PowerStateFacts, IdCtrlError> {
    let wrong = || IdCtrlError::Value { line: 0, key: "psds".to_owned(), value: state.to_string() };
    let number = |key: &str| match state.get(key) {
        None => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(wrong),
    };
    let flags = number("flags")?.unwrap_or(0);
    let fine = number("max_power_scale")?.unwrap_or(flags) & 1 == 1;
    let asleep = number("non-operational_state")?.unwrap_or(flags >> 1) & 1 == 1;
    let raw = number("max_power")?.and_then(|raw| u16::try_from(raw).ok()).ok_or_else(wrong)?;
    let us = |key| u32::try_from(number(key)?.unwrap_or(0)).map_err(|_| wrong());
    Ok(PowerStateFacts {
        power_100uw: power(raw, fine),
        operational: !asleep,
        entry_us: us("entry_lat")?,
        exit_us: us("exit_lat")?,
    })
}
