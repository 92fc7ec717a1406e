//! The medium, its answers, and the data itself where somebody looks at it
//! ([`RingCard::keep_contents`](super::RingCard::keep_contents)).

use ssdyno_block::{Completion, ConfigError, Request, SubmitError, Time, Token};
use ssdyno_device::Contents;
use ssdyno_engine::events::EventLog;
use ssdyno_pci::BusMaster;
use ssdyno_spec::ring as layout;
use ssdyno_spec::ring::{Descriptor, ErrorKind};

use super::config::RingConfig;
use super::event::SLOT_BITS;
use super::media::{Access, Media};

/// Where the sectors of a command are: in the medium, and in host memory.
struct Places {
    offset: u64,
    address: u64,
    bytes: usize,
}

impl Places {
    fn of(descriptor: &Descriptor) -> Places {
        let sector = u64::from(layout::SECTOR_BYTES);
        // The first byte of data stands at its offset in its page.
        let inside = u64::from(descriptor.first_sector) * sector;
        Places {
            offset: descriptor.device_offset.get() + inside,
            address: descriptor.host_address.get() + inside,
            bytes: usize::from(descriptor.sectors) * sector as usize,
        }
    }
}

/// The storage media.
#[derive(Debug)]
pub(super) struct Storage {
    pub(super) media: Media,
    contents: Option<Contents>,
    /// How often the card was reset: part of the media's tokens. 19 bits of it count.
    epoch: u32,
    /// Room for the answers of the media.
    answers: Vec<Completion>,
}

impl Storage {
    /// As it leaves the factory.
    pub(super) fn fresh(config: &RingConfig, seed: u64) -> Result<Storage, ConfigError> {
        let media = Media::fresh(config, seed)?;
        Ok(Storage { media, contents: None, epoch: 0, answers: Vec::with_capacity(64) })
    }

    pub(super) fn keep_contents(&mut self) {
        self.contents.get_or_insert_default();
    }

    /// True if moving data touches host memory.
    pub(super) fn keeps_contents(&self) -> bool {
        self.contents.is_some()
    }

    /// From now on answers to what came before are for nobody. The media go on: they forget nothing.
    pub(super) fn drop_answers(&mut self) {
        // The epoch is the upper part of each token. An answer to a command of the time before a
        // reset has an older epoch and finds no slot.
        self.epoch = (self.epoch + 1) & (u32::MAX >> SLOT_BITS);
    }

    /// Begins the medium's part of the command in `slot`. `request` lies inside it.
    ///
    /// # Errors
    /// The medium refuses it.
    #[inline]
    pub(super) fn access(
        &mut self,
        now: Time,
        slot: usize,
        request: Request,
        log: &mut EventLog,
    ) -> Result<Access, SubmitError> {
        let token = Token(slot as u32 | self.epoch << SLOT_BITS);
        self.media.access(now, request, token, log)
    }

    /// Brings the medium to `now`. Gives its answers, which the caller hands back to
    /// [`reaped`](Storage::reaped).
    pub(super) fn reap(&mut self, now: Time, log: &mut EventLog) -> Vec<Completion> {
        let mut answers = std::mem::take(&mut self.answers);
        self.media.reap(now, &mut answers, log);
        answers
    }

    /// Takes back the room for answers.
    pub(super) fn reaped(&mut self, answers: Vec<Completion>) {
        self.answers = answers;
    }

    /// The slot that `token` is of; `None` if a reset dropped its command.
    #[inline]
    pub(super) fn slot(&self, token: Token) -> Option<usize> {
        let slot = (token.0 & ((1 << SLOT_BITS) - 1)) as usize;
        (token.0 >> SLOT_BITS == self.epoch).then_some(slot)
    }

    /// The data of these bytes are gone.
    pub(super) fn clear(&mut self, offset_bytes: u64, bytes: u64) {
        if let Some(contents) = &mut self.contents {
            contents.clear(offset_bytes, bytes);
        }
    }

    /// The data of the read goes to the host.
    pub(super) fn give_data(
        &self,
        read: &Descriptor,
        bus: &mut dyn BusMaster,
    ) -> Result<(), ErrorKind> {
        // Times do not depend on the contents. Without them a transfer takes as long and moves
        // nothing, which makes long runs fast.
        let Some(contents) = &self.contents else { return Ok(()) };
        let Places { offset, address, bytes } = Places::of(read);
        let mut page = [0; layout::PAGE_BYTES as usize];
        contents.read(offset, &mut page[..bytes]);
        bus.write(address, &page[..bytes]).map_err(|_| ErrorKind::HostMemory)
    }

    /// The data of the write comes from the host.
    pub(super) fn take_data(
        &mut self,
        write: &Descriptor,
        bus: &mut dyn BusMaster,
    ) -> Result<(), ErrorKind> {
        let Some(contents) = &mut self.contents else { return Ok(()) };
        let Places { offset, address, bytes } = Places::of(write);
        let mut page = [0; layout::PAGE_BYTES as usize];
        bus.read(address, &mut page[..bytes]).map_err(|_| ErrorKind::HostMemory)?;
        contents.write(offset, &page[..bytes]);
        Ok(())
    }
}
