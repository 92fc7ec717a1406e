//! The stored content of the medium: data, and blocks that cannot be read.

use ssdyno_device::{Contents, Ranges};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Media {
    pub(crate) contents: Option<Contents>,
    /// Bytes of the device that Write Uncorrectable has spoilt.
    pub(crate) uncorrectable: Ranges,
    /// Data between host and contents.
    pub(crate) scratch: Vec<u8>,
}

impl Media {
    pub(crate) fn new(keeps_contents: bool) -> Media {
        Media {
            contents: keeps_contents.then(Contents::default),
            uncorrectable: Ranges::default(),
            scratch: Vec::new(),
        }
    }

    /// The range reads as zero from now on (DLFEAT = 1).
    pub(crate) fn forget(&mut self, offset: u64, bytes: u64) {
        if let Some(contents) = &mut self.contents {
            contents.clear(offset, bytes);
        }
        if !self.uncorrectable.is_empty() {
            self.uncorrectable.remove(offset, offset + bytes);
        }
    }

    /// All data are gone: the first `bytes` read as `pattern`, over and over.
    pub(crate) fn start_anew(&mut self, bytes: u64, pattern: u32) {
        self.uncorrectable = Ranges::default();
        if let Some(contents) = &mut self.contents {
            contents.start_anew(bytes, pattern.to_le_bytes());
        }
    }
}
