//! Sizes and addresses.
//!
//! Dies, planes, blocks and pages are numbered through the whole device, channel by channel:
//! die = (channel * chips + chip) * dies_per_chip + die in chip, and so on down. A page number
//! fits in 32 bits; [`Config::geometry`](crate::FlashConfig::geometry) refuses what does not.

/// Division by a number that is known only at run time, without a divide instruction where it is
/// a power of two (it nearly always is).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Divisor {
    by: u32,
    shift: Option<u32>,
}

impl Divisor {
    /// Divides by `by`, at least 1.
    pub fn new(by: u32) -> Divisor {
        let by = by.max(1);
        // A divide takes tens of cycles, and a simulated request divides several times. Blocks,
        // planes and pages are nearly always powers of two, for which a shift does the same.
        Divisor { by, shift: by.is_power_of_two().then(|| by.trailing_zeros()) }
    }
    /// `n / by`
    #[inline]
    pub fn quotient(self, n: u32) -> u32 {
        match self.shift {
            Some(shift) => n >> shift,
            None => n / self.by,
        }
    }
    /// `n % by`
    #[inline]
    pub fn remainder(self, n: u32) -> u32 {
        match self.shift {
            Some(_) => n & (self.by - 1),
            None => n % self.by,
        }
    }
    /// The divisor itself.
    #[inline]
    pub fn get(self) -> u32 {
        self.by
    }
}

/// How the flash is organised. Made by [`Config::geometry`](crate::FlashConfig::geometry).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Channels (buses) of the controller.
    pub channels: u32,
    /// Chips (packages) on each channel.
    pub chips_per_channel: u32,
    /// Dies in a chip; each executes one operation at a time.
    pub dies_per_chip: u32,
    /// Planes in a die; they may join in one operation.
    pub planes_per_die: u32,
    /// Blocks in a plane.
    pub blocks_per_plane: u32,
    /// Pages in a block.
    pub pages_per_block: Divisor,
    /// Data bytes in a page.
    pub page_bytes: u32,
}

impl Geometry {
    /// A device with one plane of `blocks` blocks, which are as here.
    pub fn of_one_plane(&self, blocks: u32) -> Geometry {
        Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: blocks,
            ..*self
        }
    }
    /// Dies in the device.
    pub fn dies(&self) -> u32 {
        self.channels * self.chips_per_channel * self.dies_per_chip
    }
    /// Planes in the device.
    pub fn planes(&self) -> u32 {
        self.dies() * self.planes_per_die
    }
    /// Blocks in the device.
    pub fn blocks(&self) -> u32 {
        self.planes() * self.blocks_per_plane
    }
    /// Pages in the device.
    pub fn pages(&self) -> u32 {
        self.blocks() * self.pages_per_block.get()
    }
    /// Raw bytes.
    pub fn capacity_bytes(&self) -> u64 {
        u64::from(self.pages()) * u64::from(self.page_bytes)
    }
    /// The die that plane `plane` belongs to.
    pub fn die_of_plane(&self, plane: u32) -> u32 {
        plane / self.planes_per_die
    }
    /// The channel that die `die` hangs on.
    pub fn channel_of_die(&self, die: u32) -> u32 {
        die / (self.chips_per_channel * self.dies_per_chip)
    }
    /// The block that page `page` is in.
    #[inline]
    pub fn block_of_page(&self, page: u32) -> u32 {
        self.pages_per_block.quotient(page)
    }
    /// First page of block `block`.
    #[inline]
    pub fn first_page(&self, block: u32) -> u32 {
        block * self.pages_per_block.get()
    }
}

#[cfg(test)]
mod tests {
    use super::Divisor;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divides(by in 1u32.., n: u32) {
            let divisor = Divisor::new(by);
            prop_assert_eq!(divisor.quotient(n), n / by);
            prop_assert_eq!(divisor.remainder(n), n % by);
        }
    }
}
