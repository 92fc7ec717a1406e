//! The hard disk as a kind of device.

use ssdyno_block::ConfigError;
use ssdyno_device::{Device, DeviceConfig};

use crate::{Disk, DiskConfig};

impl DeviceConfig for DiskConfig {
    const NAME: &'static str = "disk";
    const TABLE: &'static str = "disk";
    const WHAT: &'static str = "a hard disk";

    fn build(&self, seed: u64) -> Result<Box<dyn Device>, ConfigError> {
        Ok(Box::new(Disk::new(self, seed)?))
    }

    ssdyno_device::common_tables!();

    fn sector_bytes(&self) -> u32 {
        self.disk.sector.0 as u32
    }
}
