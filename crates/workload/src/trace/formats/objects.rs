//! Objects as places on a target.

use super::super::number::Fault;
use super::super::options::ObjectIds;

/// Objects of [`ObjectIds::Hash`] begin on a border of this.
const BORDER: u64 = 4096;

/// Gives each object its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Objects {
    ids: ObjectIds,
    capacity_bytes: u64,
}

impl Objects {
    pub(crate) fn new(ids: ObjectIds, capacity_bytes: u64) -> Objects {
        Objects { ids, capacity_bytes }
    }

    /// First byte of the object `id` of `length_bytes`.
    pub(super) fn place(self, id: u64, length_bytes: u64) -> Result<u64, Fault> {
        match self.ids {
            ObjectIds::Byte => Ok(id),
            ObjectIds::Sector => id.checked_mul(512).ok_or_else(|| {
                let what = format!("the object {id} cannot be a sector number: it is too large");
                Fault::new(what, "set the meaning of objects: `trace.ids=byte` or `trace.ids=hash`")
            }),
            ObjectIds::Hash => {
                // Names of objects can be consecutive numbers. The mix spreads them; the remainder
                // alone would lay them side by side and make the load sequential.
                let at = mix(id) % (self.capacity_bytes / BORDER).max(1) * BORDER;
                // The last ones move forward, so that they end on the target.
                let room = self.capacity_bytes.saturating_sub(length_bytes) / BORDER * BORDER;
                Ok(at.min(room))
            }
        }
    }

    /// The treatment of the names.
    pub(super) fn note(self) -> &'static str {
        match self.ids {
            ObjectIds::Sector => {
                "objects were read as sectors of 512 B (`trace.ids=sector`; alternatives: byte, hash)"
            }
            ObjectIds::Byte => "objects were read as byte addresses (`trace.ids=byte`)",
            ObjectIds::Hash => {
                "a hash of its name decides the address of each object, a multiple of 4 KiB \
                 (`trace.ids=hash`)"
            }
        }
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014): a bijection whose bits are even.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashed_objects_fill_the_target_evenly() {
        let capacity = 1 << 30;
        let objects = Objects::new(ObjectIds::Hash, capacity);
        let mut eighths = [0_u32; 8];
        for id in 0..80_000 {
            let at = objects.place(id, 8192).unwrap();
            assert!(at.is_multiple_of(BORDER) && at + 8192 <= capacity);
            eighths[(at * 8 / capacity) as usize] += 1;
        }
        // Binomial: 10000 each, 5 standard deviations are 468.
        assert!(eighths.iter().all(|&count| count.abs_diff(10_000) < 468), "{eighths:?}");
        assert_eq!(objects.place(7, 4096).unwrap(), objects.place(7, 512).unwrap());
        assert_eq!(objects.place(7, 2 * capacity).unwrap(), 0, "it fits nowhere");
    }

    #[test]
    fn names_of_block_devices_are_addresses() {
        let place = |ids, id| Objects::new(ids, 1 << 20).place(id, 512);
        assert_eq!(place(ObjectIds::Sector, 8), Ok(4096));
        assert_eq!(place(ObjectIds::Byte, 8), Ok(8));
        assert!(place(ObjectIds::Sector, u64::MAX / 512 + 1).unwrap_err().help.contains("hash"));
    }
}
