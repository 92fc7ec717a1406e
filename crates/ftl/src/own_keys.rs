//! Keys that only some FTLs have: a table of `[ftl]` for each of these FTLs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::Bytes;

/// Whether `value` need not be written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The `[ftl.page]` table.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageMapConfig {
    /// When the pages of a block that is cleaned are moved. Other FTLs clean whole blocks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cleaning_pace: CleaningPace,
    /// For `ftl.hot_cold = "classes"`: two to eight classes of logical pages, in the order of their
    /// addresses. Each class keeps its part, by space, of `free_blocks_low` and
    /// `free_blocks_background`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub classes: Vec<PageClass>,
}

/// When the pages of a block that is cleaned are moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CleaningPace {
    /// All at once, when free space is low: the write that triggers the cleaning waits until the whole block is
    /// copied.
    #[default]
    Whole,
    /// A few before each write, so that the block is empty in time.
    Paced,
}

/// A class of logical pages: a share `space` of the logical space, directly after the previous class. An example is a
/// stream of the host, or a namespace with its own kind of data.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageClass {
    /// Share of the logical space; the shares of all classes sum to 1.
    pub space: f64,
    /// Expected share of the writes; the shares of all classes sum to 1. The spare blocks are
    /// divided so that write amplification is lowest (form 5 of the closed forms: Desnoyers, SYSTOR
    /// 2012; Stoica and Ailamaki, VLDB 2013). Left out if every class has `spare`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<f64>,
    /// Share of the spare blocks: the blocks of a plane that hold no data and that
    /// `free_blocks_low` does not keep. The shares of all classes sum to 1. If all
    /// classes omit this key, the division is the best for `writes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare: Option<f64>,
}

/// The `[ftl.dftl]` table.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DftlConfig {
    /// RAM for the cached part of the mapping table, 8 B per entry; if omitted, 1/32 of the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping_cache: Option<Bytes>,
}

/// The tables `[ftl.bast]` and `[ftl.fast]`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogBlockConfig {
    /// Share of a plane's blocks that are log blocks, at least two; 0 = 5 %.
    #[serde(default, skip_serializing_if = "is_default")]
    pub log_blocks: f64,
}
