//! The array as a kind of device.

use ssdyno_block::{ConfigError, SECTOR_BYTES};

use super::StripedArray;
use super::config::{ArrayConfig, MemberSpec, key_of};
use crate::{Device, DeviceConfig, DeviceKinds};

impl DeviceConfig for ArrayConfig {
    const NAME: &'static str = "array";
    const TABLE: &'static str = "array";
    const WHAT: &'static str = "an array";

    fn build(&self, seed: u64) -> Result<Box<dyn Device>, ConfigError> {
        Ok(Box::new(StripedArray::new(self, seed)?))
    }

    crate::common_tables!();

    fn sector_bytes(&self) -> u32 {
        self.array.members.iter().map(MemberSpec::sector_bytes).max().unwrap_or(SECTOR_BYTES)
    }

    fn resolve(&mut self, kinds: DeviceKinds) -> Result<(), ConfigError> {
        for (index, member) in self.array.members.iter_mut().enumerate() {
            member.resolve(&key_of(index), kinds)?;
        }
        Ok(())
    }
}
