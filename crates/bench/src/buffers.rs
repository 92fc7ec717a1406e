//! Memory that requests read into and write from.

use ssdyno_block::{Op, Request};

/// What O_DIRECT needs at most.
const ALIGNMENT: usize = 4096;

/// Memory of the slots in all, at most. Requests that do not fit their slot share one place.
const MOST_BYTES: usize = 1 << 30;

/// A place for the data of each slot.
///
/// Data is not looked at, so a request that is longer than its slot's place uses one that all
/// such requests share. What is written is incompressible, whatever was read before: a slot has one
/// place to read into and another one to write from.
#[derive(Debug)]
pub(crate) struct Buffers {
    area: Aligned,
    stride: usize,
    /// Where in the area the places to write from begin: behind those to read into.
    written_from: usize,
    /// Places for reads and for writes.
    shared: [Vec<Aligned>; 2],
}

impl Buffers {
    /// For `slots` requests of up to `length_bytes`; filled where something is to be written.
    pub(crate) fn new(slots: u32, length_bytes: u32, writable: bool) -> Buffers {
        let slots = slots.max(1) as usize;
        let places = if writable { 2 * slots } else { slots };
        let most = (MOST_BYTES / places).max(ALIGNMENT);
        let stride = (length_bytes as usize).next_multiple_of(ALIGNMENT).min(most);
        let mut area = Aligned::new(stride * places);
        let written_from = stride * (places - slots);
        fill(&mut area.bytes()[stride * slots..]);
        Buffers { area, stride, written_from, shared: [Vec::new(), Vec::new()] }
    }

    /// The memory that nearly all requests use: what an engine may register.
    pub(crate) fn registrable(&mut self) -> (*mut u8, usize) {
        let area = self.area.bytes();
        (area.as_mut_ptr(), area.len())
    }

    /// The place of `request` in `slot`, and whether it lies in the registrable memory. It stays
    /// where it is until the buffers are dropped.
    #[inline]
    pub(crate) fn place(&mut self, slot: u32, request: &Request) -> (&mut [u8], bool) {
        let length = request.length_bytes as usize;
        if length <= self.stride {
            let half = if request.op == Op::Write { self.written_from } else { 0 };
            let first = half + slot as usize * self.stride;
            (&mut self.area.bytes()[first..first + length], true)
        } else {
            (self.shared_place(length, request.op == Op::Write), false)
        }
    }

    /// Smaller shared places are kept: requests may still be using them.
    #[cold]
    fn shared_place(&mut self, length: usize, written: bool) -> &mut [u8] {
        let shared = &mut self.shared[usize::from(written)];
        let fits = shared.iter().position(|place| place.length >= length);
        let index = fits.unwrap_or_else(|| {
            let most = shared.iter().map(|place| place.length).max().unwrap_or(0);
            let mut place = Aligned::new(length.max(2 * most));
            if written {
                fill(place.bytes());
            }
            shared.push(place);
            shared.len() - 1
        });
        &mut shared[index].bytes()[..length]
    }
}

/// Bytes that begin at a multiple of [`ALIGNMENT`].
#[derive(Debug)]
struct Aligned {
    bytes: Vec<u8>,
    first: usize,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Aligned {
        let bytes = vec![0u8; length + ALIGNMENT];
        let first = bytes.as_ptr().align_offset(ALIGNMENT);
        Aligned { bytes, first, length }
    }

    #[inline]
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.first..self.first + self.length]
    }
}

/// xorshift64: what no device can compress, from a fixed seed.
fn fill(bytes: &mut [u8]) {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    for word in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_aligned_and_apart() {
        let mut buffers = Buffers::new(3, 1000, true);
        let mut ends = Vec::new();
        for request in [Request::read(0, 1024), Request::write(0, 1024)] {
            for slot in 0..3 {
                let (place, own) = buffers.place(slot, &request);
                assert!(own && place.len() == 1024);
                assert_eq!(place.as_ptr().align_offset(ALIGNMENT), 0);
                ends.push(place.as_ptr_range());
            }
        }
        assert!(ends.windows(2).all(|two| two[0].end <= two[1].start));
        assert!(buffers.registrable().1 >= 6 * ALIGNMENT);
    }

    /// A trial before the run reads, and so does a mix: a device without data would then be written with
    /// zeros.
    #[test]
    fn what_was_read_is_not_written() {
        for length in [4096, 1 << 20] {
            let mut buffers = Buffers::new(4, 4096, true);
            for slot in 0..4 {
                buffers.place(slot, &Request::read(0, length)).0.fill(0);
                let (place, _) = buffers.place(slot, &Request::write(0, length));
                let sectors = place.chunks(512).map(|sector| sector.iter().any(|byte| *byte != 0));
                assert!(sectors.into_iter().all(|filled| filled), "{slot} {length}");
            }
        }
    }

    #[test]
    fn long_requests_share_and_stay() {
        let mut buffers = Buffers::new(2, 4096, false);
        let place = |buffers: &mut Buffers, length| {
            let (place, own) = buffers.place(0, &Request::read(0, length));
            assert!(!own && place.len() == length as usize);
            place.as_ptr()
        };
        let first = place(&mut buffers, 8192);
        assert_ne!(place(&mut buffers, 1 << 20), first);
        assert_eq!(place(&mut buffers, 8192), first, "the smaller place is still there");
    }
}
