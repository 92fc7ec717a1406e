//! Values that are written as words.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_bench::ALL;
use ssdyno_workload::TraceTiming;

/// Requests outstanding with the timing `fast` where the depth of the trace is not said.
pub(crate) const FAST_DEPTH: u32 = 32;

/// A number of requests, 1 or more, or all available requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "BatchForm", into = "BatchForm")]
pub struct Batch(u32);

/// As it is written.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a whole number above zero, or \"all\"")]
enum BatchForm {
    Count(#[schemars(range(min = 1))] u32),
    Word(AllWord),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AllWord {
    /// All available requests.
    All,
}

impl TryFrom<BatchForm> for Batch {
    type Error = String;

    fn try_from(form: BatchForm) -> Result<Batch, String> {
        match form {
            BatchForm::Word(AllWord::All) => Ok(Batch(ALL)),
            BatchForm::Count(count) if (1..ALL).contains(&count) => Ok(Batch(count)),
            BatchForm::Count(_) => Err("it must be a whole number above zero, or all".to_owned()),
        }
    }
}

impl From<Batch> for BatchForm {
    fn from(Batch(number): Batch) -> BatchForm {
        if number == ALL { BatchForm::Word(AllWord::All) } else { BatchForm::Count(number) }
    }
}

impl Batch {
    /// As the runner takes it.
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

impl FromStr for Batch {
    type Err = String;

    fn from_str(text: &str) -> Result<Batch, String> {
        let count = || text.parse().map(BatchForm::Count);
        let form = if text == "all" { Ok(BatchForm::Word(AllWord::All)) } else { count() };
        // A value that is not a number is not above zero either.
        Batch::try_from(form.unwrap_or(BatchForm::Count(0)))
    }
}

/// The cores to which jobs are bound, in turn. With none, no job is bound to a core.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "PinForm", into = "PinForm")]
pub struct Pin(Vec<usize>);

/// As it is written.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a list of cores, or \"none\"")]
enum PinForm {
    Cores(#[schemars(length(min = 1))] Vec<usize>),
    Word(NoneWord),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum NoneWord {
    /// No job is bound to a core.
    None,
}

impl TryFrom<PinForm> for Pin {
    type Error = String;

    fn try_from(form: PinForm) -> Result<Pin, String> {
        match form {
            PinForm::Word(NoneWord::None) => Ok(Pin(Vec::new())),
            PinForm::Cores(cores) if !cores.is_empty() => Ok(Pin(cores)),
            PinForm::Cores(_) => Err("name at least one core, or use none".to_owned()),
        }
    }
}

impl From<Pin> for PinForm {
    fn from(Pin(cores): Pin) -> PinForm {
        if cores.is_empty() { PinForm::Word(NoneWord::None) } else { PinForm::Cores(cores) }
    }
}

impl Pin {
    /// Every job on these cores, in turn; no job on a core of its own if there are none.
    pub(crate) fn to(cores: Vec<usize>) -> Pin {
        Pin(cores)
    }

    /// As the runner takes it.
    pub(crate) fn cores(&self) -> &[usize] {
        &self.0
    }
}

impl FromStr for Pin {
    type Err = String;

    fn from_str(text: &str) -> Result<Pin, String> {
        if text == "none" {
            return Ok(Pin(Vec::new()));
        }
        let cores: Result<_, _> = text.split(',').map(str::parse).collect();
        cores.map(Pin).map_err(|_| "use core numbers such as 0,2, or none".to_owned())
    }
}

/// When the requests of a trace start: `original`, `scaled=FACTOR` or `fast`.
///
/// # Errors
/// It is none of these words, or the factor is not above 0.
pub fn timing(text: &str) -> Result<TraceTiming, String> {
    match text {
        "original" => Ok(TraceTiming::Original),
        "fast" => Ok(TraceTiming::AsFastAsPossible { depth: FAST_DEPTH }),
        _ => {
            let factor = text.strip_prefix("scaled=").and_then(|factor| factor.parse().ok());
            let sane = factor.filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
            let help = "use original, scaled=FACTOR with a factor above 0, or fast";
            sane.map(TraceTiming::Scaled).ok_or_else(|| help.to_owned())
        }
    }
}

/// A [`TraceTiming`] as [`timing`] reads it; its depth is a key of its own.
pub(crate) mod timing_text {
    use super::{Deserialize, TraceTiming};

    pub(crate) fn serialize<S: serde::Serializer>(
        value: &Option<TraceTiming>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            None => serializer.serialize_none(),
            Some(TraceTiming::Original) => serializer.serialize_str("original"),
            Some(TraceTiming::Scaled(factor)) => {
                serializer.collect_str(&format!("scaled={factor}"))
            }
            Some(TraceTiming::AsFastAsPossible { .. }) => serializer.serialize_str("fast"),
        }
    }

    pub(crate) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<TraceTiming>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| super::timing(&text).map_err(serde::de::Error::custom)).transpose()
    }
}

/// A value that has a text form, as that.
pub(crate) mod as_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use super::Deserialize;

    pub(crate) fn serialize<T: Display, S: serde::Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            None => serializer.serialize_none(),
            Some(value) => serializer.collect_str(value),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: serde::Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings() {
        assert_eq!(timing("scaled=0.5"), Ok(TraceTiming::Scaled(0.5)));
        for wrong in ["", "scaled", "scaled=", "scaled=0", "scaled=-1", "scaled=inf", "scaled=nan"]
        {
            assert!(timing(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn jobs_are_bound_to_cores_or_to_none() {
        assert_eq!("0,2".parse(), Ok(Pin(vec![0, 2])));
        assert_eq!("none".parse(), Ok(Pin(Vec::new())));
        for wrong in ["", "NONE", "0,", "-1", "0 2", "0,none"] {
            assert!(wrong.parse::<Pin>().is_err(), "{wrong}");
        }
        let json = |pin: &str| serde_json::from_str::<Pin>(pin);
        for form in ["[3]", "[0,2]", "\"none\""] {
            assert_eq!(serde_json::to_string(&json(form).unwrap()).unwrap(), form);
        }
        for wrong in ["[]", "3", "\"any\"", "[-1]"] {
            assert!(json(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn batches_are_numbers_or_all() {
        assert_eq!("all".parse::<Batch>().map(Batch::number), Ok(ALL));
        assert_eq!("8".parse::<Batch>().map(Batch::number), Ok(8));
        for wrong in ["", "0", "-1", "ALL", "1.5", "4294967295"] {
            assert!(wrong.parse::<Batch>().is_err(), "{wrong}");
        }
        let json = |batch: Batch| serde_json::to_string(&batch).unwrap();
        assert_eq!(json(Batch(2)), "2");
        assert_eq!(json(Batch(ALL)), "\"all\"");
        assert_eq!(serde_json::from_str::<Batch>("\"all\"").unwrap(), Batch(ALL));
        assert!(serde_json::from_str::<Batch>("0").is_err());
    }
}
