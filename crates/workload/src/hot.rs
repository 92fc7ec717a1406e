//! The part of a range that many requests go to.

use crate::generator::zipf::Zipf;
use crate::{AddressPattern, Pattern, WorkloadConfig};

/// A part of a range whose places are about equally likely, and the requests that go to it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HotPart {
    /// Share of the bytes of the range, 0 to 1.
    pub space: f64,
    /// Share of the requests, 0 to 1.
    pub access: f64,
}

impl HotPart {
    /// The most popular of `slots` places, whose popularity has the exponent `theta`, that half of the requests go to.
    pub(crate) fn of_zipf(slots: u64, theta: f64) -> HotPart {
        let slots = slots.max(1);
        let hot = Zipf::new(slots, theta).median_rank();
        HotPart { space: hot as f64 / slots as f64, access: 0.5 }
    }
}

impl AddressPattern {
    /// The hot part of the pattern with hot and cold addresses.
    pub fn hot(&self) -> HotPart {
        HotPart { space: self.hot_space_percent / 100.0, access: self.hot_access_percent / 100.0 }
    }
}

impl WorkloadConfig {
    /// The hot part of the range of `length_bytes` that its reads go to; `None` if all parts of the range are alike, or if
    /// some requests continue the previous one.
    pub fn hot_part(&self, length_bytes: u64) -> Option<HotPart> {
        if self.sequential_percent.is_some_and(|percent| percent > 0.0) {
            return None;
        }
        let address = &self.address;
        let alignment = self.resolved().alignment.map_or(1, |alignment| alignment.0).max(1);
        match address.pattern {
            Pattern::Zipf => Some(HotPart::of_zipf(length_bytes / alignment, address.theta)),
            Pattern::HotCold => Some(address.hot()),
            Pattern::Sequential | Pattern::Random | Pattern::RandomOnce => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str) -> Option<HotPart> {
        let text = format!("block_size = \"4KiB\"\naddress = {{ {address} }}\n");
        WorkloadConfig::from_toml(&text).unwrap().hot_part(3 * 4096)
    }

    /// Of three places with the weights 1, 1/2 and 1/3, the first one has 6 of 11 requests.
    #[test]
    fn a_hot_part_has_its_share_of_the_requests() {
        assert_eq!(of("pattern = \"random\""), None);
        let hot = HotPart { space: 0.2, access: 0.8 };
        assert_eq!(of("pattern = \"hot-cold\""), Some(hot));
        let half = HotPart { space: 1.0 / 3.0, access: 0.5 };
        assert_eq!(of("pattern = \"zipf\", theta = 1.0"), Some(half));
    }
}
