//! Namespaces: parts of the device with blocks of their own size (S1-43).
//!
//! Each is one stretch of the device; one that would fit only in pieces is refused.

use ssdyno_block::ConfigError;
use ssdyno_spec::nvme::{DatasetRange, NvmeStatus};

use crate::answer::Answer;
use ssdyno_device::nvme::NvmeControllerConfig;

/// Namespaces start at multiples of this: no flash page belongs to two.
// Deallocating a namespace must not touch pages of its neighbour. 1 MiB is the largest page of
// flash that a device file can have.
const GRANULE_BYTES: u64 = 1 << 20;
/// Block formats: 2^shift bytes, without metadata.
pub(crate) const FORMAT_SHIFTS: [u8; 2] = [9, 12];
/// Hints that are kept of a namespace.
const HINTS_MAX: usize = 256;
/// Ranges of the LBA range type feature: 64 of 64 bytes.
pub(crate) const RANGE_TYPES_BYTES: usize = 4096;

/// A namespace.
#[derive(Clone, Debug)]
pub(crate) struct Namespace {
    pub(crate) start_bytes: u64,
    pub(crate) blocks: u64,
    /// A block has 2^shift bytes.
    pub(crate) shift: u8,
    pub(crate) attached: bool,
    /// Never used for another namespace of the device.
    pub(crate) unique: u64,
    /// The error recovery feature.
    pub(crate) error_recovery: u32,
    /// The LBA range type feature: number of ranges less one, and the ranges.
    pub(crate) range_types: Option<(u32, Box<[u8]>)>,
    /// The hints of Dataset Management on use.
    pub(crate) hints: Vec<DatasetRange>,
}

impl Namespace {
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks << self.shift
    }
    /// The part of the device that it takes.
    fn end_bytes(&self) -> u64 {
        (self.start_bytes + self.bytes()).next_multiple_of(GRANULE_BYTES)
    }
}

/// All namespaces of the subsystem.
#[derive(Clone, Debug)]
pub(crate) struct Namespaces {
    /// By identifier, which is the place plus 1.
    list: Vec<Option<Namespace>>,
    pub(crate) capacity_bytes: u64,
    /// The least shift of a block: that of the device's sector.
    shift_min: u8,
    created: u64,
}

impl Namespaces {
    pub(crate) fn new(
        config: &NvmeControllerConfig,
        capacity_bytes: u64,
        sector_bytes: u32,
    ) -> Result<Namespaces, ConfigError> {
        let list = vec![None; config.namespaces_max as usize];
        let shift_min = sector_bytes.trailing_zeros() as u8;
        let mut namespaces = Namespaces { list, capacity_bytes, shift_min, created: 0 };
        if namespaces.formats().next().is_none() {
            return Err(ConfigError::new(
                "nvme",
                format!(
                    "the device has sectors of {sector_bytes} B, and a block has 4 KiB at most"
                ),
                "choose a device with sectors of 512 B or 4 KiB",
            ));
        }
        for wanted in &config.namespaces {
            let shift = wanted.block_size.0.trailing_zeros() as u8;
            if wanted.block_size.0 < u64::from(sector_bytes) {
                return Err(ConfigError::new(
                    "nvme.namespaces",
                    format!(
                        "a block of {} is smaller than the device's sector of {sector_bytes} B",
                        wanted.block_size
                    ),
                    "set block_size = \"4KiB\"",
                ));
            }
            if ![512, 4096].contains(&wanted.block_size.0) {
                return Err(ConfigError::new(
                    "nvme.namespaces",
                    format!("a block size of {} is not supported", wanted.block_size),
                    "set block_size = \"512B\" or \"4KiB\"",
                ));
            }
            let left = namespaces.largest_gap().1;
            let blocks = wanted.size.map_or(left, |size| size.0) >> shift;
            let id = namespaces.create(blocks, shift).map_err(|_| {
                ConfigError::new(
                    "nvme.namespaces",
                    format!(
                        "{blocks} blocks: the size is 0 or does not fit into the {left} bytes left"
                    ),
                    "use sizes that fit into the device together",
                )
            })?;
            if let Some(namespace) = namespaces.get_mut(id) {
                namespace.attached = true;
            }
        }
        Ok(namespaces)
    }

    /// Places and shifts of the block formats that the device can have.
    pub(crate) fn formats(&self) -> impl Iterator<Item = (usize, u8)> {
        let shift_min = self.shift_min;
        FORMAT_SHIFTS.into_iter().enumerate().filter(move |(_, shift)| *shift >= shift_min)
    }
    /// The shift of block format `index`; `None` where it is not offered.
    pub(crate) fn format(&self, index: usize) -> Option<u8> {
        self.formats().find(|(place, _)| *place == index).map(|(_, shift)| shift)
    }
    pub(crate) fn get(&self, id: u32) -> Option<&Namespace> {
        self.list.get((id as usize).wrapping_sub(1))?.as_ref()
    }
    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Namespace> {
        self.list.get_mut((id as usize).wrapping_sub(1))?.as_mut()
    }
    /// The namespace if it is attached to the controller.
    #[inline]
    pub(crate) fn active(&self, id: u32) -> Option<&Namespace> {
        self.get(id).filter(|namespace| namespace.attached)
    }
    /// The namespace that a command is for (base 2.0c, clause 3.2.1).
    ///
    /// # Errors
    /// See [`Namespaces::refusal`].
    #[inline]
    pub(crate) fn addressed(&self, id: u32) -> Answer<&Namespace> {
        self.active(id).ok_or_else(|| self.refusal(id))
    }
    /// The status of a command for `id` if no namespace has this identifier: an impossible identifier is invalid; an
    /// unused one is an invalid field, as is the identifier for all namespaces in a command for one namespace (base
    /// 2.0c, figure 87).
    #[cold]
    pub(crate) fn refusal(&self, id: u32) -> NvmeStatus {
        let valid = (1..=self.count_max()).contains(&id) || id == u32::MAX;
        if valid { NvmeStatus::INVALID_FIELD } else { NvmeStatus::INVALID_NAMESPACE }
            .with_do_not_retry()
    }
    /// Identifiers above `above`, attached or all.
    pub(crate) fn ids(&self, above: u32, all: bool) -> impl Iterator<Item = u32> + '_ {
        let wanted = move |id: &u32| self.get(*id).is_some_and(|ns| all || ns.attached);
        (1..=self.list.len() as u32).filter(move |id| *id > above).filter(wanted)
    }
    /// The largest identifier that there can be.
    pub(crate) fn count_max(&self) -> u32 {
        self.list.len() as u32
    }

    /// Stretches of the device that no namespace has: start and length.
    fn gaps(&self) -> Vec<(u64, u64)> {
        let mut taken: Vec<(u64, u64)> =
            self.list.iter().flatten().map(|ns| (ns.start_bytes, ns.end_bytes())).collect();
        taken.sort_unstable();
        taken.push((self.capacity_bytes, self.capacity_bytes));
        let mut end = 0;
        let mut gaps = Vec::new();
        for (start, next) in taken {
            if start > end {
                gaps.push((end, start - end));
            }
            // The end of a namespace is rounded up to the granule and may lie beyond the device.
            // The last entry of the list is the end of the device, and no gap follows it.
            end = end.max(next);
        }
        gaps
    }
    fn largest_gap(&self) -> (u64, u64) {
        self.gaps().into_iter().max_by_key(|(_, bytes)| *bytes).unwrap_or((0, 0))
    }
    /// Bytes that no namespace has.
    pub(crate) fn unallocated_bytes(&self) -> u64 {
        self.gaps().iter().map(|(_, bytes)| bytes).sum()
    }

    /// A new namespace, not attached.
    ///
    /// # Errors
    /// No stretch of the device is long enough; no identifier is left; no blocks.
    pub(crate) fn create(&mut self, blocks: u64, shift: u8) -> Answer<u32> {
        let bytes = blocks.saturating_mul(1 << shift);
        if blocks == 0 {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        let free = self.list.iter().position(Option::is_none);
        let place = free.ok_or(NvmeStatus::NAMESPACE_ID_UNAVAILABLE.with_do_not_retry())?;
        let gap = self.gaps().into_iter().find(|(_, length)| *length >= bytes);
        let full = NvmeStatus::NAMESPACE_INSUFFICIENT_CAPACITY.with_do_not_retry();
        let (start_bytes, _) = gap.ok_or(full)?;
        // The number is part of EUI64 and NGUID. It is never used again, so a host can distinguish
        // a new namespace with an old identifier from the deleted namespace.
        self.created += 1;
        self.list[place] = Some(Namespace {
            start_bytes,
            blocks,
            shift,
            attached: false,
            unique: self.created,
            error_recovery: 0,
            range_types: None,
            hints: Vec::new(),
        });
        Ok(place as u32 + 1)
    }

    pub(crate) fn delete(&mut self, id: u32) -> Option<Namespace> {
        self.list.get_mut((id as usize).wrapping_sub(1))?.take()
    }

    /// Keeps what Dataset Management says about use of `ranges`.
    pub(crate) fn keep_hints(&mut self, id: u32, ranges: &[DatasetRange]) {
        let Some(namespace) = self.get_mut(id) else { return };
        let said = ranges.iter().filter(|range| range.attributes.get() != 0);
        namespace.hints.extend(said);
        // A host may send hints forever. The oldest are dropped, so memory stays bounded, and
        // no model acts on them (S1-44).
        let excess = namespace.hints.len().saturating_sub(HINTS_MAX);
        namespace.hints.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_take_what_is_free() {
        let config = NvmeControllerConfig {
            namespaces: Vec::new(),
            namespaces_max: 3,
            ..Default::default()
        };
        let mut all = Namespaces::new(&config, 10 << 20, 512).unwrap();
        assert_eq!(all.create(4096, 9), Ok(1));
        assert_eq!(all.create(1025, 12), Ok(2));
        assert_eq!((all.get(2).unwrap().start_bytes, all.unallocated_bytes()), (2 << 20, 3 << 20));
        let full = NvmeStatus::NAMESPACE_INSUFFICIENT_CAPACITY.with_do_not_retry();
        assert_eq!(all.create(4 << 20, 9), Err(full));
        assert!(all.delete(1).is_some() && all.delete(1).is_none() && all.delete(0).is_none());
        // 2 MiB at the start and 3 MiB at the end are free, but not 4 MiB in a row.
        assert_eq!(all.create(8192, 9), Err(full));
        assert_eq!(all.create(6144, 9), Ok(1));
        assert_eq!(all.get(1).unwrap().start_bytes, 7 << 20);
        assert_eq!(all.create(1, 9), Ok(3));
        assert_eq!(all.create(1, 9), Err(NvmeStatus::NAMESPACE_ID_UNAVAILABLE.with_do_not_retry()));
        assert_eq!(all.ids(1, true).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(all.ids(0, false).count(), 0);
    }
}
