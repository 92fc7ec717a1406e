//! The `[buffer]` table of a device file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::ConfigError;
use ssdyno_block::units::Bytes;

/// Which page leaves the buffer first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BufferPolicy {
    /// No buffer.
    #[default]
    None,
    /// The oldest page.
    Fifo,
    /// The least recently used page.
    Lru,
    /// As FIFO, but a page that was used since gets a second chance.
    Clock,
    /// Block padding LRU (Kim and Ahn, FAST 2008): the least recently written logical block leaves
    /// as a whole, and its missing pages are read from flash. A block that was written from end to
    /// end leaves before all others.
    Bplru,
}

impl BufferPolicy {
    /// Every policy that has a buffer.
    pub const ALL: [BufferPolicy; 4] =
        [BufferPolicy::Fifo, BufferPolicy::Lru, BufferPolicy::Clock, BufferPolicy::Bplru];
}

fn most() -> f64 {
    0.9
}
fn is_none(share: &Option<f64>) -> bool {
    share.is_none()
}

/// The `[buffer]` table (S3-8).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferConfig {
    /// Which page leaves first: `none` (no buffer), `fifo`, `lru`, `clock`, `bplru`.
    #[serde(default)]
    pub policy: BufferPolicy,
    /// Memory for data; rounded down to whole pages.
    #[serde(default)]
    pub size: Bytes,
    /// Write-back starts at this share of dirty pages; 0 = at once.
    #[serde(default = "most")]
    pub write_back_high: f64,
    /// Write-back then continues down to this share of dirty pages; if omitted, `write_back_high`.
    #[serde(default, skip_serializing_if = "is_none")]
    pub write_back_low: Option<f64>,
    /// True: a capacitor saves dirty data when the power fails, so a flush has nothing to do.
    #[serde(default)]
    pub protected: bool,
    /// True: data that was read or written back stays in the buffer while there is room. False: the
    /// buffer holds only data on its way to flash.
    #[serde(default)]
    pub cache_reads: bool,
}

impl Default for BufferConfig {
    /// No buffer.
    fn default() -> BufferConfig {
        BufferConfig {
            policy: BufferPolicy::None,
            size: Bytes(0),
            write_back_high: most(),
            write_back_low: None,
            protected: false,
            cache_reads: false,
        }
    }
}

/// Sizes in pages that follow from the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Marks {
    /// Pages in the buffer.
    pub(super) capacity: u32,
    /// Write-back starts at this number of dirty pages; at least 1, so that a dirty buffer never
    /// gets stuck.
    pub(super) high: u32,
    /// It continues above this number.
    pub(super) low: u32,
}

impl BufferConfig {
    /// Checks the numbers; `page_bytes` is the size of a page, `logical_pages` how many there are.
    pub(super) fn marks(&self, page_bytes: u32, logical_pages: u32) -> Result<Marks, ConfigError> {
        let pages = self.size.0 / u64::from(page_bytes.max(1));
        if pages == 0 {
            return Err(ConfigError::new(
                "buffer.size",
                format!("{} is less than one page of {page_bytes} B", self.size),
                "use a size such as \"64MiB\", or set policy = \"none\"",
            ));
        }
        let low = self.write_back_low.unwrap_or(self.write_back_high);
        for (key, share) in [("write_back_high", self.write_back_high), ("write_back_low", low)] {
            let help = "use a share of the buffer's pages, such as 0.9";
            ConfigError::within(format!("buffer.{key}"), share, 0.0..=1.0, help)?;
        }
        if low > self.write_back_high {
            return Err(ConfigError::new(
                "buffer.write_back_low",
                format!("{low} is above buffer.write_back_high, {}", self.write_back_high),
                "use a share at or below buffer.write_back_high",
            ));
        }
        // More than the device has would never be used.
        let capacity = pages.min(u64::from(logical_pages.max(1))) as u32;
        let of_capacity = |share: f64| (share * f64::from(capacity)) as u32;
        let high = of_capacity(self.write_back_high).max(1);
        Ok(Marks { capacity, high, low: of_capacity(low).min(high - 1) })
    }
}
