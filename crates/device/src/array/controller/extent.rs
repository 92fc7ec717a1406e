//! A range of bytes of the array.

use ssdyno_block::Request;

/// Bytes `start` to `end` (exclusive).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Extent {
    pub(super) fn of(request: &Request) -> Extent {
        let start = request.offset_bytes;
        Extent { start, end: start + u64::from(request.length_bytes) }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.end - self.start
    }

    pub(super) fn overlaps(&self, other: &Extent) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The part of it that `other` contains, too.
    pub(super) fn common(&self, other: &Extent) -> Option<Extent> {
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        (start < end).then_some(Extent { start, end })
    }

    /// Appends to `rest` what of it `other` does not have.
    pub(super) fn without(&self, other: &Extent, rest: &mut Vec<Extent>) {
        let before = Extent { start: self.start, end: self.end.min(other.start) };
        let behind = Extent { start: self.start.max(other.end), end: self.end };
        if !self.overlaps(other) {
            rest.push(*self);
            return;
        }
        rest.extend([before, behind].into_iter().filter(|part| part.start < part.end));
    }
}

/// Takes what `taken` has out of every extent of `list`.
pub(super) fn subtract(list: &mut Vec<Extent>, taken: &Extent) {
    if list.iter().any(|extent| extent.overlaps(taken)) {
        let mut rest = Vec::with_capacity(list.len() + 1);
        list.iter().for_each(|extent| extent.without(taken, &mut rest));
        *list = rest;
    }
}
