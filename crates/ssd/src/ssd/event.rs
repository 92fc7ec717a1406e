//! The possible events inside the device.

use ssdyno_flash::FlashEvent;

ssdyno_engine::event_kinds! {
    /// The possible events inside the device.
    #[derive(Clone, Copy, Debug)]
    pub(super) enum Event << 30 {
        Flash(FlashEvent) = 0,
        /// The command (and the data of a write) is in the controller.
        Dispatch(u32) = 1,
        /// The answer is at the host.
        Complete(u32) = 2,
        /// The request's data has crossed the sector bus.
        BusFree(u32) = 3,
    }
}

impl From<FlashEvent> for Event {
    #[inline]
    fn from(event: FlashEvent) -> Event {
        Event::Flash(event)
    }
}

const _: () = assert!(FlashEvent::BITS <= 30, "flash events fit beside the kind");
