//! The contents of every page, for tests: data follows the operations as they end in time.

use crate::die::Queued;
use crate::{Geometry, OpKind};

use super::FlashArray;

/// The content is unknown, or nothing is expected.
const UNKNOWN: u64 = 0;

/// Contents of pages, and of the operations that wait.
#[derive(Clone, Debug)]
pub(super) struct Shadow {
    content: Vec<u64>,
    /// By place in the slab: the data of a program, and the expected data of a read.
    tags: Vec<u64>,
    /// Tag of the operation that is queued next.
    next: u64,
    /// Reads compared.
    compared: u64,
}

impl FlashArray {
    /// From now on the array keeps a tag for the content of every page and compares what reads
    /// find with what they expect: a check that timing, order, joining, suspension and copies in
    /// flight never let a read see anything but the data that was written. For tests: it works only
    /// in builds with debug assertions, and takes 8 bytes a page.
    pub fn keep_contents(&mut self) {
        let content = vec![UNKNOWN; self.geometry.pages() as usize];
        let shadow = Shadow { content, tags: Vec::new(), next: UNKNOWN, compared: 0 };
        self.shadow = Some(Box::new(shadow));
    }

    /// States that `page` holds `tag`, as after preconditioning; 0 = unknown.
    pub fn set_content(&mut self, page: u32, tag: u64) {
        if let Some(shadow) = &mut self.shadow {
            shadow.content[page as usize] = tag;
        }
    }

    /// The operation that is queued next writes `tag`, or must find it; 0 = not checked.
    pub fn tag_next(&mut self, tag: u64) {
        if let Some(shadow) = &mut self.shadow {
            shadow.next = tag;
        }
    }

    /// Reads whose content was compared so far.
    pub fn contents_compared(&self) -> u64 {
        self.shadow.as_ref().map_or(0, |shadow| shadow.compared)
    }
}

impl Shadow {
    /// An operation was queued at `at` in the slab.
    pub(super) fn queued(&mut self, at: u32) {
        let at = at as usize;
        if self.tags.len() <= at {
            self.tags.resize(at + 1, UNKNOWN);
        }
        self.tags[at] = std::mem::take(&mut self.next);
    }

    /// The array phase of `op`, which was queued at `at`, ended.
    ///
    /// # Panics
    /// If a read finds another content than it expects.
    pub(super) fn ended(&mut self, at: u32, op: &Queued, geometry: &Geometry) {
        let tag = self.tags[at as usize];
        match op.kind {
            OpKind::Read => {
                let found = self.content[op.page as usize];
                if tag == UNKNOWN {
                    return;
                }
                assert!(
                    found == tag,
                    "the read of physical page {} found {found:#x} instead of {tag:#x}: {op:?}",
                    op.page
                );
                self.compared += 1;
            }
            OpKind::Program => self.content[op.page as usize] = tag,
            OpKind::Copy => self.content[op.to as usize] = self.content[op.page as usize],
            OpKind::Erase => {
                let first = geometry.first_page(geometry.block_of_page(op.page)) as usize;
                let end = first + geometry.pages_per_block.get() as usize;
                self.content[first..end].fill(UNKNOWN);
            }
        }
    }
}
