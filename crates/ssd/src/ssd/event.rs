//! What can happen inside the device, and how its parts report that they were busy.

use ssdyno_block::Time;

use ssdyno_flash::FlashEvent;

/// What can happen inside the device.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Flash(FlashEvent),
    /// The command (and the data of a write) is in the controller.
    Dispatch(u32),
    /// The answer is at the host.
    Complete(u32),
    /// The request's data has crossed the sector bus.
    BusFree(u32),
}

impl From<FlashEvent> for Event {
    #[inline]
    fn from(event: FlashEvent) -> Event {
        Event::Flash(event)
    }
}

/// Two bits for the kind, thirty for the rest.
impl ssdyno_engine::Event for Event {
    #[inline]
    fn pack(self) -> u32 {
        match self {
            Event::Flash(event) => event.pack(),
            Event::Dispatch(slot) => slot | 1 << 30,
            Event::Complete(slot) => slot | 2 << 30,
            Event::BusFree(slot) => slot | 3 << 30,
        }
    }
    #[inline]
    fn unpack(code: u32) -> Event {
        let rest = code & !(3 << 30);
        match code >> 30 {
            0 => Event::Flash(FlashEvent::unpack(rest)),
            1 => Event::Dispatch(rest),
            2 => Event::Complete(rest),
            _ => Event::BusFree(rest),
        }
    }
}

const _: () = assert!(FlashEvent::BITS <= 30, "flash events fit beside the kind");
