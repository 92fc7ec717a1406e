//! The data itself, where somebody looks at it ([`RingCard::keep_contents`]).

use ssdyno_pci::BusMaster;
use ssdyno_spec::ring as layout;
use ssdyno_spec::ring::{Descriptor, ErrorKind};

use super::RingCard;

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

impl RingCard {
    /// The data of the read in `slot` goes to the host.
    pub(super) fn give_data(
        &mut self,
        slot: usize,
        bus: &mut dyn BusMaster,
    ) -> Result<(), ErrorKind> {
        let Some(contents) = &self.contents else { return Ok(()) };
        let Places { offset, address, bytes } = Places::of(self.descriptor(slot));
        let mut page = [0; layout::PAGE_BYTES as usize];
        contents.read(offset, &mut page[..bytes]);
        bus.write(address, &page[..bytes]).map_err(|_| ErrorKind::HostMemory)
    }

    /// The data of the write in `slot` comes from the host.
    pub(super) fn take_data(
        &mut self,
        slot: usize,
        bus: &mut dyn BusMaster,
    ) -> Result<(), ErrorKind> {
        if self.contents.is_none() {
            return Ok(());
        }
        let Places { offset, address, bytes } = Places::of(self.descriptor(slot));
        let mut page = [0; layout::PAGE_BYTES as usize];
        bus.read(address, &mut page[..bytes]).map_err(|_| ErrorKind::HostMemory)?;
        if let Some(contents) = &mut self.contents {
            contents.write(offset, &page[..bytes]);
        }
        Ok(())
    }
}
