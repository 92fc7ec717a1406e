//! What reads must find, for tests.

use super::Ssd;
use super::flash_side::FlashSide;

/// How often each logical page was written; empty while nobody checks.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// By the host.
    newest: Vec<u32>,
    /// What the FTL was given last: older while newer data waits in the buffer.
    stored: Vec<u32>,
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

    /// Page and generation as one number; 0 while nobody checks.
    pub(super) fn tag(&self) -> u64 {
        let generation = self.stored.get(self.page as usize).copied().unwrap_or(0);
        if generation == 0 { 0 } else { u64::from(self.page) << 32 | u64::from(generation) }
    }
}

impl FlashSide {
    /// See [`Ssd::check_contents`].
    fn check_contents(&mut self) {
        let pages = self.ftl.logical_pages();
        self.array.keep_contents();
        self.contents.newest = vec![1; pages as usize];
        self.contents.stored = vec![1; pages as usize];
        for page in 0..pages {
            if let Some(physical) = self.ftl.locate(page) {
                self.contents.at(page);
                self.array.set_content(physical, self.contents.tag());
            }
        }
    }

    /// After everything was erased behind the FTL's back: what the flash holds now is right.
    pub(super) fn contents_start_anew(&mut self) {
        if cfg!(debug_assertions) && !self.contents.newest.is_empty() {
            self.check_contents();
        }
    }
}

impl Ssd {
    /// From now on every read of the host that reaches the flash is compared, at the end of its
    /// array phase, with the last data of that page that the FTL had been given when the read was
    /// queued - whatever was cleaned, suspended, joined or overtaken meanwhile - and none newer may
    /// wait in the buffer. A difference panics. For tests: it works only in
    /// builds with debug assertions, and is to be called before the first request.
    pub fn check_contents(&mut self) {
        self.flash.check_contents();
    }

    /// Reads compared since [`check_contents`](Ssd::check_contents).
    pub fn contents_compared(&self) -> u64 {
        self.flash.array.contents_compared()
    }
}
