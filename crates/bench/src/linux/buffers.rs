//! Memory that requests read into and write from.

use ssdyno_block::{Op, Request};

use crate::content::Content;

/// The largest alignment that O_DIRECT needs.
const ALIGNMENT: usize = 4096;

/// Memory of the slots in all, at most. Requests that do not fit their slot share one place.
// A load of 32768 requests of 1 MiB would need 32 GiB. Slots that do not fit share buffers: for
// reads this is safe, because nothing uses the data.
const MOST_BYTES: usize = 1 << 30;

/// A place for the data of each slot.
///
/// What is read is not looked at, so reads that are longer than their slot's place share one. Each write gets new data,
/// whatever was read before: a slot has one buffer for reads and another for writes.
#[derive(Debug)]
pub(crate) struct Buffers {
    area: Aligned,
    stride: usize,
    /// Where in the area the places to write from begin: behind those to read into.
    written_from: usize,
    /// Buffers that long reads share, and those that long writes share if there is no room for more.
    shared: [Vec<Aligned>; 2],
    /// Places of slots whose writes are long, and their bytes in all.
    long: Vec<Option<Aligned>>,
    long_bytes: usize,
    /// `None` where nothing is written.
    content: Option<Content>,
}

impl Buffers {
    /// For `slots` requests of up to `length_bytes`; writes carry `content`, if there are any.
    pub(crate) fn new(slots: u32, length_bytes: u32, mut content: Option<Content>) -> Buffers {
        let slots = slots.max(1) as usize;
        // Reading and writing have separate places. In one place a write would carry what a read
        // left there: after a trial on an empty device all writes were zeroes.
        let places = if content.is_some() { 2 * slots } else { slots };
        let most = (MOST_BYTES / places).max(ALIGNMENT);
        let stride = (length_bytes as usize).next_multiple_of(ALIGNMENT).min(most);
        let mut area = Aligned::new(stride * places);
        let written_from = stride * (places - slots);
        if let Some(content) = &mut content {
            area.bytes()[stride * slots..].chunks_mut(stride).for_each(|place| content.fill(place));
        }
        let long = (0..slots).map(|_| None).collect();
        let shared = [Vec::new(), Vec::new()];
        Buffers { area, stride, written_from, shared, long, long_bytes: 0, content }
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
        let (length, slot) = (request.length_bytes as usize, slot as usize);
        let written = request.op == Op::Write;
        // Such requests are rare and not registered. The memory of a slot is that of the usual
        // request and not of the longest.
        if length > self.stride {
            return (self.long_place(slot, length, written), false);
        }
        let half = if written { self.written_from } else { 0 };
        let first = half + slot * self.stride;
        let place = &mut self.area.bytes()[first..first + length];
        if written && let Some(content) = self.content.as_mut().filter(|content| content.refills())
        {
            content.fill(place);
        }
        (place, true)
    }

    /// The first `length` bytes of the place that the write in `slot` was given, as they are.
    pub(crate) fn written(&self, slot: u32, length: usize) -> &[u8] {
        let slot = slot as usize;
        if length <= self.stride {
            let first = self.written_from + slot * self.stride;
            return &self.area.all()[first..first + length];
        }
        let own = self.long[slot].as_ref().filter(|place| place.length >= length);
        let shared = || self.shared[1].iter().find(|place| place.length >= length);
        own.or_else(shared).map_or(&[], |place| &place.all()[..length])
    }

    /// A place for a request that is longer than those of the area.
    #[cold]
    fn long_place(&mut self, slot: usize, length: usize, written: bool) -> &mut [u8] {
        let before = self.long[slot].as_ref().map_or(0, |place| place.length);
        let room = self.long_bytes - before + length <= MOST_BYTES;
        if !written || !room && before < length {
            return self.shared_place(length, written);
        }
        if before < length {
            // The slot has no other request under way.
            self.long_bytes += length - before;
            self.long[slot] = Some(filled(length, self.content.as_mut()));
        }
        let Some(place) = &mut self.long[slot] else { unreachable!("it was made above") };
        let bytes = &mut place.bytes()[..length];
        if let Some(content) = self.content.as_mut().filter(|content| content.refills()) {
            content.fill(bytes);
        }
        bytes
    }

    /// Smaller shared places are kept: requests may still be using them.
    fn shared_place(&mut self, length: usize, written: bool) -> &mut [u8] {
        let content = self.content.as_mut().filter(|_| written);
        let shared = &mut self.shared[usize::from(written)];
        let fits = shared.iter().position(|place| place.length >= length);
        let index = fits.unwrap_or_else(|| {
            let most = shared.iter().map(|place| place.length).max().unwrap_or(0);
            shared.push(filled(length.max(2 * most), content));
            shared.len() - 1
        });
        &mut shared[index].bytes()[..length]
    }
}

/// A place with data of its own, if it is for writes.
fn filled(length: usize, content: Option<&mut Content>) -> Aligned {
    let mut place = Aligned::new(length);
    if let Some(content) = content {
        content.fill(place.bytes());
    }
    place
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
    fn all(&self) -> &[u8] {
        &self.bytes[self.first..self.first + self.length]
    }

    #[inline]
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.first..self.first + self.length]
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_workload::WriteData;

    use super::*;

    fn content() -> Option<Content> {
        Some(Content::new(&WriteData::default(), 1))
    }

    #[test]
    fn places_are_aligned_and_apart() {
        let mut buffers = Buffers::new(3, 1000, content());
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

    /// A mix reads: a device without data would then be written with zeros.
    #[test]
    fn what_was_read_is_not_written() {
        for length in [4096, 1 << 20] {
            let mut buffers = Buffers::new(4, 4096, content());
            for slot in 0..4 {
                buffers.place(slot, &Request::read(0, length)).0.fill(0);
                let (place, _) = buffers.place(slot, &Request::write(0, length));
                let sectors = place.chunks(512).map(|sector| sector.iter().any(|byte| *byte != 0));
                assert!(sectors.into_iter().all(|filled| filled), "{slot} {length}");
                let place = place.to_vec();
                assert_eq!(buffers.written(slot, length as usize), place, "as it was given");
            }
        }
    }

    /// In the area and beyond it; without refilling a slot keeps what it has.
    #[test]
    fn each_write_has_data_of_its_own() {
        for (length, refill) in [(4096, true), (1 << 20, true), (4096, false), (1 << 20, false)] {
            let buffer = WriteData { refill, ..WriteData::default() };
            let mut buffers = Buffers::new(4, 4096, Some(Content::new(&buffer, 1)));
            let mut seen = std::collections::HashSet::new();
            for slot in (0..4).chain(0..4) {
                seen.insert(buffers.place(slot, &Request::write(0, length)).0.to_vec());
            }
            assert_eq!(seen.len(), if refill { 8 } else { 4 }, "{length}");
        }
    }

    #[test]
    fn long_requests_share_and_stay() {
        let mut buffers = Buffers::new(2, 4096, None);
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
