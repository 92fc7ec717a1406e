//! The SSD as a kind of device.

use ssdyno_block::ConfigError;
use ssdyno_device::{Device, DeviceConfig};

use crate::{Config, Ssd};

impl DeviceConfig for Config {
    const NAME: &'static str = "ssd";
    const TABLE: &'static str = "flash";
    const WHAT: &'static str = "an SSD";

    fn build(&self, seed: u64) -> Result<Box<dyn Device>, ConfigError> {
        Ok(Box::new(Ssd::fresh(self, seed)?))
    }

    ssdyno_device::common_tables!();
}
