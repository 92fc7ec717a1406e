//! The rates of a step of a plan.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Rates in requests per second.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Rates {
    /// One rate.
    One(f64),
    /// Several rates, in this order.
    Several(Vec<f64>),
    /// A range of rates.
    Sweep(RateSweep),
}

/// Rates with a constant ratio from each rate to the next.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateSweep {
    /// First rate, above 0.
    pub from: f64,
    /// Last rate; it may be below the first.
    pub to: f64,
    /// Number of rates, 2 to 1000.
    pub points: u32,
}

// The derived reader of an untagged enum tries each form and drops the errors of all. This one decides by the kind of the
// value, so that an error names the wrong value.
impl<'de> Deserialize<'de> for Rates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rates, D::Error> {
        deserializer.deserialize_any(RatesVisitor)
    }
}

struct RatesVisitor;

impl<'de> Visitor<'de> for RatesVisitor {
    type Value = Rates;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a list of numbers, or a table with `from`, `to` and `points`")
    }

    fn visit_f64<E: de::Error>(self, rate: f64) -> Result<Rates, E> {
        Ok(Rates::One(rate))
    }

    fn visit_i64<E: de::Error>(self, rate: i64) -> Result<Rates, E> {
        Ok(Rates::One(rate as f64))
    }

    fn visit_u64<E: de::Error>(self, rate: u64) -> Result<Rates, E> {
        Ok(Rates::One(rate as f64))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Rates, A::Error> {
        let mut rates = Vec::new();
        while let Some(rate) = list.next_element()? {
            rates.push(rate);
        }
        Ok(Rates::Several(rates))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Rates, A::Error> {
        RateSweep::deserialize(MapAccessDeserializer::new(table)).map(Rates::Sweep)
    }
}
