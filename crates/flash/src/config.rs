//! The `[flash]` table of a device file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Bytes, Span};
use ssdyno_block::{ConfigError, SECTOR_BYTES, Time};

use crate::{Divisor, FlashChannel, FlashTiming, Geometry};

/// Bits in a cell; also the number of page types in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CellType {
    /// One bit.
    #[default]
    Slc,
    /// Two bits.
    Mlc,
    /// Three bits.
    Tlc,
    /// Four bits.
    Qlc,
}

impl CellType {
    /// Bits in a cell.
    pub const fn bits(self) -> usize {
        match self {
            CellType::Slc => 1,
            CellType::Mlc => 2,
            CellType::Tlc => 3,
            CellType::Qlc => 4,
        }
    }
}

/// One time for all pages, or one for each page type from lower to upper (page n of a block has
/// type n modulo the bits in a cell).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a time such as \"25us\", or a list with one time per page type")]
pub enum PerLevel {
    /// One time for all pages.
    One(Span),
    /// One time for each page type, from the lower page to the upper page.
    Each(Vec<Span>),
}

/// Planes of a die that may join in one operation, at most sixteen. When pages are moved through the controller,
/// programs of other data join them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MultiPlane {
    /// One plane at a time.
    Off,
    /// Pages with the same page number in their blocks, one per plane (ONFI 4.2, clause 5.7).
    SamePage,
    /// Any pages, one per plane (independent plane operations of recent parts).
    #[default]
    Any,
}

/// How cleaning moves a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyMode {
    /// Inside the plane, without the bus (ONFI copy-back).
    CopyBack,
    /// Out to the controller, where errors are corrected, and in again.
    #[default]
    Controller,
}

/// Which of the waiting transfers goes next on a channel. A transfer that has begun is never interrupted.
///
/// There are three kinds of transfer. *Commands*: command and address cycles of reads, erases and copies. *Data out*: a
/// page that was read, on its way to the controller. *Data in*: a program's data with its command cycles, or a page
/// that is moved through the controller, out and in again as one transfer. Transfers of the same kind go in the order
/// in which they became ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelOrder {
    /// First come, first served, for all kinds.
    #[default]
    Fcfs,
    /// Commands, then data of either direction.
    CommandsFirst,
    /// Data out, then commands, then data in: the order of MQSim's flash controller.
    DataOutFirst,
    /// Commands, then data out, then data in.
    CommandsThenDataOut,
}

ssdyno_block::defaults! {
    yes: bool = true;
    overtakes: u32 = 64;
    /// tCBSY and tRCBSY, typical: Micron MT29F2G08ABAEA.
    cache_busy: Span = Span(Time::from_us(3));
}

/// The `[flash]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlashConfig {
    /// Channels (buses) of the controller; 1 to 1024.
    pub channels: u32,
    /// Chips (packages) on each channel.
    pub chips_per_channel: u32,
    /// Dies in a chip.
    pub dies_per_chip: u32,
    /// Planes in a die; 1 to 16.
    pub planes_per_die: u32,
    /// Blocks in a plane.
    pub blocks_per_plane: u32,
    /// Pages in a block; up to 16384.
    pub pages_per_block: u32,
    /// Data bytes in a page; a multiple of 512 B.
    pub page_size: Bytes,
    /// Bytes in addition to the data that cross the bus with each page (error correction, metadata).
    #[serde(default)]
    pub spare_size: Bytes,
    /// Bits in a cell.
    #[serde(default)]
    pub cell: CellType,
    /// Array read, tR.
    pub read_time: PerLevel,
    /// Array program, tPROG.
    pub program_time: PerLevel,
    /// Block erase, tBERS.
    pub erase_time: Span,
    /// The bus: bandwidth, time per byte or ONFI mode.
    pub bus: FlashChannel,
    /// Command and address cycles before each operation, on the bus.
    #[serde(default)]
    pub command_time: Span,
    /// Which of the waiting transfers goes next on a channel.
    #[serde(default)]
    pub channel_order: ChannelOrder,
    /// With a `channel_order` other than `fcfs`: maximum number of consecutive transfers that may overtake an earlier
    /// transfer; then the transfer that has waited longest goes. 0 = no limit.
    #[serde(default = "overtakes")]
    pub channel_burst: u32,
    /// Planes of a die that may join in one operation.
    #[serde(default)]
    pub multi_plane: MultiPlane,
    /// True: dies of one chip work at the same time. False: the chip does one operation at a time.
    #[serde(default = "yes")]
    pub die_interleave: bool,
    /// True: reads of the host go before programs and erases that wait on the same die.
    #[serde(default)]
    pub read_priority: bool,
    /// With `read_priority`: maximum number of reads in a row before a waiting program or erase; 0 = no limit.
    #[serde(default)]
    pub read_burst: u32,
    /// With `read_priority`: a program in progress is suspended for reads.
    #[serde(default)]
    pub program_suspend: bool,
    /// With `read_priority`: an erase in progress is suspended for reads.
    #[serde(default)]
    pub erase_suspend: bool,
    /// Time to suspend, and again to resume.
    #[serde(default)]
    pub suspend_time: Span,
    /// True: the next read of a die goes into the page register while the data of the previous read leaves the cache
    /// register (ONFI read cache, 31h and 3Fh).
    #[serde(default)]
    pub cache_read: bool,
    /// With `cache_read`: time to move a page from the page register to the cache register, tRCBSY.
    #[serde(default = "cache_busy")]
    pub cache_read_busy: Span,
    /// True: the data of the next program of a die goes into the cache register while the array executes the previous
    /// program (ONFI page cache program, 15h).
    #[serde(default)]
    pub cache_program: bool,
    /// With `cache_program`: time to move a page from the cache register to the page register, tCBSY.
    #[serde(default = "cache_busy")]
    pub cache_program_busy: Span,
    /// How cleaning moves a page.
    #[serde(default)]
    pub copy: CopyMode,
    /// Program and erase cycles that a block endures on average; if omitted, no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endurance_cycles: Option<u32>,
    /// Spread of the endurance as a share of its mean: the coefficient of variation (0 to 0.3).
    #[serde(default)]
    pub endurance_spread: f64,
    /// Share of blocks that are bad from the factory (0 to 0.1).
    #[serde(default)]
    pub factory_bad: f64,
}

impl FlashConfig {
    /// Checks everything and gives the geometry. Dies of a chip that cannot interleave count as one
    /// die with the planes of all of them.
    pub fn geometry(&self) -> Result<Geometry, ConfigError> {
        let limits = [
            ("channels", self.channels, 1024),
            ("chips_per_channel", self.chips_per_channel, 1024),
            ("dies_per_chip", self.dies_per_chip, 64),
            ("planes_per_die", self.planes_per_die, 16),
            ("blocks_per_plane", self.blocks_per_plane, 1 << 24),
            ("pages_per_block", self.pages_per_block, 1 << 14),
        ];
        for (key, value, most) in limits {
            let help = format!("use a number from 1 to {most}");
            ConfigError::within(format!("flash.{key}"), value, 1..=most, help)?;
        }
        self.check_page_size()?;
        let joined = if self.die_interleave { 1 } else { self.dies_per_chip };
        let planes_per_die = self.planes_per_die * joined;
        // A group holds at most one operation for each plane, and its length and its bit mask
        // are made for 16 planes (`MOST_PLANES`).
        if planes_per_die > 16 {
            return Err(ConfigError::new(
                "flash.die_interleave",
                format!(
                    "a chip without interleaving would work as one die of {planes_per_die} planes"
                ),
                "16 planes are supported: lower flash.dies_per_chip or flash.planes_per_die",
            ));
        }
        // The product may exceed 32 bits by far. The largest number of 32 bits itself is
        // excluded, too: it marks an empty entry in the maps and in the lists.
        let pages: u128 = limits.iter().map(|(_, n, _)| u128::from(*n)).product();
        if pages >= u128::from(u32::MAX) {
            return Err(ConfigError::new(
                "flash.blocks_per_plane",
                format!("the device would have {pages} pages; page numbers have 32 bits"),
                "use larger pages or fewer blocks: fewer than 4 294 967 295 pages in all",
            ));
        }
        Ok(Geometry {
            channels: self.channels,
            chips_per_channel: self.chips_per_channel,
            dies_per_chip: self.dies_per_chip / joined,
            planes_per_die,
            blocks_per_plane: self.blocks_per_plane,
            pages_per_block: Divisor::new(self.pages_per_block),
            page_bytes: self.page_size.0 as u32,
        })
    }

    fn check_page_size(&self) -> Result<(), ConfigError> {
        let size = self.page_size.0;
        if size == 0 || !size.is_multiple_of(512) || size > 1 << 20 {
            return Err(ConfigError::new(
                "flash.page_size",
                format!("{} is not a page size", self.page_size),
                "use a multiple of 512B, at most 1MiB; 4KiB and 16KiB are usual",
            ));
        }
        if self.spare_size.0 > size {
            return Err(ConfigError::new(
                "flash.spare_size",
                format!("{} is more than the page itself", self.spare_size),
                "spare bytes are usually 3 to 15 % of the page",
            ));
        }
        Ok(())
    }

    /// Checks everything and gives the times.
    pub fn timing(&self) -> Result<FlashTiming, ConfigError> {
        let transfer = self.transfer()?;
        for (key, value, most) in [
            ("endurance_spread", self.endurance_spread, 0.3),
            ("factory_bad", self.factory_bad, 0.1),
        ] {
            let help = "use a share, such as 0.02";
            ConfigError::within(format!("flash.{key}"), value, 0.0..=most, help)?;
        }
        Ok(FlashTiming {
            read: self.levels("read_time", &self.read_time)?,
            program: self.levels("program_time", &self.program_time)?,
            levels: Divisor::new(self.cell.bits() as u32),
            erase: within_range("erase_time", self.erase_time)?,
            transfer,
            // Only `geometry` checks the page size. The maximum keeps a page size of 0 from
            // becoming a division by zero here.
            sector_transfer: Time::from_ps(
                transfer.as_ps() * u64::from(SECTOR_BYTES) / self.page_size.0.max(512),
            ),
            command: within_range("command_time", self.command_time)?,
            suspend: within_range("suspend_time", self.suspend_time)?,
            cache_read: within_range("cache_read_busy", self.cache_read_busy)?,
            cache_program: within_range("cache_program_busy", self.cache_program_busy)?,
        })
    }

    /// The time in which a page crosses the bus: a second at most, and a picosecond for each byte at least,
    /// which is the resolution of time.
    fn transfer(&self) -> Result<Time, ConfigError> {
        let bytes = self.page_size.0 + self.spare_size.0;
        let transfer = self.bus.time_for(bytes);
        if (Time::from_ps(bytes)..=Time::from_s(1)).contains(&transfer) {
            return Ok(transfer);
        }
        Err(ConfigError::new(
            "flash.bus",
            format!("{} is outside {bytes}B/s, a page a second, to 1000GB/s", self.bus),
            "use a bus such as \"333MB/s\", \"25ns/B\" or \"onfi-nv-ddr3-12\"",
        ))
    }

    fn levels(&self, key: &str, times: &PerLevel) -> Result<[Time; 4], ConfigError> {
        let bits = self.cell.bits();
        let mut all = [Time::ZERO; 4];
        match times {
            PerLevel::One(time) => all.fill(within_range(key, *time)?),
            PerLevel::Each(each) if each.len() == bits => {
                for (slot, time) in all.iter_mut().zip(each) {
                    *slot = within_range(key, *time)?;
                }
            }
            PerLevel::Each(each) => {
                return Err(ConfigError::new(
                    format!("flash.{key}"),
                    format!("{} times are given for cells of {bits} bits", each.len()),
                    format!("use one time, or {bits}: one for each page type, lower page first"),
                ));
            }
        }
        Ok(all)
    }
}

/// Times above ten seconds are typing errors, and keeping them out keeps arithmetic in range.
fn within_range(key: &str, span: Span) -> Result<Time, ConfigError> {
    let help = "flash operations take microseconds to milliseconds";
    ConfigError::no_longer(format!("flash.{key}"), span, Span(Time::from_s(10)), help)?;
    Ok(span.0)
}
