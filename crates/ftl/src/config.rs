//! The `[ftl]` and `[precondition]` tables of a device file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ssdyno_block::ConfigError;

use crate::own_keys::{DftlConfig, LogBlockConfig, PageMapConfig, is_default};

/// How planes are chosen for writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// By logical page, in the order of `ftl.static_order`.
    #[default]
    Static,
    /// One plane after another, independently of the logical page.
    RoundRobin,
    /// The logical page number selects the package; within it, the plane with the most free pages is used (S3-39).
    MostFree,
    /// The least busy die; in it, its planes in turn.
    LeastBusy,
}

/// Which pages have blocks of their own, separate from other pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HotCold {
    /// No separation: host writes and relocated pages share the open block.
    #[default]
    Off,
    /// Pages that survived a cleaning are cold: they get their own open block.
    Survivors,
    /// Each of `ftl.page.classes` has its own blocks in every plane and is cleaned within them;
    /// `page` only.
    Classes,
}

/// Wear levelling.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WearLevelling {
    /// Free blocks are used in the order in which they became free.
    #[default]
    Off,
    /// The least worn free block is used first.
    Dynamic,
    /// Dynamic; and if the wear of a plane's blocks differs by more than `ftl.wear_threshold`, the least worn
    /// block is moved, even with few invalid pages.
    Static,
}

/// Contents of the device before the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// No data: fresh from the factory.
    Empty,
    /// Every logical page written once, in order.
    Sequential,
    /// The steady state of uniform random single-page writes.
    #[default]
    Random,
}

ssdyno_block::defaults! {
    one: f64 = 1.0;
    alone: u32 = 1;
    greedy: Cleaning = Cleaning::Greedy;
    order: String = "CWDP".into();
    five_percent: f64 = 0.05;
    hundred: u32 = 100;
}

/// The `[precondition]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Precondition {
    /// Contents of the device before the run.
    #[serde(default)]
    pub fill: Fill,
    /// Share of the logical space that holds data; 0 to 1.
    #[serde(default = "one")]
    pub share: f64,
    /// Pages that random writes of the host reach the FTL in: 1, or as many as the write buffer writes
    /// back together, beginning with a multiple of that. No key of a file: it follows from `[buffer]`, see
    /// [`Buffer::pages_together`](crate::buffer::WriteBuffer::pages_together).
    #[serde(skip, default = "alone")]
    pub together: u32,
}

impl Default for Precondition {
    fn default() -> Precondition {
        Precondition { fill: Fill::default(), share: 1.0, together: 1 }
    }
}

impl Precondition {
    /// Logical pages that hold data, of `logical_pages`.
    pub fn pages(&self, logical_pages: u32) -> Result<u32, ConfigError> {
        let help = "use a share of the logical space, such as 1.0 for a full device";
        ConfigError::within("precondition.share", self.share, 0.0..=1.0, help)?;
        Ok((f64::from(logical_pages) * self.share) as u32)
    }
}

/// How the victim of a cleaning is chosen among the closed blocks of a plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cleaning {
    /// The block with the fewest valid pages: optimal if all pages are equally likely to be overwritten (Yang, Misra
    /// and Rubenstein 2015).
    Greedy,
    /// The block that was closed first.
    Fifo,
    /// Any block, all equally likely.
    Random,
    /// The best of `cleaning_window` blocks drawn at random (Van Houdt 2013); 10 by default.
    DChoices,
    /// The block with the greatest (1 - u) age / 2u, where u is its valid share (Rosenblum and Ousterhout 1992).
    CostBenefit,
    /// The best of the `cleaning_window` blocks that were closed first; 1/8 of the plane by default.
    Windowed,
}

/// Makes [`FtlConfig`], in which an FTL with keys of its own has a table for them.
macro_rules! tables {
    ($($name:literal: $table:ident as $Table:ty,)*) => {
        /// The `[ftl]` table: keys that several FTLs share, and a table for each FTL with its own keys.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct FtlConfig {
            /// Name of the FTL; `ssdyno list ftls` shows all.
            pub name: String,
            /// Share by which the physical space exceeds the logical space: physical / logical - 1.
            pub over_provisioning: f64,
            /// Which block is cleaned: `greedy`, `fifo`, `random`, `d-choices`, `cost-benefit`,
            /// `windowed`.
            #[serde(default = "greedy")]
            pub cleaning: Cleaning,
            /// For `d-choices`: number of blocks drawn; for `windowed`: number of the oldest blocks examined.
            #[serde(default, skip_serializing_if = "is_default")]
            pub cleaning_window: u32,
            /// Cleaning continues while fewer blocks of a plane are free; share of a plane's blocks.
            #[serde(default = "five_percent")]
            pub free_blocks_low: f64,
            /// While idle, cleaning continues until this many blocks are free; share of a plane's blocks, 0 = no
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
            /// Which pages have blocks of their own, separate from other pages.
            #[serde(default)]
            pub hot_cold: HotCold,
            /// Wear levelling.
            #[serde(default)]
            pub wear_levelling: WearLevelling,
            /// For static wear levelling: largest tolerated difference in erase counts within a plane.
            #[serde(default = "hundred")]
            pub wear_threshold: u32,
            /// Pages at the end of each block that hold a summary of the block instead of data; each page is programmed
            /// when the block is full (S3-26).
            #[serde(default, skip_serializing_if = "is_default")]
            pub summary_pages: u32,
            $(
                #[doc = concat!("Keys of the FTL `", $name, "`.")]
                #[serde(rename = $name, default, skip_serializing_if = "is_default")]
                pub $table: $Table,
            )*
        }

        impl FtlConfig {
            /// Empties the tables of all FTLs except the named FTL and those that `keeps` accepts;
            /// returns the keys that were set in them, such as `ftl.dftl.mapping_cache`.
            pub fn leave_out_tables(&mut self, keeps: impl Fn(&str) -> bool) -> Vec<String> {
                let mut left_out = Vec::new();
                $(
                    if self.name != $name && !keeps($name) {
                        left_out.extend(keys_of($name, &std::mem::take(&mut self.$table)));
                    }
                )*
                left_out
            }
        }
    };
}

tables! {
    "page": page as PageMapConfig,
    "dftl": dftl as DftlConfig,
    "bast": bast as LogBlockConfig,
    "fast": fast as LogBlockConfig,
}

/// The keys that are set in `table`, which is that of the FTL `name`.
fn keys_of(name: &str, table: &impl Serialize) -> Vec<String> {
    match serde_json::to_value(table) {
        Ok(Value::Object(keys)) => keys.keys().map(|key| format!("ftl.{name}.{key}")).collect(),
        _ => Vec::new(),
    }
}
