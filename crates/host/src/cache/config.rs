//! The tables `[cache]` and `[file_system]` of a host file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Bytes, Span};
use ssdyno_block::{ConfigError, Time};

use crate::cost::Cost;

/// The `[cache]` table: a page cache between processes and the block layer, with least recently used replacement,
/// read-ahead, and write-back by a kernel thread.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheConfig {
    /// Memory for pages.
    pub size: Bytes,
    /// Size of a page.
    #[serde(default = "page")]
    pub page: Bytes,
    /// Work for each page of a request: lookup, insertion, marking.
    #[serde(default)]
    pub page_cost: Cost,
    /// Size of a read-ahead window. A sequential read fetches two windows: while one is used, the next is read. 0: no
    /// read-ahead.
    #[serde(default)]
    pub read_ahead: Bytes,
    /// Maximum size of a write-back command: adjacent dirty pages are written together.
    #[serde(default = "cluster")]
    pub cluster: Bytes,
    /// Maximum number of write-back commands at the device.
    #[serde(default = "write_depth")]
    pub write_depth: u32,
    /// Background write-back begins when this share of the page cache is dirty, 0 to 1.
    #[serde(default = "background")]
    pub dirty_background: f64,
    /// Maximum share of dirty pages; beyond it writers wait.
    #[serde(default = "limit")]
    pub dirty_limit: f64,
    /// Share of dirty pages at which waiting writers continue; if omitted, the limit itself. A lower share causes
    /// periods in which only old data is written (S4-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_resume: Option<f64>,
    /// Interval at which the kernel looks for old dirty pages.
    #[serde(default = "flush_interval")]
    pub flush_interval: Span,
    /// Age from which a dirty page is old.
    #[serde(default = "expire")]
    pub expire: Span,
    /// A write is complete only when its data and the changed metadata are on the device (mount option `sync`, O_SYNC).
    #[serde(default)]
    pub sync: bool,
}

ssdyno_block::defaults! {
    page: Bytes = Bytes(4096);
    cluster: Bytes = Bytes(128 << 10);
    write_depth: u32 = 32;
    background: f64 = 0.1;
    limit: f64 = 0.2;
    flush_interval: Span = Span(Time::from_s(5));
    expire: Span = Span(Time::from_s(30));
}

/// Journal for changes of metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Journal {
    /// No journal: changes of metadata are dirty pages like others (ext2).
    #[default]
    None,
    /// Metadata only; the data that it refers to is written in place first (ext3, `data=ordered`).
    Ordered,
    /// Metadata and data: all data is written twice (`data=journal`).
    Data,
}

/// The `[file_system]` table: one large file on the device, through the page cache.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSystemConfig {
    /// Work for each request to locate its data.
    #[serde(default)]
    pub request_cost: Cost,
    /// Amount of data that one page of metadata maps. The page must be in the cache before the data is read or written;
    /// a write that changes the page makes it dirty (ext2: an indirect block, 4 MiB with blocks of 4 KiB).
    #[serde(default = "extent")]
    pub extent: Bytes,
    /// Share of writes that change metadata, 0 to 1: writes that allocate blocks or change the times of the file.
    #[serde(default = "always")]
    pub metadata_share: f64,
    /// Mode of the journal.
    #[serde(default)]
    pub journal: Journal,
    /// Interval at which the journal's transaction is committed.
    #[serde(default = "commit")]
    pub commit_interval: Span,
    /// Size of the journal, at the start of the device.
    #[serde(default = "journal_size")]
    pub journal_size: Bytes,
}

ssdyno_block::defaults! {
    extent: Bytes = Bytes(4 << 20);
    always: f64 = 1.0;
    commit: Span = Span(Time::from_s(5));
    journal_size: Bytes = Bytes(32 << 20);
}

pub(crate) fn error(key: &str, problem: &str, help: &str) -> Result<(), ConfigError> {
    Err(ConfigError::new(key, problem, help))
}

/// Checks the `[cache]` table.
pub(crate) fn check_cache(cache: &CacheConfig) -> Result<(), ConfigError> {
    let CacheConfig { size, page, read_ahead, cluster, write_depth, .. } = cache;
    if !page.0.is_power_of_two() || !(512..=1 << 20).contains(&page.0) {
        let help = "use a power of two from \"512B\" to \"1MiB\", such as \"4KiB\"";
        return error("cache.page", "not a page size", help);
    }
    if size.0 / page.0 < 16 || size.0 / page.0 > 1 << 28 {
        let help = "set the memory that the cache may use, such as \"192MiB\"";
        return error("cache.size", "below 16 pages, or above 268435456", help);
    }
    for (key, bytes) in [("cache.read_ahead", read_ahead), ("cache.cluster", cluster)] {
        if bytes.0 > size.0 / 4 || bytes.0 > 1 << 30 || !bytes.0.is_multiple_of(page.0) {
            let help = "use whole pages, at most a quarter of the cache";
            return error(key, "not a multiple of the page, or too much", help);
        }
    }
    if cluster.0 == 0 || *write_depth == 0 || *write_depth > 65_536 {
        let help = "use at least a page, and 1 to 65536 commands";
        return error("cache.write_depth", "write-back would never write", help);
    }
    let (background, limit) = (cache.dirty_background, cache.dirty_limit);
    if !(0.0..=1.0).contains(&background) || !(0.0..=0.95).contains(&limit) || limit <= 0.0 {
        let help = "use shares of the cache such as 0.1 and 0.2; 0.95 is the maximum";
        return error("cache.dirty_limit", "not a share of the cache", help);
    }
    if cache.dirty_resume.is_some_and(|resume| !(background..=limit).contains(&resume)) {
        let help = "use a share between both, or leave it out";
        let problem = "not between cache.dirty_background and cache.dirty_limit";
        return error("cache.dirty_resume", problem, help);
    }
    if background > limit {
        let help = "write-back must begin before writers have to wait";
        return error("cache.dirty_background", "above cache.dirty_limit", help);
    }
    let hour = Time::from_s(3600);
    let interval = cache.flush_interval.0;
    if interval < Time::from_ms(1) || interval > hour || cache.expire.0 > hour {
        let help = "use times such as \"5s\" and \"30s\"";
        return error("cache.flush_interval", "below 1ms, or more than an hour", help);
    }
    Ok(())
}

/// Checks the `[file_system]` table.
pub(crate) fn check_file_system(
    table: &FileSystemConfig,
    cache: Option<&CacheConfig>,
) -> Result<(), ConfigError> {
    let Some(cache) = cache else {
        let help = "add the table [cache], or leave [file_system] out for direct I/O";
        return error("file_system", "needs a page cache", help);
    };
    let page = cache.page.0;
    if table.extent.0 < page || !table.extent.0.is_multiple_of(page) {
        let help = "set the data that one page of metadata maps, such as \"4MiB\"";
        return error("file_system.extent", "not a multiple of the page", help);
    }
    if !(0.0..=1.0).contains(&table.metadata_share) {
        return error("file_system.metadata_share", "outside 0 to 1", "use a share such as 0.1");
    }
    let interval = table.commit_interval.0;
    if interval < Time::from_ms(1) || interval > Time::from_s(3600) {
        let help = "use a time such as \"5s\"";
        return error("file_system.commit_interval", "below 1ms, or more than an hour", help);
    }
    if table.journal_size.0 < 64 * page || !table.journal_size.0.is_multiple_of(page) {
        let help = "use whole pages, at least 64, such as \"32MiB\"";
        return error("file_system.journal_size", "no room for a transaction", help);
    }
    Ok(())
}
