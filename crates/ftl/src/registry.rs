//! Every FTL, and what a device file says of it: the one place where an FTL is registered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ssdyno_block::ConfigError;

use crate::agrawal::Agrawal;
use crate::bast::Bast;
use crate::block_map::BlockMap;
use crate::classes::{self, Classes};
use crate::dftl::{Dftl, DftlConfig};
use crate::fast::Fast;
use crate::log_blocks::{BlockFtl, LogBlockConfig};
use crate::page_map::{PageMap, PageMapConfig};
use crate::{Cleaning, Ftl, FtlFacts, HotCold, Placement, WearLevelling};

fn greedy() -> Cleaning {
    Cleaning::Greedy
}
fn order() -> String {
    "CWDP".into()
}
fn five_percent() -> f64 {
    0.05
}
fn hundred() -> u32 {
    100
}

/// Whether `value` need not be written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A registered FTL.
struct Entry {
    /// What `ftl.name` calls it.
    name: &'static str,
    /// What it is, in a few words.
    description: &'static str,
    /// Makes a fresh one.
    make: fn(&FtlFacts<'_>) -> Result<Box<dyn Ftl>, ConfigError>,
}

/// Makes the list of FTLs, and [`FtlConfig`], in which an FTL with keys of its own has a table for
/// them.
macro_rules! register {
    ($({
        name: $name:literal,
        description: $description:literal,
        make: $make:expr
        $(, table: $table:ident as $Table:ty)?
        $(,)?
    })*) => {
        const REGISTRY: &[Entry] =
            &[$(Entry { name: $name, description: $description, make: $make }),*];

        /// The `[ftl]` table: what several FTLs understand, and a table for each that has keys of
        /// its own.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct FtlConfig {
            /// Which FTL; `ssdyno list ftls` shows all.
            pub name: String,
            /// Physical / logical - 1.
            pub over_provisioning: f64,
            /// Which block is cleaned: `greedy`, `fifo`, `random`, `d-choices`, `cost-benefit`,
            /// `windowed`.
            #[serde(default = "greedy")]
            pub cleaning: Cleaning,
            /// For `d-choices`: how many blocks are drawn; for `windowed`: how many of the oldest are
            /// looked at.
            #[serde(default, skip_serializing_if = "is_default")]
            pub cleaning_window: u32,
            /// Cleaning goes on while fewer blocks of a plane are free; share of a plane's blocks.
            #[serde(default = "five_percent")]
            pub free_blocks_low: f64,
            /// While idle, cleaning goes on until so many are free; share of a plane's blocks, 0 = no
            /// cleaning in the background.
            #[serde(default)]
            pub free_blocks_background: f64,
            /// How planes are chosen for writes.
            #[serde(default)]
            pub placement: Placement,
            /// For static placement: the order in which channel (C), way (W, the chip on its
            /// channel), die (D) and plane (P) advance with the logical page; `CWDP` moves the channel
            /// fastest.
            #[serde(default = "order")]
            pub static_order: String,
            /// Which pages are kept apart from others, in blocks of their own.
            #[serde(default)]
            pub hot_cold: HotCold,
            /// Wear levelling.
            #[serde(default)]
            pub wear_levelling: WearLevelling,
            /// For static wear levelling: tolerated difference of erases within a plane.
            #[serde(default = "hundred")]
            pub wear_threshold: u32,
            /// Pages at the end of each block that hold a summary of the block instead of data; each
            /// is programmed when the block is full (S3-26).
            #[serde(default, skip_serializing_if = "is_default")]
            pub summary_pages: u32,
            $($(
                #[doc = concat!("Keys of the FTL `", $name, "`.")]
                #[serde(rename = $name, default, skip_serializing_if = "is_default")]
                pub $table: $Table,
            )?)*
        }

        impl FtlConfig {
            /// Empties the tables of FTLs other than the one that is named, but for those that
            /// `keeps`; the keys that were set in them, such as `ftl.dftl.mapping_cache`.
            pub fn leave_out_tables(&mut self, keeps: impl Fn(&str) -> bool) -> Vec<String> {
                let mut left_out = Vec::new();
                $($(
                    if self.name != $name && !keeps($name) {
                        left_out.extend(keys_of($name, &std::mem::take(&mut self.$table)));
                    }
                )?)*
                left_out
            }
        }
    };
}

/// The keys that are set in `table`, which is that of the FTL `name`.
fn keys_of(name: &str, table: &impl Serialize) -> Vec<String> {
    match serde_json::to_value(table) {
        Ok(Value::Object(keys)) => keys.keys().map(|key| format!("ftl.{name}.{key}")).collect(),
        _ => Vec::new(),
    }
}

register! {
    {
        name: "page",
        description: "page map: any page anywhere",
        make: |facts| {
            classes::check(facts.config)?;
            match facts.config.hot_cold {
                HotCold::Classes => Ok(Box::new(Classes::new(facts)?)),
                HotCold::Off | HotCold::Survivors => Ok(Box::new(PageMap::new(facts)?)),
            }
        },
        table: page as PageMapConfig,
    }
    {
        name: "dftl",
        description: "page map of which only a part is in RAM (demand-paged)",
        make: |facts| Ok(Box::new(Dftl::new(facts)?)),
        table: dftl as DftlConfig,
    }
    {
        name: "block",
        description: "block map: whole blocks only",
        make: |facts| Ok(Box::new(BlockFtl::<BlockMap>::new(facts)?)),
    }
    {
        name: "bast",
        description: "block map with a log block for each block being written",
        make: |facts| Ok(Box::new(BlockFtl::<Bast>::new(facts)?)),
        table: bast as LogBlockConfig,
    }
    {
        name: "fast",
        description: "block map with log blocks shared by all blocks",
        make: |facts| Ok(Box::new(BlockFtl::<Fast>::new(facts)?)),
        table: fast as LogBlockConfig,
    }
    {
        name: "agrawal",
        description: "page map of the simulator behind S3, with its cleaning",
        make: |facts| Ok(Box::new(Agrawal::new(facts)?)),
    }
}

/// Names of all FTLs.
pub fn names() -> impl Iterator<Item = &'static str> {
    REGISTRY.iter().map(|entry| entry.name)
}

/// Names of all FTLs, and what each is in a few words.
pub fn descriptions() -> impl Iterator<Item = (&'static str, &'static str)> {
    REGISTRY.iter().map(|entry| (entry.name, entry.description))
}

/// Makes the FTL that `facts.config.name` names.
pub fn build(facts: &FtlFacts<'_>) -> Result<Box<dyn Ftl>, ConfigError> {
    let name = facts.config.name.as_str();
    let Some(entry) = REGISTRY.iter().find(|entry| entry.name == name) else {
        let known: Vec<_> = names().collect();
        return Err(ConfigError::new(
            "ftl.name",
            format!("no FTL is called `{name}`"),
            format!("write one of: {}", known.join(", ")),
        ));
    };
    // A key without effect would be taken for one that has some.
    if let Some(key) = facts.config.clone().leave_out_tables(|_| false).first() {
        let owner = key.split('.').nth(1).unwrap_or_default();
        return Err(ConfigError::new(
            key,
            format!("`{name}` does not have this key, which is one of `{owner}`"),
            format!("leave it out, or write ftl.name = \"{owner}\" (--set ftl.name={owner})"),
        ));
    }
    (entry.make)(facts)
}
