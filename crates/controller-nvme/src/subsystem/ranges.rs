//! Ranges of the device that commands have still to deallocate.

/// No dataset, but one range.
pub(crate) const NO_DATASET: u32 = u32::MAX;
/// Ranges of a dataset command at most.
pub(super) const DATASET_RANGES_MAX: usize = 256;

/// Ranges of bytes that deallocating commands still have before them.
#[derive(Debug, Default)]
pub(crate) struct Datasets {
    pub(super) all: Vec<Vec<(u64, u64)>>,
    pub(super) free: Vec<usize>,
}

impl Datasets {
    /// An empty list.
    pub(super) fn take(&mut self) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.all.push(Vec::with_capacity(DATASET_RANGES_MAX));
            self.all.len() - 1
        });
        at as u32
    }
    pub(crate) fn give_back(&mut self, at: u32) {
        if at != NO_DATASET {
            self.all[at as usize].clear();
            self.free.push(at as usize);
        }
    }
    pub(super) fn pop(&mut self, at: u32) -> Option<(u64, u64)> {
        self.all.get_mut(at as usize)?.pop()
    }
}
