//! The contents of the file of a ring card.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Bandwidth, Bytes, Span};
use ssdyno_block::{ConfigError, Time};
use ssdyno_ftl::Precondition;
use ssdyno_ftl::buffer::BufferConfig;

use super::tlp::TlpConfig;
use ssdyno_device::faults::FaultConfig;
use ssdyno_device::link::RATES;
use ssdyno_device::{Device, DeviceConfig};

/// The `[card]` table: the microprocessor and its times.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CardConfig {
    /// Maximum number of descriptors in a block: 1 to 1024.
    pub max_block: u32,
    /// Maximum number of descriptors of the next block that the card prefetches (S0-26); 0: no prefetch.
    #[serde(default)]
    pub prefetch: u32,
    /// Number of microprocessors; each works on one command at a time (S0-15: one by one or in parallel).
    #[serde(default = "one")]
    pub processors: u32,
    /// Microprocessor time of a command, read or write (S0-22).
    pub command_time: Span,
    /// Microprocessor time from the doorbell until the fetch of the block is set up.
    pub doorbell_time: Span,
    /// Microprocessor time to set up a return of descriptors and its interrupt.
    pub return_time: Span,
}

fn one() -> u32 {
    1
}

/// The engine that moves descriptors (S0-19).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DescriptorEngine {
    /// The engines of the data.
    #[default]
    Shared,
    /// A separate engine.
    Separate,
}

/// The `[dma]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DmaConfig {
    /// Engines for data: 1 to 64; each moves one page at a time.
    pub engines: u32,
    /// The engine that moves descriptors.
    #[serde(default)]
    pub descriptors: DescriptorEngine,
    /// Time from the start of a transfer to its first packet plus the time to end the transfer.
    pub setup_time: Span,
}

/// The `[media]` table: the storage media (S0-44).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MediaConfig {
    /// DRAM: its controller's bandwidth is the only limit.
    Dram {
        /// Size; a multiple of 4 KiB.
        capacity: Bytes,
        /// Bandwidth of the memory controller, for reads and writes together.
        bandwidth: Bandwidth,
    },
    /// Phase-change memory: no erasing, pages are written in place.
    Pcm {
        /// Size; a multiple of 4 KiB.
        capacity: Bytes,
        /// Number of channels; pages go to the channels in turn, then to their banks.
        channels: u32,
        /// Number of banks of a channel; each works on one page at a time.
        banks_per_channel: u32,
        /// Time to read a page of 4 KiB.
        read_time: Span,
        /// Time to write a page of 4 KiB.
        write_time: Span,
    },
    /// NAND flash behind a translation layer. The tables `[flash]` and `[ftl]` are required, as in the file of an SSD;
    /// `[buffer]` and `[precondition]` are optional.
    Flash,
}

/// The file of a ring card.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RingConfig {
    /// One line about the card, and where its numbers come from.
    #[serde(default)]
    pub description: String,
    /// Microprocessor and blocks.
    pub card: CardConfig,
    /// DMA engines.
    pub dma: DmaConfig,
    /// PCI Express.
    pub link: TlpConfig,
    /// The storage media.
    pub media: MediaConfig,
    /// Geometry, times and rules of the flash; with flash media only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash: Option<ssdyno_flash::FlashConfig>,
    /// Mapping and cleaning; with flash media only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ftl: Option<ssdyno_ftl::FtlConfig>,
    /// Write buffer and read cache before the flash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<BufferConfig>,
    /// Contents of the flash before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition: Option<Precondition>,
    /// Currents and powers.
    pub energy: ssdyno_energy::EnergyConfig,
    /// Faults to inject; if omitted, none.
    #[serde(default, skip_serializing_if = "FaultConfig::is_none")]
    pub faults: FaultConfig,
}

impl DeviceConfig for RingConfig {
    const NAME: &'static str = "card";
    const TABLE: &'static str = "card";
    const WHAT: &'static str = "a ring card";
    const OWN_DRIVER: bool = true;

    fn build(&self, _seed: u64) -> Result<Box<dyn Device>, ConfigError> {
        let help = "leave out --driver: a ring card always uses the ring driver";
        Err(ConfigError::new("card", "a ring card accepts requests from its own driver only", help))
    }

    fn faults(&self) -> &FaultConfig {
        &self.faults
    }
}

ssdyno_block::toml_file!(RingConfig);

impl RingConfig {
    /// Checks what no part checks by itself.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.faults.check()?;
        let CardConfig { max_block, prefetch, processors, .. } = self.card;
        // Two blocks of 1024 and 255 prefetched descriptors need 4096 slots as a power of two.
        // The events name slots with 13 bits, so the limits leave room.
        within("card.max_block", max_block, 1, 1024, "descriptors, such as 32")?;
        within("card.prefetch", prefetch, 0, max_block.min(255), "descriptors, or 0 for none")?;
        within("card.processors", processors, 1, 64, "microprocessors, such as 1")?;
        within("dma.engines", self.dma.engines, 1, 64, "engines, such as 1")?;
        let card = &self.card;
        for (key, span) in [
            ("card.command_time", card.command_time),
            ("card.doorbell_time", card.doorbell_time),
            ("card.return_time", card.return_time),
            ("dma.setup_time", self.dma.setup_time),
        ] {
            let most = Span(Time::from_ms(100));
            ConfigError::no_longer(key, span, most, "firmware and DMA take microseconds")?;
        }
        // Tables without effect would look as if they had one. They are refused, like a medium
        // without its tables. Both mistakes have one message.
        let flash = matches!(self.media, MediaConfig::Flash);
        if flash != self.flash.is_some() || flash != self.ftl.is_some() {
            return Err(ConfigError::new(
                "media.kind",
                "the tables [flash] and [ftl] belong to flash media, which need both",
                "set kind = \"flash\" and both tables, or leave all of them out",
            ));
        }
        match &self.media {
            MediaConfig::Dram { capacity, bandwidth } => {
                let help = "use a bandwidth such as \"6.4GB/s\"";
                ConfigError::within("media.bandwidth", *bandwidth, RATES, help)?;
                whole_pages(*capacity)
            }
            MediaConfig::Pcm { capacity, channels, banks_per_channel, read_time, write_time } => {
                within("media.channels", *channels, 1, 1024, "channels, such as 8")?;
                within("media.banks_per_channel", *banks_per_channel, 1, 1024, "banks")?;
                for (key, span) in [("read_time", read_time), ("write_time", write_time)] {
                    let (key, most) = (format!("media.{key}"), Span(Time::from_s(1)));
                    let help = "use at most 1s; phase-change memory takes less than 1 ms";
                    ConfigError::no_longer(key, *span, most, help)?;
                }
                whole_pages(*capacity)
            }
            MediaConfig::Flash => Ok(()),
        }
    }
}

fn within(key: &str, value: u32, least: u32, most: u32, what: &str) -> Result<(), ConfigError> {
    ConfigError::within(key, value, least..=most, format!("set the number of {what}"))
}

fn whole_pages(capacity: Bytes) -> Result<(), ConfigError> {
    if capacity.0 > 0 && capacity.0.is_multiple_of(4096) && capacity.0 <= 1 << 50 {
        return Ok(());
    }
    let help = "use a multiple of 4KiB, such as \"1GiB\"";
    Err(ConfigError::new(
        "media.capacity",
        format!("{capacity} is not a valid size of a card"),
        help,
    ))
}
