//! The data that reads must find, for tests.

/// The number of writes of each logical page; empty without a check.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// By the host.
    pub(super) newest: Vec<u32>,
    /// What the FTL was given last: older while newer data waits in the buffer.
    pub(super) stored: Vec<u32>,
    /// The logical page whose operations are queued next.
    page: u32,
}

impl Contents {
    /// The host has new data for `page`.
    #[inline]
    pub(super) fn written(&mut self, page: u32) {
        if cfg!(debug_assertions)
            && let Some(generation) = self.newest.get_mut(page as usize)
        {
            *generation += 1;
        }
    }

    /// The newest data of `page` went to the FTL, whose operations are queued next.
    #[inline]
    pub(super) fn stored(&mut self, page: u32) {
        if cfg!(debug_assertions)
            && let Some(generation) = self.stored.get_mut(page as usize)
        {
            *generation = self.newest[page as usize];
        }
        self.at(page);
    }

    /// The host reads `page` from the flash: nothing newer may wait in the buffer.
    #[inline]
    pub(super) fn read(&self, page: u32) {
        if cfg!(debug_assertions)
            && let Some(newest) = self.newest.get(page as usize)
        {
            let stored = self.stored[page as usize];
            assert!(*newest == stored, "page {page}: {stored} in the flash, {newest} written");
        }
    }

    /// The operations that are queued next are those of `page`.
    #[inline]
    pub(super) fn at(&mut self, page: u32) {
        if cfg!(debug_assertions) {
            self.page = page;
        }
    }

    /// Page and generation as one number; 0 without a check.
    pub(super) fn tag(&self) -> u64 {
        let generation = self.stored.get(self.page as usize).copied().unwrap_or(0);
        if generation == 0 { 0 } else { u64::from(self.page) << 32 | u64::from(generation) }
    }
}
